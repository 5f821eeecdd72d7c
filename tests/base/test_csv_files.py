"""CSV as people have it: columns by any of their names, three ways of parting them, and a line for every wrong row."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.csv_files import MOST_FAULTS, QUERY, QUERY_FACTS, Faults, csv_rows, inert_text
from runner.base.errors import InputError

FIRST = {"query_id": "1", "query": "who pays", "document": "d"}


def rows(path: Path, content: str | bytes) -> list[tuple[int, dict[str, str]]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return csv_rows(path, QUERY, QUERY_FACTS)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("query_id,query,document\n1,who pays,d\n", [(2, FIRST)]),
        ("QID;Question;doc_id\r\n1; who pays ;d\r\n", [(2, FIRST)]),
        ("\ufeffdocid\ttext\tid\n\nd\twho pays\t1\n", [(3, FIRST)]),
        ('query\n"who, then\npays"\n \nnobody\n', [(2, {"query": "who, then\npays"}), (4, {"query": "nobody"})]),
        ("query,other,query\nwho pays,x,second\n", [(2, {"query": "who pays"})]),
        ("query\n", []),
    ],
)
def test_a_table_is_read_by_the_names_of_its_columns(tmp_path, content, expected):
    assert rows(tmp_path / "a.csv", content) == expected


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ":1: a header with the columns query is expected; query is missing."),
        ("query_id,document\n1,d\n", ":1: a header with the columns query is expected"),
        ("query,document\na\n\nb,c,d\nd,e\n", ":2: 1 fields, and the header has 2."),
        ("query,document\na\n\nb,c,d\nd,e\n", "a.csv:4: 3 fields, and the header has 2."),
        (b"query\na\ncaf\xe9\n", "a.csv:3: not UTF-8."),
        ("query\na\n".encode("utf-16"), "a.csv:1: not UTF-8."),
        ("query\na\n" + "b" * 200_000, "a.csv:3: not a row of CSV (field larger than field limit (131072))."),
        ('query\na\n"never shut\nb\n', "a.csv:3: not a row of CSV (unexpected end of data)."),
        ('query,document\n\n"a\nb",c\n"say" no,d\n', "a.csv:4: not a row of CSV (',' expected after '\"')."),
        ('query,document\na\n"say" no,d\n', "a.csv:2: 1 fields"),
        ('"query" no\n', "a.csv:1: not a row of CSV"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_each_wrong_row(tmp_path, content, said):
    with pytest.raises(InputError) as caught:
        rows(tmp_path / "a.csv", content)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-x", "@a", "'=1", "''-x", "'tis", "a=b", "'"])
def test_a_text_like_a_formula_is_made_inert_and_read_as_it_was(tmp_path, text):
    written = inert_text(text)
    assert written[0] not in "=+-@"
    assert rows(tmp_path / "a.csv", f"query\n{written}\n") == [(2, {"query": text})]


def test_of_many_faults_the_first_are_named_a_line_each_and_the_rest_is_counted():
    faults = Faults()
    for number in range(MOST_FAULTS + 3):
        with faults.of_row():
            raise InputError(f"row {number}")
    with pytest.raises(InputError) as caught:
        faults.stop()
    lines = str(caught.value).split("\n")
    assert (lines[0], lines[-2:]) == ("row 0", [f"row {MOST_FAULTS - 1}", "and 3 more rows"])


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1, max_size=8))
def test_what_a_spreadsheet_writes_is_read_as_it_was(tmp_path_factory, texts):
    import csv

    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["query", "document"], *([f"q{text}", "d"] for text in texts)])
    assert [row["query"] for _, row in csv_rows(path, QUERY, QUERY_FACTS)] == [f"q{text}".strip() for text in texts]
