"""`lock`, and `verify` for a folder: any folder's files by SHA-256, beside the git commit they stand at."""

import argparse
import math
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import LONGEST_LINE, display, printable
from runner.base.terminal import MARKS
from runner.commands.console import add_output_flags, answer, answer_json, command_parser, tell

_LOCK_EPILOG = """\
Every file below DIR counts; a lock inside DIR does not lock itself, and .git is left to git. A symbolic link is locked
by its text. exit codes: 0 locked, 2 usage or input error (no such folder, an unreadable or changing file), 5 disk.
"""
_VERIFY_EPILOG = """\
A moved git commit is shown, and counts with --strict-git alone: committing a lock moves the commit.
exit codes: 0 as locked, 2 usage or input error, 4 a file is missing, changed or extra, or the lock was edited.
"""


def lock(arguments: Sequence[str]) -> int:
    """`lock`: the lock of a folder, to stdout or into a new file."""
    parser = command_parser("lock", "Locks the files of a folder by SHA-256.", _LOCK_EPILOG)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="a new file; by default the lock is printed")
    parser.add_argument("--score", type=float, help="a benchmark's score, kept with the lock")
    parser.add_argument("--meta", action="append", default=[], metavar="KEY=VALUE", help="kept too (repeatable)")
    parser.add_argument("--extensions", metavar="LIST", help="lock these files alone, as in .json,.npy")
    parser.add_argument("--json", action="store_true", help="print the lock, with --output too")
    options = parser.parse_args(arguments)
    from runner.base.canonical import json_bytes, write_atomic
    from runner.base.store import disk_errors
    from runner.eval_set.door import lock_folder

    output: Path | None = options.output
    if output is not None and os.path.lexists(output):
        raise InputError(f"{display(output)} exists already; a lock replaces no file. Remove it, or name another.")
    extensions = [] if options.extensions is None else options.extensions.split(",")
    if wrong := [each for each in extensions if Path(f"x{each}").suffix != each or not each]:
        raise InputError(f"--extensions: {wrong[0]!r} is not a dot and what follows the last one, as in .json.")
    if options.score is not None and not math.isfinite(options.score):
        raise InputError(f"--score: {options.score} is not a number that JSON has.")
    own, meta = output or _redirected(options.folder), _meta(options.meta)
    locked = lock_folder(options.folder, extensions=extensions, own=own, score=options.score, meta=meta)
    if output is not None:
        with disk_errors(output):
            write_atomic(output, json_bytes(locked.model_dump()))
    if output is None or options.json:
        answer_json(locked.model_dump())
    else:
        answer(f"{len(locked.files)} files of {display(options.folder)} are locked in {display(output)}")
    return 0


def _meta(pairs: Sequence[str]) -> dict[str, str]:
    meta: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals or key in meta:
            raise InputError(f"--meta {pair!r}: one KEY=VALUE is expected, and each KEY once.")
        meta[key] = value
    return meta


def verify_folder(arguments: Sequence[str]) -> int:
    """`verify DIR`: every locked file of a folder against its lock; 4 if they differ."""
    parser = command_parser("verify", "Checks the files of a folder against its lock.", _VERIFY_EPILOG)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--lock", required=True, type=Path, metavar="FILE", help="what `lock DIR` wrote")
    parser.add_argument("--strict-git", action="store_true", help="another git commit counts as a difference")
    add_output_flags(parser, "the answer as JSON")
    options = parser.parse_args(arguments)
    from runner.base.canonical import read_json
    from runner.base.git import git_state
    from runner.base.schema import checked
    from runner.eval_set.door import folder_differences, is_edited
    from runner.eval_set.shapes.lock import Lock

    known = checked(Lock, read_json(options.lock), display(options.lock))
    if known.folder is None:
        raise InputError(f"{display(options.lock)} is the lock of a record: verify SOURCE holds the record to it.")
    now = git_state(options.folder)
    found = {
        "differences": folder_differences(options.folder, known),
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
        lines.append(f"{MARKS['pass']} {options.folder}: {found['files']} files as locked on {found['locked_at']}")
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
    """The file below the folder that stdout goes to, as `> DIR/lock.json` makes it, or None."""
    try:
        written = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(written.st_mode):
        return None
    from runner.eval_set.door import names_below

    below = (folder / name for name in names_below(folder))
    return next((path for path in below if os.path.samestat(path.lstat(), written)), None)
