"""Parts that other distributions bring by their entry points; looked for when a name is none of this tool's own.

A group is `per_source_eval.chunkers`, `.readers`, `.encoders` or `.judges`. Nothing of a plug-in is imported before its
name is asked for.
"""

import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from runner.base.canonical import digest, file_sha256
from runner.base.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["chunkers", "readers", "encoders", "judges"]

_PACKAGES = tuple(f"{Path(__file__).parents[2] / name}{os.sep}" for name in ("runner", "chunkers", "samplers"))
"""Where this tool's own code lies."""

_PREFIX = "per_source_eval"
_OURS = "per-source-eval"
_T = TypeVar("_T")


@dataclass(frozen=True)
class PlugIn:
    """A part of an installed distribution, by the name that plans have for it."""

    group: Group
    entry: "EntryPoint"

    @property
    def name(self) -> str:
        """As cells, plans and command lines have it."""
        return self.entry.name

    @property
    def origin(self) -> str:
        """The distribution and its version."""
        return _origin(self.entry)

    def instance(self, kind: type[_T], place: str = "") -> _T:
        """What lies at "module:name", by default the entry point's, if it is of that type.

        An InputError, which names the distribution, if it cannot be imported or is something else.
        """
        value = self._had(place or self.entry.value)
        if not isinstance(value, kind):
            there = f"has a {type(value).__name__} at {place or self.entry.value!r}"
            raise self._wrong(f"{there}, where a {kind.__name__} of {kind.__module__} belongs")
        return value

    def subclass(self, kind: type[_T], place: str = "") -> type[_T]:
        """The class at "module:name", derived from that one; defaults and errors as `instance` has them."""
        value = self._had(place or self.entry.value)
        if not (isinstance(value, type) and issubclass(value, kind)):
            there = f"has no class derived from {kind.__name__} of {kind.__module__}"
            raise self._wrong(f"{there} at {place or self.entry.value!r}")
        return value

    def _had(self, place: str) -> object:
        try:
            value: object = type(self.entry)(self.name, place, "").load()
        except (Exception, SystemExit) as error:
            raise self._wrong(f"cannot be imported ({raised(error)})") from error
        return value

    def _wrong(self, said: str) -> InputError:
        return InputError(
            f"{self.name} of {self.origin} ({self.entry.value}) {said}. Mend the distribution and install it again, or "
            "name another part."
        )

    @cached_property
    def pin(self) -> str:
        """Distribution, version and the SHA-256 of what it runs, as `plug_ins` of a plan has them.

        Digested are the distribution's installed files without metadata and bytecode, and the versions of those of its
        requirements that are installed. Of an editable install, whose files lie elsewhere, those beside the module, and
        the pin says so: no plan takes it.
        """
        self._had(self.entry.value)
        module = Path(str(sys.modules[self.entry.module].__file__)).resolve()
        files = _installed_files(self.entry)
        editable = module not in files.values()
        if editable:
            inside = "." in self.entry.module or module.name == "__init__.py"
            beside = sorted(module.parent.rglob("*.py")) if inside else [module]
            files = {path.relative_to(module.parent).as_posix(): path for path in beside}
        held = {name: file_sha256(path) for name, path in files.items()}
        said = digest({"files": held, "requires": _requirements(self.entry)})
        return f"{self.origin}{' editable' if editable else ''} sha256:{said}"


PIN = r"^\S+ \S+ sha256:[0-9a-f]{64}$"
"""A pin that a plan takes."""


def plug_in(group: Group, name: str, built_in: Collection[str]) -> PlugIn | None:
    """The plug-in of that name, nothing of it imported; None if no installed distribution has one.

    An InputError if any distribution takes the name of one that is built in, or two have the same.
    """
    found = _installed(group)
    if taken := [one for one in found.values() if one.name in built_in]:
        raise InputError(
            f"{taken[0].origin} registers {taken[0].name!r} among {_PREFIX}.{group}, and that name is built in. "
            "Uninstall it, or give its part another name."
        )
    return found.get(name)


def plug_ins(group: Group, built_in: Collection[str]) -> list[PlugIn]:
    """All of a group, by name; raises as `plug_in` does."""
    plug_in(group, "", built_in)
    return list(_installed(group).values())


def any_installed() -> bool:
    """Whether an installed distribution registers a plug-in of any group."""
    from importlib.metadata import entry_points

    return any(entry_points(group=f"{_PREFIX}.{group}") for group in get_args(Group))


@cache
def _installed(group: Group) -> Mapping[str, PlugIn]:
    from importlib.metadata import entry_points

    entries = sorted(entry_points(group=f"{_PREFIX}.{group}"), key=lambda entry: entry.name)
    if twice := [name for name, count in Counter(entry.name for entry in entries).items() if count > 1]:
        both = " and ".join(_origin(entry) for entry in entries if entry.name == twice[0])
        raise InputError(f"{both} both register {twice[0]!r} among {_PREFIX}.{group}. Uninstall one of them.")
    return {entry.name: PlugIn(group, entry) for entry in entries}


def raised(error: BaseException) -> str:
    """A plug-in's error in words, with the last line of code that is neither this tool's nor of Python's import."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_PACKAGES) and "importlib" not in frame.filename
    ]
    where = f", at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _origin(entry: "EntryPoint") -> str:
    assert entry.dist is not None
    return f"{entry.dist.name} {entry.dist.version}"


def _installed_files(entry: "EntryPoint") -> dict[str, Path]:
    """The distribution's files by their paths below its folder; scripts, metadata and bytecode are left out."""
    assert entry.dist is not None
    return {
        file.as_posix(): Path(str(file.locate())).resolve()
        for file in entry.dist.files or ()
        if file.parts[0] != ".." and not file.parts[0].endswith((".dist-info", ".egg-info")) and file.suffix != ".pyc"
    }


def _requirements(entry: "EntryPoint") -> dict[str, str]:
    """Versions of the distribution's direct requirements, those of its extras too, as far as they are installed."""
    from importlib.metadata import PackageNotFoundError, version

    assert entry.dist is not None
    names = {found[0] for line in entry.dist.requires or () if (found := re.match(r"[A-Za-z0-9._-]+", line))}
    known = {}
    for name in sorted(names - {_OURS}):
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            continue
    return known
