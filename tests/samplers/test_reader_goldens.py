"""Fixtures in the real formats, in words of our own, against what a person has checked that they hold."""

import unicodedata

import pytest

from samplers.registry import READERS, source_format
from tests.support.reader_goldens import GOLDEN, fixtures, golden_of

CASES = [
    (source, path)
    for source in READERS
    for path in fixtures(source)
    if path.suffix.lower() in source_format(source).suffixes
]
"""Sidecars are left out: they are read with the folder that they lie in."""


def _is_read_as_utf8(path):
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError:
        return False
    return not path.with_name(path.name + GOLDEN).read_text(encoding="utf-8").startswith("refused")


READ = [case for case in CASES if _is_read_as_utf8(case[1])]


@pytest.mark.parametrize(("source", "path"), CASES, ids=[f"{source}-{path.name}" for source, path in CASES])
def test_a_fixture_reads_as_it_was_checked(source, path):
    golden = path.with_name(path.name + GOLDEN)
    assert golden.exists(), f"python -m tests.support.reader_goldens {source}, then read {golden.name}"
    assert golden_of(source, path) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(("source", "path"), READ, ids=[f"{source}-{path.name}" for source, path in READ])
def test_an_accent_that_stands_apart_from_its_letter_changes_nothing(source, path):
    words = path.read_bytes().decode().replace("the ", "th\u00e9 ")
    composed, apart = (
        source_format(source).read(unicodedata.normalize(form, words).encode(), path.name, frozenset())
        for form in ("NFC", "NFD")
    )
    assert apart == composed


@pytest.mark.parametrize("source", READERS)
def test_every_source_has_at_least_six_fixtures(source):
    row = source_format(source)
    assert len([path for path in fixtures(source) if path.suffix.lower() in row.suffixes]) >= 6


def test_every_golden_belongs_to_a_fixture():
    folders = {path.parent for _, path in CASES}
    orphans = [g for folder in folders for g in folder.glob(f"*{GOLDEN}") if not g.with_name(g.stem).exists()]
    assert orphans == []
