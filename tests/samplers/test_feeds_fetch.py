"""Fetching into a folder: what is written, what a killed run leaves, what a changed document does."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from runner.base.canonical import file_sha256, jsonl_bytes
from runner.base.errors import BackendError, InputError
from runner.base.places import CHECKOUT
from samplers.corpus.parse import read_corpus
from samplers.feeds.fetch import fetch
from samplers.feeds.folder import FETCHED, SELECTION
from samplers.feeds.request import FetchRequest
from samplers.registry import source_format
from tests.conftest import called
from tests.support.feed_server import FakeClock, Site, as_htm, as_xml, bulk_listing, lead
from tests.support.loopback import Wire, as_json, served

DATA = Path(__file__).parents[1] / "data" / "bills"
NAMES = (
    "BILLS-116hr9004rfs.xml",
    "BILLS-116hr9006eas.xml",
    "BILLS-116sconres9005ats.xml",
    "BILLS-117hr9001ih.xml",
    "BILLS-118s9002rs.xml",
)
KEY = "K3y-of-Nobody"
GOVINFO = "https://www.govinfo.gov"


def content(name: str) -> bytes:
    return (DATA / name).read_bytes()


def place(name: str) -> str:
    """Where the bulk data has a bill."""
    return f"/bulkdata/BILLS/118/1/all/{name}"


def again_place(name: str) -> str:
    """Where a manifest's bill is asked for."""
    return f"/content/pkg/{name.removesuffix('.xml')}/xml/{name}"


@pytest.fixture(name="site")
def _site(monkeypatch):
    with served(Site()) as site:
        root = "/bulkdata/json/BILLS"
        site.at(root, bulk_listing(folders=("118",)))
        site.at(f"{root}/118", bulk_listing(folders=("1",)))
        site.at(f"{root}/118/1", bulk_listing(folders=("all",)))
        site.at(f"{root}/118/1/all", bulk_listing(files=NAMES))
        for name in NAMES:
            site.at(place(name), as_xml(content(name)))
            site.at(again_place(name), as_xml(content(name)))
        lead(dict.fromkeys(("www.govinfo.gov", "www.federalregister.gov"), site.url), monkeypatch.setattr)
        yield site


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr("samplers.feeds.client.RATE", 1000.0)


@pytest.fixture(name="run")
def _run(site, tmp_path):
    """Fetches bills into a folder and returns the report; what was said is in `run.said`."""

    def run(folder="out", source="bills", **fields):
        return fetch(source, tmp_path / folder, FetchRequest(**fields), run.said.append, FakeClock())

    run.said = []
    return run


def files(folder: Path) -> dict[str, bytes]:
    """The folder's files but for lock and records, which have times in them."""
    skipped = (FETCHED, ".fetch.lock")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name not in skipped}


def rows(folder: Path) -> list[dict[str, object]]:
    """The recorded bills, in the order in which they came."""
    return [json.loads(line) for line in (folder / FETCHED).read_text().splitlines()]


def asked(site: Site) -> list[str]:
    """The bills asked for."""
    return [path.rpartition("/")[2] for path in site.paths if path.endswith(".xml")]


# --- a draw -----------------------------------------------------------------------------------------------------


def test_the_files_drawn_are_in_the_folder_as_published_each_recorded_with_address_digest_and_time(run, tmp_path):
    report = run()
    assert (report.n_listed, report.n_files, report.n_fetched, report.n_kept, report.failed) == (5, 5, 5, 0, [])
    assert report.n_bytes == sum(len(content(name)) for name in NAMES)
    assert {name: files(tmp_path / "out")[name] for name in NAMES} == {name: content(name) for name in NAMES}
    assert len(read_corpus(tmp_path / "out", "bills").documents) == 5
    recorded = {row["path"]: row for row in rows(tmp_path / "out")}
    assert sorted(recorded) == sorted(NAMES)
    assert recorded[NAMES[0]] == {
        "path": NAMES[0],
        "url": f"https://www.govinfo.gov{place(NAMES[0])}",
        "bytes": len(content(NAMES[0])),
        "sha256": file_sha256(DATA / NAMES[0]),
        "fetched": "2026-11-22T12:00:00Z",
    }


def test_a_second_run_asks_for_nothing_but_what_was_altered_or_lost_since(run, site, tmp_path):
    run()
    site.requests.clear()
    report = run()
    assert not site.requests
    assert (report.n_fetched, report.n_kept) == (0, 5)
    (tmp_path / "out" / NAMES[0]).write_bytes(b"<bill/>")
    (tmp_path / "out" / NAMES[1]).unlink()
    report = run()
    assert sorted(asked(site)) == sorted(NAMES[:2])
    assert (report.n_fetched, report.n_kept) == (2, 3)
    assert files(tmp_path / "out")[NAMES[0]] == content(NAMES[0])
    site.requests.clear()
    run(documents=digests(NAMES[2]))  # which has another address there
    assert asked(site) == [NAMES[2]]


def test_a_draw_that_was_begun_is_finished_even_if_more_is_published_by_then(run, site, tmp_path):
    for name in NAMES[1:]:
        site.at(place(name), Wire(status=503))
    with pytest.raises(BackendError, match="run the command again"):
        run(size=2)
    for name in NAMES:
        site.at(place(name), as_xml(content(name)))
    begun = (tmp_path / "out" / SELECTION).read_bytes()
    new = tuple(f"BILLS-118hr{n}ih.xml" for n in range(50))
    site.at("/bulkdata/json/BILLS/118/1/all", bulk_listing(files=(*NAMES, *new)))
    assert not run(size=2).failed
    assert (tmp_path / "out" / SELECTION).read_bytes() == begun
    assert {path.name for path in (tmp_path / "out").glob("BILLS-*")} < set(NAMES)


def test_a_folder_of_another_draw_or_with_other_files_is_refused(run, tmp_path, site):
    run()
    with pytest.raises(InputError, match=r'"size": 750.*new folder'):
        run(size=2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.xml").write_text("<x/>")
    site.requests.clear()
    with pytest.raises(InputError, match=r"files that no fetch brought \(notes\.xml\)"):
        run("other")
    assert not site.requests


def test_what_a_killed_run_left_half_written_is_mended(run, tmp_path):
    run()
    path = tmp_path / "out" / FETCHED
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n", whole.index(b"\n") + 1) - 30])
    (tmp_path / "out" / ".tmp-0123").write_bytes(b"<bill>")
    assert run().n_kept == 1
    assert sorted(row["path"] for row in rows(tmp_path / "out")) == sorted(NAMES)
    assert not list((tmp_path / "out").glob(".tmp-*"))


ROW = {"path": "x.xml", "url": f"{GOVINFO}/x", "kind": "xml", "stratum": "", "family": ""}
URLS = (
    "https://evil.com/x",
    "https://www.govinfo.gov@evil.com/x",
    "http://www.govinfo.gov/x",
    "https://[x",
    "file:///x",
)
STRANGE = [
    *({"path": "../x.xml"}, {"path": "fetched.jsonl"}, {"kind": "exe"}),
    *({"url": url} for url in URLS),
]


@pytest.mark.parametrize(
    ("name", "keep", "line"),
    [
        *((FETCHED, 5, line) for line in ('{"path": "x"}', "[]", "{", '{"unknown": 1}')),
        *((SELECTION, 1, json.dumps(ROW | changed)) for changed in STRANGE),
        *((SELECTION, 1, line) for line in ('{"path": "x"}', "{}")),
        (SELECTION, 1, ""),
    ],
)
def test_a_record_that_no_fetch_wrote_is_named(run, tmp_path, name, keep, line):
    run()
    path = tmp_path / "out" / name
    kept = path.read_text().splitlines()[:keep]
    path.write_text("\n".join([*kept, *([line] if line else [])]) + "\n")
    with pytest.raises(InputError, match=rf"{name}:{keep + bool(line)}"):
        run()


def test_the_bound_of_the_folder_holds_and_what_fits_is_kept(run, site, tmp_path):
    big = content(NAMES[4]).replace(b"</bill>", b" " * 990_000 + b"</bill>")
    site.at(place(NAMES[4]), as_xml(big))
    with pytest.raises(BackendError, match=r"more than 1 MB.*--max-mb"):
        run(max_mb=1)
    assert len(rows(tmp_path / "out")) == 4
    assert run(max_mb=2).n_fetched == 1


@pytest.fixture(name="small")
def _small(monkeypatch):
    """The reader of bills takes no more than 100,000 bytes."""
    small = replace(source_format("bills"), max_bytes=100_000)
    monkeypatch.setattr("samplers.feeds.fetch.source_format", lambda _: small)


USELESS = {
    "gone": (Wire(status=404), "HTTP 404"),
    "page": (Wire(b"<!DOCTYPE html><html></html>", type="text/html"), "an HTML page, no xml"),
    "too large": (as_xml(b"<bill>" + b" " * 200_000 + b"</bill>"), "more than 100,000 bytes"),
}


@pytest.mark.parametrize(("reply", "reason"), USELESS.values(), ids=USELESS)
@pytest.mark.usefixtures("small")
def test_a_file_that_cannot_be_had_is_named(run, site, tmp_path, reply, reason):
    site.at(place(NAMES[4]), reply)
    report = run()
    ((name, said),) = report.failed
    assert (name, reason in said, report.n_fetched) == (NAMES[4], True, 4)
    assert not (tmp_path / "out" / NAMES[4]).exists()
    assert any(reason in line for line in run.said)


def test_more_than_a_fifth_of_the_files_lost_ends_the_run_and_keeps_the_rest(run, site, tmp_path):
    site.at(place(NAMES[1]), Wire(b"<!DOCTYPE html><html></html>", type="text/html"))
    site.at(place(NAMES[2]), Wire(status=404))
    with pytest.raises(BackendError, match="2 of 5 files cannot be had"):
        run()
    assert len(rows(tmp_path / "out")) == 1
    site.at(place(NAMES[2]), as_xml(content(NAMES[2])))
    assert run().n_fetched == 3


def test_a_feed_of_which_too_much_is_gone_is_left_in_peace(run, site):
    new = tuple(f"BILLS-118hr{n}ih.xml" for n in range(1, 60))
    site.at("/bulkdata/json/BILLS/118/1/all", bulk_listing(files=new))
    with pytest.raises(BackendError, match="12 of 59 files cannot be had"):
        run()
    assert len(asked(site)) == 12


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": 0}, "at least 1"),
        ({"seed": -1}, "--seed is at least 0"),
        ({"max_mb": 0}, "at least 1"),
        ({"options": frozenset(("x",))}, "has no option 'x'"),
        ({"source": "federal_register", "since": date(2024, 2, 1), "until": date(2024, 1, 1)}, "later than"),
    ],
)
def test_what_cannot_be_asked_for_is_said_before_anything_is_written(run, tmp_path, fields, message):
    with pytest.raises(InputError, match=message):
        run(**fields)
    assert not (tmp_path / "out").exists()


# --- killed, and two at once ------------------------------------------------------------------------------------

PROCESS = """
import sys
from runner.commands.main import called
from samplers.feeds import client
from tests.support.feed_server import lead

client.RATE = 1000.0
lead({"www.govinfo.gov": sys.argv[1]})
sys.exit(called(["fetch", *sys.argv[2:]]))
"""


def process(site: Site, folder: Path) -> subprocess.Popen[bytes]:
    arguments = [site.url, "--source=bills", f"--to={folder}"]
    return subprocess.Popen([sys.executable, "-c", PROCESS, *arguments], cwd=CHECKOUT, stderr=subprocess.DEVNULL)


def test_a_run_killed_in_mid_download_is_finished_with_the_same_files(run, site, tmp_path):
    run("whole")
    reached, released = threading.Event(), threading.Event()

    def wait():
        reached.set()
        released.wait(30)

    name = NAMES[2]
    site.at(place(name), as_xml(content(name), after=wait), as_xml(content(name)))
    killed = process(site, tmp_path / "out")
    assert reached.wait(30)
    killed.kill()
    assert killed.wait(30) == -9
    released.set()
    assert [row["path"] for row in rows(tmp_path / "out")] == list(NAMES[:2])
    site.requests.clear()
    report = run()
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    assert report.n_kept == 2
    assert not any("json" in path for path in site.paths)


def test_two_runs_at_once_fetch_each_file_once(run, site, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: run(), range(2)))
    assert sorted((report.n_fetched, report.n_kept) for report in reports) == [(0, 5), (5, 0)]
    assert sorted(asked(site)) == sorted(row["path"] for row in rows(tmp_path / "out")) == sorted(NAMES)


# --- a manifest's documents -------------------------------------------------------------------------------------


def digests(*names: str) -> dict[str, str]:
    """Ids and digests of documents as a manifest has them."""
    read = source_format("bills").read
    found = [read(content(name), name, frozenset()).documents[0] for name in names]
    return {document.doc_id: document.sha256 for document in found}


def test_a_manifest_s_documents_come_again_are_verified_and_then_checked_where_they_are(run, site, tmp_path):
    report = run(documents=digests(*NAMES[:3]))
    assert (report.changed, report.missing, report.failed) == ([], [], [])
    assert (report.n_listed, report.n_fetched) == (3, 3)
    assert sorted(asked(site)) == sorted(NAMES[:3])
    assert {path.name for path in (tmp_path / "out").glob("BILLS-*")} == set(NAMES[:3])
    site.requests.clear()
    report = run(documents=digests(*NAMES[:3]))
    assert not site.requests
    assert (report.n_kept, report.n_fetched) == (3, 0)


def test_documents_of_the_federal_register_come_again_by_the_day_that_its_api_tells(run, site):
    number, data = "2031-10070", (DATA.parent / "federal_register" / "2031-10070.xml").read_bytes()
    row = {"publication_date": "2031-06-13", "full_text_xml_url": "https://www.federalregister.gov/x.xml"}
    for other, has_text in [(number, True), ("2031-1", False)]:
        text = row if has_text else row | {"full_text_xml_url": None}
        site.calls(f"/api/v1/documents/{other}.json", lambda _, o=other, t=text: as_json(t | {"document_number": o}))
    site.at(f"/documents/full_text/xml/2031/06/13/{number}.xml", as_xml(data))
    (document,) = source_format("federal_register").read(data, f"{number}.xml", frozenset()).documents
    wanted = {document.doc_id: document.sha256} | dict.fromkeys(["FR-2031-1", "FR-2031-2", "no number"], "0" * 64)
    report = run(source="federal_register", documents=wanted)
    assert (report.same, report.changed) == ({f"FR-{number}"}, [])
    reasons = dict(report.missing)
    assert "HTTP 404" in reasons["FR-2031-2"]
    assert all("leads to no file" in reasons[name] for name in ("FR-2031-1", "no number"))


def test_documents_that_are_gone_unreadable_or_somebody_else_s_are_missing_by_name(run, site):
    site.at(again_place(NAMES[0]), Wire(status=404))
    site.at(again_place(NAMES[1]), as_xml(b"<bill><unclosed></bill>"))
    site.at(again_place(NAMES[2]), as_xml(content(NAMES[3])))
    wanted = digests(*NAMES[:3]) | {"no-bill": "0" * 64}
    report = run(documents=wanted)
    assert [doc_id for doc_id, _ in report.missing] == sorted(wanted)
    reasons = dict(report.missing)
    assert "HTTP 404" in reasons["BILLS-116hr9004rfs"]
    assert "malformed" in reasons["BILLS-116hr9006eas"]
    assert "not in BILLS-116sconres9005ats.xml" in reasons["BILLS-116sconres9005ats"]
    assert "leads to no file" in reasons["no-bill"]


def test_one_changed_word_is_a_changed_document_whose_file_goes_once_the_right_one_is_there(run, site, tmp_path):
    wanted, folder = digests(*NAMES[2:4]), tmp_path / "out"
    site.at(again_place(NAMES[3]), as_xml(content(NAMES[3]).replace(b"</text>", b" twice</text>", 1)))
    assert [doc_id for doc_id, _ in run(documents=wanted).changed] == ["BILLS-117hr9001ih"]
    assert {path.name for path in folder.glob("BILLS-*")} == {NAMES[2], f"{NAMES[3]}.changed"}
    assert [document.doc_id for document in read_corpus(folder, "bills").documents] == ["BILLS-116sconres9005ats"]
    (line,) = (folder / "differences.jsonl").read_text().splitlines()
    assert json.loads(line)["doc_id"] == "BILLS-117hr9001ih"
    site.at(again_place(NAMES[3]), as_xml(content(NAMES[3])))
    assert not run(documents=wanted).changed
    assert {path.name for path in folder.glob("BILLS-*")} == set(NAMES[2:4])
    assert not (folder / "differences.jsonl").exists()


# --- the command ------------------------------------------------------------------------------------------------


@pytest.fixture(name="command")
def _command(site, tmp_path):
    return lambda *arguments: called("fetch", f"--to={tmp_path / 'out'}", *arguments)


def manifest(tmp_path: Path, documents: dict[str, str], source: str = "bills") -> Path:
    path = tmp_path / "corpus.jsonl"
    header = {"source": source, "sample": {"size": 5, "seed": 1}}
    path.write_bytes(jsonl_bytes([header, *({"doc_id": n, "sha256": d} for n, d in documents.items())]))
    return path


@pytest.mark.parametrize(
    ("differing", "code"),
    [((), 0), (("BILLS-116hr9006eas", "BILLS-1hr1ih"), 4), (("BILLS-116hr9004rfs", "BILLS-116hr9006eas"), 4)],
)
def test_the_command_brings_a_manifest_s_documents_again_or_names_those_that_differ(command, tmp_path, differing, code):
    path = manifest(tmp_path, digests(*NAMES[:2]) | dict.fromkeys(differing, "0" * 64))
    ended, message = command("--source=bills", f"--again={path}")
    assert ended == code
    assert all(doc_id in message for doc_id in differing)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--source=bills", "--again=none.jsonl"),
        ("--source=bills", "--again={manifest}", "is not a manifest of bills"),
        ("--source=bills", "--to={file}", "{file} is not a folder"),
        ("--source=bills", "--to={file}/deeper", "{file} is not a folder"),
        ("--source=nothing",),
        ("--source=bills", "--since=yesterday"),
        ("--source=bills", "--again=x", "--congress=118"),
    ],
)
def test_the_command_ends_with_2_on_what_cannot_be(command, tmp_path, arguments):
    (tmp_path / "file").write_bytes(b"x")
    places = {"file": tmp_path / "file", "manifest": manifest(tmp_path, digests(NAMES[0]), source="us_code")}
    given = [argument.format(**places) for argument in arguments]
    code, message = command(*(argument for argument in given if argument.startswith("--")))
    assert code == 2
    assert all(words in message for words in given if not words.startswith("--"))


def test_a_key_is_in_no_file_and_in_nothing_that_is_said(tmp_path, monkeypatch, capfd):
    """A server that shows the key wherever it can: next pages, errors, validators."""
    monkeypatch.setenv("PER_SOURCE_EVAL_GOVINFO_KEY", KEY)
    published, tag = "/published/1993-01-01/2026-11-22", (("ETag", f'"{KEY}"'), ("Retry-After", "0"))
    first, second = ({"count": 2, "packages": [{"packageId": f"CHRG-118hhrg{n}"}], "message": KEY} for n in (1, 2))
    following = {"nextPage": f"https://api.govinfo.gov/next?api_key={KEY}&offsetMark=2"}
    with served(Site()) as api, served(Site()) as site:
        lead({"api.govinfo.gov": api.url, "www.govinfo.gov": site.url}, monkeypatch.setattr)
        given = ["--source=hearing_transcripts", "--until=2026-11-22"]
        busy = as_json({"error": KEY}, status=429, headers=tag)
        api.at(published, busy, as_json(first | following, headers=tag))
        api.at("/next", as_json(second, headers=tag))
        for name in ("CHRG-118hhrg1", "CHRG-118hhrg2"):
            site.at(f"/content/pkg/{name}/html/{name}.htm", as_htm("A HEARING"))
        assert called("fetch", *given, f"--to={tmp_path / 'out'}") == (0, "")
    assert all(request.headers["x-api-key"] == KEY for request in api.requests)
    assert not any(KEY in f"{request.headers} {request.path}" for request in site.requests)
    said = capfd.readouterr()
    assert KEY.lower() not in (said.out + said.err).lower()
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) >= 3
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]
