"""Has the plan's language models judge: the first one all missing pairs, the second one its share of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from runner.base.canonical import file_sha256, today
from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.base.progress import bars, say
from runner.base.records import Document, Span
from runner.eval_set.batches import Pair, Shown, all_rows, batch_files, make_row, rounds
from runner.eval_set.labels import first_readings, version_labels
from runner.eval_set.shapes.labels import BatchRow, Judges, JudgeSpec, Label
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version
from runner.judge.answers import Importer
from runner.judge.models.api import JudgeOptions, open_model
from runner.judge.models.client import judge_address
from runner.judge.models.judging import Judging
from runner.judge.models.prompt import asks_of, instructions, parse
from runner.judge.second_reading import export_doubles, judges_of


def named_judges(version: Version, plan: Plan) -> Judges:
    """Return the judges of the plan; an InputError says how they are named if it has none."""
    if plan.judges is not None:
        return plan.judges
    way = "that takes a new version (`version`), since this one is frozen"
    if not version.preregistration_path.exists():
        way = f"add to {version.plan_path(rehearsal=False)} and to the rehearsal's: {EXAMPLE}"
    raise InputError(f"The plan of {version.name} names no judges; {way}.")


def asked_judges(version: Version, plan: Plan) -> list[JudgeSpec]:
    """Return the judges that a service is asked for; an InputError if the plan names none, or all answer by file."""
    judges = named_judges(version, plan).each
    if not (asked := [judge for judge in judges if not judge.by_file]):
        raise InputError(
            f"The judges of {version.name} answer by file (api: files in its plan), so there is no service to ask. "
            f"{DRIVER} run {version.flags} exports the pairs; have them read, then: {DRIVER} labels import "
            f"{version.flags} --judge=NAME --model={judges[0].model} FILE ..."
        )
    return asked


def check_judges(version: Version, judges: Iterable[JudgeSpec], options: JudgeOptions) -> list[str]:
    """Return which of the judges do not answer now, in words.

    Address, price and key are looked at, and what the service says of the key. Called before anything long. Nothing is
    charged. An InputError or a BackendError says what to mend.
    """
    troubles = []
    for judge in judges:
        with open_model(judge, options, version.work) as model:
            if trouble := model.check():
                troubles.append(f"{judge.model} does not answer now: {trouble}")
    return troubles


TRIAL_QUERY = ("trial", "who pays for repairing rural bridges")
TRIAL_TEXT = "Sec. 1. The Secretary shall award grants to counties to repair rural bridges that carry school buses."


def ask_once(version: Version, judge: JudgeSpec, options: JudgeOptions) -> int:
    """Return a judge's grade of one made-up pair, asked and paid for in earnest, and kept nowhere.

    Raises as `check_judges` does, and a BackendError for a reply that is no answer.
    """
    prompt = version.judge_prompt
    document = Document("trial", TRIAL_TEXT, "Rural Bridges Act", "", "trial", "")
    row = make_row(version.number_name, file_sha256(prompt), TRIAL_QUERY, document, Shown((Span(0, len(TRIAL_TEXT)),)))
    (ask,) = asks_of([row], instructions(prompt), judge.model)
    with open_model(judge, replace(options, how="messages"), version.work) as model:
        (reply,) = model.replies([ask])
    return parse(reply, row, judge.model, today()).grade


EXAMPLE = "judges: {first: {api: anthropic, model: ID}, second: {api: anthropic, model: ID, share: 0.1}}"


def judge_missing(version: Version, plan: Plan, missing: Collection[Pair], options: JudgeOptions) -> int:
    """Have the first judge grade the exported pairs of `missing`, and planted repeats of pairs that it grades.

    Return how many rows it graded: 0 if all that is exported waits for somebody else, who was in doubt. A BackendError
    names pairs that could not be had.
    """
    judge = named_judges(version, plan).first
    # Planted repeats of what it has graded are asked about too, to see whether it repeats itself.
    labels = version_labels(version)
    mine = {label.pair for label in labels if label.judge == judge.model}
    doubted = {pair for pair, label in first_readings(labels).items() if label.doubt and label.judge == judge.model}
    rows = [row for row in all_rows(version.judging) if not row.batch.startswith("double-")]
    rounds_of = rounds(rows)
    wanted = [
        row
        for row in rows
        if (row.pair in missing and (row.pair in doubted or not row.is_fuller))
        or (row.pair in mine and rounds_of[row.batch, row.pair] > 1)
    ]
    return _judge(version, judge, wanted, rounds_of, options)


def judge_again(version: Version, plan: Plan, options: JudgeOptions) -> None:
    """Have the second judge, if the plan names one, grade its share: pairs of batches here that one judge has read."""
    judge = plan.judges.second if plan.judges else None
    if judge is None or not batch_files(version.judging):
        return
    labels = version_labels(version)
    export_doubles(version, labels, judge.share)
    read_by = judges_of(labels)
    rows = [row for row in all_rows(version.judging) if row.batch.startswith("double-") and len(read_by[row.pair]) < 2]
    _judge(version, judge, rows, rounds(rows), options)


def _judge(
    version: Version,
    judge: JudgeSpec,
    rows: Iterable[BatchRow],
    rounds_of: Mapping[tuple[str, Pair], int],
    options: JudgeOptions,
) -> int:
    """Have the judge grade the rows that it has not graded yet; return how many these are."""
    # Known by round or by batch: a batch may be exported anew, and an answer given by file.
    own = [label for label in version_labels(version) if label.judge == judge.model]
    known = {(label.pair, label.round, label.is_fuller) for label in own}
    answered = {(label.pair, label.batch) for label in own}
    batches: dict[str, list[BatchRow]] = {}
    for row in rows:
        is_known = (row.pair, rounds_of[row.batch, row.pair], row.is_fuller) in known
        if not is_known and (row.pair, row.batch) not in answered:
            batches.setdefault(row.batch, []).append(row)
    if not batches:
        return 0
    n_pairs = sum(map(len, batches.values()))
    say(f"{judge.model} judges {n_pairs} pairs, with planted repeats (batches: {len(batches)})")

    host = judge_address(options.url).host if options.url else ""

    def take(given: Sequence[tuple[str, Label]]) -> None:
        Importer(version, host=host).take(given)

    with open_model(judge, options, version.work) as model, bars("pairs") as bar:
        report = bar(judge.model, lambda: model.budget.spent(judge.model))
        Judging(version, batches, model, take, report=report).run()
    return n_pairs
