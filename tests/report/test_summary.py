import json

import pytest

from runner.base.canonical import json_bytes
from runner.decide.decide import Choice, decide
from runner.report import sentences
from runner.report.summary import WIDTH, ranking_table, run_json, run_summary
from tests.support.example_results import BASELINE, BETTER, HYBRID, SHA, SPARSE, results, row

LONG = "rrf(bm25,an-encoder-of-a-very-long-name-v2.0) x another_chunker_of_a_very_long_name_v1"


@pytest.fixture(name="found")
def _found():
    return results(row(BASELINE), row(BETTER, 0.03, 0.01), row(SPARSE, -0.1, verdict="fail"))


def table_of(found):
    return ranking_table(found).splitlines()


def test_the_verdict_is_the_first_thing_said_and_the_table_follows_it(found):
    said = run_summary(found)
    assert f"{SPARSE}: every query gets the same ten documents" in said
    assert " ".join(said.split()).startswith(f"demo v1: {sentences.found(found)}")
    assert said.index("demo v1: ") < said.index("nDCG@10  difference") < said.index("next: ")


def test_no_line_is_wider_than_the_terminal_it_is_made_for():
    found = results(row(BASELINE), row(LONG, 0.03), row(HYBRID, -0.02, verdict="insufficient"))
    assert max(map(len, run_summary(found).splitlines())) <= WIDTH


def test_figures_have_three_places_and_carry_their_sign(found):
    _, better, *_ = table_of(found)
    assert "0.530 " in better
    assert "+0.030 [-0.020, +0.080]" in better
    assert "  0.5 / 0.04  0.610 (+0.010)  pass" in better
    assert "0.5300" not in better


def test_where_no_cell_has_a_p_there_is_no_column_for_it(found):
    assert "  p / bar  " in table_of(found)[0]
    cells = [
        one
        if one.test is None
        else one.model_copy(update={"test": one.test.model_copy(update={"p_gain": None, "bar": None})})
        for one in found.cells
    ]
    head, better, *_ = table_of(found.model_copy(update={"cells": cells}))
    assert head.split() == ["cell", "nDCG@10", "difference", "Recall@10", "gate"]
    assert "+0.030 [-0.020, +0.080]  0.610 (+0.010)  pass" in better


def test_an_interval_that_does_not_allow_for_the_other_cells_is_marked():
    registered = table_of(results(row(BASELINE), row(BETTER, 0.03)))
    assert "*" not in "".join(registered)
    beside = table_of(results(row(BASELINE), row(BETTER, 0.03), row(SPARSE, -0.03, role="exploratory")))
    assert sum("]*" in line for line in beside) == 1
    assert sum("not preregistered" in line and SPARSE in line for line in beside) == 1
    assert "of all cells at once" in "".join(beside)
    assert "* that of this cell alone" in "".join(beside)
    explored = table_of(results(row(BASELINE), row(BETTER, -0.03, role="exploratory")))
    assert "of all cells at once" not in "".join(explored)
    assert "]* is the interval of this cell alone" in "".join(explored)


def test_an_explorations_command_names_the_version_by_its_flags():
    explored = results(row(BASELINE), row(BETTER, 0.03, role="exploratory"), kind="exploration")
    said = " ".join(run_summary(explored, flags="demo --eval-set-path=own").split())
    assert "version demo --eval-set-path=own" in said
    assert f"version {explored.source}" in " ".join(run_summary(explored).split())


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ({"kind": "rehearsal"}, "never a decision"),
        ({"kind": "exploration"}, "decides nothing"),
        ({"kind": "external"}, "decides nothing"),
        ({"unjudged": 3}, "(provisional)"),
    ],
)
def test_what_never_decides_or_may_still_move_says_so_before_its_verdict(of, said):
    assert said in run_summary(results(row(BASELINE), row(BETTER), **of)).splitlines()[0]


def test_the_summary_holds_the_figures_of_results_json(found, version):
    told = run_json(version, (found, version.work), 0, "done")
    assert [one["cell"] for one in told["cells"]] == [row.cell for row in found.cells]
    for told_of, cell in zip(told["cells"], found.cells, strict=True):
        score = cell.scores["ndcg@10"].model_dump(exclude={"per_query"})
        assert (told_of["scores"]["ndcg@10"], told_of["gate"]["verdict"]) == (score, cell.gate.verdict)
        assert told_of["test"] == (None if cell.test is None else cell.test.model_dump())
        assert told_of["confirmed"] == cell.confirmed
    assert told["results"] == str(version.work / "results.json")
    assert told["page"] == str(version.work / "results.html")


def test_a_decision_that_was_recorded_before_comes_with_the_results_that_it_rests_on(found, version):
    (version.record / "results.json").write_bytes(json_bytes(found.model_dump()))
    decision = decide(found, SHA, Choice(BETTER, "it is better", "Ann"), today="2026-01-02")
    (version.record / "decision.json").write_bytes(json_bytes(decision.model_dump()))
    told = run_json(version, None, 0, "chosen")
    assert told["chosen"]["cell"] == BETTER
    assert "choose a cell" not in told["next_step"]
    assert len(told["cells"]) == len(found.cells)
    exploration = results(row(BASELINE), row(BETTER), kind="exploration")
    assert run_json(version, (exploration, version.work), 0, "tried")["chosen"] is None


def test_a_decision_without_results_is_told_all_the_same(found, version):
    decision = decide(found, SHA, Choice(BASELINE, "weak structure", "Ann"), today="2026-01-02")
    by_policy = decision.model_copy(update={"kind": "policy", "tier": "by policy", "results_sha256": None})
    (version.record / "decision.json").write_bytes(json_bytes(by_policy.model_dump()))
    told = run_json(version, None, 0, "chosen")
    assert (told["kind"], told["tier"], told["baseline"]) == ("policy", "by policy", BASELINE)
    assert (told["chosen"]["cell"], told["cells"]) == (BASELINE, [])
    assert "by policy, nothing was measured" in told["sentence"]


def test_a_recorded_decision_is_one_object_with_every_cell(decided, command):
    code, out, _ = command("--json")
    told = json.loads(out)
    assert (code, told["exit_code"]) == (0, 0)
    decision = json.loads((decided.record / "decision.json").read_bytes())
    assert (told["chosen"]["cell"], told["tier"]) == (decision["chosen"]["cell"], decision["tier"])
    results = json.loads((decided.record / "results.json").read_bytes())
    assert [one["cell"] for one in told["cells"]] == [one["cell"] for one in results["cells"]]
    assert told["tier"] == results["outcome"]["tier"]
    assert told["message"].startswith("demo v1: chosen is ")


def test_what_is_outstanding_is_an_object_too_and_a_message_for_people(version, command):
    version.queries_path.unlink()
    code, out, heard = command("--json")
    told = json.loads(out)
    assert (code, told["exit_code"], told["chosen"], told["cells"]) == (3, 3, None, [])
    assert "no queries yet" in told["message"]
    assert "no queries yet" in heard


def test_a_dry_run_is_an_object_too(decided, command):
    code, out, _ = command("--dry-run", "--json")
    told = json.loads(out)
    assert (code, told["recorded"], told["exit_code"]) == (0, True, 0)
    assert (told["kind"], told["in_production"], bool(told["weakness"])) == ("evaluation", False, True)
    assert told["chosen"] == json.loads(command("--json")[1])["chosen"]
    assert told["chosen"]["cell"] in told["lines"][-2]
    assert command("--dry-run")[1].splitlines() == told["lines"]
    (decided.record / "lock.json").unlink()
    code, out, _ = command("--dry-run", "--json")
    assert (code, json.loads(out)["recorded"], json.loads(out)["chosen"]) == (1, False, None)
