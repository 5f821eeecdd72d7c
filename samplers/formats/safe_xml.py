"""XML from strangers: parsed with DTD loading, entities and network off, within fixed limits."""

from html.entities import html5

from lxml import etree

from runner.base.errors import DocumentError
from samplers.source_format import MAX_ATTRIBUTES, MAX_BYTES, TOO_MANY_ATTRIBUTES

MAX_DEPTH = 120
"""Elements inside one another; real bills, laws and titles of the Code stay under 40."""


def parse(data: bytes, name: str, max_bytes: int = MAX_BYTES) -> etree._Element:
    """Return the root element, without comments and processing instructions.

    Nothing outside `data` is ever read. DocumentError for a file that is too large, malformed, wrongly encoded,
    nested too deep, with more than MAX_ATTRIBUTES, or that declares entities (a bill has no use for them, a bomb has).
    """
    if len(data) > max_bytes:
        raise DocumentError(name, f"larger than {max_bytes // 1_000_000} MB ({len(data) / 1e6:.0f} MB)")
    if not data or data.isspace():
        raise DocumentError(name, "the file is empty")
    parser = etree.XMLParser(
        load_dtd=False,
        no_network=True,
        resolve_entities=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    # Whatever is wrong with the file is told in words of our own: libxml2's may quote the file.
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(name, _syntax_reason(error)) from error
    except (ValueError, LookupError) as error:
        raise DocumentError(name, "the declared encoding is not the file's") from error
    internal = root.getroottree().docinfo.internalDTD
    if internal is not None and any(internal.iterentities()):  # type: ignore[union-attr]  # unknown to the stubs
        raise DocumentError(name, "declares entities of its own")
    if _has_too_many_attributes(root):
        raise DocumentError(name, TOO_MANY_ATTRIBUTES)
    return root


def _syntax_reason(error: etree.XMLSyntaxError) -> str:
    message = str(error.msg).lower()
    if "depth" in message:
        return "nested too deep"
    if "huge" in message:
        return "one piece of text is longer than 10 MB"
    if "encoding" in message or "encoded" in message or "utf-8" in message:
        return f"the declared encoding is not the file's (line {error.lineno})"
    if "entity" in message and ("loop" in message or "amplification" in message):
        return "declares entities of its own"
    return f"malformed XML (line {error.lineno})"


def local_name(element: etree._Element) -> str:
    """Return the tag without its namespace; "" for what is not an element, such as an entity reference."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def entity_text(entity: etree._Element, name: str) -> str:
    """Return the character that a reference such as `&mdash;` stands for in HTML; DocumentError for others."""
    reference = str(entity.text)
    # html.unescape would read "&notreal;" as "&not;" and the letters after it.
    character = html5.get(reference.removeprefix("&"), "")
    if not character:
        raise DocumentError(name, f"unknown entity {reference[:20]}")
    return character


def plain_text(element: etree._Element) -> str:
    """Return all text inside an element, tail excluded, with white space collapsed and no undeclared entities."""
    # Most elements that are asked for hold nothing but text, and evaluating an expression takes long.
    text = _string(element) if len(element) else element.text or ""
    return " ".join(str(text).split())


_string = etree.XPath("string()", smart_strings=False)
_has_too_many_attributes = etree.XPath(f"boolean(//@*[{MAX_ATTRIBUTES + 1}])")
