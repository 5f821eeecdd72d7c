"""Damaged real files, which are read or refused, and flipped bits in a locked version, which are refused."""

import io
import os
import random
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from runner.base.errors import IntegrityError
from runner.base.places import CACHE_VARIABLE, CHECKOUT
from runner.eval_set.lock import LOCK_NAME, locked_files
from tests.conftest import called
from tests.soak import Kind, Trial
from tests.support.evening_process import run as run_evening
from tests.support.parsers import readers
from tests.support.reader_fuzz import case, files_of, row_of
from tests.support.reader_fuzz import run as read_damaged
from tests.support.reader_goldens import DATA
from tests.support.small_set import make_version

CORPORA = Path(os.environ.get("PSE_SHARED", CHECKOUT.parent / "shared")) / "corpora"
LIMIT = 10.0
"""Seconds that one input may take."""


def mutations(source: str) -> Kind:
    """Trials of a source's real files, damaged, read and chunked: documents or one refusal, and nothing else."""

    def trials(_: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
        row = row_of(source)
        files = files_of(row, CORPORA / source) or files_of(row, DATA / source)
        begin, end = numbers[0], numbers[-1] + 1
        for number, _n_documents, flaws, seconds in read_damaged(source, files, seed + 1, end, LIMIT, begin=begin):
            if number in numbers:
                what = " of ".join(reversed(case(source, files, seed + 1, number)[1:])) if flaws else ""
                yield Trial(f"mutations of {source}", number, 1, what, seconds, "; ".join(flaws))

    return trials


def flips(work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    """One bit of one file of a locked version, or of its lock: `verify` and another command refuse it, exit 4.

    Every verb that reads a version takes its turn.
    """
    folder = work / f"flips-{numbers[0]}"
    shutil.rmtree(folder, ignore_errors=True)
    run_evening(folder)
    version = make_version(folder).record
    commands = readers(make_version(folder))
    where = f"--eval-set-path={version.parent}"
    os.environ[CACHE_VARIABLE] = str(folder / ".cache")
    every = [version / name for name in (*locked_files(version), LOCK_NAME)]
    for number in numbers:
        began, rng = time.perf_counter(), random.Random(f"flips {seed} {number}")
        words, file = commands[number % len(commands)]
        paths = [version / file, version / LOCK_NAME] if file else every
        path = paths[rng.randrange(len(paths))]
        content = path.read_bytes()
        place, bit = rng.randrange(len(content)), rng.randrange(8)
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
        asked = (["verify", "demo", where], words)
        found = "; ".join(said for command in asked if (said := _taken(command, path.name)))
        path.write_bytes(content)
        what = f"bit {bit} of byte {place} of {path.relative_to(version)}, {shlex.join(words)}"
        yield Trial("flips", number, 1, what, time.perf_counter() - began, found)
    shutil.rmtree(folder)


def _taken(command: Sequence[str], name: str) -> str:
    """What is wrong with a command's answer to a version with a changed file of that name; "" if it refuses it."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code, message = called(*command)
    refused = code == IntegrityError.exit_code and name in message and not out.getvalue()
    return "" if refused else f"{shlex.join(command)}: exit {code}, {message[-200:]}"
