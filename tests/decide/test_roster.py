import json
import re
import shutil
from dataclasses import replace

import pytest
import yaml

from runner.base.errors import InputError, IntegrityError, NegativeVerdict
from runner.base.places import CHECKOUT, DRIVER
from runner.commands import main as cli
from runner.decide import roster
from runner.decide.locked_gains import new_plan_text
from runner.decide.policy import HARD_ABOVE, adopt_baseline, bulk_gate
from runner.decide.roster import (
    NOT_EVALUATED,
    locked_decision,
    moved_on,
    next_to_evaluate,
    reuse_of,
    sibling_result,
    standing,
    standing_of,
)
from runner.eval_set import catalog, lock
from runner.eval_set.catalog import SOURCES
from runner.eval_set.version import newest_version
from runner.tools.roster import data_status_page
from tests.conftest import called

SUBSTRATE = [spec.name for spec in SOURCES.values() if spec.trigger_order]
BY_POLICY = [spec.name for spec in SOURCES.values() if spec.policy == "baseline"]


@pytest.fixture(name="versions")
def _versions(tmp_path):
    """The newest version of any source in a folder of this test."""
    return lambda name: newest_version(name, tmp_path / name)


@pytest.fixture(name="adopt")
def _adopt(versions):
    return lambda name: adopt_baseline(versions(name), "A. Person", "", today="2026-01-02")[0]


def test_the_roster_has_every_source_of_the_substrate_in_trigger_order(versions):
    assert [row.source.name for row in roster.roster(versions)] == SUBSTRATE
    assert [row.source.trigger_order for row in roster.roster(versions)] == list(range(1, len(SUBSTRATE) + 1))


def test_nothing_is_begun_where_nothing_lies_on_disk(versions):
    for row in roster.roster(versions):
        assert (row.state, row.decision, row.live) == ("not begun", None, row.source.baseline)


def test_what_was_measured_elsewhere_is_observed_and_is_no_decision_here(versions):
    row = standing(versions("crs_reports"))
    assert row.observed_best == "fixed_token_512_50 (v1, elsewhere)"
    assert not row.is_decided
    assert row.live == "arctic-l-v2.0 x fixed_token_512_50"
    assert (row.source.imported.cell, row.source.imported.ndcg) == ("mxbai-large-v1 x fixed_token_512_50", 0.6911)


def test_the_number_of_a_version_that_was_decided_elsewhere_is_taken(versions):
    assert versions("crs_reports").number == 2
    assert versions("gao_reports").number == 1


@pytest.mark.parametrize("name", BY_POLICY)
def test_an_adopted_baseline_is_a_locked_decision_that_says_that_nothing_was_measured(versions, adopt, name):
    decision = adopt(name)
    found = standing(versions(name))
    assert found.decision == decision == locked_decision(versions(name))
    assert (decision.kind, decision.tier, decision.results_sha256) == ("policy", "by policy", None)
    assert decision.chosen.cell == SOURCES[name].baseline
    assert decision.rationale.startswith(f"Nothing was measured here for {name}")
    assert ("0.6911" in decision.rationale) == (name == "crs_reports")
    assert found.state == "baseline by policy"


def test_adopting_twice_keeps_the_first_decision(versions, adopt):
    first = adopt("gao_reports")
    assert adopt_baseline(versions("gao_reports"), "Another", "", today="2030-01-01") == (first, False)


def test_an_adoption_that_was_killed_before_its_lock_is_completed_and_not_replaced(versions, adopt):
    first = adopt("gao_reports")
    (versions("gao_reports").folder / "lock.json").unlink()
    assert standing(versions("gao_reports")).decision is None
    assert adopt_baseline(versions("gao_reports"), "Another", "", today="2030-01-01") == (first, False)
    assert locked_decision(versions("gao_reports")) == first


@pytest.mark.parametrize("command", [("bulk-gate", "5"), ("--dry-run",), (), ("choose", "recommended"), ("verify",)])
def test_a_decision_of_another_source_opens_nothing(adopt, tmp_path, capsys, command):
    adopt("gao_reports")
    code, out, err = run(capsys, *command, "--source=us_code", f"--eval-set-path={tmp_path / 'gao_reports'}")
    assert (code, out) == (4, "")
    assert "decides gao_reports v1, and this is us_code v1" in err


def test_an_edited_decision_is_no_standing_and_is_not_adopted_again(versions, adopt):
    adopt("gao_reports")
    path = versions("gao_reports").folder / "decision.json"
    path.write_text(path.read_text().replace("A. Person", "B. Person"))
    with pytest.raises(IntegrityError, match=r"decision\.json: changed"):
        adopt("gao_reports")
    with pytest.raises(IntegrityError, match="changed"):
        roster.roster(versions)
    with pytest.raises(IntegrityError, match="changed"):
        sibling_result(replace(SOURCES["public_laws"], reuses="gao_reports"), versions)


def test_an_adopted_version_is_not_rehearsed(adopt, tmp_path, capsys):
    adopt("gao_reports")
    where = f"--eval-set-path={tmp_path / 'gao_reports'}"
    before = sorted(tmp_path.rglob("*"))
    code, _, err = run(capsys, "--source=gao_reports", where, "--rehearse")
    assert (code, "nothing to rehearse" in err) == (2, True)
    assert {path for path in tmp_path.rglob("*") if path not in before} <= {tmp_path / "gao_reports" / ".work"}
    code, out, _ = run(capsys, "--source=gao_reports", where, "--rehearse", "--dry-run")
    assert (code, out.splitlines()[-1]) == (
        1,
        "undecided: the baseline was adopted by policy, so there is nothing to rehearse",
    )


@pytest.mark.parametrize("name", ["A\nB", "\x1b[31mA"])
def test_a_name_that_a_terminal_would_obey_is_refused(tmp_path, capsys, name):
    code, _, err = run(capsys, "choose", "gao_reports", "baseline", f"--eval-set-path={tmp_path / 'x'}", "--by", name)
    assert (code, "--by" in err, "\x1b" in err) == (2, True, False)
    assert not (tmp_path / "x" / "v1").exists()


def test_a_bar_in_a_name_leaves_the_page_a_table(versions, adopt):
    adopt("gao_reports")
    found = standing(versions("gao_reports"))
    barred = replace(found, decision=found.decision.model_copy(update={"decided_by": "A | B"}))
    (line,) = [line for line in data_status_page([barred]).split("\n") if "gao_reports |" in line]
    assert "A \\| B" in line


def test_a_source_with_structure_cannot_adopt_the_baseline(adopt):
    with pytest.raises(InputError, match=r"bills is to be evaluated.*crs_reports, gao_reports"):
        adopt("bills")


def test_a_version_under_evaluation_is_not_adopted_over(versions, adopt):
    version = versions("gao_reports")
    version.folder.mkdir(parents=True)
    version.preregistration_path.write_text("{}")
    with pytest.raises(InputError, match="being evaluated already"):
        adopt("gao_reports")


def test_the_next_source_is_the_first_that_is_to_be_evaluated_and_is_not_decided(versions, adopt):
    adopt("gao_reports")
    assert next_to_evaluate(roster.roster(versions)).source.name == "federal_register"
    decided = [replace(row, decision=adopt("gao_reports")) for row in roster.roster(versions)]
    assert next_to_evaluate(decided) is None


@pytest.mark.parametrize(
    ("name", "documents", "begins"),
    [
        ("bills", 0, "open with a warning: bills is undecided"),
        ("bills", HARD_ABOVE, "open with a warning: bills is undecided"),
        ("gao_reports", 10**9, "open: gao_reports v1: chosen is the baseline"),
    ],
)
def test_a_small_or_a_decided_source_may_take_the_baseline(versions, adopt, name, documents, begins):
    adopt("gao_reports")
    words = bulk_gate(standing(versions(name)), documents)
    assert words.startswith(begins)
    assert words.endswith("embed: arctic-l-v2.0 x fixed_token_512_50")


@pytest.mark.parametrize(
    ("name", "words"),
    [("bills", "closed: bills has 10,001 documents"), ("gao_reports", "choose gao_reports .*baseline --by NAME")],
)
def test_a_large_undecided_source_is_not_embedded_and_the_way_of_its_policy_is_named(versions, name, words):
    with pytest.raises(NegativeVerdict, match=words):
        bulk_gate(standing(versions(name)), HARD_ABOVE + 1)


def test_a_catalog_with_another_revision_or_baseline_makes_a_decision_stale(versions, adopt, monkeypatch):
    adopt("gao_reports")
    assert moved_on(standing(versions("gao_reports"))) == moved_on(standing(versions("bills"))) == []
    arctic = catalog.ENCODERS["arctic-l-v2.0"]
    monkeypatch.setitem(catalog.ENCODERS, "arctic-l-v2.0", arctic.model_copy(update={"revision": "f" * 40}))
    assert moved_on(standing(versions("gao_reports"))) == [
        "the encoder arctic-l-v2.0 is now pinned at ffffffffffff, it was decided at edc2df7b6c25"
    ]
    monkeypatch.setitem(catalog.ENCODERS, "arctic-l-v2.0", arctic.model_copy(update={"excluded": "it burns"}))
    assert "excluded" in moved_on(standing(versions("gao_reports")))[0]
    found = standing(versions("gao_reports"))
    other = replace(found, source=replace(found.source, baseline="mpnet-base-v2 x fixed_token_512_50"))
    assert any("production baseline is now mpnet-base-v2" in change for change in moved_on(other))


@pytest.mark.parametrize(("name", "sibling"), [(s.name, s.reuses) for s in SOURCES.values() if s.reuses])
def test_a_taken_over_chunker_is_named_in_the_plan_and_its_result_at_the_decision_alone(versions, name, sibling):
    assert sibling_result(SOURCES[name], versions) == NOT_EVALUATED
    for rehearsal in (False, True):
        text = new_plan_text(versions(name), rehearsal=rehearsal)
        assert f"is taken over from {sibling};" in text
        assert "reuse" not in yaml.safe_load(text)
    assert reuse_of(versions(name)).source == sibling


def test_the_siblings_decision_is_told_where_there_is_one(versions, adopt):
    # A decision by policy stands in for an evaluated sibling: nothing of it was measured.
    adopt("gao_reports")
    reusing = replace(SOURCES["public_laws"], reuses="gao_reports")
    assert sibling_result(reusing, versions) == (
        "gao_reports v1: chosen is arctic-l-v2.0 x fixed_token_512_50 (by policy); usc_uslm_section_v1 was not measured"
    )


def test_a_rehearsal_tells_its_siblings_rehearsal():
    committed = newest_version("public_laws")
    told = reuse_of(replace(committed, rehearsal=True)).result
    assert told.startswith("us_code v1 (rehearsal): chosen is sum(bm25,mpnet-base-v2) x usc_uslm_section_256_v1")
    assert "usc_uslm_section_256_v1 +" in told.partition("; ")[2]
    assert reuse_of(committed).result == NOT_EVALUATED


def test_a_rehearsal_tells_its_siblings_decision_where_there_is_one(versions, adopt):
    adopt("gao_reports")
    reusing = replace(SOURCES["public_laws"], reuses="gao_reports")
    assert sibling_result(reusing, versions, rehearsal=True) == sibling_result(reusing, versions)


def test_the_page_has_a_row_for_every_source_and_says_what_was_decided_elsewhere(versions):
    said, _, specification = data_status_page(roster.roster(versions)).partition("## The specification")
    assert [line.split(" | ")[1] for line in said.split("\n") if line.startswith("| ") and "---" not in line] == [
        "source",
        *SUBSTRATE,
    ]
    assert "`mxbai-large-v1 x fixed_token_512_50`, nDCG@10 0.6911, without artefacts here" in said
    assert all(f"**{name}**" in said for name in catalog.REFUSED)
    assert {f"t{number}" for number in range(1, 15)} <= set(re.findall(r"\bt\d+\b", specification))


@pytest.mark.parametrize("name", BY_POLICY)
def test_every_source_on_the_baseline_by_policy_has_its_locked_decision_in_the_checkout(capsys, name):
    found = standing(newest_version(name))
    assert (found.state, found.live) == ("baseline by policy", SOURCES[name].baseline)
    assert run(capsys, "verify", name)[0] == 0


def test_the_spec_s_prior_for_cbo_is_its_baseline_and_other_windows_are_tested_first(versions):
    assert SOURCES["cbo_cost_estimates"].baseline == "arctic-l-v2.0 x recursive_v1"
    plan = yaml.safe_load(new_plan_text(versions("cbo_cost_estimates"), rehearsal=False))
    assert plan["baseline"] == plan["cells"][0] == "arctic-l-v2.0 x recursive_v1"
    assert plan["first"] == ["sum(bm25,arctic-l-v2.0) x recursive_v1", "arctic-l-v2.0 x fixed_token_512_50"]


def test_the_committed_page_is_what_catalog_and_eval_sets_make():
    committed = (CHECKOUT / "docs" / "data-status.md").read_text(encoding="utf-8")
    assert committed == data_status_page(roster.roster()), "run: bin/per-source-eval.py sources --write"


def run(capsys, *arguments):
    code = cli.main(arguments)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_status_prints_the_roster_and_the_same_as_json(capsys):
    code, out, _ = run(capsys, "sources")
    assert code == 0
    assert all(name in out for name in SUBSTRATE)
    code, out, _ = run(capsys, "sources", "--json")
    rows = json.loads(out)
    assert [row["source"] for row in rows] == SUBSTRATE
    assert rows[0]["decided_elsewhere"]["artefacts"] is False
    assert run(capsys, "sources", "--stale")[0] == 0


def test_status_next_names_the_source_and_its_command(capsys):
    code, out, _ = run(capsys, "next")
    assert code == 0
    assert out.startswith("next: federal_register\nbin/per-source-eval.py run federal_register")
    assert "by policy, without" not in out, "every source on the baseline by policy has its decision in the checkout"


def test_a_program_learns_what_is_live_and_what_comes_next(capsys):
    assert cli.main(["next", "gao_reports", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["decided"], said["live"]) == (True, "arctic-l-v2.0 x fixed_token_512_50")
    assert cli.main(["next", "us_code", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["decided"], said["version"]) == (False, "us_code v1")
    assert f"{DRIVER} run us_code" in said["ways"][-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("next", "--stale"),
        ("sources", "--write", "--source=bills"),
        ("sources", "--corpus-path=x"),
        ("sources", "--check", "--json"),
        ("choose", "gao_reports", "baseline"),
        ("bulk-gate", "gao_reports", "5", "--dry-run"),
        ("bulk-gate", "gao_reports", "--", "-1"),
        ("bulk-gate", "gao_reports", "many"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(capsys, arguments):
    assert called(*arguments)[0] == 2
    assert capsys.readouterr().out == ""


def test_a_source_without_a_place_in_the_roster_is_told_so(capsys):
    code, _, err = run(capsys, "sources", "--source=demo")
    assert code == 2
    assert f"{DRIVER} plan demo" in err


@pytest.mark.usefixtures("own_place")
def test_a_changed_record_hides_no_other_source(tmp_path, capsys):
    shutil.copytree(CHECKOUT / "eval-sets" / "gao_reports", tmp_path / "eval-sets" / "gao_reports")
    decision = tmp_path / "eval-sets" / "gao_reports" / "v1" / "decision.json"
    decision.write_bytes(decision.read_bytes() + b" ")
    for arguments in (("sources",), ("sources", "--json"), ("sources", "gao_reports")):
        code, out, err = run(capsys, *arguments)
        assert code == 4
        assert str(decision) in err
        assert "gao_reports" not in out
        assert ("bills" in out) is (arguments[-1] != "gao_reports")
    assert run(capsys, "sources", "--check")[:2] == (4, "")


@pytest.mark.usefixtures("own_place")
def test_the_driver_adopts_and_then_the_determiner_finds_a_decision(tmp_path, capsys):
    where = f"--eval-set-path={tmp_path / 'eval-sets' / 'gao_reports'}"
    code, out, _ = run(capsys, "--source=gao_reports", where, "--dry-run")
    assert (code, out.splitlines()[-1]) == (
        1,
        "undecided: the baseline is to be adopted: the source has weak structure",
    )
    code, out, _ = run(capsys, "choose", "gao_reports", "baseline", where, "--by=A. Person")
    assert code == 0
    assert "by policy, nothing was measured" in out
    code, out, _ = run(capsys, "--source=gao_reports", where, "--dry-run")
    assert (code, out.splitlines()[-1]) == (0, "decision recorded")
    assert run(capsys, "--source=gao_reports", where)[0] == 0
    assert run(capsys, "verify", "--source=gao_reports", where)[0] == 0
    code, _, err = run(capsys, "--source=gao_reports", where, "--post-bulk", f"--corpus-path={tmp_path / 'x.db'}")
    assert (code, "decided by policy" in err) == (2, True)


@pytest.mark.usefixtures("own_place")
def test_the_ingester_hears_yes_and_no_by_exit_code(tmp_path, capsys):
    where = f"--eval-set-path={tmp_path / 'eval-sets' / 'bills'}"
    assert run(capsys, "bulk-gate", "bills", where, "300")[0] == 0
    code, _, err = run(capsys, "bulk-gate", "bills", where, "300000")
    assert (code, "closed: bills" in err) == (1, True)


def test_each_lock_is_verified_once(versions, adopt, monkeypatch):
    for name in BY_POLICY:
        adopt(name)
    verified, verify = [], lock.verify_lock
    monkeypatch.setattr(lock, "verify_lock", lambda record: verified.append(record) or verify(record))
    roster.roster(versions)
    assert len(verified) == len(set(verified)) >= len(BY_POLICY)


@pytest.mark.parametrize(
    ("of_cell", "tier", "told"),
    [
        ("candidate", "confirmed by one model's grades", "candidate"),
        ("the baseline", "baseline kept", "baseline kept"),
        ("the baseline", "by policy", "by policy"),
        ("the baseline", "candidate", "the baseline; there was a candidate"),
        ("the baseline", "confirmed", "the baseline, confirmed"),
    ],
)
def test_what_a_decision_tells_is_the_standing_of_the_chosen_cell(versions, adopt, of_cell, tier, told):
    adopt("gao_reports")
    decision = locked_decision(versions("gao_reports"))
    chosen = decision.chosen.model_copy(update={"standing": of_cell})
    assert standing_of(decision.model_copy(update={"chosen": chosen, "tier": tier})) == told
