"""Topics and their wordings: what queries.yaml may say, and the ids under which it is asked."""

import pytest
import yaml

from runner.base.errors import InputError
from runner.eval_set.asked import asked, asked_ids, topic_of
from runner.eval_set.version import load_queries
from runner.queries.query_file import append_queries, read_queries

BASE = {"kind": "topic", "origin": "person"}
ONE = BASE | {"id": "q01", "text": "ferries in winter"}
TWO = BASE | {"id": "q02", "plain": "Elm Creek ferry", "paraphrased": "the boat across the water"}


def written(path, *rows):
    path.write_text(yaml.safe_dump({"schema_version": 1, "queries": list(rows)}, sort_keys=False))
    return path


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (BASE | {"id": "q03"}, "either text, or both"),
        (TWO | {"text": "all three"}, "either text, or both"),
        ({name: value for name, value in TWO.items() if name != "plain"}, "either text, or both"),
        (TWO | {"plain": " "}, "plain"),
        (TWO | {"plain": None}, "either text, or both"),
        *((TWO | {"kind": kind}, kind) for kind in ("citation", "quote", "attribution")),
        (ONE | {"id": "q01.plain"}, "ends as those of wordings"),
        (TWO | {"plain": TWO["paraphrased"].upper()}, "same text twice"),
        (TWO | {"plain": f" {ONE['text']} "}, "same text twice"),
        (TWO | {"id": "q01"}, "same id twice"),
    ],
    ids=range(12),
)
def test_a_row_that_is_worded_otherwise_is_refused_by_its_id_with_what_to_write(tmp_path, row, names):
    with pytest.raises(InputError) as raised:
        load_queries(written(tmp_path / "queries.yaml", ONE, row))
    assert names in str(raised.value)
    if "twice" not in names:
        assert f"({row['id']!r})" in str(raised.value)


def test_every_wording_is_asked_under_an_id_that_leads_back_to_its_topic(tmp_path):
    queries = load_queries(written(tmp_path / "queries.yaml", ONE, TWO))
    assert asked_ids(queries) == ["q01", "q02.plain", "q02.paraphrased"]
    assert [(one.topic, one.wording, one.text) for one in asked(queries)] == [
        ("q01", "", ONE["text"]),
        ("q02", "plain", TWO["plain"]),
        ("q02", "paraphrased", TWO["paraphrased"]),
    ]
    assert [topic_of(one.id) for one in asked(queries)] == [one.topic for one in asked(queries)]
    assert topic_of("PLAIN-12.x") == "PLAIN-12.x"


def test_a_topic_in_two_wordings_comes_back_from_the_file_that_it_was_put_into(tmp_path):
    queries = load_queries(written(tmp_path / "queries.yaml", ONE, TWO))
    append_queries(tmp_path / "own.yaml", queries, "demo v1")
    assert tuple(read_queries(tmp_path / "own.yaml")) == queries
