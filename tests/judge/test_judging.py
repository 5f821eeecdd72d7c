"""What a judge gets to read of a document that is too long to be shown whole."""

import pytest
import yaml

from runner.base.errors import InputNeeded
from runner.embed.backends import LocalBackend
from runner.eval_set.batches import all_rows
from runner.evening.evening import Evening
from tests.support.small_set import fake_encoders, make_version, query_rows, write_corpus, write_plans, write_queries

LONG = "BILLS-117hr200ih"
ANSWER = "The lighthouse keeper shall trim the wick at dusk and is paid in herring oil."


@pytest.fixture(name="version", scope="module")
def _version(tmp_path_factory):
    """A version with one bill of many sections more, the last of which answers one query more. Plans draw little."""
    folder = tmp_path_factory.mktemp("judging")
    version = make_version(folder)
    write_plans(version)
    write_queries(version.folder)
    asked = {"id": "q26", "text": "lighthouse keeper trims the wick", "kind": "topic", "origin": "person"}
    rows = {"schema_version": 1, "queries": [*query_rows(), asked]}
    version.queries_path.write_text(yaml.safe_dump(rows, sort_keys=False))
    corpus = write_corpus(folder / "corpus")
    filler = [
        f"Clause {n} orders that ledger {n} of the county be kept, bound and shown to anybody." for n in range(300)
    ]
    body = "".join(
        f"<section><enum>{n}.</enum><text>{text}</text></section>" for n, text in enumerate([*filler, ANSWER])
    )
    (corpus / f"{LONG}.xml").write_text(
        '<bill bill-stage="Introduced-in-House"><metadata><dublinCore><title>117 HR 200 IH: Long Ledger Act</title>'
        "</dublinCore></metadata><form><official-title>A bill on ledgers.</official-title></form>"
        f"<legis-body>{body}</legis-body></bill>"
    )
    return version


@pytest.fixture(name="evening", scope="module")
def _evening(version):
    """An evening that waits for a judge."""
    corpus = version.cache.parent / "corpus"
    evening = Evening(version, corpus, backend=LocalBackend(fake_encoders))
    with pytest.raises(InputNeeded, match="to judge"):
        evening.run()
    return evening


@pytest.fixture(name="rows", scope="module")
def _rows(version, evening):
    return {row.pair: row for row in all_rows(version.judging)}


def test_a_judge_reads_the_passage_that_answers_at_the_end_of_a_long_document(evening, rows):
    most, row = evening.plan.evidence.chars, rows["q26", LONG]
    assert any(ANSWER in passage.text for passage in row.evidence)
    of_long = [row for (_, doc_id), row in rows.items() if doc_id == LONG]
    assert {row.n_chars - row.left_out <= most < row.n_chars for row in of_long} == {True}
    assert {row.left_out for (_, doc_id), row in rows.items() if doc_id != LONG} == {0}


def test_another_plan_with_other_cells_shows_the_same_of_the_same_pairs(version, evening, rows, tmp_path):
    other = make_version(tmp_path)
    write_plans(other)
    plan = yaml.safe_load(other.plan_path(rehearsal=False).read_text())
    gone = [cell for cell in plan["cells"] if "fixed_token_256" in cell or "minilm-static" in cell]
    plan["cells"] = [cell for cell in plan["cells"] if cell not in gone]
    plan["cells"] += [f"minilm-static-384 x {name}" for name in ("recursive_v1", "fixed_token_1024_100", "whole_doc")]
    other.plan_path(rehearsal=False).write_text(yaml.safe_dump(plan))
    write_queries(other.folder)
    other.queries_path.write_bytes(version.queries_path.read_bytes())
    with pytest.raises(InputNeeded, match="to judge"):
        Evening(other, version.cache.parent / "corpus", backend=LocalBackend(fake_encoders)).run()
    found = {row.pair: row.evidence_sha256 for row in all_rows(other.judging)}
    shared = found.keys() & rows.keys()
    assert len([pair for pair in shared if pair[1] == LONG]) > 20
    assert [pair for pair in shared if found[pair] != rows[pair].evidence_sha256] == []
