"""Readers by name: what turns one file of a source into documents."""

from collections.abc import Callable, Mapping

from runner.records import Document

MAX_BYTES = 40_000_000
"""The largest file that is read; a larger one is quarantined unread."""

Reader = Callable[[bytes, str], list[Document]]
"""The documents in a file's bytes, given its name; DocumentError where the file cannot be read."""


def _bills(data: bytes, name: str) -> list[Document]:
    from samplers.sample_bills import read_bill  # lxml is loaded when a file is read, not with the command line

    return [read_bill(data, name)]


READERS: Mapping[str, Reader] = {"bills": _bills}
