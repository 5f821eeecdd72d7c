"""`lock`, and `verify` for a folder: any folder's files by SHA-256, beside the git commit they stand at."""

import argparse
import math
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.base.canonical import json_bytes, read_json, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.git import git_state
from runner.base.given_files import LONGEST_LINE, display, printable
from runner.base.schema import checked
from runner.base.store import disk_errors
from runner.base.terminal import MARKS
from runner.commands.console import answer, answer_json, tell
from runner.eval_set.door import folder_differences, is_edited, lock_folder, names_below
from runner.eval_set.shapes.lock import Lock


def lock(options: argparse.Namespace) -> None:
    """Lock the files of a folder, to stdout or into a new file."""
    output: Path | None = options.output
    if output is not None and os.path.lexists(output):
        raise InputError(f"{display(output)} exists already; a lock replaces no file. Remove it, or name another.")
    extensions = [] if options.extensions is None else options.extensions.split(",")
    if wrong := [each for each in extensions if Path(f"x{each}").suffix != each or not each]:
        raise InputError(f"--extensions: {wrong[0]!r} is not a dot and what follows the last one, as in .json.")
    if options.score is not None and not math.isfinite(options.score):
        raise InputError(f"--score: {options.score} is not a number that JSON has.")
    # The lock's own file is not of the folder that it locks, by --output or by the shell's `>`.
    own, meta = output or _redirected(options.folder), _meta(options.meta)
    locked = lock_folder(options.folder, extensions=extensions, own=own, score=options.score, meta=meta)
    if output is not None:
        with disk_errors(output):
            write_atomic(output, json_bytes(locked.model_dump()))
    if output is None or options.json:
        answer_json(locked.model_dump())
    else:
        answer(f"{len(locked.files)} files of {display(options.folder)} are locked in {display(output)}")


def _meta(pairs: Sequence[str]) -> dict[str, str]:
    meta: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals or key in meta:
            raise InputError(f"--meta {pair!r}: one KEY=VALUE is expected, and each KEY once.")
        meta[key] = value
    return meta


def verify_folder(options: argparse.Namespace) -> int:
    """Hold every locked file of a folder against its lock; 4 if they differ."""
    folder = Path(options.source)
    known = checked(Lock, read_json(options.lock), display(options.lock))
    if known.folder is None:
        raise InputError(f"{display(options.lock)} is the lock of a record: verify SOURCE holds the record to it.")
    # Files decide; where git stands is said beside them, and fails with --strict-git alone.
    now = git_state(folder)
    found = {
        "differences": folder_differences(folder, known),
        "lock_edited": is_edited(known),
        "git_moved": known.folder.git.get("commit", now.get("commit")) != now.get("commit"),
        "git_now": now,
        "files": len(known.files),
        **known.folder.model_dump(),
    }
    wrong = found["differences"] or found["lock_edited"] or (options.strict_git and found["git_moved"])
    tell(options, found | {"matches": not wrong}, lambda: _differences(found, options))
    return IntegrityError.exit_code if wrong else 0


def _differences(found: dict[str, Any], options: argparse.Namespace) -> list[str]:
    """Return each difference as a line, else that there is none; then git, score and what was noted."""
    no = MARKS["fail"]
    lines = [f"{no} {options.lock} was edited after it was written"] if found["lock_edited"] else []
    for row in found["differences"]:
        digests = f" (locked {row['locked'][:16]}, found {row['found'][:16]})" if row["kind"] == "changed" else ""
        lines.append(f"{no} {row['kind']}: {row['path']}{digests}")
    if not lines:
        lines.append(f"{MARKS['pass']} {options.source}: {found['files']} files as locked on {found['locked_at']}")
    locked, now = _commit(found["git"]), _commit(found["git_now"])
    if found["git_moved"]:
        lines.append(f"{no if options.strict_git else '?'} git commit moved")
    lines.append(f"git: {now}, as locked" if now == locked else f"git: locked at {locked}; now at {now}")
    if found["score"] is not None:
        lines.append(f"score: {found['score']:g}")
    lines += [f"{key}: {value}" for key, value in sorted(found["meta"].items())]
    return [printable(line, LONGEST_LINE) for line in lines]


def _commit(state: dict[str, Any]) -> str:
    if "error" in state:
        return f"no commit ({state['error']})"
    return f"{state['commit'][:8]} on {state['branch']}" + (", with uncommitted changes" if state["dirty"] else "")


def _redirected(folder: Path) -> Path | None:
    """Return the file below the folder that stdout goes to, as `> DIR/lock.json` makes it, or None."""
    try:
        written = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(written.st_mode):  # a terminal or a pipe
        return None
    below = (folder / name for name in names_below(folder))
    return next((path for path in below if os.path.samestat(path.lstat(), written)), None)
