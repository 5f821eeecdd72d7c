import json
import shutil

import pytest

from tests.support.small_set import make_version


@pytest.fixture(name="decided")
def _decided(decided_evening, tmp_path):
    shutil.copytree(decided_evening, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)


def test_a_recorded_decision_is_one_object_with_every_cell(decided, command):
    code, out, _ = command("--json")
    told = json.loads(out)
    assert (code, told["exit_code"]) == (0, 0)
    decision = json.loads((decided.record / "decision.json").read_bytes())
    assert (told["chosen"]["cell"], told["tier"]) == (decision["chosen"]["cell"], decision["tier"])
    results = json.loads((decided.record / "results.json").read_bytes())
    assert [one["cell"] for one in told["cells"]] == [one["cell"] for one in results["cells"]]
    assert told["sentence"] == results["outcome"]["sentence"]
    assert told["message"].startswith("demo v1: chosen is ")


def test_what_is_outstanding_is_an_object_too_and_a_message_for_people(version, command):
    version.queries_path.unlink()
    code, out, heard = command("--json")
    told = json.loads(out)
    assert (code, told["exit_code"], told["chosen"], told["cells"]) == (3, 3, None, [])
    assert "no queries yet" in told["message"]
    assert "no queries yet" in heard


def test_a_fault_leaves_stdout_empty(decided, command):
    (decided.record / "results.json").write_bytes(b"{}")
    code, out, heard = command("--json")
    assert (code, out) == (4, "")
    assert "results.json" in heard


def test_a_dry_run_is_an_object_too(decided, command):
    code, out, _ = command("--dry-run", "--json")
    told = json.loads(out)
    assert (code, told["recorded"], told["exit_code"]) == (0, True, 0)
    assert command("--dry-run")[1].splitlines() == told["lines"]


@pytest.mark.parametrize("given", ["--bulk-gate=5", "--adopt-baseline", "--post-bulk"])
def test_what_answers_in_a_sentence_takes_no_json(command, given):
    further = {"--adopt-baseline": ["--by=me"], "--post-bulk": ["--corpus-path=x"]}.get(given, [])
    code, out, heard = command("--json", given, *further)
    assert (code, out) == (2, "")
    assert "--json goes with" in heard
