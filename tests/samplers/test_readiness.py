import json
from collections import Counter

from runner.base.records import Document, Section, Span
from samplers.corpus.near_duplicates import near_duplicates
from samplers.corpus.parse import Reading, read_corpus
from samplers.corpus.readiness import lines, readiness
from samplers.corpus.shelf import Shelf
from tests.support.small_bills import in_folder, numbered


def document(n: int, text: str, stratum: str = "a", status: str = "") -> Document:
    sections = (Section(Span(0, 4), 1, "section", "Sec. 1"),)
    return Document(f"d{n:03}", text, "title", stratum, f"f{n // 2}", "", sections, status)


def reading(documents: list[Document], **fields: object) -> Reading:
    values = {"n_files": len(documents), "n_characters": 90, "left_out": Counter(metadata=10)}
    shelf = Shelf()
    cards = {each.doc_id: shelf.put(each, "") for each in documents}
    return Reading(shelf=shelf, cards=cards, **(values | fields))


def report_of(documents: list[Document], **fields: object) -> dict:
    held = reading(documents, **fields)
    return readiness(held, near_duplicates(held.texts))


LONG = " ".join(f"word{n}" for n in range(200))


def test_a_report_counts_what_the_corpus_held():
    documents = [document(n, LONG + f" {n % 3} " * n, "ab"[n % 2], "reserved" if n == 3 else "") for n in range(6)]
    reasons = ("malformed XML (line 1)", "malformed XML (line 9)", "the file is empty")
    quarantined = tuple(zip(("a.xml", "b.xml", "c.xml"), reasons, strict=True))
    report = report_of(documents, quarantined=quarantined, n_files=9, n_superseded=4, skipped={"notices": 7})
    assert (report["files"], report["files_quarantined"], report["documents"]) == (9, 3, 6)
    assert report["quarantine_reasons"] == {"malformed XML": 2, "the file is empty": 1}
    assert (report["sections"], report["families"], report["documents_superseded"]) == (6, 3, 4)
    assert report["documents_out_of_scope"] == {"notices": 7}
    assert report["statuses"] == {"live": 5, "reserved": 1}
    assert report["strata"] == {"a": 3, "b": 3}
    assert report["coverage"] == 0.9
    assert report["characters"] == sum(len(item.text) for item in documents)
    sizes = sorted(len(item.text) for item in documents)
    middle = {"p10": sizes[0], "p50": sizes[2], "p90": sizes[4]}
    assert report["length_quantiles"] == {"p0": sizes[0], **middle, "p100": sizes[5]}


def test_near_duplicates_are_counted_beyond_the_first_of_each_cluster():
    documents = [document(n, LONG if n < 4 else f"{n} other " * 50) for n in range(10)]
    report = report_of(documents)
    assert report["near_duplicate_rate"] == 0.3
    assert report["near_duplicate_clusters"] == 1


def test_documents_that_may_hold_others_are_named(tmp_path):
    files = {"a.xml": numbered(1, "x" * 340_001), "b.xml": numbered(2), "c.xml": numbered(3, "x</text><text>H. R. 22")}
    found = read_corpus(in_folder(tmp_path, files), "bills")
    report = readiness(found, near_duplicates(found.texts))
    (long, n_long, none), (short, n_short, other) = report["swallowing"]
    assert (long, none, short, other) == ("BILLS-117hr1ih", "", "BILLS-117hr3ih", "H. R. 22")
    said = "\n".join(lines(report))
    assert (
        f"may hold others: 2\n  {long}: {n_long:,} characters\n  {short}: {n_short:,} characters, H. R. 22 beg" in said
    )
    assert "may hold" not in "\n".join(lines(report_of([document(0, LONG)])))


def test_a_report_is_plain_json_and_its_lines_say_the_same():
    documents = [document(n, LONG) for n in range(12)]
    many = tuple((f"{n}.xml", f"reason {n}") for n in range(12))
    report = report_of(documents, quarantined=many, n_files=600, ignored={".pdf file": 3})
    assert json.loads(json.dumps(report)) == report
    said = "\n".join(lines(report))
    assert "files: 600 read, 0 of them empty and 12 quarantined" in said
    assert "files of other kinds: 3\n  3 .pdf file" in said
    assert "  and 2 more" in said
    assert "near-duplicates: 91.7% of the documents, 1 clusters" in said
    assert all(len(line) < 200 for line in lines(report))
