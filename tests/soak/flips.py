"""One flipped bit in a locked version: `verify` and every command that would use the version refuse it, exit 4."""

import io
import os
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from runner.base.errors import IntegrityError
from runner.base.places import CACHE_VARIABLE
from runner.base.store import exclusive
from runner.commands import main as cli
from runner.eval_set.lock import LOCK_NAME, locked_files
from tests.soak.trials import Kind, Trial
from tests.support.evening_process import run
from tests.support.small_set import make_version

COMMANDS = (
    ("--dry-run",),
    (),
    ("choose", "recommended"),
    ("--rehearse", "--dry-run"),
    ("--cells", "bm25-okapi x whole_doc"),
    ("bulk-gate", "600"),
    ("view", "--passages"),
    ("export", "--format", "csv", "--output", "{folder}/tables"),
    ("labels", "import", "nothing.jsonl", "--person"),
    ("labels", "agreement"),
    ("replay",),
)
"""Each takes its turn after `verify`."""


def _trials(work: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    whole = work / "flips"
    with exclusive(work / "flips.lock", "a soak"):
        if not (whole / "done").exists():
            shutil.rmtree(whole, ignore_errors=True)
            run(whole)
            (whole / "done").touch()
    folder = work / f"flips-{numbers[0]}"
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    version = make_version(folder).record
    os.environ[CACHE_VARIABLE] = str(folder / ".cache")
    paths = [version / name for name in (*locked_files(version), LOCK_NAME)]
    for number in numbers:
        began, rng = time.perf_counter(), random.Random(f"flips {seed} {number}")
        path = paths[rng.randrange(len(paths))]
        content = path.read_bytes()
        place, bit = rng.randrange(len(content)), rng.randrange(8)
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
        command = COMMANDS[number % len(COMMANDS)]
        found = "; ".join(said for one in (("verify",), command) if (said := _taken(folder, one, path.name)))
        path.write_bytes(content)
        what = f"bit {bit} of byte {place} of {path.relative_to(version)}, {' '.join(command) or 'the evening'}"
        yield Trial("flips", number, 1, what, "taken" if found else "refused", time.perf_counter() - began, found)
    if code := _called(folder, ("verify",))[0]:
        raise RuntimeError(f"the version that was mended is refused: exit {code}")
    shutil.rmtree(folder)


def _taken(folder: Path, command: Sequence[str], name: str) -> str:
    """What is wrong with a command's answer to a version with a changed file of that name; "" if it refuses it."""
    code, out, err = _called(folder, command)
    if code == IntegrityError.exit_code and name in err and not out:
        return ""
    return f"{' '.join(command) or 'the evening'}: exit {code}, {(out + err)[-200:]!r}"


def _called(folder: Path, command: Sequence[str]) -> tuple[int, str, str]:
    arguments = [word.format(folder=folder) for word in command]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = cli.main([*arguments, "--source=demo", f"--eval-set-path={folder / 'eval-sets' / 'demo'}"])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return code, out.getvalue(), err.getvalue()


KIND = Kind(_trials, at_once=200, unit="flips")
