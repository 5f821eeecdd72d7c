"""Files that a person names: hostile bytes in; lines, text, JSON or plain YAML out, or one clear error."""

import codecs
import json
import sys
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from yaml import AliasEvent, CSafeLoader, MappingNode, Node, YAMLError, load
from yaml.composer import Composer, ComposerError
from yaml.constructor import ConstructorError

from runner.base.canonical import JSON, refuse_special, without_repeats
from runner.base.errors import InputError

STDIN = "-"
MAX_LINE = 1 << 28
"""Bytes of the longest line that is read; a longer one is no row of a table."""

LONGEST_LINE = 4096
"""Characters of the longest line, and of the longest path, that is printed whole."""

_ESCAPED = str.maketrans({"\a": "/a", "\b": "/b", "\t": "/t", "\n": "/n", "\v": "/v", "\f": "/f", "\r": "/r"})
_GZIP_MARK = b"\x1f\x8b"
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def numbered_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Line number (from 1) and bytes of each line of a file, or of standard input for "-".

    Lines end at a newline alone, and come without white space at their end and without the file's UTF-8 byte order
    mark; blank ones are left out. Raises InputError if the file cannot be read, is UTF-16, or has a line of more
    than MAX_LINE bytes.
    """
    try:
        if str(path) == STDIN:
            yield from _lines(sys.stdin.buffer, display(path))
        else:
            with Path(path).open("rb") as stream:
                yield from _lines(stream, display(path))
    except (OSError, ValueError) as error:
        raise InputError(_unreadable(path, error)) from error


def parsed(text: str, where: str, hint: str) -> JSON:
    """What a text of JSON holds; InputError, which ends in the hint, for NaN, a field twice, or no JSON."""
    try:
        return json.loads(text, object_pairs_hook=without_repeats, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON ({printable(str(error))}). {hint}") from error


def quoted(value: JSON) -> str:
    """A value in a message: scalars as JSON, and of the rest what kind it is."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return printable(json.dumps(value, ensure_ascii=False))


def display(path: str | Path) -> str:
    """A file's name in messages."""
    return "<stdin>" if str(path) == STDIN else printable(str(path), LONGEST_LINE)


def printable(text: str, longest: int = 200) -> str:
    """A string that a terminal can be shown: what is not printable as an escape, a long tail as "..."."""
    cut = text if len(text) <= longest else text[:longest] + "..."
    return "".join(c if c.isprintable() else _escape(c) for c in cut)


def decoded(line: bytes, where: str) -> str:
    """A line as text; InputError if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 (byte {error.start + 1}). Save the file as UTF-8.") from error


def _lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InputError(f"{name}:{number}: a line of more than {MAX_LINE:,} bytes. Write one row a line.")
        if number == 1:
            if line.startswith(_GZIP_MARK):
                raise InputError(f"{name} is compressed (gzip). Unpack it first.")
            if line.startswith(_WIDE_MARKS):
                raise InputError(f"{name}: this is UTF-16, as PowerShell's > writes it. Save the file as UTF-8.")
            line = line.removeprefix(codecs.BOM_UTF8)
        if line := line.rstrip():
            yield number, line


def _escape(character: str) -> str:
    # Python has a byte of a file's name that is not UTF-8 as a surrogate; it is shown as the byte, \xe9.
    byte = ord(character) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else repr(character)[1:-1]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _unreadable(path: str | Path, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        meant = meant_path(str(path))
        hint = f" Did you mean {meant}? A shell may take a backslash for an escape; write /." if meant else ""
        return f"{display(path)} does not exist.{hint or ' Give the path of a file that does.'}"
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"{display(path)} cannot be read ({reason}). Give the path of a file."


def meant_path(path: str) -> str | None:
    r"""The one existing file that a path names once its lost separators are back, or None.

    Backslashes count as separators; q\bench.jsonl is found behind "qbench.jsonl", as a shell leaves it, and behind
    the backspace that an escape sequence makes of \b. None, too, if several files fit.
    """
    with_slashes = path.translate(_ESCAPED).replace("\\", "/")
    parent, _, name = with_slashes.rpartition("/")
    root = f"{parent}/" if parent or with_slashes.startswith("/") else ""
    try:
        if Path(with_slashes).is_file():
            return with_slashes
        found = list(_splits(root, name))
    except (OSError, ValueError):
        return None
    return found[0] if len(found) == 1 else None


def _splits(root: str, name: str) -> Iterator[str]:
    """Files root + name with at least one "/" put into the name."""
    for cut in range(1, len(name)):
        folder = root + name[:cut]
        if Path(folder).is_dir():
            if Path(folder, name[cut:]).is_file():
                yield f"{folder}/{name[cut:]}"
            yield from _splits(f"{folder}/", name[cut:])


def read_yaml(path: Path) -> object:
    """The parsed file; an InputError names the file, and the line where the parser knows it.

    Refused beside what is no YAML: a key twice in a mapping, aliases (a short file of them stands for more than fits
    into memory) and tags (`!!bool 5`).
    """
    refuse_special(path)
    try:
        return load(path.read_bytes(), Loader=_PlainLoader)  # noqa: S506  # a subclass of the safe loader
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist.") from error
    except (YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split()).replace(' in "<byte string>"', "")
        raise InputError(f"{path} is not YAML: {said}.") from error


def line_of(path: Path, place: Sequence[str]) -> int:
    """The line, from 1, where a mapping of mappings has the keys of `place`: of the last one that is there."""
    node, line = _PlainLoader(path.read_bytes()).get_single_node(), 1
    for key in place:
        pairs = node.value if isinstance(node, MappingNode) else []
        found = next((pair for pair in pairs if pair[0].value == key), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


class _PlainLoader(Composer, CSafeLoader):
    """libyaml's parser, some four times as fast as PyYAML's own, below PyYAML's composer.

    The composer of CSafeLoader overflows the stack where 30,000 brackets open; this one raises RecursionError.
    """

    def __init__(self, stream: bytes) -> None:
        Composer.__init__(self)
        CSafeLoader.__init__(self, stream)

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event: Any = self.peek_event()
        if isinstance(event, AliasEvent) or getattr(event, "tag", None):
            raise ComposerError(None, None, "found an alias or a tag where a plain value belongs", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping = super().construct_mapping(node, deep)
        found = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node)
            if key in found:
                raise ConstructorError(None, None, f"found the key {printable(str(key))!r} twice", key_node.start_mark)
            found.add(key)
        return mapping
