import json
from dataclasses import replace

import pytest

from tests.soak.__main__ import KINDS, TARGETS, table
from tests.soak.trials import Log, Trial

TRIAL = Trial("kills", 0, 1, "write 1 of 9", "same bytes", 1.5)


def test_a_log_is_read_again_and_a_line_that_was_cut_short_is_forgotten(tmp_path):
    path = tmp_path / "work" / "trials.jsonl"
    log = Log(path)
    log.add(TRIAL)
    log.add(replace(TRIAL, number=1, count=3, found="other bytes: results.json"))
    path.write_text(path.read_text() + '{"kind": "kills", "num')
    again = Log(path)
    assert again.trials == log.trials
    again.add(replace(TRIAL, number=2))
    assert [json.loads(line)["number"] for line in path.read_text().splitlines()] == [0, 1, 2]
    *_, row = table(again).splitlines()
    assert [cell.strip() for cell in row.split("|")[1:-1]] == ["kills", "5 kills", "3 same bytes", "1", "1.5 s"]


def test_every_kind_has_a_target():
    assert {name.split(" ")[0] for name in KINDS} == set(TARGETS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kills", "flips", "faults"])
def test_a_trial_of_each_kind_ends_well_and_is_the_same_the_second_time(name, tmp_path):
    (first,) = KINDS[name].run(tmp_path, [2], 7)
    assert not first.found
    (second,) = KINDS[name].run(tmp_path, [2], 7)
    assert replace(second, seconds=first.seconds) == first
