import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import DocumentError, InputError
from runner.records import Document
from samplers.folder import QUARANTINE_LIMIT, read_folder
from samplers.registry import READERS
from samplers.sample_bills import TITLE_LENGTH, length_bucket, read_bill

FIXTURES = Path(__file__).parent / "data" / "bills"
BILLS = sorted(FIXTURES.glob("BILLS-*.xml"))


def read(name: str, as_name: str = "") -> Document:
    return read_bill((FIXTURES / name).read_bytes(), as_name or name)


def bill(text: str, title: str = "", form: str = "", stage: str = "") -> bytes:
    meta = f"<metadata><dublinCore><title>{title}</title></dublinCore></metadata><form>{form}</form>"
    return f'<bill bill-stage="{stage}">{meta}<legis-body><text>{text}</text></legis-body></bill>'.encode()


@pytest.mark.parametrize(
    ("name", "doc_id", "family", "stratum", "title"),
    [
        (
            "BILLS-117hr9001ih.xml",
            "BILLS-117hr9001ih",
            "117-hr-9001",
            "117/house/introduced/short",
            "H.R. 9001 (117th, introduced in House): Village Pond Restoration Act",
        ),
        (
            "BILLS-118s9002rs.xml",
            "BILLS-118s9002rs",
            "118-s-9002",
            "118/senate/reported/short",
            "S. 9002 (118th, reported in Senate): Lighthouse Appropriations Act, 2025",
        ),
        (
            "BILLS-112hr9003enr.xml",
            "BILLS-112hr9003enr",
            "112-hr-9003",
            "112/house/enrolled/short",
            "H.R. 9003 (112th, enrolled): To name a ferry",
        ),
        (
            "BILLS-116hr9004rfs.xml",
            "BILLS-116hr9004rfs",
            "116-hr-9004",
            "116/house/received/short",
            "H.R. 9004 (116th, referred in Senate): Orchard Care Act",
        ),
        (
            "BILLS-116sconres9005ats.xml",
            "BILLS-116sconres9005ats",
            "116-sconres-9005",
            "116/senate/passed/short",
            "S.Con.Res. 9005 (116th, agreed to Senate): Honouring beekeepers",
        ),
        (
            "BILLS-116hr9006eas.xml",
            "BILLS-116hr9006eas",
            "116-hr-9006",
            "116/house/passed/short",
            "H.R. 9006 (116th, engrossed amendment Senate): AMENDMENTS to 116 HR 9006",
        ),
    ],
)
def test_a_bill_is_identified_by_what_it_says_of_itself(
    name: str, doc_id: str, family: str, stratum: str, title: str
) -> None:
    document = read(name, as_name="download.xml")
    assert (document.doc_id, document.family) == (doc_id, family)
    assert (document.stratum, document.title) == (stratum, title)
    assert document.url == f"https://www.govinfo.gov/app/details/{doc_id}"


def test_the_document_wins_over_a_file_name_that_says_otherwise() -> None:
    assert read("BILLS-117hr9001ih.xml", "BILLS-118hr1ih.xml").doc_id == "BILLS-117hr9001ih"


def test_a_suffix_of_the_file_name_keeps_two_renderings_of_one_version_apart() -> None:
    draft = read("BILLS-117hr9001ih.xml", "BILLS-117hr9001ih-draft.xml")
    assert draft.doc_id == "BILLS-117hr9001ih-draft"
    assert draft.family == "117-hr-9001"
    assert draft.url.endswith("/BILLS-117hr9001ih")


def test_the_file_name_fills_what_the_document_leaves_open() -> None:
    document = read_bill(bill("x", title="HR 5: Title."), "BILLS-115hr5rh.xml")
    assert document.doc_id == "BILLS-115hr5rh"
    assert document.title == "H.R. 5 (115th, reported in House): Title"


def test_a_document_that_states_nothing_is_named_after_its_file() -> None:
    document = read_bill(bill("x"), "some folder/my bill.xml")
    assert (document.doc_id, document.family) == ("my-bill", "my-bill")
    assert document.stratum == "unknown/unknown/other/short"
    assert (document.title, document.url) == ("my-bill", "")


@pytest.mark.parametrize(
    ("congress", "number"),
    [
        ("117th CONGRESS", "117"),
        ("One Hundred Third Congress of the United States of America", "103"),
        ("One Hundred Twelfth Congress", "112"),
        ("One Hundred Twentieth Congress", "120"),
        ("One Hundred and Twenty-First Congress", "121"),
        ("Ninety-Ninth Congress", "99"),
    ],
)
def test_the_congress_is_read_from_figures_and_words(congress: str, number: str) -> None:
    form = f"<congress>{congress}</congress><legis-num>S. J. Res. 7</legis-num>"
    document = read_bill(bill("x", form=form, stage="Introduced-in-Senate"), "x.xml")
    assert document.doc_id == f"BILLS-{number}sjres7is"


def test_only_congresses_that_govinfo_holds_have_a_link() -> None:
    form = "<congress>41st CONGRESS</congress><legis-num>H. R. 201</legis-num>"
    assert read_bill(bill("x", form=form, stage="Introduced-in-House"), "x.xml").url == ""


def test_a_long_title_is_cut_between_words() -> None:
    document = read_bill(bill("x", title=f"117 HRES 1 IH: Providing {'for the bill ' * 60}"), "x.xml")
    head, _, named = document.title.partition(": ")
    assert head == "H.Res. 1 (117th, introduced in House)"
    assert named.removesuffix(" …") in "Providing " + "for the bill " * 60
    assert named.split()[-2] in ("for", "the", "bill")
    assert len(named) <= TITLE_LENGTH + 2


def test_length_buckets_have_exclusive_upper_ends() -> None:
    sizes = (1, 3_999, 4_000, 19_999, 20_000, 99_999, 100_000)
    buckets = ["short", "short", "medium", "medium", "long", "long", "very-long"]
    assert [length_bucket(size) for size in sizes] == buckets


def fill(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def fixtures() -> dict[str, bytes]:
    return {f"{n}/{path.name}": path.read_bytes() for n, path in enumerate(BILLS)}


def test_a_folder_is_read_whole_and_sorted(tmp_path: Path) -> None:
    reading = read_folder(fill(tmp_path, fixtures() | {"readme.txt": b"", "9/x.pdf": b""}), "bills")
    ids = [document.doc_id for document in reading.documents]
    assert ids == sorted(path.stem for path in BILLS)
    assert (reading.quarantined, reading.n_duplicates, reading.n_ignored) == ((), 0, 2)


def many(folder: Path, n: int) -> dict[str, bytes]:
    return {f"{folder.name}-{i:03}.xml": bill("x", title=f"117 HR {i} IH: Title") for i in range(1, n + 1)}


def test_an_equal_document_is_dropped_and_another_text_of_one_id_quarantined(tmp_path: Path) -> None:
    twin = bill("x", title="117 HR 1 IH: Title")
    other = bill("y", title="117 HR 1 IH: Title")
    reading = read_folder(fill(tmp_path, many(tmp_path, 60) | {"z/twin.xml": twin, "z/other.xml": other}), "bills")
    assert len(reading.documents) == 60
    assert reading.n_duplicates == 1
    ((name, reason),) = reading.quarantined
    assert name == "z/other.xml"
    assert reason == f"BILLS-117hr1ih with other text was read from {tmp_path.name}-001.xml"


def test_up_to_two_percent_may_be_unreadable(tmp_path: Path) -> None:
    reading = read_folder(fill(tmp_path, many(tmp_path, 49) | {"bad.xml": b"<bill>"}), "bills")
    assert QUARANTINE_LIMIT == 0.02
    assert reading.quarantined == (("bad.xml", "malformed XML (line 1)"),)


def test_more_than_two_percent_unreadable_stops_the_run_and_names_ten(tmp_path: Path) -> None:
    bad = {f"bad{n:02}.xml": b"<html/>" for n in range(12)}
    with pytest.raises(InputError) as caught:
        read_folder(fill(tmp_path, many(tmp_path, 49) | bad), "bills")
    message = str(caught.value)
    assert "12 of 61 files" in message
    assert message.count("the root element is <html>") == 10
    assert "and 2 more" in message


@pytest.mark.parametrize("files", [{}, {"notes.txt": b"no bills here"}])
def test_a_folder_without_bills_is_an_input_error(tmp_path: Path, files: dict[str, bytes]) -> None:
    with pytest.raises(InputError, match=r"holds no \.xml file"):
        read_folder(fill(tmp_path, files), "bills")


def test_a_missing_folder_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        read_folder(tmp_path / "nowhere", "bills")


def test_a_dangling_link_is_no_file_and_is_passed_over(tmp_path: Path) -> None:
    fill(tmp_path, many(tmp_path, 1))
    (tmp_path / "gone.xml").symlink_to(tmp_path / "nowhere.xml")
    assert len(read_folder(tmp_path, "bills").documents) == 1


TAGS = [b"section", b"text", b"quoted-block", b"enum", b"header", b"title", b"form", b"toc", b"quote", b"content"]


def mutated(data: bytes, seed: int) -> bytes:
    """A file truncated, with bytes flipped, a slice removed or repeated, or a tag's name changed throughout."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data)) if data else 0
        choice = rng.randrange(6)
        if choice == 0:
            data = data[:at]
        elif choice == 1:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif choice == 2:
            data = data[:at] + data[at + rng.randrange(60) :]
        elif choice == 3:
            data = data[: at + 40] + data[at:]
        else:
            old, new = rng.sample(TAGS, 2)
            for form in (b"<%s>", b"</%s>", b"<%s "):
                data = data.replace(form % old, form % new)
    return data


def mutations(paths: list[Path], n: int) -> Iterator[bytes]:
    files = [path.read_bytes() for path in paths]
    for seed in range(n):
        yield mutated(files[seed % len(files)], seed)


def test_a_damaged_file_is_a_document_or_a_document_error() -> None:
    reasons = []
    for data in mutations(BILLS, 1200):
        try:
            read_bill(data, "damaged.xml")
        except DocumentError as error:
            reasons.append(error.reason)
    assert 100 < len(reasons) < 1000
    assert all(0 < len(reason) <= 80 for reason in reasons)


@pytest.mark.shared
def test_every_real_bill_reads_and_says_which_it_is(shared: Path) -> None:
    for path in sorted((shared / "corpora" / "bills").rglob("*.xml")):
        (document,) = READERS["bills"](path.read_bytes(), path.name)
        assert document.doc_id.startswith("BILLS-1")
        assert document.url.startswith("https://www.govinfo.gov/app/details/BILLS-") or "2245" in document.doc_id
        assert "unknown" not in document.stratum
        assert ": " in document.title
        if path.stem not in ("BILLS-113hr65ih", "BILLS-S2245_IS"):  # named after the wrong Congress, and by a draft
            assert document.doc_id == path.stem


@pytest.mark.shared
def test_the_folder_of_real_bills_reads_with_one_version_in_two_formats_set_aside(shared: Path) -> None:
    reading = read_folder(shared / "corpora" / "bills", "bills")
    assert len(reading.documents) == 122
    assert [name for name, _ in reading.quarantined] == ["bills-uslm/BILLS-116hr2157enr.xml"]
    assert (reading.n_duplicates, reading.n_ignored) == (0, 0)
