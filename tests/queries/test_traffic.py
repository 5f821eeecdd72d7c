import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.records import ASKED, by_model
from runner.queries.query_file import read_queries
from runner.queries.reading_pack import reading_folder
from runner.queries.traffic import (
    BANDS,
    FILE,
    NAME,
    NO_WORDS,
    PERSONAL,
    TOO_LONG,
    Asked,
    PublicWords,
    Traffic,
    drawn,
    personal,
    read_traffic,
)
from tests.support.query_fixtures import document

SPOKE = "Senator Maria Cantwell of Puerto Rico spoke on lead in water pipes, veterans, section 5 and the clean act."
FILED = (
    "an application for disability pay, born abroad, was filed by my office on rural broadband: public law and H.R. 1"
)
PUBLIC = PublicWords([document("d1", text=SPOKE), document("d2", text=FILED)])

NAMES_SOMEBODY = {
    "an e-mail address": ["mail jane.roe@example.org about pipes", "water jroe (at) example.org"],
    "an account of a network": ["veterans @janeroe"],
    "an address of the web or a machine": ["https://example.org/?token=1", "lead 192.168.0.7", "water fe80:0:0:1::1"],
    "a number like a Social Security number": ["disability 078-05-1120", "078 05 1120"],
    "a number like a telephone's": ["call (555) 010-4477", "555.010.4477 veterans", "+44 20 7946 0958", "555 010-4477"],
    "a long number": ["disability claim 078051120", "pay 4111 1111 1111 1111"],
    "a street address": ["lead pipes 12 North Elm Street", "water 7 oak ave"],
    "a date of birth": ["veterans born 01/02/1960", "dob 1960 disability"],
    "somebody's own words of themselves": ["my name is on the application", "my case number is pending"],
    NAME: ["Jane Roe", "jane o'roe disability", "disability pay for Mr. Roe", "j roe veterans"],
}

NAMES_NOBODY = [
    *("lead water pipes", "senator maria cantwell", "Puerto Rico broadband", "veterans born after 1957", "42 usc 1983"),
    *("public law 117-328 2022", "H.R. 1234", "EPA-HQ-OAR-2021-0317", "section 5(a)(1)(B)", "lead in water 2021-2022"),
]


@pytest.mark.parametrize("reason", [*PERSONAL, NAME])
def test_what_could_name_a_person_is_dropped_for_its_reason(reason):
    assert {text: personal(text, PUBLIC) for text in NAMES_SOMEBODY[reason]} == dict.fromkeys(
        NAMES_SOMEBODY[reason], reason
    )


def test_questions_about_the_law_are_kept():
    assert {text: personal(text, PUBLIC) for text in NAMES_NOBODY} == dict.fromkeys(NAMES_NOBODY, "")


def test_a_name_that_stands_alone_or_is_a_word_is_not_caught():
    """What docs/queries.md says is not caught, so that it stays true."""
    assert [personal(text, PUBLIC) for text in ("roe", "my office", "pay of clean rural")] == ["", "", ""]


UBI = [
    {"user_query": "Lead  pipes", "client_id": "c1", "query_id": "SECRET-1", "timestamp": "2026-01-02T03:04:05Z"},
    {"user_query": "lead pipes", "client_id": "c1", "query_id": "SECRET-2"},
    {"_index": "ubi_queries", "_source": {"user_query": "lead pipes", "client_id": "c2", "ip": "10.9.8.7"}},
    {"index": {"_index": "ubi_queries"}},
    {"action_name": "click", "user_query": "lead pipes", "session_id": "SECRET-3", "client_id": "c3"},
    {"user_query": "jane roe", "client_id": "c4"},
    {"user_query": "rural broadband"},
    {"user_query": "rural broadband"},
]


def ndjson(path, rows=UBI):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_log_of_user_behavior_insights_counts_askers_and_leaves_events_out(tmp_path):
    traffic = read_traffic(ndjson(tmp_path / "ubi.ndjson"), PUBLIC)
    assert traffic.asked == (Asked("Lead pipes", 2), Asked("rural broadband", 2))
    assert (traffic.n_rows, traffic.n_without_query, traffic.dropped) == (7, 1, {NAME: 1})


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_table_says_the_same_by_any_mark(tmp_path, mark):
    lines = [
        "\ufeffday|Search_Query|user_id|count",
        "d|lead pipes|u1|3",
        "d|Lead pipes|u1|1",
        'd|"lead"" pipes"|u2|"1"',
    ]
    path = tmp_path / "log.csv"
    path.write_text("\r\n".join(lines).replace("|", mark), encoding="utf-8")
    traffic = read_traffic(path, PUBLIC)
    assert traffic.asked == (Asked("lead pipes", 3), Asked('lead" pipes', 1))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", "log: |log is empty"),
        ("who,when\na,b\n", ":1:"),
        ("query,count\npipes,many\n", ":2:"),
        ("query,count\npipes\n", ":2:"),
        ('query\n"pipes\n', "not CSV"),
        ("query\n\xff\n", "not UTF-8"),
        ('{"user_query": \n', ":1:"),
        ('{"message": "x"}\n', "no query"),
        ("query\n  \n", "no query"),
    ],
)
def test_what_is_no_log_is_refused_with_its_place(tmp_path, content, place):
    path = tmp_path / "log"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=place):
        read_traffic(path, PUBLIC)


def test_what_nobody_types_is_dropped(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("query\nlead pipes\nthe of\n???\n" + "lead " * 100 + "\n")
    assert read_traffic(path, PUBLIC).dropped == {TOO_LONG: 1, NO_WORDS: 2}


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60))
def test_bands_are_thirds_of_what_was_asked_and_part_no_equals(times):
    asked = tuple(Asked(f"w{place}", count) for place, count in enumerate(sorted(times, reverse=True)))
    bands = Traffic(asked, len(asked), 0, {}).bands
    assert [one for band in BANDS for one in bands[band]] == list(asked)
    held = {count: {band for band in BANDS for one in bands[band] if one.times == count} for count in times}
    assert all(len(found) == 1 for found in held.values())
    assert held.get(1, {"tail"}) == {"tail"}
    total, largest = sum(times), max(count * times.count(count) for count in times)
    assert sum(one.times for one in bands["head"]) <= total / 3 + largest / 2


def test_a_draw_takes_a_third_of_each_band_and_hands_places_on():
    words = [
        *("lead", "water", "pipes", "rural", "broadband", "veterans"),
        *("pay", "act", "office", "road", "fish", "ice"),
    ]
    head = [Asked("lead pipes", 60), Asked("veterans pay", 60)]
    torso = [Asked(f"{word} torso", 10) for word in words]
    tail = [Asked(f"{first} of {second}x", 1) for first in words for second in words]
    traffic = Traffic((*head, *torso, *tail), 0, 0, {})
    assert [len(traffic.bands[band]) for band in BANDS] == [2, 12, 144]
    rows = drawn(traffic, 12, 7, [])
    assert Counter(row.stratum for row in rows) == {"head": 2, "torso": 6, "tail": 4}
    assert rows == drawn(traffic, 12, 7, [])
    assert rows != drawn(traffic, 12, 8, [])
    assert {row.origin for row in rows} == {"traffic"} <= set(ASKED)
    assert not by_model("traffic")
    assert "lead pipes" not in {row.text for row in drawn(traffic, 12, 7, ["Lead pipes?"])}


TORSO = ("brass weights", "night bus")
TAIL = ("who repairs school roofs", "closed season for cod", "free museum", "lead in private wells", "warm library")


def test_a_log_goes_through_the_same_door_as_any_queries(version, command, tmp_path):
    version.queries_path.unlink()
    log = ndjson(
        tmp_path / "ubi.ndjson",
        [
            *[{"user_query": "frost loans", "client_id": f"c{n}"} for n in range(8)],
            *[{"user_query": text, "client_id": f"SECRET-{n}"} for n in range(3) for text in TORSO],
            *[{"user_query": text} for text in (*TAIL, "jane.roe@example.org", "Jane Roe")],
        ],
    )
    code, out, err = command("queries", "import", str(log), "--size", "5")
    assert code == 0, err
    drafted = reading_folder(version) / FILE
    rows = read_queries(drafted)
    assert [row.stratum for row in rows] == ["head", "torso", "torso", "tail", "tail"]
    assert {row.text for row in rows} <= {"frost loans", *TORSO, *TAIL}
    for secret in ("SECRET", "roe", "c1"):
        assert not re.search(secret, drafted.read_text(), re.IGNORECASE)
        assert not re.search(rf"{secret}\b", out + err, re.IGNORECASE)
    assert command("queries", "import", str(log), "--size", "5")[0] == 0
    assert command("queries", "import", str(log), "--size", "3")[0] == 2  # somebody may have looked the first over
    assert command("queries", "check", str(drafted), "--lexical-only")[0] == 0
    assert command("queries", "add", str(drafted))[0] == 0
    assert {row.origin for row in read_queries(version.queries_path)} == {"traffic"}
