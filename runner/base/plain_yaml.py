"""YAML as the files of an eval set need it: plain values, each key once."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

from yaml import AliasEvent, CSafeLoader, MappingNode, Node, YAMLError, load
from yaml.composer import Composer, ComposerError
from yaml.constructor import ConstructorError

from runner.base.canonical import refuse_special
from runner.base.errors import InputError
from runner.base.given_files import printable


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
        raise InputError(f"{path} is not YAML: {' '.join(str(error).split())}.") from error


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
