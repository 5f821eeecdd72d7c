"""What one file of a corpus holds, or why it cannot be read."""

from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

from runner.base.canonical import sha256
from runner.base.errors import DocumentError
from samplers.corpus.inputs import CorpusFile
from samplers.corpus.recognise import named_elsewhere
from samplers.registry import source_format
from samplers.source_format import FileContent

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Outcome(NamedTuple):
    """What a file holds and the digest of its bytes, or the reason why it cannot be read and ""."""

    content: FileContent | str
    digest: str


def outcome(source: str, options: frozenset[str], file: CorpusFile) -> Outcome:
    """Read a file as one of the source."""
    row = source_format(source)
    try:
        data = bytes_of(file, row.max_bytes)
    except DocumentError as error:
        return Outcome(error.reason, "")
    try:
        return Outcome(within_limits(file.place, row.read, data, file.place, options), sha256(data))
    except DocumentError as error:
        return Outcome(named_elsewhere(data, file.place, source) or error.reason, "")


def bytes_of(file: CorpusFile, max_bytes: int) -> bytes:
    """The file's bytes; one that declares or has more than the source allows is refused, the former unread."""
    size = file.size
    if size <= max_bytes:
        data = file.load()
        if (size := len(data)) <= max_bytes:
            return data
    raise DocumentError(file.place, f"{size / 1e6:.0f} MB, more than the limit of {max_bytes / 1e6:.0f} MB")


def within_limits(place: str, work: Callable[_Given, _Result], *given: _Given.args, **named: _Given.kwargs) -> _Result:
    """What the work returns; DocumentError if it needs more memory or stack than there is."""
    try:
        return work(*given, **named)
    except MemoryError as error:
        raise DocumentError(place, "needs more memory than there is") from error
    except RecursionError as error:
        raise DocumentError(place, "nested too deep") from error
