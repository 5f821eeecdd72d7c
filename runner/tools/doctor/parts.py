"""What the doctor checks besides planted defects: this machine, and each part of an evening over twelve known bills.

Each check imports what it examines, so that a missing or broken part fails the check and not the doctor.
"""

import logging
import platform
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.base.checks import Skipped
from runner.base.errors import NegativeVerdict
from runner.base.places import INSTALLED
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
    """The bills as the reader gives them; each query's own bill has grade 3, the next one of its stratum grade 1."""
    from samplers.sources.bills.reader import read_bill

    documents = tuple(read_bill(_xml(i, title, order), f"bill-{i}.xml") for i, (title, order, _) in enumerate(_BILLS))
    query_ids = [f"q{i:02d}" for i in range(len(_BILLS))]
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


def reads_bills() -> str:
    """Check that a bill's number, title, text and sections are read from its XML."""
    document = tiny_set().documents[0]
    expected = ("BILLS-41hr101ih", "H.R. 101 (41st, introduced in House): Night Ferry Act", "41/house/introduced/short")
    if (document.doc_id, document.title, document.stratum) != expected:
        raise NegativeVerdict(f"read {(document.doc_id, document.title, document.stratum)}, expected {expected}")
    labels = [section.label for section in document.sections if section.kind == "section"]
    if labels != ["Sec. 1. Duty", "Sec. 2. Report"] or _BILLS[0][1] not in document.text:
        raise NegativeVerdict(f"{document.doc_id}: sections {labels} and the text {document.text!r}")
    return f"{len(_BILLS)} bills, {document.doc_id} with {len(labels)} sections"


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
            wanted, hits = max(grades, key=grades.__getitem__), run.hits[query_id]
            if not hits or hits[0].doc_id != wanted:
                found = hits[0].doc_id if hits else "nothing"
                raise NegativeVerdict(f"{variant}: {tiny.queries[query_id]!r} finds {found} first, not {wanted}")
    return f"{' and '.join(BM25_VARIANTS)}: {len(tiny.queries)} of {len(tiny.queries)} queries find their bill first"


def scores_known_values() -> str:
    """Check that a ranking worked out by hand has the measures worked out by hand."""
    from runner.base.records import Hit, Run, Span
    from runner.score.score import score

    ranked = tuple(Hit(name, 4.0 - place, Span(0, 1)) for place, name in enumerate(("none", "best", "some")))
    found = score(Run("known", {"q": ranked}), ["q"], {"q": {"best": 3, "some": 1, "missed": 2}}, 2).values
    # (3 / log2 3 + 1 / log2 4) / (3 + 2 / log2 3 + 1 / log2 4), one relevant document of two, at rank 2, two judged
    known = {"ndcg@10": 502490520, "recall@10": 500000000, "mrr": 500000000, "judged@10": 666666667}
    for measure, value in known.items():
        if found[measure] != (value,):
            raise NegativeVerdict(f"{measure} is {found[measure][0] / 1e9:.9f}, worked out by hand {value / 1e9:.9f}")
    return f"{', '.join(known)} as worked out by hand, to nine places"


def round_trips_runs() -> str:
    """Check that a written run is read back equal, and that a line cut short is refused."""
    from runner.base.errors import InputError
    from runner.eval_set.runs import read_run, run_bytes

    tiny = tiny_set()
    run = bm25(list(tiny.queries.values()))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run.tsv"
        path.write_bytes(run_bytes(run))
        if list(read_run(path, run.cell, list(tiny.queries)).hits.items()) != list(run.hits.items()):
            raise NegativeVerdict("a run was read back as another one")
        path.write_bytes(run_bytes(run)[:-3])
        try:
            read_run(path, run.cell, list(tiny.queries))
        except InputError:
            return f"{sum(map(len, run.hits.values()))} hits written and read back; a cut file refused"
    raise NegativeVerdict("a run file that was cut short was read as a whole one")


def bm25(queries: Sequence[str], variant: str = "bm25") -> "Run":
    """The run of the tiny set's query ids over whole bills, each asking the text of its place in `queries`."""
    from runner.retrieve.bm25 import bm25_run

    tiny = tiny_set()
    chunks = whole_bills()
    texts = [chunk.reading(document) for chunk, document in zip(chunks, tiny.documents, strict=True)]
    asked = dict(zip(tiny.queries, queries, strict=True))
    return bm25_run(f"{variant} x whole_doc", variant, asked, chunks, texts).run


def whole_bills() -> "list[Chunk]":
    """One chunk per bill."""
    from runner.embed.chunk_corpus import chunk_corpus

    return chunk_corpus(tiny_set().documents, "whole_doc")


def _xml(place: int, title: str, order: str) -> bytes:
    sections = (("Duty", order), ("Report", _COMMON))
    body = "".join(
        f"<section><enum>{number}.</enum><header>{header}</header><text>{text}</text></section>"
        for number, (header, text) in enumerate(sections, start=1)
    )
    return (
        f'<bill bill-stage="Introduced-in-House"><metadata><dublinCore><title>41 HR {101 + place} IH: {title}</title>'
        f"</dublinCore></metadata><form/><legis-body>{body}</legis-body></bill>"
    ).encode()


ENCODER = "minilm-l6-v2"

_TEXT = "The fee is $1,250 a berth – section 78dd–1 applies to každý harbor."

_TEXT_TOKENS = 24
"""Of _TEXT, in cl100k_base."""


def python_version(checkout: Path) -> str:
    """The version of Python if it is one that is asked for."""
    wanted = _project(checkout)["requires-python"]
    least = tuple(int(part) for part in re.findall(r"\d+", wanted))
    found = platform.python_version()
    if sys.version_info[: len(least)] < least:
        raise NegativeVerdict(f"Python {found}; {wanted} is needed")
    return f"Python {found} ({wanted})"


def packages(checkout: Path) -> str:
    """How many packages are installed as pinned, and which extras are not there."""
    project = _project(checkout)
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


def store_round_trip() -> str:
    """Check that an artefact is built once, found again, and built anew after its bytes changed."""
    from runner.base.store import Store

    built = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "rows.txt").write_text("one\ntwo\n", encoding="utf-8")

    with tempfile.TemporaryDirectory() as scratch, _silent("runner.base.store"):
        store = Store(Path(scratch))
        for _ in range(2):
            artefact = store.ensure("doctor", {"rows": 2}, build) / "rows.txt"
        if len(built) != 1:
            raise NegativeVerdict(f"an artefact that was asked for twice was built {len(built)} times")
        artefact.write_text("one\ntwx\n", encoding="utf-8")
        again = store.ensure("doctor", {"rows": 2}, build) / "rows.txt"
        if again.read_text(encoding="utf-8") != "one\ntwo\n":
            raise NegativeVerdict("a changed artefact was taken for the one that was written")
    return "built once, found again, a changed byte noticed and repaired"


def offline_tokens() -> str:
    """Check that the packaged table of cl100k_base is the pinned one, and counts a known text as it should."""
    from chunkers.tokens import ranks_path, read_ranks, tokenize

    ranks = read_ranks(ranks_path())
    counted = tokenize(_TEXT).n_tokens
    if counted != _TEXT_TOKENS:
        raise NegativeVerdict(f"a text of {_TEXT_TOKENS} tokens was counted as {counted}")
    return f"{len(ranks):,} tokens from the package, digest as pinned; a text of {counted} counted as {counted}"


def local_encoder() -> str:
    """The margin by which the packaged encoder passes its probe."""
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
    """What pyproject.toml says of the project; of an installed wheel, what it was built with."""
    if INSTALLED:
        return _of_wheel()
    path = checkout / "pyproject.toml"
    try:
        project: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    except (OSError, ValueError, KeyError) as error:
        raise NegativeVerdict(f"{path} cannot be read ({type(error).__name__}: {error})") from error
    return project


def _of_wheel() -> Mapping[str, Any]:
    found: dict[str, list[str]] = {}
    for name, version, extra in all_pins():
        found.setdefault(extra, []).append(f"{name}=={version}")
    return {
        "requires-python": metadata.metadata(DISTRIBUTION)["Requires-Python"],
        "dependencies": found.pop("", []),
        "optional-dependencies": found,
    }


def _compared(pins: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is installed in another version, in words, and the names of what is not installed.

    A build of the pinned version ("2.13.0+cpu") is that version, as for pip.
    """
    wrong, missing = [], []
    for pin in pins:
        name, _, wanted = pin.partition("==")
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if wanted not in (found, found.partition("+")[0]):
            wrong.append(f"{name} is {found}, pinned {wanted}")
    return wrong, missing


@contextmanager
def _silent(logger: str) -> Iterator[None]:
    """No message of a logger, whose warning of a planted defect would look like one of this machine."""
    log = logging.getLogger(logger)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
