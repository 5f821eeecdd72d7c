import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.canonical import json_line
from runner.base.errors import InputError
from runner.base.records import Document, Span
from runner.eval_set.batches import (
    LONGEST_PIECE,
    SHORTEST_PIECE,
    Shown,
    all_rows,
    batch_files,
    make_row,
    number_of,
    pieces,
    read_batch,
    rounds,
    write_batches,
)
from tests.support.labels import SHA

DOCUMENT = Document("d1", "One line.\n" * 200, "A title", "", "", "")


def row(query_id="q1"):
    return make_row("bills v1", SHA, (query_id, "what?"), DOCUMENT, Shown((Span(0, 500),)))


@given(st.text(st.sampled_from("ab \n\u2028é"), min_size=1, max_size=6_000), st.data())
def test_pieces_are_the_shown_characters_in_order_and_none_is_long(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    shown = [Span(start, data.draw(st.integers(start + 1, len(text))))]
    found = pieces(text, shown)
    assert [span.start for span in found] == [shown[0].start, *(span.end for span in found[:-1])]
    assert found[-1].end == shown[0].end
    assert all(span.end - span.start <= LONGEST_PIECE for span in found)


def test_pieces_end_at_line_breaks_and_short_lines_stay_together():
    text = "\n".join(["x" * 200] * 9)
    ends = [span.end for span in pieces(text, [Span(0, len(text))])]
    assert all(text[end - 1] == "\n" for end in ends[:-1])
    assert all(span.end - span.start >= SHORTEST_PIECE for span in pieces(text, [Span(0, len(text))]))


def test_a_batch_comes_back_as_it_was_written(tmp_path):
    (path,) = write_batches(tmp_path, [row("q1"), row("q2")])
    assert path.name == "batch-0001.jsonl"
    assert [(one.query_id, one.batch, one.version) for one in read_batch(path)] == [
        ("q1", "batch-0001", "bills v1"),
        ("q2", "batch-0001", "bills v1"),
    ]
    assert "".join(passage.text for passage in read_batch(path)[0].evidence) == DOCUMENT.text[:500]


def test_numbers_follow_the_files_there_are_and_those_that_labels_name(tmp_path):
    write_batches(tmp_path, [row()])
    (second,) = write_batches(tmp_path, [row()], above=1)
    (later,) = write_batches(tmp_path, [row()], above=41)
    (double,) = write_batches(tmp_path, [row()], "double")
    assert [path.stem for path in (second, later, double)] == ["batch-0002", "batch-0042", "double-0001"]
    assert [number_of(name) for name in ("batch-0042", "double-0001", "", "batch-x")] == [42, 1, 0, 0]
    assert [path.stem for path in batch_files(tmp_path)] == ["batch-0001", "batch-0002", "batch-0042"]


def test_a_pair_met_again_in_the_pool_is_a_further_round_and_a_second_reading_is_not(tmp_path):
    for _ in range(3):
        write_batches(tmp_path, [row()])
    write_batches(tmp_path, [row()], "double")
    assert rounds(all_rows(tmp_path)) == {
        ("batch-0001", ("q1", "d1")): 1,
        ("batch-0002", ("q1", "d1")): 2,
        ("batch-0003", ("q1", "d1")): 3,
        ("double-0001", ("q1", "d1")): 1,
    }


@pytest.mark.parametrize("field", ["query", "title", "version", "evidence", "row_sha256"])
def test_an_edited_row_is_named_with_its_line(tmp_path, field):
    (path,) = write_batches(tmp_path, [row("q1"), row("q2")])
    first, second = path.read_text().splitlines()
    fields = json.loads(second)
    fields[field] = fields[field][:-1] if field == "evidence" else "0" * 64
    path.write_text(f"{first}\n{json_line(fields)}\n")
    with pytest.raises(InputError, match=r"batch-0001\.jsonl:2: .*edited after export"):
        read_batch(path)


def test_a_batch_under_another_name_is_refused(tmp_path):
    (path,) = write_batches(tmp_path, [row()])
    renamed = path.rename(tmp_path / "batch-0009.jsonl")
    with pytest.raises(InputError, match=r"batch-0009\.jsonl:1: .*edited after export"):
        read_batch(renamed)


def test_a_folder_that_is_not_there_has_no_batches(tmp_path):
    assert batch_files(tmp_path / "none") == []
    assert list(all_rows(tmp_path / "none")) == []
