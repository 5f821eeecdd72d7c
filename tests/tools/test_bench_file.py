import io
import json
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.base import given_files as given_file
from runner.base.errors import InputError
from runner.tools.grade.grade import Bench, read_bench, read_pool

ROW = {"retrieved": ["a", "b"], "gold": "a"}

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip())


def written(folder, text, name="bench.jsonl"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(read, path):
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    return message


def test_a_row_needs_no_rel_and_may_hold_other_fields(tmp_path):
    path = written(tmp_path, '{"retrieved": ["a"], "gold": "b", "note": [1.5]}\n\n{"retrieved":[],"gold":"c","rel":0}')
    assert read_bench(path) == Bench([["a"], []], ["b", "c"], [3, 0], None)


def test_numbers_and_strings_name_the_same_id_in_bench_and_pool(tmp_path):
    bench = read_bench(written(tmp_path, '{"retrieved": [1, "1", " 1 ", -2], "gold": 1}'))
    assert bench.retrieved == [["1", "1", "1", "-2"]]
    assert bench.gold == ["1"]
    assert read_pool(written(tmp_path, " 1\r\n\n-2 \n", "pool.txt")) == ["1", "-2"]
    assert read_pool(written(tmp_path, '\n[1, "1",\n -2]', "pool.json")) == ["1", "1", "-2"]


def test_editors_marks_and_line_ends_are_accepted(tmp_path):
    text = "\ufeff" + json.dumps(ROW) + "\r\n \r\n" + json.dumps(ROW)
    assert len(read_bench(written(tmp_path, text)).gold) == 2
    assert read_pool(written(tmp_path, "\ufeffa\r\nb\r\n", "pool.txt")) == ["a", "b"]


def test_strata_stand_in_every_row_or_in_none(tmp_path):
    row, other = json.dumps(ROW), json.dumps({**ROW, "stratum": "x"})
    assert read_bench(written(tmp_path, f"{other}\n{other}")).strata == ["x", "x"]
    for text in (f"{row}\n{other}", f"{other}\n{row}"):
        assert ":2: a stratum stands in every row" in refusal(read_bench, written(tmp_path, text))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[1]", "the whole"),
        ("{", "not JSON"),
        ('{"gold": "a"}', "retrieved: missing"),
        ('{"retrieved": "abc", "gold": "a"}', "retrieved: "),
        ('{"retrieved": [true], "gold": "a"}', "retrieved.0: "),
        ('{"retrieved": [" "], "gold": "a"}', "retrieved.0: "),
        ('{"retrieved": ["a"], "gold": "\\ud83d"}', "half of a surrogate pair"),
        ('{"retrieved": ["a"], "gold": "a", "rel": NaN}', "NaN is not a number"),
        ('{"retrieved": ["a"], "gold": "a", "rel": -1}', "rel: "),
        ('{"retrieved": ["a"], "gold": "a", "rel": 1' + "0" * 50 + "}", "rel: "),
        ('{"retrieved": ["a"], "gold": "a", "rel": ' + "9" * 5000 + "}", "not JSON"),
        ('{"retrieved": ["a"], "gold": "a", "stratum": []}', "stratum: "),
        ('{"retrieved": ["a"], "gold": "a", "gold": "b"}', "a field occurs twice"),
        ('{"retrieved": ["a"], "gold": "a", "x": ' + "[" * 100_000, "not JSON"),
        ('{"retrieved": ["a"], "\x1b[31m": "a"}', "not JSON"),
        (b'{"retrieved": ["\xff"], "gold": "a"}', "not UTF-8"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, complaint):
    line = line if isinstance(line, bytes) else line.encode()
    path = written(tmp_path, json.dumps(ROW).encode() + b"\n\n" + line)
    message = refusal(read_bench, path)
    assert message.startswith(f"{path}:3: ")
    assert complaint in message
    assert len(message) < 1000


def test_a_line_beyond_the_bound_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(given_file, "MAX_LINE", 100)
    path = written(tmp_path, json.dumps(ROW) + "\n" + json.dumps({**ROW, "note": "x" * 100}))
    assert ":2: a line of more than 100 bytes" in refusal(read_bench, path)


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
def test_a_file_without_rows_is_refused(tmp_path, text):
    assert "has no rows" in refusal(read_bench, written(tmp_path, text))
    assert "is an empty pool" in refusal(read_pool, written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "empty pool"),
        ('["a", 1.5]', "pool.1: "),
        ("[doc1]\n[doc2]", "pool.txt: not JSON (Expecting value: line 1 column 2 (char 1)). A pool that begins with ["),
        (b"a\nb\xff\n", "pool.txt:2: not UTF-8 (byte 2)"),
    ],
)
def test_a_malformed_pool_is_named(tmp_path, text, complaint):
    path = written(tmp_path, text, "pool.txt")
    assert complaint in refusal(read_pool, path)


def test_powershells_utf_16_is_named(tmp_path):
    for encoding in ("utf-16-le", "utf-16-be"):
        path = written(tmp_path, "\ufeff".encode(encoding) + json.dumps(ROW).encode(encoding))
        assert "UTF-16, as PowerShell" in refusal(read_bench, path)


def test_standard_input_is_read_and_named(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROW).encode() + b"\n{")))
    assert refusal(read_bench, "-").startswith("<stdin>:2: not JSON")


def test_files_that_cannot_be_read_are_named(tmp_path):
    assert "does not exist. Give the path" in refusal(read_bench, tmp_path / "absent.jsonl")
    assert "cannot be read (Is a directory)" in refusal(read_bench, tmp_path)
    assert "cannot be read (embedded null byte)" in refusal(read_bench, "a\0b")
    assert "cannot be read (File name too long)" in refusal(read_bench, "x" * 5000)
    (tmp_path / "file").touch()
    assert "does not exist" in refusal(read_bench, tmp_path / "file" / "bench.jsonl")


@given(st.lists(st.tuples(st.lists(ids, max_size=4), ids, st.integers(0, 9)), min_size=1, max_size=5))
def test_a_written_bench_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("benches") / "bench.jsonl"
    fields = ({"retrieved": found, "gold": gold, "rel": rel} for found, gold, rel in rows)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in fields), encoding="utf-8")
    bench = read_bench(path)
    assert bench.retrieved == [[item.strip() for item in found] for found, _, _ in rows]
    assert bench.gold == [gold.strip() for _, gold, _ in rows]
    assert bench.rel == [rel for _, _, rel in rows]


@given(st.binary(max_size=60))
@example(json.dumps(ROW).encode())
def test_any_bytes_are_read_or_refused_with_one_message(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("hostile") / "file"
    path.write_bytes(data)
    for read in (read_bench, read_pool):
        try:
            found = read(path)
        except InputError:
            assert str(path) in refusal(read, path)
        else:
            assert found.gold if read is read_bench else found
