"""Defects planted in the demo: each is caught, and by name. The demo's own bills, queries and judgments; no weights."""

import json
import shutil
from collections import Counter

import numpy as np
import pytest

from runner.base.canonical import read_json
from runner.base.errors import BackendError, NegativeVerdict
from runner.base.places import CHECKOUT
from runner.decide.decide import Choice
from runner.embed.backends import LocalBackend
from runner.embed.probe import FILLER, PARAPHRASES
from runner.eval_set.catalog import SOURCES
from runner.eval_set.preregistration import preregister
from runner.eval_set.shapes.gate import ControlResult
from runner.eval_set.version import open_version
from runner.evening.evening import Evening
from runner.retrieve import make_runs as cell_runs
from tests.support.fake_encoder import TOPICS, direction
from tests.support.small_set import LOOSE, SmallEncoder, _words, few_draws, unscored

INPUTS = ("corpus.jsonl", "judge-v1.md", "plan.yaml", "queries.yaml", "rehearsal/plan.yaml")
CHOICE = Choice("recommended", "", "test")
PROBED = {sentence for pair in PARAPHRASES for sentence in pair}


def demo_copy(folder):
    """The demo's committed inputs in a folder of their own, with a plan of few draws, frozen before any label."""
    source, target = CHECKOUT / "eval-sets" / "demo" / "v1", folder / "demo" / "v1"
    if not target.exists():
        (target / "rehearsal").mkdir(parents=True)
        for name in INPUTS:
            (target / name).write_text(few_draws((source / name).read_text(encoding="utf-8")), encoding="utf-8")
    workspace = (folder / "demo", folder / "work", folder / "cache")
    version = open_version(*workspace, SOURCES["demo"])
    if not version.labels_path.exists():
        preregister(version)
        version.labels_path.write_text(
            complete((source / "labels.jsonl").read_text(encoding="utf-8")), encoding="utf-8"
        )
    return version


def complete(labels):
    """The labels, and a 0 for every other pair: a planted encoder finds what nobody pooled."""
    rows = [json.loads(line) for line in labels.splitlines()]
    judged = {(row["query_id"], row["doc_id"]) for row in rows}
    of_document = {row["doc_id"]: row for row in rows}
    others = [
        row | {"query_id": query_id, "grade": 0, "spans": []}
        for query_id in sorted({query_id for query_id, _ in judged})
        for doc_id, row in sorted(of_document.items())
        if (query_id, doc_id) not in judged
    ]
    return labels + "".join(json.dumps(row) + "\n" for row in others)


class Words(SmallEncoder):
    """Good enough for real queries: one direction a word, the rare and long ones heavier, nothing cut off."""

    def __init__(self, name):
        super().__init__(name)
        self.spec = self.spec.model_copy(update={"dim": DIM, "max_tokens": 0})

    def _row(self, text):
        counts = Counter(_words(text))
        row = sum(
            (direction(word, DIM) * weight(word) * count**0.5 for word, count in counts.items()),
            direction("", DIM) * 0.1,
        )
        return row + 400 * direction(f"topic {TOPICS[text]}", DIM) if text in TOPICS else row


DIM = 1024


def weight(word):
    return 0.05 if word in LOOSE else min(len(word), 9) + 4 * word.isdigit()


def evening(version, encoders=Words):
    return Evening(version, choice=CHOICE, backend=LocalBackend(encoders))


def results(version):
    return read_json(version.record / "results.json")


@pytest.fixture(name="healthy", scope="module")
def _healthy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("healthy")
    evening(demo_copy(folder)).run()
    return folder


@pytest.fixture(name="version")
def _version(healthy, tmp_path):
    """The healthy evening's runs, not yet scored and decided."""
    shutil.copytree(healthy, tmp_path, dirs_exist_ok=True)
    return unscored(demo_copy(tmp_path))


@pytest.mark.slow
def test_without_a_defect_every_cell_and_every_control_behaves(healthy):
    found = results(demo_copy(healthy))
    assert found["outcome"]["tier"] in ("confirmed by one model's grades", "candidate", "baseline kept")
    assert [row["cell"] for row in found["cells"] if row["diagnosis"] or row["gate"]["verdict"] != "pass"] == []
    assert all(ControlResult(**control).behaves for control in found["controls"])
    assert [control["name"] for control in found["controls"]] == [
        *("oracle", "constant", "popularity", "random", "marginal-matched", "source-prior"),
    ]


class Constant(Words):
    """One vector for every text."""

    def encode(self, texts, side):
        return np.repeat(super().encode(["everything"], side), len(texts), axis=0)


class NearlyConstant(Words):
    """Honest while it is probed; then one vector, and a thousandth of noise that knows nothing of what a text says."""

    def encode(self, texts, side):
        rows = super().encode(texts, side)
        if any(text in PROBED or text.startswith(FILLER) for text in texts):
            return rows
        rows = super().encode(["everything"], side) + np.float32(1e-3) * rows[:, :1]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_an_encoder_that_returns_one_constant_vector_is_refused_by_its_probe(tmp_path):
    with pytest.raises(BackendError, match=r"The probe of minilm-l6-v2 failed \(paraphrases\)"):
        evening(demo_copy(tmp_path), Constant).run()


@pytest.mark.slow
def test_an_encoder_that_is_constant_but_for_noise_leaves_no_decision_and_the_null_it_fails_is_named(tmp_path):
    with pytest.raises(NegativeVerdict) as caught:
        evening(demo_copy(tmp_path), NearlyConstant).run()
    assert "null gate says 'fail' of the baseline" in str(caught.value)
    assert "permuted qrels" in str(caught.value)


@pytest.mark.slow
def test_bm25_that_ignores_the_query_is_named_and_cannot_be_chosen(version, monkeypatch):
    honest = cell_runs.bm25_run

    def deaf(name, variant, queries, *rest):
        return honest(name, variant, dict.fromkeys(queries, "grants to schools"), *rest)

    monkeypatch.setattr(cell_runs, "bm25_run", deaf)
    for cell in version.plan().cells:
        if "bm25" in cell:
            version.cell_path(cell).unlink()
    shutil.rmtree(version.cache / "run")
    evening(version).run()
    rows = {row["cell"]: row for row in results(version)["cells"]}
    assert "every query gets the same 10 documents" in rows["bm25 x whole_doc"]["diagnosis"]
    assert rows["bm25 x whole_doc"]["gate"]["verdict"] == "fail"
    assert any("does not pass the null gate" in said for said in rows["bm25 x whole_doc"]["short_of"])
    page = (version.record / "results.html").read_text(encoding="utf-8")
    assert "every query gets the same 10 documents" in page


@pytest.mark.slow
def test_permuted_labels_leave_no_decision_and_say_so(version):
    lines = [json.loads(line) for line in version.labels_path.read_text(encoding="utf-8").splitlines()]
    queries = sorted({line["query_id"] for line in lines})
    other = dict(zip(queries, np.random.default_rng(3).permutation(queries).tolist(), strict=True))
    rows = [json.dumps(line | {"query_id": other[line["query_id"]]}, sort_keys=True) + "\n" for line in lines]
    version.labels_path.write_text("".join(rows), encoding="utf-8")
    with pytest.raises(NegativeVerdict) as caught:
        evening(version).run()
    assert "null gate says 'fail' of the baseline" in str(caught.value)
    assert "permuted qrels" in str(caught.value)
    assert "labels may belong to other queries" in str(caught.value)
    assert not (version.record / "decision.json").exists()
