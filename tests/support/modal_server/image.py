"""The file system of a container: what its image would hold, taken from the packages that are installed here.

A package is in the image when a line of its Dockerfile installs it, when such a package needs it, or when modal does;
its version must be the pinned one. So a module that the image forgets is missing in the container too.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_INSTALL = re.compile(r"pip install\b(?P<arguments>.*)")
_OWN_DISTRIBUTION = "per-source-eval"


class BuildError(Exception):
    """The image cannot be built from the packages of this machine."""


def environment_of(dockerfile: Iterable[str]) -> dict[str, str]:
    """Variables of the ENV lines, the last of a name counts."""
    values = {}
    for line in dockerfile:
        if line.startswith("ENV "):
            name, _, value = line.removeprefix("ENV ").partition("=")
            values[name] = "".join(shlex.split(value))
    return values


def pinned(dockerfile: Iterable[str]) -> list[Requirement]:
    """Requirements of all `pip install` lines, but for what files of requirements hold."""
    found = []
    for line in dockerfile:
        if match := _INSTALL.search(line.replace("$(command -v python)", "python")):
            words = iter(shlex.split(match["arguments"]))
            for word in words:
                if word in ("--python", "--index-url", "--extra-index-url", "--find-links", "--requirements", "-r"):
                    next(words)
                elif not word.startswith("-"):
                    found.append(Requirement(word))
    return found


def install(dockerfile: Iterable[str], folder: Path) -> None:
    """Links the packages of the image into `folder`; a BuildError for a pin that is not what is installed here."""
    wanted = pinned(dockerfile)
    for requirement in wanted:
        if requirement.specifier:
            _check(requirement)
    folder.mkdir(parents=True, exist_ok=True)
    for distribution in _closure([*wanted, Requirement("modal")]):
        for path in _tops(distribution):
            link = folder / path.name
            if not link.is_symlink():
                link.symlink_to(path)


def _check(requirement: Requirement) -> None:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError as error:
        raise BuildError(f"{requirement}: not installed here, so the stand-in cannot build the image") from error
    if not requirement.specifier.contains(version, prereleases=True):
        raise BuildError(f"{requirement}: {version} is installed here, so the stand-in cannot build the image")


def _closure(wanted: Iterable[Requirement]) -> Iterator[metadata.Distribution]:
    """The distributions, and what they need, each once; what is needed and not installed here is left out."""
    seen, open_ = set(), list(wanted)
    while open_:
        requirement = open_.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in seen or name == _OWN_DISTRIBUTION:
            continue
        seen.add(key)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        yield distribution
        for text in distribution.requires or ():
            needed = Requirement(text)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)
            ):
                open_.append(needed)


def _tops(distribution: metadata.Distribution) -> Iterator[Path]:
    """Top-level folders and modules of a distribution, its metadata among them."""
    names = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
    for name in sorted(names):
        if not name.endswith(".pth"):
            yield Path(str(distribution.locate_file(name)))
