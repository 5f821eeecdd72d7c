"""The forest plot, each query left out, and the criteria: what is drawn and said equals what the results hold."""

import re
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.base.canonical import sha256
from runner.base.figures import p_beside_alpha, round4
from runner.decide.tiers import CellFigures, meets_criterion_5, unmet_criteria
from runner.eval_set.shapes.plan import Rule
from runner.eval_set.shapes.results import Results
from runner.report.results_page.challenger import challenger, left_out, told
from runner.report.results_page.forest import STANDINGS, forest
from tests.report.test_render import page_of, synthetic_results
from tests.support import example_results as example
from tests.support.example_results import BASELINE
from tests.support.outline import section, words

MINUS = "\u2212"
TIERS = ("confirmed", "candidate", "inconclusive", "baseline kept", "no decision")


typed = Results.model_validate


def challengers(results: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in results["cells"] if row["test"]]


@cache
def plain() -> str:
    return page_of(synthetic_results())


def list_rows(html: str, name: str) -> list[str]:
    """The rows of a section's plot, as they stand in the page."""
    return re.findall(r'<li class="row[^"]*">(.*?)</li>', section(html, name), re.DOTALL)


def strips(row: str) -> list[str]:
    return re.findall(
        r'<svg class="strip".*?</svg></span>|<svg class="strip".*?</svg><svg class="ruler"', row, re.DOTALL
    )


def scale_of(html: str, name: str, which: int):
    """Reads a place in per cent back as a figure, from two ticks of a plot's ruler."""
    ruler = re.findall(r'<svg class="ruler".*?</svg>', section(html, name).split("<ol>")[0], re.DOTALL)[which]
    ticks = re.findall(r'<text class="tick" x="([\d.]+)%"[^>]*>([^<]+)</text>', ruler)
    (left, low), (right, high) = (
        (Fraction(at), Fraction(text.replace(MINUS, "-").lstrip("+"))) for at, text in (ticks[0], ticks[-1])
    )
    return lambda at: float(low + (Fraction(at) - left) * (high - low) / (right - left))


def figures(texts: str) -> list[float]:
    return [float(found.replace(MINUS, "-")) for found in re.findall(rf"[+{MINUS}]?\d+\.\d+", texts)]


def external() -> dict[str, Any]:
    """The same cells over published judgments: nothing is decided, nobody judged."""
    results = synthetic_results()
    facts = dict.fromkeys(("corpus_sha256", "queries_sha256", "qrels_sha256"), sha256("file"))
    counts = dict.fromkeys(("empty_documents", "queries_unjudged", "missing_documents"), 0)
    results["collection"] = {
        "schema_version": 1, "name": "scifact", "split": "test", "documents": 748, "queries": 30, "judged_pairs": 90,
    } | facts | counts  # fmt: skip
    for row in results["cells"]:
        row |= {"meets_criterion_5": False, "short_of": []}
        row["role"] = "baseline" if row["test"] is None else "compared"
    nothing = {"judging": None, "spans": None, "previous": None, "kind": "external"}
    results["outcome"] |= {"tier": "compared"}
    return results | nothing


def test_marks_and_whiskers_of_the_forest_plot_stand_where_the_figures_are():
    results = synthetic_results()
    drawn = list_rows(plain(), "why")
    assert len(drawn) == len(results["cells"])
    scales = [scale_of(plain(), "why", which) for which in (0, 1)]
    for row, html in zip(results["cells"], drawn, strict=True):
        if row["test"] is None:
            assert "whisker" not in html
            continue
        bound = row["recall_bound"]
        wanted = (
            (row["differences"]["ndcg@10"]["mean"], *row["test"]["simultaneous"]),
            (row["differences"]["recall@10"]["mean"], bound["low"], bound["high"]),
        )
        for strip, at, (mean, low, high) in zip(strips(html), scales, wanted, strict=True):
            ends = re.search(r'class="whisker" x1="([\d.]+)%" x2="([\d.]+)%"', strip)
            (mark,) = re.findall(
                r'<svg x="([\d.]+)%" y="50%" overflow="visible"><(?:circle|rect|path) class="mark', strip
            )
            assert ends is not None
            assert [at(place) for place in (mark, *ends.groups())] == pytest.approx([mean, low, high], abs=1e-4)


def test_lines_stand_at_zero_and_at_what_the_rule_asks_for():
    gain, recall = (scale_of(plain(), "why", which) for which in (0, 1))
    first, second = strips(list_rows(plain(), "why")[0])
    for strip, at, bar in ((first, gain, 0.02), (second, recall, -0.02)):
        (zero,), (rule,) = (re.findall(rf'class="{name}" x1="([\d.]+)%"', strip) for name in ("zero", "bar"))
        assert [at(zero), at(rule)] == pytest.approx([0, bar], abs=1e-4)


def test_the_tiers_are_told_apart_without_colour():
    shapes = {name: STANDINGS[name] for name in ("baseline", "confirmed", "candidate", "other", "exploratory")}
    assert len(set(shapes.values())) == len(shapes)


def test_the_standing_of_a_cell_is_what_the_rule_says_of_it():
    results = synthetic_results()
    first, second, third, fourth = challengers(results)[:4]
    first["short_of"], second["short_of"] = [], ["is not told from chance"]
    first["meets_criterion_5"] = second["meets_criterion_5"] = third["meets_criterion_5"] = True
    third["role"] = fourth["role"] = "exploratory"
    fourth["meets_criterion_5"] = False
    rows = [row for row in forest(typed(results)).rows if row.ndcg]
    assert [row.standing for row in rows[:4]] == ["confirmed", "candidate", "late candidate", "exploratory"]


def test_an_interval_of_one_cell_alone_is_broken_and_said_to_be_so():
    results = synthetic_results()
    row = challengers(results)[0]
    row["test"] |= dict.fromkeys(("simultaneous", "p_adjusted", "p_gain"))
    html = page_of(results)
    assert ["whisker alone" in drawn for drawn in list_rows(html, "why")].count(True) == 1
    first = list_rows(html, "why")[0]
    assert "] alone" in words(first)
    low, high = re.search(r'class="whisker alone" x1="([\d.]+)%" x2="([\d.]+)%"', first).groups()
    at = scale_of(html, "why", 0)
    assert [at(low), at(high)] == pytest.approx(row["test"]["interval"], abs=1e-4)


def test_published_judgments_have_sides_of_the_baseline_and_no_rule():
    results = external()
    first, second, third = challengers(results)[:3]
    first["test"] |= {"simultaneous": [0.02, 0.2]}
    second["test"] |= {"simultaneous": [-0.02, 0.2]}
    third["test"] |= {"simultaneous": [0.02, 0.2]}
    third["gate"] |= {"verdict": "fail"}
    html = page_of(results)
    assert [row.standing for row in forest(typed(results)).rows if row.ndcg][:2] == ["above", "not told apart"]
    assert (
        forest(typed(results)).rows[next(i for i, row in enumerate(results["cells"]) if row is third)].standing
        == "not passed"
    )
    assert 'class="bar"' not in strips(list_rows(html, "why")[0])[0]


def small(*cells: list[tuple[float, float]], kind: str = "production") -> dict[str, Any]:
    """Results of as many queries as each cell has pairs of differences in nDCG@10 and Recall@10."""
    count = len(cells[0])
    rows = [example.row(f"cell {number}", half=0.1) for number in range(len(cells))]
    found = example.results(*rows, example.row(BASELINE), kind=kind).model_dump()
    for each, pairs in zip(found["cells"], [*cells, [(0.0, 0.0)] * count], strict=True):
        for measure, values in zip(("ndcg@10", "recall@10"), zip(*pairs, strict=True), strict=True):
            each["scores"][measure]["per_query"] = [round((0.5 + value) * 10**9) for value in values]
        if each["recall_bound"]:
            each["recall_bound"] |= {"low": -0.1, "high": 0.1}
    query = {"text": "a need", "kind": "topic", "origin": "person"}
    return found | {"queries": [{"id": f"q{number}", **query} for number in range(count)]}


PAIRS = st.tuples(*(st.integers(-200, 200).map(lambda value: value / 1000) for _ in range(2)))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 7).flatmap(
        lambda count: st.lists(st.lists(PAIRS, min_size=count, max_size=count), min_size=1, max_size=3)
    )
)
def test_a_query_left_out_changes_the_candidates_where_scoring_anew_says_so(cells: list[Any]):
    rule = Rule(min_gain=0.02, max_recall_loss=0.02)

    def candidates(left: int | None) -> list[bool]:
        kept = [[pair for place, pair in enumerate(pairs) if place != left] for pairs in cells]
        means = [
            [Fraction(round(sum(each) * 1000), 1000 * len(pairs)) for each in zip(*pairs, strict=True)]
            for pairs in kept
        ]
        return [meets_criterion_5(*map(float, pair), rule) for pair in means]

    results, now = typed(small(*cells)), candidates(None)
    turning = [
        [f"q{place}" for place in range(len(cells[0])) if candidates(place)[number] != now[number]]
        for number in range(len(cells))
    ]
    found = {one.cell: one.queries for one in left_out(results)}
    assert sorted(found.values()) == sorted(filter(None, turning))
    assert set(found) <= {row.cell for row in results.cells if row.test}


def test_a_single_query_leaves_nothing_out():
    assert left_out(typed(small([(0.3, 0.0)]))) == []


def test_the_verdict_names_every_criterion_and_whether_the_best_challenger_meets_it():
    results = synthetic_results()
    rows = challengers(results)
    best = next(row for row in rows if row["meets_criterion_5"])
    told = challenger(typed(results))
    assert told.cell == best["cell"]
    met = {criterion.what: criterion.met for criterion in told.criteria}
    assert met["gains at least 0.02 nDCG@10"] is True
    assert met["gains beyond chance, all cells compared"] is False
    assert "Recall@10 does not fall by more than 0.02" not in met


@pytest.mark.parametrize("p", [0.01, 0.2, None])
@pytest.mark.parametrize("gain", [0.0194, 0.05])
@pytest.mark.parametrize("gate", ["pass", "fail", "insufficient"])
def test_criteria_are_all_met_where_nothing_is_short_of_confirmed(p, gain, gate):
    results = synthetic_results(n_queries=4)
    row = challengers(results)[0]
    results["cells"] = [row, next(each for each in results["cells"] if each["test"] is None)]
    row["differences"]["ndcg@10"]["mean"], row["differences"]["recall@10"]["mean"] = gain, 0.0
    row["test"]["p_gain"], row["gate"]["verdict"] = p, gate
    short = unmet_criteria(CellFigures(gain, 0.0, p, gate, 1.0), Rule(min_gain=0.02, max_recall_loss=0.02), 0.05)
    told = challenger(typed(results))
    assert all(criterion.met for criterion in told.criteria) == (not short)
    assert told.could_be_chance == (None if p is None else p > 0.05)


@pytest.mark.parametrize(
    ("found", "losses", "price"),
    [
        (
            {"state": "shown not to fall"},
            0,
            "no loss seen in 30 queries; shown not to fall by more than 0.02",
        ),
        (
            {"state": "open", "low": -0.131},
            2,
            "it falls in 2 of 30 queries; a mean loss up to 0.13 cannot be",
        ),
    ],
)
def test_the_price_is_what_is_known_of_recall(found, losses: int, price: str):
    results = synthetic_results(n_queries=30)
    row = next(row for row in challengers(results) if row["meets_criterion_5"])
    row["recall_bound"] |= found
    row["differences"]["recall@10"]["losses"] = losses
    figure = {criterion.what: criterion.figure for criterion in challenger(typed(results)).criteria}
    assert price in figure["loses at most 0.02 Recall@10 by its mean"]


def test_a_difference_on_the_page_has_a_true_minus():
    assert told(-0.0034, 0.0, -0.07, 0.07) == f"{MINUS}0.003"


@given(st.floats(0.000001, 1))
def test_a_p_value_never_reads_as_if_it_were_on_the_other_side_of_alpha(p: float):
    read = p_beside_alpha(p, 0.05)
    assert (float(read.lstrip("<")) > 0.05) == (round4(p) > 0.05)
