"""What the doctor checks besides planted defects: this machine, and each part of an evening over twelve known bills.

Each check imports what it examines, so that a missing or broken part fails the check and not the doctor.
"""

import platform
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.base.errors import NegativeVerdict
from runner.base.places import INSTALLED
from runner.base.steps import Skipped
from runner.embed.modal.pins import DISTRIBUTION, all_pins

if TYPE_CHECKING:
    from runner.base.records import Chunk, Document, Run

# Title, what the bill orders, what is asked for: the query's bill is the one of its row.
_BILLS = (
    ("Night Ferry Act", "A ferry crosses the sound at midnight and at three.", "ferry at midnight"),
    ("Bridge Weights Act", "A lorry above nine tons is weighed before the bridge.", "lorry weighed before a bridge"),
    ("Cycle Lanes Act", "A kerb divides the cycle lane from tramway rails.", "kerb beside the cycle lane"),
    ("Pilot Fees Act", "A ship without a pilot pays double mooring.", "mooring of a ship without pilot"),
    ("School Lunch Act", "A pupil gets soup and bread at noon.", "soup and bread for a pupil"),
    ("Reading Rooms Act", "A reading room lends novels until nine in the evening.", "novels lent in the evening"),
    ("Chalk Dust Act", "A blackboard is wiped wet so that no chalk is inhaled.", "chalk inhaled at a blackboard"),
    ("Bell Times Act", "A lesson begins when the second bell has rung.", "lesson after the second bell"),
    ("Well Testing Act", "A well is tested for arsenic and nitrate.", "arsenic in a well"),
    ("River Gauges Act", "A gauge above the weir shows the flood level.", "flood level at the weir"),
    ("Rain Barrels Act", "A household may keep rain in two barrels of oak.", "barrels of rain"),
    ("Eel Ladders Act", "A dam carries a ladder of brushwood for eels.", "ladder for eels"),
)
_COMMON = "The office shall publish a yearly report."
QUESTION = "yearly report of the office: "
"""What every query begins with, so that every bill is found and only the order tells a good ranking from a bad one."""


class TinySet(NamedTuple):
    """Twelve bills and a query for each, in three strata of four."""

    documents: "tuple[Document, ...]"
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    strata: dict[str, str]


@cache
def tiny_set() -> TinySet:
    """Return the bills as the reader gives them; a query's own bill has grade 3, the next of its stratum grade 1."""
    from samplers.sources.bills import FORMAT

    # Through the reader of bills, so that a broken reader is a broken check.
    documents = tuple(
        FORMAT.read(_xml(i, title, order), f"bill-{i}.xml", frozenset()).documents[0]
        for i, (title, order, _) in enumerate(_BILLS)
    )
    query_ids = [f"q{i:02d}" for i in range(len(_BILLS))]
    # A second relevant bill each, so that a grade below the best is tried too.
    neighbours = [i - 3 if i % 4 == 3 else i + 1 for i in range(len(_BILLS))]
    return TinySet(
        documents,
        {query_id: QUESTION + row[2] for query_id, row in zip(query_ids, _BILLS, strict=True)},
        {
            query_id: {documents[i].doc_id: 3, documents[near].doc_id: 1}
            for i, (query_id, near) in enumerate(zip(query_ids, neighbours, strict=True))
        },
        {query_id: f"stratum {i // 4}" for i, query_id in enumerate(query_ids)},
    )


def chunks_documents() -> str:
    """Check that every chunker covers every character that is not white space, within its documents."""
    from chunkers.registry import CHUNKERS, limit_of
    from runner.embed.chunk_corpus import chunk_corpus
    from runner.embed.chunk_health import chunk_health

    documents = tiny_set().documents
    for name in CHUNKERS:
        health = chunk_health(chunk_corpus(documents, name), documents, limit_of(name))
        if health.count < len(documents) or health.coverage != 1:
            raise NegativeVerdict(
                f"{name}: {health.count} chunks hold {health.coverage:.1%} of the text of {len(documents)} made-up "
                "bills; each bill needs a chunk, and every character that is not white space belongs in one"
            )
    return f"{len(CHUNKERS)} chunkers, every character in a chunk"


def retrieves() -> str:
    """Check that both variants of BM25 rank each query's bill first."""
    from runner.retrieve.bm25 import BM25_VARIANTS

    tiny = tiny_set()
    for variant in BM25_VARIANTS:
        run = bm25(list(tiny.queries.values()), variant)
        for query_id, grades in tiny.qrels.items():
            # The one of grade 3 is the bill that the query was made for.
            wanted, hits = max(grades, key=grades.__getitem__), run.hits[query_id]
            if not hits or hits[0].doc_id != wanted:
                first = hits[0].doc_id if hits else "nothing"
                raise NegativeVerdict(f"{variant}: {tiny.queries[query_id]!r} finds {first} first, not {wanted}")
    return f"{' and '.join(BM25_VARIANTS)}: {len(tiny.queries)} of {len(tiny.queries)} queries find their bill first"


def bm25(queries: Sequence[str], variant: str = "bm25") -> "Run":
    """Return the run of the tiny set's query ids over whole bills, each asking the text of its place in `queries`."""
    from runner.retrieve.bm25 import bm25_run

    tiny = tiny_set()
    chunks = whole_bills()
    texts = [chunk.reading(document) for chunk, document in zip(chunks, tiny.documents, strict=True)]
    asked = dict(zip(tiny.queries, queries, strict=True))
    return bm25_run(f"{variant} x whole_doc", variant, asked, chunks, texts).run


def whole_bills() -> "list[Chunk]":
    """Return one chunk per bill."""
    from runner.embed.chunk_corpus import chunk_corpus

    return chunk_corpus(tiny_set().documents, "whole_doc")


def _xml(bill: int, title: str, order: str) -> bytes:
    sections = (("Duty", order), ("Report", _COMMON))
    body = "".join(
        f"<section><enum>{number}.</enum><header>{header}</header><text>{text}</text></section>"
        for number, (header, text) in enumerate(sections, start=1)
    )
    return (
        f'<bill bill-stage="Introduced-in-House"><metadata><dublinCore><title>41 HR {101 + bill} IH: {title}</title>'
        f"</dublinCore></metadata><form/><legis-body>{body}</legis-body></bill>"
    ).encode()


ENCODER = "minilm-l6-v2"

_TEXT = "The fee is $1,250 a berth – section 78dd–1 applies to každý harbor."

_TEXT_TOKENS = 24
"""Of _TEXT, in cl100k_base."""


def python_version(checkout: Path) -> str:
    """Return the version of Python if it is one that is asked for."""
    wanted = _project(checkout)["requires-python"]
    least = tuple(int(part) for part in re.findall(r"\d+", wanted))
    running = platform.python_version()
    if sys.version_info[: len(least)] < least:
        raise NegativeVerdict(f"Python {running}; {wanted} is needed")
    return f"Python {running} ({wanted})"


def packages(checkout: Path) -> str:
    """Return how many packages are installed as pinned, and which extras are not there."""
    project = _project(checkout)
    # What every command needs must be there as pinned; an extra may be left out, but not be another version.
    wrong, missing = _compared(project["dependencies"])
    wrong += [f"{name} is not installed" for name in missing]
    notes = []
    for extra, pins in project["optional-dependencies"].items():
        differing, absent = _compared(pins)
        if absent:  # what else of it is here came with other packages, in the versions that those take
            notes.append(f"extra {extra} lacks {', '.join(absent)}")
        else:
            wrong += differing
    if wrong:
        raise NegativeVerdict("; ".join(wrong))
    return "; ".join([f"{len(project['dependencies'])} packages as pinned", *(notes or ["every extra too"])])


def offline_tokens() -> str:
    """Check that the packaged table of cl100k_base is the pinned one, and counts a known text as it should."""
    from chunkers.tokens import ranks_path, read_ranks, tokenize

    ranks = read_ranks(ranks_path())
    counted = tokenize(_TEXT).n_tokens
    if counted != _TEXT_TOKENS:
        raise NegativeVerdict(f"a text of {_TEXT_TOKENS} tokens was counted as {counted}")
    return f"{len(ranks):,} tokens from the package, digest as pinned; a text of {counted} counted as {counted}"


def local_encoder() -> str:
    """Return the margin by which the packaged encoder passes its probe."""
    from runner.embed.local_encoder import encoder_for
    from runner.embed.probe import probe
    from runner.embed.weights import install_advice, is_here
    from runner.eval_set import catalog

    spec = catalog.encoder(ENCODER)
    if not is_here(spec):
        raise Skipped(f"the weights of {ENCODER} are not installed; BM25 cells work without. {install_advice(spec)}")
    figures = probe(encoder_for(ENCODER))
    return (
        f"{ENCODER}, {figures['dim']} dimensions: paraphrases at {figures['paraphrase_min']:.2f} or more, strangers at "
        f"{figures['stranger_max']:.2f} or less; reads {figures['truncates_at']} tokens and no more"
    )


def _project(checkout: Path) -> Mapping[str, Any]:
    """Return what pyproject.toml says of the project; of an installed wheel, what it was built with."""
    if INSTALLED:
        return _of_wheel()
    path = checkout / "pyproject.toml"
    try:
        project: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    except (OSError, ValueError, KeyError) as error:
        raise NegativeVerdict(f"{path} cannot be read ({type(error).__name__}: {error})") from error
    return project


def _of_wheel() -> Mapping[str, Any]:
    # A wheel has no pyproject.toml; its metadata has the same pins by extra, "" for what everybody needs.
    pins: dict[str, list[str]] = {}
    for name, version, extra in all_pins():
        pins.setdefault(extra, []).append(f"{name}=={version}")
    return {
        "requires-python": metadata.metadata(DISTRIBUTION)["Requires-Python"],
        "dependencies": pins.pop("", []),
        "optional-dependencies": pins,
    }


def _compared(pins: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what is installed in another version, in words, and the names of what is not installed.

    A build of the pinned version ("2.13.0+cpu") is that version, as for pip.
    """
    wrong, missing = [], []
    for pin in pins:
        name, _, wanted = pin.partition("==")
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if wanted not in (installed, installed.partition("+")[0]):
            wrong.append(f"{name} is {installed}, pinned {wanted}")
    return wrong, missing
