"""What a file says about itself outside its body: congress, number, stage, titles."""

import re
from collections.abc import Iterator, Mapping

from lxml import etree

from samplers.formats.safe_xml import local_name, plain_text
from samplers.formats.uslm.names import FORMS, METADATA, OFFICIAL_TITLES, QUOTED, SHORT_TITLES, kind_of

_FACTS: Mapping[str, str] = {
    "citableAs": "citable",
    "congress": "congress",
    "legis-num": "number",
    "docNumber": "doc-number",
    "docStage": "stage",
}

_FRONT = tuple(f"{{*}}{name}" for name in ("title", "type", *_FACTS))

_NAMES_THE_WHOLE = re.compile(r"\b[Tt]his (?:Act|(?:[a-z]+ )?resolution)\b[^.;]{0,80}\bmay be cited as\b")


_INLINE = frozenset(("quote", "quotedText", "inline", "term", "i", "italic"))


def facts(root: etree._Element) -> Mapping[str, tuple[str, ...]]:
    """Return fact names with their values in file order, without repeats and without what is not stated.

    Names: citable, congress, number (as printed), doc-number, doc-type, stage, title (the catalogue title),
    official-title, short-title (of the whole document, not of its titles or of other Acts). A `value` attribute wins
    over the printed form.
    """
    values_of: dict[str, dict[str, None]] = {}
    # The stage: bill-stage, resolution-stage and amend-stage of the bill DTD.
    for attribute, value in root.items():
        if str(attribute).endswith("-stage"):
            values_of.setdefault("stage", {})[str(value)] = None
    for name, value in (*_front_facts(root), *_titles(root)):
        if value:
            values_of.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in values_of.items()}


def _front_facts(root: etree._Element) -> Iterator[tuple[str, str]]:
    for part in root:
        if local_name(part) not in METADATA | FORMS:
            continue
        for element in part.iter(*_FRONT):
            tag = local_name(element)
            if tag in ("title", "type"):
                yield ("title" if tag == "title" else "doc-type"), plain_text(element)
            else:
                yield _FACTS[tag], str(element.get("value") or plain_text(element))


def _titles(root: etree._Element) -> Iterator[tuple[str, str]]:
    names_the_whole: dict[etree._Element, bool] = {}
    for element in root.iter(*(f"{{*}}{name}" for name in (*OFFICIAL_TITLES, *SHORT_TITLES))):
        if _is_foreign(element):
            continue
        if local_name(element) in OFFICIAL_TITLES:
            yield "official-title", plain_text(element)
        else:
            sentence = _around(element)
            # Looked up once an element: a list of short titles in one block would cost its square.
            if sentence not in names_the_whole:
                names_the_whole[sentence] = bool(_NAMES_THE_WHOLE.search(plain_text(sentence)))
            if element.get("role") == "act" or names_the_whole[sentence]:
                yield "short-title", plain_text(element).strip("“”‘’\"', ")


def _is_foreign(element: etree._Element) -> bool:
    """Return whether an element stands in text quoted for another law, or in struck text."""
    return any(kind_of(a) in QUOTED or a.get("changed") == "deleted" for a in element.iterancestors())


def _around(element: etree._Element) -> etree._Element:
    """Return the nearest ancestor that is more than a mark around a few words."""
    return next(a for a in element.iterancestors() if local_name(a) not in _INLINE)
