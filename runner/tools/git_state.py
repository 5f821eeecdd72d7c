"""What git says of a folder: the commit it stands at, the branch, and whether anything is uncommitted."""

import subprocess
from pathlib import Path

from runner.tracked import git


def git_state(repo: Path) -> dict[str, str | bool]:
    """{commit, branch, dirty} of the repository that holds a folder, or {error} with git's own reason.

    `branch` is "HEAD" where none is checked out. `dirty` looks at the whole repository, untracked files included.
    """
    try:
        heads = git(repo, "rev-parse", "HEAD", "--abbrev-ref", "HEAD").decode("utf-8", "replace")
        commit, branch = heads.rstrip("\n").split("\n")
        return {"commit": commit, "branch": branch, "dirty": bool(git(repo, "status", "--porcelain"))}
    except FileNotFoundError:
        return {"error": "git is not installed"}
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").partition("\n")[0]
        reason = said.removeprefix("fatal: ").partition(" (or any of the parent")[0]
        return {"error": reason or f"git ended with {error.returncode}"}
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
