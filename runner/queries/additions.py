"""`queries add`: puts reviewed queries into the version's file, as long as nothing is frozen."""

from collections.abc import Collection, Sequence
from pathlib import Path

from runner.base.csv_files import Faults
from runner.base.errors import InputError
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.eval_set.asked import asked
from runner.eval_set.given import document_named
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.version import Version, load_corpus
from runner.queries.checks import named, repeats, stood_before, unasked
from runner.queries.query_file import append_queries, count_line, counted, fresh_ids, is_table, read_queries


def add_queries(version: Version, path: Path) -> str:
    """Return what was added, all or none, and how many queries there are now; the version's own texts are passed over.

    An InputError once the version's queries are frozen, for queries that say what another one says or chose the cell
    that is confirmed, and, once a sample is drawn, for those whose document is not in it.
    """
    refuse_frozen(version)
    own = version.queries_path
    if own.exists() and path.exists() and own.samefile(path):
        raise InputError(f"{path} is the version's own file. Give one with further queries.")
    given = read_queries(path)
    if not given:
        raise InputError(f"{path} has no queries. Write some in the form of queries.yaml.")
    earlier = read_queries(own) if own.exists() else []
    if not (fresh := unasked(given, earlier)):
        return f"{path}: already there: nothing added. {own} has {count_line(earlier)}"
    faults = Faults()
    if version.corpus_path.exists():
        fresh = with_ids(fresh, {row.doc_id for row in load_corpus(version.corpus_path)[1]}, str(path), faults)
    # Errors that the new file brings; those of the version's own file are the business of `queries check`.
    brought = [named(row, path) for row in fresh]
    new = {one.id for one in asked(brought)}
    for finding in (*repeats([*earlier, *brought]), *stood_before(version, brought)):
        if finding.is_error and new & set(finding.queries):
            faults.add(finding.message)
    faults.stop(
        f"Nothing was added. Mend {display(path)}: each query asks something of its own, and a `document` is one of "
        f"{display(version.corpus_path)}, or is left empty."
    )
    # Ids of drafts are their own, and the version counts on; those of a table may stand in grades too, and are kept.
    ids, taken = [row.id for row in fresh], {row.id for row in earlier}
    if not is_table(path) or taken.intersection(ids):
        ids = fresh_ids("q", [row.id for row in earlier], len(fresh))
    added = [row.model_copy(update={"id": query_id}) for query_id, row in zip(ids, fresh, strict=True)]
    append_queries(own, added, version.number_name)
    lacking = MIN_QUERIES - len(earlier) - len(added)
    more = f"; {lacking} more {'is' if lacking == 1 else 'are'} needed" if lacking > 0 else ""
    there = f", {len(given) - len(fresh)} there already" if len(fresh) < len(given) else ""
    span = ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"
    done = f"{counted(len(added), 'query', 'queries')} added as {span}{there}"
    return f"{path}: {done}. {own} has {count_line([*earlier, *added])}{more}"


def with_ids(rows: Sequence[QueryRow], sample: Collection[str], where: str, faults: Faults) -> list[QueryRow]:
    """Return rows with their documents named by id; one whose document was not sampled stays, and is a fault."""
    by_id = []
    for row in rows:
        doc_id = row.source_document
        with faults.of_row():
            doc_id = doc_id and document_named(doc_id, sample, f"{where}: {row.id}")
        by_id.append(row.model_copy(update={"source_document": doc_id}))
    return by_id


def refuse_frozen(version: Version) -> None:
    """Raise InputError from the preregistration on: queries may no longer change."""
    labelled = version.labels_path.exists() and version.labels_path.stat().st_size > 0
    if version.preregistration_path.exists() or (version.folder / "decision.json").exists() or labelled:
        raise InputError(
            f"The queries of {version.number_name} are frozen: pairs of it are with a judge, or "
            f"judged. Further queries belong in the next version: {DRIVER} version {version.flags}"
        )
