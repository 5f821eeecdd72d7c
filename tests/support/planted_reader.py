"""A reader that misbehaves as its input says: what the search for defects must find."""

from pathlib import Path

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.source_format import FileContent, SourceFormat
from tests.support.reader_mutations import OUTSIDE


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    text = "words"
    match Path(name).stem:
        case "crash":
            raise KeyError("planted")
        case "hang":
            while True:
                pass
        case "greedy":
            text = str(len(bytearray(b"x") * 300_000_000))
        case "foreign":
            text = OUTSIDE.read_text()
        case "control":
            text = "words \x1b[2J"
        case "refuse":
            raise DocumentError(name, "not wanted")
        case "babble":
            raise DocumentError(name, "x" * 1_000)
    return FileContent((Document(name, text, "title", "stratum", name, ""),))


FORMAT = SourceFormat(_read, suffixes=(".txt",))
