"""Real files of the sources with a feed, served from loopback where their publishers have them, and fetched again."""

from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import pytest

from runner.base.errors import DocumentError
from samplers.feeds.client import Client
from samplers.feeds.endpoints import Endpoints
from samplers.feeds.fetch import fetch
from samplers.feeds.registry import source_feeds
from samplers.feeds.request import FetchRequest
from samplers.registry import source_format
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
            with Client(Endpoints(mirrors), 1000.0, tmp_path / "cache", FakeClock(), print) as client:
                items = source_feeds(source).locate(client, sorted(found)).items
            # Of files that were cut out of one volume only the first can be at its address.
            if len(items) != 1 or items[0][1] != found.keys() or urlsplit(items[0][0].url).path in site.routes:
                continue
            item, data = items[0][0], path.read_bytes()
            htm = Wire(data, type="text/html")
            made = {"zip": as_zip({item.path: data}), "xml": as_xml(data), "htm": htm}
            site.at(urlsplit(item.url).path, made[item.kind])
            wanted |= found
        assert len(wanted) >= 5
        request = FetchRequest(documents=wanted, rate=40.0, endpoints=mirrors, cache=tmp_path / "cache")
        report = fetch(source, tmp_path / "out", request, print, FakeClock())
    assert (report.changed, report.missing, report.failed) == ((), (), ())
