"""A whole evening over the small set, which does what an operator does: run, judge, import, run again, choose.

Tests start it in processes of its own too, to kill them.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from runner.base.canonical import digest, file_sha256, read_json
from runner.base.errors import InputNeeded
from runner.base.store import exclusive
from runner.decide.decide import Choice
from runner.embed.backends import LocalBackend
from runner.embed.encoder import Encoder
from runner.eval_set import plan
from runner.eval_set.lock import verify_version
from runner.eval_set.version import Version
from runner.evening.evening import Evening
from runner.judge.answers import Importer
from tests.support.small_set import (
    answers,
    fake_encoders,
    few_draws,
    make_version,
    write_corpus,
    write_plans,
    write_queries,
)

CHOICE = Choice("recommended", "", "test")


def run(
    folder: Path,
    choice: Choice = CHOICE,
    encoders: Callable[[str], Encoder] = fake_encoders,
    *,
    rehearsal: bool = False,
) -> str:
    version = prepared(folder, rehearsal=rehearsal)
    with few_draws_in_plans():
        while True:
            try:
                return Evening(version, folder / "corpus", choice=choice, backend=LocalBackend(encoders)).run()
            except InputNeeded:
                with exclusive(version.work / "version.lock", "a test"):
                    verify_version(version)
                    judged(version)


def judged(version: Version, only: slice = slice(None)) -> None:
    """Import the small set's grades of the batches that wait, or of some of them."""
    importer = Importer(version)
    for path in answers(version)[only]:
        importer.take_file(path, judge="words", model="", judged_on="2026-01-31")


def run_to_judges(folder: Path) -> None:
    """An evening as far as it goes before anything is judged."""
    version = prepared(folder)
    write_plans(version)
    with suppress(InputNeeded):
        Evening(version, folder / "corpus", backend=LocalBackend(fake_encoders)).run()


def prepared(folder: Path, *, rehearsal: bool = False) -> Version:
    version = make_version(folder, rehearsal=rehearsal)
    if not (folder / "corpus.written").exists():
        write_corpus(folder / "corpus")
        write_queries(version.folder)
        (folder / "corpus.written").touch()
    return version


WITH_CLOCK = {"receipt.json", "results.html", "lock.json", "decision.json"}
"""Files that say when, or how long it took."""


def record_of(version: Path) -> dict[str, str]:
    """Digests of a version's files by name, without those of a clock; of the decision all but its day."""
    paths = [path for path in sorted(version.rglob("*")) if path.is_file() and path.name not in WITH_CLOCK]
    decided = {name: value for name, value in read_json(version / "decision.json").items() if name != "decided_on"}
    return {"decision.json": digest(decided)} | {p.relative_to(version).as_posix(): file_sha256(p) for p in paths}


@contextmanager
def few_draws_in_plans() -> Iterator[None]:
    """Default plans with fewer resamples and draws, which halves the time of scoring."""
    settings = plan._SETTINGS
    plan._SETTINGS = few_draws(settings)
    try:
        yield
    finally:
        plan._SETTINGS = settings


def run_counting(folder: Path, total: Path, encoders: Callable[[str], Encoder] = fake_encoders) -> None:
    """`run`, and how often it opened or placed a file of version and work, written to the file `total`."""
    steps: list[int] = []
    before_each_step(prepared(folder), steps.append)
    run(folder, encoders=encoders)
    total.write_text(str(len(steps)))


def run_until(folder: Path, last: int, encoders: Callable[[str], Encoder] = fake_encoders) -> None:
    """`run`, killed just before its step number `last`."""
    before_each_step(prepared(folder), lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == last else None)
    run(folder, encoders=encoders)


def before_each_step(version: Version, call: Callable[[int], None]) -> None:
    """`call` with 1, 2, ... before any file of version and work is opened for writing, renamed or linked.

    It lasts as long as the process.
    """
    numbers = count(1)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            is_step = isinstance(arguments[2], int) and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        else:
            is_step = event in ("os.rename", "os.link")
        if is_step and str(arguments[0]).startswith(str(version.folder.parent)):
            call(next(numbers))

    sys.addaudithook(hook)
