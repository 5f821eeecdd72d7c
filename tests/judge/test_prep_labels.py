import shutil
from itertools import pairwise

from runner.base.canonical import file_sha256
from runner.eval_set.batches import BATCH_PAIRS, WHOLE_TEXT, read_batch
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.version import load_queries
from runner.judge.prep_labels import REPEATS
from runner.retrieve.pool import unjudged
from tests.support.labels import label
from tests.support.small_judging import everything, export, rows


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
    missing = everything(version)
    queries = {query.id: query for query in load_queries(version.queries_path)}
    documents = {document.doc_id: document for document in corpus_documents(version, None)}
    paths = export(version, missing)
    assert [path.name for path in paths] == [f"batch-{n:04d}.jsonl" for n in range(1, 6)]
    assert [len(rows([path])) for path in paths] == [BATCH_PAIRS] * 4 + [400 + 4 * REPEATS - 4 * BATCH_PAIRS]
    assert {(row["query_id"], row["doc_id"]) for row in rows(paths)} == set(missing)
    for path in paths:
        for row in read_batch(path):
            document = documents[row.doc_id]
            assert (row.query, row.title) == (queries[row.query_id].text, document.title)
            assert "".join(passage.text for passage in row.evidence) == document.text
            assert (row.n_chars, row.left_out, row.shown_by) == (len(document.text), 0, WHOLE_TEXT)
            assert (row.batch, row.version, row.prompt_sha256) == (
                path.stem,
                "demo v1",
                file_sha256(version.judge_path),
            )
    assert (version.judging / "judge-v1.md").read_bytes() == version.judge_path.read_bytes()


def test_every_batch_but_the_first_repeats_some_pairs_of_earlier_ones_and_none_twice(version):
    missing = everything(version)
    seen, repeated = set(), []
    for number, path in enumerate(export(version, missing)):
        pairs = [(row.query_id, row.doc_id) for row in read_batch(path)]
        again = [pair for pair in pairs if pair in seen]
        assert len(again) == (REPEATS if number else 0)
        assert number == 0 or again != pairs[:REPEATS], "repeats stand anywhere"
        repeated += again
        seen.update(pairs)
    assert len(set(repeated)) == len(repeated)


def test_batches_do_not_depend_on_the_order_in_which_pairs_were_found(version, tmp_path):
    missing = everything(version)
    export(version, missing)
    first = {name: content for name, (content, _) in contents(version.judging).items()}
    shutil.rmtree(version.judging)
    export(version, missing[::-1])
    assert {name: content for name, (content, _) in contents(version.judging).items()} == first


def test_only_batches_that_still_hold_a_missing_pair_are_named(version):
    missing = everything(version)
    paths = export(version, missing)
    left = [(row["query_id"], row["doc_id"]) for row in rows(paths[2:3])[:2]]
    assert export(version, left) == [paths[2]]
    assert export(version, []) == []


def test_pairs_that_a_later_cell_brings_go_into_further_batches(version):
    missing = everything(version)
    early = missing[:150]
    first = export(version, early)
    before = contents(version.judging)
    paths = export(version, missing)
    assert paths[:2] == first
    after = contents(version.judging)
    assert {name: after[name] for name in before} == before
    assert {(row["query_id"], row["doc_id"]) for row in rows(paths)} == set(missing)
    later = [(row["query_id"], row["doc_id"]) for row in rows(paths[2:])]
    assert len(later) == len(set(missing) - set(early)) + REPEATS * 3, "some are repeats"


def test_the_order_of_a_batch_follows_neither_rank_nor_query_nor_document(version):
    missing = everything(version)
    exported = rows(export(version, missing))
    pairs = list(dict.fromkeys((row["query_id"], row["doc_id"]) for row in exported))
    by_pair = sorted(missing)
    places = [by_pair.index(pair) for pair in pairs]
    n = len(places)
    # Rank correlation with the order of the pairs: 1 for a sorted file, within 3 / sqrt(n) of 0 for a shuffled one.
    correlation = 1 - 6 * sum((a - b) ** 2 for a, b in enumerate(places)) / (n * (n**2 - 1))
    assert abs(correlation) < 3 / n**0.5
    neighbours = sum(a[0] == b[0] for a, b in pairwise(pairs))
    assert neighbours < 40
