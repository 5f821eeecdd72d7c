import json
from dataclasses import asdict, replace

import pytest

from tests.soak import Trial
from tests.soak.__main__ import KINDS, logged, table

TRIAL = Trial("kills", 0, 1, "write 1 of 9", 1.5)


def test_a_log_is_read_again_and_a_line_that_was_cut_short_is_forgotten(tmp_path):
    trials = [TRIAL, replace(TRIAL, number=1, count=3, found="other bytes: results.json")]
    lines = "".join(json.dumps(asdict(trial)) + "\n" for trial in trials)
    (tmp_path / "trials.jsonl").write_text(lines + '{"kind": "kills", "num')
    assert logged(tmp_path) == trials
    *_, row, finding = table(trials).splitlines()
    assert [cell.strip() for cell in row.split("|")[1:-1]] == ["kills", "2", "4", "1", "1.5 s"]
    assert finding == "kills 1: write 1 of 9: other bytes: results.json"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kills", "flips", "faults", "index kills", "index disks", "mutations of bills"])
def test_a_trial_of_each_kind_ends_well_and_is_the_same_the_second_time(name, tmp_path):
    (first,) = KINDS[name][0](tmp_path, [2], 7)
    assert not first.found
    (second,) = KINDS[name][0](tmp_path, [2], 7)
    assert replace(second, seconds=first.seconds) == first
