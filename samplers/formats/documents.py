"""Documents of any kind - Markdown, plain text, HTML, PDF, JSON with a text field - with a section for each heading.

Every format becomes lines with the separator before each, a `Layout` says which of them are headings and which are the
page's own, and one writer makes text and sections of the rest. The default layout reads anybody's documents.
"""

import re
import unicodedata
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from runner.base.canonical import parse_json, slug
from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.headings import cut, is_title
from samplers.formats.markdown_text import plain
from samplers.formats.pdf.text import MAX_BYTES, pdf_pages
from samplers.formats.stated import bucket
from samplers.formats.text_writer import INVISIBLE, Part, TextWriter, on_one_line, visible
from samplers.source_format import MAX_ATTRIBUTES, TOO_MANY_ATTRIBUTES, FileContent, Reader

MARKUP = "marks, links and what is not shown"
FURNITURE = "page furniture"
CONTENTS = "contents lists"
ERROR_PAGE = "error page in place of a document"
NO_TEXT = "record without a text"
METADATA = "metadata beside a document"
"""What a file says that is named so and has that heading: bills as Markdown are published each with one."""

NUMBERED = r"(?P<number>\d{1,2}(?:\.\d{1,2}){0,4}|[IVX]{1,5}|[A-Z])[.)]?\s+[A-Z].*"
"""A heading of text and PDF by its number: "2.1 Costs" is one rank below "2. Costs"."""

TITLE_RANK = 7
"""Of a heading that only its place and capitals show; those of Markdown and HTML have 1 to 6."""

DIVISIONS = (
    "title|book|libro|buch|livre",
    "part|parte|teil|partie",
    "chapter|cap[ií]tulo|kapitel|chapitre|capo",
    "subchapter|division|subpart",
    "art(?:icle|ikel|[ií]culo|icolo|igo)?",
    "sec(?:tion|ci[oó]n)?|§{1,2}",
)
"""Words that name a numbered part of a law, from the highest rank down."""

WORDED = (
    rf"(?:(?P<word>(?i:{'|'.join(DIVISIONS)}))\.?\s*(?:[IVXLC]{{1,7}}|\d{{1,4}}[A-Za-z]?(?:[.-]\d{{1,4}}[a-z]?){{0,4}})"
    r"(?:[.):]?(?:\s*[-–—])?\s+[^\W\d_a-zß-ÿ(].*)?[.):]?"
    r"|(?:(?P<number>\d{1,2}(?:\.\d{1,2}){0,4})[.)]?|[IVX]{1,5}[.)]|[A-Z][.)])\s+[A-Z].*)"
)
"""A heading of text and PDF by its number, with a word before it or without: "Chapter 2", "Article 5 – Deposits",
"§ 12. Notice", "2.1 Costs"."""

LONGEST_HEADING = 150
LONGEST_SENTENCE = 80
"""Characters of a numbered line that ends with a full stop, from which on it is a sentence and no heading of a law."""

HEAD_LINES = 90
"""Lines among which the page's own head ends; the longest real one has 79."""

SHORT_LINE = 0.7
"""Share of the widest line below which a line of a PDF ends its paragraph, and one of a text was ended on purpose."""

_FACTS_IN = 50_000
"""Characters of a document in which its facts are looked for."""

_UNPACKED = 1_000_000
"""Bytes of a file packed with gzip that are unpacked."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt])|(.))")
_ATTRIBUTE = r"""[^>a-z_:.]*+[a-z_:.][\w:.-]*+\s*+(?:=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+))?+"""
_TAG = re.compile(
    rf"<!--(?:.*?-->|.*)|<(?=[a-z_:])(?P<raw>(?:script|style)\b)?(?:{_ATTRIBUTE}){{0,{MAX_ATTRIBUTES}}}+"
    rf"(?P<more>{_ATTRIBUTE})?+(?(raw)(?:.*?</(?P=raw)|.*))",
    re.I | re.S,
)
"""A comment, a script or a tag with its attributes, told apart as the parser of HTML does."""
_HTML = re.compile(r"\s*(?:<!--.{0,2000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)
_HEADING = re.compile(r"(#{1,6})\s+(.+)")
_RULE = re.compile(r"(?:-{3,}|={2,}|\*{3,}|_{3,}|(?=[|:\s]*+-)[|:\s-]++)")
_UNDERLINE = re.compile(r"={2,}|-{2,}")
_ITEM = re.compile(r"[-*+]\s+(?=\S)|(?=\(?\d{1,3}[.)]\s)")
_BULLET = re.compile(r"[•▪◦·∙○●■□►➢✓\uf0b7]\s")
_BROKEN = re.compile(r"[^\W\d]-$")
_DOUBLED = re.compile(r"\b([A-Z])((?=[A-Z]{5})[A-Z]+(?: [A-Z]+){0,3}?) \2(?![A-Z])")
"""Words in capitals and small capitals, of which some programs print all letters but the first again."""

_PAGE_NUMBER = re.compile(r"(?:Page )?[-–— ]*(?:\d{1,4}|[ivxl]{1,6})[-–— ]*(?:(?:of|/) ?\d{1,4})?", re.I)
_NO_TITLE = re.compile(
    r"[^A-Z\"“\d]|.*(?:[a-z]{3}[.!] [A-Z]|[.;:,”=\d]$| (?:that|to|as|an?|the|of|and|or|by|for|with|would)$)"
    r"|According to |CRS (?:Report|In Focus|Insight|Legal Sidebar)|https?:"
)
_AMID = re.compile(r" (?:that|to|as|an?|the|of|and|or|by|for|with|would|shall|may|is|are)$")
_NOT_FOUND = re.compile(
    r"^\W*(?:error\W*)?404(?:\W*$|\s*[-–|:]|\W+(?:error|file|page|not)\b)|\b(?:page|file)\s+not\s+found", re.I
)
_HIDDEN = frozenset(("script", "style", "head", "noscript", "template", "nav"))
_PARTED = {**dict.fromkeys(("br", "li", "tr", "dt", "dd", "option"), "\n"), "td": "\t", "th": "\t"}
_INLINE = frozenset(
    (
        *("a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd"),
        *("label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    )
)


class Line(NamedTuple):
    """A line of a document: its words, the separator before them, and its rank as a heading, 0 for other text."""

    text: str
    separator: str = "\n\n"
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Options for the documents of a source: what is special to them.

    Patterns are searched in lines without marks. The text begins below the last line that `starts` matches among the
    first HEAD_LINES and ends above the first that `ends` does; lines that `drops` matches are the page's own. A list
    under a heading that `contents` matches is left out and names headings of the first rank; lines that `headings`
    matches whole are some too, of a rank by the group `number` or, before those, by which of `words` the group `word`
    is; with `titles`, so are lines set as titles.

    `facts` are patterns over file name, fields of a JSON record and lines, whose named groups fill the templates, as do
    `place`, `stem`, `folder`, `heading`, `length`, and the fields themselves. Of templates the first counts that can be
    filled. `needs` must be found in the text. A text of fewer than `short` characters has that status.
    """

    text_field: str = "text"
    starts: str = ""
    ends: str = ""
    drops: str = ""
    contents: str = ""
    headings: str = NUMBERED
    words: tuple[str, ...] = ()
    titles: bool = False
    needs: str = ""
    facts: tuple[str, ...] = ()
    doc_id: tuple[str, ...] = ("{place}",)
    title: tuple[str, ...] = ("{title}", "{heading}", "{stem}")
    stratum: str = "{folder}"
    family: tuple[str, ...] = ("{doc_id}",)
    url: tuple[str, ...] = ()
    short: int = 0


def reader(layout: Layout) -> Reader:
    """Return the reader of documents that are laid out so."""
    return partial(_read, layout=layout)


def _read(data: bytes, name: str, _: frozenset[str], *, layout: Layout) -> FileContent:
    return content_of(*lines_of_file(data, name, layout), name, layout)


def content_of(words: str, lines: list[Line], facts: dict[str, str], name: str, layout: Layout) -> FileContent:
    """Return the document that these lines and facts make, its account over all `words` of the file."""
    if facts["format"] == "html" and _NOT_FOUND.search(facts.get("title", "")):
        # Nobody can repair it, so it is counted and not quarantined.
        return FileContent((), {ERROR_PAGE: visible(words)}, {ERROR_PAGE: 1})
    if facts["stem"].lower() == "metadata" and lines and lines[0].rank and lines[0].text.lower() == "metadata":
        return FileContent((), {METADATA: visible(words)}, {METADATA: 1})
    lines = [line._replace(text=_CONTROL.sub("", line.text)) for line in lines]
    facts = {key: on_one_line(_CONTROL.sub("", value)) for key, value in facts.items()}
    # The facts: of patterns that have one group, the first that is found counts.
    stated = (f"{key}: {value}" for key, value in facts.items())
    searched = "\n".join((f"file: {name}", *stated, *(line.text for line in lines)))
    beginning = searched[:_FACTS_IN]
    for pattern in layout.facts:
        if match := re.search(pattern, beginning, re.M):
            facts |= {key: on_one_line(value) for key, value in match.groupdict().items() if value and key not in facts}
    if layout.needs and not re.search(layout.needs, searched, re.M):
        raise DocumentError(name, "does not say what every document of this source says")

    facts["doc_id"] = _filled(layout.doc_id, facts)
    if not facts["doc_id"]:
        raise DocumentError(name, "does not say which document of this source it is")

    # The account: what the page's own lines and lists hold is left out by name, and all else that is no text as marks.
    left_out: Counter[str] = Counter()
    body, entries = _body(lines, layout, left_out)
    text, sections = _written(_ranked(body, layout, entries))
    left_out[MARKUP] = visible(words) - visible(text) - left_out.total()
    account = {reason: n for reason, n in left_out.items() if n > 0}
    if not text:
        if facts["format"] == "json":
            return FileContent((), account, {NO_TEXT: 1})
        raise DocumentError(name, "has no text but what is on every page" if words.strip() else "is empty")
    # The document: the first heading is looked for in the page's own head too, where a saved page has its title.
    heading = next((line.text for line in lines if line.rank), "")
    facts |= {"length": bucket(len(text))} | ({"heading": on_one_line(heading)} if heading else {})
    document = Document(
        doc_id=facts["doc_id"],
        text=text,
        title=cut(unicodedata.normalize("NFC", on_one_line(_filled(layout.title, facts)))),
        stratum="/".join(slug(part) or "unknown" for part in layout.stratum.format_map(_Unknown(facts)).split("/")),
        family=_filled(layout.family, facts),
        url=_filled(layout.url, facts),
        status="short" if len(text) < layout.short else "",
        sections=sections,
    )
    return FileContent((document,), account)


class _Unknown(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "unknown"


def _filled(templates: Sequence[str], facts: Mapping[str, str]) -> str:
    """Return the first template that the facts fill, "" if there is none."""
    for template in templates:
        try:
            return template.format_map(facts)
        except KeyError:
            continue
    return ""


def check_size(data: bytes, name: str) -> None:
    """Raise DocumentError for a file that is larger than one document is."""
    if len(data) > MAX_BYTES:
        raise DocumentError(name, f"larger than {MAX_BYTES // 1_000_000} MB ({len(data) / 1e6:.0f} MB)")


def lines_of_file(data: bytes, name: str, layout: Layout) -> tuple[str, list[Line], dict[str, str]]:
    """Return all characters of a file that its account is of, its lines, and the facts that need no pattern."""
    check_size(data, name)
    facts, suffix = places_of(name)
    if b"%PDF-" in data[:1024]:
        pages = pdf_pages(data, name)
        rows = [_DOUBLED.sub(r"\1\2", line) for line in _without_heads(pages)]
        return "".join(pages), [*_typed(rows, layout, is_pdf=True)], facts | {"format": "pdf"}
    text = decoded(data, name)
    if suffix == "json":
        record = _record(text, name)
        fields = {
            key: "; ".join(map(str, value)) if isinstance(value, list) else str(value) for key, value in record.items()
        }
        body = record.get(layout.text_field) or ""
        if not isinstance(body, str):
            raise DocumentError(name, f"{layout.text_field} is not text")
        fields.pop(layout.text_field, None)
        return words_of_json(text), [*_typed(body.split("\n"), layout)], fields | facts | {"format": "json"}
    words, lines, title = lines_of(text, suffix, name, layout)
    return words, lines, facts | title


def places_of(name: str) -> tuple[dict[str, str], str]:
    """Return the facts of a file's path (place, stem and folder), and its suffix in small letters."""
    path, _, suffix = name.rpartition(".") if "." in name.rpartition("/")[2] else (name, "", "")
    folder, _, stem = path.rpartition("/")
    facts = {"place": re.sub(r"[\s/]+", "-", path), "stem": stem, "folder": folder.rpartition("/")[2]}
    return facts, suffix.lower()


def lines_of(text: str, suffix: str, name: str, layout: Layout) -> tuple[str, list[Line], dict[str, str]]:
    """Return the words of a text, its lines, and its format with a page's title, by suffix or else by its beginning."""
    if suffix in ("html", "htm") or _HTML.match(text):
        words, html_lines, title = _html(text, name)
        return words, html_lines, ({"title": title} if title else {}) | {"format": "html"}
    rows = text.split("\n")
    lines = _marked(rows) if suffix in ("md", "markdown") else _typed(rows, layout)
    return text, [*lines], {"format": "text"}


def words_of_json(text: str) -> str:
    """Return a text of JSON with its escapes as the characters that they stand for."""
    words = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[3] or " ", text)
    # Two escapes make one character of the upper planes.
    return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def decoded(data: bytes, name: str) -> str:
    """Return a file's text in NFC with plain line ends; DocumentError unless it is UTF-8, or UTF-16 with its mark."""
    if data.startswith(b"\x1f\x8b"):
        try:
            data = zlib.decompressobj(31).decompress(data, _UNPACKED)
        except zlib.error as error:
            raise DocumentError(name, "data packed with gzip, and damaged") from error
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        with suppress(UnicodeDecodeError):  # then it is binary data that begins alike
            data = data.decode("utf-16").encode()
    if b"\0" in data:
        raise DocumentError(name, "binary data, neither text nor a PDF")
    try:
        return unicodedata.normalize("NFC", data.decode("utf-8-sig")).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise DocumentError(name, f"not UTF-8 (byte {error.start + 1})") from error


def _record(text: str, name: str) -> dict[str, Any]:
    """Return a JSON object, each of its fields once."""
    try:
        record = parse_json(text, halves=True)
    except ValueError as error:
        raise DocumentError(name, f"not JSON ({str(error)[:100]})") from error
    if not isinstance(record, dict):
        raise DocumentError(name, "JSON, but not an object: a record is one")
    return record


def _marked(lines: Sequence[str]) -> Iterator[Line]:
    """Return the lines of Markdown without their marks."""
    above, fence, ends_broken = "", "", False
    for line, below in pairwise((*lines, "")):
        body = line.strip()
        if not body and not fence:
            above, ends_broken = "", False
            continue
        kind = "|" if body[:1] == "|" else "paragraph"
        if fence or body.startswith(("```", "~~~")):
            # Code is as it stands, up to a fence like the one that opened it.
            if fence and not body.startswith(fence):
                yield Line(body, "\n")
            fence = "" if fence and body.startswith(fence) else fence or body[:3]
            kind = "" if not fence else kind
        elif heading := _HEADING.fullmatch(body):
            yield Line(plain(heading[2].rstrip("# ")), rank=len(heading[1]))
            kind = ""
        elif _RULE.fullmatch(body):
            kind = above and kind
        elif kind == "|":
            cells = body.strip("|").split(" | " if " | " in body else "|")
            yield Line("\t".join(map(plain, cells)), "\n" if above else "\n\n")
        elif item := _ITEM.match(body):
            yield Line(plain(body[item.end() :]), "\n")
        elif not above and (underline := _UNDERLINE.fullmatch(below.strip())):
            yield Line(plain(body), rank=1 if underline[0][0] == "=" else 2)
            kind = ""
        else:
            yield Line(plain(body.lstrip("> ")), "\n" if ends_broken else " " if above else "\n\n")
        above, ends_broken = kind, line.endswith(("  ", "\\")) and kind == "paragraph"


def _typed(lines: Sequence[str], layout: Layout, *, is_pdf: bool = False) -> Iterator[Line]:
    """Return the lines of plain text, or of a PDF, in which no blank lines part paragraphs."""
    widest = SHORT_LINE * max(map(len, lines), default=0)
    above, was_heading = "", False
    for line in map(str.strip, lines):
        is_heading = _number_rank(line, layout) > 0
        if not above or is_heading or was_heading:
            separator = "\n\n"
        elif _BROKEN.search(above):
            separator = ""  # the hyphen stays, for most are the word's own ("non-defense")
        elif is_pdf and (len(above) < widest or (above[-1] in ".:" and line[-1:] != "." and is_title(line))):
            separator = "\n\n"
        elif len(above) < widest:
            separator = "\n"
        else:
            separator = "\n" if _BULLET.match(line) else " "
        if line:
            yield Line(line.replace("\uf0b7", "•"), separator)
        above, was_heading = line or (above if is_pdf else ""), is_heading


def _without_heads(pages: Sequence[str]) -> list[str]:
    """Return the lines of all pages without page numbers and what at least half of them repeat at top or bottom."""
    rows = [[line.strip() for line in page.replace("\r", "").split("\n") if line.strip()] for page in pages]
    edges = [{page[at] for at in (0, 1, -1, -2) if len(page) > 2} for page in rows]
    seen = Counter(masked for edge in edges for masked in {re.sub(r"\d+", "0", line) for line in edge})

    def is_head(line: str, edge: set[str]) -> bool:
        n = seen[re.sub(r"\d+", "0", line)] if line in edge and len(rows) > 1 else 0
        return (n > 1 and 2 * n >= len(rows)) or (n > 0 and _PAGE_NUMBER.fullmatch(line) is not None)

    return [line for page, edge in zip(rows, edges, strict=True) for line in page if not is_head(line, edge)]


def _html(text: str, name: str) -> tuple[str, list[Line], str]:
    """Return all words of a page of HTML, its lines, and its title."""
    from lxml import etree

    if any(tag["more"] for tag in _TAG.finditer(text)):
        raise DocumentError(name, TOO_MANY_ATTRIBUTES)  # the parser compares each with all before it
    parser = etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, encoding="utf-8")
    root = etree.fromstring(text.encode("utf-8", "replace") or b" ", parser)
    lines: list[Line] = []
    words: list[str] = []
    pieces: list[str] = []
    title, separator, rank, n_hidden = "", "\n\n", 0, 0
    for event, element in () if root is None else etree.iterwalk(root, ("start", "end")):
        tag, is_start = str(element.tag).lower(), event == "start"
        if tag in _HIDDEN:
            n_hidden += 1 if is_start else -1
        elif tag not in _INLINE:  # a line ends before and after every other element
            if line := " ".join("".join(pieces).split()):
                lines.append(Line(line, separator, rank))
                separator = ""
            pieces.clear()
            wanted = _PARTED.get(tag, "\n\n") if is_start or tag not in _PARTED else ""
            separator = max(separator, wanted, key=("", "\t", "\n", "\n\n").index)
            rank = int(tag[1]) if is_start and re.fullmatch("h[1-6]", tag) else 0
        piece = (element.text if is_start else element.tail) or ""
        words.append(piece)
        title = title or (piece if tag == "title" and is_start else "")
        pieces += [] if n_hidden else [piece]
    return "".join(words), lines, on_one_line(title)


def _body(lines: Sequence[Line], layout: Layout, left_out: Counter[str]) -> tuple[list[Line], frozenset[str]]:
    """Return the lines that are text, and the headings that lists of contents name."""
    starts = [
        n for n, line in enumerate(lines[:HEAD_LINES], 1) if layout.starts and re.search(layout.starts, line.text)
    ]
    first = starts[-1] if starts else 0
    body: list[Line] = []
    entries: set[str] = set()
    in_list = is_over = False
    for number, line in enumerate(lines):
        in_list = in_list and line.separator == "\n" and not line.rank
        is_over = is_over or (number >= first and bool(layout.ends) and re.search(layout.ends, line.text) is not None)
        if number < first or is_over or (layout.drops and re.search(layout.drops, line.text)):
            left_out[FURNITURE] += visible(line.text)
        elif in_list or (line.rank and layout.contents and re.fullmatch(layout.contents, line.text)):
            left_out[CONTENTS] += visible(line.text)
            entries |= {on_one_line(line.text)} if in_list else set()
            in_list = True
        else:
            body.append(line)
    return body, frozenset(entries)


def _ranked(lines: Sequence[Line], layout: Layout, entries: frozenset[str]) -> list[Line]:
    """Return the lines with a rank for each that is a heading, from the last one on: it depends on what is below."""
    ranked: list[Line] = []
    # Backwards, since a title right above a heading is one too.
    for above, line in reversed([*pairwise((Line(""), *lines))]):
        below = ranked[-1] if ranked else Line("", "")
        ranked.append(line._replace(rank=line.rank or _rank(above, line, below, layout, entries)))
    return ranked[::-1]


def _rank(above: Line, line: Line, below: Line, layout: Layout, entries: frozenset[str]) -> int:
    text = line.text
    is_alone = (line.separator, below.separator) == ("\n\n", "\n\n") and "\t" not in text + below.text
    if not is_alone or not text or len(text) > LONGEST_HEADING:
        return 0
    if on_one_line(text) in entries:
        return 1
    if (rank := _number_rank(text, layout)) and not _goes_on(text, layout):
        # Of numbers right below one another each is an item of a list.
        return 0 if rank in (_number_rank(above.text, layout), _number_rank(below.text, layout)) else rank
    is_set_apart = bool(below.rank) or len(below.text) > len(text)
    is_title_line = text.endswith("?") or is_title(text) or len(text.split()) <= 4
    return TITLE_RANK if layout.titles and is_set_apart and is_title_line and not _NO_TITLE.match(text) else 0


def _goes_on(text: str, layout: Layout) -> bool:
    """Return whether a numbered line ends as a sentence or amid one; laws also end headings with a full stop."""
    if layout.words:
        return text[-1] in ";,?" or (text[-1] == "." and len(text) > LONGEST_SENTENCE) or bool(_AMID.search(text))
    return text[-1] in ".;,?"


def _number_rank(text: str, layout: Layout) -> int:
    """Return the rank that a line's number and the word before it give it, 0 for none."""
    match = re.fullmatch(layout.headings, text.rstrip(": ")) if len(text) <= LONGEST_HEADING else None
    if not match:
        return 0
    groups = match.groupdict()
    if word := groups.get("word"):
        return next(rank for rank, words in enumerate(layout.words, 1) if re.fullmatch(words, word, re.I))
    return len(layout.words) + 1 + (groups.get("number") or "").count(".")


def _written(lines: Sequence[Line]) -> tuple[str, tuple[Any, ...]]:
    """Return the text, and a section from each heading to the next one of its rank or a higher one."""
    writer = TextWriter()
    open_parts: list[tuple[int, Part]] = []
    for line in lines:
        writer.separate(line.separator)
        if line.rank:
            while open_parts and open_parts[-1][0] >= line.rank:
                writer.close(open_parts.pop()[1])
            part = writer.open("heading", len(open_parts) + 1)
            part.heading = on_one_line(line.text.translate(INVISIBLE)).rstrip(": ")
            open_parts.append((line.rank, part))
        for number, cell in enumerate(line.text.split("\t")):
            writer.separate("\t" if number else "")
            writer.write(cell)
        if line.rank:
            writer.separate("\n\n")
    for _, part in reversed(open_parts):
        writer.close(part)
    return writer.finish()
