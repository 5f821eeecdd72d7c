"""`lock`, and `verify` for a folder: any folder's files by SHA-256, beside the git commit they stand at."""

import argparse
import os
from pathlib import Path
from typing import Any

from runner.base.canonical import json_bytes, read_json, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.git import git_state
from runner.base.given_files import LONGEST_LINE, display, printable
from runner.base.schema import checked
from runner.base.store import disk_errors
from runner.base.terminal import MARKS
from runner.commands.console import answer, tell
from runner.eval_set.door import folder_differences, is_edited, lock_folder
from runner.eval_set.shapes.lock import Lock


def lock(options: argparse.Namespace) -> None:
    """Lock the files of a folder in a new file, which does not lock itself."""
    output: Path = options.output
    if os.path.lexists(output):
        raise InputError(f"{display(output)} exists already; a lock replaces no file. Remove it, or name another.")
    locked = lock_folder(options.folder, own=output)
    with disk_errors(output):
        write_atomic(output, json_bytes(locked.model_dump()))
    answer(f"{len(locked.files)} files of {display(options.folder)} are locked in {display(output)}")


def verify_folder(options: argparse.Namespace) -> int:
    """Hold every locked file of a folder against its lock; 4 if they differ."""
    folder = Path(options.source)
    known = checked(Lock, read_json(options.lock), display(options.lock))
    if known.folder is None:
        raise InputError(f"{display(options.lock)} is the lock of a record: verify SOURCE holds the record to it.")
    # Files decide; where git stands is said beside them.
    now = git_state(folder)
    found = {
        "differences": folder_differences(folder, known),
        "lock_edited": is_edited(known),
        "git_moved": known.folder.git.get("commit", now.get("commit")) != now.get("commit"),
        "git_now": now,
        "files": len(known.files),
        **known.folder.model_dump(),
    }
    wrong = found["differences"] or found["lock_edited"]
    tell(options, found | {"matches": not wrong}, lambda: _differences(found, options))
    return IntegrityError.exit_code if wrong else 0


def _differences(found: dict[str, Any], options: argparse.Namespace) -> list[str]:
    """Return each difference as a line, else that there is none; then git."""
    no = MARKS["fail"]
    lines = [f"{no} {options.lock} was edited after it was written"] if found["lock_edited"] else []
    for row in found["differences"]:
        digests = f" (locked {row['locked'][:16]}, found {row['found'][:16]})" if row["kind"] == "changed" else ""
        lines.append(f"{no} {row['kind']}: {row['path']}{digests}")
    if not lines:
        lines.append(f"{MARKS['pass']} {options.source}: {found['files']} files as locked on {found['locked_at']}")
    locked, now = _commit(found["git"]), _commit(found["git_now"])
    if found["git_moved"]:
        lines.append("? git commit moved")
    lines.append(f"git: {now}, as locked" if now == locked else f"git: locked at {locked}; now at {now}")
    return [printable(line, LONGEST_LINE) for line in lines]


def _commit(state: dict[str, Any]) -> str:
    if "error" in state:
        return f"no commit ({state['error']})"
    return f"{state['commit'][:8]} on {state['branch']}" + (", with uncommitted changes" if state["dirty"] else "")
