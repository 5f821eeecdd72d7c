import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.eval_set.shapes.queries import QueryRow
from runner.queries.draft_answers import Draft
from runner.queries.query_file import append_queries, read_queries
from runner.queries.taken_drafts import DRAFTED, TAKEN, TakenDrafts


def draft(number, text, note="n"):
    query = QueryRow(id="d01", text=text, kind="topic", origin="generated", source_document=f"D{number}", note=note)
    return Draft(f"{number:064x}", query, f"row {number}")


def keep(folder, *drafts, queries=()):
    return TakenDrafts(folder, queries).keep(drafts, "demo v1")


def texts(folder):
    return {row.id: row.text for row in read_queries(folder / DRAFTED)}


def without(folder, doc_id):
    """drafted.yaml as a person leaves it who deletes the draft of a document."""
    path = folder / DRAFTED
    rows = [row for row in read_queries(path) if row.source_document != doc_id]
    path.unlink()
    append_queries(path, rows, "demo v1")


def test_drafts_are_put_to_the_end_and_read_again_leave_the_file_alone(tmp_path):
    drafts = [draft(1, "zeppelin moorings"), draft(2, "gliders at dusk")]
    assert keep(tmp_path, *drafts).new == ["d01", "d02"]
    edited = (tmp_path / DRAFTED).read_bytes() + b"# looked over\n"
    (tmp_path / DRAFTED).write_bytes(edited)
    again = keep(tmp_path, *drafts)
    assert (again.new, again.replaced, again.as_is) == ([], [], 2)
    assert (tmp_path / DRAFTED).read_bytes() == edited
    assert keep(tmp_path, draft(3, "balloons")).new == ["d03"]


def test_another_answer_of_a_row_takes_its_draft_s_place(tmp_path):
    keep(tmp_path, draft(1, "zeppelin moorings"), draft(2, "gliders at dusk"))
    path = tmp_path / DRAFTED
    path.write_bytes(path.read_bytes().replace(b"  - id: d02", b"  # mine\n  - id: d02"))
    kept = keep(tmp_path, draft(1, "balloons in fog", "better"))
    assert (kept.new, kept.replaced) == ([], ["d01"])
    assert texts(tmp_path) == {"d01": "balloons in fog", "d02": "gliders at dusk"}
    assert read_queries(path)[0].note == "better"
    assert b"  # mine\n" in path.read_bytes()
    assert keep(tmp_path, draft(1, "airships")).replaced == ["d01"]
    assert keep(tmp_path, draft(1, "zeppelin moorings")).edited == 1


def test_a_deleted_draft_stays_out_but_another_answer_of_its_row_comes_in(tmp_path):
    drafts = [draft(1, "zeppelin moorings"), draft(2, "gliders at dusk")]
    keep(tmp_path, *drafts)
    without(tmp_path, "D1")
    kept = keep(tmp_path, *drafts)
    assert (kept.new, kept.deleted, kept.as_is) == ([], 1, 1)
    assert TakenDrafts(tmp_path, []).usable() == {drafts[1].key}
    assert keep(tmp_path, draft(1, "balloons")).new == ["d03"]
    assert texts(tmp_path) == {"d02": "gliders at dusk", "d03": "balloons"}


def test_a_draft_that_a_person_edited_stays_as_they_left_it(tmp_path):
    keep(tmp_path, draft(1, "zeppelin moorings"))
    path = tmp_path / DRAFTED
    path.write_bytes(path.read_bytes().replace(b"zeppelin", b"airship"))
    for text in ("zeppelin moorings", "balloons in fog"):
        assert keep(tmp_path, draft(1, text)).edited == 1
    assert texts(tmp_path) == {"d01": "airship moorings"}


def test_drafts_that_became_queries_do_not_come_back(tmp_path):
    one = draft(1, "Zeppelin moorings")
    keep(tmp_path, one)
    (tmp_path / DRAFTED).unlink()
    taken = TakenDrafts(tmp_path, [one.query])
    assert taken.usable() == {one.key}
    kept = taken.keep([one, draft(1, "balloons"), draft(2, "zeppelin  MOORINGS")], "demo v1")
    assert (kept.new, kept.queries, kept.deleted) == ([], 3, 0)
    assert not (tmp_path / DRAFTED).exists()


def test_a_draft_that_says_what_another_row_s_says_is_named(tmp_path):
    kept = keep(tmp_path, draft(1, "zeppelin moorings"), draft(2, "Zeppelin Moorings"))
    assert kept.new == ["d01"]
    assert kept.repeats == ["row 2: 'Zeppelin Moorings': d01 of drafted.yaml says so already"]
    assert TakenDrafts(tmp_path, []).usable() == {draft(1, "x").key}


def test_a_draft_of_which_the_memory_was_lost_is_known_by_its_text(tmp_path):
    keep(tmp_path, draft(1, "zeppelin moorings"))
    (tmp_path / TAKEN).unlink()
    assert keep(tmp_path, draft(1, "zeppelin moorings")).as_is == 1
    assert keep(tmp_path, draft(1, "balloons")).replaced == ["d01"]


def test_no_drafts_write_no_file(tmp_path):
    assert keep(tmp_path).new == []
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_memory_is_named(tmp_path):
    (tmp_path / TAKEN).write_text('{"key": 1}\n')
    with pytest.raises(InputError, match=r"drafts-taken\.jsonl:1: key"):
        TakenDrafts(tmp_path, [])


ANSWERS = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["ferry", "dog", "lamp", "mast"])), max_size=8)


@given(ANSWERS, ANSWERS)
def test_no_row_has_two_drafts_and_no_text_stands_twice(tmp_path_factory, first, second):
    folder = tmp_path_factory.mktemp("reading")
    for answers in (first, second):
        latest = {number: draft(number, text) for number, text in answers}
        keep(folder, *latest.values())
    rows = read_queries(folder / DRAFTED) if (folder / DRAFTED).exists() else []
    assert len({row.source_document for row in rows}) == len({row.text for row in rows}) == len(rows)
