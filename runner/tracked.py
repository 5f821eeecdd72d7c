"""Whether git holds the files that a decision rests on."""

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
        root = Path(_git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
        listed = _git(folder, "ls-files", "--full-name", "-z", "--", *map(str, existing))
    except (OSError, subprocess.SubprocessError):
        return []
    held = {root / name for name in listed.split("\0") if name}
    return [path for path in existing if path not in held]


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=True, timeout=20, text=True).stdout
