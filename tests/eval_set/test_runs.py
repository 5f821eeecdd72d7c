import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.records import RUN_DEPTH, ChunkHit, Hit, Run, Span
from runner.eval_set.runs import read_run, reading_bytes, run_bytes

CELL = "bm25>minilm-l6-v2 x whole_doc"


def ranked(steps, unit):
    ordered = sorted(enumerate(steps), key=lambda entry: (entry[1], f"d{entry[0]:03}"), reverse=True)
    return tuple(Hit(f"d{i:03}", step / unit, Span(i, i + 1 + step % 7)) for i, step in ordered)


@st.composite
def runs(draw):
    unit = draw(st.sampled_from([100_000, 1_000_000_000]))
    lists = draw(st.lists(st.lists(st.integers(-(10**7), 10**10), max_size=30), min_size=1, max_size=4))
    return Run(CELL, {f"q{i}": ranked(steps, unit) for i, steps in enumerate(lists)})


@given(runs())
def test_a_run_file_gives_the_same_run_and_the_same_bytes_back(tmp_path_factory, run):
    path = tmp_path_factory.getbasetemp() / "run.tsv"
    path.write_bytes(run_bytes(run))
    again = read_run(path, CELL, list(run.hits))
    assert again == run
    assert run_bytes(again) == run_bytes(run)


def test_the_form_of_a_run_file():
    run = Run(CELL, {"q1": (Hit("hr1", 0.5, Span(0, 7)), Hit("hr2", -0.25, Span(3, 9))), "q2": ()})
    assert run_bytes(run).decode() == (
        "query_id\trank\tdoc_id\tscore\tstart\tend\nq1\t1\thr1\t0.50000\t0\t7\nq1\t2\thr2\t-0.25000\t3\t9\n"
    )
    fused = Run(CELL, {"q1": (Hit("hr1", 0.032786885, Span(0, 7)), Hit("hr2", 0.03125, Span(3, 9)))})
    assert [line.split("\t")[3] for line in run_bytes(fused).decode().splitlines()[1:]] == [
        "0.032786885",
        "0.031250000",
    ]


def test_the_form_of_a_reading_list():
    reading = {"q1": (ChunkHit("hr1", Span(0, 7), 100), ChunkHit("hr1", Span(7, 9), 20)), "q2": ()}
    assert reading_bytes(reading).decode() == (
        "query_id\trank\tdoc_id\tstart\tend\tn_tokens\tcumulative\nq1\t1\thr1\t0\t7\t100\t100\nq1\t2\thr1\t7\t9\t20\t120\n"
    )


HEADER = "query_id\trank\tdoc_id\tscore\tstart\tend\n"
FIRST = "q1\t1\tb\t0.50000\t0\t7\n"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (HEADER + FIRST + "q9\t1\ta\t0.50000\t0\t7\n", 3, "no query 'q9'"),
        (HEADER + FIRST + "q1\t3\ta\t0.40000\t0\t7\n", 3, "rank '3' where 2"),
        (HEADER + "q1\t01\ta\t0.40000\t0\t7\n", 2, "rank '01' where 1"),
        (HEADER + FIRST + "q1\t2\tb\t0.40000\t0\t7\n", 3, "retrieves b twice"),
        (HEADER + FIRST + "q1\t2\ta\t0.60000\t0\t7\n", 3, "below a document that it beats"),
        (HEADER + FIRST + "q1\t2\tc\t0.50000\t0\t7\n", 3, "below a document that it beats"),
        (HEADER + "q1\t1\ta\tnan\t0\t7\n", 2, "score 'nan'"),
        (HEADER + "q1\t1\ta\t1e-3\t0\t7\n", 2, "score '1e-3'"),
        (HEADER + "q1\t1\ta\t0.5\t0\t7\n", 2, "score '0.5'"),
        (HEADER + "q1\t1\ta\t0.50000\t-1\t7\n", 2, "span '-1'"),
        (HEADER + "q1\t1\ta\t0.50000\t7\t7\n", 2, "span 7-7 is empty"),
        (HEADER + "q1\t1\ta b\t0.50000\t0\t7\n", 2, "document id 'a b'"),
        (HEADER + "q1\t1\ta\t0.50000\t0\n", 2, "5 columns instead of 6"),
        (HEADER + "\n", 2, "1 columns"),
    ],
)
def test_a_damaged_line_is_named_with_its_file(tmp_path, text, line, what):
    path = tmp_path / "run.tsv"
    path.write_bytes(text.encode())
    with pytest.raises(InputError) as caught:
        read_run(path, CELL, ["q1", "q2"])
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert what in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"q1\t1\n", (HEADER + FIRST).encode()[:-1], HEADER.encode() + b"\xff\n"])
def test_a_file_that_is_not_a_whole_run_is_refused(tmp_path, data):
    path = tmp_path / "run.tsv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"run\.tsv: not"):
        read_run(path, CELL, ["q1"])


def test_a_ranking_longer_than_a_run_is_refused(tmp_path):
    path = tmp_path / "run.tsv"
    rows = [f"q1\t{i + 1}\td{999 - i}\t0.50000\t0\t7\n" for i in range(RUN_DEPTH + 1)]
    path.write_bytes((HEADER + "".join(rows)).encode())
    with pytest.raises(InputError, match=f":{RUN_DEPTH + 2}: "):
        read_run(path, CELL, ["q1"])


def test_a_query_without_a_line_has_no_hits(tmp_path):
    path = tmp_path / "run.tsv"
    path.write_bytes((HEADER + FIRST).encode())
    run = read_run(path, CELL, ["q0", "q1"])
    assert run == Run(CELL, {"q0": (), "q1": (Hit("b", 0.5, Span(0, 7)),)})
