"""The verbs that bind others: `adopt`, `bulk-gate`, `post-bulk`, `version new` and `version abandon`."""

from collections.abc import Sequence
from pathlib import Path

from runner.base.canonical import today
from runner.base.progress import say
from runner.commands.console import answer, version_of, version_parser, whole_number
from runner.commands.evening import add_signature, check_signature


def adopt(arguments: Sequence[str]) -> int:
    """`adopt`: the baseline by policy, unevaluated, recorded and locked."""
    parser = version_parser(
        "adopt", epilog="exit codes: 0 recorded, 2 the source is to be evaluated, 4 changed, 5 disk"
    )
    add_signature(parser, "why; default: weak structure")
    options = parser.parse_args(arguments)
    if not options.by.strip():
        parser.error("--by NAME is needed: decision.json names who decided")
    from runner.decide.decide import decision_sentence
    from runner.decide.policy import adopt_baseline

    check_signature(options)
    version = version_of(options, begins=True)
    decision, is_new = adopt_baseline(version, options.by, options.reason, today=today())
    say(f"locked. To commit, as it is: {version.folder}" if is_new else "recorded before; nothing is changed")
    answer(decision_sentence(decision))
    return 0


def bulk_gate(arguments: Sequence[str]) -> int:
    """`bulk-gate`, for the ingester: 0 if so many documents may be embedded, else 1."""
    parser = version_parser(
        "bulk-gate", epilog="exit codes: 0 open, 1 closed: above 10,000 documents a decision is needed"
    )
    size = whole_number("a number of documents")
    parser.add_argument("documents", type=size, metavar="N", help="how many the source has")
    options = parser.parse_args(arguments)
    from runner.decide.policy import bulk_gate as gate
    from runner.decide.roster import standing
    from runner.eval_set.lock import verify_version

    version = version_of(options)
    verify_version(version)
    answer(gate(standing(version), options.documents))
    return 0


def post_bulk(arguments: Sequence[str]) -> int:
    """`post-bulk`, or --post-bulk: a decided version's queries in the production database; 1 names each fault."""
    epilog = (
        "Writes a report beside the record. exit codes: 0 no fault, 1 faults, 2 input, 4 changed, 5 backend or disk"
    )
    parser = version_parser("post-bulk", epilog=epilog)
    add = parser.add_argument
    add("--corpus-path", type=Path, required=True, metavar="DATABASE", help="the production database; it is only read")
    add("--rehearse", action="store_true", help="hold the rehearsal's decision to it")
    options = parser.parse_args(arguments)
    from runner.decide.roster import version_in_force
    from runner.evening.post_bulk import post_bulk as check

    version = version_of(options)
    in_force = None if version.rehearsal else version_in_force(version)
    answer(check(in_force or version, options.corpus_path))
    return 0


def version_new(arguments: Sequence[str]) -> int:
    """`version new`: the next version, with the files of the newest, which is frozen or decided."""
    parser = version_parser("version new", epilog="docs/new-version.md is the path from an exploration to v2.")
    add_signature(parser, "why; kept in opened.json")
    options = parser.parse_args(arguments)
    check_signature(options)
    from runner.evening.next_version import open_next

    answer(open_next(version_of(options), reason=options.reason, by=options.by, today=today()))
    return 0


def version_abandon(arguments: Sequence[str]) -> int:
    """`version abandon`: abandoned.json in the newest version, which is undecided."""
    parser = version_parser("version abandon", epilog="What was decided cannot be given up. docs/new-version.md")
    add_signature(parser, "why; kept in abandoned.json")
    options = parser.parse_args(arguments)
    if not (options.reason.strip() and options.by.strip()):
        parser.error("--reason TEXT and --by NAME are needed: abandoned.json names who gave up, and why")
    check_signature(options)
    from runner.evening.next_version import abandon

    version = version_of(options)
    answer(abandon(version, reason=options.reason, by=options.by, today=today()))
    return 0
