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
from tests.support.loopback import served

pytestmark = pytest.mark.shared

MANIFEST = CHECKOUT / "eval-sets" / "bills" / "v1" / "corpus.jsonl"


@pytest.mark.slow
def test_bills_v1_comes_again_from_a_mirror(shared, tmp_path, monkeypatch):
    """Whether govinfo itself has these bytes today is not known here: no test reaches it."""
    monkeypatch.setattr("samplers.feeds.fetch.Clock", FakeClock)
    _, rows = load_corpus(MANIFEST)
    folder = tmp_path / "again"
    with served(Site()) as site:
        for row in rows:
            data = real_file(shared, f"bills/bills-dtd/{row.doc_id}.xml").read_bytes()
            site.at(urlsplit(row.file.url).path, as_xml(data))
        again = ("--source=bills", f"--again={MANIFEST}", f"--endpoint=govinfo={site.url}")
        assert called("fetch", *again, f"--to={folder}") == (0, "")
    version = replace(newest_version("bills"), work=tmp_path / "work")
    assert len(listed_documents(version, folder)) == 400
