"""`lock`, and `verify` for a folder: any folder's files by SHA-256, beside the git commit they stand at."""

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import display
from runner.commands.console import add_output_flags, answer, answer_json, command_parser, tell

_LOCK_EPILOG = """\
Every file below DIR counts; a lock inside DIR does not lock itself, and .git is left to git. A symbolic link is locked
by its text. exit codes: 0 locked, 2 usage or input error (no such folder, an unreadable or changing file), 5 disk.
"""
_VERIFY_EPILOG = """\
Files are compared by the lock's own rules; a lock of falsify-eval is read by that tool's defaults. A moved git commit
is shown, and counts with --strict-git alone: committing a lock moves the commit.
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
    from runner.tools.folder_lock.folder_lock import lock_state

    output: Path | None = options.output
    if output is not None and os.path.lexists(output):
        raise InputError(f"{display(output)} exists already; a lock replaces no file. Remove it, or name another.")
    try:
        locked = lock_state(
            options.folder,
            tracked_extensions=None if options.extensions is None else options.extensions.split(","),
            bench_score=options.score,
            extra_meta=_meta(options.meta),
            lock_file=output or _redirected(options.folder),
        )
    except ValueError as error:
        raise InputError(f"{error}.") from error
    if output is not None:
        with disk_errors(output):
            write_atomic(output, json_bytes(locked))
    if output is None or options.json:
        answer_json(locked)
    else:
        answer(f"{len(locked['artifacts'])} files of {display(options.folder)} are locked in {display(output)}")
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
    from runner.tools.folder_lock.folder_lock import difference_lines, verify_state

    found = verify_state(options.lock, options.folder, strict_git=options.strict_git)
    tell(options, found, lambda: difference_lines(found, options.folder, options.lock, options.strict_git))
    return 0 if found["matches"] else IntegrityError.exit_code


def _redirected(folder: Path) -> Path | None:
    """The file below the folder that stdout goes to, as `> DIR/lock.json` makes it, or None."""
    try:
        written = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(written.st_mode):
        return None
    from runner.tools.folder_lock.folder_lock import files_below

    below = (folder / name for name in files_below(folder))
    return next((path for path in below if os.path.samestat(path.lstat(), written)), None)
