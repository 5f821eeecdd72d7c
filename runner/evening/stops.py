"""Where an evaluation stands, and whose turn it is: the steps that are done, what is in doubt, what comes next."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import InputNeeded
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.records import PERSON
from runner.decide.decide import decision_sentence, needs_choice
from runner.eval_set.batches import Pair, batch_files, read_batch
from runner.eval_set.corpus import archive_path
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.labels import label_prefix, version_labels
from runner.eval_set.lock import verify_version
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, is_trial, load_corpus, load_decision, load_queries, load_results
from runner.judge.models.estimate import pooled_pairs
from runner.judge.prep_labels import judging_stop
from runner.judge.second_reading import judges_of, second_reading_stop
from runner.queries.kinds import WANTED_HAND
from runner.queries.reading_pack import queries_stop
from runner.report import sentences
from runner.retrieve.pool import unjudged

FREEZES = (
    "a rehearsal freezes queries, judge's instructions and both plans of {}, the production plan's cells and rule too; "
    "a trial (--try) freezes nothing."
)
"""What an operator should know before a rehearsal's pairs are handed out."""

MOST_NAMED = 5
"""Queries that a note names; of more, the number is enough."""


def steps(version: Version) -> list[str]:
    """What is done of an evaluation, a line per step."""
    done = []
    if version.corpus_path.exists():
        header, _ = load_corpus(version.corpus_path)
        done.append(f"{header.n_documents:,} documents sampled, in {display(version.folder)}")
    queries = len(load_queries(version.queries_path)) if version.queries_path.exists() else 0
    if queries:
        done.append(f"{queries} queries")
    plan = _plan(version)
    if plan is None:
        return done
    if made := _made(version, plan):
        done.append(f"{len(made)} of {len(plan.cells)} cells embedded and searched")
    if labels := version_labels(version):
        judged = judges_of(labels)
        twice = sum(len(judges) > 1 for judges in judged.values())
        models = {label.model for label in labels}
        by = " by one language model" if len(models) == 1 and "" not in models else ""
        covered = len({query_id for query_id, _ in judged})
        of = f" of {covered} of {queries} queries" if covered < queries else ""
        done.append(f"{len(judged):,} pairs{of} judged{by}, {twice:,} of them by two judges")
    return done


def doubts(version: Version) -> list[str]:
    """What figures will not say: what a rehearsal freezes, a small sample, queries without document, one reading."""
    found = []
    plan = _plan(version)
    if version.rehearsal and not _is_tried(version) and not version.preregistration_path.exists():
        found.append(FREEZES.format(version.number_name))
    if plan is not None and version.corpus_path.exists():
        header, _ = load_corpus(version.corpus_path)
        if header.n_documents < plan.sample.size and not version.source.corpus:
            found.append(
                f"{header.n_documents:,} documents, where the plan asks for {plan.sample.size:,}: among few documents "
                "every cell scores higher than among all of them."
            )
        if version.queries_path.exists():
            found += missing_documents(version)
    if version.queries_path.exists() and not version.preregistration_path.exists():
        own = sum(query.origin == PERSON for query in load_queries(version.queries_path))
        if own < WANTED_HAND:
            found.append(
                f"{own} queries are a person's own, and {WANTED_HAND} are wanted: what a model writes is near to the "
                "words of its document."
            )
    labels = version_labels(version)
    if labels and all(len(judges) < 2 for judges in judges_of(labels).values()):
        way = f"{DRIVER} labels double {version.flags}"
        if files := _unread(version, labels):
            way = f"{DRIVER} labels page {version.flags} {shlex.join(map(str, files))}, or by any other way, and import"
        found.append(
            "nobody has read a pair a second time, so nothing is known of the judge's errors. Grades are final with "
            f"the decision; before it: {way}"
        )
    return found


def missing_documents(version: Version) -> list[str]:
    """A note on the queries whose source document is not in the sample and for which nothing was graded above 0."""
    queries, documents = load_queries(version.queries_path), {row.doc_id for row in load_corpus(version.corpus_path)[1]}
    answered = {label.query_id for label in version_labels(version) if label.grade > 0}
    gone = [
        query.query_id
        for query in queries
        if query.source_document and query.source_document not in documents and query.query_id not in answered
    ]
    if not gone:
        return []
    named = ", ".join(gone[:MOST_NAMED]) + (", ..." if len(gone) > MOST_NAMED else "")
    return [
        f"of {len(queries)} queries, {len(gone)} came from a document that is not in the sample ({named}): perhaps "
        "nothing here answers them."
    ]


def counting(version: Version) -> str:
    """What a judge should know of the grades that are asked for."""
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


def choice_stop(version: Version, results: Results) -> InputNeeded:
    """The operator's turn to choose."""
    choose = f"{DRIVER} choose {version.viewed}"
    names = results.confirmed or results.candidates
    kind = "confirmed" if results.confirmed else "candidate"
    count = f"{len(names)} {kind}{'s' if len(names) > 1 and kind == 'candidate' else ''}"
    return InputNeeded(
        f"choose a cell: {count} ({'; '.join(names)}), or the baseline {results.plan.baseline}",
        [
            f"Read the page: {DRIVER} view {version.viewed}\n{version.record / 'results.html'}",
            f"Choose, one of:\n{choose} 'CELL' --reason 'WHY' --by NAME\n"
            f"{choose} recommended      now {results.outcome.recommended}, expected to lose least",
        ],
    )


def next_step(version: Version, title: str = "your turn (this is not an error)") -> InputNeeded:
    """Where the version stands and what to do now, as every stop says it; nothing is written."""
    verify_version(version)
    if (version.record / "decision.json").exists() and (version.record / LOCK_NAME).exists():
        decision = load_decision(version)
        again = [f"To decide anew: {DRIVER} version {version.origin.flags}"]
        if decision.kind != "policy":
            again.insert(0, f"Read the page: {DRIVER} view {version.viewed}")
        done = [*steps(version), "decided and locked"]
        return InputNeeded(decision_sentence(decision), again).at(version.name, done, [], title="decided")
    if version.preregistration_path.exists():
        verified_preregistration(version)
    return outstanding(version).at(version.name, steps(version), doubts(version), title)


def outstanding(version: Version) -> InputNeeded:
    """Return what comes next of a version that is not decided, and the ways to bring it; nothing is written."""
    run, plan = f"{DRIVER} run {version.viewed}", _plan(version)
    if version.source.policy == "external":
        return InputNeeded("a collection is compared and never decided", [run])
    if version.source.policy == "baseline" and plan is None:
        adopt = f"{DRIVER} choose {version.flags} baseline --by NAME"
        return InputNeeded("the baseline is to be adopted: the source has weak structure", [adopt])
    if not version.corpus_path.exists():
        if version.tried_from and version.tried_from.corpus_path.exists():
            return InputNeeded("a trial to begin, with the version's sample and queries", [run])
        ways = f"Give documents, one of:\n{run} --corpus-path FOLDER\n{run} --live      from the publisher"
        return InputNeeded("documents to sample", [ways])
    if not version.queries_path.exists():
        return queries_stop(version, run)
    if (count := len(load_queries(version.queries_path))) < MIN_QUERIES:
        return queries_stop(version, run, count)
    if plan is None:
        return InputNeeded("cells to embed and search", [run])
    if absent := len(plan.cells) - len(_made(version, plan)):
        cells = f"{absent} of {len(plan.cells)} cells to embed and search"
        if version.embedded_corpus or archive_path(version).exists():
            return InputNeeded(cells, [run])
        fetch = f"{DRIVER} fetch {version.origin.flags} --again {display(version.corpus_path)} --to FOLDER"
        return InputNeeded(
            f"{cells}; the documents are not on this machine",
            [
                f"Get those that the manifest names, unless you have a folder with them:\n{fetch}",
                f"{run} --corpus-path FOLDER",
            ],
        )
    pooled = pooled_pairs(version, plan) or []
    labels = version_labels(version)
    if missing := unjudged(pooled, labels):
        if not (batches := _batches_of(version, set(missing))):
            return InputNeeded(
                f"{len(missing):,} of {len(pooled):,} pairs to judge; their files are to be written", [run]
            )
        stop = judging_stop(version, len(pooled), missing, batches, run)
        stop.notes = (counting(version),)
        return stop
    if files := _unread(version, labels):
        return second_reading_stop(version, files, run)
    if version.results_path.exists():
        results, now = load_results(version), label_prefix(version.labels_path)
        if (results.labels.lines, results.labels.sha256) == (now.lines, now.sha256):
            if needs_choice(results):
                return choice_stop(version, results)
            if results.outcome.tier == "no decision":
                return _no_decision(version, results)
    return InputNeeded("everything is there: scores and verdict", [run])


def _no_decision(version: Version, results: Results) -> InputNeeded:
    """What a version with all grades waits for whose results allow no decision."""
    # Without its first words, which are also those of a line that determiners search for.
    said = sentences.found(results).removeprefix("No decision: ")
    page = f"Read the page: {DRIVER} view {version.viewed}"
    return InputNeeded(said, [page, sentences.next_step(results)])


def _plan(version: Version) -> Plan | None:
    return version.plan() if version.plan_path(rehearsal=version.rehearsal).exists() else None


def _made(version: Version, plan: Plan) -> list[str]:
    return [cell for cell in plan.cells if version.cell_path(cell).exists() and version.run_path(cell).exists()]


def _batches_of(version: Version, pairs: set[Pair]) -> list[Path]:
    files = batch_files(version.judging)
    return [path for path in files if any((row.query_id, row.doc_id) in pairs for row in read_batch(path))]


def _unread(version: Version, labels: Sequence[Label]) -> list[Path]:
    """The files of second readings that still wait for an answer."""
    judges = judges_of(labels)
    return [
        path
        for path in batch_files(version.judging, "double")
        if any(len(judges[row.query_id, row.doc_id]) < 2 for row in read_batch(path))
    ]


def _is_tried(version: Version) -> bool:
    return is_trial(version.folder.parent, version.source.name)
