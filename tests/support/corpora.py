"""The real files of the shared corpora, and the account that every reader owes of a file."""

import csv
import unicodedata
from pathlib import Path

from samplers.source_format import FileContent


def real_files(shared: Path, folder: str, pattern: str = "*") -> list[Path]:
    """The files below a folder of the corpora that MANIFEST.tsv lists and whose names match, sorted by place.

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
    """Characters of a text in NFC that are not white space, counted without the readers."""
    return len("".join(unicodedata.normalize("NFC", text).split()))


def assert_accounted(read: FileContent, words: str) -> None:
    """Check that the words of a file are its documents' texts without what was supplied, and what was left out."""
    in_texts = sum(n_visible(document.text) for document in read.documents)
    assert n_visible(words) == in_texts - read.supplied + sum(read.left_out.values())
