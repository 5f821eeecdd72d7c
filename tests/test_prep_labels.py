import json
import shutil
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.canonical import digest, file_sha256, json_line, sha256
from runner.corpus import corpus_documents
from runner.errors import InputError
from runner.eval_set import load_corpus, load_queries
from runner.labels import load_labels
from runner.prep_labels import (
    BATCH_PAIRS,
    EVIDENCE_CHARS,
    Imported,
    evidence_spans,
    export_batches,
    import_answers,
    passages,
    pool,
    unjudged,
)
from runner.records import Document, Hit, Run, Span
from tests.small_set import make_version
from tests.test_eval_set import label

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
    assert pool(runs, 2) == [("q1", "d1"), ("q1", "d2"), ("q1", "d3"), ("q1", "d4"), ("q2", "d1")]
    assert pool([], 30) == []


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


def test_a_second_reading_alone_does_not_judge_a_pair():
    assert unjudged([("q1", "d1")], [label("q1", "d1", round=2)]) == [("q1", "d1")]


def everything(version):
    """Every query against every document of the small set, the first hundred characters as evidence."""
    queries = {query.query_id: query for query in load_queries(version.queries_path)}
    documents = {document.doc_id: document for document in corpus_documents(version, None)}
    missing = {(query_id, doc_id): (Span(0, 100),) for query_id in queries for doc_id in documents}
    return missing, queries, documents


def rows(paths):
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def contents(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.glob("batch-*"))}


def test_batches_hold_every_pair_once_and_at_most_a_hundred_each(version):
    missing, queries, documents = everything(version)
    paths = export_batches(version, missing, queries, documents)
    assert [path.name for path in paths] == [f"batch-{n:04d}.jsonl" for n in range(1, 5)]
    assert [len(rows([path])) for path in paths] == [BATCH_PAIRS] * 4
    assert sorted((row["query_id"], row["doc_id"]) for row in rows(paths)) == sorted(missing)
    for row in rows(paths):
        document = documents[row["doc_id"]]
        assert (row["query"], row["title"]) == (queries[row["query_id"]].text, document.title)
        assert row["evidence"] == [{"start": 0, "end": len(document.text), "text": document.text}]
        assert row["evidence_sha256"] == digest(row["evidence"])
    assert (version.judging / "judge-v1.md").read_bytes() == version.judge_path.read_bytes()


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
    assert [len(rows([path])) for path in paths] == [100, 50, 100, 100, 50]
    assert sorted((row["query_id"], row["doc_id"]) for row in rows(paths)) == sorted(missing)


def test_the_order_of_a_batch_follows_neither_rank_nor_query_nor_document(version):
    missing, queries, documents = everything(version)
    pairs = [(row["query_id"], row["doc_id"]) for row in rows(export_batches(version, missing, queries, documents))]
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
    spans = evidence_spans(pool(runs, 30), runs)
    paths = export_batches(version, spans, queries, documents)
    for row in rows(paths):
        assert sorted(row) == ["doc_id", "evidence", "evidence_sha256", "query", "query_id", "title"]
        assert all(sorted(passage) == ["end", "start", "text"] for passage in row["evidence"])
    written = "".join(path.read_text() for path in version.judging.glob("batch-*"))
    for word in ("minilm", "bm25", "rrf", "fixed_token", "section_aware", "whole_doc", "rank", "score", "cell"):
        assert word not in written
    others = [Run(f"other {n}", one.hits) for n, one in enumerate(reversed(runs))]
    assert evidence_spans(pool(others, 30), others) == spans


@pytest.fixture(name="judged")
def _judged(version):
    """A version whose first batch waits for a judge, and a way to import an answer file."""
    missing, queries, documents = everything(version)
    pairs = [pair for pair in missing if pair != ("q25", "BILLS-117hr116ih")]
    export_batches(version, {pair: missing[pair] for pair in pairs}, queries, documents)
    return version


def give(version, *answers, name="answers.jsonl", ending="\n", head=b"", judge="j", model="m"):
    path = version.work / name
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + ending for one in answers)
    path.write_bytes(head + text.encode())
    return import_answers(version, path, judge=judge, model=model, judged_on="2026-01-31")


def answer(query_id="q01", doc_id="BILLS-117hr101ih", grade=2, **fields):
    return {"query_id": query_id, "doc_id": doc_id, "grade": grade, **fields}


def test_an_answer_becomes_a_label_with_its_provenance(judged):
    done = give(judged, answer(reason="because", spans=[[0, 10]]))
    assert (done.added, done.known) == (1, 0)
    (made,) = load_labels(judged.labels_path)
    assert (made.query_id, made.doc_id, made.grade, made.reason) == ("q01", "BILLS-117hr101ih", 2, "because")
    assert (made.judge, made.model, made.round, made.judged_on) == ("j", "m", 1, "2026-01-31")
    assert made.prompt_sha256 == file_sha256(judged.judge_path)
    (row,) = [
        row
        for row in rows(judged.judging.glob("batch-*"))
        if (row["query_id"], row["doc_id"]) == ("q01", "BILLS-117hr101ih")
    ]
    assert made.evidence_sha256 == row["evidence_sha256"]
    assert row in rows([judged.judging / f"{made.batch}.jsonl"])


def test_an_answer_to_a_pair_of_no_batch_is_about_the_whole_document(judged):
    give(judged, answer("q25", "BILLS-117hr116ih"))
    (made,) = load_labels(judged.labels_path)
    (row,) = [row for row in load_corpus(judged.corpus_path)[1] if row.doc_id == "BILLS-117hr116ih"]
    assert (made.batch, made.evidence_sha256) == ("", row.sha256)


def test_a_line_may_name_its_own_judge_model_and_round(judged):
    give(judged, answer(judge="k", model="n", round=2), judge="", model="m")
    (made,) = load_labels(judged.labels_path)
    assert (made.judge, made.model, made.round) == ("k", "n", 2)


def test_labels_stand_in_the_order_of_the_answers(judged):
    ids = [f"q{n:02d}" for n in (5, 3, 9, 1)]
    give(judged, *(answer(query_id) for query_id in ids))
    assert [made.query_id for made in load_labels(judged.labels_path)] == ids


def test_byte_order_mark_and_crlf_are_accepted(judged):
    assert give(judged, answer(), answer("q02"), ending="\r\n", head=b"\xef\xbb\xbf").added == 2
    assert b"\r" not in judged.labels_path.read_bytes()
    assert not judged.labels_path.read_bytes().startswith(b"\xef")


def test_the_same_file_twice_adds_nothing_and_changes_no_byte(judged):
    give(judged, answer(), answer("q02", grade=0))
    before = judged.labels_path.read_bytes()
    again = give(judged, answer(), answer("q02", grade=0))
    assert again == Imported(added=0, known=2)
    assert judged.labels_path.read_bytes() == before


def test_an_answer_twice_in_one_file_counts_once(judged):
    done = give(judged, answer(), answer(), answer(reason="said again"))
    assert (done.added, done.known) == (1, 2)


def test_a_second_file_keeps_the_bytes_of_the_first(judged):
    give(judged, answer())
    before = judged.labels_path.read_bytes()
    assert give(judged, answer("q02"), name="more.jsonl").added == 1
    assert judged.labels_path.read_bytes().startswith(before)


def test_another_judge_or_round_may_say_otherwise(judged):
    give(judged, answer())
    assert give(judged, answer(grade=0, judge="k"), answer(grade=1, round=2)).added == 2


BAD = {
    "unknown query": (answer("q99"), "demo v1 has no query 'q99'"),
    "unknown document": (answer(doc_id="BILLS-117hr999ih"), "demo v1 has no document 'BILLS-117hr999ih'"),
    "grade 4": (answer(grade=4), "grade: input should be less than or equal to 3 (found 4)"),
    "grade -1": (answer(grade=-1), "grade: input should be greater than or equal to 0 (found -1)"),
    "grade in quotes": (answer(grade="2"), "grade: input should be a valid integer (found '2')"),
    "grade with a point": (answer(grade=2.0), "grade: input should be a valid integer (found 2.0)"),
    "grade true": (answer(grade=True), "grade: input should be a valid integer (found True)"),
    "no grade": ({"query_id": "q01", "doc_id": "d"}, "grade: field required"),
    "misspelt field": (answer(grad=2), "grad: extra inputs are not permitted (found 2)"),
    "span past the text": (answer(spans=[[0, 10**6]]), "a supporting span lies outside BILLS-117hr101ih"),
    "empty span": (answer(spans=[[5, 5]]), "a supporting span lies outside BILLS-117hr101ih"),
    "half a span": (answer(spans=[[5]]), "spans.0: "),
    "round 0": (answer(round=0), "round: "),
    "cut line": ('{"query_id": "q01", "doc_', "not JSON"),
    "not an object": ("[1, 2]", "a JSON object is expected, found list"),
    "half an emoji": ('{"query_id": "q01", "doc_id": "BILLS-117hr101ih", "grade": 1, "reason": "\\ud83d"}', "not JSON"),
    "another grade": (answer(grade=0), "have grade 2 by j already; this line says 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_nothing_of_a_file_with_a_bad_line_is_imported(judged, name):
    bad, said = BAD[name]
    give(judged, answer())
    before = judged.labels_path.read_bytes()
    with pytest.raises(InputError) as caught:
        give(judged, answer("q02"), "", bad, answer("q03"), name="bad.jsonl")
    assert f"{judged.work / 'bad.jsonl'}:3: " in str(caught.value)
    assert said in str(caught.value)
    assert judged.labels_path.read_bytes() == before


def test_two_grades_for_one_pair_in_one_file_are_refused(judged):
    with pytest.raises(InputError, match=r"answers\.jsonl:2: .*grade 2 by j already; this line says 3"):
        give(judged, answer(), answer(grade=3))
    assert not judged.labels_path.exists()


def test_an_answer_needs_a_judge(judged):
    with pytest.raises(InputError, match=r"answers\.jsonl:1: who judged\? Give --judge NAME"):
        give(judged, answer(), judge="")
    assert not judged.labels_path.exists()


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf\r\n"])
def test_a_file_without_answers_is_refused(judged, content):
    path = judged.work / "empty.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"empty\.jsonl holds no answers"):
        import_answers(judged, path, judge="j", model="", judged_on="2026-01-31")


def test_damaged_labels_stop_an_import(judged):
    give(judged, answer())
    judged.labels_path.write_bytes(judged.labels_path.read_bytes()[:-20])
    before = judged.labels_path.read_bytes()
    with pytest.raises(InputError, match=r"labels\.jsonl ends in the middle of a line"):
        give(judged, answer("q02"))
    assert judged.labels_path.read_bytes() == before


answer_rows = st.builds(
    answer,
    st.sampled_from(["q01", "q02", "q03"]),
    st.sampled_from(["BILLS-117hr101ih", "BILLS-117hr102ih"]),
    st.integers(0, 3),
    reason=st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
)


@given(st.lists(answer_rows, min_size=1, max_size=6))
@settings(deadline=None, max_examples=25)
def test_an_import_is_whole_or_nothing(ready, tmp_path_factory, answers):
    folder = tmp_path_factory.mktemp("import")
    shutil.copytree(ready, folder, dirs_exist_ok=True)
    version = make_version(folder)
    agreed = {}
    for one in answers:
        agreed.setdefault((one["query_id"], one["doc_id"]), set()).add(one["grade"])
    if any(len(grades) > 1 for grades in agreed.values()):
        with pytest.raises(InputError, match="already"):
            give(version, *answers)
        assert load_labels(version.labels_path) == ()
    else:
        give(version, *answers)
        made = load_labels(version.labels_path)
        assert {(one.query_id, one.doc_id): {one.grade} for one in made} == agreed
        assert sha256("".join(json_line(one.model_dump()) + "\n" for one in made)) == file_sha256(version.labels_path)
