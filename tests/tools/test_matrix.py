"""The matrix of public collections: what it claims of two invented ones, and every input that must be refused."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runner.base.canonical import json_bytes, read_json
from runner.base.errors import InputError
from runner.base.places import CHECKOUT
from runner.base.records import SCORE_UNIT
from runner.commands.matrix import main as matrix
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.eval_set.shapes.paired import MeasureResult
from runner.score.sign_flip import paired_tests
from runner.tools.compare import compare, read_scores
from runner.tools.markdown import escaped
from runner.tools.matrix import (
    MEASURES,
    Value,
    add_runs,
    beside,
    load_published,
    load_runs,
    matrix_page,
    systems_of,
)
from tests.support.full_results import big_results

BM25 = "bm25 x whole_doc"
DENSE = "minilm-l6-v2 x whole_doc"
HYBRID = "rrf(bm25,minilm-l6-v2) x whole_doc"
SHA = "ab" * 32
HARD = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
"""What the baseline scores, query by query."""

LIFTS = {BM25: 0.0, DENSE: 0.2, HYBRID: 0.4}
"""What the systems of `results` score above the baseline, on every query."""


def facts(name="alpha", **more):
    counts = dict.fromkeys(("empty_documents", "queries_unjudged", "missing_documents"), 0)
    digests = dict.fromkeys(("corpus_sha256", "queries_sha256", "qrels_sha256"), SHA)
    return CollectionFacts.model_validate({"name": name, "split": "qrels.tsv"} | counts | digests | more)


def results(name="alpha", lifts=LIFTS, verdict="pass", **changed):
    """The results of an external collection."""
    made = big_results(len(HARD), len(lifts))
    cells = []
    for row, (cell, lift) in zip(made.cells, lifts.items(), strict=True):
        units = [round((score + lift) * SCORE_UNIT) + place for place, score in enumerate(HARD)]
        scores = MeasureResult(mean=sum(units) / len(units) / SCORE_UNIT, low=0.4, high=0.6, per_query=units)
        kept = "pass" if cell == BM25 else verdict
        cells.append(
            row.model_copy(
                update={
                    "cell": cell,
                    "scores": dict.fromkeys((*MEASURES, "recall@10", "mrr", "judged@10"), scores),
                    "gate": row.gate.model_copy(update={"verdict": kept}),
                    "diagnosis": "" if kept == "pass" else "every query gets the same 10 documents.",
                }
            )
        )
    corpus = made.corpus.model_copy(update={"n_read": 50, "strata": {"all": 50}})
    labels = made.labels.model_copy(update={"pairs": 20})
    parts = {"kind": "external", "cells": cells, "collection": facts(name), "corpus": corpus, "labels": labels}
    return made.model_copy(update=parts | changed)


def source(**more):
    given = {"title": "A paper", "url": "https://example.org/paper", "kind": "published", "configuration": "as ours"}
    return given | {"read_in": "table 1", "unlike": None} | more


def value(**more):
    given = {"dataset": "alpha", "system": BM25, "measure": "ndcg@10", "value": 0.275, "tolerance": 0.003}
    return given | {"source": "paper"} | more


def docs(folder, *found, values=(), **sources):
    """A folder of documents with the runs of some results.json and a file of published values."""
    published = {"schema_version": 1, "sources": sources or {"paper": source()}, "values": list(values)}
    (folder / "matrix").mkdir(parents=True)
    (folder / "matrix" / "published.yaml").write_text(yaml.safe_dump(published, allow_unicode=True), encoding="utf-8")
    if found:
        add_runs(written(folder, *found), folder / "matrix" / "runs")
    return folder


def written(folder, *found):
    paths = [folder / f"results-{number}.json" for number in range(len(found))]
    for path, content in zip(paths, found, strict=True):
        path.write_bytes(json_bytes(content.model_dump()))
    return paths


def made(folder):
    """The systems of every dataset."""
    return {name: systems_of(runs, draws=2000) for name, runs in load_runs(folder / "matrix" / "runs").items()}


def page(folder):
    return matrix_page(folder / "matrix", draws=2000).decode()


def two_datasets(folder):
    values = [
        value(),
        value(measure="mrr@10", value=0.2),
        value(dataset="beta", system=DENSE, value=0.4, source="other", reason="Another | cut."),
        value(dataset="beta", system="SPLADE++", value=0.7, tolerance=None, source="other"),
        value(dataset="gamma", source="other"),
    ]
    other = source(title="B", url=None, read_in=None, unlike="the cut", kind="reference run")
    beta = results("beta", {BM25: 0.0, DENSE: -0.05, HYBRID: 0.3})
    return docs(folder, results("alpha"), beta, values=values, paper=source(), other=other)


def test_the_page_says_scores_tests_published_values_and_means_of_two_datasets(tmp_path):
    said = page(two_datasets(tmp_path))
    alpha = said.split("\n## alpha\n")[1].split("\n## beta\n")[0]
    assert "50 documents, 10 queries, 20 judged pairs." in alpha
    assert [re.findall(r"`(.+?)`", line)[0] for line in alpha.splitlines() if "](runs" in line] == [
        HYBRID,
        DENSE,
        BM25,
    ]
    assert re.search(rf"\| `{re.escape(HYBRID)}` \| \+0.4000 \[\+0.4000, \+0.4000\] .* \| 10/0/0 \| above \|", alpha)
    assert re.search(r"nDCG@10 \| 0.27500 \| 0.27500 \| 0.00000 \| 0.003 \| agrees \| \[paper\]", alpha)
    assert re.search(r"MRR@10 \| 0.27500 \| 0.20000 \| \+0.07500 \| 0.003 \| \*\*differs\*\*", alpha)
    assert "differs in MRR@10: the cause is not known" in alpha
    assert "| SPLADE++ | nDCG@10 | – | 0.70000 | – | none | no run | other |" in said
    assert r"differs in nDCG@10: Another \| cut." in said
    assert f"| `{DENSE}` | 0.3500 | above | below |" in said


@pytest.mark.parametrize(
    ("ours", "tolerance", "expected"),
    [(0.68812, 0.003, "agrees"), (0.68436, 0.003, "agrees"), (0.68435, 0.003, "differs"), (0.1, None, "shown")],
)
def test_a_value_agrees_inside_its_tolerance_and_never_without_one(ours, tolerance, expected):
    published = Value.model_validate(value(value=0.68736, tolerance=tolerance))
    assert beside(published, {BM25: ours})["agreement"] == expected


def test_a_system_is_tested_against_the_baseline_by_query_whatever_order_its_file_has(tmp_path):
    folder = docs(tmp_path, results())
    before = made(folder)
    path = folder / "matrix" / "runs" / "alpha" / "minilm-l6-v2-x-whole_doc.json"
    run = read_json(path)
    path.write_bytes(json_bytes(run | {"perQuery": run["perQuery"][::-1]}))
    after = made(folder)
    tested = {system.run.cell: system.test for system in after["alpha"]}
    assert tested == {system.run.cell: system.test for system in before["alpha"]}
    lifts = np.array([[round(LIFTS[cell] * SCORE_UNIT)] * len(HARD) for cell in (DENSE, HYBRID)])
    expected = paired_tests(lifts, draws=2000, alpha=0.05, seed=2026)
    assert tested[BM25] is None
    assert [tested[cell].p_adjusted for cell in (DENSE, HYBRID)] == [one.p_adjusted for one in expected]


@pytest.mark.parametrize("verdict", ["fail", "insufficient"])
def test_a_run_that_does_not_pass_the_gate_is_marked_and_neither_ranked_nor_tested(tmp_path, verdict):
    folder = docs(tmp_path, results(verdict=verdict))
    said = page(folder)
    assert f"Not ranked, by its null gate (**{verdict}**): [`{DENSE}`]" in said
    assert "every query gets the same 10 documents." in said
    assert {system.run.cell for system in made(folder)["alpha"] if system.test} == set()
    assert f"Without a ranked run of `{BM25}` and another one, nothing is tested." in said


def test_a_run_is_read_by_compare_and_gives_the_difference_of_the_page(tmp_path):
    folder = docs(tmp_path, results())
    runs = folder / "matrix" / "runs" / "alpha"
    ours, theirs = (read_scores(runs / f"{name}.json") for name in ("minilm-l6-v2-x-whole_doc", "bm25-x-whole_doc"))
    difference = next(one.difference for one in made(folder)["alpha"] if one.run.cell == DENSE)
    assert compare(ours, theirs).paired.difference == difference.mean


def test_the_command_adds_runs_without_texts_writes_the_page_and_checks_it(tmp_path, capsys):
    folder = docs(tmp_path)
    found = results()
    texts = [query.text for query in found.queries]
    assert matrix(["--docs", str(folder), *map(str, written(folder, found))]) == 0
    assert matrix(["--check", f"--docs={folder}"]) == 0
    assert "is reproduced byte for byte" in capsys.readouterr().out
    page = folder / "matrix" / "README.md"
    everything = page.read_text() + "".join(p.read_text() for p in folder.rglob("runs/*/*.json"))
    assert not any(text in everything for text in texts)
    page.write_text("edited")
    assert matrix(["--check", f"--docs={folder}"]) == 4
    page.unlink()
    assert matrix(["--check", f"--docs={folder}"]) == 2


def test_a_run_in_another_ones_place_or_with_a_query_twice_is_refused(tmp_path):
    folder = docs(tmp_path, results())
    path = folder / "matrix" / "runs" / "alpha" / "bm25-x-whole_doc.json"
    run = read_json(path)
    path.write_bytes(json_bytes(run | {"perQuery": run["perQuery"] + run["perQuery"][:1]}))
    with pytest.raises(InputError, match="a query occurs twice"):
        made(folder)
    path.write_bytes(json_bytes(run | {"cell": DENSE}))
    with pytest.raises(InputError, match="Move it to its place"):
        made(folder)


def test_another_collection_of_the_same_name_is_refused_and_nothing_is_written(tmp_path):
    folder = docs(tmp_path, results())
    before = sorted((path, path.read_bytes()) for path in folder.rglob("runs/*/*.json"))
    other = results(collection=facts(corpus_sha256="cd" * 32))
    with pytest.raises(InputError, match="over another collection"):
        add_runs(written(tmp_path, results("beta"), other), folder / "matrix" / "runs")
    assert sorted((path, path.read_bytes()) for path in folder.rglob("runs/*/*.json")) == before


REFUSED = {
    "no collection": (lambda found: found.model_copy(update={"collection": None}), "not a results.json of an external"),
    "sample": (
        lambda found: found.model_copy(update={"corpus": found.corpus.model_copy(update={"n_read": 10**6})}),
        "no published figure is of a sample",
    ),
    "no decision": (
        lambda found: found.model_copy(update={"outcome": found.outcome.model_copy(update={"tier": "no decision"})}),
        "its figures mean nothing",
    ),
    "no name": (lambda found: found.model_copy(update={"collection": facts("コーパス")}), "dataset"),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_results_that_cannot_be_set_beside_others_are_refused(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        add_runs(written(tmp_path, change(results())), tmp_path / "runs")


@pytest.mark.parametrize(
    ("values", "sources", "message"),
    [
        ([value(tolerance=0.2)], {}, r"values\.0: tolerance"),
        ([value(), value(measure="ndcg@5")], {}, r"values\.1: measure"),
        ([value(source="nowhere")], {}, "there is no source 'nowhere'"),
        ([value(), value(value=0.3)], {}, r"values\.0 is from the same source"),
        ([], {"paper": source(url="javascript:alert(1)")}, r"sources\.paper\.url"),
        ([], {"paper": {"title": "A"}}, r"sources\.paper\.configuration"),
    ],
)
def test_a_wrong_value_or_source_is_named_with_its_field(tmp_path, values, sources, message):
    folder = docs(tmp_path, values=values, **sources)
    with pytest.raises(InputError, match=message):
        load_published(folder / "matrix" / "published.yaml")


@given(st.text(min_size=1, max_size=40))
def test_escaped_text_is_one_line_that_opens_no_markup(text):
    shown = escaped(text)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]|~#<]", shown)


@pytest.mark.parametrize("text", ["- x", "+", "1. x", "12) x", "---"])
def test_escaped_text_begins_no_list_and_is_no_rule(text):
    assert re.match(r"\d*\\", escaped(text))


@pytest.mark.slow
def test_the_committed_page_is_what_its_runs_make():
    published = load_published(CHECKOUT / "docs" / "matrix" / "published.yaml")
    assert {row.source for row in published.values} == set(published.sources)
    assert matrix(["--check", f"--docs={Path(CHECKOUT) / 'docs'}"]) == 0
