from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.records import ASKED, by_model
from runner.queries.query_file import read_queries
from runner.queries.reading_pack import reading_folder
from runner.queries.traffic import BANDS, Asked, bands, drawn, read_counts
from runner.tools.queries import TRAFFIC_FILE


def counts(path, text):
    path.write_bytes(text.encode("latin-1"))
    return path


def test_repeats_are_folded_and_the_most_asked_come_first(tmp_path):
    text = "\xef\xbb\xbfday,query,count\r\nd,Lead  pipes,3\r\nd,night bus,9\r\nd,lead pipes,7\r\n"
    assert read_counts(counts(tmp_path / "log.csv", text)) == [Asked("Lead pipes", 10), Asked("night bus", 9)]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("", ":1:"),
        ("who,when\na,b\n", ":1:"),
        ("query,count\npipes,many\n", ":2:"),
        ("query,count\npipes,0\n", ":2:"),
        ("query,count\npipes\n", ":2:"),
        ("query,count\n  ,3\n", ":2:"),
        ('query,count\n"pipes\n', ":2:"),
        ("query,count\n\xff,1\n", "not UTF-8"),
    ],
)
def test_what_is_no_log_is_refused_with_its_place(tmp_path, content, place):
    with pytest.raises(InputError, match=place):
        read_counts(counts(tmp_path / "log.csv", content))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60))
def test_bands_are_thirds_of_what_was_asked_and_part_no_equals(times):
    asked = [Asked(f"w{place}", count) for place, count in enumerate(sorted(times, reverse=True))]
    found = bands(asked)
    assert [one for band in BANDS for one in found[band]] == asked
    held = {count: {band for band in BANDS for one in found[band] if one.times == count} for count in times}
    assert all(len(named) == 1 for named in held.values())
    assert held.get(1, {"tail"}) == {"tail"}
    total, largest = sum(times), max(count * times.count(count) for count in times)
    assert sum(one.times for one in found["head"]) <= total / 3 + largest / 2


def test_a_draw_takes_a_third_of_each_band_and_hands_places_on():
    head = [Asked("lead pipes", 60), Asked("veterans pay", 60)]
    torso = [Asked(f"torso {n}", 10) for n in range(12)]
    asked = [*head, *torso, *(Asked(f"tail {n}", 1) for n in range(144))]
    rows = drawn(asked, 12, 7)
    assert Counter(row.stratum for row in rows) == {"head": 2, "torso": 6, "tail": 4}
    assert rows == drawn(asked, 12, 7)
    assert rows != drawn(asked, 12, 8)
    assert {row.origin for row in rows} == {"traffic"} <= set(ASKED)
    assert not by_model("traffic")


def test_a_log_goes_through_the_same_door_as_any_queries(version, command, tmp_path):
    version.queries_path.unlink()
    lines = ["frost loans,8", "brass weights,3", "night bus,3", *(f"free museum {n},1" for n in range(5))]
    log = counts(tmp_path / "log.csv", "\n".join(["query,count", *lines]))
    code, _, err = command("queries", "sample", "--log", str(log), "--size", "5")
    assert code == 0, err
    file = reading_folder(version) / TRAFFIC_FILE
    assert [row.stratum for row in read_queries(file)] == ["head", "torso", "torso", "tail", "tail"]
    assert command("queries", "sample", "--log", str(log), "--size", "5")[0] == 0
    assert command("queries", "sample", "--log", str(log), "--size", "3")[0] == 2  # the first may be looked over
    assert command("queries", "check", str(file))[0] == 0
    assert command("queries", "add", str(file))[0] == 0
    assert {row.origin for row in read_queries(version.queries_path)} == {"traffic"}
    assert command("queries", "sample", "--log", str(log))[0] == 2, "nothing is left"
