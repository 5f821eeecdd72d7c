"""An evening without an encoder that cannot be had."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from runner.base.errors import BackendError, InputError
from runner.embed.backends import LocalBackend
from runner.embed.encoder import Answer
from runner.embed.reranker import Reranker
from runner.eval_set import catalog
from runner.eval_set.catalog import SOURCES
from runner.eval_set.plan import default_plan_text
from runner.eval_set.preregistration import preregister
from runner.eval_set.version import load_decision, load_results
from runner.evening.evening import Evening
from runner.evening.leave_out import leave_out, without_advice
from runner.judge.answers import Importer
from runner.retrieve import make_runs
from tests.support.evening_process import CHOICE, few_draws_in_plans
from tests.support.small_set import SmallEncoder, answers, fake_encoders, few_draws, make_version

STATIC = "minilm-static-384"
DAY = "2026-11-23"


@pytest.fixture(name="version")
def _version(ready, tmp_path):
    """Ready to be embedded, with one cell more than a plan needs: `demo` has six dense ones, two of them of STATIC."""
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    version = make_version(tmp_path)
    path = version.plan_path(rehearsal=False)
    text = path.read_text().replace(f'"{STATIC} x fixed_token_512_50"', '"minilm-l6-v2 x whole_doc"')
    text = text.replace(
        '  - "bm25 x whole_doc"\n', '  - "minilm-l6-v2 x recursive_v1"  # kept\n  - "bm25 x whole_doc"\n'
    )
    path.write_text(text)
    return version


class Absent(SmallEncoder):
    """Cannot be loaded where a text is sent, as an architecture that the library does not know."""

    def embed(self, batches):
        raise BackendError(f"{self.spec.name} cannot be loaded")
        yield Answer("")


def evening(version, lacks=STATIC, **more):
    encoders = LocalBackend(lambda name: Absent(name) if name == lacks else fake_encoders(name))
    return Evening(version, version.folder.parents[2] / "corpus", backend=encoders, **more)


def test_an_encoder_that_fails_names_the_plans_lines_and_what_leaves_them_out(version):
    with pytest.raises(BackendError) as error:
        evening(version).run()
    path = version.plan_path(rehearsal=False)
    lines = path.read_text().splitlines()
    named = {int(number): line for number, line in re.findall(r"^  (\d+): (.*)$", str(error.value), re.MULTILINE)}
    assert named == {n: line.strip() for n, line in enumerate(lines, start=1) if STATIC in line}
    assert named
    assert "still meets criteria 1 to 4" in str(error.value)
    assert f"--without {STATIC}" in str(error.value)


def test_a_cross_encoder_is_left_out_like_an_encoder(version, monkeypatch):
    model = "ms-marco-minilm-l6"
    path = version.plan_path(rehearsal=False)
    cells = [f"rerank(bm25,{model}) x {chunker}" for chunker in ("recursive_v1", "whole_doc")]
    added = "".join(f'  - "{cell}"\n' for cell in cells)
    path.write_text(path.read_text().replace('  - "bm25 x whole_doc"\n', f'  - "bm25 x whole_doc"\n{added}'))

    def absent(spec):
        raise BackendError("not to be had")

    monkeypatch.setattr(make_runs, "reranker_for", lambda name: Reranker(catalog.reranker(name), absent))
    with pytest.raises(BackendError, match=f"not to be had\n(.*\n)*.*--without {model}$"):
        evening(version).run()
    assert not list(version.cache.glob("vectors/*")), "before anything was embedded"
    leave_out(version, [model], DAY)
    (row,) = version.plan().left_out
    assert (row.encoder, row.cells) == (model, cells)
    assert not set(cells) & set(version.plan().cells)


@pytest.mark.slow
def test_an_evening_without_it_says_so_in_plan_results_page_and_decision(version):
    path = version.plan_path(rehearsal=False)
    before = path.read_text().splitlines()
    with few_draws_in_plans(), pytest.raises(Exception, match="to judge"):
        evening(version, without=[STATIC]).run()
    kept = [line for line in before if STATIC not in line]
    assert path.read_text().splitlines()[: len(kept)] == kept, "comments and order stay"
    gone = [re.search(r'"(.*)"', line)[1] for line in before if STATIC in line]
    for answer in answers(version):
        Importer(version).take_file(answer, judge="words", model="", judged_on="2026-01-31")
    evening(version, without=[STATIC], choice=CHOICE).run()
    expected = [{"encoder": STATIC, "cells": gone, "left_out_on": version.plan().left_out[0].left_out_on}]
    results = load_results(version)
    assert results.model_dump()["plan"]["left_out"] == expected
    assert load_decision(version).model_dump()["left_out"] == expected
    assert not any(STATIC in row.cell for row in results.cells)
    assert any(expected[0]["left_out_on"] in weakness for weakness in results.weaknesses)
    page = (version.folder / "results.html").read_text(encoding="utf-8")
    assert all(cell in page for cell in gone)


def test_what_criteria_need_is_not_left_out(version):
    path = version.plan_path(rehearsal=False)
    before = path.read_bytes()
    with pytest.raises(InputError, match="criterion 2"):
        leave_out(version, ["minilm-l6-v2"], DAY)
    with pytest.raises(InputError, match="no cell of it"):
        leave_out(version, ["nomic-v1.5"], DAY)
    assert "criterion 1" in without_advice(version, "minilm-l6-v2")
    assert without_advice(version, "nomic-v1.5") == ""
    preregister(version)
    with pytest.raises(InputError, match="version new"):
        leave_out(version, [STATIC], DAY)
    assert "version new" in without_advice(version, STATIC)
    assert path.read_bytes() == before


@pytest.mark.parametrize("source", sorted(name for name, spec in SOURCES.items() if spec.trigger_order))
def test_every_default_plan_can_do_without_any_one_encoder_but_the_baselines(tmp_path, source):
    version = replace(make_version(tmp_path), source=SOURCES[source])
    path = version.plan_path(rehearsal=False)
    path.parent.mkdir(parents=True)
    for encoder in ("nomic-v1.5", "mxbai-large-v1", "mpnet-base-v2"):
        path.write_text(few_draws(default_plan_text(version.source, rehearsal=False, version=version.number)))
        leave_out(version, [encoder], DAY)
        leave_out(version, [encoder], "2026-11-24")
        plan = version.plan()
        assert [row.encoder for row in plan.left_out] == [encoder]
        assert plan.left_out[0].left_out_on == DAY, "left out once, however often it is asked for"
        assert not any(encoder in cell for cell in plan.cells)
        assert "# What this version compares" in path.read_text()
    with pytest.raises(InputError, match="criterion 1"):
        leave_out(version, ["nomic-v1.5", "mxbai-large-v1"], DAY)
    assert json.loads(json.dumps(version.plan().model_dump()))["left_out"][0]["encoder"] == "mpnet-base-v2"
