"""Bills and resolutions of govinfo (bill DTD, USLM 2.x): one document per version."""

import re
from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from runner.base.records import Document
from samplers.formats.headings import TITLE_LENGTH, shortened
from samplers.formats.stated import bucket, ordinal, stem_of
from samplers.formats.uslm.walk import Walk, walk
from samplers.source_format import FileContent, SourceFormat

ROOTS = frozenset(("bill", "resolution", "amendment-doc", "engrossed-amendment", "engrossedAmendment"))

TYPES: Mapping[str, str] = {
    "hr": "H.R.",
    "s": "S.",
    "hres": "H.Res.",
    "sres": "S.Res.",
    "hjres": "H.J.Res.",
    "sjres": "S.J.Res.",
    "hconres": "H.Con.Res.",
    "sconres": "S.Con.Res.",
}
"""Types of measures as govinfo writes them in a file name and as people cite them."""

_STAGES: Mapping[str, tuple[str, str]] = {
    "i": ("introduced", "introduced in"),
    "r": ("reported", "reported in"),
    "cd": ("reported", "committee discharged"),
    "pc": ("reported", "placed on calendar"),
    "ri": ("reported", "referral instructions"),
    "lt": ("reported", "laid on table"),
    "e": ("passed", "engrossed in"),
    "ea": ("passed", "engrossed amendment"),
    "cp": ("passed", "considered and passed"),
    "at": ("passed", "agreed to"),
    "rd": ("received", "received in"),
    "rf": ("received", "referred in"),
}
VERSIONS: Mapping[str, tuple[str, str]] = {
    f"{code}{chamber[0].lower()}": (stage, f"{name} {chamber}")
    for code, (stage, name) in _STAGES.items()
    for chamber in ("House", "Senate")
} | {"enr": ("enrolled", "enrolled")}
"""Version codes of govinfo: the stage that a stratum names, and the version's name. Other codes are stage "other"."""

FIRST_CONGRESS_ONLINE = 103
"""Govinfo holds bills from the 103rd Congress on; an earlier number has no page to link to."""

_CODE = r"(?P<type>hconres|sconres|hjres|sjres|hres|sres|hr|s)"
_KEY = re.compile(rf"(?:bills-)?(?P<congress>\d{{1,3}}){_CODE}(?P<number>\d+)(?P<version>[a-z]{{2,4}}\d?)?", re.I)
_DC_TITLE = re.compile(
    rf"(?:AMENDMENTS? to )?(?:(?P<congress>\d{{1,3}}) )?{_CODE} ?(?P<number>\d+)(?: (?P<version>[A-Z]{{2,4}}\d?))?"
    r"(?: ?: ?(?P<title>.*))?$",
    re.I,
)
_ENTITLED = re.compile(r"entitled “([^“”]{10,})")
"""How a chamber's amendment names the bill, whose title it does not print as its own."""
_PRINTED = re.compile(r"(?P<type>[HS][A-Za-z. ]*?)\s*(?P<number>\d+)")
_UNITS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_TENS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"
_TENS_BEFORE = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS: Mapping[str, int] = {
    "hundred": 100,
    "hundredth": 100,
    **{word: n for n, word in enumerate(_UNITS.split(), start=1)},
    **{word: 10 * n for words in (_TENS, _TENS_BEFORE) for n, word in enumerate(words.split(), start=2)},
}


class Measure(NamedTuple):
    """Which bill or resolution a document is, and which version; parts that nothing states are ""."""

    congress: str = ""
    type: str = ""
    number: str = ""
    version: str = ""

    @property
    def key(self) -> str:
        """Govinfo's package id, such as BILLS-117hr100ih; "" unless congress, type and number are known."""
        is_known = self.congress and self.type and self.number
        return f"BILLS-{self.congress}{self.type}{self.number}{self.version}" if is_known else ""


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    """Return the document in one bill file.

    `doc_id` is what the document says of itself: the citable key, then the form, then the catalogue title, which may
    name an earlier Congress. Form and name together outweigh the others if they name one bill; alone `name` fills
    what is left open and wins nowhere. A name that is the id and a suffix ("BILLS-116s1000is-draft") keeps the suffix,
    so that two renderings of one version stay apart. A document that states nothing has its name as id.
    """
    walked = walk(data, name, ROOTS)
    stem = stem_of(name)
    measure = _measure(walked.facts, stem)
    doc_id = stem if not measure.key or stem.startswith(f"{measure.key}-") else measure.key
    stage, version = VERSIONS.get(measure.version, ("other", "".join(walked.facts.get("stage", ())[:1]).lower()))
    chamber = {"h": "house", "s": "senate"}.get(measure.type[:1], "unknown")
    is_online = measure.key and measure.version and int(measure.congress) >= FIRST_CONGRESS_ONLINE
    document = Document(
        doc_id=doc_id,
        text=walked.text,
        title=_title(walked, measure, version, doc_id),
        stratum="/".join((measure.congress or "unknown", chamber, stage, bucket(len(walked.text)))),
        family="-".join(measure[:3]) if measure.key else doc_id,
        url=f"https://www.govinfo.gov/app/details/{measure.key}" if is_online else "",
        sections=walked.sections,
    )
    return FileContent((document,), walked.dropped, supplied=walked.supplied)


FORMAT = SourceFormat(_read, suffixes=(".xml",))


def _measure(facts: Mapping[str, tuple[str, ...]], stem: str) -> Measure:
    """Return each part from the first who states it: citable key, form, catalogue title; the name of the file last."""
    form, named = reduce(_filled, _from_form(facts)), _matched(_KEY.match(stem))
    keys = (_matched(_KEY.fullmatch(key.strip())) for key in facts.get("citable", ()))
    stated = [*keys, form, *(_matched(_DC_TITLE.match(title)) for title in facts.get("title", ()))]
    # A catalogue title may be that of an earlier Congress: form and name outvote it.
    if form.number and _is_same(form, named):
        stated = [form, named, *stated]
    measure = reduce(_filled, stated)
    # The name counts only if it is the same bill's.
    return _filled(measure, named) if _is_same(measure, named) else measure


def _is_same(stated: Measure, named: Measure) -> bool:
    return all(known in ("", new) for known, new in zip(stated[:3], named[:3], strict=True))


def _matched(match: re.Match[str] | None) -> Measure:
    return Measure(*((match[part] or "").lower() for part in Measure._fields)) if match else Measure()


def _filled(stated: Measure, others: Measure) -> Measure:
    return Measure(*(known or new for known, new in zip(stated, others, strict=True)))


def _from_form(facts: Mapping[str, tuple[str, ...]]) -> list[Measure]:
    """Return what the printed form says: type and number as printed, then Congress and stage."""
    printed = [
        *facts.get("number", ()),
        *(f"{t} {n}" for t in facts.get("doc-type", ()) for n in facts.get("doc-number", ())),
    ]
    measures = []
    for match in filter(None, map(_PRINTED.fullmatch, printed)):
        kind = re.sub(r"[^a-z]", "", match["type"].lower())
        measures.append(Measure("", kind, match["number"]) if kind in TYPES else Measure())
    congress = next(filter(None, map(_congress, facts.get("congress", ()))), "")
    stages = [stage.replace("-", " ").strip().lower().removesuffix(" bill") for stage in facts.get("stage", ())]
    codes = (code for stage in stages for code, (_, name) in VERSIONS.items() if stage in (code, name.lower()))
    return [*measures, Measure(congress=congress, version=next(codes, ""))]


def _congress(printed: str) -> str:
    """Return the number in "117", "117th CONGRESS" or "One Hundred Seventeenth Congress of ..."; "" for none."""
    if digits := re.search(r"\d{1,3}", printed):
        return digits[0]
    words = re.findall(r"[a-z]+", printed.lower().partition("congress")[0])
    total = sum(_WORDS.get(word, 0) for word in words)
    return str(total) if total else ""


def _title(walked: Walk, measure: Measure, version: str, doc_id: str) -> str:
    """Return the number as people cite it, then the short title or else the official one."""
    facts = walked.facts
    official = facts.get("official-title", ())
    catalogue = [match["title"] or "" for match in map(_DC_TITLE.match, facts.get("title", ())) if match]
    # Those of the 109th and 110th Congresses end with a printed line: "To amend title 38, United States Code, to".
    whole = [title for title in catalogue if not any(full.startswith(title) for full in official)]
    others = (title for title in facts.get("title", ()) if not _DC_TITLE.match(title))
    entitled = _ENTITLED.search(walked.text, 0, 2 * TITLE_LENGTH)
    opening = entitled[1] if entitled else walked.text.partition("\n")[0]
    titles = (*facts.get("short-title", ()), *whole, *official, *others, opening)
    named = next((title for title in titles if title and "__" not in title), "").rstrip(". ")
    named = shortened(named, TITLE_LENGTH)
    cited = f"{TYPES[measure.type]} {measure.number}" if measure.key else doc_id
    which = ", ".join(filter(None, (ordinal(measure.congress), version)))
    head = f"{cited} ({which})" if which else cited
    return f"{head}: {named}" if named else head
