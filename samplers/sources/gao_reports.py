"""Product records of the Government Accountability Office (JSON) as documents: GAO's own summary of each."""

import json
import re
import unicodedata
from typing import Any

from runner.base.canonical import without_repeats
from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.headings import cut
from samplers.formats.text_writer import TextWriter, visible
from samplers.source_format import FileContent, SourceFormat

OTHER_FIELDS = "the record's other fields"
NO_SUMMARY = "record without a summary"
MAX_BYTES = 1_000_000
"""Of a record; real ones have under 5 kB."""

SHORT = 400
"""Characters below which a summary is too short to ask about."""

TOPICS = frozenset(
    (
        *("Agriculture and Food", "Auditing and Financial Management", "Budget and Spending", "Business Regulation"),
        *("Business Regulation and Consumer Protection", "Economic Development", "Education", "Employment", "Energy"),
        *("Equal Opportunity", "Financial Markets and Institutions", "Government Operations", "Health Care"),
        *("Homeland Security", "Housing", "Human Capital", "Information Management", "Information Security"),
        *("Information Technology", "International Affairs", "Justice and Law Enforcement", "National Defense"),
        *("Natural Resources and Environment", "Retirement Security", "Science and Technology", "Space"),
        *("Tax Policy and Administration", "Telecommunications", "Transportation", "Veterans"),
        *("Worker and Family Assistance",),
    )
)
"""GAO's own broad topics. A record names one of them among some thirty subject terms, in no order."""

_ID = re.compile(r"[A-Z0-9]+(?:[-.][A-Z0-9]+)*")
"""Most are as "GAO-20-153" and "T-HEHS-00-21"; older ones are as "AIMD-10.1.22", "B-158766" and "507887"."""
_YEAR = re.compile(r"(?:19|20)[0-9]{2}(?=-)")
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/])|[bfnrt])')


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    source, record = _record(data, name)
    doc_id = _text(record, "gao_id", name).upper()
    if not _ID.fullmatch(doc_id):
        raise DocumentError(name, "a JSON record without a gao_id, which this source's records have")
    writer = TextWriter()
    for paragraph in _text(record, "summary", name).split("\n"):
        writer.separate("\n")
        writer.write(paragraph)
    text = writer.finish()[0]
    left_out = {OTHER_FIELDS: _visible(_ESCAPE.sub(_unescaped, source)) - _visible(text)}
    if not text:  # 230 of 300 records that nobody had selected
        return FileContent((), left_out, {NO_SUMMARY: 1})
    published, year = _years(record, doc_id, name)
    contradictions = (f"read as of {year}, but it says it was published in {published}",) if year != published else ()
    return FileContent((_document(record, doc_id, text, year, name),), left_out, contradictions=contradictions)


def _record(data: bytes, name: str) -> tuple[str, dict[str, Any]]:
    """The file as text and as a JSON object, each of its fields once."""
    if len(data) > MAX_BYTES:
        raise DocumentError(name, f"a record of {len(data) / 1e6:.0f} MB; the limit is {MAX_BYTES // 1_000_000} MB")
    try:
        source = data.decode("utf-8-sig")
        record = json.loads(source, object_pairs_hook=without_repeats, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise DocumentError(name, f"not UTF-8 (byte {error.start + 1})") from error
    except (ValueError, RecursionError) as error:
        raise DocumentError(name, f"not JSON ({str(error)[:100]})") from error
    if not isinstance(record, dict):
        raise DocumentError(name, "JSON, but no object: a product's record is one")
    return source, record


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _text(record: dict[str, Any], field: str, name: str) -> str:
    """A field's text without white space at its ends, "" if it is missing or null."""
    value = record.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DocumentError(name, f"{field} is no text")
    if re.search("[\x00-\x08\x0e-\x1f\ud800-\udfff]", value):
        raise DocumentError(name, f"{field} has a control character or half of a surrogate pair")
    return value.strip()


def _unescaped(found: re.Match[str]) -> str:
    """The character of a JSON escape, or half of one; white space for the letters that stand for it."""
    if found[1]:
        return chr(int(found[1], 16))
    return found[2] or " "


def _visible(text: str) -> int:
    # Two escapes make one character of the upper planes.
    return visible(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _years(record: dict[str, Any], doc_id: str, name: str) -> tuple[str, str]:
    """The year that a record states first, and the one that it is of: the first near the fiscal year in its id."""
    stated = (_YEAR.match(_text(record, field, name)) for field in ("published", "released"))
    years = [found[0] for found in stated if found] or ["unknown"]
    fiscal = re.search(r"-([0-9]{2})-", doc_id)
    near = (year for year in years if fiscal and year.isdigit() and (int(year) - int(fiscal[1])) % 100 in (99, 0, 1))
    return years[0], next(near, years[0])


def _document(record: dict[str, Any], doc_id: str, text: str, year: str, name: str) -> Document:
    page = re.fullmatch(r"https://www\.gao\.gov/products/([\w.-]+)", _text(record, "url", name))
    own = page[1].upper() if page else ""
    if own.startswith(f"{doc_id}-") and _ID.fullmatch(own):
        doc_id = own  # yearly products share an id, and only their pages have numbers: B-158766, b-158766-16
    title = " ".join(_text(record, "title", name).split())
    topics = record.get("topics")
    named = topics if isinstance(topics, list) else []
    broad = sorted(topic for topic in named if isinstance(topic, str) and topic in TOPICS)
    return Document(
        doc_id=doc_id,
        text=text,
        title=cut(unicodedata.normalize("NFC", f"{doc_id}: {title}" if title else doc_id)),
        stratum=f"{year}/{re.sub('[^a-z]+', '-', broad[0].lower()) if broad else 'other'}",
        family=doc_id,
        url=page[0] if page else f"https://www.gao.gov/products/{doc_id.lower()}",
        status="short" if len(text) < SHORT else "",
    )


FORMAT = SourceFormat(_read, suffixes=(".json",), max_bytes=MAX_BYTES)
