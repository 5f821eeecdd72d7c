import random
from pathlib import Path

import pytest
from hypothesis import settings

from samplers.registry import READERS
from tests.support.reader_fuzz import answer, case, files_of, row_of, run
from tests.support.reader_goldens import DATA
from tests.support.reader_mutations import GENERAL, OF_MARKUP, json_values

PLANTED = "tests.support.planted_reader"
N = 2 * settings().max_examples
"""Inputs of a source: 50 in the suite, 200 in the profile "all"."""

LARGEST = 150_000
"""Bytes that an input is cut to here; the search over real files takes whole ones."""


@pytest.mark.parametrize("source", READERS)
def test_a_damaged_fixture_is_read_or_refused_and_nothing_else(source):
    files = files_of(row_of(source), DATA / source)
    found = []
    n_read = 0
    for number in range(N):
        data, name, damage = case(source, files, 0, number)
        n_documents, flaws = answer(source, data[:LARGEST], name)
        n_read += n_documents > 0
        found += [(number, damage, flaw) for flaw in flaws]
    assert found == []
    assert 0 < n_read < N


def planted(tmp_path: Path, *names: str, n: int = 12, seconds: int = 60) -> dict[str, set[str]]:
    """What the search says of inputs of these names."""
    files = [tmp_path / f"{name}.txt" for name in names]
    for path in files:
        path.write_bytes(b"a few words")
    said: dict[str, set[str]] = {name: set() for name in names}
    for number, _, flaws, _ in run(PLANTED, files, seed=0, n=n, seconds=seconds):
        said[Path(case(PLANTED, files, 0, number)[1]).stem].update(flaws)
    return said


def test_the_search_finds_a_crash_a_greedy_reader_foreign_words_and_what_cannot_be_shown(tmp_path):
    said = planted(tmp_path, "crash", "greedy", "foreign", "control", "babble")
    assert said["crash"] == {"planted_reader.py:15 KeyError: 'planted'"}
    assert any(" MB for an input of " in words for words in said["greedy"])
    assert "the text of another file" in said["foreign"]
    assert "control characters in the text: ['\\x1b']" in said["control"]
    assert any(words.startswith("a reason that fits no table") for words in said["babble"])


@pytest.mark.slow
def test_the_search_finds_a_hang_and_goes_on_behind_it(tmp_path):
    said = planted(tmp_path, "hang", "good", n=3, seconds=1)
    assert said["hang"] <= {"a hang in planted_reader.py:17", "a hang in planted_reader.py:18"}
    assert said["hang"]
    assert said["good"] == set()


def test_a_refusal_is_no_finding(tmp_path):
    assert planted(tmp_path, "refuse") == {"refuse": set()}


@pytest.mark.parametrize("mutation", [*GENERAL, *OF_MARKUP, json_values], ids=lambda mutation: mutation.__name__)
def test_every_kind_of_damage_changes_most_files_and_takes_any(mutation):
    data = b'<a x="2"><b y="1">Words 1 2 3</b>\n<c>of another\nline 4 5</c></a>\n' * 20
    if mutation is json_values:
        data = b'{"a": "one", "b": ["two"], "c": 3}'
    done = [mutation(data, data[::-1], random.Random(seed)) for seed in range(10)]
    assert sum(result != data for result in done) >= 5
    for odd in (b"", b"\x00", b"<", "§".encode(), "x".encode("utf-16")):
        assert isinstance(mutation(odd, odd, random.Random(1)), bytes)


@pytest.mark.shared
@pytest.mark.parametrize("source", READERS)
def test_a_damaged_real_file_is_read_or_refused_and_nothing_else(source, shared):
    files = files_of(row_of(source), shared / "corpora" / source)
    if not files:
        pytest.skip(f"no real file of {source}")
    assert [found for found in run(source, files, seed=1, n=N // 4) if found.flaws] == []
