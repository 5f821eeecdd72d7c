import html as escapes
import re
from itertools import pairwise

import pytest

from runner.base import figures
from runner.base.canonical import rounded
from runner.eval_set.shapes.results import Results
from runner.report.page_frame import TEMPLATES, inert, rendered
from runner.report.results_page.chunks import chunk_tables
from runner.report.results_page.null_strips import AXIS, COLUMN, GROUND, null_strips
from tests.support.example_panel import panel
from tests.support.example_results import BASELINE, BETTER, HYBRID, SPARSE, control, results, row

pytest_plugins = ["tests.support.browser"]

DENSE = "minilm-l6-v2 x fixed_token_1024_100"
SINGLE = {"name": "permuted gold", "mean": 0.1, "low": 0.0, "high": 0.2, "dots": [], "delta": 0.3, "p": 0.01}
COUNTS = ("queries_missing", "queries_left_out", "ties")


def null(name, mean, *, dots=None, real=0.7, verdict="pass", p=1 / 2001):
    found = {"name": name, "mean": mean, "low": mean - 0.02, "high": mean + 0.02}
    spread = [mean + 0.0015 * (place - 19.5) for place in range(40)] if dots is None else dots
    return found | {"dots": spread, "delta": real - mean, "p": p, "verdict": verdict}


def five(real=0.7):
    names = {"permuted qrels": 0.12, "random retrieval": 0.04, "shuffled top 10": 0.42}
    constant = {"most retrieved": 0.31, "length sorted": 0.22}
    drawn = {name: null(name, mean, real=real) for name, mean in names.items()}
    return [*drawn.values(), *(null(name, mean, dots=[], real=real) for name, mean in constant.items())]


def made(*rows, controls=()):
    """Results as JSON, every cell against the five nulls, its score as the gate has it."""
    found = rounded(results(*rows or (row(BASELINE), row(BETTER, 0.1))).model_dump())
    for each in found["cells"]:
        score = each["scores"]["ndcg@10"]["mean"]
        each["gate"] |= {"real": score, "nulls": rounded(five(score))}
    return found | {"controls": [each.model_dump() for each in controls]}


def provenance(**figures):
    """What a cell that MiniLM embedded has in its provenance."""
    cut = {"tokens": 10_000, "chunks_cut": 7}
    return {"encoder": {"encoder": "minilm-l6-v2", "max_tokens": 512}, "truncation": cut | figures}


def with_provenance(by_cell):
    """Results of the baseline and these cells, each made as said."""
    found = made(row(BASELINE), *map(row, by_cell))
    for each in found["cells"]:
        each["provenance"] |= by_cell.get(each["cell"], {})
    return found


typed = Results.model_validate


def drawn(template, found):
    found = inert(typed(found))
    values = {"plots": {"nulls": null_strips(found)}, "chunks": chunk_tables(found)}
    return rendered(template, results=found, external=False, n_queries=25, **values).decode()


def value_at(at):
    """What stands at so many per cent of the width of a strip of the gate."""
    return AXIS.low + (at - AXIS.at(0.0)) / (AXIS.at(1.0) - AXIS.at(0.0))


def words(html):
    """What a reader sees of markup."""
    parted = re.sub(r"</(td|th|p|li|caption|summary|h[2-4])>", " ", html)
    return " ".join(escapes.unescape(re.sub(r"<[^>]*>", "", parted)).split())


def strips(html, label):
    """The rows of a plot, each with its drawing, by name."""
    plot = html.split(f'aria-label="{label}"')[1].split("</ul>")[0]
    rows = plot.split('<li class="ruler"')[0].split("<li>")[1:]
    return {words(item.split("<svg")[0]): item for item in rows}


def points(path):
    """Where a path of lines without length has its dots: across and from the top, column by column."""
    for at, top, rest in re.findall(r"M([\d.]+) ([\d.]+)h0((?:m0-[\d.]+h0)*)", path):
        up = float(top)
        yield float(at), up
        for step in re.findall(r"m0-([\d.]+)h0", rest):
            up -= float(step)
            yield float(at), up


def numbers(pattern, text):
    return [float(found) for found in re.findall(pattern, text)]


# The null gate.


def test_every_dot_stands_within_half_a_column_of_its_draws_and_columns_have_no_gaps():
    found = made()
    shown = strips(drawn("_gate.html.j2", found), f"{BETTER} against every null")
    for each in found["cells"][0]["gate"]["nulls"]:
        drawn_at = list(points("".join(re.findall(r'class="dots" d="([^"]+)"', shown[each["name"]]))))
        across, up = [x for x, _ in drawn_at], [y for _, y in drawn_at]
        assert len(across) == len(each["dots"])
        for at, draw in zip(across, each["dots"], strict=True):
            assert abs(at - AXIS.at(draw)) <= COLUMN / 2 + 0.01
        for at in set(across):
            column = sorted((y for x, y in zip(across, up, strict=True) if x == at), reverse=True)
            assert GROUND > column[0] > column[-1] > 0
            steps = [lower - upper for lower, upper in pairwise(column)] or [0.0]
            assert max(steps) - min(steps) < 0.11


def test_scores_means_and_what_is_asked_stand_where_the_figures_say():
    found = made()
    html = drawn("_gate.html.j2", found)
    for each in found["cells"]:
        shown = strips(html, f"{each['cell']} against every null")
        for single in each["gate"]["nulls"]:
            item = shown[single["name"]]
            assert value_at(*numbers(r'class="real" x1="([\d.]+)%"', item)) == pytest.approx(
                each["gate"]["real"], abs=1e-4
            )
            asked = re.findall(r'class="asked" x1="([\d.]+)%" x2="([\d.]+)%" y1="5"', item)
            if single["name"] == "shuffled top 10":
                assert asked == []
            else:
                start, end = map(float, asked[0])
                assert value_at(start) == pytest.approx(single["mean"], abs=1e-4)
                assert value_at(end) == pytest.approx(single["mean"] + 0.05, abs=1e-4)


def test_a_list_that_is_the_same_for_every_query_is_one_diamond_at_its_mean():
    found = made()
    shown = strips(drawn("_gate.html.j2", found), f"{BASELINE} against every null")
    for each in found["cells"][0]["gate"]["nulls"]:
        diamonds = numbers(r'<svg class="diamond" x="([\d.]+)%"', shown[each["name"]])
        assert diamonds == ([] if each["dots"] else [AXIS.at(each["mean"])])


def test_draws_that_are_all_alike_stay_inside_the_strip():
    found = made()
    found["cells"][0]["gate"]["nulls"][0] |= {"dots": [0.0] * 40, "mean": 0.0}
    dots = null_strips(typed(found)).cells[0].nulls[0].dots
    assert {x for x, _ in points(dots)} == {AXIS.at(0.0)}
    assert len(list(points(dots))) == 40
    assert min(y for _, y in points(dots)) > 0


def test_one_strip_a_cell_shows_the_null_that_it_fails_or_is_least_above():
    found = made(row(BASELINE), row(BETTER, 0.1), row(SPARSE, -0.2, verdict="fail"))
    found["cells"][0]["gate"]["nulls"][2]["delta"] = 0.01
    found["cells"][-1]["gate"]["nulls"][3] |= {"verdict": "fail", "p": 0.2, "delta": 0.5}
    names = {each.row.cell: each.nearest.null.name for each in null_strips(typed(found)).cells}
    nulls = [null["name"] for null in found["cells"][0]["gate"]["nulls"]]
    assert (names[found["cells"][0]["cell"]], names[SPARSE]) == (nulls[2], nulls[3])
    shown = strips(drawn("_gate.html.j2", found), "Every cell against its nearest null")
    assert len(shown) == 3
    assert sum('class="short"' in item for item in shown.values()) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "pass: +0.38 from the null's 0.12, p 0.0005"),
        ({"verdict": "fail", "p": 0.21}, "fail: +0.38 from the null's 0.12, p 0.21; p is above 0.05"),
        (
            {"verdict": "fail", "p": 0.06, "mean": 0.52, "delta": -0.02},
            "fail: −0.02 from the null's 0.52, p 0.060; p is above 0.05 and less than 0.05 above the null",
        ),
        (
            {"verdict": "insufficient", "p": 1 / 6},
            "insufficient: +0.38 from the null's 0.12, p 0.17; a perfect engine would not pass it either",
        ),
    ],
)
def test_a_row_says_its_verdict_with_the_distance_and_what_is_missing(changes, said):
    found = made(row(BASELINE))
    found["cells"][0]["gate"]["nulls"][0] |= changes
    shown = strips(drawn("_gate.html.j2", found), f"{BASELINE} against every null")
    assert words(shown["permuted qrels"].rpartition("</svg>")[2]) == said


def test_controls_say_what_they_must_do_and_what_they_did():
    controls = [
        control("oracle", "pass", passes=1, bound=1),
        control("constant"),
        control("random", draws=200, passes=44, bound=21, behaves=False),
    ]
    found = made(controls=controls)
    shown = strips(drawn("_gate.html.j2", found), "Controls")
    assert [words(item.split("</svg>")[-1]) for item in shown.values()] == [
        "must pass: passed; behaves",
        "must fail: did not pass; behaves",
        "must fail: 44 of 200 passed, at most 21 may; misbehaves",
    ]
    assert numbers(r'<svg class="diamond" x="([\d.]+)%"', shown["constant"]) == [AXIS.at(0.1)]
    assert numbers(r'<circle class="mean" cx="([\d.]+)%"', shown["random"]) == [AXIS.at(0.1)]
    assert numbers(r'class="compared" x1="([\d.]+)%"', shown["random"]) == [AXIS.at(0.5)]


def test_single_gold_verdicts_are_counted_where_they_are_folded():
    found = made()
    verdict = {"real": 0.4, "nulls": [SINGLE | {"verdict": "pass"}], "verdict": "pass"}
    for each, said in zip(found["cells"], ("pass", "fail"), strict=True):
        each["single_gold"] = {"recall@10": verdict | {"verdict": said}}
    assert null_strips(typed(found)).single == "1 of 2 cells pass by recall@10"


# Chunks.


def test_cells_that_read_the_same_chunks_share_a_row_and_the_headline_names_the_greatest_loss():
    cut, whole = provenance(lost=900, share=0.09), provenance(lost=0, share=0.0)
    found = with_provenance({BETTER: cut, HYBRID: cut, DENSE: whole})
    tables = chunk_tables(typed(found))
    assert sorted(tables.read) == sorted([BETTER, DENSE])
    assert tables.headline == f"{BETTER} loses most: 9 % of the tokens not read."
    assert f"{BETTER} 512 9 7 10,000 900 9.00 %" in words(drawn("_chunks.html.j2", found))


@pytest.mark.parametrize(("lost", "said"), [(0, "No encoder cut anything."), (100, "No encoder cut much.")])
def test_a_small_loss_has_no_name_in_the_headline(lost, said):
    found = with_provenance({BETTER: provenance(lost=lost, share=lost / 10_000)})
    assert chunk_tables(typed(found)).headline == said


def test_health_has_a_row_a_chunker_and_says_what_is_degenerate():
    found = made(row(BASELINE), row(BETTER), row(HYBRID))
    for each in found["cells"]:
        if each["cell"] != BASELINE:
            each["provenance"]["chunks"] |= {"degenerate": ["2 chunks are empty"], "coverage": 0.9712}
    html = drawn("_chunks.html.j2", found)
    table = html.split('id="health-caption"')[1].split("<tbody>")[1].split("</tbody>")[0]
    lines = sorted(words(line) for line in table.split("</tr>")[:-1])
    assert lines[0].startswith("fixed_token_512_50 9 3 400 / 510 / 512 100.00 % 0 0.00 %")
    assert lines[1].startswith("section_aware_bills_v1 9 3 400 / 510 / 512 97.12 %")
    assert lines[1].endswith("2 chunks are empty")
    assert "No cell has an encoder whose chunks are known" in words(html)


def test_imported_runs_and_runs_without_chunks_are_said_in_words():
    imported = {"file_sha256": "ab" * 32, "tag": "x"} | dict.fromkeys(COUNTS, 0)
    found = made(row(BASELINE))
    found["cells"][0]["provenance"] |= {"chunks": None, "imported": imported}
    html = drawn("_chunks.html.j2", found)
    assert "Of imported runs neither chunks nor what was read of them is known: " + BASELINE in words(html)
    assert "health-caption" not in html


def test_documents_by_stratum_have_their_share_and_fold_where_they_are_many():
    found = made()
    found["corpus"] |= {"n_chars": 30_000, "strata": {"a": 8, "b": 2, "c": 2}}
    html = drawn("_corpus.html.j2", found)
    assert "A document has 2,500 characters on average." in words(html)
    assert "a 8 67 %" in words(html)
    assert "<details" not in html
    found["corpus"]["strata"] = {f"title {number}": 1 for number in range(13)}
    assert "<summary>Sampled documents by stratum (13 strata)</summary>" in drawn("_corpus.html.j2", found)


def test_judges_are_listed_beside_the_labels_only_where_no_section_says_who_judged():
    found = made()
    assert "me 60" in words(drawn("_corpus.html.j2", found))
    html = drawn("_corpus.html.j2", found | {"judging": panel([BETTER], BASELINE).model_dump()})
    assert "judges-caption" not in html
    assert 'href="#judges"' in html


PLACES = """() => [...document.querySelectorAll(".strips .strip")].filter((strip) => strip.querySelector(".real"))
  .map((strip) => {
    const box = strip.getBoundingClientRect();
    const line = strip.querySelector(".real").getBoundingClientRect();
    return 100 * (line.x + line.width / 2 - box.x) / box.width;
  })"""


@pytest.mark.parametrize("width", [360, 1280])
def test_in_a_browser_the_marks_stand_where_the_view_says_and_nothing_widens_the_page(opened, tmp_path, width):
    found = with_provenance({DENSE: provenance(lost=900, share=0.09)})
    parts = "".join(drawn(name, found) for name in ("_gate.html.j2", "_chunks.html.j2", "_corpus.html.j2"))
    style = "".join((TEMPLATES / name).read_text() for name in ("_style.css.j2", "_strips.css.j2"))
    path = tmp_path / "strips.html"
    path.write_text(
        "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Strips</title><style>{style}</style><main>{parts}</main>"
    )
    shown = opened(path, viewport={"width": width, "height": 800})
    cell = null_strips(typed(found)).cells[0]
    at = shown.evaluate(PLACES)
    assert at[:5] == pytest.approx([cell.real.at] * 5, abs=0.2)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert (shown.complaints, shown.dialogs) == ([], [])


# The noise floor.


def with_floor(*, changed, mean=0.0, half=0.0, most=0.0):
    moved = {"mean": mean, "low": mean - half, "high": mean + half, "wins": changed, "ties": 25 - changed, "losses": 0}
    floor = {"difference": moved, "max_change": most}
    return words(drawn("_gate.html.j2", made() | {"noise_floor": floor}))


def test_a_noise_floor_is_given_at_the_places_that_its_interval_allows():
    text = with_floor(changed=3, mean=0.0123, half=0.0119, most=0.1416)
    assert (
        "nDCG@10 changed by +0.012 [0.000, +0.024] on average; 3 of 25 queries changed, the largest by 0.142." in text
    )


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("gains +0.05 (interval -0.01 to +0.09)", "gains +0.05 (interval \u22120.01 to +0.09)"),
        ("with -0.03 [-0.08, +0.02] Recall@10", "with \u22120.03 [\u22120.08, +0.02] Recall@10"),
        ("rrf(bm25,e5-0.5b) x fixed-512 at 1-2", "rrf(bm25,e5-0.5b) x fixed-512 at 1-2"),
    ],
)
def test_differences_in_sentences_have_a_true_minus_and_names_keep_their_hyphens(sentence, expected):
    assert figures.said(sentence) == expected
