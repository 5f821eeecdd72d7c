"""The actions of `queries`: a reading pack or queries of a search log, a check, and adding."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from runner.base.errors import InputError
from runner.commands.console import answer
from runner.commands.flags import version_of
from runner.eval_set import catalog
from runner.eval_set.lock import verify_version
from runner.eval_set.version import alone
from runner.tools.queries import Desk, report_text

_MOST_DRAWN = 1_000


def sample(options: argparse.Namespace) -> None:
    """Write a stratified 25 documents to read and the form of queries.yaml; of a search log, draw queries."""
    if not 3 <= options.size <= _MOST_DRAWN:
        raise InputError(f"--size {options.size}: a number from 3 to {_MOST_DRAWN} is wanted.")
    with _desk(options) as desk:
        answer(desk.take_log(options.log, options.size) if options.log else desk.sample())


def check(options: argparse.Namespace) -> int:
    """Check the version's queries or those of the files; 2 for errors."""
    with _desk(options) as desk:
        report = desk.check(options.files)
        answer(report_text(report))
        return InputError.exit_code if report.errors else 0


def add(options: argparse.Namespace) -> None:
    """Make the queries of files the version's, all of a file or none."""
    with _desk(options) as desk:
        for line in desk.add(options.files):
            answer(line)


@contextmanager
def _desk(options: argparse.Namespace) -> Iterator[Desk]:
    """Have the version, verified, to oneself."""
    if catalog.is_external(options.source):
        raise InputError(f"{options.source} is a public collection, which brings its own queries.")
    version = version_of(options)
    with alone(version):
        # Queries of a locked version are frozen: what was edited is said before anything is written.
        verify_version(version)
        yield Desk(version, options.corpus_path)
