"""What a judge gets to read of a document that is too long to be shown whole."""

import json

import pytest
import yaml

from runner.base.errors import InputNeeded
from runner.embed.backends import LocalBackend
from runner.evening.evening import Evening
from runner.judge.prep_labels import EVIDENCE_CHARS
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
        f"Clause {n} orders that ledger {n} of the county be kept, bound and shown to anybody." for n in range(150)
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


def test_a_judge_reads_the_passage_that_answers_at_the_end_of_a_long_document(version, evening):
    paths = sorted(version.work.rglob("batch-*.jsonl"))
    exported = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    rows = {(row["query_id"], row["doc_id"]): row for row in exported}
    whole = version.record / "runs" / "bm25-x-whole_doc.tsv"
    [found] = [line.split("\t") for line in whole.read_text().splitlines() if line.startswith("q26\t1\t")]
    assert found[2] == LONG
    assert int(found[4]) == 0
    assert int(found[5]) > EVIDENCE_CHARS, "this cell points at the whole document"
    shown = rows["q26", LONG]["evidence"]
    assert any(ANSWER in passage["text"] for passage in shown)
    assert sum(len(passage["text"]) for passage in shown) <= EVIDENCE_CHARS
    others = [row for (_, doc_id), row in rows.items() if doc_id == LONG]
    assert all(sum(len(passage["text"]) for passage in row["evidence"]) <= EVIDENCE_CHARS for row in others)


def test_passages_come_from_sparse_windows_too_which_are_no_cell_of_the_version(version, evening):
    best = evening.runs.lexical_windows().hits["q26"][0]
    document = next(document for document in evening.documents if document.doc_id == LONG)
    assert best.doc_id == LONG
    assert ANSWER in document.text[best.span.start : best.span.end]
    assert best.span.end - best.span.start < EVIDENCE_CHARS
    assert not list(version.record.rglob("bm25-x-fixed_token_256_25*"))
