"""A lock over any folder: SHA-256 of every file below it, the git commit beside it, and a digest of the lock itself.

It is no signature: whoever can write both the folder and the lock can make the two agree. Files are read one at a time
and as they are: a link by its text, and a file that changes meanwhile is an error.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from runner.base.canonical import JSON, digest, json_line, read_json, sha256
from runner.base.errors import InputError
from runner.base.git import git_state
from runner.base.given_files import LONGEST_LINE, display, printable
from runner.base.schema import Count, FrozenModel, Sha256, checked
from runner.base.terminal import MARKS


def files_below(folder: Path) -> set[str]:
    """The POSIX paths, relative to the folder, of everything below it that is no folder.

    Links are not followed, ".git" is left out, and a name that is not UTF-8 comes with surrogates. InputError for a
    folder that cannot be read.
    """
    with _readable(folder):
        return set(_walk(folder))


def _walk(folder: Path) -> Iterator[str]:
    pending = [""]
    while pending:
        below = pending.pop()
        with os.scandir(folder / below) as entries:
            for entry in entries:
                if entry.name == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{below}{entry.name}/")
                else:
                    yield below + entry.name


def file_entry(folder: Path, name: str) -> dict[str, JSON]:
    """{sha256, size_bytes} of a file below a folder; of a symbolic link those of its text, and link: True.

    InputError for one that is neither, cannot be read, or changes (or is replaced) while it is read.
    """
    path = folder / name
    with _readable(path):
        before = path.lstat()
        if stat.S_ISLNK(before.st_mode):
            text = os.fsencode(path.readlink())
            return {"sha256": sha256(text), "size_bytes": len(text), "link": True}
        if not stat.S_ISREG(before.st_mode):
            raise InputError(f"{display(path)} is no file but a pipe, socket or device. Move it out of the folder.")
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if _identity(before) != _identity(path.lstat()):
            raise InputError(f"{display(path)} changed while it was read. Stop what writes to it, then try again.")
    return {"sha256": found, "size_bytes": before.st_size}


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def name_inside(folder: Path, path: Path) -> str:
    """The POSIX path of a file relative to the folder that it lies in, however deep, or "" if it lies elsewhere."""
    place = path.parent.resolve() / path.name
    root = folder.resolve()
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else ""


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{display(error.filename or path)} cannot be read ({error.strerror}).") from error


SKIP_PREFIXES = (".fuse_hidden",)
SKIP_SUFFIXES = (".db-wal", ".db-shm")

_Text = Annotated[str, Field(min_length=1)]


class _Entry(FrozenModel):
    sha256: Sha256
    size_bytes: Count
    link: Literal[True] | None = None


class _Rules(FrozenModel):
    """Which files count: those with one of `extensions`, or all, less the skipped and `own`, the lock's own path."""

    extensions: list[_Text] | None
    skip_prefixes: list[_Text]
    skip_suffixes: list[_Text]
    own: str = ""

    def count(self, name: str) -> bool:
        """Whether the file at a POSIX path is one to lock."""
        path = PurePosixPath(name)
        return (
            name != self.own
            and (self.extensions is None or path.suffix in self.extensions)
            and not path.name.startswith(tuple(self.skip_prefixes))
            and not path.name.endswith(tuple(self.skip_suffixes))
        )


class _GitState(FrozenModel):
    commit: str
    branch: str
    dirty: bool


class _GitError(FrozenModel):
    error: str


class _Bench(FrozenModel):
    score: Annotated[float, Field(allow_inf_nan=False)]


class _FolderLock(FrozenModel):
    """Version 2 is this module's; version 1, without rules and root digest, is falsify-eval's."""

    version: Literal[1, 2]
    generated_at: str
    git: _GitState | _GitError
    artifacts: dict[str, _Entry]
    bench: _Bench | None = None
    meta: dict[str, Any] | None = None
    rules: _Rules | None = None
    root_sha256: Sha256 | None = None


_EVERY_FILE = _Rules(extensions=None, skip_prefixes=list(SKIP_PREFIXES), skip_suffixes=list(SKIP_SUFFIXES))
_FALSIFY_EVAL = _EVERY_FILE.model_copy(
    update={"extensions": [".bin", ".db", ".json", ".npy", ".npz", ".parquet", ".pkl"]}
)


def lock_state(
    artifact_dir: str | Path,
    *,
    git_repo: str | Path | None = None,
    tracked_extensions: Iterable[str] | None = None,
    skip_prefixes: Iterable[str] = SKIP_PREFIXES,
    skip_suffixes: Iterable[str] = SKIP_SUFFIXES,
    bench_score: float | None = None,
    extra_meta: Mapping[str, JSON] | None = None,
    lock_file: str | Path | None = None,
) -> dict[str, JSON]:
    """The lock of a folder as it is, ready for JSON.

    Every file counts unless `tracked_extensions` (".json", a name's last suffix) says otherwise; ".git" never does. A
    lock at `lock_file` inside the folder does not lock itself. A symbolic link is locked by its text. InputError if no
    file counts or one cannot be read, changes meanwhile, has a name that is not UTF-8 or is a pipe or socket;
    ValueError or TypeError on a wrong argument.
    """
    folder = Path(artifact_dir)
    rules = _rules(_EVERY_FILE, tracked_extensions, skip_prefixes, skip_suffixes)
    if lock_file is not None:
        rules = rules.model_copy(update={"own": name_inside(folder, Path(lock_file))})
    lock: dict[str, JSON] = {
        "version": 2,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "git": git_state(folder if git_repo is None else Path(git_repo)),
        "artifacts": _artifacts(folder, rules),
        "rules": rules.model_dump(),
    }
    if bench_score is not None:
        if not math.isfinite(bench_score):
            raise ValueError(f"bench_score must be finite, got {bench_score}")
        lock["bench"] = {"score": float(bench_score)}
    if extra_meta:
        lock["meta"] = dict(extra_meta)
    lock = json.loads(json_line(lock))  # as a file gives it back, or the digest would not be that of the file
    return lock | {"root_sha256": digest(lock)}


def verify_state(
    lock: Mapping[str, JSON] | str | Path,
    artifact_dir: str | Path,
    *,
    git_repo: str | Path | None = None,
    tracked_extensions: Iterable[str] | None = None,
    skip_prefixes: Iterable[str] | None = None,
    skip_suffixes: Iterable[str] | None = None,
    strict_git: bool = False,
) -> dict[str, JSON]:
    """How a folder differs from its lock: {matches, missing, extra, changed, lock_edited, git_drift, ...}.

    A locked file is compared whatever the rules say; they say which further files are `extra`, never the lock's own.
    They are the lock's unless others are given; a lock of falsify-eval has none, so its defaults apply (it followed
    symbolic links, which show as changed here). `git_drift` ("old -> new") counts with `strict_git` alone, since
    committing a lock moves the commit. InputError if `lock` is no lock of a folder, locks nothing, names a path
    outside the folder or a file that cannot be read.
    """
    folder = Path(artifact_dir)
    if isinstance(lock, Mapping):
        value, where, own = lock, "the lock", ""
    else:
        value, where, own = read_json(Path(lock)), display(lock), name_inside(folder, Path(lock))
    told, edited = _checked_lock(value, where)
    rules = _rules(told.rules or _FALSIFY_EVAL, tracked_extensions, skip_prefixes, skip_suffixes)
    found = files_below(folder)
    further = {name for name in found - told.artifacts.keys() if rules.count(name) and name != own}
    now = git_state(folder if git_repo is None else Path(git_repo))
    drift = _drift(told.git, now)
    differences = {
        "missing": sorted(told.artifacts.keys() - found),
        "extra": sorted(map(display, further)),
        "changed": _changed(folder, {name: told.artifacts[name] for name in sorted(told.artifacts.keys() & found)}),
        "lock_edited": edited,
    }
    return {
        "matches": not any(differences.values()) and not (strict_git and drift),
        **differences,
        "git_drift": drift,
        "git_now": now,
        "files": len(told.artifacts),
        **told.model_dump(include={"generated_at", "git", "bench", "meta"}, exclude_none=True),
    }


def _rules(
    base: _Rules, extensions: Iterable[str] | None, prefixes: Iterable[str] | None, suffixes: Iterable[str] | None
) -> _Rules:
    given = {"extensions": extensions, "skip_prefixes": prefixes, "skip_suffixes": suffixes}
    texts = {name: _texts(name, values) for name, values in given.items() if values is not None}
    for extension in texts.get("extensions", ()):
        if PurePosixPath(f"x{extension}").suffix != extension:
            raise ValueError(f"an extension is a dot and what follows the last one, as in .json; got {extension!r}")
    return base.model_copy(update=texts)


def _texts(name: str, values: Iterable[str]) -> list[str]:
    texts = [values] if isinstance(values, str) else sorted(values)
    if isinstance(values, str) or not all(texts):
        raise ValueError(f"{name} must be several texts, none of them empty, got {values!r}")
    return texts


def _artifacts(folder: Path, rules: _Rules) -> dict[str, dict[str, JSON]]:
    names = sorted(name for name in files_below(folder) if rules.count(name))
    if not names:
        raise InputError(f"{display(folder)} holds no file to lock. Name another folder, or other extensions.")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{display(folder / name)}: this name is not UTF-8. Rename the file to lock it."
            ) from error
    return {name: file_entry(folder, name) for name in names}


def _checked_lock(value: JSON, where: str) -> tuple[_FolderLock, bool]:
    """A lock, and whether it was edited after it was written."""
    version = value.get("version") if isinstance(value, Mapping) else None
    if version not in (1, 2):
        found = printable(repr(version), longest=40)
        raise InputError(
            f"{where} is no lock of a folder: its version is {found}, not 2, nor 1 of falsify-eval. Lock the folder."
        )
    try:
        root = digest({key: part for key, part in value.items() if key != "root_sha256"})
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{where} is damaged ({error}). Restore it, or lock the folder again.") from error
    lock = checked(_FolderLock, value, where)
    outside = [name for name in lock.artifacts if not _is_below(name)]
    if outside:
        raise InputError(
            f"{where} names a path that is not below the folder: {display(outside[0])}. It is not verified."
        )
    if not lock.artifacts:
        raise InputError(f"{where} locks no file, so it can show nothing. Lock the folder again.")
    if lock.version == 1 and lock.root_sha256 is None:
        return lock, False
    return lock, lock.root_sha256 != root


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return str(path) == name != "." and not path.is_absolute() and ".." not in path.parts


def _changed(folder: Path, locked: Mapping[str, _Entry]) -> list[dict[str, str]]:
    rows = []
    for name, expected in locked.items():
        actual = _Entry(**file_entry(folder, name))
        if actual != expected:
            rows.append({"path": name, "expected_sha256": expected.sha256, "actual_sha256": actual.sha256})
    return rows


def _drift(locked: _GitState | _GitError, now: Mapping[str, str | bool]) -> str | None:
    if isinstance(locked, _GitError) or locked.commit == now.get("commit"):
        return None
    return f"{locked.commit[:8]} -> {str(now.get('commit', 'none'))[:8]}"


def difference_lines(found: Mapping[str, Any], folder: Path, lock: Path, strict_git: bool) -> list[str]:
    """An answer of `verify_state` on a terminal: each difference, else that there is none; then git, score and meta."""
    lines = [f"{MARKS['fail']} {lock} was edited after it was written"] if found["lock_edited"] else []
    lines += [f"{MARKS['fail']} missing: {name}" for name in found["missing"]]
    for row in found["changed"]:
        digests = f"locked {row['expected_sha256'][:16]}, found {row['actual_sha256'][:16]}"
        lines.append(f"{MARKS['fail']} changed: {row['path']} ({digests})")
    lines += [f"{MARKS['fail']} extra: {name}" for name in found["extra"]]
    if not lines:
        lines.append(f"{MARKS['pass']} {folder}: {found['files']} files as locked on {found['generated_at']}")
    if found["git_drift"]:
        drift = found["git_drift"].replace("->", "→")
        lines.append(f"{MARKS['fail'] if strict_git else '?'} git commit moved: {drift}")
    locked, now = _git_words(found["git"]), _git_words(found["git_now"])
    lines.append(f"git: {now}, as locked" if now == locked else f"git: locked at {locked}; now at {now}")
    if "bench" in found:
        lines.append(f"score: {found['bench']['score']:g}")
    lines += [f"{key}: {value}" for key, value in sorted(found.get("meta", {}).items())]
    return [printable(line, LONGEST_LINE) for line in lines]


def _git_words(state: Mapping[str, Any]) -> str:
    if "error" in state:
        return f"no commit ({state['error']})"
    return f"{state['commit'][:8]} on {state['branch']}" + (", with uncommitted changes" if state["dirty"] else "")
