"""Chunkers and encoders that are none of this tool's: those of other distributions, and those that a program lends.

A group is `per_source_eval.chunkers` or `per_source_eval.encoders`. Nothing of a plug-in is imported before its name is
asked for.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from runner.base.canonical import file_sha256
from runner.base.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["chunkers", "encoders"]


@dataclass(frozen=True)
class PlugIn:
    """A part of an installed distribution, by the name that cells have for it."""

    entry: "EntryPoint"

    @property
    def origin(self) -> str:
        """The distribution and its version."""
        assert self.entry.dist is not None
        return f"{self.entry.dist.name} {self.entry.dist.version}"

    @property
    def state(self) -> str:
        """The distribution, its version and the digest of its module: what was made in another state is made again."""
        self.load()
        return f"{self.origin} sha256:{file_sha256(Path(str(sys.modules[self.entry.module].__file__)))}"

    def load(self) -> Any:  # noqa: ANN401  # whatever the distribution has there; its group checks it
        """Return what the entry point names; raise InputError if it cannot be imported."""
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:
            raise self.wrong(f"cannot be imported ({type(error).__name__}: {error})") from error

    def wrong(self, fault: str) -> InputError:
        """Return the error of a part that is not what its group asks for."""
        return InputError(
            f"{self.entry.name} of {self.origin} ({self.entry.value}) {fault}. Mend the distribution and install it "
            "again, or name another part."
        )


@dataclass(frozen=True)
class Lent(PlugIn):
    """A part that a running program lends for one evaluation; `sha256` is the digest of all that it makes there."""

    part: Any
    sha256: str
    origin = "this program"

    @property
    def state(self) -> str:
        """The digest: what another function made under the same name is never taken for this one's."""
        return f"lent sha256:{self.sha256}"

    def load(self) -> Any:  # noqa: ANN401
        """Return the part."""
        return self.part


_lent: list[Lent] = []


@contextmanager
def lent(parts: Sequence[Lent]) -> Iterator[None]:
    """Let the names of these parts be found inside the block."""
    _lent.extend(parts)
    try:
        yield
    finally:
        del _lent[-len(parts) or len(_lent) :]


def plug_in(group: Group, name: str) -> PlugIn | None:
    """Return the plug-in of that name, nothing of it imported, or None; raise InputError if two have the name."""
    for part in _lent:
        if (part.entry.group, part.entry.name) == (group, name):
            return part
    plug_ins = [PlugIn(entry) for entry in _entries(group) if entry.name == name]
    if len(plug_ins) > 1:
        both = " and ".join(sorted(each.origin for each in plug_ins))
        raise InputError(f"{both} both register {name!r} among per_source_eval.{group}. Uninstall one of them.")
    return plug_ins[0] if plug_ins else None


@cache
def _entries(group: Group) -> tuple["EntryPoint", ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=f"per_source_eval.{group}"))
