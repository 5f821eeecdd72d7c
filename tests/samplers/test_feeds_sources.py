"""What each feed lists and draws, against a loopback server that speaks its shapes."""

from collections import Counter
from datetime import date, timedelta
from urllib.parse import urlsplit

import pytest

from runner.base.errors import BackendError, InputError
from runner.base.places import CHECKOUT
from runner.eval_set.version import load_corpus
from samplers.feeds.client import Client
from samplers.feeds.ecfr import part_of
from samplers.feeds.endpoints import ENDPOINTS, Refused
from samplers.feeds.federal_register import WINDOW
from samplers.feeds.fetch import Downloads
from samplers.feeds.folder import Folder
from samplers.feeds.names import package_file
from samplers.feeds.olrc import title_with, unzipped
from samplers.feeds.request import OVERSAMPLING, FetchRequest, Item, drawn
from samplers.feeds.table import FEEDS, feed_of
from tests.support.feed_server import FakeClock, Site, as_zip, bulk_listing, lead
from tests.support.loopback import Wire, as_json, served

GOVINFO = "https://www.govinfo.gov"


@pytest.fixture(name="drawing")
def _drawing(monkeypatch):
    """A site to which all official hosts lead, and a function that draws from it."""
    monkeypatch.setenv("PER_SOURCE_EVAL_GOVINFO_KEY", "k")
    monkeypatch.setattr("samplers.feeds.client.RATE", 1000.0)

    class Drawing:
        def __init__(self, site):
            self.site = site
            self.said = []

        def draw(self, source, **fields):
            request = FetchRequest(**fields)
            feed = feed_of(source, request)
            with Client(FakeClock(), print) as client:
                frame = feed.listed(client, request, self.said.append)
                return drawn(frame, request.files_wanted(feed.per_file), request.seed)

    with served(Site()) as site:
        lead(dict.fromkeys(ENDPOINTS, site.url), monkeypatch.setattr)
        yield Drawing(site)


def paths(draw):
    return [item.path for item in draw.items]


# --- the draw ---------------------------------------------------------------------------------------------------


def items(n, strata=2):
    return [Item(f"f{i:03}.xml", f"{GOVINFO}/{i}", "xml", f"s{i % strata}") for i in range(n)]


def test_a_draw_depends_on_the_seed_and_not_on_the_order_and_the_repeats_of_a_listing():
    frame = items(60)
    assert drawn(frame, 20, 7) == drawn([*reversed(frame), *frame], 20, 7) != drawn(frame, 20, 8)


def test_a_draw_holds_one_of_each_family():
    draw = drawn([Item(f"v{i}.xml", "", "xml", "s", f"family-{i // 3}") for i in range(30)], 100, 1)
    assert (len(draw.items), draw.n_listed, len({item.family for item in draw.items})) == (10, 30, 10)


# --- govinfo bulk data ------------------------------------------------------------------------------------------

BILLS = tuple(f"BILLS-118hr{n}{version}.xml" for n in range(1, 31) for version in ("ih", "rh"))


def bulk(site, listing):
    """Folders of the bulk data by their paths, with the names in each; a name with a full stop is a file's."""
    for path, _, names in (folder.partition(":") for folder in listing.split("; ")):
        folders, files = (tuple(n for n in names.split() if ("." in n) == is_file) for is_file in (False, True))
        site.at(f"/bulkdata/json/{path}", bulk_listing(folders=folders, files=files))


@pytest.fixture(name="bills")
def _bills(drawing):
    bulk(drawing.site, "BILLS: 118 119 resources; BILLS/118: 1; BILLS/119: 1; BILLS/118/1: hr s notes.txt")
    bulk(
        drawing.site,
        "BILLS/119/1: hr s notes.txt; BILLS/119/1/hr: BILLS-119hr888ih.xml; BILLS/118/1/s: BILLS-118s5es.xml",
    )
    bulk(drawing.site, f"BILLS/118/1/hr: {' '.join(BILLS)} BILLS-118-1-hr.zip; BILLS/119/1/s:")
    return lambda **fields: drawing.draw("bills", **fields)


def test_bills_are_listed_folder_by_folder_and_one_version_of_each_is_drawn(drawing, bills):
    draw = bills(size=100)
    assert (draw.n_listed, len(draw.items)) == (62, 32)
    (bill,) = [item for item in draw.items if item.path == "BILLS-119hr888ih.xml"]
    assert bill.url == f"{GOVINFO}/bulkdata/BILLS/119/1/hr/BILLS-119hr888ih.xml"
    assert (bill.stratum, bill.family) == ("119/house/introduced", "119-hr-888")
    assert not any("resources" in path for path in drawing.site.paths)
    assert {request.headers["accept"] for request in drawing.site.requests} == {"application/json"}


def test_one_congress_is_listed_alone_and_one_that_is_not_there_leaves_nothing(drawing, bills):
    assert paths(bills(congresses=(119,))) == ["BILLS-119hr888ih.xml"]
    assert not any("/118" in path for path in drawing.site.paths)
    assert not bills(congresses=(99,)).items


def test_more_files_are_drawn_than_documents_are_wanted_and_fewer_where_a_file_holds_several(drawing, bills):
    assert len(bills(size=10).items) == 10 * OVERSAMPLING
    laws = " ".join(f"PLAW-118publ{n}.xml" for n in range(1, 41))
    bulk(drawing.site, f"PLAW: 118; PLAW/118: public; PLAW/118/public: {laws}")
    assert len(drawing.draw("public_laws", size=10).items) == 10 * OVERSAMPLING / 4


def named(name):
    return {"files": [{"name": name, "justFileName": name, "folder": True}]}


YEAR = {"since": date(2014, 1, 1), "until": date(2014, 12, 31)}
BULK = ("bills", "/bulkdata/json/BILLS", {})
TITLES = ("ecfr_and_cfr", "/api/versioner/v1/titles.json", {})
TREE = ("ecfr_and_cfr", "/api/versioner/v1/structure/2026-11-20/title-1.json", {})
REGISTER = ("federal_register", "/api/v1/documents.json", YEAR)
PUBLISHED = "/published/1993-01-01/2026-11-22"
PACKAGES = ("hearing_transcripts", PUBLISHED, {})
PAGE = ("us_code", "/download/download.shtml", {})
NAMES = ("../../etc/passwd", "a/b", "", ".hidden", "x" * 200, "a\nb", None, 7)
DAY = "2014-01-01"
UNNUMBERED = ({}, {"document_number": "../x", "publication_date": DAY}, {"document_number": "2014-1"}, "x", None)
HEARINGS = [f"CHRG-118{chamber}{n}" for n in range(50001, 50006) for chamber in ("hhrg", "shrg")]
ONE = [{"packageId": HEARINGS[0]}]
FIRST = f"https://api.govinfo.gov{PUBLISHED}?collection=CHRG&offsetMark=%2A&pageSize=1000"


@pytest.mark.parametrize(
    ("feed", "listing", "message"),
    [
        *((BULK, named(name), "BILLS is not the listing that is due: files.0") for name in NAMES),
        *((BULK, listing, "BILLS") for listing in ([], {}, {"files": {}}, {"files": ["x"]}, "x", None)),
        *((TITLES, titles, r"titles\.json") for titles in ([], {"titles": [7]}, {"titles": None})),
        (TITLES, {"titles": [{"number": 1}]}, r"titles\.json does not say to which day"),
        *((TREE, tree, "not a tree of the CFR") for tree in ([], {"children": [7]}, {"children": {"x": 1}}, None)),
        *((REGISTER, {"count": 1, "results": [row]}, r"documents\.json") for row in UNNUMBERED),
        (REGISTER, {"results": []}, r"documents\.json .*count"),
        (REGISTER, {"count": 7, "results": []}, "states 7 documents"),
        *(
            (PACKAGES, {"packages": rows}, "not the listing that is due")
            for rows in (None, [7], [{}], [{"packageId": 7}])
        ),
        (PACKAGES, {"count": 2000, "packages": ONE}, "states 2,000 rows and lists 1"),
        (PACKAGES, {"count": 9, "nextPage": FIRST, "packages": ONE}, "leads back"),
        (PAGE, "<!DOCTYPE html><html><body>Down for maintenance</body></html>", "names 0 release points"),
    ],
)
def test_a_listing_that_is_none_short_or_names_what_is_none_ends_the_run(drawing, feed, listing, message):
    source, path, fields = feed
    versioner(drawing.site)
    is_page = source == "us_code"
    drawing.site.at(path, Wire(listing.encode(), type="text/html") if is_page else as_json(listing))
    with pytest.raises(BackendError, match=message):
        drawing.draw(source, **fields)


def test_a_listing_that_nests_for_ever_ends(drawing, monkeypatch):
    monkeypatch.setattr("samplers.feeds.govinfo.MAX_FOLDERS", 20)
    congresses = [str(n) for n in range(100, 150)]
    bulk(drawing.site, "; ".join((f"BILLS: {' '.join(congresses)}", *(f"BILLS/{n}:" for n in congresses))))
    with pytest.raises(BackendError, match="more than 20 folders"):
        drawing.draw("bills")


OF_LAWS = (
    "PLAW: 118 resources; PLAW/118: public; "
    "PLAW/118/public: PLAW-118publ22.xml PLAW-118publ22-s1.xml PLAW-118-public.zip"
)


def test_laws_are_listed_and_neither_their_sections_nor_other_files_nor_folders(drawing):
    bulk(drawing.site, OF_LAWS)
    draw = drawing.draw("public_laws")
    assert [item.url for item in draw.items] == [f"{GOVINFO}/bulkdata/PLAW/118/public/PLAW-118publ22.xml"]
    assert set(drawing.site.paths) == set(drawing.site.routes)


# --- govinfo API ------------------------------------------------------------------------------------------------


def packages(site, names, *, page=2, path=PUBLISHED):
    """A listing by offsetMark, as the API pages it."""

    def answer(query):
        assert int(query["pageSize"][0]) == 1000
        start = 0 if query["offsetMark"] == ["*"] else int(query["offsetMark"][0][3:])
        rows = [{"packageId": name, "lastModified": "2026-01-01T00:00:00Z"} for name in names[start : start + page]]
        following = None
        if start + page < len(names):
            following = f"https://api.govinfo.gov{path}?offsetMark=AoE{start + page}&pageSize=1000&collection=CHRG"
        return as_json({"count": len(names), "message": None, "nextPage": following, "packages": rows})

    site.calls(path, answer)


def test_hearings_are_listed_page_by_page(drawing):
    packages(drawing.site, HEARINGS)
    draw = drawing.draw("hearing_transcripts", size=100)
    assert paths(draw) == sorted(f"{name}.htm" for name in HEARINGS)
    assert draw.items[0].url == f"{GOVINFO}/content/pkg/CHRG-118hhrg50001/html/CHRG-118hhrg50001.htm"
    assert {item.stratum for item in draw.items} == {"118/hhrg", "118/shrg"}
    assert drawing.site.paths == [PUBLISHED] * 5
    assert "collection=CHRG" in drawing.site.requests[0].path


def test_dates_and_congresses_narrow_the_listing(drawing):
    packages(drawing.site, ["CRPT-118srpt62"], path="/published/2023-01-01/2023-12-31")
    fields = {"since": date(2023, 1, 1), "until": date(2023, 12, 31), "congresses": (117, 118)}
    assert paths(drawing.draw("committee_reports", **fields)) == ["CRPT-118srpt62.htm"]
    assert [request.path.partition("congress=")[2] for request in drawing.site.requests] == ["117", "118"]


def test_the_record_is_drawn_by_days_and_then_by_granules(drawing):
    days = [f"CREC-{year}-03-{day:02}" for year in (2004, 2005) for day in range(1, 11)]
    packages(drawing.site, days, page=1000)
    for day in days:
        rows = [{"granuleId": f"{day}-pt1-Pg{page}", "title": "X"} for page in ("H1", "H2-3", "S4", "E5", "D6")]
        rows.append({"granuleId": f"{day}-pt1-PgH-FrontMatter", "title": "X"})
        drawing.site.at(f"/packages/{day}/granules", as_json({"count": 6, "nextPage": None, "granules": rows}))
    draw = drawing.draw("congressional_record", size=25)
    # Three days of five granules each, for 30 wanted at ten a day.
    sections = Counter(item.stratum.partition("/")[0] for item in draw.items)
    assert sections == {"house": 6, "senate": 3, "extensions": 3, "digest": 3}
    name = draw.items[0].path.removesuffix(".htm")
    assert draw.items[0].url == f"{GOVINFO}/content/pkg/{name[:15]}/html/{name}.htm"


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
        return as_json({"count": len(found), "results": rows})

    site.calls("/api/v1/documents.json", answer)


def many(n_days, n_a_day):
    first = date(2014, 1, 1)
    days = [str(first + timedelta(days=n)) for n in range(n_days)]
    return [(f"2014-{at:03}{number:05}", day) for at, day in enumerate(days) for number in range(n_a_day)]


def test_documents_of_the_register_are_listed_by_date(drawing):
    # The first slice of time ends on 1 April.
    register(drawing.site, [("2014-7", "2014-04-02"), ("2014-29121", "2014-12-10"), ("2014-00007-9", "2014-12-11")])
    item, other = drawing.draw("federal_register", **YEAR).items
    assert other.path == "2014-7.xml"
    assert item.url == "https://www.federalregister.gov/documents/full_text/xml/2014/12/10/2014-29121.xml"
    assert (item.path, item.stratum) == ("2014-29121.xml", "proposed/2014")
    assert "1 without a text in XML" in drawing.said[-1]


def test_a_window_of_results_is_never_reached(drawing):
    register(drawing.site, many(40, 110), cap=WINDOW)
    assert drawing.draw("federal_register", size=5000, **YEAR).n_listed == 4400


def test_a_day_with_more_than_a_window_shows_ends_the_run(drawing):
    register(drawing.site, many(1, 2100), cap=WINDOW)
    with pytest.raises(BackendError, match="more than a query can show"):
        drawing.draw("federal_register", **YEAR)


def test_notices_are_listed_only_where_the_options_ask_for_them(drawing):
    register(drawing.site, many(1, 1))
    for options in (frozenset(), frozenset(("notices",))):
        drawing.site.requests.clear()
        drawing.draw("federal_register", options=options, **YEAR)
        assert {"NOTICE" in request.path for request in drawing.site.requests} == {bool(options)}


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
    for day in (current, "2024-05-17"):
        site.at(f"/api/versioner/v1/structure/{day}/title-1.json", as_json(tree))


def test_parts_of_the_ecfr_are_drawn_as_of_the_day_they_are_current_to_or_an_earlier_one(drawing):
    versioner(drawing.site)
    draw = drawing.draw("ecfr_and_cfr")
    assert paths(draw) == [f"ECFR-2026-11-20-title1-part{part}.xml" for part in ("1", "2", "60-1")]
    assert draw.items[0].url == "https://www.ecfr.gov/api/versioner/v1/full/2026-11-20/title-1.xml?part=1"
    assert "2024-05-17" in paths(drawing.draw("ecfr_and_cfr", until=date(2024, 5, 17)))[0]
    assert paths(drawing.draw("ecfr_and_cfr", until=date(2027, 1, 1))) == paths(draw)
    with pytest.raises(InputError, match="goes back to 2017-01-03"):
        drawing.draw("ecfr_and_cfr", until=date(2012, 1, 1))


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


# --- United States Code -----------------------------------------------------------------------------------------

POINT = "119-73not60"


def test_titles_of_the_code_are_drawn_at_the_current_release_point(drawing):
    place = "releasepoints/us/pl/119/73not60/xml_usc{}@119-73not60.zip"
    links = "".join(f'<a href="{place.format(title)}">[XML]</a>' for title in ("All", "01", "05A", "54"))
    page = f"<!DOCTYPE html><html><body><h3>Public Law {POINT} (01/23/2026)</h3>{links}</body></html>"
    drawing.site.at("/download/download.shtml", Wire(page.encode(), type="text/html"))
    draw = drawing.draw("us_code")
    assert paths(draw) == [f"usc{title}@{POINT}.xml" for title in ("01", "05A", "54")]
    assert draw.items[0].url == f"https://uscode.house.gov/download/{place.format('01')}"


def test_a_title_comes_out_of_its_zip(drawing, tmp_path):
    item = title_with(f"usc:1-1@{POINT}")
    drawing.site.at(urlsplit(item.url).path, as_zip({"usc01.xml": b"<uscDoc/>", "readme.txt": b"x"}))
    (tmp_path / "out").mkdir()
    with Client(FakeClock(), print) as client:
        files = Downloads(client, "us_code", FEEDS["us_code"], Folder(tmp_path / "out", 1), print)
        assert files.had(item) == b"<uscDoc/>"


def zipped(members):
    return as_zip(members).body


def understated(size):
    """A ZIP that declares ten bytes of a file that has more."""
    return zipped({"a.xml": b" " * size}).replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little"))


SOUND = zipped({"usc01.xml": b"<uscDoc>" + bytes(range(200)) + b"</uscDoc>"})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *((zipped(dict.fromkeys(names, b"<a/>")), "XML files where one is due") for names in ((), ("a.xml", "b.xml"))),
        (zipped({"a.txt": b"x"}), "XML files where one is due"),
        (zipped({"a.xml": b" " * 5000}), "more than"),
        (understated(5000), "usc01.xml"),
        (b"PK\x01\x02" * 101, "more than 100 files"),
        *((SOUND[:keep] + b"\0" * 40, "damaged") for keep in (3, 30, 60, 90)),
    ],
    ids=["none", "two", "another", "too much", "understated", "too many", *(f"cut at {n}" for n in (3, 30, 60, 90))],
)
def test_a_zip_that_is_damaged_declares_too_much_or_holds_another_number_of_files_is_refused(data, message):
    with pytest.raises(Refused, match=message):
        unzipped(data, "usc01.xml", 1000)


# --- documents of a manifest ------------------------------------------------------------------------------------

CREC = "CREC-2005-07-20"
PARTS = "https://www.ecfr.gov/api/versioner/v1/full/2026-11-20/title-1.xml?part="
CODE = "https://uscode.house.gov/download/releasepoints/us/pl"


@pytest.mark.parametrize(
    ("source", "doc_id", "url"),
    [
        ("bills", "BILLS-110s2062ris", f"{GOVINFO}/content/pkg/BILLS-110s2062ris/xml/BILLS-110s2062ris.xml"),
        ("public_laws", "PLAW-113publ79-s1001", f"{GOVINFO}/bulkdata/PLAW/113/public/PLAW-113publ79.xml"),
        ("public_laws", "PLAW-112pvtl1-s1", f"{GOVINFO}/content/pkg/PLAW-112pvtl1/uslm/PLAW-112pvtl1.xml"),
        ("hearing_transcripts", "CHRG-110hhrg4", f"{GOVINFO}/content/pkg/CHRG-110hhrg4/html/CHRG-110hhrg4.htm"),
        ("congressional_record", f"{CREC}-pt1-PgH1", f"{GOVINFO}/content/pkg/{CREC}/html/{CREC}-pt1-PgH1.htm"),
        ("ecfr_and_cfr", "cfr:1-51.3@2026-11-20", f"{PARTS}51"),
        ("us_code", "usc:5A-1@113-31", f"{CODE}/113/31/xml_usc05A@113-31.zip"),
        ("us_code", f"usc:9-1@{POINT}", f"{CODE}/119/73not60/xml_usc09@{POINT}.zip"),
        *(("bills", name, None) for name in ("BILLS-119hr888ih.txt", "BILLS-119hr888", "BILLSTATUS-119hr888", "")),
        ("public_laws", "PLAW-118-public", None),
        *(("committee_reports", name, None) for name in ("CPRT-118HPRT1", "CRPT-118srpt1/../../x")),
        *(("congressional_record", name, None) for name in ("CREC-2018-01-03-pt2-PgH-FrontMatter", CREC)),
        *(("ecfr_and_cfr", name, None) for name in ("cfr:1-18.1@ecfr", "cfr:12-1009.1@2012", "cfr:1-x@2026-11-20")),
        ("us_code", "usc:x", None),
        ("federal_register", "FR-E8-23178", None),
    ],
)
def test_an_id_leads_to_its_file_at_the_publisher_or_to_none(source, doc_id, url):
    item = FEEDS[source].file_of(doc_id)
    assert (item and item.url) == url


def test_every_bill_of_the_committed_manifest_names_the_file_of_its_package():
    _, rows = load_corpus(CHECKOUT / "eval-sets" / "bills" / "v1" / "corpus.jsonl")
    for row in rows:
        assert package_file("bills", row.doc_id) == (row.file.package, row.file.edition, row.file.url)
    assert package_file("us_code", rows[0].doc_id) is None
    assert {row.file.edition for row in rows} >= {"ih", "rh", "eh", "enr", "rs"}
    assert len(rows) == 400


# --- the table --------------------------------------------------------------------------------------------------

ANY_DAY = {"since": date(2024, 1, 1)}


@pytest.mark.parametrize(
    ("source", "fields", "message"),
    [
        ("gao_reports", {}, r"has no feed: .*https://.*--corpus-path"),
        ("cbo_cost_estimates", {}, r"has no feed: .*https://.*--corpus-path"),
        ("statements_of_administration_policy", {}, r"has no feed: .*https://.*--corpus-path"),
        ("crs_reports", {}, r"has no feed: .*https://.*--corpus-path"),
        ("bills", ANY_DAY, "cannot be narrowed by --since"),
        ("us_code", {"congresses": (118,)}, "cannot be narrowed by --congress"),
        ("federal_register", {"congresses": (118,)}, "cannot be narrowed by --congress"),
        ("ecfr_and_cfr", ANY_DAY, "cannot be narrowed by --since"),
    ],
)
def test_a_source_without_a_feed_says_where_to_look_and_a_flag_that_a_feed_would_ignore_is_refused(
    source, fields, message
):
    with pytest.raises(InputError, match=message):
        feed_of(source, FetchRequest(**fields))
