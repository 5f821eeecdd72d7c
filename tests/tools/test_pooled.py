import json
import shutil
from functools import partial

import numpy as np
import pytest
import yaml

from runner.base.canonical import file_sha256, json_bytes, read_json
from runner.base.errors import InputError, InputNeeded, IntegrityError
from runner.base.records import SCORE_UNIT
from runner.decide import locked_gains
from runner.decide import roster as siblings
from runner.decide.locked_gains import checked_together, prior_of_others, read_given
from runner.eval_set.catalog import PRIOR, SOURCES
from runner.eval_set.lock import write_lock
from runner.eval_set.plan import DEFAULT_PRIOR, default_plan_text
from runner.eval_set.shapes.plan import Prior
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import open_version
from runner.score.pooling import ENOUGH, effect_of, prior_of
from tests.conftest import called
from tests.support.small_set import make_version


@pytest.fixture(name="locked")
def _locked(decided_evening, tmp_path):
    """Makes a locked version of a source out of the small set's results, whose scores `change` may alter."""

    def make(name, change=lambda results: None):
        old = make_version(decided_evening)
        text = old.results_path.read_text().replace(old.source.structural_chunker, SOURCES[name].structural_chunker)
        results = json.loads(text)
        results["plan"]["source"] = name
        change(results)
        folder = tmp_path / name / "v1"
        folder.mkdir(parents=True)
        (folder / "results.json").write_bytes(json_bytes(results))
        write_lock(folder)
        return folder

    return make


def called_pooled(capsys, *arguments):
    code, message = called("pooled", *arguments)
    said = capsys.readouterr()
    return code, said.out, said.err + message


def test_gains_and_their_covariance_are_those_of_the_queries(locked):
    given = read_given(locked("bills"))
    results = Results.model_validate_json((given.path).read_bytes())
    scores = {row.cell: np.array(row.scores["ndcg@10"].per_query) / SCORE_UNIT for row in results.cells}
    n_queries = len(results.queries)
    for place, cell in enumerate(given.gains.cells):
        differences = scores[cell] - scores[results.plan.baseline]
        assert given.gains.gains[place] == pytest.approx(differences.mean())
        assert given.gains.covariance[place, place] == pytest.approx(differences.var(ddof=1) / n_queries)
    assert set(given.gains.cells) == set(results.plan.cells) - {results.plan.baseline}
    assert given.results_sha256 == file_sha256(given.path)


def test_the_command_says_one_thing_whatever_the_order(locked, capsys):
    folders = [locked(name) for name in ("us_code", "bills", "public_laws")]
    said = [called_pooled(capsys, *order, "--json") for order in (folders, folders[::-1])]
    assert said[0] == said[1]
    report = json.loads(said[0][1])
    assert [one["source"] for one in report["inputs"]] == ["bills", "us_code", "public_laws"]
    assert report["inputs"][0]["results_sha256"] == file_sha256(folders[1] / "results.json")
    assert "structural" in report["effects"]
    assert len(report["odd"]) == 3
    lines = called_pooled(capsys, *folders)[1]
    assert lines.startswith("Structural: ")


def test_what_must_not_be_pooled_is_refused(locked, tmp_path, capsys):
    bills = locked("bills")
    rehearsed = locked("us_code", lambda results: results.update(kind="rehearsal"))
    cell = next(row["cell"] for row in read_json(bills / "results.json")["cells"] if row["role"] != "baseline")
    other = locked("public_laws", lambda results: results["plan"].update(baseline=cell))
    again = shutil.copytree(bills, tmp_path / "again")
    for folders in ([bills, rehearsed], [bills, other], [bills, again], [rehearsed]):
        assert called_pooled(capsys, *folders)[0] == InputError.exit_code
    assert called_pooled(capsys, rehearsed, "--rehearse")[0] == 0
    shutil.copytree(rehearsed, bills / "rehearsal")
    assert called_pooled(capsys, bills, "--rehearse")[0] == 0
    (again / "results.json").write_bytes((again / "results.json").read_bytes() + b"\n")
    assert called_pooled(capsys, again)[0] == IntegrityError.exit_code
    (again / "lock.json").unlink()
    assert called_pooled(capsys, again)[0] == InputError.exit_code


def test_before_anything_is_locked_something_is_outstanding(tmp_path, capsys, monkeypatch):
    nowhere = partial(opened_nowhere, tmp_path)
    monkeypatch.setattr(siblings, "newest_locked", partial(siblings.newest_locked, versions=nowhere))
    assert called_pooled(capsys)[0] == InputNeeded.exit_code


def opened_nowhere(folder, name):
    workspace = (folder / name, folder / ".work", folder / ".cache")
    return open_version(*workspace, SOURCES[name], rehearsal=False)


def test_the_prior_that_is_printed_can_be_pasted_into_a_plan_and_is_the_one_of_a_new_plan(
    locked, capsys, tmp_path, monkeypatch
):
    folders = [locked(name) for name in ("us_code", "bills", "public_laws")]
    printed = called_pooled(capsys, *folders)[1]
    prior = Prior.model_validate(yaml.safe_load(printed[printed.rindex("prior:") :])["prior"])
    given = checked_together([read_given(folder) for folder in folders])
    assert prior.from_results == [file_sha256(one.path) for one in given]
    assert prior.kinds == prior_of([one.gains for one in given])
    monkeypatch.setattr(locked_gains, "newest_locked", lambda **_: [one.path for one in given])
    version = opened_nowhere(tmp_path, "committee_reports")
    baseline = given[0].baseline
    assert prior_of_others(version, baseline, rehearsal=False) == prior
    # A source does not learn from itself, nor from results over another baseline.
    own = prior_of_others(opened_nowhere(tmp_path, "bills"), baseline, rehearsal=False)
    assert own.from_results == [one.results_sha256 for one in given if one.gains.source != "bills"]
    assert prior_of_others(version, f"other-{baseline}", rehearsal=False) == DEFAULT_PRIOR
    plan = yaml.safe_load(default_plan_text(version.source, rehearsal=False, prior=prior))
    assert Prior.model_validate(plan["prior"]) == prior


def test_the_catalogs_prior_is_what_the_committed_rehearsals_say_of_kinds_that_enough_of_them_have():
    sources = [read_given(path).gains for path in siblings.newest_locked(rehearsal=True)]
    said = {
        kind: prior
        for kind, prior in prior_of(sources).items()
        if (effect := effect_of(kind, sources)) and effect.sources >= ENOUGH
    }
    assert len(said) >= 7
    for kind, prior in said.items():
        assert (PRIOR[kind].mean, PRIOR[kind].sd) == pytest.approx((prior.mean, prior.sd), abs=0.00251)
