"""Documents of each file of a corpus, or why it has none; a large corpus is read by two processes."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from runner.base.canonical import sha256
from runner.base.errors import DocumentError
from runner.base.processes import in_processes
from samplers.corpus.inputs import CorpusFile
from samplers.corpus.recognise import named_elsewhere
from samplers.registry import source_format
from samplers.source_format import FileContent

SMALL = 20_000_000
"""Bytes of a corpus up to which no process is started: it takes .2 s, in which 5 MB are read."""

BATCH = 32
"""Files that are handed to a process at once."""


class Outcome(NamedTuple):
    """Documents of a file and the digest of its bytes, or the reason why it cannot be read and ""."""

    content: FileContent | str
    digest: str


def outcomes(source: str, options: frozenset[str], files: Sequence[CorpusFile]) -> Iterator[Outcome]:
    """Yield what each file holds, in the order of the files; what a process that died left unread is read here."""
    if sum(file.size for file in files) <= SMALL or (os.cpu_count() or 1) == 1:
        yield from (outcome(source, options, file) for file in files)
        return
    parts = (files[start : start + BATCH] for start in range(0, len(files), BATCH))
    work = partial(_all, source, options)
    for found in in_processes(work, parts, lambda part: [outcome(source, options, file) for file in part]):
        yield from found


def _all(source: str, options: frozenset[str], files: Sequence[CorpusFile]) -> list[Outcome]:
    return [outcome(source, options, file) for file in files]


def outcome(source: str, options: frozenset[str], file: CorpusFile) -> Outcome:
    """Read a file as one of the source."""
    row = source_format(source)
    try:
        data = _bytes_of(file, row.max_bytes)
    except DocumentError as error:
        return Outcome(error.reason, "")
    try:
        return Outcome(row.read(data, file.place, options), sha256(data))
    except DocumentError as error:
        return Outcome(named_elsewhere(data, file.place, source) or error.reason, "")
    except MemoryError:
        return Outcome("needs more memory than there is", "")
    except RecursionError:
        return Outcome("nested too deep", "")


def _bytes_of(file: CorpusFile, max_bytes: int) -> bytes:
    """Return the file's bytes; one that declares or has more than the source allows is refused, the former unread."""
    size = file.size
    if size <= max_bytes:
        data = file.load()
        if (size := len(data)) <= max_bytes:
            return data
    raise DocumentError(file.place, f"{size / 1e6:.0f} MB, more than the limit of {max_bytes / 1e6:.0f} MB")
