"""Plain YAML of files that a person writes: no key twice, no aliases, no tags."""

from collections.abc import Hashable, Sequence
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

from yaml import AliasEvent, CSafeLoader, MappingNode, Node, YAMLError, load
from yaml.composer import Composer, ComposerError
from yaml.constructor import ConstructorError

from runner.base.canonical import read_bytes
from runner.base.errors import InputError
from runner.base.given_files import printable


def read_yaml(path: Path) -> object:
    """Return what a file holds; an InputError names the file, and the line where the parser knows it.

    Refused beside what is not YAML: a key twice in a mapping, aliases (a short file of them stands for more than fits
    into memory) and tags (`!!bool 5`).
    """
    try:
        return parse_yaml(read_bytes(path))
    except ValueError as error:
        raise InputError(f"{path} is not YAML: {error}.") from error


def parse_yaml(text: str | bytes) -> object:
    """Return what a text holds, as `read_yaml` does of a file; ValueError with the parser's reason."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    try:
        return deepcopy(_loaded(data))
    except (YAMLError, ValueError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split()).replace(' in "<byte string>"', "")) from error


@lru_cache(maxsize=32)
def _loaded(data: bytes) -> object:
    """Return what bytes hold; a command reads the same plan and queries again and again."""
    return load(data, Loader=_PlainLoader)  # noqa: S506  # a subclass of the safe loader


def line_of(path: Path, steps: Sequence[str]) -> int:
    """Return the line, from 1, where a mapping of mappings has the keys of `steps`: of the last one that is there."""
    node, line = _PlainLoader(path.read_bytes()).get_single_node(), 1
    for key in steps:
        pairs = node.value if isinstance(node, MappingNode) else []
        pair = next((pair for pair in pairs if pair[0].value == key), None)
        if pair is None:
            break
        line, node = pair[0].start_mark.line + 1, pair[1]
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
        # The safe loader keeps the last of two values in silence.
        mapping = super().construct_mapping(node, deep)
        keys = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node)
            if key in keys:
                raise ConstructorError(None, None, f"found the key {printable(str(key))!r} twice", key_node.start_mark)
            keys.add(key)
        return mapping
