"""results.json from hand-made runs and labels, and from nothing but what lies in the version's folder."""

import json
import math
import shutil
from typing import ClassVar

import pytest

from runner.base.canonical import file_sha256, json_bytes
from runner.base.records import Hit, Run, Span
from runner.decide.results import make_results
from runner.embed.backends import LocalBackend
from runner.eval_set.labels import append_labels
from runner.eval_set.runs import run_bytes
from runner.eval_set.version import NOISE_FLOOR_CELL, load_cell_file, load_queries
from runner.evening.evening import Evening
from runner.gate.gate import Gate
from runner.score.comparison import load_comparison
from tests.support.evening_process import CHOICE, run
from tests.support.labels import label
from tests.support.small_set import SmallEncoder, make_version, unscored

BASELINE = "minilm-l6-v2 x fixed_token_512_50"
OTHER = "bm25 x whole_doc"
THIRD = "minilm-l6-v2 x section_aware_bills_v1"
A, B, C, D = (f"BILLS-117hr{number}ih" for number in (101, 102, 103, 104))
WORTH = [0.0] + [1 / math.log2(rank + 1) for rank in range(1, 11)]
"""What a grade counts at each rank, from 1."""


@pytest.fixture(name="version")
def _version(decided_evening, tmp_path):
    """A version whose evening is over, without lock, decision and results."""
    shutil.copytree(decided_evening, tmp_path, dirs_exist_ok=True)
    return unscored(make_version(tmp_path))


def put(version, name, found):
    """A run with these documents a query, in this order; other queries find nothing."""
    queries = [query.id for query in load_queries(version.queries_path)]
    hits = {q: tuple(Hit(d, 9.0 - rank, Span(0, 9)) for rank, d in enumerate(found.get(q, []))) for q in queries}
    version.run_path(name).write_bytes(run_bytes(Run(name, hits)))


def judge(version, *labels):
    version.labels_path.unlink(missing_ok=True)
    append_labels(
        version.labels_path,
        [one.model_copy(update={"prompt_sha256": file_sha256(version.judge_path)}) for one in labels],
    )


def scored(version, *cells, registered=(BASELINE, OTHER, THIRD), **settings):
    """results.json as a parsed file, and its rows by cell."""
    plan = version.plan().model_copy(update={"cells": list(cells), **settings})
    comparison = load_comparison(version, plan, frozenset(registered))
    made = make_results(version, comparison, Gate.over(comparison), kind="production")
    parsed = json.loads(json_bytes(made.results.model_dump()))
    return parsed, {row["cell"]: row for row in parsed["cells"]}


def test_bounds_are_the_two_fillings_of_the_holes_query_by_query(version):
    # q01: a perfect document at rank 1 raises the score. q02: one at rank 3 raises the ideal by more than the score.
    put(version, BASELINE, {"q01": [A, B], "q02": [B, A, C]})
    put(version, OTHER, {"q01": [B], "q02": [B, A]})
    judge(version, label("q01", B, 3), label("q02", B, 3), label("q02", A, 0))
    _, rows = scored(version, BASELINE, OTHER)
    low = WORTH[2] + (WORTH[1] + WORTH[3]) / (WORTH[1] + WORTH[2])
    assert rows[BASELINE]["bounds"] == pytest.approx([low / 2, (1 + 1) / 2], abs=1e-9)
    assert rows[BASELINE]["scores"]["ndcg@10"]["mean"] == pytest.approx((WORTH[2] + 1) / 2, abs=1e-9)
    assert rows[BASELINE]["unjudged"] == 2
    assert rows[OTHER]["bounds"] == [rows[OTHER]["scores"]["ndcg@10"]["mean"]] * 2 == [1] * 2
    assert rows[OTHER]["unjudged"] == 0


def test_bounds_hold_the_score_and_meet_where_nothing_is_unjudged(version):
    made, rows = scored(version, *version.plan().cells)
    assert made["labels"]["unjudged_pairs"] == 0
    for row in rows.values():
        assert row["bounds"] == [row["scores"]["ndcg@10"]["mean"]] * 2
        assert row["unjudged"] == 0
    lines = version.labels_path.read_bytes().splitlines(keepends=True)
    version.labels_path.write_bytes(b"".join(lines[::2]))
    made, rows = scored(version, *version.plan().cells)
    assert made["labels"]["unjudged_pairs"] > 0
    assert made["outcome"]["tier"] == "no decision"
    assert any(low < high for low, high in (row["bounds"] for row in rows.values()))
    for row in rows.values():
        low, high = row["bounds"]
        assert low <= row["scores"]["ndcg@10"]["mean"] <= high
        assert row["unjudged"] > 0


def test_unjudged_documents_count_to_rank_ten_in_a_cell_and_to_the_pools_depth_in_the_labels(version):
    path = version.plan_path(rehearsal=version.rehearsal)
    path.write_text(path.read_text().replace("pool_depth: 10", "pool_depth: 30"))
    bills = [f"BILLS-117hr{number}ih" for number in range(101, 117)]
    put(version, BASELINE, {"q01": bills[:12]})
    put(version, OTHER, {"q01": bills[15:], "q02": [A]})
    judge(version, label("q01", A, 3), label("q02", A, 3))
    made, rows = scored(version, BASELINE, OTHER, pool_depth=30)
    assert (rows[BASELINE]["unjudged"], rows[OTHER]["unjudged"]) == (9, 1)
    # What the two lists hold, and the source documents of the 24 other queries.
    assert made["labels"]["pool_pairs"] == 14 + 24
    assert made["labels"]["unjudged_pairs"] == 12 + 24


def test_a_cell_with_the_lists_of_another_is_not_tested_and_says_which_stands_for_it(version):
    for name, found in ((BASELINE, [C, A]), (OTHER, [A, B]), (THIRD, [A, B])):
        put(version, name, {"q01": found, "q02": found})
    judge(version, *(label(query, document, grade) for query in ("q01", "q02") for document, grade in ((A, 3), (C, 0))))
    _, rows = scored(version, BASELINE, OTHER, THIRD, first=[THIRD])
    assert [rows[cell].get("same_as") for cell in (BASELINE, OTHER, THIRD)] == [None, THIRD, None]
    assert (rows[OTHER]["meets_criterion_5"], rows[THIRD]["meets_criterion_5"]) == (False, True)
    assert THIRD in rows[OTHER]["short_of"][0]


def test_the_noise_floor_is_what_a_planted_change_makes_of_the_baseline(version):
    put(version, BASELINE, {"q01": [A, B], "q02": [B], "q03": [C]})
    put(version, NOISE_FLOOR_CELL, {"q01": [B, A], "q02": [B], "q03": [D, A, C]})
    judge(version, label("q01", A, 3), label("q01", B, 0), label("q02", B, 1), label("q03", C, 2))
    floor = scored(version, BASELINE, OTHER)[0]["noise_floor"]
    lost = [1 - WORTH[2], 1 - WORTH[3]]  # q02 has no relevant document
    [difference] = [value for value in floor.values() if isinstance(value, dict)]
    assert difference["mean"] == pytest.approx(-sum(lost) / 2, abs=1e-9)
    assert (difference["wins"], difference["ties"], difference["losses"]) == (0, 0, 2)
    assert difference["low"] <= difference["mean"] <= difference["high"] <= 0
    assert floor["max_change"] == pytest.approx(max(lost), abs=1e-9)


def test_without_an_a_a_run_there_is_no_noise_floor(version):
    version.run_path(NOISE_FLOOR_CELL).unlink()
    assert scored(version, BASELINE, OTHER)[0]["noise_floor"] is None


def test_label_facts_count_lines_pairs_and_judges(version):
    put(version, BASELINE, {"q01": [A, B]})
    put(version, OTHER, {"q02": [A]})
    judge(
        version,
        label("q01", A, 3, judge="ann", model="m-2"),
        label("q01", B, 1, judge="bob"),
        label("q01", A, 0, judge="bob", model="m-1", host="proxy.example.org"),
        label("q01", A, 3, judge="ann", round=2),
        label("q02", A, 3, judge="ann", model="m-2"),
    )
    facts = scored(version, BASELINE, OTHER)[0]["labels"]
    assert facts["lines"] == 5
    assert facts["sha256"] == file_sha256(version.labels_path)
    assert facts["pairs"] == 3
    assert facts["judges"] == {"ann": 3, "bob": 2}
    assert facts["models"] == ["m-1 at proxy.example.org", "m-2"]
    assert facts["grades"] == {"0": 1, "1": 1, "2": 0, "3": 3}
    # The source documents of the 24 other queries are in no list.
    assert (facts["pool_pairs"], facts["unjudged_pairs"]) == (3 + 24, 24)


def test_cells_stand_by_score_and_ties_by_name(version):
    put(version, BASELINE, {"q01": [B, A]})
    put(version, OTHER, {"q01": [A, B]})
    put(version, THIRD, {"q01": [A, B]})
    judge(version, label("q01", A, 3), label("q01", B, 0))
    for order in ((BASELINE, OTHER, THIRD), (THIRD, OTHER, BASELINE)):
        made, rows = scored(version, *order)
        assert [row["cell"] for row in made["cells"]] == [OTHER, THIRD, BASELINE]
    assert rows[THIRD]["differences"]["ndcg@10"]["wins"] == 1
    assert rows[BASELINE]["differences"]["ndcg@10"]["mean"] == 0
    assert rows[BASELINE]["meets_criterion_5"] is False


def test_roles_follow_the_preregistration(version):
    _, rows = scored(version, BASELINE, OTHER, THIRD, registered=(BASELINE, OTHER))
    roles = {cell: row["role"] for cell, row in rows.items()}
    assert roles == {BASELINE: "baseline", OTHER: "preregistered", THIRD: "exploratory"}


def test_a_near_copy_is_asked_what_it_loses_and_is_neither_candidate_nor_confirmed(version):
    """What BM25 finds is given to a cell, the same to a copy of it that loses one query."""
    copied = THIRD.replace(" x ", "@int8 x ")
    queries = [query.id for query in load_queries(version.queries_path)]
    judge(version, *(label(query_id, A, 3) for query_id in queries))
    put(version, BASELINE, {})
    put(version, THIRD, {query_id: [A] for query_id in queries})
    put(version, copied, {query_id: [A] for query_id in queries[1:]})
    for path in (version.cell_path, version.chunk_run_path):
        path(copied).write_bytes(path(THIRD).read_bytes())
    found, rows = scored(version, BASELINE, THIRD, copied, registered=(BASELINE, THIRD, copied))
    assert 1 / len(queries) < rows[copied]["loss"] < 1
    assert (rows[copied]["role"], rows[copied]["meets_criterion_5"]) == ("preregistered", False)
    assert rows[copied]["short_of"] == [f"copies {THIRD}, against which it is asked what it loses"]
    assert "expected" not in rows[copied]
    assert rows[THIRD]["meets_criterion_5"]
    assert "loss" not in rows[THIRD]
    assert found["outcome"]["recommended"] != copied


def no_encoder(name):
    raise AssertionError(f"{name} was asked for: scores are made of runs and labels alone")


def test_results_are_a_function_of_what_the_version_holds(decided_evening, version):
    recorded = (make_version(decided_evening).record / "results.json").read_bytes()
    shutil.rmtree(version.work)
    shutil.rmtree(version.cache)
    Evening(version, choice=CHOICE, backend=LocalBackend(no_encoder)).run()
    assert (version.record / "results.json").read_bytes() == recorded
    assert not version.cache.exists() or not list(version.cache.rglob("rows.npy"))


ELSEWHERE = {"name": "modal", "gpu": "L4", "dtype": "float32", "versions": {"torch": "2.13.0"}}


class EncoderElsewhere(SmallEncoder):
    """The same vectors, as another backend would make them."""

    facts: ClassVar = {"device": "NVIDIA L4", "torch": "2.13.0+cu126"}

    def identity(self):
        return super().identity() | {"backend": ELSEWHERE}


def test_results_are_the_same_bytes_whichever_backend_made_the_same_vectors(decided_evening, tmp_path):
    run(tmp_path, encoders=EncoderElsewhere)
    here, there = make_version(decided_evening), make_version(tmp_path)
    assert (there.record / "results.json").read_bytes() == (here.record / "results.json").read_bytes()
    embedded = {*(cell for cell in here.plan().cells if "minilm" in cell), NOISE_FLOOR_CELL}
    for cell in embedded:
        ours, theirs = (json.loads(version.cell_path(cell).read_text()) for version in (here, there))
        assert ours.pop("backend") != theirs.pop("backend")
        assert ours == theirs
    assert load_cell_file(there.cell_path(OTHER)).backend is None


def test_one_changed_grade_changes_that_query_and_nothing_else_of_a_score(version):
    put(version, BASELINE, {"q01": [A, B], "q02": [A, B]})
    put(version, OTHER, {"q01": [B, A], "q02": [A]})
    grades = {("q01", A): 3, ("q01", B): 1, ("q02", A): 2, ("q02", B): 0}
    judge(version, *(label(q, d, grade) for (q, d), grade in grades.items()))
    before, rows = scored(version, BASELINE, OTHER)
    judge(version, *(label(q, d, 2 if (q, d) == ("q01", B) else grade) for (q, d), grade in grades.items()))
    after, changed = scored(version, BASELINE, OTHER)
    same = ("plan", "queries", "corpus", "kind")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    given = [{name: sha for name, sha in made["digests"].items() if "lists" not in name} for made in (before, after)]
    assert given[0] == given[1]
    assert [row["cell"] for row in after["cells"]] == [row["cell"] for row in before["cells"]]
    assert after["labels"]["sha256"] != before["labels"]["sha256"]
    for cell, row in rows.items():
        assert row["provenance"] == changed[cell]["provenance"]
        for measure, result in row["scores"].items():
            ours, theirs = result["per_query"], changed[cell]["scores"][measure]["per_query"]
            assert ours[1:] == theirs[1:]
            assert (ours[0] != theirs[0]) == ((measure, cell) in MOVED)


MOVED = {(measure, OTHER) for measure in ("ndcg@10", "mrr", "mrr@10")}
"""The other ranking has A, the best, first both times, and its score is that of the ideal."""
