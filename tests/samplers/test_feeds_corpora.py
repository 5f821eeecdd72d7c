"""Real bills, served from loopback where their publisher has them, and fetched again."""

from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from runner.base.places import CHECKOUT
from runner.eval_set.corpus import listed_documents
from runner.eval_set.version import load_corpus, newest_version
from tests.conftest import called
from tests.support.corpora import real_file
from tests.support.feed_server import FakeClock, Site, as_xml
from tests.support.loopback import Wire, served

pytestmark = pytest.mark.shared

MANIFEST = CHECKOUT / "eval-sets" / "bills" / "v1" / "corpus.jsonl"


@pytest.mark.slow
def test_bills_v1_comes_again_from_a_mirror_and_what_differs_there_is_named(shared, tmp_path, monkeypatch):
    """Whether govinfo itself has these bytes today is not known here: no test reaches it."""
    monkeypatch.setattr("samplers.feeds.fetch.Clock", FakeClock)
    _, rows = load_corpus(MANIFEST)
    folder, place = tmp_path / "again", {row.doc_id: urlsplit(row.file.url).path for row in rows}
    with served(Site()) as site:
        for row in rows:
            data = real_file(shared, f"bills/bills-dtd/{row.doc_id}.xml").read_bytes()
            site.at(place[row.doc_id], as_xml(data))
        again = ("bills", f"--again={MANIFEST}", f"--endpoint=govinfo={site.url}")
        assert called("fetch", *again, f"--to={folder}") == (0, "")
        version = replace(newest_version("bills"), work=tmp_path / "work")
        assert len(listed_documents(version, folder)) == 400
        other, gone, moved = (row.doc_id for row in rows[::150])
        site.at(place[other], as_xml((folder / f"{other}.xml").read_bytes().replace(b"</text>", b" again</text>", 1)))
        site.at(place[gone], Wire(status=404))
        site.at(place[moved], Wire(status=302, headers=(("Location", f"/app/details/{moved}"),)))
        for doc_id in (other, gone, moved):
            (folder / f"{doc_id}.xml").unlink()
        code, message = called("fetch", *again, f"--to={folder}")
    assert code == 4
    assert all(doc_id in message for doc_id in (other, gone, moved))
    assert "1 of 400 documents are changed and 2 missing" in message
    assert "397 of them are in" in message
