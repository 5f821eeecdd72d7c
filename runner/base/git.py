"""What git says of a folder, and whether it holds the files that a decision rests on."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def untracked(paths: Sequence[Path]) -> list[Path]:
    """Those of the existing paths that git does not track; none if there is no git or no repository."""
    existing = [path.resolve() for path in paths if path.exists()]
    if not existing:
        return []
    folder = existing[0].parent
    try:
        root = Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")))
        listed = os.fsdecode(_git(folder, "ls-files", "--full-name", "-z", "--", *map(str, existing)))
    except (OSError, subprocess.SubprocessError):
        return []
    held = {root / name for name in listed.split("\0") if name}
    return [path for path in existing if path not in held]


def git_state(repo: Path) -> dict[str, str | bool]:
    """{commit, branch, dirty} of the repository that holds a folder, or {error} with git's own reason.

    `branch` is "HEAD" if none is checked out. `dirty` looks at the whole repository, untracked files included.
    """
    try:
        heads = _git(repo, "rev-parse", "HEAD", "--abbrev-ref", "HEAD").decode("utf-8", "replace")
        commit, branch = heads.rstrip("\n").split("\n")
        return {"commit": commit, "branch": branch, "dirty": bool(_git(repo, "status", "--porcelain"))}
    except FileNotFoundError:
        return {"error": "git is not installed"}
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").partition("\n")[0]
        reason = said.removeprefix("fatal: ").partition(" (or any of the parent")[0]
        return {"error": reason or f"git ended with {error.returncode}"}
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}


def _git(folder: Path, *arguments: str) -> bytes:
    """What git prints of a folder, its messages in English; raises OSError or subprocess.SubprocessError."""
    # Looking must neither write the index nor start a monitor that a stranger's repository names.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    environment = os.environ | {"LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment).stdout
