"""What is frozen before the first pair leaves for a judge, and compared ever after."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from runner.base.canonical import file_sha256, json_bytes, read_json, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.schema import checked
from runner.eval_set.asked import asked
from runner.eval_set.door import held
from runner.eval_set.history import earlier, with_results
from runner.eval_set.plan import MIN_QUERIES, plan_digest, read_plan
from runner.eval_set.shapes.plan import Preregistration, Sample
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.version import Version, load_corpus, load_decision, load_queries, load_results


def preregistration(version: Version) -> Preregistration:
    """Return what is to be frozen, from the files as they are now; both plans must load and queries must suffice."""
    if (count := len(load_queries(version.queries_path))) < MIN_QUERIES:
        raise InputError(
            f"{version.queries_path}: criterion 1: {count} queries; at least {MIN_QUERIES} are needed. Add queries and "
            "run again."
        )
    plan = version.plan(rehearsal=False)
    check_sample(version)
    check_cited(version)
    # A rehearsal is frozen with the record, since both are judged by the same labels.
    rehearsed = version.plan(rehearsal=True) if version.plan_path(rehearsal=True).exists() else None
    return Preregistration(
        schema_version=1,
        source=version.source.name,
        version=version.number,
        queries_sha256=file_sha256(version.queries_path),
        corpus_sha256=file_sha256(version.corpus_path),
        judge_prompt_sha256=file_sha256(version.judge_path),
        production=plan_digest(plan),
        rehearsal=plan_digest(rehearsed) if rehearsed else None,
    )


def check_cited(version: Version) -> None:
    """Raise InputError unless plans say of the version before what it decided: its incumbent, or a confirmed cell.

    A plan that confirms cites the locked table that chose its cell, and asks no query of it.

    The record of the version that opened.json names is verified by whoever reads it; here the plan is held to it.
    """
    for rehearsal in (False, True):
        view = replace(version, rehearsal=rehearsal)
        path = view.plan_path(rehearsal=rehearsal)
        plan, before = view.plan() if path.exists() else None, earlier(view)
        if plan is not None and plan.incumbent:
            decided = before is not None and (before.record / "decision.json").exists()
            chosen = load_decision(before).chosen.cell if decided and before else "nothing"
            if chosen != plan.incumbent:
                raise InputError(
                    f"{path}: incumbent: the version that this one was opened from chose {chosen}, not "
                    f"{plan.incumbent}. Write that, or leave it out if that is the baseline."
                )
        if plan is None or (confirms := plan.confirms) is None:
            continue
        if before is None or before.number != confirms.version or not before.results_path.exists():
            raise InputError(
                f"{path}: confirms: v{confirms.version} is not the decided version that it was opened from."
            )
        chosen = load_decision(before).chosen.cell
        if (chosen, file_sha256(before.results_path)) != (confirms.cell, confirms.results_sha256):
            raise InputError(f"{path}: confirms is not what {before.name} decided: it chose {chosen}. Open it anew.")
    if again := asked_again(version, load_queries(version.queries_path)):
        raise InputError(f"{version.queries_path}: {asked_before(again)}")


def asked_again(version: Version, queries: Iterable[QueryRow]) -> list[str]:
    """Return the wordings that stood in the version whose cell a plan confirms, or in another that tested the cell; []
    if none confirms.
    """
    paths = [version.plan_path(rehearsal=rehearsal) for rehearsal in (False, True)]
    cells = {plan.confirms.cell for path in paths if path.exists() and (plan := read_plan(path)).confirms}
    before = earlier(version) if cells else None
    if before is None:
        return []
    tested = (view for view in with_results(version) if any(row.cell in cells for row in load_results(view).cells))
    known = {one.text for each in (before, *tested) for one in asked(load_queries(each.queries_path))}
    return [one.id for one in asked(queries) if one.text in known]


def asked_before(again: Sequence[str]) -> str:
    """Return what is said of wordings that were asked again, the first five of them by name."""
    named = ", ".join(again[:5]) + (", ..." if len(again) > 5 else "")
    return f"{named} stood in a version that tested the cell. A confirm version asks new queries: write others."


def check_sample(version: Version) -> None:
    """Raise InputError, which says how they differ, unless the sample is the one that the plan asks for."""
    header, _ = load_corpus(version.corpus_path)
    wanted = version.plan(rehearsal=False).sample
    if wanted != header.sample:
        raise InputError(
            f"{version.plan_path(rehearsal=False)} asks for a sample of {_told(wanted)}, {version.corpus_path} is one "
            f"of {_told(header.sample)}. Put the plan back, or delete corpus.jsonl and run with --corpus-path to draw "
            "again."
        )


def _told(sample: Sample) -> str:
    options = f", {', '.join(sorted(sample.told))}" if sample.told else ""
    return f"{sample.size} (seed {sample.seed}{options})"


def preregister(version: Version) -> Preregistration:
    """Write the version's preregistration if it was not yet, else verify it against the files; return it.

    Cells that a plan gained since are allowed (they are exploratory); any other change is an IntegrityError.
    """
    path = version.preregistration_path
    frozen = check_preregistration(version)
    if not path.exists():
        write_atomic(path, json_bytes(frozen.model_dump()))
    return frozen


def check_preregistration(version: Version) -> Preregistration:
    """Return what `preregister` would return, nothing written; every error that it can meet is raised here."""
    if version.preregistration_path.exists():
        return verified_preregistration(version)
    # Whoever has seen grades could choose a rule that fits them. A batch on its way counts too: its answers may exist
    # where nobody here can see them.
    labelled = version.labels_path.exists() and version.labels_path.stat().st_size > 0
    if labelled or any(version.judging.glob("batch-*.jsonl")):
        raise IntegrityError(
            f"{version.preregistration_path} is missing, though pairs of {version.name} are with a judge or judged "
            "already. Restore it from git or a backup: what it froze cannot be frozen a second time."
        )
    return preregistration(version)


def verified_preregistration(version: Version) -> Preregistration:
    """Return the version's preregistration, held against the files as they are now."""
    path = version.preregistration_path
    frozen = checked(Preregistration, read_json(held(path)), path)
    if changed := _changes(frozen, version):
        raise IntegrityError(
            f"{path} froze {version.name}, and since then {'; '.join(changed)}. "
            "Restore the files from git or a backup, or open the next version: queries, corpus, prompt, rule and "
            "judges never change."
        )
    return frozen


def _changes(frozen: Preregistration, version: Version) -> list[str]:
    """Return what the files say otherwise than the preregistration; plans are read without their criteria."""
    # Digests of the shared files first, then each plan field by field, so that the message says what changed.
    files = (
        (version.queries_path, frozen.queries_sha256),
        (version.corpus_path, frozen.corpus_sha256),
        (version.judge_path, frozen.judge_prompt_sha256),
    )
    changed = []
    for path, before in files:
        if not path.exists():
            changed.append(f"{path.name} is gone")
        elif (present := file_sha256(path)) != before:
            changed.append(f"{path.name} changed (frozen {before[:12]}, now {present[:12]})")
    for name, plan in (("production", frozen.production), ("rehearsal", frozen.rehearsal)):
        path = version.plan_path(rehearsal=name == "rehearsal")
        if plan is None:
            continue
        if not path.exists():
            changed.append(f"the {name} plan is gone")
            continue
        now = plan_digest(read_plan(path))
        if plan.rule_sha256 != now.rule_sha256:
            changed.append(f"the rule or the judges of the {name} plan changed")
        if plan.baseline != now.baseline:
            changed.append(f"the baseline of the {name} plan changed (frozen {plan.baseline}, now {now.baseline})")
        # Cells that a plan gained are exploratory; only one that went changes the tested family.
        if gone := [cell for cell in plan.cells if cell not in now.cells]:
            changed.append(f"the {name} plan lost {', '.join(gone)}")
    return changed


def registered_cells(frozen: Preregistration, *, rehearsal: bool) -> frozenset[str]:
    """Return the cells of the tested family; others are exploratory."""
    plan = frozen.rehearsal if rehearsal else frozen.production
    return frozenset(plan.cells if plan else ())
