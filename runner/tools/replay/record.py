"""What a record holds that can be embedded again, and whether the means for that are here. Nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass

from runner.base.canonical import file_sha256
from runner.base.errors import InputError, IntegrityError
from runner.base.places import DRIVER
from runner.base.records import BM25Cell, CrossCell, Document, Qrels, Run, parse_cell
from runner.embed.backends import Backend
from runner.eval_set.catalog import reranker
from runner.eval_set.corpus import archive_fault, archived_documents, listed_documents
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.labels import version_labels
from runner.eval_set.lock import verify_version
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, load_decision, load_queries, load_results
from runner.score.score import qrels


@dataclass(frozen=True)
class Recorded:
    """What the record says: its results, the grades that they were scored with, and its runs."""

    version: Version
    results: Results
    query_ids: Sequence[str]
    qrels: Qrels

    def run_of(self, version: Version, cell: str) -> Run:
        """The run of a cell that lies in the record or in another folder, over the queries that the record scored."""
        return read_run(version.run_path(cell), cell, self.query_ids)


def recorded(version: Version) -> Recorded:
    """The version's record, verified; an InputError if it has no results to hold."""
    verify_version(version)
    is_decided = version.rehearsal or (
        (version.record / LOCK_NAME).exists() and load_decision(version).kind == "production"
    )
    if not (version.results_path.exists() and is_decided):
        what = "rehearsal has no results" if version.rehearsal else "record is not decided over results and locked"
        raise InputError(
            f"{version.name}: its {what} yet, so there is nothing to replay. Run: {DRIVER} run {version.viewed}"
        )
    results = load_results(version)
    _check_runs(version, results)
    ids = [query.query_id for query in load_queries(version.queries_path)]
    graded = version_labels(version)[: results.labels.lines]
    return Recorded(version, results, ids, qrels(graded))


def _check_runs(version: Version, results: Results) -> None:
    """Raise IntegrityError unless runs and inputs are those that the results name: a rehearsal may be unlocked."""
    named = {version.run_path(row.cell): row.provenance.run_sha256 for row in results.cells} | {
        version.queries_path: results.digests["queries.yaml"],
        version.corpus_path: results.digests["corpus.jsonl"],
    }
    for path, then in named.items():
        if file_sha256(path) != then:
            raise IntegrityError(
                f"{path} is not what {version.record / 'results.json'} was scored from. Restore both from git."
            )


def check_encoders(results: Results, backend: Backend) -> None:
    """Check that the catalogue still means the models that the record was made with; an InputError if not."""
    for row in results.cells:
        cell, then = parse_cell(row.cell), row.provenance.encoder
        if isinstance(cell, BM25Cell) or then is None:
            continue
        spec = reranker(cell.model) if isinstance(cell, CrossCell) else backend.encoder(cell.encoder).spec
        now = spec.provenance
        moved = sorted(name for name in now if name in then and then[name] != now[name])
        if moved:
            raise InputError(
                f"{row.cell}: the catalogue's {moved[0]} of {spec.name} is {now[moved[0]]!r} today and was "
                f"{then[moved[0]]!r} when the record was made: that is not a replay. Use the release that made it."
            )


def documents(version: Version) -> Sequence[Document]:
    """The version's documents, from the archive, else from the corpus that comes with this tool; nothing is written."""
    found = archived_documents(version)
    if found is not None:
        return found
    why = "Sources drift, so nothing is read in its place."
    if (embedded := version.embedded_corpus) is not None:
        try:
            return listed_documents(version, embedded)
        except InputError:
            why = f"{embedded} does not hold the version's documents either."
    raise InputError(
        f"{version.name} can be scored again and not embedded again: {archive_fault(version)}. {why} Put a sound copy "
        "of the archive there and run the command again."
    )
