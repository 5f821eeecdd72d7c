"""Real files of the sources with a feed, served from loopback where their publishers have them, and fetched again."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import pytest

from runner.base.errors import DocumentError
from runner.base.places import CHECKOUT
from runner.eval_set.corpus import listed_documents
from runner.eval_set.version import load_corpus, newest_version
from samplers.feeds.client import Client
from samplers.feeds.endpoints import Endpoints
from samplers.feeds.fetch import fetch
from samplers.feeds.request import FetchRequest
from samplers.feeds.table import FEEDS
from samplers.registry import source_format
from tests.conftest import called
from tests.support.corpora import real_file
from tests.support.feed_server import FakeClock, Site, as_xml, as_zip, bulk_listing
from tests.support.loopback import Wire, as_json, served

pytestmark = pytest.mark.shared

FILES = 12
"""Files of each source, spread over the corpus; each is read twice."""

SOURCES = {
    "bills": ("govinfo", "BILLS-*.xml"),
    "public_laws": ("govinfo", "PLAW-*.xml"),
    "us_code": ("olrc", "usc*-rp113-31.xml"),
    "federal_register": ("federal-register", "fr/*.xml"),
    "ecfr_and_cfr": ("govinfo", "CFR-*-title*-vol*.xml"),
    "congressional_record": ("govinfo", "CREC-*.htm"),
    "committee_reports": ("govinfo", "CRPT-118srpt[12]*.htm"),
    "hearing_transcripts": ("govinfo", "*.htm"),
}
"""Which service has a source's documents, and which files of the corpora are as it has them."""


class Publisher(Site):
    """A site that knows the date of every document of the Register, and one volume of every title of the CFR."""

    def found(self, parts: SplitResult) -> Wire:
        *_, before, year, last = parts.path.split("/")
        if before == "v1" and year == "documents":
            number = last.removesuffix(".json")
            row = {"document_number": number, "publication_date": "2014-01-02", "full_text_xml_url": "x"}
            return as_json(row)
        if before == "CFR" and last.startswith("title-") and last.removeprefix("title-").isdigit():
            return bulk_listing(files=(f"CFR-{year}-{last.replace('-', '')}-vol1.xml",))
        return super().found(parts)


def documents(source: str, path: Path) -> dict[str, str]:
    """Ids and digests of a file's documents; none for a file that cannot be read."""
    try:
        found = source_format(source).read(path.read_bytes(), path.name, frozenset()).documents
    except DocumentError:
        return {}
    return {document.doc_id: document.sha256 for document in found}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_real_documents_come_again_as_they_were(shared, source, tmp_path):
    endpoint, pattern = SOURCES[source]
    paths = sorted((shared / "corpora" / source).rglob(pattern))
    wanted: dict[str, str] = {}
    with served(Publisher()) as site:
        mirrors = {endpoint: site.url}
        for path in paths[:: max(1, len(paths) // FILES)]:
            found = documents(source, path)
            with Client(Endpoints(mirrors), FakeClock(), print) as client:
                located = list(FEEDS[source].locate(client, sorted(found)))
            (item, *others), data = {item for _, item in located} or {""}, path.read_bytes()
            # Of files that were cut out of one volume only the first can be at its address.
            if others or isinstance(item, str) or urlsplit(item.url).path in site.routes:
                continue
            htm = Wire(data, type="text/html")
            made = {"zip": as_zip({item.path: data}), "xml": as_xml(data), "htm": htm}
            site.at(urlsplit(item.url).path, made[item.kind])
            wanted |= found
        assert len(wanted) >= 5
        request = FetchRequest(documents=wanted, endpoints=mirrors)
        report = fetch(source, tmp_path / "out", request, print, FakeClock())
    assert (report.changed, report.missing, report.failed) == ([], [], [])


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
