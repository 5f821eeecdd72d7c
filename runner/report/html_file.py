"""Places where pages and tables may go, and the writing of a page that belongs to no record."""

import re
from pathlib import Path

from runner.base.canonical import write_atomic
from runner.base.errors import BackendError, InputError
from runner.base.places import EVAL_SETS

_MADE_HERE = b'<meta name="generator" content="per-source-eval, '
_OF_A_VERSION = ("plan.yaml", "decision.json")
_HEAD = 4_000
"""Bytes from a page's beginning within which it says what it is."""


def outside_records(path: Path, work: Path | None, *committed: Path, flag: str = "--output") -> None:
    """Raise InputError if `path` lies in EVAL_SETS, a `committed` folder or any version, but not below `work`.

    The error asks for another `flag`, and comes for links in a circle too.
    """
    try:
        place = path.resolve()
        folders = [folder.resolve() for folder in (*committed, EVAL_SETS)]
        # Beside an eval set of its own, the folder for work lies within.
        if work is not None and place.is_relative_to(work.resolve()):
            return
        inside = [folder for folder in folders if place.is_relative_to(folder)]
        versions = (folder for folder in (place, *place.parents) if re.fullmatch(r"v\d+", folder.name))
        inside += [folder for folder in versions if any((folder / name).exists() for name in _OF_A_VERSION)]
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path} cannot be used (links in a circle?). Give {flag} another place.") from error
    if inside:
        raise InputError(
            f"{path} lies in {inside[0]}, which is committed: only a run writes there. Give {flag} another place."
        )


def write_html(path: Path, content: bytes, work: Path | None, *committed: Path, flag: str = "--output") -> Path:
    """Write a page whole and return its path: outside of records, over nothing but a page of this tool.

    Raises InputError for another place, BackendError if it cannot be written.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path} would be written as an HTML page. Give {flag} a name that ends in .html.")
    outside_records(path, work, *committed, flag=flag)
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give {flag} the name of a file.")
    try:
        # A mistyped path must not cost anybody a file.
        if path.exists() and not _is_page(path):
            raise InputError(f"{path} exists and is no page of this tool. Move it away, or give {flag} another place.")
        write_atomic(path, content)
    except OSError as error:
        raise BackendError(f"{path} cannot be written ({error.strerror}). Give {flag} another place.") from error
    return path


def _is_page(path: Path) -> bool:
    """Return whether a regular file is a page of this tool."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return _MADE_HERE in stream.read(_HEAD)
