"""Every verb in one table: its name, group, one line and example.

Help and suggestions for misspelt words are made from it.
"""

import importlib
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from runner.base.errors import InputError
from runner.base.places import DRIVER

Command = Callable[[Sequence[str]], int]


class Verb(NamedTuple):
    """A verb's function as "module:name", imported when it is called; what it does; a command line that works."""

    function: str
    does: str
    example: str
    form: str = ""
    """What stands behind the verb in the one-screen help."""


GROUPS: dict[str, dict[str, Verb]] = {
    "Start here": {
        "init": Verb(
            "evening:init", "write a plan; draw documents from --corpus-path or --live", "init bills", "SOURCE"
        ),
        "next": Verb("evening:next_step", "what to do now, as one command", "next demo", "[SOURCE]"),
        "view": Verb("version:view", "open the results page", "view demo", "SOURCE"),
    },
    "The evening": {
        "run": Verb("evening:run", "move the evaluation as far as it can go", "run demo", "SOURCE"),
        "queries": Verb("", "a pack to read; check and add queries", "", "ACTION SOURCE"),
        "queries sample": Verb("queries:sample", "a pack of 25 documents to read", "queries sample demo"),
        "queries import": Verb(
            "queries:import_", "queries that people asked, from a search log", "queries import demo log.csv"
        ),
        "queries check": Verb(
            "queries:check", "copies, overlap with documents, findability", "queries check demo drafts.yaml"
        ),
        "queries add": Verb(
            "queries:add", "put the queries of a file into the version", "queries add demo drafts.yaml"
        ),
        "judge": Verb(
            "evening:judge", "have the plan's language models grade what is missing", "judge demo --max-usd 5", "SOURCE"
        ),
        "labels": Verb("", "grades by file and by people: import, page, double, ...", "", "ACTION SOURCE"),
        "labels import": Verb(
            "labels:import_",
            "a judge's answers into labels.jsonl",
            "labels import demo answers.jsonl --judge=ann --person",
        ),
        "labels page": Verb("labels:page", "one offline page to judge by keyboard", "labels page demo --judge=ann"),
        "labels double": Verb(
            "labels:double", "a share of the pairs again, for a second judge", "labels double demo --share 0.1"
        ),
        "labels agreement": Verb("labels:agreement", "how far the judges agree", "labels agreement demo"),
        "labels withdraw": Verb(
            "labels:withdraw", "void every grade of a judge; nothing is deleted", "labels withdraw demo --judge=ann"
        ),
        "choose": Verb("evening:choose", "record the decision", "choose demo recommended", "SOURCE CELL"),
    },
    "Look closer": {
        "plan": Verb(
            "evening:plan", "what exists, what is missing, what it costs; writes nothing", "plan demo", "SOURCE"
        ),
        "explore": Verb(
            "evening:explore", "score another cell; decides nothing", "explore demo 'bm25 x whole_doc'", "SOURCE CELL"
        ),
        "sources": Verb("sources:sources", "how far every source has come", "sources"),
        "compare": Verb("compare:compare", "one run against another, or against published means", "compare RUN.json"),
        "export": Verb(
            "version:export", "results as CSV or Parquet tables", "export demo --format csv --output tables"
        ),
        "pooled": Verb(
            "pooled:pooled", "what the locked results of all sources say together", "pooled eval-sets/demo/v1"
        ),
        "replay": Verb("replay:replay", "embed a recorded version again: do its numbers hold?", "replay demo"),
        "fetch": Verb("fetch:fetch", "documents of a source from its publisher", "fetch bills --to bills --size 750"),
    },
    "Tools": {
        "grade": Verb("grade:grade", "does a retriever beat systems that never read the query?", "grade --demo"),
        "doctor": Verb(
            "doctor:doctor",
            "does this installation work? would an evening of SOURCE end?",
            "doctor --quick",
            "[SOURCE]",
        ),
        "matrix": Verb("tools:matrix", "our scores on public collections, beside published ones", "matrix --check"),
        "mcp": Verb("tools:mcp", "serve these tools to a language model", "mcp --root eval-sets"),
    },
    "Governance": {
        "verify": Verb("version:verify", "a version, or any folder, against its lock", "verify demo"),
        "adopt": Verb(
            "governance:adopt",
            "record the baseline of a source with weak structure",
            "adopt gao_reports --by 'A. Person'",
        ),
        "bulk-gate": Verb(
            "governance:bulk_gate", "whether a source of N documents may be embedded", "bulk-gate demo 9000"
        ),
        "post-bulk": Verb(
            "governance:post_bulk",
            "a decision against the production database",
            "post-bulk demo --corpus-path substrate.db",
        ),
        "version": Verb("", "open the next version, or give the newest one up", ""),
        "version new": Verb(
            "governance:version_new",
            "the version after the newest",
            "version new demo --reason 'new queries' --by 'A. Person'",
        ),
        "version abandon": Verb(
            "governance:version_abandon",
            "give up the newest version, which is undecided",
            "version abandon demo --reason 'wrong sample' --by 'A. Person'",
        ),
        "lock": Verb("lock:lock", "lock the files of any folder by SHA-256", "lock bench -o bench.lock.json"),
        "tripwire": Verb(
            "tripwire:tripwire",
            "golden queries against a committed snapshot",
            "tripwire check GOLDEN.yaml --run RUN.tsv --snapshot SNAPSHOT.json",
        ),
    },
}
"""Every verb by group, in the order of the help; a name of two words is an action of the first."""

VERBS: dict[str, Verb] = {name: verb for group in GROUPS.values() for name, verb in group.items()}

EXIT_CODES = "0 done, 1 no, 2 your input, 3 your turn, 4 changed, 5 backend"

_SCREEN = f"""\
per-source-eval: choose the embedding model and chunker for a source, with evidence.

{{groups}}
Examples
  {DRIVER} run bills --corpus-path ~/bills
  {DRIVER} judge bills --max-usd 25
  {DRIVER} --source=bills --dry-run    for a determiner: last line "decision recorded"

VERB --help explains each. Exit codes: {EXIT_CODES}."""

_COMPACT = ("Tools", "Governance")


def one_screen() -> str:
    """The help that fits on one screen: a line per verb, tools and governance by name."""
    lines = []
    for title, verbs in GROUPS.items():
        lines.append(title)
        own = {name: verb for name, verb in verbs.items() if " " not in name}
        if title in _COMPACT:
            lines += [f"  {', '.join(own)}"]
        else:
            lines += [f"  {f'{name} {verb.form}'.strip():21} {verb.does}" for name, verb in own.items()]
        lines.append("")
    return _SCREEN.format(groups="\n".join(lines))


def actions(name: str) -> dict[str, Verb]:
    """The actions of a verb by their own word; none for most verbs."""
    return {full.split()[1]: verb for full, verb in VERBS.items() if full.startswith(f"{name} ")}


def near(word: str, known: Sequence[str]) -> str:
    """What a misspelt word may have meant, as the end of a sentence; "." if nothing is near."""
    found = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else "."


def found_verb(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The verb that a command line begins with, and the words behind it; InputError for an unknown one."""
    name, rest = words[0], words[1:]
    if name not in VERBS:
        known = [one for one in VERBS if " " not in one]
        raise InputError(f"There is no verb {name!r}{near(name, known)} All of them: {DRIVER} --help")
    if VERBS[name].function:
        return name, rest
    own = actions(name)
    if not rest or rest[0] not in own:
        given = f"no action {rest[0]!r}{near(rest[0], list(own))}" if rest else "no action without its name."
        raise InputError(f"{name} has {given} There are: {', '.join(own)}.")
    return f"{name} {rest[0]}", rest[1:]


def command_of(name: str) -> Command:
    """A verb's function."""
    module, _, function = VERBS[name].function.partition(":")
    command: Command = getattr(importlib.import_module(f"runner.commands.{module}"), function)
    return command


def actions_help(name: str) -> str:
    """The help of a verb that has actions: a line per action."""
    own = actions(name)
    lines = [f"usage: {DRIVER} {name} {'|'.join(own)} SOURCE ...", "", f"{VERBS[name].does}.", ""]
    lines += [f"  {action:10} {verb.does}" for action, verb in own.items()]
    return "\n".join([*lines, "", f"Each has its own help: {DRIVER} {name} {next(iter(own))} --help"])
