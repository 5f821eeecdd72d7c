import math
import re
from itertools import combinations, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.eval_set.shapes.cell import ImportedRun
from runner.eval_set.shapes.decision import SpendReceipt
from runner.eval_set.shapes.lists import PairShown, QueryLists, RecallCurve, RecallPoint
from runner.eval_set.shapes.paired import MeasureResult
from runner.eval_set.shapes.results import Results
from runner.report.chart import LABEL_GAP, Tick, cost_axis, duration, pushed, spread_labels, weight
from runner.report.page_frame import TEMPLATES, _environment, inert
from runner.report.results_page.curves import recall_plot
from runner.report.results_page.pareto import FAR, NARROW, cost_plot, front
from tests.support import example_results as made
from tests.support.full_results import full_receipt
from tests.support.outline import Outline, section

pytest_plugins = ["tests.support.browser"]

COUNTS = ("queries_missing", "queries_left_out", "queries_contradicted", "documents_left_out", "ties")
IMPORTED = ImportedRun(file_sha256=made.SHA, tag="run.trec", **dict.fromkeys(COUNTS, 0))
RANKS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
TOKENS = (512, 1024, 2048, 4096, 8192)
DIAMETER = 18  # of a mark of #cost
DENSE = "arctic x fixed"
SPARSE = "bm25 x whole_doc"


def points(ats, reach):
    """A curve that ends at `reach`, with intervals of uneven width."""
    means = [round(reach * (0.3 + 0.7 * math.log(at / ats[0]) / math.log(ats[-1] / ats[0])), 9) for at in ats]
    return [
        RecallPoint(at=at, mean=mean, low=max(0.0, mean - 0.11), high=min(1.0, mean + 0.07))
        for at, mean in zip(ats, means, strict=True)
    ]


def row(cell, score=0.5, *, half=0.1, reach=0.9, read=True, imported=None):
    found = made.row(cell)
    measure = MeasureResult(mean=score, low=score - half, high=score + half, per_query=[])
    curve = RecallCurve(by_rank=points(RANKS, reach), by_tokens=points(TOKENS, 0.9 * reach) if read else None)
    encoder = None if imported or cell.startswith("bm25 x") else {"encoder": "arctic"}
    origin = found.provenance.model_copy(update={"encoder": encoder, "imported": imported})
    scores = found.scores | {"ndcg@10": measure}
    return found.model_copy(update={"scores": scores, "curve": curve, "provenance": origin})


def results(*rows, baseline=DENSE, relevant=(3, 1), documents=100):
    bare = made.results(made.row(made.BASELINE))
    queries = [QueryLists(id=f"q{n}", relevant=count, documents=[], hits={}) for n, count in enumerate(relevant)]
    return bare.model_copy(
        update={
            "cells": list(rows),
            "plan": bare.plan.model_copy(update={"baseline": baseline}),
            "lists": bare.lists.model_copy(update={"queries": queries}),
            "corpus": bare.corpus.model_copy(update={"documents": documents}),
        }
    )


def receipt(cells, spend=None):
    return full_receipt(results(), cells=cells, spend=spend)


def ten_cells():
    """Ten cells of which several cost the same and score nearly the same; the fourth is the baseline."""
    names = [f"encoder-{number} x fixed_token_512_50" for number in range(10)]
    rows = [row(name, 0.6 - 0.01 * number, reach=0.95 - 0.02 * number) for number, name in enumerate(names)]
    costs = (20.0, 20.0, 20.0, 5.0, 5.0, 300.0, 310.0, 40.0, 41.0, 1.5)
    measured = {
        name: {"embed_seconds": seconds, "index_bytes": 4e6 * (1 + number % 3)}
        for number, (name, seconds) in enumerate(zip(names, costs, strict=True))
    }
    return results(*rows, baseline=names[3]), receipt(measured)


def drawn(found, measured=None):
    """The two sections as the page has them."""
    found, measured = inert(found), inert(measured)
    values = {"results": found, "receipt": measured, "n_queries": len(found.lists.queries), "confidence": "95"}
    values |= {"external": False}
    plots = {"recall": recall_plot(found), "cost": cost_plot(found, measured)}
    templates = [_environment().get_template(name) for name in ("_recall.html.j2", "_pareto.html.j2")]
    return "".join(template.render(plots=plots, **values) for template in templates)


def written(folder, html):
    """A page of these sections alone."""
    style = "".join((TEMPLATES / name).read_text() for name in ("_style.css.j2", "_curves.css.j2"))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>t</title>'
    path = folder / "page.html"
    path.write_text(
        f'<!doctype html><html lang="en"><head>{head}<style>{style}</style></head><body>{html}</body></html>'
    )
    return path


def words(html):
    """What is read aloud, without tags."""
    text = re.sub(r"<[^>]+>", "", html).replace("\u202f", " ").replace("&nbsp;", " ").replace("\xa0", " ")
    return " ".join(text.split())


def panel_of(plot, name):
    (panel,) = [panel for panel in plot.panels if panel.name == name]
    return panel


def read_back(at, ticks, value_of):
    """The value at a place between the first and the last tick."""
    first, last = ticks[0], ticks[-1]
    share = (at - first.at) / (last.at - first.at)
    return value_of(first) + share * (value_of(last) - value_of(first))


# Recall.


def test_places_of_the_curves_are_their_figures():
    found, _ = ten_cells()
    plot = recall_plot(found)
    for name, attribute in (("rank", "by_rank"), ("tokens", "by_tokens")):
        panel = panel_of(plot, name)
        cells = {cell.cell: cell for cell in found.cells}
        assert {line.look.cell for line in panel.lines} == cells.keys()
        for line in panel.lines:
            for mark, point in zip(line.marks, getattr(cells[line.look.cell].curve, attribute), strict=True):
                at = math.exp(read_back(mark.x, panel.across, lambda tick: math.log(tick.value)))
                mean = read_back(mark.y, panel.up, lambda tick: float(tick.text))
                assert at == pytest.approx(point.at, rel=1e-3)
                assert mean == pytest.approx(point.mean, abs=1e-4)


def test_both_ordinates_run_from_0_to_1():
    for panel in recall_plot(results(row(DENSE, reach=0.2))).panels:
        assert [tick.text for tick in panel.up] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        assert [tick.at for tick in panel.up] == sorted((tick.at for tick in panel.up), reverse=True)


def test_the_tinted_range_is_the_baselines_interval():
    found = results(row("other x fixed", reach=0.4), row(DENSE))
    panel = panel_of(recall_plot(found), "rank")
    corners = [tuple(map(float, corner.split(","))) for corner in panel.band.split()]
    ends = found.cells[1].curve.by_rank
    expected = [point.low for point in ends] + [point.high for point in reversed(ends)]
    shares = [read_back(y, panel.up, lambda tick: float(tick.text)) for _, y in corners]
    assert shares == pytest.approx(expected, abs=1e-4)
    assert panel_of(recall_plot(results(row("other x fixed"))), "rank").band == ""


def test_two_lines_alone_stand_out_above_the_others_and_have_names_that_do_not_touch():
    found, _ = ten_cells()
    for panel in recall_plot(found).panels:
        named = [line for line in panel.lines if line.label is not None]
        assert named == panel.lines[-len(named) :]
        assert {line.look.look for line in named} == {"base", "win"}
        assert next(line.look.cell for line in named if line.look.look == "base") == found.plan.baseline
        assert abs(named[0].label - named[1].label) >= LABEL_GAP - 0.2


@given(st.lists(st.integers(0, 130), min_size=1, max_size=12))
@example([10, 11, 0])
def test_the_ceiling_is_what_the_best_ranking_has(relevant):
    best = recall_plot(results(row(DENSE), relevant=relevant)).ceiling
    for point in best.points:
        recalls = [len(range(count)[: point.at]) / count if count else 0 for count in relevant]
        assert point.mean == pytest.approx(sum(recalls) / len(relevant))
    assert best.at_10 == best.points[RANKS.index(10)].mean
    assert (best.crowded, best.barren) == (sum(n > 10 for n in relevant), relevant.count(0))


@pytest.mark.parametrize(
    ("relevant", "said"),
    [
        ((3, 10), "No query has more than ten relevant documents, so Recall@10 can reach 1."),
        ((3, 20), "Recall@10 cannot exceed 0.75 here: 1 of 2 queries has more than ten relevant documents."),
        ((3, 0), "Recall@10 cannot exceed 0.50 here: 1 of 2 queries has none and scores 0 whatever is retrieved."),
        (
            (20, 20, 0, 0),
            "Recall@10 cannot exceed 0.25 here: 2 of 4 queries have more than ten relevant documents, and 2 have none "
            "and score 0 whatever is retrieved.",
        ),
    ],
)
def test_the_ceiling_of_recall_at_10_is_said_in_words(relevant, said):
    assert said in words(drawn(results(row(DENSE), relevant=relevant)))


def test_without_lists_no_ceiling_is_drawn_or_told():
    html = drawn(results(row(DENSE), relevant=()))
    assert "eiling" not in html
    assert "cannot exceed" not in html
    assert "can reach 1" not in html


def test_cells_without_a_reading_list_are_named_and_have_no_line():
    html = drawn(results(row(DENSE), row("imported x run", read=False)))
    assert "with no line by tokens read: imported x run." in words(html)
    assert words(html).count("no reading list") == 1
    nobody = recall_plot(results(row(DENSE, read=False)))
    assert [panel.name for panel in nobody.panels] == ["rank"]


# Cost.


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9))
def test_the_front_is_what_no_other_cell_beats(pairs):
    costs, scores = zip(*pairs, strict=True)
    beaten = [any(c <= cost and s >= score and (c < cost or s > score) for c, s in pairs) for cost, score in pairs]
    assert front(costs, scores) == [not each for each in beaten]
    assert any(front(costs, scores))


def test_equal_cells_are_on_the_front_together_and_scores_count_at_four_places():
    found = results(row("a x f", 0.50004), row("b x f", 0.50001), row("c x f", 0.4999))
    measured = receipt({cell: {"index_bytes": 500.0} for cell in ("a x f", "b x f", "c x f")})
    marks = panel_of(cost_plot(found, measured), "index").marks
    assert [mark.front for mark in marks] == [True, True, False]


def test_places_of_the_marks_are_their_figures():
    found, measured = ten_cells()
    cells = {cell.cell: cell for cell in found.cells}
    for panel, name in zip(cost_plot(found, measured).panels, ("index_bytes", "embed_seconds"), strict=True):
        ticks = [tick._replace(value=math.log(amount(tick.text))) for tick in panel.across]
        for mark in panel.marks:
            score, cost = cells[mark.cell].scores["ndcg@10"], measured.cells[mark.cell][name]
            cost /= 100 if name == "index_bytes" else 1
            assert math.exp(read_back(mark.x, ticks, lambda tick: tick.value)) == pytest.approx(cost, rel=2e-3)
            for place, figure in (("y", "mean"), ("top", "high"), ("bottom", "low")):
                value = read_back(getattr(mark, place), panel.up, lambda tick: float(tick.text))
                assert value == pytest.approx(getattr(score, figure), abs=1e-4)


def amount(text):
    """The number of bytes or seconds that a tick says."""
    number, unit = text.split()
    return float(number) * {"kB": 1e3, "MB": 1e6, "s": 1.0}[unit]


def test_a_cell_without_an_encoder_takes_no_seconds_and_stands_apart_at_the_left():
    found = results(row(DENSE, 0.6), row(SPARSE))
    panel = panel_of(cost_plot(found, receipt({DENSE: {"embed_seconds": 40.0}, SPARSE: {}})), "seconds")
    dense, sparse = panel.marks
    assert panel.zero
    assert (panel.across[0].at, panel.across[0].text) == (sparse.x, "0\u202fs")
    assert sparse.x < panel.across[1].at <= dense.x
    assert (sparse.cost, sparse.front, dense.front) == (0.0, True, True)


def test_cells_without_a_figure_are_listed_with_the_reason():
    gone = row("gone x f", imported=IMPORTED)
    found = results(row(DENSE), row("kept x f"), row("new x f"), gone)
    measured = receipt({DENSE: {"embed_seconds": 3.0, "index_bytes": 7.0}, "kept x f": {"retrieve_seconds": 1.0}})
    text = words(drawn(found, measured))
    assert "Not drawn: kept x f (not measured), new x f (not measured), gone x f (not measured)." in text
    assert "Not drawn: kept x f (not measured), new x f (not measured), gone x f (imported as a finished run)." in text
    rows = text.split("On the front")[-1]
    assert rows.count("not measured") == 5
    assert rows.count("imported as a finished run") == 1


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (None, "There is no receipt, so what the cells cost is not known here."),
        (receipt({}), "Neither index sizes nor seconds of embedding were measured in this run"),
        (receipt({DENSE: {"retrieve_seconds": 1.0}, SPARSE: {}}), "no cell's cost is known"),
    ],
)
def test_a_sentence_stands_where_nothing_was_measured(measured, said):
    html = drawn(results(row(DENSE), row(SPARSE)), measured)
    assert said in words(html).replace("&#39;", "'")
    assert "On the front" not in html


def test_one_kind_of_cost_alone_makes_one_drawing():
    found = results(row(DENSE), row(SPARSE))
    plot = cost_plot(found, receipt({DENSE: {"index_bytes": 900.0}, SPARSE: {"index_bytes": 100.0}}))
    assert [panel.name for panel in plot.panels] == ["index"]
    assert cost_plot(results(row(DENSE), documents=0), receipt({DENSE: {"index_bytes": 9.0}})).panels == []


def test_one_cell_alone_is_the_front():
    text = words(drawn(results(row(DENSE)), receipt({DENSE: {"index_bytes": 900.0, "embed_seconds": 2.0}})))
    assert "By index size, on the front: 1 arctic x fixed." in text
    assert "Intervals overlap" not in text


def test_money_is_a_sum_that_is_of_no_one_cell():
    spend = SpendReceipt.model_construct(embedding_usd=1.25, weights_usd=0.5, judging_usd=2.0)
    text = words(drawn(results(row(DENSE)), receipt({}, spend)))
    assert "cost 3.75 US dollars by list price, all cells together; what each cell cost of it is not known." in text


def test_overlapping_intervals_are_counted_against_the_front():
    best, near, far = row("best x f", 0.8, half=0.1), row("near x f", 0.65, half=0.1), row("far x f", 0.3, half=0.1)
    measured = receipt({cell: {"index_bytes": 5e4} for cell in ("best x f", "near x f", "far x f")})
    (panel,) = cost_plot(results(best, near, far), measured).panels
    assert panel.overlapping == 1


def test_marks_are_beside_each_other_and_never_left_of_their_cost():
    found, measured = ten_cells()
    for panel in cost_plot(found, measured).panels:
        assert all(0 <= mark.shift <= FAR for mark in panel.marks)
        for width in (NARROW, 400, 700):
            for one, two in combinations(panel.marks, 2):
                across = abs((one.x - two.x) / 100 * width + one.shift - two.shift)
                assert across >= DIAMETER - 0.2 or abs(one.y - two.y) / 100 * 260 >= DIAMETER


def test_the_front_stands_at_its_true_cost_before_others_of_that_cost():
    rows = [row("a x f", 0.5), row("b x f", 0.51), row("c x f", 0.52)]
    measured = receipt({one.cell: {"index_bytes": 1e5} for one in rows})
    marks = panel_of(cost_plot(results(*rows), measured), "index").marks
    assert [(mark.front, mark.shift) for mark in marks] == [(False, 20.0), (False, 40.0), (True, 0.0)]


@pytest.mark.parametrize("count", [1, 20])
def test_cells_alike_in_everything_are_all_drawn(count):
    rows = [row(f"e{number} x f", 0.5, half=0.0) for number in range(count)]
    measured = receipt({one.cell: {"embed_seconds": 3.0} for one in rows})
    marks = panel_of(cost_plot(results(*rows), measured), "seconds").marks
    assert all(mark.front for mark in marks)
    assert len({mark.shift for mark in marks}) == count
    assert max(mark.shift for mark in marks) <= FAR


def test_twenty_cells_of_one_cost_stand_near_it_with_a_tick_there_and_their_numbers_are_apart():
    rows = [row(f"e{number} x f", 0.6 - 0.025 * (number % 7)) for number in range(20)]
    measured = receipt({one.cell: {"index_bytes": 1e6} for one in rows})
    found = results(*rows)
    marks = panel_of(cost_plot(found, measured), "index").marks
    assert max(mark.shift for mark in marks) <= FAR
    for one, two in combinations(marks, 2):
        across, down = abs(one.shift - two.shift), abs(one.y - two.y) / 100 * 260
        assert max(across, down) >= 0.6 * 20 - 0.2
    html = section(drawn(found, measured), "quality")
    ticks = [given for tag, given in Outline(html).elements if given.get("class") == "true"]
    assert [float(tick["x1"].rstrip("%")) for tick in ticks] == [marks[0].x]


def test_a_document_that_the_collection_lacks_lowers_the_ceiling():
    published = results(row(DENSE), relevant=(2,))
    pair = PairShown(document=0, grade=2, judge="", reason="", spans=[], readings=[], passages=[])
    listed = published.lists.queries[0].model_copy(update={"documents": [pair]})
    published = published.model_copy(update={"lists": published.lists.model_copy(update={"queries": [listed]})})
    assert recall_plot(published).ceiling.points[0].mean == 0.5


@given(st.lists(st.floats(1e-3, 1e9) | st.just(0.0), min_size=1, max_size=20).filter(any))
def test_an_axis_of_costs_holds_them_all_in_their_order(values):
    axis = cost_axis(values)
    costs = sorted(value for value in values if value)
    assert axis.axis.low - 1e-6 <= math.log10(costs[0]) <= math.log10(costs[-1]) <= axis.axis.high + 1e-6
    assert all(axis.at(one) <= axis.at(two) for one, two in pairwise(sorted(values)))
    assert all(axis.at(one) < axis.at(two) for one, two in pairwise(axis.values))
    assert (0.0 in axis.values) == (0.0 in values)
    assert len(axis.values) <= 15


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (weight(0.5), "0.5\u202fB"),
        (weight(999.4), "999\u202fB"),
        (weight(999.9), "1\u202fkB"),
        (weight(123_456), "123\u202fkB"),
        (weight(4_567_890), "4.57\u202fMB"),
        (weight(7.5e12), "7,500\u202fGB"),
        (duration(0.0), "0\u202fs"),
        (duration(0.0123), "0.0123\u202fs"),
        (duration(91.52), "91.5\u202fs"),
        (duration(12345.0), "12,300\u202fs"),
    ],
)
def test_costs_are_written_at_three_digits(text, expected):
    assert text == expected


@given(st.lists(st.floats(0, 300), min_size=1, max_size=25).map(sorted), st.floats(1, 40))
def test_places_moved_apart_keep_order_room_and_bounds(wanted, gap):
    found = spread_labels(wanted, lambda one, two: gap * (two - one), 0, 300)
    room = min(gap, 300 / (len(wanted) - 1)) if len(wanted) > 1 else 0
    assert all(two - one >= room - 1e-6 for one, two in pairwise(found))
    assert all(-1e-6 <= place <= 300 + 1e-6 for place in found)
    free = all(two - one >= gap for one, two in pairwise(wanted))
    assert not free or found == pytest.approx(wanted)


@given(st.lists(st.floats(0, 300), max_size=12).map(sorted), st.floats(0, 40))
def test_pushed_places_are_the_least_that_fit(wanted, gap):
    found = pushed(wanted, lambda *_: gap, 0)
    assert all(place >= where for place, where in zip(found, wanted, strict=True))
    for number, place in enumerate(found):
        assert place == wanted[number] or place == max(found[:number]) + gap


# Both.


def test_the_same_inputs_make_the_same_bytes():
    found, measured = ten_cells()
    turned = receipt(dict(reversed(measured.cells.items())))
    assert drawn(found, measured) == drawn(Results.model_validate_json(found.model_dump_json()), turned)


def test_every_figure_of_the_drawings_is_in_a_table_and_drawings_are_hidden_from_readers_of_text():
    found, measured = ten_cells()
    html = drawn(found, measured)
    outer = [attributes for tag, attributes in Outline(html).elements if tag == "svg" and "x" not in attributes]
    assert all(each.get("aria-hidden") == "true" for each in outer if "width" not in each or each["width"] != "100%")
    assert html.count("<table>") == 3
    assert all(words(html).count(cell.cell) >= 3 for cell in found.cells)


PIXELS = """() => [...document.querySelectorAll('.field')].map(field => {
  const boxed = each => each.getBoundingClientRect();
  const middle = each => [(boxed(each).left + boxed(each).right) / 2, (boxed(each).top + boxed(each).bottom) / 2];
  const all = (found, what) => [...found.querySelectorAll(what)];
  return {
    ticks: all(field, '.tick').map(tick => [tick.textContent, middle(tick)[0]]),
    grid: all(field, '.grid').map(line => boxed(line).y),
    lines: all(field, '.curve').map(line => [
      line.querySelector('title').textContent,
      [...line.points].map(point => point.matrixTransform(line.getScreenCTM())).map(point => [point.x, point.y]),
    ]),
    marks: all(field, '.on, .off').map(mark => middle(mark.firstElementChild)),
    labels: all(field, 'text').filter(text => text.checkVisibility()).map(boxed)
      .map(b => [b.left, b.right, b.top, b.bottom]),
  };
})"""


@pytest.mark.parametrize("width", [360, 1280])
def test_what_chromium_draws_reads_back_as_the_figures(opened, tmp_path, width):
    found, measured = ten_cells()
    shown = opened(written(tmp_path, drawn(found, measured)), viewport={"width": width, "height": 900})
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    ranks, tokens, index, _ = shown.evaluate(PIXELS)
    for field, name in ((ranks, "by_rank"), (tokens, "by_tokens")):
        ticks = [Tick(x, int(text.replace(",", "")), text) for text, x in field["ticks"]]
        up = [Tick(y, number / 5, "") for number, y in enumerate(field["grid"])]
        cells = {cell.cell: cell for cell in found.cells}
        for named, line in field["lines"]:
            for (x, y), point in zip(line, getattr(cells[named].curve, name), strict=True):
                assert read_back(x, ticks, lambda tick: math.log(tick.value)) == pytest.approx(
                    math.log(point.at), abs=0.03
                )
                assert read_back(y, up, lambda tick: tick.value) == pytest.approx(point.mean, abs=0.006)
    for (x, y), (right, lower) in combinations(index["marks"], 2):
        assert abs(x - right) >= 17 or abs(y - lower) >= 17
    for field in (ranks, tokens):
        assert not [pair for pair in combinations(field["labels"], 2) if overlapping(*pair)]
        assert all(left >= 0 and right <= width for left, right, _, _ in field["labels"])


def overlapping(one, two):
    """Whether two boxes share more than their edges, which letters leave free."""
    (left, right, top, bottom), (x, end, y, low) = one, two
    return min(right, end) - max(left, x) > 1 and min(bottom, low) - max(top, y) > 3
