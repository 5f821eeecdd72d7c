import csv
import io
import json
import shutil

import pytest

from runner.base.errors import InputError
from runner.eval_set.labels import load_labels
from runner.eval_set.version import load_queries
from runner.judge.answers import Importer
from runner.tools.judgment_lists import list_answers, list_bytes
from tests.support.small_judging import answer, give
from tests.support.small_set import make_version

ANN = [answer(grade=3), answer(doc_id="BILLS-117hr102ih", grade=0), answer("q02", grade=1)]
BEN = [answer(grade=2), answer("q03", grade=0)]


@pytest.fixture(name="judged")
def _judged(version):
    """A version with labels of two judges, on whole documents."""
    give(version, *ANN, judge="ann", model="", unbatched=True)
    give(version, *BEN, judge="Ben, of the =library", model="", unbatched=True)
    return version


@pytest.fixture(name="other")
def _other(ready, tmp_path):
    """The same version elsewhere, without a label."""
    shutil.copytree(ready, tmp_path / "other", dirs_exist_ok=True)
    return make_version(tmp_path / "other")


def graded(version):
    return {(label.query_id, label.doc_id, label.judge): label.grade for label in load_labels(version.labels_path)}


def take(version, path, form, judge=""):
    rows = list_answers(version, path, form, "2026-01-31")
    return Importer(version, unbatched=True, whole=True, by_people=True).take_given(rows, judge=judge, model="")


def test_quepids_book_brings_every_grade_back_with_its_judge(judged, other, tmp_path):
    path = tmp_path / "book.csv"
    path.write_bytes(list_bytes(judged, "quepid", ""))
    assert take(other, path, "quepid").added == len(ANN) + len(BEN)
    assert graded(other) == graded(judged)
    assert {label.batch for label in load_labels(other.labels_path)} == {""}  # of whole documents
    assert take(other, path, "quepid").added == 0


def test_a_case_is_one_judges_ratings_and_is_told_whose(judged, other, tmp_path):
    rows = list(csv.reader(io.StringIO(list_bytes(judged, "quepid", "ann").decode())))
    texts = {query.query_id: query.text for query in load_queries(judged.queries_path)}
    assert rows[0] == ["query", "docid", "rating"]
    assert sorted(rows[1:]) == sorted([texts[one["query_id"]], one["doc_id"], str(one["grade"])] for one in ANN)
    path = tmp_path / "case.csv"
    path.write_bytes(list_bytes(judged, "quepid", "ann"))
    with pytest.raises(InputError, match="who judged"):
        take(other, path, "quepid")
    take(other, path, "quepid", judge="ann")
    assert graded(other) == {key: grade for key, grade in graded(judged).items() if key[2] == "ann"}


@pytest.mark.parametrize("wrap", [lambda body: body, lambda body: {"hits": {"hits": [{"_source": body}]}}])
def test_opensearchs_list_brings_one_judges_grades_back_with_the_name(judged, other, tmp_path, wrap):
    with pytest.raises(InputError, match="one judge"):
        list_bytes(judged, "opensearch", "")
    body = json.loads(list_bytes(judged, "opensearch", "ann"))
    assert body["type"] == "IMPORT_JUDGMENT"
    assert {one["rating"] for query in body["judgmentRatings"] for one in query["ratings"]} == {
        "3.000",
        "0.000",
        "1.000",
    }
    path = tmp_path / "list.json"
    path.write_text(json.dumps(wrap(body)))
    take(other, path, "opensearch")
    assert graded(other) == {key: grade for key, grade in graded(judged).items() if key[2] == "ann"}


def test_ratings_of_other_queries_and_documents_are_left_out_and_counted(other, tmp_path, capsys):
    text = load_queries(other.queries_path)[0].text
    path = tmp_path / "case.csv"
    path.write_text(
        f"Query,doc_id,rating\n{text.upper()},BILLS-117hr101ih,2.0\nred shoes,x,3\n{text},shoe-1,3\n{text},x,\n"
    )
    (given,) = list_answers(other, path, "quepid", "2026-01-31")
    assert (given.answer.query_id, given.answer.doc_id, given.answer.grade) == ("q01", "BILLS-117hr101ih", 2)
    assert "1 ratings of queries" in capsys.readouterr().err


REFUSED = [
    ("quepid", "", ":1:"),
    ("quepid", "q,d,r\n", ":1:"),
    ("quepid", "query,docid\n", ":1:"),
    ("quepid", "query,docid,rating\nx,y\n", ":2:"),
    ("quepid", "query,docid,rating\n{text},BILLS-117hr101ih,4\n", ":2:.*rating"),
    ("quepid", "query,docid,rating\n{text},BILLS-117hr101ih,1.5\n", ":2:.*rating"),
    ("quepid", 'query,docid,rating\n"x,y,1\n', "not CSV"),
    ("quepid", "query,docid,rating\nx,y,1\n", "rates no pair"),
    ("opensearch", "[1]", "not a list of objects"),
    ("opensearch", "{{}}", "judgmentRatings"),
    ("opensearch", '{{"judgmentRatings": [{{"query": 1, "ratings": []}}]}}', "query is 1"),
    (
        "opensearch",
        '{{"judgmentRatings": [{{"query": "x", "ratings": [{{"docId": "y", "rating": true}}]}}]}}',
        "rating",
    ),
    ("opensearch", "query,docid,rating", "not JSON"),
]


def test_what_is_no_list_is_refused_with_its_place(other, tmp_path):
    path, text = tmp_path / "list", load_queries(other.queries_path)[0].text
    for form, content, place in REFUSED:
        path.write_text(content.format(text=text))
        with pytest.raises(InputError, match=place):
            list_answers(other, path, form, "2026-01-31")


def test_a_query_that_a_spreadsheet_would_run_comes_back_as_it_was(judged, other, tmp_path):
    for version in (judged, other):
        text = version.queries_path.read_text().replace("city bus at night every half hour", '"=cmd, by night"')
        version.queries_path.write_text(text)
    content = list_bytes(judged, "quepid", "")
    assert b'\n"\'=cmd, by night"' in content
    path = tmp_path / "book.csv"
    path.write_bytes(content)
    take(other, path, "quepid")
    assert graded(other) == graded(judged)


def test_a_model_that_passes_for_a_person_is_refused_in_a_list_too(other, tmp_path):
    text = load_queries(other.queries_path)[0].text
    path = tmp_path / "book.csv"
    path.write_text(f"query,docid,gpt-4o\n{text},BILLS-117hr101ih,2\n")
    with pytest.raises(InputError, match="--person"):
        take(other, path, "quepid")
