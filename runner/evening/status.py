"""Where an evaluation stands: its steps from documents to lock, which `run` moves, `next` and `plan` print.

A plan's last line is what determiners search for: exactly "decision recorded", or "undecided: ...". The second never
contains the words of the first.
"""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import yaml

from runner.base.csv_files import Faults
from runner.base.errors import InputError, InputNeeded, IntegrityError
from runner.base.given_files import display
from runner.base.http_client import plain_address
from runner.base.places import DRIVER
from runner.base.records import PERSON, WITHOUT_VECTORS, parse_cell
from runner.base.sent_keys import is_agreed
from runner.base.steps import Step
from runner.decide.decide import decision_sentence, needs_choice
from runner.decide.locked_gains import new_plan_text
from runner.decide.policy import HARD_ABOVE
from runner.decide.roster import version_in_force
from runner.decide.sample_size import shown_by, to_prove
from runner.eval_set.catalog import ENCODERS, SourceSpec
from runner.eval_set.corpus import archive_path
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.history import abandoned, versions_of
from runner.eval_set.labels import label_prefix, version_labels
from runner.eval_set.lock import verify_version
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.shapes.encoder import EncoderSpec
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, is_trial, load_corpus, load_decision, load_queries, load_results
from runner.evening.costs import Asked, costs, current
from runner.judge.models.estimate import pooled_pairs
from runner.judge.prep_labels import double_first, judging_step, left_to_judge, waiting_files
from runner.judge.second_reading import judges_of, second_reading_step, unread_doubles, waits_for_nobody
from runner.queries.additions import with_ids
from runner.queries.kinds import WANTED_HAND
from runner.queries.reading_pack import queries_step
from runner.report import sentences
from runner.retrieve.pool import unjudged

RECORDED = "decision recorded"
NOT_LOCKED = "what was chosen is not locked yet; `run` locks it"
STEPS = ("documents", "queries", "cells", "labels", "second reading", "verdict", "choice", "lock")
"""The steps in their order."""

FREEZES = (
    "a rehearsal freezes queries, judge's instructions and both plans of {}, the production plan's cells and rule too; "
    "a trial (--try) freezes nothing."
)
"""What an operator should know before a rehearsal's pairs are handed out."""


def status(version: Version, again: str = "") -> list[Step]:
    """Return what is done, the one step that is open with the ways to bring it, and those that wait for it.

    `again` is the command that goes on, by default `run`. Nothing is written. The caller has verified what is locked.
    """
    plan = _plan(version)
    made = current(version, plan)[0] if plan is not None else []
    done = list(_done(version, plan, len(made)))
    if (version.record / "decision.json").exists() and (version.record / LOCK_NAME).exists():
        return [*done, Step("lock", "done", "decided and locked")]
    step = _open(version, plan, len(made), again or f"{DRIVER} run {version.viewed}")
    return [*done, step, *(Step(name, "blocked", "") for name in STEPS[STEPS.index(step.name) + 1 :])]


def stop_at(
    version: Version, step: Step | None = None, again: str = "", title: str = "your turn (this is not an error)"
) -> InputNeeded:
    """Return the stop that a step is, by default the open one: under what is done, with what one should know first."""
    steps, notes = status(version, again), doubts(version)
    step = step or next(step for step in steps if step.state == "open")
    if step.name == "labels":
        notes.append(counting(version))
    done = [each.say for each in steps if each.state == "done"]
    return InputNeeded(step.say, step.ways, head=f"{version.name}: {title}", done=done, notes=notes)


def next_step(version: Version, title: str = "your turn (this is not an error)") -> InputNeeded:
    """Return where the version stands and what to do now, as every stop says it; nothing is written."""
    verify_version(version)
    is_locked = (version.record / LOCK_NAME).exists()  # then its lock holds what was frozen
    if version.preregistration_path.exists() and not is_locked:
        verified_preregistration(version)
    steps = status(version)
    if steps[-1].state == "done":
        decision = load_decision(version)
        again = [f"To decide anew: {DRIVER} version {version.origin.flags}"]
        if decision.kind != "policy":
            again.insert(0, f"Read the page: {DRIVER} view {version.viewed}")
        done = [step.say for step in steps]
        return InputNeeded(decision_sentence(decision), again, head=f"{version.name}: decided", done=done)
    return stop_at(version, title=title)


def describe(version: Version, corpus_path: Path | None = None, asked: Asked | None = None) -> tuple[list[str], bool]:
    """Return what a plan prints, and whether a decision is recorded and locked: this version's, or one in force.

    `asked` says whose prices count. Raises BudgetError for a damaged ledger, and IntegrityError if a frozen file
    changed and no earlier decision is in force.
    """
    in_force = None if version.rehearsal else version_in_force(version)
    is_settled = in_force is not None and in_force.number == version.number  # then its lock holds what was frozen
    try:
        if version.preregistration_path.exists() and not is_settled:
            verified_preregistration(version)
        lines, missing = _described(version, corpus_path, asked or Asked())
    except (InputError, IntegrityError) as error:
        if in_force is None or is_settled:
            raise
        lines, missing = [version.name], str(error)  # nothing in an open version unsettles a decision
    # An abandoned version's reason is left out: it might be what determiners search for.
    given_up = [(each, row) for each in versions_of(version) if (row := abandoned(each)) is not None]
    lines += [
        f"v{each.number} abandoned on {row.abandoned_on}: {each.folder / 'abandoned.json'}" for each, row in given_up
    ]
    if missing and in_force is not None:
        lines += [f"{version.name} is open: {missing}", f"in force: {decision_sentence(load_decision(in_force))}"]
        missing = ""
    if not missing:
        return [*lines, RECORDED], True
    if version.source.policy != "external" and not version.rehearsal:
        until = f"for at most {HARD_ABOVE:,} documents (bulk-gate {version.flags} N)"
        lines.append(f"meanwhile: the baseline {version.source.baseline}, {until}")
    return [*lines, f"undecided: {missing}"], False


def _done(version: Version, plan: Plan | None, n_made: int) -> Iterator[Step]:
    if version.corpus_path.exists():
        header, _ = load_corpus(version.corpus_path)
        yield Step("documents", "done", f"{header.n_documents:,} documents sampled, in {display(version.folder)}")
    n_queries = len(load_queries(version.queries_path)) if version.queries_path.exists() else 0
    if n_queries:
        yield Step("queries", "done", f"{n_queries} queries")
    if plan is None:
        return
    if n_made:
        yield Step("cells", "done", f"{n_made} of {len(plan.cells)} cells embedded and searched")
    if labels := version_labels(version):
        judged = judges_of(labels)
        twice = sum(len(judges) > 1 for judges in judged.values())
        models = {label.model for label in labels}
        by = " by one language model" if len(models) == 1 and "" not in models else ""
        covered = len({query_id for query_id, _ in judged})
        of = f" of {covered} of {n_queries} queries" if covered < n_queries else ""
        yield Step("labels", "done", f"{len(judged):,} pairs{of} judged{by}, {twice:,} of them by two judges")


def _open(version: Version, plan: Plan | None, n_made: int, run: str) -> Step:
    """Return what comes next of a version that is not decided, and the ways to bring it."""
    # Sources that are never evaluated: collections, and those whose baseline is adopted by policy.
    if version.source.policy == "external":
        return Step("verdict", "open", "a collection is compared and never decided", (run,))
    if version.source.policy == "baseline" and plan is None:
        adopt = f"{DRIVER} choose {version.flags} baseline --by NAME"
        return Step("choice", "open", "the baseline is to be adopted: the source has weak structure", (adopt,))
    # Documents, then queries: both a person brings, but for a trial, which takes the version's own.
    if not version.corpus_path.exists():
        if version.tried_from and version.tried_from.corpus_path.exists():
            return Step("documents", "open", "a trial to begin, with the version's sample and queries", (run,))
        places = "a folder, a ZIP or the substrate's database"
        give = f"Give documents ({places}), one of:\n{run} --corpus-path FOLDER"
        give += f"\n{run} --live      from the publisher" if version.source.fields is None else ""
        return Step("documents", "open", "documents to sample", (give,))
    n_queries = len(load_queries(version.queries_path)) if version.queries_path.exists() else None
    if n_queries is None or n_queries < MIN_QUERIES:
        return queries_step(version, run, n_queries)
    if plan is None:
        return Step("cells", "open", "cells to embed and search", (run,))
    # Cells need the text of the documents, which is not in git.
    if absent := len(plan.cells) - n_made:
        cells = f"{absent} of {len(plan.cells)} cells to embed and search"
        if version.embedded_corpus or archive_path(version).exists():
            return Step("cells", "open", cells, (run,))
        fetch = f"{DRIVER} fetch {version.origin.flags} --again {display(version.corpus_path)} --to FOLDER"
        ways = [f"{run} --corpus-path FOLDER"]
        if version.source.fields is None:
            ways.insert(0, f"Get those that the manifest names, unless you have a folder with them:\n{fetch}")
        return Step("cells", "open", f"{cells}; the documents are not on this machine", tuple(ways))
    # The whole pool is judged once before anything is read twice.
    pooled, labels = pooled_pairs(version, plan) or [], version_labels(version)
    if missing := unjudged(pooled, labels):
        if not (batches := waiting_files(version, missing)):
            waiting = f"{left_to_judge(version, len(pooled), missing)}; their files are to be written"
            return Step("labels", "open", waiting, (run,))
        return judging_step(version, len(pooled), missing, batches, run)
    if doubles := unread_doubles(version, labels):
        return second_reading_step(version, doubles, run)
    if version.results_path.exists():
        results, now = load_results(version), label_prefix(version.labels_path)
        # Results of fewer or other grades say nothing of what is to be chosen now.
        if (results.labels.lines, results.labels.sha256) == (now.lines, now.sha256):
            if needs_choice(results):
                return choice(version, results)
            if results.outcome.tier == "no decision":
                # Without its first words, which are also those of a line that determiners search for.
                sentence = sentences.found(results).removeprefix("No decision: ")
                page = f"Read the page: {DRIVER} view {version.viewed}"
                return Step("verdict", "open", sentence, (page, sentences.next_step(results)))
    first = (double_first(version),) if waits_for_nobody(version, plan, labels) else ()
    return Step("verdict", "open", "everything is there: scores and verdict", (*first, run))


def choice(version: Version, results: Results) -> Step:
    """Return the operator's turn to choose."""
    choose = f"{DRIVER} choose {version.viewed}"
    names = results.confirmed or results.candidates
    kind = "confirmed" if results.confirmed else "candidate"
    count = f"{len(names)} {kind}{'s' if len(names) > 1 and kind == 'candidate' else ''}"
    ways = (
        f"Read the page: {DRIVER} view {version.viewed}\n{version.record / 'results.html'}",
        f"Choose, one of:\n{choose} 'CELL' --reason 'WHY' --by NAME\n"
        f"{choose} recommended      now {results.outcome.recommended}, by expected gain",
    )
    said = f"choose a cell: {count} ({'; '.join(names)}), or the baseline {results.plan.baseline}"
    return Step("choice", "open", said, ways)


def doubts(version: Version) -> list[str]:
    """Return what figures will not say: what is frozen, a small sample, queries without document, one reading."""
    notes = []
    plan = _plan(version)
    if version.rehearsal and not _is_tried(version) and not version.preregistration_path.exists():
        notes.append(FREEZES.format(version.number_name))
    first = plan.judges.first if plan is not None and plan.judges else None
    if first and not (first.by_file or version.preregistration_path.exists() or _is_tried(version)):
        notes.append(
            f"first grades are taken from people, or from {first.model}. For another model edit `judges:` in "
            f"{display(version.plan_path(rehearsal=version.rehearsal))} before the first `run`, which freezes it."
        )
    if plan is not None and version.corpus_path.exists():
        header, _ = load_corpus(version.corpus_path)
        if header.n_documents < plan.sample.size and not (version.source.corpus or version.source.fields is not None):
            notes.append(
                f"{header.n_documents:,} documents, where the plan asks for {plan.sample.size:,}: among few documents "
                "every cell scores higher than among all of them."
            )
        if version.queries_path.exists():
            notes += filter(None, [missing_documents(version)])
    if version.queries_path.exists() and not version.preregistration_path.exists():
        own = sum(query.origin == PERSON for query in load_queries(version.queries_path))
        if own < WANTED_HAND:
            notes.append(
                f"{own} queries are a person's own, and {WANTED_HAND} are wanted: what a model writes is near to the "
                "words of its document."
            )
    labels = version_labels(version)
    if labels and all(len(judges) < 2 for judges in judges_of(labels).values()):
        way = f"{DRIVER} labels double {version.flags}"
        if files := unread_doubles(version, labels):
            way = f"{DRIVER} labels page {version.flags} {shlex.join(map(str, files))}, or by any other way, and import"
        notes.append(
            "nobody has read a pair a second time, so nothing is known of the judge's errors. Grades are final with "
            f"the decision; before it: {way}"
        )
    return notes


def missing_documents(version: Version) -> str:
    """Return which queries name a source document that is not in the sample, and what to do; "" if none does."""
    documents = {row.doc_id for row in load_corpus(version.corpus_path)[1]}
    named = [query for query in load_queries(version.queries_path) if query.source_document]
    gone = []
    for query in (query for query in named if query.source_document not in documents):
        near = [row.source_document for row in with_ids([query], documents, "", Faults())]
        if near[0] not in documents:
            near = get_close_matches(query.source_document, sorted(documents), n=1, cutoff=0.9)
        gone.append(f"{query.id} ({query.source_document}{f'; is it {near[0]}?' if near else ''})")
    if not gone:
        return ""
    return (
        f"{display(version.queries_path)}: these source documents are not in the sample: {', '.join(gone)}. Name "
        f"documents of {display(version.corpus_path)}, or leave `source_document` out; once queries are frozen, "
        "in a new version."
    )


def counting(version: Version) -> str:
    """Return what a judge should know of the grades that are asked for."""
    if _is_tried(version):
        return (
            "this is a trial: nothing of it counts, and a part of the grades is enough for a provisional page "
            f"({DRIVER} run {version.viewed}, then view). To begin it anew, delete {version.folder.parent}"
        )
    name = version.number_name
    what = f"a rehearsal shares its grades with the evaluation: they count for the decision of {name}"
    said = what if version.rehearsal else f"these grades count for the decision of {name}"
    return (
        f"{said}, and can be taken back until then ({DRIVER} labels withdraw {version.flags} --judge NAME). To try "
        f"without keeping anything: {DRIVER} run {version.flags} --try"
    )


def _described(version: Version, corpus_path: Path | None, asked: Asked) -> tuple[list[str], str]:
    """Return what is known of the version by itself, and what keeps it from a decision, "" if it is recorded."""
    lines = [version.name, *_policy_lines(version.source)]
    if (version.folder / "decision.json").exists():
        decision = load_decision(replace(version, rehearsal=False))
        if decision.kind == "policy":
            lines.append(decision_sentence(decision))
            if version.rehearsal:
                return lines, "the baseline was adopted by policy, so there is nothing to rehearse"
            return lines, "" if (version.folder / LOCK_NAME).exists() else NOT_LOCKED
    plan, path = _plan(version), version.plan_path(rehearsal=version.rehearsal)
    if plan is not None:
        lines += _plan_lines(plan)
    else:
        text = new_plan_text(version, rehearsal=version.rehearsal)
        lines.append(f"plan: {path} does not exist yet; the first run writes this one:")
        lines += [f"  {line}" for line in text.splitlines()]
    lines += costs(version, plan, asked).said
    steps = status(version)
    lines += [f"done: {step.say}" for step in steps if step.name != "lock" and step.state == "done"]
    if waiting := [step.name for step in steps if step.state == "blocked"]:
        lines.append(f"then: {', '.join(waiting)}")
    if version.source.policy != "external":
        # What the queries can show: of the results once there are any, before by the plan's scatter.
        n_queries = len(load_queries(version.queries_path)) if version.queries_path.exists() else MIN_QUERIES
        rows = load_results(version).cells if version.results_path.exists() else ()
        planned = plan or Plan.model_validate(yaml.safe_load(text))
        lines += filter(None, [shown_by(planned, n_queries, rows), "" if rows else to_prove(planned, n_queries)])
    if corpus_path is not None and not corpus_path.exists():
        lines.append(f"corpus path: {display(corpus_path)}, which does not exist")
    if not (version.record / "decision.json").exists():
        return lines, next(step.say for step in steps if step.state == "open")
    if not (version.record / LOCK_NAME).exists():
        return lines, NOT_LOCKED
    lines.append(decision_sentence(load_decision(version)))
    return lines, "this is the rehearsal, which never counts" if version.rehearsal else ""


def _plan_lines(plan: Plan) -> list[str]:
    cells = [parse_cell(text) for text in plan.cells]
    encoders = sorted({cell.encoder for cell in cells if not isinstance(cell, WITHOUT_VECTORS)})
    hub = [name for name in encoders if name in ENCODERS and name not in plan.encoders and not ENCODERS[name].package]
    return [
        f"plan: {len(plan.cells)} cells, pool depth {plan.pool_depth}, baseline {plan.baseline}",
        *(f"  {cell}" for cell in plan.cells),
        f"rule: nDCG@10 up by {plan.rule.min_gain:g} or more, Recall@10 down by {plan.rule.max_recall_loss:g} at most",
        f"encoders: {', '.join(encoders)}" + (f" (from the model hub: {', '.join(hub)})" if hub else ""),
        *(f"  {name} is the plan's own: {_of_the_plan(spec)}" for name, spec in plan.encoders.items()),
    ]


def _of_the_plan(spec: EncoderSpec) -> str:
    """Return what the plan says of an encoder of its own, and how to agree to where its key is sent."""
    if not spec.key_env or is_agreed(spec.key_env, host := plain_address(spec.url, "url", "").host):
        return spec.described
    return f"{spec.described}, which needs --send-key {spec.key_env}={host} once"


def _policy_lines(source: SourceSpec) -> Iterator[str]:
    """Yield what the roster says of a source beyond that it is to be evaluated."""
    if source.policy == "baseline":
        yield (
            f"policy: weak structure, so the baseline {source.baseline} is adopted unevaluated (`choose SOURCE "
            f"baseline`); predicted best is {source.predicted_best}"
        )
    if elsewhere := source.imported:
        yield (
            f"v{elsewhere.version} was made elsewhere: {elsewhere.cell}, nDCG@10 {elsewhere.ndcg:.4f}, without "
            f"artefacts ({elsewhere.note})"
        )
    if source.reuses:
        yield f"chunker: {source.structural_chunker} is taken over from {source.reuses}, no code of its own"
    if source.weakness:
        yield f"weakness: {source.weakness}"
    if source.note:
        yield f"note: {source.note}"


def _plan(version: Version) -> Plan | None:
    return version.plan() if version.plan_path(rehearsal=version.rehearsal).exists() else None


def _is_tried(version: Version) -> bool:
    return is_trial(version.folder.parent, version.source.name)
