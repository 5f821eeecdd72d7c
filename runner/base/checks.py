"""Checks that are made one after the other, each with its outcome: of an installation, and of an evening to come."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from runner.base.errors import BackendError, EvalError, InputError, PackageMissing

INSTALL = "Install it by the command that the message has."
"""What helps where a library is missing, whatever was looked at."""


class Skipped(Exception):
    """A check that was not made, and why."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question: what helps if the answer is bad, and `answer`, which raises what is wrong."""

    name: str
    next_step: str
    answer: Callable[[], str]
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check came to; `next_step` is "" unless it failed."""

    name: str
    state: Literal["ok", "failed", "skipped"]
    result: str
    next_step: str


def examine(checks: Iterable[Check], *, quick: bool = False) -> Iterator[Outcome]:
    """Yield the outcome of each check as it is made, slow ones skipped if `quick`; no check ends the others."""
    for check in checks:
        yield _outcome(check, quick=quick)


def report(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Return all outcomes ready for JSON, and `ok`: whether none failed."""
    rows = [asdict(outcome) for outcome in outcomes]
    return {"ok": all(row["state"] != "failed" for row in rows), "checks": rows}


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return how many checks passed, or which failed."""
    named = {state: [o.name for o in outcomes if o.state == state] for state in ("ok", "failed", "skipped")}
    if named["failed"]:
        return f"{len(named['failed'])} of {len(outcomes)} checks failed: {', '.join(named['failed'])}"
    skipped = f", skipped: {', '.join(named['skipped'])}" if named["skipped"] else ""
    return f"{len(named['ok'])} checks passed{skipped}"


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
    if len(failed) == 1:
        raise failed[0]
    if failed:
        kind = InputError if isinstance(failed[0], InputError) else BackendError
        raise kind("\n".join(dict.fromkeys(map(str, failed)))) from failed[0]


def _outcome(check: Check, *, quick: bool) -> Outcome:
    try:
        if quick and check.slow:
            raise Skipped("--quick leaves it out")
        return Outcome(check.name, "ok", check.answer(), "")
    except Skipped as why:
        return Outcome(check.name, "skipped", str(why), "")
    except EvalError as error:
        helps = INSTALL if isinstance(error, PackageMissing) else check.next_step
        return Outcome(check.name, "failed", str(error), helps)
    except Exception as error:  # noqa: BLE001  # whatever a broken part raises is the finding that is asked for
        return Outcome(check.name, "failed", f"{type(error).__name__}: {error}", check.next_step)


def writable_folders(folders: Sequence[Path], needed_gb: float = 0.0) -> str:
    """Return the free space below folders in which a file can be written; if missing, its nearest parent is tried.

    A BackendError names a folder that takes no file, or has less room than is needed.
    """
    free = 0.0
    for folder in folders:
        place = next(path for path in (folder, *folder.parents) if path.exists())
        try:
            with tempfile.TemporaryFile(dir=place) as scratch:  # without a name, so that a kill leaves none
                scratch.write(b"written")
        except OSError as error:
            raise BackendError(f"{place} cannot be written ({error.strerror})") from error
        free = shutil.disk_usage(place).free / 1e9
        if free < needed_gb:
            raise BackendError(f"{place} has {free:.1f} GB free, and some {needed_gb:.1f} GB are needed")
    return f"{len(folders)} folders, {free:.1f} GB free"
