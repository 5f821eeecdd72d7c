"""What a decided version says of the substrate that was filled by it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.base.canonical import read_json
from runner.base.errors import InputError
from runner.base.records import BM25Cell, Document, parse_cell
from runner.base.schema import checked
from runner.embed.encoder import Encoder
from runner.eval_set.corpus import archive_path, corpus_documents
from runner.eval_set.labels import judgments, version_labels
from runner.eval_set.lock import LOCK_NAME
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import DRIVER, Version, load_decision, load_queries
from runner.score.score import qrels
from runner.substrate.beside_record import Record


@dataclass(frozen=True)
class Decided:
    """A version with what its record says.

    `encoder` and `chunker` made what the substrate should hold: the chosen cell's or, where that has no encoder
    (`of_baseline`), the baseline's.
    """

    version: Version
    decision: Decision
    results: Results
    encoder: Encoder
    chunker: str
    of_baseline: bool


def decided(version: Version, encoders: Callable[[str], Encoder]) -> Decided:
    """The version's recorded and locked decision with its encoder; an InputError where nothing is decided yet."""
    path, results_path = version.record / "decision.json", version.record / "results.json"
    if not path.exists() or not (version.record / LOCK_NAME).exists():
        raise InputError(
            f"{version.name} is not decided and locked yet, so there is nothing to hold a substrate against. Run: "
            f"{DRIVER} {version.flags}{' --rehearse' if version.rehearsal else ''}"
        )
    decision = load_decision(version)
    if decision.kind == "policy":
        raise InputError(
            f"{version.name} was decided by policy, so there is neither query nor figure to hold a substrate against."
        )
    results = checked(Results, read_json(results_path), results_path)
    of_baseline = not decision.chosen.encoder
    cell = parse_cell(decision.baseline if of_baseline else decision.chosen.cell)
    if isinstance(cell, BM25Cell):
        raise InputError(
            f"{version.name}: neither the chosen cell nor the baseline has an encoder, so there are no vectors to "
            "check. Full text alone needs no bulk embedding."
        )
    return Decided(version, decision, results, encoders(cell.encoder), cell.chunker, of_baseline)


def record(known: Decided) -> Record:
    """What the arms stand beside, with the labels that it was scored with: later ones would move its figures."""
    version, results = known.version, known.results
    queries = load_queries(version.queries_path)
    ids = [query.query_id for query in queries]
    return Record(
        plan=results.plan,
        cells=[row.cell for row in results.cells],
        queries=queries,
        qrels=qrels(judgments(version_labels(version)[: results.labels.lines])),
        run=lambda cell: read_run(version.run_path(cell), cell, ids),
    )


def documents(version: Version) -> Sequence[Document]:
    """The documents of the manifest, from their archive or from the corpus that the checkout holds."""
    embedded = version.source.corpus
    if not embedded and not archive_path(version).exists():
        raise InputError(
            f"The documents of {version.name} are not here: {archive_path(version)} is missing. Put the archive back: "
            "the substrate's text is held against it."
        )
    return corpus_documents(version, version.checkout / embedded if embedded else None)
