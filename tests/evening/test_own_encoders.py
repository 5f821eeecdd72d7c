"""An evening whose plan has an encoder of its own, from plan.yaml to the decision."""

import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from runner.base.errors import InputError, InputNeeded
from runner.base.steps import Skipped, examined
from runner.commands.main import main
from runner.decide.decide import Choice
from runner.decide.roster import Standing, moved_on
from runner.embed.backends import LocalBackend, Work
from runner.embed.cost.estimate import HEADROOM, Total
from runner.embed.cost.ledger import SPEND, BudgetError, Ledger
from runner.embed.plan_backend import PlanBackend
from runner.eval_set.version import load_cell_file, load_corpus, load_decision, load_receipt, load_results, numbered
from runner.evening.costs import Asked, costs
from runner.evening.evening import Evening
from runner.evening.exploration import Exploration
from runner.evening.needs import Needs
from runner.evening.next_version import open_next
from runner.evening.status import describe
from runner.report.results_page import uncatalogued
from runner.report.sentences import weaknesses
from runner.tools.replay import replay
from tests.support.evening_process import judged
from tests.support.loopback import served
from tests.support.service_server import KEY, MODEL, VARIABLE, ServiceServer, block
from tests.support.small_set import fake_encoders, make_version

CELL = "own x section_aware_bills_v1"
CUT = "own@24 x section_aware_bills_v1"
"""The same vectors, cut: nothing more is asked of the service."""
CHOICE = Choice("recommended", "", "a test")


@contextmanager
def serving():
    with pytest.MonkeyPatch.context() as patch, served(ServiceServer("voyage")) as server:
        patch.setenv(VARIABLE, KEY)
        yield server


def planned_in(folder, server, waiting_evening):
    """The small set before anything is frozen, its plan with an own cell and warm caches for all others."""
    shutil.copytree(waiting_evening, folder, dirs_exist_ok=True)
    version = make_version(folder)
    version.preregistration_path.unlink()
    shutil.rmtree(version.judging)
    path = version.plan_path(rehearsal=False)
    text = path.read_text().replace('  - "bm25 x whole_doc"\n', f'  - "{CELL}"\n  - "{CUT}"\n  - "bm25 x whole_doc"\n')
    path.write_text(text + block(server))
    return version


@pytest.fixture(name="planned")
def _planned(waiting_evening, tmp_path):
    with serving() as server:
        yield planned_in(tmp_path, server, waiting_evening), server


@pytest.fixture(name="decided", scope="module")
def _decided(waiting_evening, tmp_path_factory):
    with serving() as server:
        version = planned_in(tmp_path_factory.mktemp("own"), server, waiting_evening)
        lines, _ = describe(version)
        with pytest.raises(InputNeeded):
            evening(version)
        judged(version)
        evening(version)
        yield version, server, lines


def opened(version, max_usd=5.0):
    return PlanBackend(LocalBackend(fake_encoders), lambda: version.plan().encoders, version.work, max_usd)


def evening(version, **more):
    with opened(version, **more) as backend:
        return Evening(version, choice=CHOICE, backend=backend).run()


def test_a_service_of_the_plan_is_evaluated_like_any_other_to_the_decision(decided):
    version, server, before = decided
    assert any(line.startswith(f"  own is the plan's own: {MODEL} at {server.url}") for line in before)
    assert any(line.startswith("  own: ") and "$10 a million" in line for line in before)
    assert not any("local encoders" in line for line in before)
    results, decision = load_results(version), load_decision(version)
    assert {CELL, CUT} <= {row.cell for row in results.cells}
    assert any(CUT in weakness for weakness in weaknesses(results))
    assert list(uncatalogued(results)) == ["own"]
    facts = load_cell_file(version.cell_path(CELL))
    assert (facts.backend.name, facts.backend.served["model"]) == ("http", MODEL)
    assert facts.probe["refuses_above"] == 400
    assert facts.truncation.lost == 0
    documents = load_corpus(version.corpus_path)[1]
    assert sum(facts.chunks_per_document) == facts.chunks.count
    assert np.corrcoef(facts.chunks_per_document, [row.n_chars for row in documents])[0, 1] > 0.9
    assert moved_on(Standing(version.source, version, "decided", decision, "", ())) == []
    page = (version.record / "results.html").read_text()
    assert f"<code>own</code> is not of the catalog: <bdi>{MODEL}" in page


def test_what_a_service_was_paid_is_in_the_receipt(decided):
    version, server, _ = decided
    spend = load_receipt(version.record / "receipt.json").spend
    assert spend.services_usd == pytest.approx(sum(row.usd for row in Ledger(version.work / SPEND).entries()), abs=1e-6)
    # Beside what answers counted stands one word, by which the key was tried, at the most that it can cost.
    assert server.tokens * 10 / 1e6 < spend.services_usd < (server.tokens + 200) * 10 / 1e6
    assert spend.embedding_usd == 0


def test_no_key_is_in_any_file(decided):
    version, _, _ = decided
    kept = [path for path in version.folder.parents[2].rglob("*") if path.is_file()]
    assert len(kept) > 50
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_decision_over_a_service_replays_and_its_encoder_can_be_explored(decided):
    version, server, _ = decided
    n_asked = len(server.asked)
    with opened(version) as backend:
        assert replay(version, backend).holds
    assert len(server.asked) > n_asked  # it was embedded anew
    with opened(version) as backend:
        Exploration(version, cells=["own x fixed_token_256_25"], backend=backend).run()
    with opened(version) as backend:
        found = {row.name: row for row in examined(Needs(version, backend, Asked()).checks(documents=True))}
    assert (found["encoder own"].state, found["encoder own"].say) == ("done", "answers at 127.0.0.1")
    open_next(version, reason="more", by="a test", today="2026-02-01")
    assert numbered(version, 2).plan().encoders == version.plan().encoders
    with pytest.raises(InputError, match="did you mean 'own'"), opened(version) as backend:
        Exploration(version, cells=["owl x fixed_token_256_25"], backend=backend).run()


def test_services_rented_machines_and_judges_share_one_ceiling(planned):
    version, server = planned
    left = costs(version, version.plan(), Asked(max_usd=1.0)).total
    assert left.usd == pytest.approx(left.embedding * (1 + HEADROOM))
    assert left.embedding > 0
    passed_on = []
    with opened(version, max_usd=1.0) as backend:
        backend._backend.prepare = lambda *given: passed_on.append(given)
        here, there = Work("minilm-l6-v2", 1, 10_000), Work("own", 1, 10_000)
        backend.prepare([here, there], Total(1.0, judging=0.5))
        assert passed_on == [([here], Total(1.0, embedding=0.1, judging=0.5))]
        with pytest.raises(BudgetError, match=r"1\.11"):
            backend.prepare([there], Total(1.0, judging=0.9))
        assert backend.located(version.plan().encoders["own"]) == "answers at 127.0.0.1"
        nobody = {"name": "silent", "url": f"http://127.0.0.1:{1}"}
        with pytest.raises(Skipped, match="does not answer"):
            backend.located(version.plan().encoders["own"].model_copy(update=nobody))
    assert len(passed_on) == 1
    assert [texts for _, texts in server.asked] == [["word"]]


def test_a_changed_block_is_exit_4_once_frozen(planned, monkeypatch):
    version, _ = planned
    with pytest.raises(InputNeeded):
        evening(version)
    monkeypatch.setenv("PER_SOURCE_EVAL_CACHE", str(version.cache))
    flags = ["plan", "demo", f"--eval-set-path={version.folder.parent}"]
    path = version.plan_path(rehearsal=False)
    frozen = path.read_text()
    changes = [(MODEL, "words-2"), ("dim: 48", "dim: 49"), (VARIABLE, "OTHER"), ("tokens: 10", "tokens: 9")]
    for before, after in changes:
        path.write_text(frozen.replace(before, after))
        assert main(flags) == 4
    path.write_text(frozen)
    assert main(flags) == 1
