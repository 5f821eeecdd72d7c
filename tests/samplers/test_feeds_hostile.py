"""Listings made by an enemy: whatever JSON they are, a feed ends in a draw or in an error with a name."""

import json
import random

import pytest

from runner.base.errors import EvalError
from samplers.feeds.endpoints import is_official
from samplers.feeds.request import FetchRequest
from samplers.feeds.table import FEEDS
from tests.support.feed_server import FakeClock

NUMBERS = (None, True, -1, 0, 10**30, 1.5)
STRANGE = (*NUMBERS, "", "x", "../x", "\x00", "２", [], {}, [None], {"x": {}}, "https://evil.example/")
ROUNDS = 200

BULK_FOLDERS = {"files": [{"name": "118", "justFileName": "118", "folder": True}]}
PAGE = {"count": 2, "nextPage": None, "packages": [{"packageId": "CHRG-118hhrg1"}, {"packageId": "CRPT-118srpt6"}]}
DAYS = {"count": 1, "nextPage": None, "packages": [{"packageId": "CREC-2005-07-20"}]}
PART = {"type": "part", "identifier": "51", "reserved": False}

LISTINGS = {
    "bulkdata/json": {
        "files": [
            {"name": "BILLS-118hr1ih.xml", "justFileName": "BILLS-118hr1ih.xml", "folder": False},
            {"name": "PLAW-118publ1.xml", "justFileName": "PLAW-118publ1.xml", "folder": False},
            *BULK_FOLDERS["files"],
        ]
    },
    "/published/": PAGE,
    "collection=CREC": DAYS,
    "/granules": {"count": 1, "nextPage": None, "granules": [{"granuleId": "CREC-2005-07-20-pt1-PgH1"}]},
    "api/v1/documents": {
        "count": 1,
        "results": [
            {"document_number": "2014-1", "type": "Rule", "publication_date": "2014-01-01", "full_text_xml_url": "x"}
        ],
    },
    "titles.json": {"titles": [{"number": 1, "up_to_date_as_of": "2026-11-20", "reserved": False}]},
    "structure": {"type": "title", "children": [{"type": "chapter", "children": [PART]}]},
}


def spoiled(value, generator, share):
    """The value with some of its nodes replaced by strange ones."""
    if generator.random() < share:
        return generator.choice(STRANGE)
    if isinstance(value, dict):
        return {key: spoiled(item, generator, share) for key, item in value.items() if generator.random() > share / 4}
    if isinstance(value, list):
        return [spoiled(item, generator, share) for item in value] * (1 + (generator.random() < share))
    return value


class Enemy:
    """A client whose every answer is spoiled."""

    def __init__(self, seed, share):
        self.clock = FakeClock()
        self.asked = 0
        self._generator = random.Random(seed)
        self._share = share

    def json(self, url):
        self.asked += 1
        assert is_official(url)
        matching = [None, *(listing for part, listing in LISTINGS.items() if part in url)]
        return json.loads(json.dumps(spoiled(matching[-1], self._generator, self._share)))

    def page(self, url):
        links = [f"xml_usc{title}@119-{law}.zip" for title in ("01", "5", "All") for law in ("73", "73not60", "x")]
        return " ".join(self._generator.sample(links, self._generator.randrange(len(links))))


@pytest.fixture(autouse=True)
def _short_walks(monkeypatch):
    monkeypatch.setattr("samplers.feeds.govinfo.MAX_FOLDERS", 40)
    monkeypatch.setattr("samplers.feeds.govinfo.MAX_PAGES", 40)


@pytest.mark.parametrize("source", FEEDS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3])
def test_a_spoiled_listing_ends_in_files_of_the_publisher_or_in_a_named_error(source, share):
    for seed in range(ROUNDS if share else 1):
        enemy, found = Enemy(seed, share), 0
        try:
            for item in FEEDS[source].listed(enemy, FetchRequest(), lambda _: None):
                assert is_official(item.url)
                assert "/" not in item.path
                found += 1
        except EvalError:
            pass
        assert enemy.asked < 1000
        assert share or found or source == "us_code"  # whose page is otherwise than this one
