"""`queries add`: puts reviewed queries into the version's file, as long as nothing is frozen."""

from collections import Counter
from pathlib import Path

from runner.base.errors import InputError
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.version import Version
from runner.queries.checks import FileRow, likeness_findings, refuse_errors, repeats
from runner.queries.query_file import append_queries, count_line, counted, fresh_ids, plain, read_queries
from runner.queries.wording import alike_in_words


def add_queries(version: Version, path: Path) -> str:
    """What was added, all or none, and how many queries there are now; the version's own texts are passed over.

    An InputError once the version's queries are frozen, and for queries that say what another one says.
    """
    refuse_frozen(version)
    own = version.queries_path
    if own.exists() and path.exists() and own.samefile(path):
        raise InputError(f"{path} is the version's own file. Give one with further queries.")
    given = read_queries(path)
    if not given:
        raise InputError(f"{path} has no queries. Write some in the form of queries.yaml.")
    earlier = read_queries(own) if own.exists() else []
    fresh = _not_among(earlier, given)
    if not fresh:
        return f"{path}: already there: nothing added. {own} has {count_line(earlier)}"
    ids = fresh_ids("q", [row.id for row in earlier], len(fresh))
    added = [row.model_copy(update={"id": one}) for one, row in zip(ids, fresh, strict=True)]
    _refuse_repeats(path, earlier, fresh)
    append_queries(own, added, version.number_name)
    lacking = MIN_QUERIES - len(earlier) - len(added)
    more = f"; {lacking} more {'is' if lacking == 1 else 'are'} needed" if lacking > 0 else ""
    there = f", {len(given) - len(fresh)} there already" if len(fresh) < len(given) else ""
    named = ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"
    done = f"{counted(len(added), 'query', 'queries')} added as {named}{there}"
    return f"{path}: {done}. {own} has {count_line([*earlier, *added])}{more}"


def refuse_frozen(version: Version) -> None:
    """Check that queries may still change; an InputError from the preregistration on."""
    labelled = version.labels_path.exists() and version.labels_path.stat().st_size > 0
    if version.preregistration_path.exists() or (version.folder / "decision.json").exists() or labelled:
        raise InputError(
            f"The queries of {version.number_name} are frozen: pairs of it are with a judge, or "
            "judged. Further queries belong in the next version."
        )


def _not_among(earlier: list[QueryRow], given: list[QueryRow]) -> list[QueryRow]:
    """What is given beyond what there is, by the texts; harvested ones may stand there several times."""
    left = Counter(plain(row.text) for row in earlier)
    found = []
    for row in given:
        text = plain(row.text)
        left[text] -= 1
        if left[text] < 0:
            found.append(row)
    return found


def _refuse_repeats(path: Path, earlier: list[QueryRow], fresh: list[QueryRow]) -> None:
    """Raise InputError for errors that the new file brings; those of the version's own file are `queries check`'s."""
    rows = [FileRow("the version", row) for row in earlier]
    rows += [FileRow(str(path), row.model_copy(update={"id": f"{path.name}:{row.id}"})) for row in fresh]
    findings = [*repeats(rows), *likeness_findings(rows, alike_in_words([each.row.text for each in rows]))]
    new = {each.row.id for each in rows[len(earlier) :]}
    brought = [finding for finding in findings if new & set(finding.queries)]
    refuse_errors(brought, f"Nothing of {path} was added")
