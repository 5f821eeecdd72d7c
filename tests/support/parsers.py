"""The parser of every verb, for tests that hold documents and helps to the flags; every verb that reads a version."""

import shlex
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from runner.commands.console import parser_of
from runner.commands.verbs import VERBS, Verb
from runner.eval_set.version import Version, load_queries

__all__ = ["parser_of", "runnable"]

NO_VERSION = {
    "sources": "reads the checkout's own versions; tests/decide/test_roster.py damages one",
    "grade": "reads a bench, or a run with its qrels",
    "lock": "reads any folder",
    "try": "reads documents, and keeps nothing",
    "mcp": "a server of `plan` and `compare`",
}
"""Verbs that read no version that is named on the command line, and why."""

ONE_FILE = {
    "tripwire": ("runs/bm25-x-whole_doc.tsv.bz2", "tripwire check {golden} --run {file} --snapshot none.json"),
    "fetch": ("corpus.jsonl", "fetch demo --to fetched --again {file}"),
    "pooled": ("results.json", "pooled {version}"),
}
"""By verb that reads one file of a version alone: the file, and a command line."""

OTHERWISE = (
    "--source=demo {where}",
    "--source=demo --dry-run {where}",
    "--source=demo --cells 'bm25-okapi x whole_doc' {where}",
    "run demo --rehearse {where}",
    "view demo --passages {where}",
    "compare {version}/results.json --cell 'bm25 x whole_doc'",
    "doctor demo {where}",
)
"""Further command lines, and those of verbs whose example names no version."""


class Reader(NamedTuple):
    """A command line that reads a version, and the one file of it that it reads, "" for all."""

    words: list[str]
    file: str


def runnable() -> Iterator[tuple[str, Verb]]:
    """Every verb, or action of a verb, that has a function."""
    return ((name, verb) for name, verb in VERBS.items() if verb.function)


def readers(version: Version) -> list[Reader]:
    """A command line for every verb of the table, but for those of NO_VERSION, over a decided version of the demo."""
    record, where = version.record, f"--eval-set-path={version.folder.parent}"
    golden = record.parents[2] / "golden.yaml"
    rows = [{"name": row.id, "text": row.text, "expected": ["x"]} for row in load_queries(version.queries_path)]
    golden.write_text(yaml.safe_dump(rows))
    found = [Reader(shlex.split(line.format(where=where, version=record)), "") for line in OTHERWISE]
    for name, verb in runnable():
        if name in ONE_FILE:
            file, line = ONE_FILE[name]
            found.append(Reader(shlex.split(line.format(golden=golden, file=record / file, version=record)), file))
        elif name not in NO_VERSION and name not in ("compare", "doctor"):
            example = ["demo" if word in ("bills", "gao_reports") else word for word in shlex.split(verb.example)]
            found.append(Reader([*example, where], ""))
    return found
