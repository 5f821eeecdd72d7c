import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.records import READ_TOKENS, ChunkHit, Span
from runner.eval_set.runs import read_reading, reading_bytes

HEADER = "query_id\trank\tdoc_id\tstart\tend\tn_tokens\tcumulative\n"
FIRST = "q1\t1\tb\t0\t7\t100\t100\n"


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


def test_a_query_without_a_line_reads_nothing(tmp_path):
    path = tmp_path / "reading.chunks.tsv"
    path.write_bytes((HEADER + FIRST).encode())
    assert read_reading(path, ["q0", "q1"]) == {"q0": (), "q1": (ChunkHit("b", Span(0, 7), 100),)}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (FIRST + "q9\t1\ta\t0\t7\t10\t10\n", 3, "no query 'q9'"),
        (FIRST + "q1\t3\ta\t0\t7\t10\t110\n", 3, "rank '3' where 2"),
        ("q1\t01\ta\t0\t7\t10\t10\n", 2, "rank '01' where 1"),
        (FIRST + "q1\t2\ta\t0\t7\t10\t10\n", 3, "running sum 10 is not 100 and 10 tokens"),
        (f"q1\t1\ta\t0\t7\t{READ_TOKENS}\t{READ_TOKENS}\nq1\t2\ta\t7\t9\t1\t{READ_TOKENS + 1}\n", 3, "reads on after"),
        ("q1\t1\ta\t-1\t7\t10\t10\n", 2, "'-1'"),
        ("q1\t1\ta\t0\t7\t1.0\t1\n", 2, "not a whole number"),
        ("q1\t1\ta\t0\t7\t٣\t3\n", 2, "not a whole number"),
        ("q1\t1\ta\t7\t7\t10\t10\n", 2, "span 7-7 is empty"),
        ("q1\t1\ta b\t0\t7\t10\t10\n", 2, "document id 'a b'"),
        ("q1\t1\ta\t0\t7\t10\n", 2, "6 columns instead of 7"),
        ("\n", 2, "1 columns"),
    ],
)
def test_a_damaged_line_is_named_with_its_file(tmp_path, text, line, what):
    path = tmp_path / "reading.chunks.tsv"
    path.write_bytes((HEADER + text).encode())
    with pytest.raises(InputError) as caught:
        read_reading(path, ["q1", "q2"])
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert what in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"q1\t1\n", (HEADER + FIRST).encode()[:-1], HEADER.encode() + b"\xff\n"])
def test_a_file_that_is_not_a_whole_reading_list_is_refused(tmp_path, data):
    path = tmp_path / "reading.chunks.tsv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"reading\.chunks\.tsv: not"):
        read_reading(path, ["q1"])


def test_a_file_that_is_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_reading(tmp_path / "gone.chunks.tsv", ["q1"])
