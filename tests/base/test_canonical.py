import hashlib
import json
import math
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base import canonical
from runner.base.canonical import (
    digest,
    file_sha256,
    json_bytes,
    json_line,
    jsonl_bytes,
    read_json,
    read_jsonl,
    remove_stale,
    rename_synced,
    rounded,
    sha256,
    slug,
    write_atomic,
)
from runner.base.errors import InputError
from runner.base.plain_yaml import read_yaml
from runner.base.records import BM25Cell, CrossCell, DenseCell, HybridCell
from runner.eval_set.catalog import ENCODERS, RERANKERS
from runner.eval_set.version import NOISE_FLOOR_CELL

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False, width=32) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_reading_canonical_json_and_writing_it_again_gives_the_same_bytes(value):
    written = json_bytes(value)
    assert json.loads(written) == rounded(value)
    assert json_bytes(json.loads(written)) == written
    assert json_line(json.loads(json_line(value))) == json_line(value)


@given(st.dictionaries(text, st.integers(), min_size=2, max_size=6))
def test_bytes_do_not_depend_on_the_order_of_keys(value):
    backwards = dict(reversed(value.items()))
    assert json_bytes(backwards) == json_bytes(value)
    assert digest(backwards) == digest(value)


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    return tmp_path_factory.mktemp("canonical")


@given(st.lists(st.dictionaries(text, json_values, max_size=3), max_size=4))
def test_rows_come_back_one_a_line(folder, rows):
    path = folder / "rows.jsonl"
    path.write_bytes(jsonl_bytes(rows))
    assert [row for _, row in read_jsonl(path)] == [rounded(row) for row in rows]


def test_floats_are_kept_to_nine_places_and_none_is_a_negative_zero():
    assert json_line([1 / 3, 0.1 + 0.2, -0.0, -1e-12]) == "[0.333333333, 0.3, 0.0, 0.0]"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_has_no_number_for_is_never_written(value):
    for writer in (json_bytes, json_line, digest):
        with pytest.raises(ValueError, match="cannot be written as JSON"):
            writer({"a": [value]})


LONG = ["x" * 50] * 4


@pytest.mark.parametrize(
    ("value", "laid_out"),
    [
        ({"b": "é", "a": [1]}, '{"a": [1], "b": "é"}'),
        ({}, "{}"),
        ({2: [], 10: {}}, '{"2": [], "10": {}}'),
        ((1, (2,)), "[1, [2]]"),
        (LONG, json.dumps(LONG)),
        ({"a": LONG, "b": [[1], [2]]}, '{\n "a": ' + json.dumps(LONG) + ',\n "b": [[1], [2]]\n}'),
        ([{"a": LONG}], '[\n {\n  "a": ' + json.dumps(LONG) + "\n }\n]"),
    ],
)
def test_committed_files_end_with_a_newline_and_are_read_by_people(value, laid_out):
    assert json_bytes(value) == f"{laid_out}\n".encode()


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (jsonl_bytes([{"a": "one\u2028two\x85three\x0bfour"}]), {1: {"a": "one\u2028two\x85three\x0bfour"}}),
        (b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \r\n{"a": 2}', {1: {"a": 1}, 4: {"a": 2}}),
        (b'{"a": "\\uD83D\\ude00"}\n', {1: {"a": "\U0001f600"}}),
    ],
    ids=["line separators in a string", "as people leave files", "beyond 16 bits"],
)
def test_rows_are_parted_by_newlines_alone(tmp_path, content, rows):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    assert dict(read_jsonl(path)) == rows


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": 1}\n{"a": ', ":2: not JSON"),
        (b'{"a": 1}\n[1]\n', ":2: a JSON object is expected, found list"),
        (b'{"a": 1} {"a": 2}\n', ":1: not JSON"),
        ('{"a": "caf\xe9"}\n'.encode("latin-1"), "is not UTF-8"),
        ('{"a": 1}\n'.encode("utf-16"), "is not UTF-8"),
        (b'{"a": ' + b"9" * 5000 + b"}\n", ":1: not JSON"),
        (b'{"a": "\\ud83d"}\n', ":1: not JSON"),
        (b"[" * 100_000 + b"\n", ":1: not JSON"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path, content, said):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(read_jsonl(path))
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["nowhere.json", "", "pipe"])
def test_a_file_that_is_missing_or_a_folder_or_a_pipe_is_an_input_error(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    for read in (read_json, lambda path: list(read_jsonl(path)), read_yaml):
        with pytest.raises(InputError, match=re.escape(str(tmp_path / name))):
            read(tmp_path / name)


def test_a_damaged_json_file_is_named(tmp_path):
    path = tmp_path / "lock.json"
    halves = (b'{"a": "\\ud83d"}', b'{"a": ["\\uDE00\\uD83D"]}', b'"\xed\xa0\xbd"')
    for content in (b"{", b"", b"\xff{}", b"NaN", b'{"a": 1, "a": 1}', b"[" * 100_000, *halves):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"lock\.json is not JSON"):
            read_json(path)


def test_a_files_digest_is_that_of_its_bytes(tmp_path):
    (tmp_path / "f").write_text("é", encoding="utf-8")
    assert (
        file_sha256(tmp_path / "f") == sha256("é") == sha256("é".encode()) == hashlib.sha256("é".encode()).hexdigest()
    )
    with pytest.raises(InputError, match="nowhere is missing"):
        file_sha256(tmp_path / "nowhere")


@given(st.text(max_size=40))
def test_a_slug_is_a_plain_file_name(name):
    made = slug(name)
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert not made.startswith("-")
    assert not made.endswith("-")
    assert slug(made) == made


def test_no_two_cells_share_a_file_name():
    from chunkers.registry import BARE, CHUNKERS, NARROWED

    cells = []
    for chunker in [*CHUNKERS, *NARROWED, *(name + BARE for name in (*CHUNKERS, *NARROWED))]:
        for variant in ("bm25", "bm25-okapi", "bm25@de"):
            cells.append(BM25Cell(variant, chunker))
            cells += [HybridCell(method, variant, e, chunker) for e in ENCODERS for method in ("rerank", "rrf", "sum")]
            cells += [CrossCell(variant, model, chunker) for model in RERANKERS]
        cells += [DenseCell(encoder, chunker, kind) for encoder in ENCODERS for kind in ("", "256", "int8", "bit")]
    names = [slug(str(cell)) for cell in cells]
    assert len(set(names)) == len(names)
    assert NOISE_FLOOR_CELL not in names


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "new" / "file"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_a_write_that_fails_keeps_the_earlier_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomic(path, b"one")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(canonical.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"two")
    assert path.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_rename_is_on_the_disk_when_the_write_returns(tmp_path, monkeypatch):
    """The file before the rename, then every folder that got a new name."""
    path, synced = tmp_path / "a" / "b" / "file", []
    monkeypatch.setattr(canonical.os, "fsync", lambda file: synced.append((os.fstat(file).st_ino, path.exists())))
    write_atomic(path, b"one")
    assert synced[0] == (path.stat().st_ino, False)
    assert set(synced[1:]) == {(folder.stat().st_ino, True) for folder in (path.parent, tmp_path / "a", tmp_path)}
    rename_synced(tmp_path / "a" / "b", tmp_path / "c")
    assert synced[-1][0] == tmp_path.stat().st_ino


def test_a_new_file_replaces_none(tmp_path):
    write_atomic(tmp_path / "file", b"one", new=True)
    with pytest.raises(FileExistsError):
        write_atomic(tmp_path / "file", b"two", new=True)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"one")]


WRITER = """
import os, sys
from pathlib import Path
from runner.base import canonical
def stop(descriptor):
    print("writing", flush=True)
    sys.stdin.read()
canonical.os.fsync = stop
canonical.write_atomic(Path(sys.argv[1]), b"whole")
"""


def test_what_a_killed_writer_left_is_removed_and_what_a_live_one_writes_is_not(tmp_path):
    writers = []
    for name in ("killed", "live"):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "deep" / name)]
        writers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert writers[-1].stdout.readline() == b"writing\n"
    writers[0].kill()
    writers[0].wait()
    (tmp_path / "elsewhere").write_text("of somebody else")
    (tmp_path / ".tmp-link").symlink_to(tmp_path / "elsewhere")
    assert len(list((tmp_path / "deep").iterdir())) == 2
    remove_stale(tmp_path)
    assert len(list((tmp_path / "deep").iterdir())) == 1
    for writer in writers:
        writer.communicate(timeout=60)
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "deep").iterdir()] == [("live", b"whole")]
    assert (tmp_path / "elsewhere").exists()
