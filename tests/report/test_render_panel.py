"""What stands beside the scores on results.html: who judged, the pool, passages, kinds of query, the version before."""

from typing import Any

import pytest

from runner.eval_set.shapes.results import Results
from runner.report.results_page import ranked, read_chunks
from tests.report.test_render import column, page_of, rendered, synthetic_results
from tests.support import example_panel, example_results
from tests.support.example_panel import FIRST
from tests.support.full_results import NAMES
from tests.support.outline import section, words

RESULTS = synthetic_results()
CELLS = [row["cell"] for row in RESULTS["cells"]]
BASELINE = RESULTS["plan"]["baseline"]
CHALLENGERS = [cell for cell in CELLS if cell != BASELINE]
FAVOURED, *_, CHOSEN = (cell for cell in RESULTS["plan"]["cells"] if cell != BASELINE)
"""The cell of whose pairs enough were read twice, and the one that the noise figures choose."""


def with_parts(**parts: Any) -> str:
    return page_of(RESULTS | parts)


def rows(html: str, caption: str, count: int) -> list[list[str]]:
    return [column(html, caption, row) for row in range(count)]


def test_a_figure_that_is_not_defined_is_said_to_be_so():
    results = synthetic_results()
    blank = {"value": None, "low": None, "high": None}
    results["judging"]["seconds"][0]["kappa"] = blank
    html = page_of(results)
    assert {row[0]: row[1] for row in rows(html, "kappa-caption", 4)}["Weighted kappa"] == "not defined"
    assert "do not vary enough for a kappa" in words(section(html, "judges"))


def test_judges_who_always_agree_have_a_bound_and_no_interval_that_is_a_point():
    results = synthetic_results()
    agreement = results["judging"]
    second = agreement["seconds"][0]
    second["binary"] = {"value": 1.0, "low": 0.9513, "high": 1.0}
    second["kappa"] = {"value": 1.0, "low": None, "high": None}
    second["same"] = second["pairs"] = 60
    agreement["drift"][0] |= {"same": 18, "repeats": 18}
    html = page_of(results)
    found, said = {row[0]: row[1] for row in rows(html, "kappa-caption", 4)}, words(section(html, "judges"))
    assert found["Share that agrees, relevant or not"] == "1.00 [0.95, 1.00]"
    assert found["Weighted kappa"] == "1.00"
    assert "one-sided bound is Clopper and Pearson" in said
    assert "one-sided bound" not in words(section(rendered(), "judges"))
    assert "none of 60 pairs was graded otherwise: up to 5 % of pairs may be (95 %)" in said
    assert f"{FIRST}: none of 18 pairs was graded otherwise: up to 15 % of pairs may be (95 %)." in said


def test_one_side_that_cannot_be_told_leaves_the_others_p():
    results = synthetic_results()
    favour = results["judging"]["seconds"][0]["by_cell"][0]
    favour["p_for_baseline"] = None
    found = {row[0]: row[1:] for row in rows(page_of(results), "favour-1-caption", len(CHALLENGERS))}
    assert found[FAVOURED][-2:] == ["0.012", "too few to tell"]


def test_too_few_readings_for_draws_are_said_and_no_table_is_made():
    results = synthetic_results()
    unknown = {"stability": None, "stability_queries_only": None, "cells": [], "draws": 0}
    results["judging"]["noise"] |= unknown | {"unknown": "11 second readings do not say; it takes 30"}
    html = page_of(results)
    assert "Not drawn: 11 second readings do not say; it takes 30." in words(section(html, "judges"))
    assert "noise-caption" not in html


def test_where_nothing_was_read_twice_the_page_says_so_and_names_the_command():
    html = with_parts(judging=example_panel.panel_of_one().model_dump())
    said = words(section(html, "judges"))
    assert "No pair was read by a second judge" in said
    assert "per-source-eval labels double us_code chooses a share" in said
    assert "No judge was given a pair twice" in said
    for caption in ("kappa", "favour-1", "drift", "noise", "under"):
        assert f"{caption}-caption" not in html


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        (example_panel.NO_SPANS.model_dump(), "No passage was marked, so span scores are undefined"),
        (None, "No cell has a reading list, so span scores are undefined"),
    ],
)
def test_span_scores_that_are_undefined_are_said_to_be_so(spans: dict[str, Any] | None, expected: str):
    html = with_parts(spans=spans)
    assert expected in words(section(html, "passages"))
    assert "span-recall-caption" not in html


def test_queries_of_one_kind_are_not_told_apart():
    queries = [query | {"kind": "topic", "origin": "person"} for query in RESULTS["queries"]]
    assert "nothing to tell apart" in words(section(with_parts(queries=queries), "slices"))


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ({"chosen": "", "tier": ""}, "Version 1 was never decided, so there are no locked figures to compare with."),
        (
            {"chosen": BASELINE, "tier": "by policy", "results_sha256": None},
            f"Version 1 was decided by policy, without figures: {BASELINE}.",
        ),
    ],
)
def test_a_version_before_without_figures_has_no_table(before: dict[str, Any], expected: str):
    html = with_parts(previous=RESULTS["previous"] | before | {"cells": []})
    assert expected in words(section(html, "previous"))
    assert "previous-caption" not in html


def test_a_first_version_has_no_section_on_an_earlier_one():
    html = with_parts(previous=None)
    assert 'id="previous"' not in html
    assert 'href="#previous"' not in html


def test_a_public_collection_has_no_judges_passages_or_kinds():
    sha = RESULTS["digests"]["queries.yaml"]
    counts = dict.fromkeys(("documents", "queries", "judged_pairs"), 30)
    none = dict.fromkeys(("empty_documents", "queries_unjudged", "missing_documents"), 0)
    digests = dict.fromkeys(("corpus_sha256", "queries_sha256", "qrels_sha256"), sha)
    results = synthetic_results(kind="external")
    results |= {"collection": {"name": "some", "split": "test"} | counts | none | digests}
    results |= {"judging": None, "spans": None, "previous": None}
    html = page_of(results)
    for name in ("judges", "passages", "slices", "previous"):
        assert f'id="{name}"' not in html
        assert f'href="#{name}"' not in html


def test_rows_follow_the_ranking_and_none_is_lost():
    results = example_results.results(*map(example_results.row, ("b x c", "a x c", example_results.BASELINE)))
    assert ranked(["c x c", "a x c", "b x c"], results) == ["b x c", "a x c", "c x c"]


def cut(share: float) -> dict[str, Any]:
    return {"tokens": 10_000, "chunks_cut": 7, "lost": round(10_000 * share), "share": share}


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.09, "loses most: 9 % of the tokens not read."),
        (0.01, "No encoder cut much."),
        (0, "No encoder cut anything."),
    ],
)
def test_cells_that_read_the_same_chunks_share_a_row_and_the_headline_names_the_greatest_loss(share, said):
    results = synthetic_results(names=NAMES[:9], source="demo")
    for row in results["cells"]:
        if row["provenance"]["truncation"]:
            row["provenance"]["truncation"] = cut(share)
    html = page_of(results)
    read = read_chunks(Results.model_validate(results))
    encoded = [row["cell"] for row in results["cells"] if row["provenance"]["encoder"]]
    assert len(read) < len(encoded)
    shown = [line[0] for line in rows(html, "truncation-caption", len(read))]
    assert shown == list(read)
    assert said in words(html)


def test_health_has_a_row_a_chunker_and_says_what_is_degenerate():
    results = synthetic_results()
    for row in results["cells"]:
        if row["cell"].endswith("fixed_token_512_50"):
            row["provenance"]["chunks"] |= {"degenerate": ["2 chunks are empty"], "duplicate_share": 0.07}
    chunkers = {row["cell"].rpartition(" x ")[2] for row in results["cells"]}
    found = {line[0]: (line[5], line[-1]) for line in rows(page_of(results), "health-caption", len(chunkers))}
    assert set(found) == chunkers
    assert found["fixed_token_512_50"] == ("7.00 %", "2 chunks are empty")
    assert found["usc_uslm_section_v1"] == ("0.00 %", "no")


def test_imported_runs_without_chunks_are_said_in_words():
    results = synthetic_results()
    counts = dict.fromkeys(("queries_missing", "queries_left_out", "ties"), 0)
    for row in results["cells"]:
        row["provenance"] |= {"chunks": None, "encoder": None, "truncation": None}
        row["provenance"]["imported"] = {"file_sha256": "ab" * 32, "tag": "x"} | counts
    html = page_of(results)
    assert f"neither chunks nor what was read of them is known: {CELLS[0]}" in words(section(html, "chunks"))
    assert "health-caption" not in html


def test_documents_by_stratum_have_their_share_and_fold_where_they_are_many():
    corpus = RESULTS["corpus"] | {"n_chars": 30_000, "strata": {"a": 8, "b": 2, "c": 2}}
    few = section(with_parts(corpus=corpus), "corpus")
    assert "A document has 2,500 characters on average." in words(few)
    assert "a 8 67 %" in words(few)
    assert "<details" not in few
    many = corpus | {"strata": {f"title {number}": 1 for number in range(13)}}
    assert "Sampled documents by stratum (13 strata)" in section(with_parts(corpus=many), "corpus")


def test_judges_are_listed_beside_the_labels_only_where_no_section_says_who_judged():
    assert "judges-caption" not in rendered()
    assert "reader-b 31" in words(section(with_parts(judging=None), "corpus"))


def test_a_noise_floor_is_given_at_the_places_that_its_interval_allows():
    moved = {"mean": 0.0123, "low": 0.0004, "high": 0.0242, "wins": 3, "ties": 27, "losses": 0}
    floor = {"difference": moved, "max_change": 0.1416}
    text = words(section(with_parts(noise_floor=floor), "gate"))
    assert "nDCG@10 changed by +0.012 [0.000, +0.024] on average; 3 of 30 queries changed, the largest by 0.14" in text


def test_single_gold_verdicts_are_counted_where_they_are_folded():
    results = synthetic_results()
    results["cells"][0]["single_gold"]["recall@10"]["verdict"] = "fail"
    n = len(results["cells"])
    assert f"{n - 1} of {n} cells pass by recall@10" in words(section(page_of(results), "gate"))
