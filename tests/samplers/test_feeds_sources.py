"""What each feed lists and draws, against a loopback server that speaks its shapes."""

from collections import Counter
from datetime import date, timedelta
from urllib.parse import urlsplit

import pytest

from runner.base.errors import BackendError, InputError
from runner.base.places import CHECKOUT
from runner.eval_set.version import load_corpus
from samplers.feeds.client import Client
from samplers.feeds.download import had
from samplers.feeds.draw import OVERSAMPLING, drawn
from samplers.feeds.ecfr import part_of
from samplers.feeds.endpoints import ENDPOINTS, Endpoints, Refused
from samplers.feeds.federal_register import WINDOW
from samplers.feeds.govinfo_bulk import status_item
from samplers.feeds.govinfo_content import bill_item, granule_item, law_item, print_item
from samplers.feeds.olrc import unzipped
from samplers.feeds.registry import feed_of, source_feeds
from samplers.feeds.request import FetchRequest, Item
from tests.support.feed_server import FakeClock, Site, as_zip, bulk_listing
from tests.support.loopback import Wire, as_json, served

KEYS = ("PER_SOURCE_EVAL_GOVINFO_KEY", "PER_SOURCE_EVAL_CONGRESS_KEY")


@pytest.fixture(name="clock")
def _clock():
    return FakeClock()


@pytest.fixture(name="drawing")
def _drawing(tmp_path, clock, monkeypatch):
    """A site for one endpoint, and a function that draws from it."""
    for key in KEYS:
        monkeypatch.setenv(key, "k")
    monkeypatch.setattr("samplers.feeds.congress_gov.PAGE_SIZE", 3)

    class Drawing:
        def __init__(self, site):
            self.site = site
            self.said = []

        def client(self, endpoint):
            return Client(Endpoints({endpoint: self.site.url}), 1000.0, tmp_path / "cache", clock, print)

        def draw(self, source, endpoint, **fields):
            request = FetchRequest(**fields)
            _, feed = feed_of(source, request)
            with self.client(endpoint) as client:
                return feed.draw(client, request, self.said.append)

        def locate(self, source, endpoint, *doc_ids):
            with self.client(endpoint) as client:
                return source_feeds(source).locate(client, doc_ids)

    with served(Site()) as site:
        yield Drawing(site)


def paths(draw):
    return [item.path for item in draw.items]


# --- the draw ---------------------------------------------------------------------------------------------------


def items(n, strata=2):
    return [Item(f"f{i:03}.xml", f"https://www.govinfo.gov/{i}", "xml", f"s{i % strata}") for i in range(n)]


def test_a_draw_is_the_same_whatever_the_order_and_the_repeats_of_a_listing():
    frame = items(60)
    assert drawn(frame, 20, 7) == drawn([*reversed(frame), *frame], 20, 7)


def test_another_seed_draws_others():
    assert drawn(items(60), 20, 7) != drawn(items(60), 20, 8)


def test_a_draw_keeps_the_shares_of_the_strata():
    frame = [*items(30, strata=1), *(Item(f"g{i}.xml", "", "xml", "big") for i in range(90))]
    counts = Counter(item.stratum for item in drawn(frame, 40, 1).items)
    assert counts == {"s0": 10, "big": 30}


def test_a_draw_holds_one_of_each_family():
    frame = [Item(f"v{i}.xml", "", "xml", "s", f"family-{i // 3}") for i in range(30)]
    draw = drawn(frame, 100, 1)
    assert (len(draw.items), draw.n_listed) == (10, 30)
    assert len({item.family for item in draw.items}) == 10


# --- govinfo bulk data ------------------------------------------------------------------------------------------

BILLS = tuple(f"BILLS-118hr{n}{version}.xml" for n in range(1, 31) for version in ("ih", "rh"))


def bulk(site, listing):
    """Folders of the bulk data by their paths, with the names in each; a name with a full stop is a file's."""
    for path, _, names in (folder.partition(":") for folder in listing.split("; ")):
        folders, files = (tuple(n for n in names.split() if ("." in n) == is_file) for is_file in (False, True))
        site.at(f"/bulkdata/json/{path}", bulk_listing(folders=folders, files=files))


def bulk_bills(site):
    bulk(site, "BILLS: 118 119 resources; BILLS/118: 1; BILLS/119: 1")
    bulk(site, "BILLS/118/1: hr s notes.txt; BILLS/119/1: hr s notes.txt; BILLS/119/1/hr: BILLS-119hr888ih.xml")
    bulk(
        site, f"BILLS/118/1/hr: {' '.join(BILLS)} BILLS-118-1-hr.zip; BILLS/118/1/s: BILLS-118s5es.xml; BILLS/119/1/s:"
    )


def test_bills_are_listed_folder_by_folder_and_one_version_of_each_is_drawn(drawing):
    bulk_bills(drawing.site)
    draw = drawing.draw("bills", "govinfo", size=100)
    assert draw.n_listed == 62
    assert len(draw.items) == 32
    (bill,) = [item for item in draw.items if item.path == "BILLS-119hr888ih.xml"]
    assert bill.url == "https://www.govinfo.gov/bulkdata/BILLS/119/1/hr/BILLS-119hr888ih.xml"
    assert (bill.stratum, bill.family) == ("119/house/introduced", "119-hr-888")
    assert not any("resources" in path for path in drawing.site.paths)


def test_every_listing_is_asked_for_as_json(drawing):
    bulk_bills(drawing.site)
    drawing.draw("bills", "govinfo")
    assert {headers["accept"] for _, headers in drawing.site.log} == {"application/json"}


def test_one_congress_is_listed_alone(drawing):
    bulk_bills(drawing.site)
    assert paths(drawing.draw("bills", "govinfo", congresses=(119,))) == ["BILLS-119hr888ih.xml"]
    assert not any("/118" in path for path in drawing.site.paths)


def test_more_files_are_drawn_than_documents_are_wanted(drawing):
    bulk_bills(drawing.site)
    assert len(drawing.draw("bills", "govinfo", size=10).items) == 10 * OVERSAMPLING


def test_flags_that_leave_nothing_are_said(drawing):
    bulk_bills(drawing.site)
    with pytest.raises(BackendError, match="lists no file"):
        drawing.draw("bills", "govinfo", congresses=(99,))


def named(name):
    return {"files": [{"name": name, "justFileName": name, "folder": True}]}


BULK = ("bills", "govinfo", "/bulkdata/json/BILLS")
TITLES = ("ecfr_and_cfr", "ecfr", "/api/versioner/v1/titles.json")
REGISTER = ("federal_register", "federal-register", "/api/v1/documents.json")
UNNUMBERED = (
    {},
    {"document_number": "../x", "publication_date": "2014-01-01"},
    {"document_number": "2014-1"},
    "x",
    None,
)


@pytest.mark.parametrize(
    ("feed", "listing", "message"),
    [
        *((BULK, named(name), "whose name is none") for name in ("../../etc/passwd", "a/b", "", ".hidden", "x" * 200)),
        *((BULK, named(name), "whose name is none") for name in ("a\nb", None, 7)),
        *((BULK, listing, "BILLS") for listing in ([], {}, {"files": {}}, {"files": ["x"]}, "x", None)),
        *((TITLES, titles, r"titles\.json") for titles in ([], {"titles": [7]}, {"titles": None})),
        (TITLES, {"titles": [{"number": 1}]}, r"titles\.json"),
        *((REGISTER, {"count": 1, "results": [row]}, r"documents\.json") for row in UNNUMBERED),
        (REGISTER, {"count": 7, "results": []}, "states 7 documents"),
    ],
)
def test_a_listing_that_is_none_or_names_what_is_none_ends_the_run(drawing, feed, listing, message):
    source, endpoint, path = feed
    drawing.site.at(path, as_json(listing))
    with pytest.raises(BackendError, match=message):
        drawing.draw(source, endpoint, **(YEAR if endpoint == "federal-register" else {}))


def test_a_listing_that_nests_for_ever_ends(drawing, monkeypatch):
    monkeypatch.setattr("samplers.feeds.govinfo_bulk.MAX_LISTINGS", 20)
    congresses = [str(n) for n in range(100, 150)]
    bulk(drawing.site, "; ".join((f"BILLS: {' '.join(congresses)}", *(f"BILLS/{n}:" for n in congresses))))
    with pytest.raises(BackendError, match="more than 20 folders"):
        drawing.draw("bills", "govinfo")


FEBRUARY = {"since": date(2024, 2, 1), "until": date(2024, 2, 29), "feed": "issues"}
OF_LAWS = "PLAW: 118 resources; PLAW/118: public; PLAW/118/public: PLAW-118publ22.xml PLAW-118-public.zip"
OF_ISSUES = "FR: 2023 2024 2025 resources; FR/2024: 01 02 03; FR/2024/02: FR-2024-02-12.xml FR-2024-02.zip"
OF_VOLUMES = (
    "CFR: 2024 2025 2026 resources; CFR/2025: title-1 title-14; CFR/2025/title-1: CFR-2025-title1-vol1.xml; "
    "CFR/2025/title-14: CFR-2025-title14-vol5.xml graphics.zip"
)


@pytest.mark.parametrize(
    ("source", "fields", "listing", "found"),
    [
        ("public_laws", {}, OF_LAWS, ["PLAW/118/public/PLAW-118publ22.xml"]),
        ("federal_register", FEBRUARY, OF_ISSUES, ["FR/2024/02/FR-2024-02-12.xml"]),
        (
            "ecfr_and_cfr",
            {"feed": "annual"},
            OF_VOLUMES,
            ["CFR/2025/title-1/CFR-2025-title1-vol1.xml", "CFR/2025/title-14/CFR-2025-title14-vol5.xml"],
        ),
        (
            "ecfr_and_cfr",
            {"feed": "titles"},
            "ECFR: title-1 resources; ECFR/title-1: ECFR-title1.xml",
            ["ECFR/title-1/ECFR-title1.xml"],
        ),
    ],
)
def test_a_collection_is_listed_by_congress_month_year_or_title(drawing, source, fields, listing, found):
    """Volumes of the CFR are last year's unless dates say otherwise; folders that cannot hold a file are not asked."""
    bulk(drawing.site, listing)
    draw = drawing.draw(source, "govinfo", **fields)
    assert [item.url for item in draw.items] == [f"https://www.govinfo.gov/bulkdata/{path}" for path in found]
    assert set(drawing.site.paths) == set(drawing.site.routes)


def test_the_status_of_a_bill_lies_by_congress_and_type():
    bill = bill_item("BILLS-119hconres4ih.xml")
    assert status_item(bill).url == (
        "https://www.govinfo.gov/bulkdata/BILLSTATUS/119/hconres/BILLSTATUS-119hconres4.xml"
    )


# --- govinfo API ------------------------------------------------------------------------------------------------


def packages(site, names, *, page=2, count=None, path=None):
    """A listing by offsetMark, as the API pages it."""

    def answer(query):
        assert int(query["pageSize"][0]) == 1000
        start = 0 if query["offsetMark"] == ["*"] else int(query["offsetMark"][0][3:])
        rows = [{"packageId": name, "lastModified": "2026-01-01T00:00:00Z"} for name in names[start : start + page]]
        following = None
        if start + page < len(names):
            following = f"https://api.govinfo.gov{path}?offsetMark=AoE{start + page}&pageSize=1000&collection=CHRG"
        return as_json({"count": count or len(names), "message": None, "nextPage": following, "packages": rows})

    site.calls(path, answer)


HEARINGS = [f"CHRG-118{chamber}{n}" for n in range(50001, 50006) for chamber in ("hhrg", "shrg")]
PUBLISHED = "/published/1993-01-01/2026-11-22"


def test_hearings_are_listed_page_by_page(drawing):
    packages(drawing.site, HEARINGS, path=PUBLISHED)
    draw = drawing.draw("hearing_transcripts", "govinfo-api", size=100)
    assert paths(draw) == sorted(f"{name}.htm" for name in HEARINGS)
    assert draw.items[0].url == ("https://www.govinfo.gov/content/pkg/CHRG-118hhrg50001/html/CHRG-118hhrg50001.htm")
    assert {item.stratum for item in draw.items} == {"118/hhrg", "118/shrg"}
    assert drawing.site.paths == [PUBLISHED] * 5
    assert "collection=CHRG" in drawing.site.log[0][0]


def test_dates_and_congresses_narrow_the_listing(drawing):
    packages(drawing.site, ["CRPT-118srpt62"], path="/published/2023-01-01/2023-12-31")
    fields = {"since": date(2023, 1, 1), "until": date(2023, 12, 31), "congresses": (117, 118)}
    assert paths(drawing.draw("committee_reports", "govinfo-api", **fields)) == ["CRPT-118srpt62.htm"]
    assert [query.partition("congress=")[2] for query, _ in drawing.site.log] == ["117", "118"]


@pytest.mark.parametrize("following", ["https://evil.example/published", "https://www.govinfo.gov/published", "//x/y"])
def test_a_following_page_on_another_host_is_not_followed(drawing, following):
    rows = [{"packageId": HEARINGS[0]}]
    drawing.site.at(PUBLISHED, as_json({"count": 2, "nextPage": following, "packages": rows}))
    with pytest.raises(Refused):
        drawing.draw("hearing_transcripts", "govinfo-api")
    assert len(drawing.site.log) == 1


def test_a_following_page_that_was_read_before_ends_the_run(drawing):
    first = f"https://api.govinfo.gov{PUBLISHED}?collection=CHRG&offsetMark=%2A&pageSize=1000"
    drawing.site.at(PUBLISHED, as_json({"count": 9, "nextPage": first, "packages": [{"packageId": HEARINGS[0]}]}))
    with pytest.raises(BackendError, match="leads back"):
        drawing.draw("hearing_transcripts", "govinfo-api")


def test_a_listing_that_is_short_of_its_count_is_not_taken_for_whole(drawing):
    packages(drawing.site, HEARINGS, count=2000, path=PUBLISHED)
    with pytest.raises(BackendError, match="states 2,000 packages and lists 10"):
        drawing.draw("hearing_transcripts", "govinfo-api")


def test_a_key_in_a_following_page_is_not_sent_on(drawing):
    following = f"https://api.govinfo.gov{PUBLISHED}?offsetMark=2&api_key=SECRET"
    rows = {"packages": [{"packageId": HEARINGS[0]}], "count": 2}
    drawing.site.at(PUBLISHED, as_json(rows | {"nextPage": following}), as_json(rows | {"nextPage": None}))
    drawing.draw("hearing_transcripts", "govinfo-api")
    assert not any("SECRET" in path for path in (path for path, _ in drawing.site.log))


def test_the_record_is_drawn_by_days_and_then_by_granules(drawing):
    days = [f"CREC-{year}-03-{day:02}" for year in (2004, 2005) for day in range(1, 11)]
    packages(drawing.site, days, page=1000, path=PUBLISHED)
    for day in days:
        rows = [{"granuleId": f"{day}-pt1-Pg{page}", "title": "X"} for page in ("H1", "H2-3", "S4", "E5", "D6")]
        rows.append({"granuleId": f"{day}-pt1-PgH-FrontMatter", "title": "X"})
        drawing.site.at(f"/packages/{day}/granules", as_json({"count": 6, "nextPage": None, "granules": rows}))
    draw = drawing.draw("congressional_record", "govinfo-api", size=25)
    assert len(draw.items) == 15  # three days of five granules each, for 30 wanted at ten a day
    assert Counter(item.stratum.partition("/")[0] for item in draw.items) == {
        "house": 6,
        "senate": 3,
        "extensions": 3,
        "digest": 3,
    }
    name = draw.items[0].path.removesuffix(".htm")
    assert draw.items[0].url == f"https://www.govinfo.gov/content/pkg/{name[:15]}/html/{name}.htm"


# --- Federal Register -------------------------------------------------------------------------------------------


def register(site, documents, *, cap=None):
    """documents.json over (number, day) pairs, which shows no more than `cap` results and counts no more either."""

    def answer(query):
        first = query["conditions[publication_date][gte]"][0]
        last = query["conditions[publication_date][lte]"][0]
        found = [(number, day) for number, day in documents if first <= day <= last][:cap]
        if not found:
            return as_json({"count": 0, "description": "no documents"})
        size, page = int(query["per_page"][0]), int(query["page"][0])
        rows = [
            {
                "document_number": number,
                "publication_date": day,
                "type": "Proposed Rule",
                "full_text_xml_url": None if number.endswith("-9") else "https://www.federalregister.gov/x.xml",
            }
            for number, day in found[(page - 1) * size : page * size]
        ]
        total = -(-len(found) // size)
        return as_json({"count": len(found), "total_pages": total, "results": rows})

    site.calls("/api/v1/documents.json", answer)


def many(n_days, a_day, start=date(2014, 1, 1)):
    return [(f"2014-{day:03}{n:03}", str(start + timedelta(days=day))) for day in range(n_days) for n in range(a_day)]


YEAR = {"since": date(2014, 1, 1), "until": date(2014, 12, 31)}


def test_documents_of_the_register_are_listed_by_date(drawing):
    register(drawing.site, [("2014-29121", "2014-12-10"), ("2014-00007-9", "2014-12-11")])
    draw = drawing.draw("federal_register", "federal-register", **YEAR)
    (item,) = draw.items
    assert item.url == "https://www.federalregister.gov/documents/full_text/xml/2014/12/10/2014-29121.xml"
    assert (item.path, item.stratum) == ("2014-29121.xml", "proposed/2014")
    assert "1 without a text in XML" in drawing.said[-1]


def test_a_window_of_results_is_never_reached(drawing):
    documents = many(40, 110)
    register(drawing.site, documents, cap=WINDOW)
    draw = drawing.draw("federal_register", "federal-register", size=5000, **YEAR)
    assert draw.n_listed == len(documents) == 4400


def test_a_day_with_more_than_a_window_shows_ends_the_run(drawing):
    register(drawing.site, many(1, 2100), cap=WINDOW)
    with pytest.raises(BackendError, match="more than a query can show"):
        drawing.draw("federal_register", "federal-register", **YEAR)


def test_notices_are_listed_only_where_the_options_ask_for_them(drawing):
    register(drawing.site, many(1, 1))
    drawing.draw("federal_register", "federal-register", **YEAR)
    drawing.draw("federal_register", "federal-register", options=frozenset(("notices",)), **YEAR)
    asked = ["NOTICE" in path for path, _ in drawing.site.log]
    assert False in asked
    assert True in asked
    assert asked == sorted(asked)


def test_documents_of_a_manifest_are_found_by_their_numbers(drawing):
    row = {"document_number": "E8-23178", "publication_date": "2008-10-01", "full_text_xml_url": "x", "type": "Rule"}
    drawing.site.at("/api/v1/documents/E8-23178.json", as_json(row))
    located = drawing.locate("federal_register", "federal-register", "FR-E8-23178", "FR-2001-1", "x")
    ((item, ids),) = located.items
    assert item.url.endswith("/2008/10/01/E8-23178.xml")
    assert ids == {"FR-E8-23178"}
    assert sorted(located.missing) == ["FR-2001-1", "x"]


# --- eCFR -------------------------------------------------------------------------------------------------------


def versioner(site, *, current="2026-11-20"):
    rows = [
        {"number": 1, "name": "General", "up_to_date_as_of": current, "reserved": False},
        {"number": 35, "name": "Reserved", "up_to_date_as_of": None, "reserved": True},
    ]
    site.at("/api/versioner/v1/titles.json", as_json({"titles": rows, "meta": {"import_in_progress": False}}))
    parts = [{"type": "part", "identifier": str(n), "reserved": n == 7, "children": []} for n in (1, 2, 7)]
    chapter = {"type": "chapter", "identifier": "I", "children": [{"type": "subchapter", "children": parts}]}
    tree = {"type": "title", "identifier": "1", "children": [chapter, {"type": "part", "identifier": "60-1"}]}
    site.at(f"/api/versioner/v1/structure/{current}/title-1.json", as_json(tree))
    return tree


def test_parts_of_the_ecfr_are_drawn_as_of_the_day_they_are_current_to(drawing):
    versioner(drawing.site)
    draw = drawing.draw("ecfr_and_cfr", "ecfr")
    assert paths(draw) == [f"ECFR-2026-11-20-title1-part{part}.xml" for part in ("1", "2", "60-1")]
    assert draw.items[0].url == "https://www.ecfr.gov/api/versioner/v1/full/2026-11-20/title-1.xml?part=1"


def test_an_earlier_day_of_the_ecfr_can_be_asked_for_and_a_later_one_is_not(drawing):
    tree = versioner(drawing.site)
    drawing.site.at("/api/versioner/v1/structure/2024-05-17/title-1.json", as_json(tree))
    assert "2024-05-17" in paths(drawing.draw("ecfr_and_cfr", "ecfr", until=date(2024, 5, 17)))[0]
    assert "2026-11-20" in paths(drawing.draw("ecfr_and_cfr", "ecfr", until=date(2027, 1, 1)))[0]


def test_a_day_before_the_ecfr_began_is_refused(drawing):
    versioner(drawing.site)
    with pytest.raises(InputError, match="goes back to 2017-01-03"):
        drawing.draw("ecfr_and_cfr", "ecfr", until=date(2012, 1, 1))


@pytest.mark.parametrize(
    ("unit", "part"),
    [
        ("1009.1", "1009"),
        ("60-1.4", "60-1"),
        ("52.203-1", "52"),
        ("appendix-a-to-part-1003", "1003"),
        ("51-table-1.2", "51"),
        ("240.10b-5", "240"),
        ("unnumbered", ""),
    ],
)
def test_a_unit_of_the_cfr_names_its_part(unit, part):
    assert part_of(unit) == part


def test_sections_of_a_manifest_are_found_by_part_by_volume_or_by_title(drawing):
    bulk(drawing.site, "CFR/2012/title-12: CFR-2012-title12-vol10.xml CFR-2012-title12-vol9.xml readme.xml")
    ids = ("cfr:12-1009.1@2012", "cfr:1-51.1@2026-11-20", "cfr:1-51.3@2026-11-20", "cfr:1-18.1@ecfr", "cfr:1-x@undated")
    located = drawing.locate("ecfr_and_cfr", "govinfo", *ids)
    assert [(item.path, len(wanted)) for item, wanted in located.items] == [
        ("ECFR-2026-11-20-title1-part51.xml", 2),
        ("CFR-2012-title12-vol9.xml", 1),
        ("CFR-2012-title12-vol10.xml", 1),
        ("ECFR-title1.xml", 1),
    ]
    assert list(located.missing) == ["cfr:1-x@undated"]


# --- United States Code -----------------------------------------------------------------------------------------

POINT = "119-73not60"


def release_page(*titles, point=POINT):
    congress, _, law = point.partition("-")
    links = "".join(
        f'<a href="releasepoints/us/pl/{congress}/{law}/xml_usc{title}@{point}.zip" title="XML">[XML]</a>'
        for title in ("All", *titles)
    )
    head = f'<h3 class="releasepointinformation">Public Law {point} (01/23/2026)</h3>'
    return Wire(f"<!DOCTYPE html><html><body>{head}{links}</body></html>".encode(), type="text/html")


def test_titles_of_the_code_are_drawn_at_the_current_release_point(drawing):
    drawing.site.at("/download/download.shtml", release_page("01", "05A", "54"))
    draw = drawing.draw("us_code", "olrc")
    assert paths(draw) == ["usc01.xml", "usc05A.xml", "usc54.xml"]
    assert draw.items[0].url == (
        "https://uscode.house.gov/download/releasepoints/us/pl/119/73not60/xml_usc01@119-73not60.zip"
    )


def test_a_page_without_a_release_point_ends_the_run(drawing):
    page = Wire(b"<!DOCTYPE html><html><body>Down for maintenance</body></html>", type="text/html")
    drawing.site.at("/download/download.shtml", page)
    with pytest.raises(BackendError, match="names 0 release points"):
        drawing.draw("us_code", "olrc")


def test_a_title_comes_out_of_its_zip(drawing):
    item = Item("usc01.xml", f"https://uscode.house.gov/download/xml_usc01@{POINT}.zip", "zip")
    drawing.site.at(urlsplit(item.url).path, as_zip({"usc01.xml": b"<uscDoc/>", "readme.txt": b"x"}))
    with drawing.client("olrc") as client:
        assert had(client, item, 1000).data == b"<uscDoc/>"


def zipped(members):
    return as_zip(members).body


SOUND = zipped({"usc01.xml": b"<uscDoc>" + bytes(range(200)) + b"</uscDoc>"})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *((zipped(dict.fromkeys(names, b"<a/>")), "XML files where one is due") for names in ((), ("a.xml", "b.xml"))),
        (zipped({"a.txt": b"x"}), "XML files where one is due"),
        (zipped({"a.xml": b" " * 5000}), "more than"),
        *((SOUND[:keep] + b"\0" * 40, "damaged") for keep in (3, 30, 60, 90)),
    ],
    ids=["none", "two", "another", "too much", "cut at 3", "cut at 30", "cut at 60", "cut at 90"],
)
def test_a_zip_that_is_damaged_declares_too_much_or_holds_another_number_of_files_is_refused(data, message):
    with pytest.raises(Refused, match=message):
        unzipped(data, "usc01.xml", 1000)


def test_a_zip_of_very_many_files_is_refused_before_they_are_listed(monkeypatch):
    monkeypatch.setattr("zipfile.ZipFile", lambda _: pytest.fail("the archive was opened"))
    with pytest.raises(Refused, match="more than 100 files"):
        unzipped(b"PK\x01\x02" * 101, "usc01.xml", 10_000)


def test_a_zip_that_declares_less_than_it_holds_is_refused():
    data = bytearray(zipped({"a.xml": b" " * 5000}))
    size = (5000).to_bytes(4, "little")
    while size in data:
        at = data.index(size)
        data[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(Refused):
        unzipped(bytes(data), "usc01.xml", 1000)


def test_sections_of_a_manifest_are_found_in_their_titles(drawing):
    ids = ("usc:9-1@113-31", "usc:9-2@113-31", "usc:5A-1@113-31", "usc:x")
    located = drawing.locate("us_code", "olrc", *ids)
    assert [(item.path, len(wanted)) for item, wanted in located.items] == [("usc05A.xml", 1), ("usc09.xml", 2)]
    assert list(located.missing) == ["usc:x"]


def test_titles_of_two_release_points_keep_apart(drawing):
    located = drawing.locate("us_code", "olrc", "usc:9-1@113-31", "usc:9-1@119-73not60")
    assert [item.path for item, _ in located.items] == ["usc09@113-31.xml", "usc09@119-73not60.xml"]


# --- Congress.gov -----------------------------------------------------------------------------------------------


def reports(site, *, total=None):
    names = ("R47324", "IF10354", "IN12354", "98-317")
    rows = [
        {"id": name, "publishDate": f"202{n}-05-01T00:00:00Z", "version": 18, "contentType": "Reports"}
        for n, name in enumerate(names)
    ]

    def answer(query):
        start, limit = int(query["offset"][0]), int(query["limit"][0])
        found = rows[start : start + min(limit, 3)]
        return as_json({"CRSReports": found, "pagination": {"count": total or len(rows)}})

    site.calls("/v3/crsreport", answer)
    for name in names:
        formats = [{"format": "PDF", "url": f"https://www.congress.gov/x/{name}.pdf"}]
        if name != "98-317":
            formats.append(
                {"format": "HTML", "url": f"https://www.congress.gov/crs_external_products/R/HTML/{name}.html"}
            )
        site.at(f"/v3/crsreport/{name}", as_json({"CRSReport": {"id": name, "version": 18, "formats": formats}}))


def test_reports_are_listed_and_each_says_where_its_page_lies(drawing):
    reports(drawing.site)
    draw = drawing.draw("crs_reports", "congress-api")
    assert paths(draw) == ["IF10354v18.html", "IN12354v18.html", "R47324v18.html"]
    assert draw.items[2].url == "https://www.congress.gov/crs_external_products/R/HTML/R47324.html"
    assert "1 of 4 reports drawn have no HTML" in drawing.said[-1]


def test_reports_are_narrowed_by_the_day_of_publication(drawing):
    reports(drawing.site)
    draw = drawing.draw("crs_reports", "congress-api", since=date(2021, 1, 1), until=date(2021, 12, 31))
    assert paths(draw) == ["IF10354v18.html"]


def test_a_listing_of_reports_that_ends_early_is_not_taken_for_whole(drawing):
    reports(drawing.site, total=9)
    with pytest.raises(BackendError, match="states 9 reports and lists 4"):
        drawing.draw("crs_reports", "congress-api")


def test_a_report_s_page_on_another_host_is_refused(drawing):
    formats = [{"format": "HTML", "url": "https://evil.example/x.html"}]
    drawing.site.at("/v3/crsreport/R47324", as_json({"CRSReport": {"version": 18, "formats": formats}}))
    located = drawing.locate("crs_reports", "congress-api", "R47324v18")
    assert "none of those that this feed may reach" in located.missing["R47324v18"]


def test_only_the_newest_version_of_a_report_is_served(drawing):
    reports(drawing.site)
    located = drawing.locate("crs_reports", "congress-api", "R47324v18", "IF10354v17", "98-317v18", "nothing")
    assert [item.path for item, _ in located.items] == ["R47324v18.html"]
    assert located.missing["IF10354v17"] == "served is IF10354v18"
    assert located.missing["98-317v18"] == "no HTML of it is served"
    assert "nothing" in located.missing


# --- names and registry -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (bill_item, "BILLS-119hr888ih.txt"),
        (bill_item, "BILLS-119hr888.xml"),
        (bill_item, "BILLSTATUS-119hr888.xml"),
        (law_item, "PLAW-118-public.xml"),
        (print_item, "CPRT-118HPRT1"),
        (print_item, "CHRG-118hhrg1/../../x"),
        (granule_item, "CREC-2018-01-03-pt2-PgH-FrontMatter"),
        (granule_item, "CREC-2018-01-03"),
    ],
)
def test_names_of_other_kinds_are_no_documents(make, name):
    assert make(name) is None


def test_documents_of_govinfo_are_found_by_their_ids(drawing):
    assert drawing.locate("bills", "govinfo", "BILLS-110s2062ris").items[0][0].url == (
        "https://www.govinfo.gov/content/pkg/BILLS-110s2062ris/xml/BILLS-110s2062ris.xml"
    )
    laws = drawing.locate("public_laws", "govinfo", "PLAW-113publ79-s1001", "PLAW-113publ79-s2", "PLAW-112pvtl1-s1")
    assert [(urlsplit(item.url).path, len(ids)) for item, ids in laws.items] == [
        ("/bulkdata/PLAW/113/public/PLAW-113publ79.xml", 2),
        ("/content/pkg/PLAW-112pvtl1/uslm/PLAW-112pvtl1.xml", 1),
    ]
    assert drawing.locate("hearing_transcripts", "govinfo", "CHRG-110hhrg44900", "x").missing == {
        "x": "its id is none of govinfo's"
    }
    assert drawing.locate("congressional_record", "govinfo", "CREC-2005-07-20-pt1-PgH6174").items


def test_every_bill_of_the_committed_manifest_names_the_file_of_its_package(drawing):
    _, rows = load_corpus(CHECKOUT / "eval-sets" / "bills" / "v1" / "corpus.jsonl")
    located = drawing.locate("bills", "govinfo", *(row.doc_id for row in rows))
    places = {doc_id: item.url for item, ids in located.items for doc_id in ids}
    assert places == {row.doc_id: row.file.url for row in rows}
    assert all(row.file.package == row.doc_id and row.doc_id.endswith(row.file.edition) for row in rows)
    assert {row.file.edition for row in rows} >= {"ih", "rh", "eh", "enr", "rs"}
    assert len(rows) == 400


@pytest.mark.parametrize("source", ["gao_reports", "cbo_cost_estimates", "statements_of_administration_policy"])
def test_a_source_without_a_feed_says_where_to_look(source):
    with pytest.raises(InputError, match=r"has no feed: .*https://.*--corpus-path"):
        source_feeds(source)


def test_a_feed_that_a_source_lacks_is_named_with_those_it_has():
    with pytest.raises(InputError, match="Its feeds: documents, issues"):
        feed_of("federal_register", FetchRequest(feed="zip"))


@pytest.mark.parametrize(
    ("source", "fields", "flag"),
    [
        ("bills", {"since": date(2024, 1, 1)}, "--since"),
        ("us_code", {"congresses": (118,)}, "--congress"),
        ("federal_register", {"congresses": (118,)}, "--congress"),
        ("ecfr_and_cfr", {"since": date(2024, 1, 1)}, "--since"),
    ],
)
def test_a_flag_that_a_feed_would_ignore_is_refused(source, fields, flag):
    with pytest.raises(InputError, match=f"cannot be narrowed by {flag}"):
        feed_of(source, FetchRequest(**fields))


def test_all_addresses_of_feeds_are_official():
    official = Endpoints({}).official
    for name in ENDPOINTS:
        assert official(ENDPOINTS[name].origin + "/x").startswith(ENDPOINTS[name].origin)
