"""What git says of a folder, and whether it holds the files that a decision rests on.

A repository's settings name programs (filters, monitors, hooks, helpers), and so do those of its submodules. The
folder may be a stranger's, so none of them is run: git looks at the files by way of a repository of its own.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_HARMLESS = (
    r"^core\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|excludesfile|sparsecheckout|"
    r"sparsecheckoutcone|trustctime|checkstat)$"
)
"""Settings that say how files compare; none of them names a program."""

_OF_THE_USER = ("GIT_CEILING_DIRECTORIES", "GIT_CONFIG")
"""How variables begin that are kept; where a hook runs, others name another repository than the folder's."""

_DEEPEST = 10
"""Submodules inside submodules that are looked into."""


def untracked(paths: Sequence[Path]) -> list[Path]:
    """Those of the existing paths that git does not track; none if there is no git or no repository."""
    existing = [path.resolve() for path in paths if path.exists()]
    if not existing:
        return []
    folder = existing[0].parent
    try:
        root = _path(folder, "--show-toplevel")
        listed = os.fsdecode(_git(folder, "ls-files", "--full-name", "-z", "--", *map(str, existing)))
    except (OSError, subprocess.SubprocessError):
        return []
    held = {root / name for name in listed.split("\0") if name}
    return [path for path in existing if path not in held]


def ignored(folder: Path) -> list[str]:
    """What git ignores below a folder, sorted, folders as a whole; none if there is no git or no repository."""
    try:
        listed = _git(folder, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return []
    return sorted(name for name in os.fsdecode(listed).split("\0") if name)


def git_state(repo: Path) -> dict[str, str | bool]:
    """{commit, branch, dirty} of the repository that holds a folder, or {error} with git's own reason.

    `branch` is "HEAD" if none is checked out. `dirty` looks at the whole repository, untracked files and submodules
    included. Filters are not run, so a filtered file (Git LFS) that git would have to read again counts as changed.
    """
    try:
        commit, branch = _head(repo)
        return {"commit": commit, "branch": branch, "dirty": _is_dirty(repo, commit)}
    except FileNotFoundError:
        return {"error": "git is not installed"}
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").partition("\n")[0]
        reason = said.removeprefix("fatal: ").partition(" (or any of the parent")[0]
        return {"error": reason or f"git ended with {error.returncode}"}
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}


def _head(folder: Path) -> tuple[str, str]:
    heads = _git(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD").decode("utf-8", "replace")
    commit, branch = heads.rstrip("\n").split("\n")
    return commit, branch


def _is_dirty(folder: Path, commit: str, depth: int = 0) -> bool:
    root = _path(folder, "--show-toplevel")
    with _without_programs(folder, root, commit) as look:
        if look("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all"):
            return True
        staged = os.fsdecode(look("ls-files", "--stage", "-z")).split("\0")
    modules = [row.removeprefix("160000 ") for row in staged if row.startswith("160000 ")]
    return any(_has_moved(root / row.partition("\t")[2], row.partition(" ")[0], depth + 1) for row in modules)


def _has_moved(module: Path, commit: str, depth: int) -> bool:
    """Whether a submodule, if it is checked out, stands at another commit or is dirty itself."""
    if not os.path.lexists(module / ".git"):
        return False
    # A folder that is no repository of its own would be answered for by the one around it.
    if depth > _DEEPEST or _path(module, "--show-toplevel") != module:
        return True
    return _head(module)[0] != commit or _is_dirty(module, commit, depth)


@contextmanager
def _without_programs(folder: Path, root: Path, commit: str) -> Iterator[Callable[..., bytes]]:
    """Git over the files and the index of a repository, by settings of ours: theirs is not read by what looks."""
    git_dir, shared = (_path(folder, name) for name in ("--absolute-git-dir", "--git-common-dir"))
    settings = ["-c", "core.hooksPath=/dev/null"]
    try:
        listed = os.fsdecode(_git(folder, "config", "--null", "--get-regexp", _HARMLESS))
        settings += [part for row in listed.split("\0") if row for part in ("-c", row.replace("\n", "=", 1))]
    except subprocess.CalledProcessError:
        pass  # none is set
    form = _git(folder, "rev-parse", "--show-object-format").decode().strip()
    with tempfile.TemporaryDirectory() as scratch:
        own = Path(scratch)
        (own / "refs").mkdir()
        (own / "info").mkdir()
        (own / "HEAD").write_text(f"{commit}\n")
        version = "" if form == "sha1" else f"[extensions]\nobjectFormat = {form}\n"
        (own / "config").write_text(f"[core]\nrepositoryFormatVersion = {int(bool(version))}\nbare = false\n{version}")
        links = dict.fromkeys(("objects", "info/exclude", "info/attributes"), shared)
        links |= dict.fromkeys(("index", "info/sparse-checkout"), git_dir)
        links |= {path.name: git_dir for path in git_dir.glob("sharedindex.*")}
        for name, place in links.items():
            if (place / name).exists():
                (own / name).symlink_to(place / name)
        own_only = {"GIT_DIR": scratch, "GIT_WORK_TREE": str(root), "GIT_CONFIG_PARAMETERS": "", "GIT_CONFIG_COUNT": ""}
        own_only |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull}
        yield lambda *arguments: _git(root, *settings, *arguments, environment=own_only)


def _path(folder: Path, which: str) -> Path:
    return (folder / os.fsdecode(_git(folder, "rev-parse", which).removesuffix(b"\n"))).resolve()


def _git(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> bytes:
    """What git prints of a folder, its messages in English; raises OSError or subprocess.SubprocessError."""
    # Looking must neither write the index nor fetch, nor start a monitor that a stranger's repository names.
    command = ["git", "--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_OF_THE_USER)
    }
    told = kept | {"LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1"} | dict(environment or {})
    return subprocess.run(command, capture_output=True, check=True, timeout=60, env=told).stdout
