"""The real files of the shared corpora, and the account that every reader owes of a file."""

import csv
import html
import re
import shutil
import unicodedata
from pathlib import Path

from lxml import etree

from samplers.formats.pdf.text import pdf_pages
from samplers.source_format import FileContent

_TAG = re.compile(r"</?(?:html|head|title|body|pre|a|sup|inf)\b[^<>]*>", re.I)


PARTS = ("corpora", "corpora-new")
"""The folders of real files below the shared one; each has folders of sources, and the second may be missing."""


def whole_corpora(shared: Path, place: Path) -> Path:
    """Copy the real files of all PARTS into one folder, and return it."""
    for part in PARTS:
        for path in filter(Path.is_file, (shared / part).rglob("*")):
            copy = place / path.relative_to(shared / part)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)  # without its mode: a folder that is read-only takes no second part
    return place


def real_files(shared: Path, folder: str, pattern: str = "*") -> list[Path]:
    """Return the files of a folder of the corpora that MANIFEST.tsv lists and whose names match, sorted by place.

    AssertionError unless there are some and the folder holds exactly those.
    """
    corpora = shared / "corpora"
    with (corpora / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        stated = sorted(corpora / row["file"] for row in csv.DictReader(file, delimiter="\t"))
    paths = [path for path in stated if path.relative_to(corpora).parts[0] == folder and path.match(pattern)]
    assert paths
    assert paths == sorted(path for path in (corpora / folder).rglob(pattern) if path.is_file())
    return paths


def n_visible(text: str) -> int:
    """Return the number of characters of a text in NFC that are not white space, counted without the readers."""
    return len("".join(unicodedata.normalize("NFC", text).split()))


def assert_accounted(read: FileContent, words: str) -> None:
    """Check that the words of a file are its documents' texts without what was supplied, and what was left out."""
    in_texts = sum(n_visible(document.text) for document in read.documents)
    assert n_visible(words) == in_texts - read.supplied + sum(read.left_out.values())


def words_of(data: bytes, suffix: str) -> str:
    """Return all words of a file of that kind, by another way than a reader's."""
    if suffix == ".xml":
        return str(etree.fromstring(data, etree.XMLParser(remove_comments=True, remove_pis=True)).xpath("string()"))
    if suffix == ".html":
        return str(etree.fromstring(data, etree.HTMLParser(remove_comments=True, encoding="utf-8")).xpath("string()"))
    if suffix == ".pdf":
        return "".join(pdf_pages(data, "x.pdf"))
    text = data.decode("utf-8", "replace")
    if suffix in (".json", ".jsonl"):
        text = re.sub(r"\\u(....)", lambda found: chr(int(found[1], 16)), text)
        return text.replace("\\n", "\n").replace('\\"', '"')
    return html.unescape(_TAG.sub("", text)) if suffix == ".htm" else text
