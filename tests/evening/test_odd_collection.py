"""A public collection whose queries have odd ids, with imported systems that are blind in several ways."""

import html
import re
from urllib.parse import unquote

import pytest

from runner.base.errors import InputError
from runner.base.records import SCORE_UNIT
from runner.eval_set.version import load_results
from runner.report import sentences
from runner.report.by_query import anchor, fragment
from tests.evening.test_external import trec_scores
from tests.support.small_collection import documents, evaluate, external_version, qrels, write_collection
from tests.support.small_set import QUERIES

ODD = ["q/1", "q#2", "q%3", "Q?4&x=1", "\u00e9", "e\u0301", "(6)", "<b>7", '"8"', "'9'", "gate", "q1-caption", "10:11"]
CELLS = ("bm25 x whole_doc", "bm25-plain x whole_doc")


def names():
    texts = {f"q{place}": text for place, (_, text) in enumerate(QUERIES, start=1)}
    others = ["漢字", "a+b", "~", "=1+1", "@x", "..", "query-1", "-", "null", "1e3", "q,1", "q;1"]
    ids = [*ODD, *others, *(f"z{place}" for place in range(len(texts)))]
    return dict(zip(texts, ids, strict=False)), texts


def trec(path, tag, lists):
    lines = (f"{q} Q0 {d} {rank} {100 - rank} {tag}\n" for q, docs in lists.items() for rank, d in enumerate(docs, 1))
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module", name="odd")
def _odd(tmp_path_factory):
    """A version with two cells and three blind systems, and the collection's qrels."""
    place = tmp_path_factory.mktemp("odd")
    ids, texts = names()
    judged = {ids[query]: grades for query, grades in qrels().items()}
    asked = {ids[query]: text for query, text in texts.items()}
    collection = write_collection(place / "odd", judged=judged, queries=asked)
    version = external_version(place, cells=CELLS)
    popular = sorted({d for grades in judged.values() for d in grades})[:10]
    mostly = {q: sorted(g, key=lambda d: -g[d]) if i % 5 == 0 else popular for i, (q, g) in enumerate(judged.items())}
    runs = {"constant": dict.fromkeys(judged, popular), "mostly-constant": mostly}
    evaluate(version, collection, *(trec(place / f"{tag}.run", tag, lists) for tag, lists in runs.items()))
    return version, judged


def test_odd_ids_are_kept_as_they_are_and_scored_as_trec_eval_scores_them(odd):
    version, judged = odd
    found = load_results(version)
    assert {query.id for query in found.queries} == set(judged) > set(ODD)
    for row in found.cells:
        expected = trec_scores(version, row.cell)
        for query, units in zip(found.queries, row.scores["ndcg@10"].per_query, strict=True):
            value = expected.get(query.id, {}).get("ndcg_cut_10", 0.0)
            assert units / SCORE_UNIT == pytest.approx(value, abs=1e-9), (row.cell, query.id)


def test_renaming_queries_and_documents_moves_no_figure_of_a_cell(odd, tmp_path):
    version, judged = odd
    _, texts = names()
    rows = [row | {"_id": f"\u00fc:{row['_id']}"} for row in documents()]
    plain = {f"q{place}": {f"\u00fc:{d}": g for d, g in grades.items()} for place, grades in enumerate(judged.values())}
    asked = dict(zip(plain, (query.text for query in load_results(version).queries), strict=True))
    assert set(asked.values()) <= set(texts.values())
    other = external_version(tmp_path, cells=CELLS)
    evaluate(other, write_collection(tmp_path / "plain", rows=rows, judged=plain, queries=asked))
    own = {row.cell: row for row in load_results(version).cells}
    for row in load_results(other).cells:
        for figures in ("scores", "differences", "gate", "single_gold", "bounds"):
            assert getattr(row, figures) == getattr(own[row.cell], figures), (row.cell, figures)


def test_every_query_s_link_leads_to_its_lists(odd):
    version, judged = odd
    page = version.results_path.with_suffix(".html").read_text(encoding="utf-8")
    ids = {html.unescape(one) for one in re.findall(r'<tr id="([^"]*)"', page)}
    links = {html.unescape(one) for one in re.findall(r'<th scope="row"><a href="#([^"]*)">', page)}
    assert ids == {anchor(query) for query in judged}
    assert {unquote(link) for link in links} == ids
    assert all("/" not in link and "#" not in link for link in links)
    assert len({fragment(query) for query in judged}) == len(judged)


def test_blind_systems_are_named_and_no_side_is_said_of_one_that_fails(odd):
    version, judged = odd
    found = {row.cell: row for row in load_results(version).cells}
    constant, mostly = found["trec:constant"], found["trec:mostly-constant"]
    assert constant.gate.verdict == "fail"
    assert "ignores the query" in constant.diagnosis
    assert f"of {len(judged)} queries get the same" in mostly.diagnosis
    sentence = sentences.found(load_results(version)).split(". ", 1)[1]
    failed = [cell for cell, row in found.items() if row.gate.verdict != "pass"]
    assert all(cell in sentence.split("not passing the null gate")[1] for cell in failed)


@pytest.mark.parametrize("wrong", ["a b", "a\u00a0b", "a\x1b", "a\x00", ""])
def test_an_id_that_would_part_a_line_or_steer_a_terminal_is_refused_with_its_place(tmp_path, wrong):
    texts = {f"q{place}": text for place, (_, text) in enumerate(QUERIES, start=1)} | {wrong: "one more"}
    collection = write_collection(tmp_path / "c", queries=texts)
    with pytest.raises(InputError, match=r"queries\.jsonl:\d+: _id is"):
        evaluate(external_version(tmp_path, cells=CELLS), collection)
