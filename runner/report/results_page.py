"""results.html: one self-contained page, a pure function of results, lists, receipt, decision and the templates."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import yaml

from runner.base.canonical import rounded, sha256
from runner.base.places import COMMAND
from runner.base.records import ASKED
from runner.decide.judge_checks import failed_checks
from runner.decide.judging import writers
from runner.decide.sample_size import detectable, too_few
from runner.decide.tiers import CellFigures, Criterion, criteria, recall_words
from runner.eval_set.catalog import ENCODERS, SOURCES
from runner.eval_set.kinds import kind_of, near_copies
from runner.eval_set.shapes.cell import BackendRecord, ChunkHealth, Provenance
from runner.eval_set.shapes.decision import Decision, Receipt
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.results import CellResult, Results
from runner.gate.nulls import BY_NAME
from runner.report import drawings, sentences
from runner.report.by_query import AT_FIRST, CAUSES, anchor, fragment, matrix, reader, tint
from runner.report.page_frame import inert, rendered
from runner.report.templates import own_functions
from runner.retrieve.words import unspaced
from runner.score.slices import slices

TEMPLATE_VERSION = 1
"""Raised by every change of the page's bytes, once a release: of a template, of this module, or of what lies under
runner/report for it; the page names it. The report of `post-bulk` has its own."""


def page(
    written: bytes,
    listed: bytes,
    receipt: Receipt | None,
    decision: Decision | None = None,
    *,
    local_copy: bool = False,
) -> bytes:
    """Return UTF-8 HTML without network or clock: the same bytes for the same inputs; whole without its script, too.

    `written` is results.json, `listed` what lists.json.bz2 holds. Text from documents, queries and labels is shown,
    never interpreted. A `local_copy` has passages of documents that are not ours, and says so.
    """
    results = inert(Results.model_validate_json(written))
    measured = None if receipt is None else inert(Receipt.model_validate(rounded(receipt.model_dump())))
    lists = inert(RankedLists.model_validate_json(listed))
    whole = results.plan.model_dump() | {"switching_cost": results.plan.switching_cost}  # though it is the default
    return rendered(
        "results.html.j2",
        styles=("_results.css.j2",),
        scripts=("results.js.j2",),
        asked=_ASKED,
        results=results,
        lists=lists,
        matrix=matrix(results, lists),
        decision=inert(decision),
        receipt=measured,
        embedded=embedded(measured.backends if measured else {}),
        local_copy=local_copy,
        results_sha256=sha256(written),
        plan_lines=yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=1000).splitlines(),
        template_version=TEMPLATE_VERSION,
    )


def forest_svg(results: Results) -> str:
    """Return the differences in nDCG@10 as a drawing that needs no page around it, for a notebook or a document."""
    return rendered("forest.svg.j2", asked=_ASKED, results=inert(results)).decode().strip()


def criteria_of(row: CellResult, results: Results) -> list[Criterion]:
    """Return the conditions of a confirmed cell, each with whether this one meets it."""
    return criteria(CellFigures.of(row, results.effective), results.plan.rule)


def ranked(names: Iterable[str], results: Results) -> list[str]:
    """Return names of cells in the order of the ranking; those that are not in it come last."""
    places = {row.cell: place for place, row in enumerate(results.cells)}
    return sorted(names, key=lambda name: places.get(name, len(places)))


def read_chunks(results: Results) -> dict[str, Provenance]:
    """Return by encoder and chunker what the encoders read, once if several cells share it."""
    found: dict[str, Provenance] = {}
    for row in results.cells:
        # Hybrids and shorter vectors read the same chunks as the plain cell.
        if row.provenance.encoder is not None and row.provenance.truncation is not None:
            name = f"{row.provenance.encoder['encoder']} x {row.cell.rpartition(' x ')[2]}"
            found.setdefault(name, row.provenance)
    return found


def chunk_health(results: Results) -> dict[str, ChunkHealth]:
    """Return the health of every chunker's chunks."""
    found: dict[str, ChunkHealth] = {}
    for row in results.cells:
        if row.provenance.chunks is not None:
            found.setdefault(row.cell.rpartition(" x ")[2], row.provenance.chunks)
    return found


def uncatalogued(results: Results) -> dict[str, dict[str, Any]]:
    """Return what cell files say of the encoders that the catalog does not have; a service has no revision."""
    made = (row.provenance.encoder for row in results.cells)
    return {spec["encoder"]: spec for spec in made if spec is not None and spec["encoder"] not in ENCODERS}


REPEATED = "aa"
"""The baseline once more, as receipts name it; it comes last."""

UNSAID = "not said"
_PLACES = {"local": "locally", "modal": "on Modal", "http": "over HTTP"}
_IN_COLUMNS = frozenset({"device", "dtype", "model_dtype", "revision", "model_sha", "weights_sha256"})


class Embedded(NamedTuple):
    """The place where one cell was embedded, as its backend says; `further` is what it said beyond the columns.

    `place` is how a sentence names it; the revision of a server that does not state it is `unverified`.
    """

    cell: str
    place: str
    backend: str
    device: str
    number_format: str
    libraries: list[str]
    revision: str
    unverified: bool
    further: list[str]


def embedded(backends: Mapping[str, BackendRecord]) -> list[Embedded]:
    """Return where the cells of a receipt were embedded, in name order."""
    names = sorted(backends, key=lambda name: (name == REPEATED, name))
    return [_embedded(name, backends[name]) for name in names]


def _embedded(cell: str, record: BackendRecord) -> Embedded:
    identity, served, is_server = record.identity, record.served, record.name == "http"
    device = str(served.get("device") or identity.get("device") or UNSAID)
    number_format = str(served.get("dtype") or served.get("model_dtype") or identity.get("dtype") or UNSAID)
    pinned = identity.get("versions")
    versions = dict(pinned) if isinstance(pinned, dict) else {}
    backend, revision = {"local": "local", "modal": "Modal"}.get(record.name, ""), "as catalogued"
    # Local and Modal backends load files that were checked; a server can only be believed.
    if is_server:
        backend = f"HTTP, {identity.get('api', 'API ' + UNSAID)}, {identity.get('url', 'address ' + UNSAID)}"
        revision = f"{served['model_sha'][:12]}, as the server says" if served.get("model_sha") else ""
    elif weights := served.get("weights_sha256"):
        revision = f"as catalogued, weights {weights[:12]}"
    return Embedded(
        cell=cell,
        place=f"{_PLACES[record.name]} ({', '.join(filter(UNSAID.__ne__, (device, number_format))) or UNSAID})",
        backend=backend,
        device=device,
        number_format=number_format,
        libraries=[f"{name} {served.get(name) or versions[name]}" for name in sorted(versions)],
        revision=revision or "unverified: the server does not prove which revision it serves",
        unverified=not revision,
        further=[f"{what}: {served[what]}" for what in sorted(served.keys() - _IN_COLUMNS - versions.keys())],
    )


_ASKED: dict[str, object] = {
    **own_functions(drawings),
    **own_functions(sentences),
    **{
        each.__name__: each
        for each in (
            anchor,
            chunk_health,
            criteria_of,
            detectable,
            failed_checks,
            fragment,
            kind_of,
            near_copies,
            uncatalogued,
            ranked,
            read_chunks,
            reader,
            recall_words,
            slices,
            tint,
            too_few,
            unspaced,
            writers,
        )
    },
    "ASKED": ASKED,
    "AT_FIRST": AT_FIRST,
    "AXIS": drawings.UNIT,
    "CAUSES": CAUSES,
    "COMMAND": COMMAND,
    "GROUND": drawings.GROUND,
    "HEIGHT": drawings.HEIGHT,
    "NULLS": BY_NAME,
    "SHAPES": drawings.SHAPES,
    "SOURCES": SOURCES,
}
"""What the page's templates ask besides the records."""
