import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.canonical import file_sha256, json_line, sha256
from runner.base.errors import InputError
from runner.eval_set.batches import all_rows, batch_files
from runner.eval_set.labels import load_labels
from runner.eval_set.shapes.labels import BatchRow
from runner.judge.answers import Imported, Importer
from tests.support.small_judging import MODEL, answer, everything, export, give, rows
from tests.support.small_set import make_version


@pytest.fixture(name="judged")
def _judged(version):
    """A version whose first batch waits for a judge, and a way to import an answer file."""
    missing = everything(version)
    pairs = [pair for pair in missing if pair != ("q25", "BILLS-117hr116ih")]
    export(version, pairs)
    return version


def once(version):
    """Rows of pairs that stand in one batch alone, in the order of the batches."""
    found = list(all_rows(version.judging))
    pairs = [(row.query_id, row.doc_id) for row in found]
    return [row for row, pair in zip(found, pairs, strict=True) if pairs.count(pair) == 1]


def repeat(version):
    """The first planted repeat: its first row, and the one of a later batch."""
    first = {}
    for row in all_rows(version.judging):
        if (row.query_id, row.doc_id) in first:
            return first[row.query_id, row.doc_id], row
        first[row.query_id, row.doc_id] = row
    raise AssertionError("nothing is repeated")


def test_an_answer_becomes_a_label_with_its_provenance(judged):
    done = give(judged, answer(reason="because", spans=[[0, 10]]))
    assert (done.added, done.known) == (1, 0)
    (made,) = load_labels(judged.labels_path)
    assert (made.query_id, made.doc_id, made.grade, made.reason) == ("q01", "BILLS-117hr101ih", 2, "because")
    assert (made.judge, made.model, made.round, made.judged_on) == ("j", MODEL, 1, "2026-01-31")
    assert made.prompt_sha256 == file_sha256(judged.judge_path)
    (row,) = [
        row
        for row in rows(judged.judging.glob("batch-*"))
        if (row["query_id"], row["doc_id"]) == ("q01", "BILLS-117hr101ih")
    ]
    assert made.evidence_sha256 == row["evidence_sha256"]
    assert row in rows([judged.judging / f"{made.batch}.jsonl"])


def test_a_line_may_name_its_own_judge_model_and_round(judged):
    give(judged, answer(judge="k", model="n", round=2), judge="")
    (made,) = load_labels(judged.labels_path)
    assert (made.judge, made.model, made.round) == ("k", "n", 2)


def test_labels_stand_in_the_order_of_the_batches_whatever_the_order_of_the_answers(judged):
    asked = once(judged)[:8]
    give(judged, *(answer(row.query_id, row.doc_id) for row in reversed(asked)))
    labels = load_labels(judged.labels_path)
    assert [(one.query_id, one.doc_id) for one in labels] == [(row.query_id, row.doc_id) for row in asked]


def test_passages_named_by_number_become_their_characters(judged):
    row = once(judged)[0]
    give(judged, answer(row.query_id, row.doc_id, passages=[1, 1], spans=[[0, 3]]))
    (made,) = load_labels(judged.labels_path)
    assert made.spans == sorted([[0, 3], [row.evidence[0].start, row.evidence[0].end]])


def test_a_repeated_pair_needs_its_batch_and_is_a_further_round(judged):
    first, again = repeat(judged)
    pair = (first.query_id, first.doc_id)
    with pytest.raises(InputError, match=rf"stand in {first.batch}, {again.batch}: say which is answered"):
        give(judged, answer(*pair))
    give(judged, answer(*pair, batch=first.batch), answer(*pair, grade=1, batch=again.batch))
    assert [(one.round, one.grade, one.batch) for one in load_labels(judged.labels_path)] == [
        (1, 2, first.batch),
        (2, 1, again.batch),
    ]


def test_a_file_named_after_a_batch_answers_that_batch(judged):
    _, again = repeat(judged)
    pair = (again.query_id, again.doc_id)
    give(judged, answer(*pair), name=f"{again.batch}.answers.jsonl")
    (made,) = load_labels(judged.labels_path)
    assert (made.batch, made.round) == (again.batch, 2)


OTHER = {
    "version": ({"version": "bills v7"}, r"it answers another version \(bills v7\)"),
    "prompt": ({"prompt_sha256": "0" * 64}, "it answers another judge prompt"),
    "evidence": ({"evidence_sha256": "0" * 64}, "it answers another evidence"),
    "batch": ({"batch": "batch-0099"}, "batch-0099 does not hold query"),
    "passage": ({"passages": [99]}, "passage 99 is none of the"),
}


@pytest.mark.parametrize("name", OTHER)
def test_an_answer_to_something_else_is_refused_by_name(judged, name):
    fields, said = OTHER[name]
    row = once(judged)[0]
    with pytest.raises(InputError, match=rf"answers\.jsonl:1: .*{said}"):
        give(judged, answer(row.query_id, row.doc_id, **fields))
    assert not judged.labels_path.exists()


@pytest.mark.parametrize("field", ["query", "title", "doc_id", "evidence_sha256"])
def test_a_batch_that_was_edited_after_export_is_named_with_its_line(judged, field):
    path = batch_files(judged.judging)[0]
    lines = path.read_text(encoding="utf-8").splitlines()
    fields = json.loads(lines[4])
    fields[field] = "0" * 64 if field == "evidence_sha256" else "BILLS-117hr102ih"
    lines[4] = json_line(fields)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    row = read_row(lines[-1])
    with pytest.raises(InputError, match=rf"{path.name}:5: .*edited after export"):
        give(judged, answer(row.query_id, row.doc_id))
    assert not judged.labels_path.exists()


def read_row(line):
    """The row of a line."""
    return BatchRow.model_validate_json(line)


def test_the_same_file_twice_adds_nothing_and_changes_no_byte(judged):
    give(judged, answer(), answer("q02", grade=0))
    before = judged.labels_path.read_bytes()
    again = give(judged, answer(), answer("q02", grade=0))
    assert again == Imported(added=0, known=2)
    assert judged.labels_path.read_bytes() == before


BAD = {
    "unknown query": (answer("q99"), "demo v1 has no query 'q99'"),
    "unknown document": (answer(doc_id="BILLS-117hr999ih"), "demo v1 has no document 'BILLS-117hr999ih'"),
    "grade 4": (answer(grade=4), "grade: above 3 (found 4)"),
    "grade -1": (answer(grade=-1), "grade: below 0 (found -1)"),
    "grade in quotes": (answer(grade="2"), "grade: not a whole number (found '2')"),
    "no grade": ({"query_id": "q01", "doc_id": "d"}, "grade: missing"),
    "span past the text": (answer(spans=[[0, 10**6]]), "a supporting span lies outside BILLS-117hr101ih"),
    "empty span": (answer(spans=[[5, 5]]), "a supporting span lies outside BILLS-117hr101ih"),
    "half a span": (answer(spans=[[5]]), "spans.0: "),
    "round 0": (answer(round=0), "round: "),
    "not an object": ("[1, 2]", "a JSON object is expected, found list"),
    "half an emoji": ('{"query_id": "q01", "doc_id": "BILLS-117hr101ih", "grade": 1, "reason": "\\ud83d"}', "not JSON"),
    "another grade": (answer(grade=0), "have grade 2 by j already; this line says 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_nothing_of_a_file_with_a_bad_line_is_imported(judged, name):
    bad, said = BAD[name]
    give(judged, answer())
    before = judged.labels_path.read_bytes()
    with pytest.raises(InputError) as caught:
        give(judged, answer("q02"), "", bad, answer("q03"), name="bad.jsonl")
    assert f"{judged.work / 'bad.jsonl'}:3: " in str(caught.value)
    assert said in str(caught.value)
    assert judged.labels_path.read_bytes() == before


def test_a_pair_that_a_file_grades_twice_is_named_by_both_places(judged):
    with pytest.raises(InputError) as caught:
        give(judged, answer(), answer("q02"), answer(grade=0), name="twice.jsonl")
    places = [f"{judged.work / 'twice.jsonl'}:{number}" for number in (1, 3)]
    assert [place in str(caught.value) for place in places] == [True, True]
    assert "withdraw" not in str(caught.value), "there is nothing to take back"
    assert not judged.labels_path.exists()


def test_grades_of_a_table_are_answers(judged):
    path = judged.work / "grades.csv"
    table = ['q01,BILLS-117hr101ih,2,"a fee, in 4"', "q02,BILLS-117hr101ih, 0 ,", ""]
    path.write_bytes("\r\n".join(["\ufeffquery_id,doc_id,grade,reason", *table]).encode())
    assert Importer(judged).take_file(path, judge="ann", model="", judged_on="2026-01-31") == Imported(2, 0)
    made = {(label.query_id, label.grade, label.reason) for label in load_labels(judged.labels_path)}
    assert made == {("q01", 2, "a fee, in 4"), ("q02", 0, "")}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("query,doc_id,grade\nq01,d,2\n", ":1: a header with the columns query_id, doc_id, grade"),
        ("query_id|doc_id|grade\nq01|d|2\n", ":1: a header with the columns query_id, doc_id, grade is expected"),
        ("query_id,doc_id,grade\nq01,BILLS-117hr101ih,4\n", ":2: grade: above 3 (found 4)"),
        ("query_id,doc_id,grade\nq01,BILLS-117hr101ih,two\n", ":2: grade: not a whole number (found 'two')"),
        ("query_id,doc_id,grade\nq01,BILLS-117hr101ih,\n", ":2: grade: missing"),
        ("query_id,doc_id,grade\nq01,BILLS-117hr101ih\n\nq01,a,2,3\n", ":2: 2 fields, and the header has 3.\n"),
        ("query_id,doc_id,grade\nq01,BILLS-117hr101ih\n\nq01,a,2,3\n", ":4: 4 fields, and the header has 3."),
        ("qid;docid;relevance;mark\nq01;BILLS-117hr101ih;7;x\nq98;x;1;\nq01;y;9;\n", ":4: grade: above 3 (found 9)"),
        ("query_id,doc_id,grade\nq01,BILLS-117hr101ih,2\nq99,x,1\n", ":3: demo v1 has no query 'q99'"),
        ("query_id,doc_id,grade\n", "holds no answers"),
    ],
)
def test_a_table_that_is_no_grades_is_refused_whole(judged, content, said):
    path = judged.work / "grades.csv"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        Importer(judged).take_file(path, judge="ann", model="", judged_on="2026-01-31")
    assert said in str(caught.value)
    assert not judged.labels_path.exists()


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf\r\n"])
def test_a_file_without_answers_is_refused(judged, content):
    path = judged.work / "empty.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"empty\.jsonl holds no answers"):
        Importer(judged).take_file(path, judge="j", model="", judged_on="2026-01-31")


@pytest.fixture(name="exported", scope="module")
def _exported(ready, tmp_path_factory):
    """A folder with a version whose pairs of the first two documents are with a judge, in one batch."""
    folder = tmp_path_factory.mktemp("exported")
    shutil.copytree(ready, folder, dirs_exist_ok=True)
    version = make_version(folder)
    missing = everything(version)
    pairs = [pair for pair in missing if pair[1] in ("BILLS-117hr101ih", "BILLS-117hr102ih")]
    export(version, pairs)
    return folder


answer_rows = st.builds(
    answer,
    st.sampled_from(["q01", "q02", "q03"]),
    st.sampled_from(["BILLS-117hr101ih", "BILLS-117hr102ih"]),
    st.integers(0, 3),
    reason=st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
)


@given(st.lists(answer_rows, min_size=1, max_size=6))
def test_an_import_is_whole_or_nothing(exported, tmp_path_factory, answers):
    folder = tmp_path_factory.mktemp("import")
    shutil.copytree(exported, folder, dirs_exist_ok=True)
    version = make_version(folder)
    agreed = {}
    for one in answers:
        agreed.setdefault((one["query_id"], one["doc_id"]), set()).add(one["grade"])
    if any(len(grades) > 1 for grades in agreed.values()):
        with pytest.raises(InputError, match="twice"):
            give(version, *answers)
        assert load_labels(version.labels_path) == ()
    else:
        give(version, *answers)
        made = load_labels(version.labels_path)
        assert {(one.query_id, one.doc_id): {one.grade} for one in made} == agreed
        assert sha256("".join(json_line(one.model_dump()) + "\n" for one in made)) == file_sha256(version.labels_path)
