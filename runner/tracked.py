"""What git answers, and whether it holds the files that a decision rests on."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def untracked(paths: Sequence[Path]) -> list[Path]:
    """Those of the existing paths that git does not track; none where there is no git or no repository."""
    existing = [path.resolve() for path in paths if path.exists()]
    if not existing:
        return []
    folder = existing[0].parent
    try:
        root = Path(os.fsdecode(git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")))
        listed = os.fsdecode(git(folder, "ls-files", "--full-name", "-z", "--", *map(str, existing)))
    except (OSError, subprocess.SubprocessError):
        return []
    held = {root / name for name in listed.split("\0") if name}
    return [path for path in existing if path not in held]


def git(folder: Path, *arguments: str) -> bytes:
    """What git prints of a folder, its messages in English; raises OSError or subprocess.SubprocessError."""
    # Looking must neither write the index nor start a monitor that a stranger's repository names.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    environment = os.environ | {"LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment).stdout
