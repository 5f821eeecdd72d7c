"""What git says of a folder, and whether it holds the files that a decision rests on.

The folder may be a stranger's, and a repository's settings name programs (filters, monitors, hooks, helpers): none of
them is run.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_OF_THE_USER = ("GIT_CEILING_DIRECTORIES", "GIT_CONFIG")
"""How variables begin that are kept; where a hook runs, others name another repository than the folder's."""


def untracked(paths: Sequence[Path]) -> list[Path]:
    """Return those of the existing paths that git does not track; none if there is no git or no repository."""
    existing = [path.resolve() for path in paths if path.exists()]
    if not existing:
        return []
    folder = existing[0].parent
    try:
        root = Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").removesuffix(b"\n"))).resolve()
        listed = os.fsdecode(_git(folder, "ls-files", "--full-name", "-z", "--", *map(str, existing)))
    except (OSError, subprocess.SubprocessError):
        return []
    tracked = {root / name for name in listed.split("\0") if name}
    return [path for path in existing if path not in tracked]


def ignored(folder: Path) -> list[str]:
    """Return what git ignores below a folder, sorted, folders as a whole; none if there is no git or repository."""
    with suppress(OSError, subprocess.SubprocessError):
        _git(folder, "check-ignore", "-q", ".")  # it fails for a folder that is not ignored itself
        return sorted(path.name for path in folder.iterdir())
    try:
        listed = _git(folder, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return []
    return sorted(name for name in os.fsdecode(listed).split("\0") if name)


def git_state(repo: Path) -> dict[str, str | bool]:
    """Return {commit, branch, dirty} of the repository that holds a folder, or {error} with git's own reason.

    `branch` is "HEAD" if none is checked out. `dirty` looks at the whole repository, with untracked files and the
    commits of submodules, but not into these. Filters are not run, so a filtered file (Git LFS) that git would have to
    read again counts as changed.
    """
    try:
        heads = _git(repo, "rev-parse", "HEAD", "--abbrev-ref", "HEAD").decode("utf-8", "replace")
        commit, branch = heads.rstrip("\n").split("\n")
        status = ("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
        return {"commit": commit, "branch": branch, "dirty": bool(_git(repo, *status, settings=_no_filters(repo)))}
    except FileNotFoundError:
        return {"error": "git is not installed"}
    except subprocess.CalledProcessError as error:
        message = error.stderr.decode("utf-8", "replace").partition("\n")[0]
        reason = message.removeprefix("fatal: ").partition(" (or any of the parent")[0]
        return {"error": reason or f"git ended with {error.returncode}"}
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}


def _no_filters(repo: Path) -> dict[str, str]:
    """Return settings under which every filter that a repository has set up is idle."""
    try:
        listed = os.fsdecode(_git(repo, "config", "--null", "--name-only", "--get-regexp", r"^filter\."))
    except subprocess.CalledProcessError:
        return {}  # none is set
    return {name: "false" if name.endswith(".required") else "" for name in listed.split("\0") if name}


def _git(folder: Path, *arguments: str, settings: Mapping[str, str] | None = None) -> bytes:
    """Return what git prints of a folder, its messages in English; raise OSError or subprocess.SubprocessError."""
    # Looking must neither write the index, nor fetch, nor start a monitor or a hook that a stranger's repository names.
    harmless = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    command = ["git", "--no-optional-locks", "--no-pager", *harmless, "-C", str(folder), *arguments]
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_OF_THE_USER)
    }
    if settings:  # by the environment, where a name may hold "=" as it may not behind -c
        inherited["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (name, value) in enumerate(settings.items()):
            inherited |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    environment = inherited | {"LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1"}
    return subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment).stdout
