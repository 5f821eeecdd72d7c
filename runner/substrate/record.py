"""The record of a decided version, and the comparison of its cells with the substrate's searches, query by query."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runner.base.canonical import sha256
from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.base.records import (
    WITHOUT_VECTORS,
    BM25Cell,
    DenseCell,
    Document,
    HybridCell,
    Qrels,
    Run,
    parse_cell,
)
from runner.decide.cell_results import unjudged_hits
from runner.embed.encoder import Encoder
from runner.embed.local_encoder import TransformerEncoder
from runner.eval_set.corpus import archive_path, corpus_documents
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.labels import version_labels
from runner.eval_set.plan import read_plan
from runner.eval_set.runs import read_run, run_bytes
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.plan import ScoredPlan
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.version import Version, load_decision, load_queries, load_results
from runner.score.comparison import Comparison
from runner.score.score import qrels
from runner.substrate.search import BINARY, EXACT, FUSED, KEYWORD, IndexRecall
from runner.substrate.shapes import ArmResult, Beside, IndexRecallResult, Quantisation

INDEX_RECALL_FLOORS = {10: 0.95, 100: 0.9}
"""Mean index recall by depth below which quantisation loses more than rescoring is there to bring back."""

_LISTED = 5


@dataclass(frozen=True)
class Record:
    """What a record is scored from; `cells` are its plan's, best first, and `run` reads the run of one."""

    plan: ScoredPlan
    cells: Sequence[str]
    queries: Sequence[QueryRow]
    qrels: Qrels
    run: Callable[[str], Run]

    def comparison(self, runs: Mapping[str, Run], baseline: str) -> Comparison:
        """Compare runs with the one named; they are no family, so that every p stands alone."""
        return Comparison(
            plan=self.plan.model_copy(update={"baseline": baseline}),
            queries=self.queries,
            runs=runs,
            qrels=self.qrels,
            facts={},
            registered=frozenset(),
            document_lengths={},
        )


def counterparts(cells: Sequence[str], encoder: str, chunker: str, cut: str = "") -> dict[str, str]:
    """Return the cell that stands beside each arm, if one of `cells` (best first) resembles it.

    For vectors: the dense cell of this encoder and chunker, else the best of this encoder, with `cut` as its variant;
    the binary arm has the cell of bits first. The fused arm: rank fusion likewise. Full text: BM25 over whole
    documents.
    """
    parsed = {cell: parse_cell(cell) for cell in cells}
    own = {
        cell: parts
        for cell, parts in parsed.items()
        if not isinstance(parts, WITHOUT_VECTORS) and parts.encoder == encoder
    }
    own = dict(sorted(own.items(), key=lambda item: item[1].chunker != chunker))  # stable: best first within each
    dense = [cell for cell, parts in own.items() if isinstance(parts, DenseCell) and parts.variant == cut]
    # Bits of a vector that is cut are no cell.
    bits = [] if cut else [cell for cell in own if cell == str(DenseCell(encoder, chunker, "bit"))]
    wanted = {
        EXACT: dense,
        BINARY: [*bits, *dense],
        KEYWORD: [cell for cell in cells if cell == str(BM25Cell("bm25", "whole_doc"))],
        FUSED: [cell for cell, parts in own.items() if isinstance(parts, HybridCell) and parts.method == "rrf"],
    }
    return {arm: candidates[0] for arm, candidates in wanted.items() if candidates}


def arm_result(record: Record, arm: str, run: Run, cell: str | None) -> ArmResult:
    """Return the scores of an arm's run, beside those of the record's cell if it has one."""
    runs = {arm: run} if cell is None else {arm: run, cell: record.run(cell)}
    comparison = record.comparison(runs, cell or arm)
    scores = comparison.means
    beside = None
    if cell is not None:
        differences, test = comparison.differences[arm], comparison.tests[arm]
        beside = Beside(cell=cell, scores=scores[cell], differences=differences, test=test)
    unjudged, bounds = unjudged_hits(comparison, run)
    return ArmResult(
        arm=arm,
        scores=scores[arm],
        unjudged=unjudged,
        bounds=bounds,
        run_sha256=sha256(run_bytes(run)),
        beside=beside,
    )


def quantisation(record: Record, runs: Mapping[str, Run], recall: IndexRecall) -> Quantisation:
    """Return what the binary index loses against exact search over the same vectors; `runs` are over all of them."""
    comparison = record.comparison({arm: runs[arm] for arm in (EXACT, BINARY)}, EXACT)
    of_depths = []
    for depth, floor in INDEX_RECALL_FLOORS.items():
        shares = recall[depth]
        # The worst queries first, of equal ones by id.
        short = sorted(pair for pair in zip(shares, comparison.query_ids, strict=True) if pair[0] < 1)
        of_depth = IndexRecallResult(
            depth=depth,
            mean=sum(shares) / len(shares),
            least=min(shares),
            worst=[query_id for _, query_id in short[:_LISTED]],
            floor=floor,
        )
        of_depths.append(of_depth)
    return Quantisation(
        recall=of_depths,
        difference=comparison.differences[BINARY]["ndcg@10"],
        test=comparison.tests[BINARY],
    )


@dataclass(frozen=True)
class Decided:
    """A version with its record; `encoder` and `chunker` are the chosen cell's or, `of_baseline`, the baseline's.

    `cut` is the number of dimensions that its vectors are cut to, "" for whole ones.
    """

    version: Version
    decision: Decision
    record: Record
    encoder: Encoder
    chunker: str
    of_baseline: bool
    cut: str = ""


def decided(version: Version, encoders: Callable[[str], Encoder]) -> Decided:
    """Return the version's recorded and locked decision with its encoder; an InputError if nothing is decided yet.

    The record has the labels that it was scored with: later ones would move its figures.
    """
    path = version.record / "decision.json"
    if not path.exists() or not (version.record / LOCK_NAME).exists():
        raise InputError(
            f"{version.name} is not decided and locked yet, so there is nothing to hold a substrate against. Run: "
            f"{DRIVER} run {version.viewed}"
        )
    decision = load_decision(version)
    if decision.kind == "policy":
        raise InputError(
            f"{version.name} was decided by policy, so there is neither query nor figure to hold a substrate against."
        )
    results = load_results(version)
    of_baseline = not decision.chosen.encoder
    cell = parse_cell(decision.baseline if of_baseline else decision.chosen.cell)
    if isinstance(cell, WITHOUT_VECTORS):
        raise InputError(
            f"{version.name}: neither the chosen cell nor the baseline has an encoder, so there are no vectors to "
            "check. Full text alone needs no bulk embedding."
        )
    own = read_plan(version.plan_path(rehearsal=version.rehearsal)).encoders.get(cell.encoder)
    if own is not None and own.api:
        raise InputError(
            f"{version.name}: {cell.encoder} is a service of the plan's own. Holding a substrate against one would "
            "embed its chunks again, which is charged, and is not done. Compare a few vectors by hand."
        )
    queries = load_queries(version.queries_path)
    query_ids = [query.id for query in queries]
    record = Record(
        plan=results.plan,
        cells=[row.cell for row in results.cells],
        queries=queries,
        qrels=qrels(version_labels(version)[: results.labels.lines]),
        run=lambda name: read_run(version.run_path(name), name, query_ids),
    )
    encoder = encoders(cell.encoder) if own is None else TransformerEncoder(own)
    cut = cell.variant if isinstance(cell, DenseCell) and cell.variant.isdigit() else ""
    return Decided(version, decision, record, encoder, cell.chunker, of_baseline, cut)


def documents(version: Version) -> Sequence[Document]:
    """Return the documents of the manifest, from their archive or from the corpus that comes with this tool."""
    if not version.embedded_corpus and not archive_path(version).exists():
        raise InputError(
            f"The documents of {version.name} are not here: {archive_path(version)} is missing. Put the archive back: "
            "the substrate's text is held against it."
        )
    return corpus_documents(version, version.embedded_corpus)
