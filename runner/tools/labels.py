"""What `labels` does to a version: import answers, export pairs for a second reading, measure agreement."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runner.base.errors import InputError
from runner.base.progress import say
from runner.decide.judging import agreement
from runner.eval_set.asked import asked_ids
from runner.eval_set.labels import append_labels, closed, load_labels, scored, version_labels
from runner.eval_set.lock import verify_version
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.runs import read_run
from runner.eval_set.version import Version, alone, load_queries
from runner.judge.answers import Importer
from runner.judge.carried_labels import carry_labels
from runner.report.sentences import agreement_lines


def import_files(
    version: Version,
    paths: Sequence[Path],
    *,
    judge: str,
    model: str | None,
    judged_on: str,
) -> int:
    """Return how many labels the files added, each file reported on stderr; `model` is None if a person judged."""
    added = 0
    with open_for_labels(version):
        importer = Importer(version, by_people=model is None)
        for path in paths:
            done = importer.take_file(path, judge=judge, model=model or "", judged_on=judged_on)
            added += done.added
            say(
                f"{path}: {done.added} labels added"
                + (f", {done.known} known already or asked twice" if done.known else "")
            )
    return added


def withdraw_judge(version: Version, judge: str, *, reason: str, today: str) -> int:
    """Return how many labels of a judge are void now: a row for each is appended, and nothing is deleted.

    InputError for a judge without labels, and once the version is decided.
    """
    with open_for_labels(version):
        labels = load_labels(version.labels_path)
        own = [label for label in labels if label.judge == judge]
        if not own:
            judges = sorted({label.judge for label in labels})
            raise InputError(f"{version.name} has no labels of {judge!r}. Judges: {', '.join(judges) or 'none yet'}.")
        # Append-only: a row of the same key voids the one before it.
        voided = {"void": True, "reason": reason, "judged_on": today}
        append_labels(version.labels_path, [label.model_copy(update=voided) for label in own])
    return len(own)


def agreement_of(version: Version) -> tuple[dict[str, object], list[str]]:
    """Return how far the version's judges agree, as data and as lines; an InputError if it has no labels."""
    verify_version(version)
    labels = version_labels(version)
    if not labels:
        raise InputError(f"{version.name} has no labels yet. Judge its batches, import the answers, and ask again.")
    plan = version.plan()
    queries = load_queries(version.queries_path)
    query_ids = asked_ids(queries)
    cells = [cell for cell in plan.cells if version.run_path(cell).exists()]
    panel = agreement(
        labels, {cell: read_run(version.run_path(cell), cell, query_ids) for cell in cells}, queries, plan
    )
    pairs = len(scored(labels))
    lines = [f"{version.name}: {len(labels)} labels", *agreement_lines(panel, pairs, plan)]
    return {"pairs": pairs, **panel.model_dump()}, lines


@contextmanager
def open_for_labels(version: Version) -> Iterator[None]:
    """Hold the version alone while labels are added to it; an InputError says why they may not."""
    with alone(version):
        verify_version(version)
        if reason := closed(version):
            raise InputError(reason)
        if not version.preregistration_path.exists():
            raise InputError(f"{version.name} has no preregistration yet, so nothing of it was given to a judge.")
        verified_preregistration(version)
        if said := carry_labels(version).sentence:  # of a run that was killed between the two
            say(said)
        yield
