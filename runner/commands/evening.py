"""The verbs of an evening: `init`, `run`, `judge`, `choose`, `next`, `plan`, and `explore` beside it."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError, InputNeeded, NegativeVerdict
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.commands.console import (
    Parser,
    add_trial_flag,
    answer,
    answer_json,
    source_first,
    version_of,
    version_parser,
    whole_number,
)
from runner.commands.flags import (
    add_backend_flags,
    add_judge_flags,
    asked_of,
    backend_from,
    check_backend_flags,
    check_judge_flags,
    judge_options,
    with_own_encoders,
)
from runner.eval_set import catalog
from runner.eval_set.version import Version, collection_folder, newest_version, to_read

if TYPE_CHECKING:
    from runner.decide.decide import Choice
    from runner.embed.backends import Backend
    from runner.evening.session import Session
    from runner.judge.models.run_judges import JudgeOptions

_CODES = (
    "exit codes: 0 done, 1 no decision is possible, 2 your input, 3 your turn, 4 changed, 5 backend, disk or budget"
)


def run(arguments: Sequence[str]) -> int:
    """`run`: the evening up to what a person must do; of a public collection, its comparison."""
    parser = _evening_parser("run", f"Run it again after every stop: it goes on, and makes nothing twice.\n{_CODES}")
    add = parser.add_argument
    add("--live", action="store_true", help="documents from the source's live feed, where the version has none yet")
    add("--trec-run", action="append", default=[], type=Path, metavar="FILE", help="another system's run (repeatable)")
    options = _parsed(parser, arguments)
    if options.live and options.corpus_path:
        parser.error("--live fetches documents for a new version; it goes without --corpus-path")
    if catalog.source(options.source).policy == "external":
        return _compared(parser, options)
    if options.trec_run:
        parser.error("--trec-run belongs to an external collection, such as beir")
    return _evening(options, _again("run", arguments))


def judge(arguments: Sequence[str]) -> int:
    """`judge`: the evening, with the plan's language models asked for what is missing, up to the verdict."""
    epilog = f"The models are those that plan.yaml names under `judges`; keys come from the environment.\n{_CODES}"
    parser = _evening_parser("judge", epilog)
    batches = "by Message Batches: half the price, up to a day"
    parser.add_argument(
        "--batches", action="store_const", const="batches", default="messages", dest="judge", help=batches
    )
    add_judge_flags(parser)
    options = _parsed(parser, arguments)
    check_judge_flags(parser, options)
    _refuse_external(options)
    return _evening(options, _again("judge", arguments), judge=judge_options(options))


def choose(arguments: Sequence[str]) -> int:
    """`choose`: the evening, which then needs no choice: the cell is recorded and locked."""
    epilog = f"A cell, the baseline among them, or `recommended`: whichever is expected to lose least.\n{_CODES}"
    parser = _evening_parser("choose", epilog)
    parser.add_argument("cell", metavar="CELL", help="what goes to production, or 'recommended'")
    add_signature(parser, "why; not needed for 'recommended'")
    options = _parsed(parser, arguments)
    _refuse_external(options)
    return _evening(options, _again("run", _without_choice(arguments, options.cell)), choice=_choice(options))


def explore(arguments: Sequence[str]) -> int:
    """`explore`: cells of the operator's choice on the frozen set, beside the baseline."""
    parser = _evening_parser("explore", "Needs a version whose pairs were given to a judge. docs/new-version.md")
    parser.add_argument("cells", nargs="+", metavar="CELL", help="ENCODER x CHUNKER, bm25 x CHUNKER, ...")
    options = _parsed(parser, arguments)
    _refuse_external(options)
    from runner.evening.exploration import Exploration

    version, again = _version(options), _again("explore", arguments)
    with _backend(options, version) as backend:
        exploration = Exploration(version, options.corpus_path, None, again, backend, cells=options.cells)
        return _answer(exploration, as_json=options.json)


def init(arguments: Sequence[str]) -> int:
    """`init`: plans and judge's instructions, and the sample where documents are given; 0, and what comes next."""
    parser = version_parser("init", epilog="Edit plan.yaml before pairs go to a judge, if at all; then it is frozen.")
    add = parser.add_argument
    add("--corpus-path", type=Path, metavar="PATH", help="documents: a folder, a ZIP or the substrate's database")
    add("--live", action="store_true", help="documents from the source's live feed")
    size = whole_number("a number of documents, 1 or more", 1)
    add("--size", type=size, metavar="N", help="documents to sample; default the catalog's, 750 for most sources")
    options = parser.parse_args(arguments)
    _refuse_external(options)
    from runner.evening.evening import Evening
    from runner.evening.stops import next_step as following

    version = _sized(version_of(options, begins=True), options.size)
    Evening(version, options.corpus_path, live=options.live).begin()
    answer(str(following(version, "begun")))
    return 0


def _sized(version: Version, size: int | None) -> Version:
    """The version, whose new plans will sample so many documents; an InputError if a plan says otherwise."""
    if size is None:
        return version
    path = version.plan_path(rehearsal=False)
    if path.exists() and (planned := version.plan(rehearsal=False).sample.size) != size:
        raise InputError(
            f"--size {size}: {path} has a sample of {planned}. Change it there, before documents are drawn."
        )
    return replace(version, source=replace(version.source, sample_size=size))


def next_step(arguments: Sequence[str]) -> int:
    """`next`: how far a version has come and what to do now; without SOURCE, which source is next."""
    parser = version_parser(
        "next", epilog="Nothing is written, nothing is computed.", optional="without it: which source is next"
    )
    parser.add_argument("--rehearse", action="store_true", help="of the rehearsal")
    add_trial_flag(parser)
    parser.add_argument("--json", action="store_true", help="stdout is one JSON object")
    options = parser.parse_args(arguments)
    if options.source:
        _refuse_external(options)
        from runner.evening.stops import next_step as following
        from runner.report.summary import step_json

        version = to_read(version_of(options))
        stop = following(version)
        if options.json:
            answer_json(step_json(version, stop))
        else:
            answer(str(stop))
            if not options.trial and _trial_of(version).folder.exists():
                answer(f"\nA trial lies beside it: {DRIVER} next {version.flags} --try")
        return 0
    from runner.decide.roster import roster
    from runner.tools.roster import next_step as next_source

    data, lines = next_source(roster())
    if options.json:
        answer_json(data)
    else:
        answer("\n".join(lines))
    return 0


def _trial_of(version: Version) -> Version:
    from runner.evening.exploration import trial_of

    return trial_of(version)


def plan(arguments: Sequence[str]) -> int:
    """`plan`, or --dry-run: 0 if a decision is recorded, which the last line says, else 1."""
    parser = _evening_parser("plan", "Its last line is exactly `decision recorded` (exit 0), or begins `undecided: `.")
    add_judge_flags(parser, "what they would cost")
    options = _parsed(parser, arguments)
    check_judge_flags(parser, options)
    version = (
        _collection(options)
        if catalog.source(options.source).policy == "external"
        else to_read(version_of(options, begins=_begins(options)))
    )
    if version.tried_from is not None and not version.corpus_path.exists():
        say(f"no trial is begun; `run --try` begins one with plans, sample and queries of {version.number_name}:")
        version = replace(version.tried_from, rehearsal=True)
    from runner.eval_set.lock import verify_version
    from runner.evening.dry_run import describe

    verify_version(version)
    lines, recorded = describe(version, options.corpus_path, asked_of(options))
    if options.json:
        from runner.report.summary import recorded_json

        answer_json(recorded_json(version, lines, recorded=recorded))
    else:
        answer("\n".join(lines))
    return 0 if recorded else 1


def _evening_parser(verb: str, epilog: str) -> Parser:
    """The flags that all verbs of an evening have."""
    parser = version_parser(verb, epilog=epilog)
    add = parser.add_argument
    add("--corpus-path", type=Path, metavar="PATH", help="documents to sample (first run), or a collection")
    add("--rehearse", action="store_true", help="the rehearsal's plan: packaged encoders, never a decision")
    add_trial_flag(parser, "a rehearsal in a folder of its own; nothing of it counts")
    add("--json", action="store_true", help="stdout is one JSON object: docs/eval-architecture.md lists its fields")
    add_backend_flags(parser)
    return parser


def _parsed(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    options = parser.parse_args(arguments)
    check_backend_flags(parser, options)
    return options


def _version(options: argparse.Namespace) -> Version:
    """The version that is meant; documents may begin it. With --try, the one in a folder of its own."""
    version = version_of(options, begins=_begins(options))
    if version.tried_from is None:
        return version
    from runner.evening.exploration import tried

    return tried(version.tried_from)


def _begins(options: argparse.Namespace) -> bool:
    return options.corpus_path is not None or getattr(options, "live", False)


def _evening(
    options: argparse.Namespace, again: str, *, choice: "Choice | None" = None, judge: "JudgeOptions | None" = None
) -> int:
    from runner.evening.evening import Evening

    version = _version(options)
    with _backend(options, version) as backend:
        live = getattr(options, "live", False)
        evening = Evening(version, options.corpus_path, choice, again, backend, judge, live)
        return _answer(evening, as_json=options.json)


def _backend(options: argparse.Namespace, version: Version) -> "Backend":
    """Where the flags say that encoders run, with those of the version's own plan."""
    return with_own_encoders(backend_from(options, version.work), version, options, version.work)


def _compared(parser: Parser, options: argparse.Namespace) -> int:
    """A public collection with published judgments: compared, never decided."""
    for flag, given in (
        ("--rehearse", options.rehearse),
        ("--live", options.live),
        ("--try", options.trial),
    ):
        if given:
            parser.error(f"{flag}: an external collection is compared and never decided; its cells are in plan.yaml")
    from runner.evening.external import ExternalEvaluation

    version = _collection(options)
    with _backend(options, version) as backend:
        evaluation = ExternalEvaluation(version, options.corpus_path, backend=backend, trec_runs=options.trec_run)
        return _answer(evaluation, as_json=options.json)


def _collection(options: argparse.Namespace) -> Version:
    if options.eval_set_path is None and options.corpus_path is not None:
        return newest_version(options.source, collection_folder(catalog.source(options.source), options.corpus_path))
    return version_of(options, begins=options.corpus_path is not None)


def _refuse_external(options: argparse.Namespace) -> None:
    if catalog.source(options.source).policy == "external":
        raise InputError(
            f"{options.source} is an external collection: it is compared and never decided; cells stand in its "
            "plan.yaml, and `run` scores them."
        )


def _answer(session: "Session", *, as_json: bool) -> int:
    """0 once the answer is printed; the table of what was scored comes before it, and before what is raised.

    As JSON, verdicts and what is outstanding are printed before they are raised.
    """
    from runner.report.summary import run_json, run_summary

    outcome: NegativeVerdict | InputNeeded | None = None
    said = ""
    try:
        said = session.run()
    except (NegativeVerdict, InputNeeded) as stopped:
        outcome = stopped
    if as_json:
        code = outcome.exit_code if outcome else 0
        answer_json(run_json(session.version, session.scored, code, str(outcome) if outcome else said))
    elif session.scored is not None and not session.scored[0].provisional:
        found = session.scored[0]
        decided = outcome is None and found.kind not in ("exploration", "external")
        is_said = isinstance(outcome, NegativeVerdict)
        answer(f"{run_summary(found, flags=session.version.origin.flags, is_said=is_said, decided=decided)}\n")
    if outcome is not None:
        if isinstance(outcome, InputNeeded):
            outcome.printed = as_json
        raise outcome
    if not as_json:
        answer(said)
    return 0


def _again(verb: str, arguments: Sequence[str]) -> str:
    return shlex.join([verb, *source_first(arguments)])


def _without_choice(arguments: Sequence[str], cell: str) -> list[str]:
    """The arguments without what belongs to a choice."""
    kept, skip, ours = [], False, ("--reason", "--by")
    for argument in arguments:
        name = argument.partition("=")[0]
        if not skip and name not in ours and argument != cell:
            kept.append(argument)
        skip = name in ours and "=" not in argument
    return kept


def add_signature(parser: Parser, why: str) -> None:
    """--reason and --by, which a record keeps."""
    parser.add_argument("--reason", default="", help=why)
    parser.add_argument("--by", default="", metavar="NAME", help="who decides; it is recorded")


def check_signature(options: argparse.Namespace) -> None:
    """Check that name and reason are one line of printable characters, as a page and a terminal show them."""
    for flag, text in (("--by", options.by), ("--reason", options.reason)):
        if not text.isprintable():
            raise InputError(f"{flag}: {text!r} has a line break or a control character; write it on one line.")


def _choice(options: argparse.Namespace) -> "Choice":
    from runner.decide.decide import RECOMMENDED, UNATTENDED, Choice

    if get_close_matches(options.cell, [RECOMMENDED], cutoff=0.8) and options.cell != RECOMMENDED:
        raise InputError(f"{options.cell!r} is no cell; did you mean {RECOMMENDED!r}?")
    if options.cell != RECOMMENDED and not (options.reason.strip() and options.by.strip()):
        raise InputError("choose needs --reason TEXT and --by NAME: decision.json names who decided, and why.")
    check_signature(options)
    return Choice(options.cell, options.reason, options.by or UNATTENDED)
