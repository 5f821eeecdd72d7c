"""A step towards a decision, or towards a machine that can reach one: what is done, and what brings what is not."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from runner.base.errors import BackendError, EvalError, InputError, PackageMissing

INSTALL = "Install it by the command that the message has."
"""What helps where a library is missing, whatever was looked at."""


class Step(NamedTuple):
    """One step: how far it is, in words, the ways to bring it if it is not done, and what that takes.

    `blocked` is what failed, or waits for the step before it; what was not looked at stays `open`.
    """

    name: str
    state: Literal["done", "open", "blocked"]
    say: str
    ways: tuple[str, ...] = ()
    needs: Literal["machine", ""] = ""


class Skipped(Exception):
    """A check that was not made, and why."""


class Check(NamedTuple):
    """A question whose answer is a step: what helps if it is bad, and `answer`, which raises what is wrong."""

    name: str
    helps: str
    answer: Callable[[], str]
    slow: bool = False


def examined(checks: Iterable[Check], *, quick: bool = False) -> Iterator[Step]:
    """Yield the step of each check as it is made, slow ones left open if `quick`; no check ends the others."""
    for check in checks:
        try:
            if quick and check.slow:
                raise Skipped("--quick leaves it out")
            yield Step(check.name, "done", check.answer())
        except Skipped as why:
            yield Step(check.name, "open", str(why))
        except EvalError as error:
            helps = INSTALL if isinstance(error, PackageMissing) else check.helps
            yield Step(check.name, "blocked", str(error), (helps,), "machine")
        except Exception as error:  # noqa: BLE001  # whatever a broken part raises is the finding that is asked for
            yield Step(check.name, "blocked", f"{type(error).__name__}: {error}", (check.helps,), "machine")


def need_all(checks: Iterable[Check]) -> None:
    """Make every check; an error says all that is wrong at once, in the words and with the exit code of the first."""
    failed: list[EvalError] = []
    for check in checks:
        try:
            check.answer()
        except Skipped:
            continue
        except EvalError as error:
            failed.append(error)
    # One failure keeps its own class; several share the exit code of the first.
    if len(failed) == 1:
        raise failed[0]
    if failed:
        kind = InputError if isinstance(failed[0], InputError) else BackendError
        raise kind("\n".join(dict.fromkeys(map(str, failed)))) from failed[0]


def writable_folders(folders: Sequence[Path], needed_gb: float = 0.0) -> str:
    """Say how much is free below folders in which a file can be written; if missing, its nearest parent is tried.

    A BackendError names a folder that takes no file, or has less room than is needed.
    """
    free = 0.0
    for folder in folders:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        try:
            with tempfile.TemporaryFile(dir=there) as scratch:  # without a name, so that a kill leaves none
                scratch.write(b"written")
        except OSError as error:
            raise BackendError(f"{there} cannot be written ({error.strerror})") from error
        free = shutil.disk_usage(there).free / 1e9
        if free < needed_gb:
            raise BackendError(f"{there} has {free:.1f} GB free, and some {needed_gb:.1f} GB are needed")
    return f"{len(folders)} folders, {free:.1f} GB free"
