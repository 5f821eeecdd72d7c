"""The forest plot, each query left out, and the verdict: what is drawn and said equals what the results hold."""

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
from runner.report.results_page.challenger import challenger, told
from runner.report.results_page.forest import STANDINGS, forest
from runner.report.results_page.leave_one_out import Change, left_out
from runner.score.power import least_gain
from tests.report.test_render import page_of, rendered, synthetic_results
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


def top(html: str) -> str:
    """The words above the first section: the verdict, and what would change it."""
    return words(html.split("<body", 1)[1].split(">", 1)[1].split("<main>")[0])


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
        row |= {"meets_criterion_5": False, "short_of": [], "pool": None}
        row["role"] = "baseline" if row["test"] is None else "compared"
    nothing = {"judging": None, "spans": None, "slices": [], "previous": None, "kind": "external"}
    results["outcome"] |= {"tier": "compared", "candidates": [], "confirmed": []}
    return results | nothing


def test_marks_and_whiskers_of_the_forest_plot_stand_where_the_figures_are():
    results = synthetic_results()
    drawn = list_rows(plain(), "differences")
    assert len(drawn) == len(results["cells"])
    scales = [scale_of(plain(), "differences", which) for which in (0, 1)]
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
    gain, recall = (scale_of(plain(), "differences", which) for which in (0, 1))
    first, second = strips(list_rows(plain(), "differences")[0])
    for strip, at, bar in ((first, gain, 0.02), (second, recall, -0.02)):
        (zero,), (rule,) = (re.findall(rf'class="{name}" x1="([\d.]+)%"', strip) for name in ("zero", "bar"))
        assert [at(zero), at(rule)] == pytest.approx([0, bar], abs=1e-4)


def test_the_shade_of_a_row_ends_where_effects_are_detected_at_that_cells_own_scatter():
    results = synthetic_results()
    for number, row in enumerate(challengers(results)):
        row["test"]["sd"] = 0.02 + 0.05 * number
    html = page_of(results)
    at, widths = scale_of(html, "differences", 0), set()
    for row, drawn in zip(results["cells"], list_rows(html, "differences"), strict=True):
        found = re.search(r'class="blind" x="([\d.]+)%" width="([\d.]+)%"', drawn)
        if row["test"] is None:
            assert found is None
            continue
        first = results["plan"].get("first", [])
        share = 0.04 / len(first) if row["cell"] in first else 0.01 / (len(challengers(results)) - len(first))
        alpha = share if first else 0.05 / len(challengers(results))
        effect = least_gain(len(results["queries"]), row["test"]["sd"], alpha, bar=0.02)
        left, width = found.groups()
        assert [at(left), at(Fraction(left) + Fraction(width))] == pytest.approx([-effect, effect], abs=5e-4)
        assert f"detectable: ±{effect:.2f}" in words(drawn)
        widths.add(width)
    assert len(widths) == len(challengers(results))
    assert "at the cell's own scatter" in words(section(html, "differences"))


@pytest.mark.parametrize("sd", [0.0, 9.0])
def test_a_row_whose_effects_are_not_known_or_beyond_any_difference_has_no_shade(sd: float):
    results = synthetic_results()
    challengers(results)[0]["test"]["sd"] = sd
    assert forest(typed(results)).rows[0].unseen is None


def test_every_standing_has_its_own_words_and_the_tiers_are_told_apart_without_colour():
    assert len({words for _, words in STANDINGS.values()}) == len(STANDINGS)
    shapes = {name: STANDINGS[name][0] for name in ("baseline", "confirmed", "candidate", "other", "exploratory")}
    assert len(set(shapes.values())) == len(shapes)


def test_the_standing_of_a_cell_is_what_the_rule_says_of_it():
    results = synthetic_results()
    first, second, third, fourth = challengers(results)[:4]
    first["confirmed"], second["confirmed"] = True, False
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
    assert ["whisker alone" in drawn for drawn in list_rows(html, "differences")].count(True) == 1
    first = list_rows(html, "differences")[0]
    assert "] alone" in words(first)
    low, high = re.search(r'class="whisker alone" x1="([\d.]+)%" x2="([\d.]+)%"', first).groups()
    at = scale_of(html, "differences", 0)
    assert [at(low), at(high)] == pytest.approx(row["test"]["interval"], abs=1e-4)
    assert "outside of the tested family" in words(section(html, "differences"))
    assert "outside of the tested family" not in words(section(plain(), "differences"))


def test_a_baseline_alone_has_sentences_in_the_place_of_plots():
    results = synthetic_results()
    alone = [row for row in results["cells"] if row["test"] is None]
    names = [row["cell"] for row in alone]
    results |= {"cells": alone, "judging": None, "slices": [], "previous": None}
    results["spans"]["cells"] = {name: results["spans"]["cells"][name] for name in names}
    for query in results["lists"]["queries"]:
        query["hits"] = {name: query["hits"][name] for name in names}
    results["outcome"] |= {"tier": "baseline kept", "candidates": [], "detectable": None, "false_alarm": None}
    html = page_of(results)
    assert "there is no difference to show" in words(section(html, "differences"))
    assert "No cell stands beside the baseline." in words(section(html, "tests"))
    for absent in ("not adjusted", "adjusted p", "W / T / L:"):
        caption = section(html, "ranking").split('<span class="caption">')[1].split("</span>")[0]
        assert absent not in words(caption).split("Criterion 5:")[0]
    assert '<dl class="answers">' not in html
    assert challenger(typed(results)) is None


def test_published_judgments_have_sides_of_the_baseline_and_no_rule():
    results = external()
    first, second, third = challengers(results)[:3]
    first["test"] |= {"simultaneous": [0.02, 0.2]}
    second["test"] |= {"simultaneous": [-0.02, 0.2]}
    third["test"] |= {"simultaneous": [0.02, 0.2]}
    third["gate"] |= {"verdict": "fail"}
    html = page_of(results)
    said = [words(row) for row in list_rows(html, "differences")]
    assert "above the baseline beyond chance" in said[0]
    assert "not told apart from the baseline" in said[1]
    assert (
        forest(typed(results)).rows[next(i for i, row in enumerate(results["cells"]) if row is third)].standing
        == "not passed"
    )
    assert 'class="bar"' not in strips(list_rows(html, "differences")[0])[0]
    for absent in ("criterion 5", "Another judge.", "What “confirmed” asks"):
        assert absent not in top(html)


def without(results: dict[str, Any], row: dict[str, Any], measure: str) -> list[Fraction]:
    """Every mean difference with one query left out, added up anew from what is left."""
    base = next(each for each in results["cells"] if each["test"] is None)
    own, other = (each["scores"][measure]["per_query"] for each in (row, base))
    whole = [Fraction(a - b, 10**9) for a, b in zip(own, other, strict=True)]
    left = [whole[:place] + whole[place + 1 :] for place in range(len(whole))]
    return [sum(rest, Fraction(0)) / len(rest) for rest in left]


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
    query = {"text": "a need", "kind": "topic", "origin": "hand"}
    return found | {"queries": [{"id": f"q{number}", **query} for number in range(count)]}


def test_the_query_that_carries_a_candidate_is_named():
    results = small([(0.12, 0.0), (0.01, 0.0), (0.01, 0.0), (0.01, 0.0)])
    assert left_out(typed(results)) == [("q0", [], ["cell 0"])]


def test_a_query_without_which_recall_holds_makes_a_candidate():
    results = small([(0.03, -0.2), (0.03, 0.0), (0.03, 0.0), (0.03, 0.01)])
    assert left_out(typed(results)) == [("q0", ["cell 0"], [])]


def test_a_single_query_and_a_collection_without_a_rule_leave_nothing_out():
    assert left_out(typed(small([(0.3, 0.0)]))) == []
    assert left_out(typed(small([(0.3, 0.0), (-0.1, 0.0), (-0.1, 0.0)], kind="external"))) == []


PAIRS = st.tuples(*(st.integers(-200, 200).map(lambda value: value / 1000) for _ in range(2)))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 7).flatmap(
        lambda count: st.lists(st.lists(PAIRS, min_size=count, max_size=count), min_size=1, max_size=3)
    )
)
def test_whether_other_cells_are_candidates_without_a_query_is_what_scoring_anew_says(cells: list[Any]):
    results = small(*cells)
    rule = Rule(min_gain=0.02, max_recall_loss=0.02)
    means = {
        row["cell"]: list(zip(*(without(results, row, name) for name in ("ndcg@10", "recall@10")), strict=True))
        for row in challengers(results)
    }
    whole = {
        row["cell"]: [
            sum(a - 500_000_000 for a in row["scores"][name]["per_query"]) / (len(cells[0]) * 10**9)
            for name in ("ndcg@10", "recall@10")
        ]
        for row in challengers(results)
    }
    now = {cell for cell, pair in whole.items() if meets_criterion_5(*pair, rule)}
    then = [
        {cell for cell, pairs in means.items() if meets_criterion_5(*map(float, pairs[place]), rule)}
        for place in range(len(cells[0]))
    ]
    found = {change.query: change for change in left_out(typed(results))}
    for place, candidates in enumerate(then):
        change = found.pop(f"q{place}", Change("", [], []))
        assert (now | set(change.gained)) - set(change.lost) == candidates
    assert not found


def test_every_tier_has_a_badge_of_its_own_and_answers_at_a_glance():
    badges = set()
    for tier in TIERS:
        html = rendered(tier=tier, n_queries=4)
        badge = re.search(r'<span class="tier-badge"><svg[^>]*>(.*?)</svg> <strong>(.*?)</strong>', html, re.DOTALL)
        assert badge is not None
        assert badge[2] == tier
        badges.add(badge[1])
        said = top(html)
        assert ("Could it be chance?" in said) == (tier != "no decision")
        assert ("is recorded in decision.json beside this page" in said) == (tier != "no decision")
        assert ("since no cell met criterion 5" in said) == (tier in ("inconclusive", "baseline kept"))
    assert len(badges) == len(TIERS)


@pytest.mark.parametrize("kind", ["production", "rehearsal", "exploration"])
def test_only_of_a_production_the_answers_say_that_the_operator_decides(kind: str):
    html = rendered(kind=kind, n_queries=4)
    answers = words(html.split('<dl class="answers">')[1].split("</dl>")[0])
    assert ("the operator decides" in answers) == (kind == "production")
    assert "candidate, not confirmed" in answers


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


def test_what_judges_hold_against_a_cell_stands_beside_the_criteria():
    results = synthetic_results()
    row = challengers(results)[0]
    row["test"]["p_gain"] = 0.001
    row |= {"meets_criterion_5": True, "short_of": ["was favoured by its judge"]}
    said = top(page_of(results))
    assert "not met: it was favoured by its judge" in said
    assert "Hardly p 0.0010" in said


def test_other_judges_and_a_query_left_out_stand_among_what_would_change_the_verdict():
    results = synthetic_results()
    other = challengers(results)[0]["cell"]
    results["judging"]["others"][0]["recommended"] = other
    results["outcome"]["recommended"] = results["plan"]["baseline"]
    assert f"the rule would recommend {other}, not {results['plan']['baseline']}." in top(page_of(results))
    results["judging"] = None
    assert "No other judge read any of these pairs" in top(page_of(results))


@pytest.mark.parametrize(
    ("found", "price"),
    [
        (
            {"state": "shown not to fall", "losses": 0},
            "no loss seen in 30 queries; shown not to fall by more than 0.02",
        ),
        ({"state": "open", "losses": 2, "low": -0.131}, "2 of 30 queries lose; a mean loss up to 0.13 cannot be"),
    ],
)
def test_the_price_is_what_is_known_of_recall(found, price: str):
    results = synthetic_results(n_queries=30)
    next(row for row in challengers(results) if row["meets_criterion_5"])["recall_bound"] |= found
    assert f"At what price in Recall@10? {price}" in top(page_of(results))


def test_differences_in_the_verdicts_sentences_have_a_minus_and_no_hyphen():
    results = synthetic_results()
    results["outcome"]["not_shown"] = "A gain (-0.0123) and one of -0.0456 of cell a-0.1."
    assert f"A gain ({MINUS}0.0123) and one of {MINUS}0.0456 of cell a-0.1." in words(page_of(results))


def test_a_difference_on_the_page_has_a_true_minus():
    assert told(-0.0034, 0.0, -0.07, 0.07) == f"{MINUS}0.003"


@given(st.floats(0.000001, 1))
def test_a_p_value_never_reads_as_if_it_were_on_the_other_side_of_alpha(p: float):
    read = p_beside_alpha(p, 0.05)
    assert (float(read.lstrip("<")) > 0.05) == (round4(p) > 0.05)
