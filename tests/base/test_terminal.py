"""Tables fit the width that there is, and what an encoding lacks is written in plain letters."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base import progress
from runner.base.terminal import shown, table, terminal_width
from runner.report.summary import ranking_table, run_summary
from tests.support.example_results import BASELINE, BETTER, HYBRID, results, row

HEAD = ("cell", "nDCG@10", "difference", "gate")
words = st.text("abc-_0123456789", min_size=1, max_size=18)
rows_of = st.lists(
    st.tuples(st.one_of(words, st.builds("{} x {}".format, words, words)), words, words, words), min_size=1, max_size=6
)


@given(rows=rows_of, width=st.sampled_from([80, 120]))
def test_a_table_fits_where_its_figures_do_and_breaks_no_word(rows, width):
    lines = table(HEAD, rows, width)
    figures = sum(max(len(row[place]) for row in (HEAD, *rows)) + 2 for place in (1, 2, 3))
    assert max(map(len, lines)) <= max(width, figures + 18)
    said = " ".join(lines).split()
    assert all(word in said for row in rows for cell in row for word in cell.split())


@given(rows=rows_of)
def test_where_no_width_is_known_a_row_is_a_line(rows):
    lines = table(HEAD, rows, 1000)
    assert [line.split("  ")[0] for line in lines[1:]] == [row[0] for row in rows]


@pytest.mark.parametrize("width", [80, 120])
def test_the_verdict_fits_its_terminal_with_whole_names(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    found = results(row(BASELINE), row(BETTER, 0.03), row(HYBRID, -0.02, verdict="insufficient"))
    assert terminal_width(100) == width
    assert max(map(len, run_summary(found).splitlines())) <= width
    parts = {part for row in found.cells for part in row.cell.split(" x ")}
    said = ranking_table(found, width)
    assert all(re.search(rf"(?<!\S){re.escape(part)}(?!\S)", said) for part in parts)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437"])
def test_what_an_encoding_lacks_is_written_in_plain_letters_and_escapes(encoding):
    assert shown("✓ Δ ≥ τ → −0.1", encoding) == "[ok] d >= tau -> -0.1"
    assert shown("✗ 日", encoding) == "[x] \\u65e5"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030", None])
def test_what_an_encoding_has_is_left_alone(encoding):
    assert shown("✓ Δ ≥ τ → −0.1 日", encoding) == "✓ Δ ≥ τ → −0.1 日"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_without_colour_gets_lines(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setenv("NO_COLOR", "1")
    with progress.bars() as bar:
        bar("cell 1 of 9", lambda: None)(progress.Progress(5, 5, 50, 50))
    assert shown.getvalue().startswith("cell 1 of 9 5/5")
    assert "\x1b" not in shown.getvalue()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(5, "less than a minute"), (61, "about 1 minute"), (1500, "about 25 minutes"), (9000, "2.5 hours")],
)
def test_durations_are_said_in_the_unit_of_a_person(seconds, said):
    assert said in progress.duration(seconds)
