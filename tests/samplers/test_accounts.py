"""Every character of a file is text or left out for a reason, with every option, for fixtures and for real files."""

import random

import pytest
from lxml import etree

from runner.base.errors import DocumentError
from samplers.registry import source_format
from tests.samplers.test_reader_goldens import CASES
from tests.support.corpora import assert_accounted, real_files, words_of
from tests.support.corpora_table import FOLDERS


def check(source, path):
    row, data = source_format(source), path.read_bytes()
    for options in {frozenset(), frozenset(row.options)}:
        read = row.read(data, f"{path.parent.name}/{path.name}", options)
        if not (path.suffix == ".pdf" and read.skipped):  # a page of the web in place of a PDF has no lines
            assert_accounted(read, words_of(data, path.suffix))
        assert all(n > 0 for n in read.left_out.values())


@pytest.mark.parametrize(("source", "path"), CASES, ids=[f"{source}-{path.name}" for source, path in CASES])
def test_every_character_of_a_fixture_is_text_or_left_out_for_a_reason(source, path):
    if b"&mdash;" in path.read_bytes():
        pytest.skip("an undeclared reference has no characters of its own to count")
    try:
        check(source, path)
    except DocumentError as error:
        pytest.skip(f"refused: {error.reason}")


RENAMED = "P HD E SU FTNT FTREF SECTION SECTNO REGTEXT PART AMDPAR EXTRACT GPOTABLE ROW BOXHD SIG SUBJECT SUM RULE AUTH"

REGISTER = [path for source, path in CASES if source == "federal_register" and not path.name.startswith("BILLS")]


@pytest.mark.parametrize("path", REGISTER, ids=lambda path: path.name)
def test_every_character_is_accounted_for_whatever_the_elements_of_the_register_are_called(path, tmp_path):
    draw, n_read = random.Random(6), 0
    for _ in range(40):
        root = etree.fromstring(path.read_bytes())
        for element in root.iterdescendants(etree.Element):
            if draw.random() < 0.15:
                element.tag = draw.choice(RENAMED.split())
        (tmp_path / path.name).write_bytes(etree.tostring(root))
        try:
            check("federal_register", tmp_path / path.name)
        except DocumentError:
            continue  # refused, as where its number is gone
        n_read += 1
    assert n_read > 10


@pytest.mark.shared
@pytest.mark.parametrize("folder", [name for name in FOLDERS if name != "cbo_cost_estimates"])
def test_every_character_of_every_real_file_is_text_or_left_out_for_a_reason(folder, shared):
    for path in real_files(shared, folder):
        if path.suffix in source_format(folder).suffixes:
            check(folder, path)
