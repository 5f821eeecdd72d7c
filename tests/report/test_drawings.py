"""The forest plot and the strips of the null gate: what is drawn and said equals what the results hold."""

import html as escapes
import re
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.figures import p_beside_alpha, round4
from runner.decide.tiers import CellFigures, unmet_criteria
from runner.eval_set.shapes.results import Results
from runner.report.drawings import COLUMN, GROUND, UNIT, dots, standing
from runner.report.results_page import criteria_of
from runner.score.gain_test import GainTest
from tests.report.test_render import page_of, published, synthetic_results
from tests.support import example_results as example
from tests.support.outline import section

pytest_plugins = ["tests.support.browser"]

MINUS = "\u2212"

typed = Results.model_validate


def challengers(results: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in results["cells"] if row["test"]]


@cache
def plain() -> str:
    return page_of(synthetic_results())


def list_rows(html: str) -> list[str]:
    """The rows of the forest plot, as they stand in the page."""
    return re.findall(r'<li class="row[^"]*">(.*?)</li>', section(html, "why"), re.DOTALL)


def strips(row: str) -> list[str]:
    return re.findall(
        r'<svg class="strip".*?</svg></span>|<svg class="strip".*?</svg><svg class="ruler"', row, re.DOTALL
    )


def scale_of(html: str, which: int):
    """Reads a place in per cent back as a figure, from two ticks of the plot's ruler."""
    ruler = re.findall(r'<svg class="ruler".*?</svg>', section(html, "why").split("<ol>")[0], re.DOTALL)[which]
    ticks = re.findall(r'<text class="tick" x="([\d.]+)%"[^>]*>([^<]+)</text>', ruler)
    (left, low), (right, high) = (
        (Fraction(at), Fraction(text.replace(MINUS, "-").lstrip("+"))) for at, text in (ticks[0], ticks[-1])
    )
    return lambda at: float(low + (Fraction(at) - left) * (high - low) / (right - left))


# The forest plot.


def test_marks_and_whiskers_of_the_forest_plot_stand_where_the_figures_are():
    results = synthetic_results()
    drawn = list_rows(plain())
    assert len(drawn) == len(results["cells"])
    scales = [scale_of(plain(), which) for which in (0, 1)]
    for row, html in zip(results["cells"], drawn, strict=True):
        if row["test"] is None:
            assert "whisker" not in html
            continue
        wanted = (
            (row["differences"]["ndcg@10"]["mean"], *row["test"]["simultaneous"]),
            (row["differences"]["recall@10"]["mean"], *row["recall_bound"]),
        )
        for strip, at, (mean, low, high) in zip(strips(html), scales, wanted, strict=True):
            ends = re.search(r'class="whisker" x1="([\d.]+)%" x2="([\d.]+)%"', strip)
            (mark,) = re.findall(
                r'<svg x="([\d.]+)%" y="50%" overflow="visible"><(?:circle|rect|path) class="mark', strip
            )
            assert ends is not None
            assert [at(place) for place in (mark, *ends.groups())] == pytest.approx([mean, low, high], abs=1e-4)


def test_the_standing_of_a_cell_is_what_the_rule_says_of_it():
    results = synthetic_results()
    first, second, third, fourth = challengers(results)[:4]
    first["short_of"], second["short_of"] = [], ["is not told from chance"]
    first["meets_criterion_5"] = second["meets_criterion_5"] = third["meets_criterion_5"] = True
    third["role"] = fourth["role"] = "exploratory"
    fourth["meets_criterion_5"] = False
    names = [standing(row) for row in typed(results).cells if row.test]
    assert names[:4] == ["confirmed", "candidate", "late candidate", "exploratory"]


def test_published_judgments_have_sides_of_the_baseline():
    results = published()
    first, second, third = challengers(results)[:3]
    first["test"]["simultaneous"], second["test"]["simultaneous"] = [0.02, 0.2], [-0.02, 0.2]
    third["gate"]["verdict"] = "fail"
    names = [standing(row) for row in typed(results).cells if row.test]
    assert names[:3] == ["above", "not told apart", "not passed"]
    assert 'class="bar"' not in strips(list_rows(page_of(results))[0])[0]


# The criteria, and each query left out.


@pytest.mark.parametrize("p", [0.01, 0.2, None])
@pytest.mark.parametrize(("gain", "n"), [(0.0194, 50), (0.05, 50), (0.05, 49)])
@pytest.mark.parametrize("gate", ["pass", "fail", "insufficient"])
def test_criteria_are_all_met_where_nothing_is_short_of_confirmed(p, gain, n, gate):
    results = synthetic_results(n_queries=n) | {"previous": None}
    row = challengers(results)[0]
    results["cells"] = [row, next(each for each in results["cells"] if each["test"] is None)]
    row["differences"]["ndcg@10"]["mean"], row["differences"]["recall@10"]["mean"] = gain, 0.0
    row["test"] |= {"p_gain": p, "bar": None if p is None else 0.05}
    row["gate"]["verdict"] = gate
    test = None if p is None else GainTest(p, 0.05)
    short = unmet_criteria(CellFigures(gain, 0.0, n, test, gate, 1.0), example.RULE)
    made = typed(results)
    marks = [one.met for one in criteria_of(made.cells[0], made)]
    assert all(marks) == (not short)
    items = re.findall(r"<strong>(met|not met|not shown)</strong>", section(page_of(results), "why"))
    told = [{True: "met", False: "not met", None: "not shown"}[mark] for mark in marks]
    assert items == [*told, *(["not met"] * len(made.cells[0].short_of) if all(marks) else [])]


@given(st.floats(0.000001, 1))
def test_a_p_value_never_reads_as_if_it_were_on_the_other_side_of_alpha(p: float):
    read = p_beside_alpha(p, 0.05)
    assert (float(read.lstrip("<")) > 0.05) == (round4(p) > 0.05)


# The null gate.


def text_of(markup: str) -> str:
    """What a reader sees of a part of a page."""
    return " ".join(escapes.unescape(re.sub(r"<[^>]*>", "", re.sub(r"</(p|li)>", " ", markup))).split())


def gate_rows(html: str, label: str) -> dict[str, str]:
    """The rows of a plot of the null gate, each with its drawing, by name."""
    plot = html.split(f'aria-label="{escapes.escape(label)}"')[1].split("</ul>")[0]
    rows = plot.split('<li class="ruler"')[0].split("<li>")[1:]
    return {text_of(item.split("<svg")[0]): item for item in rows}


def points(path: str):
    """Where a path of lines without length has its dots: across and from the top, column by column."""
    for at, top, rest in re.findall(r"M([\d.]+) ([\d.]+)h0((?:m0-[\d.]+h0)*)", path):
        up = float(top)
        yield float(at), up
        for step in re.findall(r"m0-([\d.]+)h0", rest):
            up -= float(step)
            yield float(at), up


def numbers(pattern: str, text: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, text)]


@pytest.mark.parametrize("draws", [[0.1 + 0.0015 * place for place in range(40)], [0.0] * 40, [0.2] * 20 + [0.9] * 20])
def test_every_dot_stands_within_half_a_column_of_its_draws_and_columns_have_no_gaps(draws):
    drawn_at = list(points(dots(draws)))
    across, up = [x for x, _ in drawn_at], [y for _, y in drawn_at]
    assert len(across) == len(draws)
    for at, draw in zip(across, draws, strict=True):
        assert abs(at - UNIT.at(draw)) <= COLUMN / 2 + 0.01
    for at in set(across):
        column = sorted((y for x, y in zip(across, up, strict=True) if x == at), reverse=True)
        assert GROUND > column[0] > column[-1] > 0
        steps = [lower - upper for lower, upper in pairwise(column)] or [0.0]
        assert max(steps) - min(steps) < 0.11


def test_scores_means_and_what_is_asked_stand_where_the_figures_say():
    results = synthetic_results()
    for number, each in enumerate(results["cells"]):
        for null in each["gate"]["nulls"][number % 5 :][:1]:  # every null is the nearest of some cell
            null["delta"] = -1.0
    shown = gate_rows(page_of(results), "Every cell against its nearest null")
    for number, each in enumerate(results["cells"]):
        for null in each["gate"]["nulls"][number % 5 :][:1]:
            item = shown[each["cell"] + " baseline" * (each["test"] is None)]
            assert numbers(r'class="real" x1="([\d.]+)%"', item) == [UNIT.at(each["gate"]["real"])]
            asked = re.findall(r'class="asked" x1="([\d.]+)%" x2="([\d.]+)%" y1="5"', item)
            ends = [(str(UNIT.at(null["mean"])), str(UNIT.at(null["mean"] + 0.05)))]
            assert asked == ([] if null["name"] == "shuffled top 10" else ends)
            diamonds = numbers(r'<svg class="diamond" x="([\d.]+)%"', item)
            assert diamonds == ([] if null["dots"] else [UNIT.at(null["mean"])])


def test_one_strip_a_cell_shows_the_null_that_it_fails_or_is_least_above():
    results = synthetic_results()
    first, second = results["cells"][:2]
    first["gate"]["nulls"][2]["delta"] = 0.01
    second["gate"]["nulls"][3] |= {"verdict": "fail", "p": 0.2, "delta": 0.5}
    second["gate"]["verdict"] = "fail"
    shown = gate_rows(page_of(results), "Every cell against its nearest null")
    assert len(shown) == len(results["cells"])
    assert f"; {first['gate']['nulls'][2]['name']}: +0.010 from" in text_of(shown[first["cell"]])
    assert f"; {second['gate']['nulls'][3]['name']}: +0.500" in text_of(shown[second["cell"]])
    assert sum('class="short"' in item for item in shown.values()) == 1


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"mean": 0.12, "delta": -0.38}, "5 of 5 nulls passed; permuted qrels: −0.380 from the null's 0.120, p 0.0005"),
        ({"verdict": "fail", "p": 0.21}, "4 of 5 nulls passed; permuted qrels: * p 0.21; p is above 0.05"),
        (
            {"verdict": "fail", "p": 0.06, "mean": 0.52, "delta": -0.02},
            "−0.020 from the null's 0.520, p 0.060; p is above 0.05 and less than 0.05 above the null",
        ),
        ({"verdict": "insufficient", "p": 1 / 6}, "4 of 5 * p 0.17; a clearly better engine would not pass it either"),
    ],
)  # fmt: skip
def test_a_row_says_its_verdict_with_the_distance_and_what_is_missing(changes, text):
    results = synthetic_results()
    results["cells"][0]["gate"]["nulls"][0] |= changes
    shown = gate_rows(page_of(results), "Every cell against its nearest null")[results["cells"][0]["cell"]]
    start, _, end = text.partition(" * ")
    says = text_of(shown.rpartition("</svg>")[2])
    assert start in says
    assert says.endswith(end or start)


PLACES = """() => [...document.querySelectorAll(".strips .strip")].filter((strip) => strip.querySelector(".real"))
  .map((strip) => {
    const box = strip.getBoundingClientRect();
    const line = strip.querySelector(".real").getBoundingClientRect();
    return 100 * (line.x + line.width / 2 - box.x) / box.width;
  })"""


@pytest.mark.parametrize("width", [360, 1280])
def test_in_a_browser_the_marks_stand_where_they_are_put_and_nothing_widens_the_page(opened, tmp_path, width):
    path = tmp_path / "page.html"
    path.write_text(plain(), encoding="utf-8")
    shown = opened(path, viewport={"width": width, "height": 800})
    shown.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    wanted = [UNIT.at(row["gate"]["real"]) for row in synthetic_results()["cells"]]
    assert shown.evaluate(PLACES)[: len(wanted)] == pytest.approx(wanted, abs=0.2)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
