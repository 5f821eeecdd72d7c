"""The case study: a Markdown table of engines and cheaters, and the published page is what it prints."""

import re

import pytest

from runner.base.places import CHECKOUT
from runner.commands import main as cli
from runner.gate.cheaters import CHEATERS
from runner.tools.grade.case_study import ENGINES, case_study
from tests.support.small_collection import write_collection

PAGE = CHECKOUT / "docs" / "null-gate.md"


def rows(text):
    return [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ") and "---" not in line]


def test_the_command_prints_a_row_per_system_best_first(tmp_path, capsys):
    assert cli.main(["grade", "--case-study", str(write_collection(tmp_path / "small"))]) == 0
    head, *systems = rows(capsys.readouterr().out)
    names = [row[0].strip(" *") for row in systems]
    assert sorted(names) == sorted({*ENGINES, *CHEATERS} - {"source-prior"})
    assert {len(row) for row in systems} == {len(head)}
    scores = [float(row[1]) for row in systems]
    assert scores == sorted(scores, reverse=True)


def test_a_collection_that_lacks_a_judged_document_is_refused(tmp_path, capsys):
    folder = write_collection(tmp_path / "small")
    qrels = next(folder.rglob("*.tsv"))
    qrels.write_text(re.sub(r"(?m)^(\S+)\t\S+\t(\d+)\Z", r"\1\tgone\t\2", qrels.read_text().rstrip()) + "\n")
    assert cli.main(["grade", "--case-study", str(folder)]) == 2
    assert "gone" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.shared
def test_the_published_table_is_what_the_tool_prints(shared):
    assert case_study(shared / "bench" / "scifact") in PAGE.read_text(encoding="utf-8")
