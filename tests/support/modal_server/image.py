"""The file system of a container: what its image would hold, taken from the packages that are installed here.

A package is in the image when a line of its Dockerfile pins it, when such a package needs it, or when modal does; its
version must be the pinned one. So a module that the image forgets is missing in the container too.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_PIN = re.compile(r"[\w.-]+==[\w.+]+")
_OWN_DISTRIBUTION = "per-source-eval"


def environment_of(dockerfile: Iterable[str]) -> dict[str, str]:
    """Return the variables of the ENV lines; the last of a name counts."""
    lines = (line.removeprefix("ENV ").partition("=") for line in dockerfile if line.startswith("ENV "))
    return {name: "".join(shlex.split(value)) for name, _, value in lines}


def install(dockerfile: Iterable[str], folder: Path) -> None:
    """Link the packages of the image into `folder`; an AssertionError for a pin that is not what is installed here."""
    wanted = [Requirement(pin) for line in dockerfile if "pip install" in line for pin in _PIN.findall(line)]
    for pin in wanted:
        assert pin.specifier.contains(metadata.version(pin.name), prereleases=True), f"{pin}: another is installed here"
    folder.mkdir(parents=True)
    for distribution in _closure([*wanted, Requirement("modal")]):
        # Top-level folders and modules, its metadata among them.
        names = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        for name in names:
            if not name.endswith(".pth") and not (folder / name).is_symlink():
                (folder / name).symlink_to(str(distribution.locate_file(name)))


def _closure(wanted: list[Requirement]) -> Iterator[metadata.Distribution]:
    """Yield the distributions and what they need, each once; what is needed and not installed here is left out."""
    seen = set()
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        key = name, frozenset(requirement.extras)
        if key in seen or name == _OWN_DISTRIBUTION:
            continue
        seen.add(key)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        yield distribution
        for needed in map(Requirement, distribution.requires or ()):
            extras = ("", *requirement.extras)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                wanted.append(needed)
