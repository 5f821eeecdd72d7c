import shutil
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from runner.base.canonical import digest, file_sha256
from runner.base.records import Document, Hit, Run, Span
from runner.eval_set.batches import BATCH_PAIRS, read_batch
from runner.eval_set.shapes.labels import BatchRow
from runner.judge.prep_labels import EVIDENCE_CHARS, REPEATS, evidence_spans, export_batches, passages
from runner.retrieve.pool import pool, unjudged
from tests.support.labels import label
from tests.support.small_judging import everything, rows

CELLS = ("minilm-l6-v2 x fixed_token_512_50", "rrf(bm25,minilm-l6-v2) x section_aware_bills_v1", "bm25 x whole_doc")


def run(cell: str, hits: dict[str, list[tuple[str, int, int]]]) -> Run:
    return Run(cell, {query_id: tuple(ranked(found)) for query_id, found in hits.items()})


def ranked(found: list[tuple[str, int, int]]) -> list[Hit]:
    return [Hit(doc_id, 9.0 - rank, Span(start, end)) for rank, (doc_id, start, end) in enumerate(found)]


def test_the_pool_holds_every_pair_within_depth_of_any_run():
    runs = [
        run("a", {"q1": [("d1", 0, 5), ("d2", 0, 5), ("d3", 0, 5)], "q2": []}),
        run("b", {"q1": [("d3", 7, 9), ("d4", 0, 5), ("d5", 0, 1)], "q2": [("d1", 1, 2)]}),
    ]
    assert pool(runs, 2, []) == [("q1", "d1"), ("q1", "d2"), ("q1", "d3"), ("q1", "d4"), ("q2", "d1")]
    assert pool([], 30, []) == []


def test_evidence_comes_from_every_run_whatever_the_rank():
    runs = [
        run("a", {"q1": [("d1", 0, 5), ("d3", 0, 5)]}),
        run("b", {"q1": [("d2", 0, 5), ("d4", 0, 5), ("d3", 7, 9)], "q2": [("d3", 1, 2)]}),
    ]
    assert evidence_spans([("q1", "d3"), ("q1", "d9")], runs) == {
        ("q1", "d3"): (Span(0, 5), Span(7, 9)),
        ("q1", "d9"): (),
    }


SPANS = st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 9_000)), min_size=1, max_size=8)


@given(SPANS, st.randoms())
def test_passages_are_disjoint_in_text_order_within_the_limit_and_lead_with_the_shortest(lengths, order):
    document = Document("d1", "x" * 30_000, "t", "", "", "")
    spans = [Span(start, start + length) for start, length in lengths]
    shown = passages(document, spans)
    assert all(before.end < after.start for before, after in pairwise(shown))
    assert 0 < sum(span.end - span.start for span in shown) <= EVIDENCE_CHARS
    shortest = min(spans, key=lambda span: (span.end - span.start, span.start))
    assert any(one.start <= shortest.start and shortest.start < one.end for one in shown)
    order.shuffle(spans)
    assert passages(document, spans) == shown


def test_a_long_document_found_as_a_whole_shows_its_best_passage_and_not_its_beginning():
    document = Document("d1", "x" * 30_000, "t", "", "", "")
    assert passages(document, [Span(0, 30_000), Span(20_000, 21_000)]) == (Span(20_000, 21_000),)
    assert passages(document, [Span(0, 30_000)]) == (Span(0, EVIDENCE_CHARS),)


def test_a_document_that_fits_is_shown_whole():
    document = Document("d1", "x" * EVIDENCE_CHARS, "t", "", "", "")
    assert passages(document, [Span(5, 6)]) == (Span(0, EVIDENCE_CHARS),)


def test_a_pair_is_judged_once_any_judge_has_graded_it():
    pairs = [("q1", "d1"), ("q1", "d2"), ("q2", "d1")]
    assert unjudged(pairs, [label("q1", "d2", judge="anyone")]) == [("q1", "d1"), ("q2", "d1")]
    assert unjudged(pairs, []) == pairs
    assert unjudged([], [label()]) == []
    # A second reading alone judges nothing.
    assert unjudged([("q1", "d1")], [label("q1", "d1", round=2)]) == [("q1", "d1")]


def contents(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.glob("batch-*"))}


def test_batches_hold_every_pair_once_and_at_most_a_hundred_rows_each(version):
    missing, queries, documents = everything(version)
    paths = export_batches(version, missing, queries, documents)
    assert [path.name for path in paths] == [f"batch-{n:04d}.jsonl" for n in range(1, 6)]
    assert [len(rows([path])) for path in paths] == [BATCH_PAIRS] * 4 + [400 + 4 * REPEATS - 4 * BATCH_PAIRS]
    assert {(row["query_id"], row["doc_id"]) for row in rows(paths)} == set(missing)
    for path in paths:
        for row in read_batch(path):
            document = documents[row.doc_id]
            assert (row.query, row.title) == (queries[row.query_id].text, document.title)
            assert "".join(passage.text for passage in row.evidence) == document.text
            assert row.evidence_sha256 == digest([passage.model_dump() for passage in row.evidence])
            assert (row.batch, row.version, row.prompt_sha256) == (
                path.stem,
                "demo v1",
                file_sha256(version.judge_path),
            )
    assert (version.judging / "judge-v1.md").read_bytes() == version.judge_path.read_bytes()


def test_every_batch_but_the_first_repeats_some_pairs_of_earlier_ones_and_none_twice(version):
    missing, queries, documents = everything(version)
    seen, repeated = set(), []
    for number, path in enumerate(export_batches(version, missing, queries, documents)):
        pairs = [(row.query_id, row.doc_id) for row in read_batch(path)]
        again = [pair for pair in pairs if pair in seen]
        assert len(again) == (REPEATS if number else 0)
        assert number == 0 or again != pairs[:REPEATS], "repeats stand anywhere"
        repeated += again
        seen.update(pairs)
    assert len(set(repeated)) == len(repeated)


def test_batches_do_not_depend_on_the_order_in_which_pairs_were_found(version, tmp_path):
    missing, queries, documents = everything(version)
    export_batches(version, missing, queries, documents)
    first = {name: content for name, (content, _) in contents(version.judging).items()}
    shutil.rmtree(version.judging)
    export_batches(version, dict(reversed(missing.items())), queries, documents)
    assert {name: content for name, (content, _) in contents(version.judging).items()} == first


def test_exporting_again_writes_no_batch_again(version):
    missing, queries, documents = everything(version)
    paths = export_batches(version, missing, queries, documents)
    before = contents(version.judging)
    assert export_batches(version, missing, queries, documents) == paths
    assert contents(version.judging) == before


def test_only_batches_that_still_hold_a_missing_pair_are_named(version):
    missing, queries, documents = everything(version)
    paths = export_batches(version, missing, queries, documents)
    left = {(row["query_id"], row["doc_id"]): (Span(0, 100),) for row in rows(paths[2:3])[:2]}
    assert export_batches(version, left, queries, documents) == [paths[2]]
    assert export_batches(version, {}, queries, documents) == []


def test_pairs_that_a_later_cell_brings_go_into_further_batches(version):
    missing, queries, documents = everything(version)
    early = dict(list(missing.items())[:150])
    first = export_batches(version, early, queries, documents)
    before = contents(version.judging)
    paths = export_batches(version, missing, queries, documents)
    assert paths[:2] == first
    after = contents(version.judging)
    assert {name: after[name] for name in before} == before
    assert {(row["query_id"], row["doc_id"]) for row in rows(paths)} == set(missing)
    later = [(row["query_id"], row["doc_id"]) for row in rows(paths[2:])]
    assert len(later) == len(set(missing) - set(early)) + REPEATS * 3, "some are repeats"


def test_the_order_of_a_batch_follows_neither_rank_nor_query_nor_document(version):
    missing, queries, documents = everything(version)
    exported = rows(export_batches(version, missing, queries, documents))
    pairs = list(dict.fromkeys((row["query_id"], row["doc_id"]) for row in exported))
    by_pair = sorted(missing)
    places = [by_pair.index(pair) for pair in pairs]
    n = len(places)
    # Rank correlation with the order of the pairs: 1 for a sorted file, within 3 / sqrt(n) of 0 for a shuffled one.
    correlation = 1 - 6 * sum((a - b) ** 2 for a, b in enumerate(places)) / (n * (n**2 - 1))
    assert abs(correlation) < 3 / n**0.5
    neighbours = sum(a[0] == b[0] for a, b in pairwise(pairs))
    assert neighbours < 40


def test_a_batch_tells_nothing_about_the_cell_that_found_a_pair(version):
    _, queries, documents = everything(version)
    doc_ids = sorted(documents)
    runs = [
        run(cell, {query_id: [(doc_id, 0, 50 + n) for doc_id in doc_ids[n:]] for query_id in queries})
        for n, cell in enumerate(CELLS)
    ]
    spans = evidence_spans(pool(runs, 30, []), runs)
    paths = export_batches(version, spans, queries, documents)
    for row in rows(paths):
        assert sorted(row) == sorted(BatchRow.model_fields)
        assert all(sorted(passage) == ["end", "number", "start", "text"] for passage in row["evidence"])
    written = "".join(path.read_text() for path in version.judging.glob("batch-*"))
    for word in ("minilm", "bm25", "rrf", "fixed_token", "section_aware", "whole_doc", "rank", "score", "cell"):
        assert word not in written
    others = [Run(f"other {n}", one.hits) for n, one in enumerate(reversed(runs))]
    assert evidence_spans(pool(others, 30, []), others) == spans
