import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.records import SCORE_UNIT, Hit, Run, Span
from runner.eval_set.trec import WHOLE, read_trec_qrels, read_trec_run, trec_qrels_bytes, trec_run_bytes
from runner.score.score import score
from samplers.sources import beir


def written(folder, text, name="run"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def ranking(run, query_id="q"):
    return [hit.doc_id for hit in run.hits[query_id]]


def refusal(read, path):
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_columns_are_parted_by_spaces_or_tabs_in_any_order_of_lines(tmp_path):
    text = "\ufeffq2\tQ0\td1\t1\t2.5\tmy-run\r\n\r\nq1 Q0  d2 2 1e0 x\n q2 Q0 d3 2 3 x \nq1 Q0 d1 1 -0.5 x"
    found = read_trec_run(written(tmp_path, text))
    assert found.run == Run(
        "my-run",
        {"q2": (Hit("d3", 3.0, WHOLE), Hit("d1", 2.5, WHOLE)), "q1": (Hit("d2", 1.0, WHOLE), Hit("d1", -0.5, WHOLE))},
    )
    assert found.documents == {"d1", "d2", "d3"}
    assert found.n_tags == 2


def test_documents_below_the_depth_are_named_but_not_kept(tmp_path):
    text = "".join(f"q Q0 d{i:03} {i + 1} {1000 - i} t\n" for i in range(150))
    path = written(tmp_path, text)
    assert len(ranking(read_trec_run(path).run)) == 100
    assert ranking(read_trec_run(path, depth=2).run) == ["d000", "d001"]
    assert len(ranking(read_trec_run(path, depth=1000).run)) == 150
    assert len(read_trec_run(path, depth=2).documents) == 150


@pytest.mark.parametrize(
    ("lines", "order"),
    [
        (("b 2 0.5", "c 3 0.5", "a 1 0.5", "é 4 0.5"), ["é", "c", "b", "a"]),
        ((f"a 1 {0.5 + 1e-9!r}", "b 2 0.5"), ["b", "a"]),  # 32 bits cannot tell the two apart
    ],
)
def test_ties_go_to_the_greater_id_whatever_the_rank(tmp_path, lines, order):
    path = written(tmp_path, "".join(f"q Q0 {line} t\n" for line in lines))
    assert ranking(read_trec_run(path).run) == order


def test_ranks_that_contradict_scores_are_reported_and_scores_decide(tmp_path):
    text = (
        "up Q0 a 1 0.1 t\nup Q0 b 2 0.9 t\nflat Q0 a 1 0.1 t\nflat Q0 b 1 0.9 t\ndown Q0 b 2 0.1 t\ndown Q0 a 1 0.9 t\n"
    )
    found = read_trec_run(written(tmp_path, text))
    assert found.contradicted == ("up",)
    assert ranking(found.run, "up") == ["b", "a"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("q Q0 d 1 0.5", "5 columns instead of 6"),
        ("q Q0 d 1 0.5 my run", "7 columns instead of 6"),
        ("q 0 d 1", "4 columns instead of 6"),
        ("q Q0 a 9 0.1 t", "query q has a twice"),
        ("q Q0 d 1 1e999 t", "the score (column 5) is 1e999"),
        ("q Q0 d 1 nan t", "the score (column 5) is nan"),
        ("q Q0 d 1 1_0 t", "the score (column 5) is 1_0"),
        ("q Q0 d 1 ١ t", "the score (column 5) is"),
        ("q Q0 d 1 \x1b[2J t", "the score (column 5) is \\x1b[2J"),
        ("q Q0 d -1 0.5 t", "the rank (column 4) is -1"),
        ("q Q0 d 12345678901 0.5 t", "the rank (column 4) is 12345678901"),
        ("q Q0 d " + "9" * 5000 + " 0.5 t", "the rank (column 4) is 999"),
        (b"q Q0 \xff 1 0.5 t", "not UTF-8"),
    ],
)
def test_a_malformed_line_of_a_run_is_named(tmp_path, line, complaint):
    line = line if isinstance(line, bytes) else line.encode()
    path = written(tmp_path, b"q Q0 a 1 0.5 t\n\n" + line + b"\n")
    message = refusal(read_trec_run, path)
    assert message.startswith(f"{path}:3: ")
    assert complaint in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("q d 1", "3 columns instead of 4"),
        ("q Q0 d 1 0.5 t", "6 columns instead of 4"),
        ("q 0 a 2", "query q has a twice, with two grades"),
        ("q 0 junk 1", "query q has junk twice"),
        ("q 0 d 1.5", "the grade is 1.5"),
        ("q 0 d 1_0", "the grade is 1_0"),
        ("q 0 d 32768", "the grade is 32768"),
        ("q 0 d " + "9" * 5000, "the grade is 999"),
        (b"\xff 0 d 1", "not UTF-8"),
    ],
)
def test_a_malformed_line_of_qrels_is_named(tmp_path, line, complaint):
    line = line if isinstance(line, bytes) else line.encode()
    path = written(tmp_path, b"q 0 a 1\nq 0 junk -2\n" + line)
    message = refusal(read_trec_qrels, path)
    assert message.startswith(f"{path}:3: ")
    assert complaint in message


@pytest.mark.shared
@pytest.mark.parametrize("name", ["floatgrade.qrels", "dup.qrels"])
def test_both_readers_of_qrels_take_grades_with_a_point_and_equal_lines_twice(shared, tmp_path, name):
    path = shared / "cases" / "qrels-floats-and-doubles" / name
    rows = [line.split() for line in path.read_text().splitlines()]
    expected = {}
    for query_id, _, doc_id, grade in rows:
        if float(grade) >= 0:
            expected.setdefault(query_id, {})[doc_id] = int(float(grade))
    assert name != "dup.qrels" or len(rows) > len({(row[0], row[2]) for row in rows})
    assert read_trec_qrels(path) == expected
    table = written(tmp_path, "".join(f"{row[0]}\t{row[2]}\t{row[3]}\n" for row in rows))
    assert beir._qrels(table) == expected


@pytest.mark.parametrize("read", [read_trec_run, read_trec_qrels])
def test_a_file_without_lines_is_refused(tmp_path, read):
    assert "has no lines" in refusal(read, written(tmp_path, "\n \n"))
    assert "does not exist" in refusal(read, tmp_path / "absent")


def test_negative_grades_are_left_out_and_their_query_stays(tmp_path):
    path = written(tmp_path, "q1 0 a -1\nq2 Q0 a +2\nq2 0 b -2\nq2 0 c 0\n")
    assert read_trec_qrels(path) == {"q1": {}, "q2": {"a": 2, "c": 0}}


def test_a_depth_below_one_is_refused(tmp_path):
    with pytest.raises(ValueError, match="depth must be at least 1, got 0"):
        read_trec_run(written(tmp_path, "q Q0 a 1 0.5 t\n"), depth=0)


def test_own_scores_are_written_where_trec_eval_keeps_their_order():
    run = Run("bm25 x whole_doc", {"q": (Hit("a", 0.7, Span(3, 9)), Hit("c", 0.5, WHOLE), Hit("b", 0.5, WHOLE))})
    assert trec_run_bytes(run) == (
        b"q Q0 a 1 0.7 bm25-x-whole_doc\nq Q0 c 2 0.5 bm25-x-whole_doc\nq Q0 b 3 0.5 bm25-x-whole_doc\n"
    )


@pytest.mark.parametrize("scores", [(0.5, 0.5), (0.5 + 1e-9, 0.5), (0.1, 0.2), (1e300, 1.0)])
def test_ranks_become_scores_where_trec_eval_would_change_an_order(scores):
    run = Run("r", {"q": (Hit("a", scores[0], WHOLE), Hit("b", scores[1], WHOLE)), "p": (Hit("a", 9.5, WHOLE),)})
    assert trec_run_bytes(run) == b"q Q0 a 1 2 r\nq Q0 b 2 1 r\np Q0 a 1 1 r\n"


def test_what_a_trec_file_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        trec_run_bytes(Run("r", {"q": (Hit("a", float("nan"), WHOLE),)}))
    for query_id, doc_id, cell in [("a b", "d", "r"), ("q", "d\u00a0e", "r"), ("q", "", "r"), ("q", "d", "é")]:
        with pytest.raises(ValueError, match="white space"):
            trec_run_bytes(Run(cell, {query_id: (Hit(doc_id, 1.0, WHOLE),)}))
    with pytest.raises(ValueError, match="white space"):
        trec_qrels_bytes({"q": {"a b": 1}})


words = st.text(st.sampled_from("abAB01é日\U0001f600"), min_size=1, max_size=3)
close_scores = st.sampled_from([0.5, 0.5 + 1e-9, 0.5 - 1e-8, 1e-3, 0.0, -2.0, 3e38, 1 / 61, 1 / 61 + 1e-12])
runs = st.dictionaries(words, st.lists(st.tuples(words, close_scores), max_size=6, unique_by=lambda hit: hit[0]))
judgments = st.dictionaries(words, st.integers(-2, 3), max_size=6)


@given(runs)
def test_a_written_run_is_read_back_in_its_order_by_us_and_by_trec_eval(tmp_path_factory, rankings):
    run = Run("r", {q: tuple(Hit(d, s, WHOLE) for d, s in hits) for q, hits in rankings.items() if hits})
    if not run.hits:
        return
    path = tmp_path_factory.mktemp("runs") / "run"
    path.write_bytes(trec_run_bytes(run))
    again = read_trec_run(path).run
    assert {q: ranking(again, q) for q in again.hits} == {q: ranking(run, q) for q in run.hits}
    theirs = pytrec_eval.parse_run(path.read_text(encoding="utf-8").split("\n")[:-1])
    for query_id, hits in run.hits.items():
        for rank, hit in enumerate(hits, start=1):
            judged = pytrec_eval.RelevanceEvaluator({query_id: {hit.doc_id: 1}}, {"recip_rank"})
            assert judged.evaluate(theirs)[query_id]["recip_rank"] == pytest.approx(1 / rank)


@given(st.dictionaries(words, st.dictionaries(words, st.integers(0, 3), min_size=1), min_size=1))
def test_written_qrels_are_read_back(tmp_path_factory, qrels):
    path = tmp_path_factory.mktemp("qrels") / "qrels"
    path.write_bytes(trec_qrels_bytes(qrels))
    assert read_trec_qrels(path) == qrels


@given(st.lists(st.tuples(words, close_scores), min_size=1, max_size=12, unique_by=lambda hit: hit[0]), judgments)
def test_any_order_of_ties_scores_as_trec_eval_scores_it(tmp_path_factory, hits, grades):
    folder = tmp_path_factory.mktemp("trec")
    run = written(folder, "".join(f"q Q0 {d} {r} {s!r} t\n" for r, (d, s) in enumerate(hits)))
    qrels = written(folder, "".join(f"q 0 {d} {g}\n" for d, g in grades.items()) + "q 0 other 1\n", "qrels")
    judged = {**grades, "other": 1}
    theirs = pytrec_eval.RelevanceEvaluator({"q": judged}, {"ndcg_cut_10", "recall_10", "recip_rank"})
    expected = theirs.evaluate({"q": dict(hits)})["q"]
    ours = score(read_trec_run(run).run, ["q"], read_trec_qrels(qrels), relevant_grade=1).values
    for name, measure in {"ndcg_cut_10": "ndcg@10", "recall_10": "recall@10", "recip_rank": "mrr"}.items():
        assert ours[measure][0] / SCORE_UNIT == pytest.approx(expected[name], abs=1e-9)
