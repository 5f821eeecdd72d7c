"""A document's sections as a tree, and the heading path that leads to a stretch of its text."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from chunkers.contexts import PATH_TOKENS, label_range, path_context
from chunkers.splitting import Piece, trimmed
from runner.base.records import Document

LONGEST_HEADING = 600
"""Characters from which on a piece is more than headings."""

_MARKS = re.compile(r"[\W_]+")


@dataclass
class Node:
    """A section and what it holds; the root is the document itself, with kind and label "".

    `start` and `end` leave out white space at the ends; `starts` and `ends` are those of the children.
    `holds_sections` marks containers.
    """

    start: int
    end: int
    kind: str
    label: str
    holds_sections: bool
    children: list["Node"] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    @cached_property
    def bare_label(self) -> str:
        """The label without marks and case; of millions of characters in a document that has lost its line breaks."""
        return _bare(self.label)

    def add(self, child: "Node") -> None:
        """Hold a child that comes after those held already."""
        self.children.append(child)
        self.starts.append(child.start)
        self.ends.append(child.end)

    def holds(self, piece: Piece) -> bool:
        """Return whether the piece lies in this section."""
        return self.start <= piece[0] and piece[1] <= self.end

    def touched(self, piece: Piece) -> Sequence["Node"]:
        """Return the children that have characters in common with the piece, in text order."""
        return self.children[bisect_right(self.ends, piece[0]) : bisect_left(self.starts, piece[1])]

    def parts(self, text: str) -> Iterator["Node | Piece"]:
        """Yield the children in text order and the text between, before and after them; white space is left out."""
        position = self.start
        for child in self.children:
            if gap := trimmed(text, (position, child.start)):
                yield gap
            yield child
            position = child.end
        if gap := trimmed(text, (position, self.end)):
            yield gap


def outline(document: Document, containers: frozenset[str], sections: frozenset[str]) -> Node:
    """Return the document's sections as a tree, blank ones left out.

    Kinds in `containers` hold sections even when they are empty; so does everything around a part whose kind is in
    `containers` or `sections`.
    """
    root = Node(0, len(document.text), "", "", holds_sections=True)
    path = [root]
    for section in document.sections:
        body = trimmed(document.text, (section.span.start, section.span.end))
        if body is None:
            continue
        # Sections that ended before this one begins hold nothing more.
        while path[-1] is not root and path[-1].end <= body[0]:
            path.pop()
        node = Node(*body, section.kind, section.label, holds_sections=section.kind in containers)
        path[-1].add(node)
        # Whatever lies around a section holds sections, whatever its kind.
        if section.kind in containers or section.kind in sections:
            for outer in path:
                outer.holds_sections = True
        path.append(node)
    return root


def stands_nowhere(_: Node, __: Piece) -> bool:
    """False: the first versions of chunkers put every heading into the context, in the text or not."""
    return False


def heading_path(
    root: Node,
    title: str,
    piece: Piece,
    stands: Callable[[Node, Piece], bool] = stands_nowhere,
    most: int = PATH_TOKENS,
) -> str:
    """Return the context of a piece: the document's title and the headings of the sections around it, in `most` tokens.

    Headings of which `stands` says that they stand in the piece itself are left out, and a range whose two ends do.

    The path ends with the innermost section that holds the whole piece. A container's heading that opens its
    first section counts as part of that section. A piece over several neighbours ends with their range, such as
    "Sec. 3 – Sec. 5" or, inside one long section, "(b) – (d)".
    """
    labels: list[str] = []
    node = root
    while True:
        touched = node.touched(piece)
        # One section has the piece, or the part of it that is not a container's heading: further down.
        if len(touched) == 1 and (node.holds_sections or touched[0].holds(piece)):
            node = touched[0]
            if not stands(node, piece):
                labels.append(node.label)
            continue
        whole = piece[0] <= node.start and node.end <= piece[1]
        # A piece over several neighbours is named by the first and the last.
        is_range = len(touched) > 1 and (node.holds_sections or not whole)
        if is_range and not (stands(touched[0], piece) and stands(touched[-1], piece)):
            labels.append(label_range([child.label for child in touched]))
        return path_context(title, tuple(labels), most)


def is_in_text(text: str, node: Node, piece: Piece) -> bool:
    """Return whether a section begins in a piece with the words of its label, whatever their case and punctuation."""
    label = node.bare_label
    if not label:
        return True
    return node.start >= piece[0] and _bare(text[node.start : node.start + 2 * len(node.label) + 40]).startswith(label)


def is_heading_alone(text: str, root: Node, piece: Piece) -> bool:
    """Return whether a piece is nothing but the headings of sections that begin in it; marks ("* * *") do not count."""
    # Headings are taken off the front one by one; what is left is text.
    left = _bare(text[piece[0] : piece[1]]) if piece[1] - piece[0] <= LONGEST_HEADING else "text"
    for label in _labels(root, piece):
        left = left.removeprefix(label)
    return not left


def _labels(node: Node, piece: Piece) -> Iterator[str]:
    """Yield the bare labels of the sections that begin in a piece, in text order."""
    for child in node.touched(piece):
        if child.start >= piece[0]:
            yield child.bare_label
        yield from _labels(child, piece)


def may_open(root: Node, heading: Piece, following: Piece, containers: frozenset[str] | None = None) -> bool:
    """Return whether a heading may begin the piece after it: no container, by default no section, ends between them."""
    return all(
        ((containers is not None and child.kind not in containers) or child.end >= following[1])
        and may_open(child, heading, following, containers)
        for child in root.touched(heading)
    )


def _bare(text: str) -> str:
    return _MARKS.sub("", text).casefold()
