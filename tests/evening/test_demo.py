"""The demo: its committed inputs agree with one another, and the real model runs an evening from end to end."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
import yaml

from runner.base.canonical import file_sha256
from runner.base.places import CHECKOUT
from runner.eval_set.catalog import SOURCES
from runner.eval_set.labels import load_labels
from runner.eval_set.plan import default_plan_text
from runner.eval_set.preregistration import preregister
from runner.eval_set.version import load_corpus, load_queries, open_version
from tests.support.hub_server import HubServer, packaged_minilm
from tests.support.modal_server import ModalServer
from tests.support.small_set import answers, make_version, write_corpus, write_queries

INPUTS = {"corpus.jsonl", "judge-v1.md", "labels.jsonl", "plan.yaml", "preregistration.json", "queries.yaml"}
INPUTS |= {"rehearsal/plan.yaml"}


@pytest.fixture
def demo():
    workspace = (CHECKOUT / "eval-sets" / "demo", CHECKOUT / ".work", CHECKOUT / ".cache")
    return open_version(*workspace, SOURCES["demo"])


def test_its_inputs_are_committed_and_nothing_that_a_run_writes(demo):
    listed = subprocess.run(["git", "ls-files", "."], cwd=demo.folder, capture_output=True, text=True, check=True)
    assert set(listed.stdout.split()) == INPUTS


def test_its_plan_was_kept_to_and_every_topic_has_an_answer(demo):
    queries = load_queries(demo.queries_path)
    documents = {row.doc_id for row in load_corpus(demo.corpus_path)[1]}
    labels = load_labels(demo.labels_path)
    assert len(queries) >= 60
    assert {label.query_id for label in labels} == {query.id for query in queries}
    assert {label.doc_id for label in labels} <= documents
    assert {query.source_document for query in queries} <= documents
    assert {label.query_id for label in labels if label.grade >= 2} == {query.id for query in queries}
    # Every pair was graded by the same prompt, which is the one that was frozen, and a share by a second reader.
    assert {label.prompt_sha256 for label in labels} == {file_sha256(demo.judge_path)}
    pairs = {(label.query_id, label.doc_id) for label in labels}
    again = {(label.query_id, label.doc_id) for label in labels if label.judge == "claude-second"}
    assert 0.1 <= len(again) / len(pairs) <= 0.2


def test_its_manifest_is_what_the_committed_bills_read_as(demo):
    from runner.eval_set.corpus import manifest_row
    from samplers.corpus.parse import read_corpus

    found = {d.doc_id: d for d in read_corpus(CHECKOUT / SOURCES["demo"].corpus, "bills").documents}
    header, rows = load_corpus(demo.corpus_path)
    assert header.quarantined == []
    assert [manifest_row(found[row.doc_id]) for row in rows] == list(rows)


def test_its_preregistration_holds(demo):
    before = demo.preregistration_path.read_bytes()
    preregister(demo)
    assert demo.preregistration_path.read_bytes() == before


REAL = "minilm-l6-v2 x fixed_token_512_50"
STATIC_CHUNKERS = ("fixed_token_512_50", "fixed_token_256_25", "section_aware_bills_v1", "recursive_v1", "whole_doc")
CELLS = [
    REAL,
    *(f"minilm-static-384 x {name}" for name in STATIC_CHUNKERS),
    "bm25 x whole_doc",
    "rrf(bm25,minilm-l6-v2) x fixed_token_512_50",
]
"""One pass of the transformer among them; the baseline is of static vectors, which BM25 beats."""


def begin_small(tmp_path):
    """A version of short bills alone and of CELLS, so that an evening with real weights takes seconds."""
    version = make_version(tmp_path)
    write_queries(version.folder)
    own = {"cells": CELLS, "first": [], "baseline": CELLS[1]}
    plan = yaml.safe_load(default_plan_text(version.source, rehearsal=False)) | own
    del plan["prior"]  # it is of gains over vectors of a model with layers
    version.plan_path(rehearsal=False).write_text(yaml.safe_dump(plan))
    corpus = write_corpus(tmp_path / "corpus")
    for path in sorted(corpus.iterdir(), key=lambda path: path.stat().st_size)[10:]:
        path.unlink()
    queries = yaml.safe_load(version.queries_path.read_text())
    for row in queries["queries"]:
        # Who wrote a query from a document that is not drawn would be told so.
        if not (corpus / f"{row['source_document']}.xml").exists():
            row["source_document"] = ""
    version.queries_path.write_text(yaml.safe_dump(queries))
    return version, corpus


class Driver:
    """The command line as a person calls it, in a home of its own."""

    def __init__(self, home, more=None):
        self.home, self.more = home, more or {}
        self.where = ["--source=demo", f"--eval-set-path={home / 'eval-sets' / 'demo'}"]
        self.work = home / "eval-sets" / "demo" / ".work" / "demo" / "v1"

    def __call__(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, str(CHECKOUT / "bin" / "per-source-eval.py"), *arguments]
        own = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "PER_SOURCE_EVAL_CACHE": str(self.home / "cache")}
        return subprocess.run(command, capture_output=True, text=True, env=own | self.more, check=False)

    def evening(self, *backend: str) -> "subprocess.CompletedProcess[str]":
        """From short bills to a locked decision; cells are embedded where `backend` says."""
        version, corpus = begin_small(self.home)
        first = self(*self.where, f"--corpus-path={corpus}", *backend)
        assert first.returncode == 3, first.stderr
        graded = [str(path) for path in answers(replace(version, work=self.work))]
        imported = self("labels", "import", *self.where, "--judge=words", "--person", *graded)
        assert imported.returncode == 0, imported.stderr
        self.record = version.folder
        return self("choose", *self.where, "bm25 x whole_doc", "--reason", "a test", "--by", "the test suite")


@pytest.fixture(name="local", scope="module")
def _local(tmp_path_factory):
    """An evening of this machine that is over."""
    driver = Driver(tmp_path_factory.mktemp("local"))
    done = driver.evening()
    assert done.returncode == 0, done.stderr
    return driver


@pytest.mark.slow
@pytest.mark.model
def test_the_driver_runs_the_real_model_to_a_locked_decision(local, tmp_path):
    decision = json.loads((local.record / "decision.json").read_text())
    assert decision["chosen"]["cell"] == "bm25 x whole_doc"
    assert decision["decided_by"] == "the test suite"
    results = json.loads((local.record / "results.json").read_text())
    real = next(row for row in results["cells"] if row["cell"] == REAL)
    assert real["provenance"]["encoder"]["weights_sha256"].startswith("53aa5117")
    assert local(*local.where, "--dry-run").stdout.splitlines()[-1] == "decision recorded"

    shutil.copytree(local.home / "eval-sets", tmp_path / "eval-sets")
    copied = Driver(tmp_path)
    page = tmp_path / "eval-sets" / "demo" / "v1" / "results.html"
    flipped = bytearray(page.read_bytes())
    flipped[100] ^= 1
    page.write_bytes(bytes(flipped))
    tampered = copied("verify", *copied.where)
    assert tampered.returncode == 4
    assert "results.html" in tampered.stderr


@pytest.mark.slow
@pytest.mark.model
def test_an_evening_on_modal_gives_the_figures_of_this_machine(local, tmp_path):
    """The real client, and Modal's own container runtime on uploaded files and fetched weights, by the stand-in.

    onnxruntime embeds here and torch does there, so scores may differ in their last digit, the probe's digest of
    vectors at three places by the one coordinate of thousands that is rounded otherwise, and nothing else may.
    """
    with (
        HubServer(packaged_minilm()) as hub,
        ModalServer(tmp_path / "modal", executor="container", environment={"HF_ENDPOINT": hub.url}) as server,
    ):
        driver = Driver(tmp_path, server.environment())
        done = driver.evening("--modal", "--gpu=cpu")
        assert done.returncode == 0, done.stderr
        texts = {text for sent in server.inputs if sent.function == "Embedder.embed" for text in sent.args[2]}
        assert not server.unanswered
        assert len(server.apps_stopped) == 1
    for name, of_scores in (("results.json", "run_sha256"), ("decision.json", "results_sha256")):
        there, here = (
            re.sub(f'"({of_scores}|digest)": "[0-9a-f]{{64}}"', "", (record / name).read_text())
            for record in (driver.record, local.record)
        )
        assert there == here
    for name in sorted(path.name for path in (local.record / "runs").iterdir()):
        there, here = (pd.read_csv(record / "runs" / name, sep="\t") for record in (driver.record, local.record))
        pd.testing.assert_frame_equal(there, here, check_exact=False, rtol=0, atol=2e-5)
    receipt = json.loads((driver.record / "receipt.json").read_text())
    assert {backend["name"] for backend in receipt["backends"].values()} == {"modal"}
    assert receipt["backends"][REAL]["served"]["weights_sha256"].startswith("53aa5117")
    assert receipt["spend"]["embedding_usd"] > 0, "spent on the first evening, told by the last one"
    assert {row.text for row in load_queries(driver.record / "queries.yaml")} <= texts
    secrets = [server.environment()[name].encode() for name in ("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET")]
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "modal" not in path.parts]
    told = b"".join((*written, done.stdout.encode(), done.stderr.encode()))
    assert not any(secret in told for secret in secrets)
    assert "<bdi>Modal</bdi>" in (driver.record / "results.html").read_text()
