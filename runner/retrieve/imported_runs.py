"""Other systems' rankings: TREC run files as cells of an external collection's page."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from runner.base.canonical import file_sha256, json_bytes, refuse_special, sha256, slug, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import STDIN, display, printable
from runner.base.progress import say
from runner.base.records import IMPORTED, RUN_DEPTH, Hit, ImportedCell, Run
from runner.eval_set.asked import asked_ids
from runner.eval_set.collection import own_documents
from runner.eval_set.runs import run_bytes
from runner.eval_set.shapes.cell import CellFile, ImportedRun
from runner.eval_set.trec import TrecRun, read_trec_run
from runner.eval_set.version import Version, load_cell_file, load_corpus, load_queries
from runner.retrieve.ranking import ties, without_own

DEEPEST = 100_000
"""Hits read per query, so that RUN_DEPTH of them remain after those outside the sample are dropped."""

LONGEST_NAME = 100

METHOD = f"another system's ranking, the first {RUN_DEPTH} documents of a query, imported from a TREC run file"


def import_runs(version: Version, paths: Sequence[Path], called: Callable[[Path], str] = display) -> None:
    """Record every file as a cell `trec:TAG`, in place of an earlier one; nothing is written if one file is wrong.

    What differs from the collection is said of the file as it is `called`.
    """
    if not paths:
        return
    ground = _ground(version)
    made = [_imported(ground, path, called(path)) for path in paths]
    names = [facts.cell for _, facts in made]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"Two of the run files have the tag of {repeated[0]} (column 6). Give each a tag of its own.")
    for run, facts in made:
        _check_namesake(version, run.cell, facts)
    for run, facts in made:
        # All files were right: only now is anything written.
        write_atomic(version.run_path(run.cell), run_bytes(run))
        write_atomic(version.cell_path(run.cell), json_bytes(facts.model_dump()))


def imported_cells(version: Version) -> list[str]:
    """Return the cells imported so far, sorted; an InputError if one belongs to other documents or queries."""
    corpus, queries = file_sha256(version.corpus_path), file_sha256(version.queries_path)
    cells = []
    for path in sorted((version.record / "cells").glob(f"{slug(IMPORTED)}-*.json")):
        facts = load_cell_file(path)
        if facts.imported is None:
            continue
        if (facts.corpus_sha256, facts.queries_sha256) != (corpus, queries):
            raise InputError(f"{path} was imported for other documents or queries. Delete it and import the run again.")
        run = version.run_path(facts.cell)
        if version.cell_path(facts.cell) != path or not run.is_file() or file_sha256(run) != facts.run_sha256:
            raise IntegrityError(f"{run} is not the run that {path} names. Delete {path} and import the run again.")
        cells.append(facts.cell)
    return cells


def _check_namesake(version: Version, cell: str, made: CellFile) -> None:
    """Raise InputError if a run of another tag was imported under the same name."""
    path = version.cell_path(cell)
    if not path.exists():
        return
    known = load_cell_file(path).imported
    assert made.imported is not None
    if known is not None and known.tag != made.imported.tag:
        raise InputError(
            f"The tag {printable(made.imported.tag, 40)} makes the name {cell}, which {printable(known.tag, 40)} has "
            f"already. Give it another tag, or delete {path}."
        )


class _Ground(NamedTuple):
    """What a run is checked against; it may name as many unknown documents as `strangers` (None: any number).

    `own` are the queries whose own document is left out.
    """

    query_ids: list[str]
    documents: frozenset[str]
    strangers: int | None
    own: frozenset[str]
    queries_sha256: str
    corpus_sha256: str


def _ground(version: Version) -> _Ground:
    header, rows = load_corpus(version.corpus_path)
    # Against a whole collection every unknown document is a stranger, but for those that were set aside as empty; a
    # sample leaves most of a run's documents out.
    whole = header.n_documents == header.n_read
    return _Ground(
        query_ids=asked_ids(load_queries(version.queries_path)),
        documents=frozenset(row.doc_id for row in rows),
        strangers=len(header.quarantined) if whole else None,
        own=own_documents(version),
        queries_sha256=file_sha256(version.queries_path),
        corpus_sha256=file_sha256(version.corpus_path),
    )


def _imported(ground: _Ground, path: Path, where: str) -> tuple[Run, CellFile]:
    if str(path) == STDIN:
        raise InputError("--trec-run takes a file, not standard input: it is read twice. Save the run first.")
    refuse_special(path)  # its digest is taken in a second reading, which a pipe does not have
    read = read_trec_run(path, depth=DEEPEST)
    _check_ids(path, read, ground)
    name = slug(read.run.cell)
    if not name[:1].isalnum() or len(name) > LONGEST_NAME:
        raise InputError(
            f"{display(path)}: the tag (column 6) is {printable(read.run.cell, 40)}. Give one that begins with a "
            f"letter or digit and has at most {LONGEST_NAME} characters."
        )
    query_ids, documents = ground.query_ids, ground.documents
    # Documents outside the sample are dropped before the run is cut to its depth.
    listed = {query_id: [hit for hit in hits if hit.doc_id in documents] for query_id, hits in read.run.hits.items()}
    known = without_own(listed, ground.own)
    run = Run(str(ImportedCell(name)), {query_id: _ranked(known.get(query_id, ())) for query_id in query_ids})
    facts = ImportedRun(
        file_sha256=file_sha256(path),
        tag=read.run.cell,
        queries_missing=sum(query_id not in known for query_id in query_ids),
        queries_left_out=len(known.keys() - set(query_ids)),
        ties=sum(ties(known.get(query_id, ())) for query_id in query_ids),
    )
    contradicted, left_out = len(set(read.contradicted) & set(query_ids)), len(read.documents - documents)
    cut = sum(len(known.get(query_id, ())) > RUN_DEPTH for query_id in query_ids)
    own = sum(len(hits) < len(listed[query_id]) for query_id, hits in known.items())
    for problem in _remarks(facts, read.n_tags, contradicted, left_out, cut, own):
        say(f"{where}: {problem}")
    return run, _cell_file(ground, run, facts)


def _check_ids(path: Path, read: TrecRun, ground: _Ground) -> None:
    if not read.run.hits.keys() & set(ground.query_ids):
        raise InputError(
            f"{display(path)} answers none of the {len(ground.query_ids)} queries, {printable(ground.query_ids[0])} "
            "among them. Is it a run of this collection?"
        )
    unknown = sorted(read.documents - ground.documents)
    too_many = ground.strangers is not None and len(unknown) > ground.strangers
    if len(unknown) == len(read.documents) or too_many:
        raise InputError(
            f"{display(path)} names {len(unknown)} documents that the collection does not have, "
            f"{printable(unknown[0])} among them. Is it a run of this collection?"
        )


def _ranked(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the first RUN_DEPTH, scored by their place alone: another system's scores say nothing here."""
    deepest = min(len(hits), RUN_DEPTH)
    return tuple(Hit(hit.doc_id, float(deepest - place), hit.span) for place, hit in enumerate(hits[:deepest]))


def _remarks(facts: ImportedRun, n_tags: int, contradicted: int, left_out: int, cut: int, own: int) -> list[str]:
    """Return what was done where the run and the collection differ, in words."""
    counts = {
        f"{n_tags} tags (column 6), of which the first names the run: {printable(facts.tag, 40)}": n_tags - 1,
        f"{facts.queries_missing} queries are missing and score 0": facts.queries_missing,
        f"{facts.queries_left_out} queries are not of the judged split and were left out": facts.queries_left_out,
        f"in {contradicted} queries ranks contradict scores; scores count": contradicted,
        f"{left_out} documents are not in the sample and were left out": left_out,
        f"{cut} queries have more than {RUN_DEPTH} documents, of which the first {RUN_DEPTH} count": cut,
        f"{own} queries have themselves as a document, which was left out": own,
        f"{facts.ties} hits share their score with a neighbour; the greater document id comes first": facts.ties,
    }
    return [text for text, count in counts.items() if count]


def _cell_file(ground: _Ground, run: Run, facts: ImportedRun) -> CellFile:
    return CellFile(
        schema_version=1,
        backend=None,
        cell=run.cell,
        queries_sha256=ground.queries_sha256,
        corpus_sha256=ground.corpus_sha256,
        run_sha256=sha256(run_bytes(run)),
        chunk_run_sha256=None,
        chunks=None,
        chunkers_sha256=None,
        index_bytes=None,
        chunks_per_document=[1] * len(ground.documents),
        encoder=None,
        probe=None,
        truncation=None,
        bm25=None,
        imported=facts,
        method=METHOD,
    )
