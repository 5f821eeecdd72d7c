import bz2
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.records import (
    EVIDENCE_DEPTH,
    READ_TOKENS,
    RUN_DEPTH,
    SCORE_UNIT,
    Arms,
    ChunkHit,
    Hit,
    Run,
    Span,
    arms_run,
)
from runner.eval_set.runs import (
    arms_bytes,
    has_arms,
    is_run,
    read_arms,
    read_lists,
    read_reading,
    read_run,
    reading_bytes,
    run_bytes,
)

CELL = "bm25>minilm-l6-v2 x whole_doc"
HEADER = "query_id\tdoc_id\tscore\tstart\tend\n"
FIRST = "q1\tb\t0.50000\t0\t7\n"
READING_HEADER = "query_id\tdoc_id\tstart\tend\tn_tokens\n"
ARMS_HEADER = bz2.decompress(arms_bytes({})).decode()
READ_FIRST = "q1\tb\t0\t7\t100\n"
ARMS_FIRST = "q1\tb\t0.500000000\t-\t0\t7\n"


def unpacked(content):
    return bz2.decompress(content).decode()


def run_of(path, query_ids):
    return read_run(path, CELL, query_ids)


def ranked(steps, unit):
    ordered = sorted(enumerate(steps), key=lambda entry: (entry[1], f"d{entry[0]:03}"), reverse=True)
    return tuple(
        Hit(f"d{i:03}", step / unit, Span(i, i + 1 + step % 7) if rank < EVIDENCE_DEPTH else None)
        for rank, (i, step) in enumerate(ordered)
    )


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


@st.composite
def readings(draw):
    """Reading lists that end, as the retriever ends them, with the chunk that reaches READ_TOKENS."""
    made = {}
    for query_id in ("q1", "q2", "q3")[: draw(st.integers(1, 3))]:
        chunks, read = [], 0
        for size, begin in draw(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 10**6)), max_size=8)):
            if read < READ_TOKENS:
                chunks.append(ChunkHit(f"d{begin % 5}", Span(begin, begin + 1 + size), size))
                read += size
        made[query_id] = tuple(chunks)
    return made


@given(readings())
def test_a_reading_file_gives_the_same_lists_and_the_same_bytes_back(tmp_path_factory, reading):
    path = tmp_path_factory.getbasetemp() / "reading.chunks.tsv"
    path.write_bytes(reading_bytes(reading))
    again = read_reading(path, list(reading))
    assert again == reading
    assert reading_bytes(again) == reading_bytes(reading)


halves = st.none() | st.builds(lambda steps: steps / SCORE_UNIT, st.integers(0, SCORE_UNIT))
arms = st.tuples(halves, halves).filter(lambda both: both != (None, None))


@given(st.lists(st.lists(arms, max_size=EVIDENCE_DEPTH + 2), min_size=1, max_size=3))
def test_a_file_of_arms_gives_the_same_lists_and_the_sums_run_back(tmp_path_factory, drawn):
    path = tmp_path_factory.getbasetemp() / "arms.tsv"
    lists = {}
    for i, row in enumerate(drawn):
        found = [Arms(f"d{n}", *both, None) for n, both in enumerate(row)]
        found.sort(key=lambda each: (each.hit.score, each.doc_id), reverse=True)
        lists[f"q{i}"] = tuple(
            replace(each, span=Span(n, 2 * n + 1)) if n < EVIDENCE_DEPTH else each for n, each in enumerate(found)
        )
    path.write_bytes(arms_bytes(lists))
    assert has_arms(path)
    assert read_arms(path, list(lists)) == lists
    assert read_run(path, CELL, list(lists)) == arms_run(CELL, lists)
    assert list(read_run(path, CELL).hits) == [query_id for query_id, found in lists.items() if found]


def test_the_form_of_a_run_file():
    run = Run(CELL, {"q1": (Hit("hr1", 0.5, Span(0, 7)), Hit("hr2", -0.25, Span(3, 9))), "q2": ()})
    assert unpacked(run_bytes(run)) == (
        "query_id\tdoc_id\tscore\tstart\tend\nq1\thr1\t0.50000\t0\t7\nq1\thr2\t-0.25000\t3\t9\n"
    )
    fused = Run(CELL, {"q1": (Hit("hr1", 0.032786885, Span(0, 7)), Hit("hr2", 0.03125, Span(3, 9)))})
    assert [line.split("\t")[2] for line in unpacked(run_bytes(fused)).splitlines()[1:]] == [
        "0.032786885",
        "0.031250000",
    ]


def test_the_form_of_a_reading_list():
    reading = {"q1": (ChunkHit("hr1", Span(0, 7), 100), ChunkHit("hr1", Span(7, 9), 20)), "q2": ()}
    assert unpacked(reading_bytes(reading)) == (
        "query_id\tdoc_id\tstart\tend\tn_tokens\nq1\thr1\t0\t7\t100\nq1\thr1\t7\t9\t20\n"
    )


DAMAGED_RUN = [
    (FIRST + "q9\ta\t0.50000\t0\t7\n", 3, "no query 'q9'"),
    (FIRST + "q1\tb\t0.40000\t0\t7\n", 3, "retrieves b twice"),
    (FIRST + "q1\ta\t0.60000\t0\t7\n", 3, "below a document that it beats"),
    (FIRST + "q1\tc\t0.50000\t0\t7\n", 3, "below a document that it beats"),
    ("q1\ta\tnan\t0\t7\n", 2, "score 'nan'"),
    ("q1\ta\t1e-3\t0\t7\n", 2, "score '1e-3'"),
    ("q1\ta\t0.5\t0\t7\n", 2, "score '0.5'"),
    ("q1\ta\t٣.50000\t0\t7\n", 2, "score '٣"),
    (f"q1\ta\t{'9' * 400}.50000\t0\t7\n", 2, "score '999"),
    ("q1\ta\t0.50000\t-1\t7\n", 2, "span '-1'"),
    ("q1\ta\t0.50000\t-\t-\n", 2, "span '-'"),
    ("q1\ta\t0.50000\t٣\t7\n", 2, "span '٣'"),
    (f"q1\ta\t0.50000\t3\t{'9' * 400}\n", 2, "span '3'"),
    ("".join(f"q1\td{99 - n}\t0.50000\t0\t7\n" for n in range(1, 12)), 12, "span '0'"),
    ("q1\ta\t0.50000\t7\t7\n", 2, "span 7-7 is empty"),
    ("q1\ta b\t0.50000\t0\t7\n", 2, "document id 'a b'"),
    ("q1\ta\t0.50000\t0\n", 2, "4 columns instead of 5"),
    ("\n", 2, "1 columns"),
]
DAMAGED_READING = [
    (READ_FIRST + "q9\ta\t0\t7\t10\n", 3, "no query 'q9'"),
    (f"q1\ta\t0\t7\t{READ_TOKENS}\nq1\ta\t7\t9\t1\n", 3, "reads on after"),
    ("q1\ta\t0\t7\t0\n" * (READ_TOKENS + 1), READ_TOKENS + 2, "reads on after"),
    (f"q1\ta\t0\t7\t{'9' * 400}\n", 2, "not a whole number"),
    ("q1\ta\t-1\t7\t10\n", 2, "'-1'"),
    ("q1\ta\t0\t7\t1.0\n", 2, "not a whole number"),
    ("q1\ta\t0\t7\t٣\n", 2, "not a whole number"),
    ("q1\ta\t7\t7\t10\n", 2, "span 7-7 is empty"),
    ("q1\ta b\t0\t7\t10\n", 2, "document id 'a b'"),
    ("q1\ta\t0\t7\n", 2, "4 columns instead of 5"),
    ("\n", 2, "1 columns"),
]

DAMAGED_ARMS = [
    ("q1\ta\t-\t-\t0\t7\n", 2, "a in neither arm"),
    ("q1\ta\t0.500000000\t-\t0\n", 2, "5 columns instead of 6"),
    ("q1\ta\t0.5\t-\t0\t7\n", 2, "value '0.5'"),
    (f"q1\ta\t0.{'٣' * 9}\t-\t0\t7\n", 2, "value '0.٣"),
    ("q1\ta\t1.000000001\t-\t0\t7\n", 2, "value '1.000000001'"),
    ("q1\ta\t-\t0.500000000\t7\t7\n", 2, "span 7-7 is empty"),
    (ARMS_FIRST + "q1\tb\t0.400000000\t-\t0\t7\n", 3, "retrieves b twice"),
    (ARMS_FIRST + "q1\ta\t0.600000000\t-\t0\t7\n", 3, "below a document that it beats"),
]


@pytest.mark.parametrize(
    ("read", "text", "line", "what"),
    [(run_of, HEADER + text, *said) for text, *said in DAMAGED_RUN]
    + [(read_reading, READING_HEADER + text, *said) for text, *said in DAMAGED_READING]
    + [(read_arms, ARMS_HEADER + text, *said) for text, *said in DAMAGED_ARMS],
)
def test_a_damaged_line_is_named_with_its_file(tmp_path, read, text, line, what):
    path = tmp_path / "run.tsv"
    path.write_bytes(text.encode())
    with pytest.raises(InputError) as caught:
        read(path, ["q1", "q2"])
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert what in str(caught.value)


@pytest.mark.parametrize(("read", "whole"), [(run_of, HEADER + FIRST), (read_reading, READING_HEADER + READ_FIRST)])
def test_a_file_that_is_not_a_whole_run_or_reading_list_is_refused(tmp_path, read, whole):
    path = tmp_path / "run.tsv"
    header = whole.partition("\n")[0].encode()
    for data in (b"", b"q1\t1\n", whole.encode()[:-1], header + b"\n\xff\n"):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"run\.tsv: not"):
            read(path, ["q1"])
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "gone.tsv", ["q1"])


def test_a_ranking_longer_than_a_run_is_refused(tmp_path):
    path = tmp_path / "run.tsv"
    ends = ["0\t7"] * EVIDENCE_DEPTH + ["-\t-"] * RUN_DEPTH
    rows = [f"q1\td{999 - i}\t0.50000\t{ends[i]}\n" for i in range(RUN_DEPTH + 1)]
    path.write_bytes((HEADER + "".join(rows)).encode())
    with pytest.raises(InputError, match=f":{RUN_DEPTH + 2}: "):
        read_run(path, CELL, ["q1"])
    rows = [f"q1\td{999 - i}\t0.500000000\t-\t{ends[min(i, RUN_DEPTH)]}\n" for i in range(2 * RUN_DEPTH + 1)]
    path.write_bytes((ARMS_HEADER + "".join(rows)).encode())
    with pytest.raises(InputError, match=f":{2 * RUN_DEPTH + 2}: "):
        read_arms(path, ["q1"])


def test_a_query_without_a_line_has_no_hits_and_reads_nothing(tmp_path):
    path = tmp_path / "run.tsv"
    path.write_bytes((HEADER + FIRST).encode())
    assert run_of(path, ["q0", "q1"]) == Run(CELL, {"q0": (), "q1": (Hit("b", 0.5, Span(0, 7)),)})
    path.write_bytes((READING_HEADER + READ_FIRST).encode())
    assert read_reading(path, ["q0", "q1"]) == {"q0": (), "q1": (ChunkHit("b", Span(0, 7), 100),)}


def test_a_run_is_read_for_the_queries_that_it_names(tmp_path):
    path = tmp_path / "run.tsv.bz2"
    path.write_bytes(bz2.compress((HEADER + FIRST.replace("q1", "q2") + FIRST).encode()))
    assert list(read_run(path, CELL).hits) == ["q2", "q1"]


@pytest.mark.parametrize("pack", [bytes, bz2.compress])
def test_a_run_of_ours_is_told_from_one_of_trecs_packed_or_not(tmp_path, pack):
    path, told = tmp_path / "run", []
    for text in (HEADER + FIRST, ARMS_HEADER + ARMS_FIRST, "q1 Q0 b 1 0.5 tag\n"):
        path.write_bytes(pack(text.encode()))
        told.append(is_run(path))
    assert told == [True, True, False]


def test_a_packed_file_that_is_not_whole_is_refused(tmp_path):
    path, whole = tmp_path / "run.tsv.bz2", bz2.compress((HEADER + FIRST).encode())
    changed = whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]
    bombs = [bz2.compress(HEADER.encode() + filler * (1 << 20)) for filler in (b"\n", b"x")]
    for data in (whole[:-1], whole * 2, changed, b"BZh", b"BZhat", *bombs):
        path.write_bytes(data)
        with pytest.raises(InputError, match="Restore the file"):
            read_run(path, CELL, ["q1"])


def test_packed_lists_that_are_not_whole_or_unpack_to_more_than_lists_do_are_refused(tmp_path):
    whole = b'{"depth": 10, "documents": [], "queries": [], "schema_version": 1, "texts": false}'
    path, small = tmp_path / "lists.json.bz2", bz2.compress(whole)
    bombs = [bz2.compress(filler * ((1 << 24) + 1)) for filler in (b"\n", b"[")]
    path.write_bytes(small)
    assert read_lists(path).depth == 10
    for data, why in [
        *((part, "not whole") for part in (small[:-1], small[:20] + bytes([small[20] ^ 1]) + small[21:], b"BZh")),
        *((bz2.compress(text), "not JSON") for text in (b"", whole * 2, b"[" * 100_000)),
        *((bomb, "more than 16,777,216 bytes unpacked") for bomb in bombs),
    ]:
        path.write_bytes(data)
        with pytest.raises(InputError, match=rf"lists\.json\.bz2: {why}.* Restore the file"):
            read_lists(path)
