"""Anybody's documents: what files and records become, and what is refused in one clear sentence."""

import json
import sqlite3
import zipfile
from pathlib import Path

import pytest

from runner.base.errors import InputError
from runner.base.records import Document
from samplers.corpus.parse import Reading, read_corpus
from tests.support.small_pdf import column, pdf

FRONT = "---\ntitle: Deposits Act\ntopic: rent\nday: 2020-01-01\ntags: [a, b]\n---\n# Deposits\n\nGive them back.\n"


def read(place: Path, *options: str) -> Reading:
    return read_corpus(place, "documents", frozenset(options))


def one(tmp_path: Path, name: str, content: str | bytes, *options: str) -> Document:
    """The document that a folder of one file holds."""
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (document,) = read(tmp_path / "in", *options).documents
    return document


def headings(document: Document) -> list[tuple[int, str]]:
    return [(section.level, section.label) for section in document.sections]


def refused(tmp_path: Path, name: str, content: str | bytes, *options: str) -> str:
    """What is said of a folder of one file that is no document."""
    with pytest.raises(InputError) as caught:
        one(tmp_path, name, content, *options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "options", "facts"),
    [
        ("rent/a.md", FRONT, (), ("rent-a", "Deposits Act", "rent", "rent-a")),
        ("x/a.md", FRONT, ("stratum=topic", "title=heading"), ("x-a", "Deposits", "rent", "x-a")),
        ("x/a.md", FRONT, ("family=title", "id=day"), ("2020-01-01", "Deposits Act", "x", "Deposits Act")),
        ("x/a.md", FRONT, ("stratum=tags",), ("x-a", "Deposits Act", "a-b", "x-a")),
        ("a.md", "No heading here, but words.", (), ("a", "a", "unknown", "a")),
        ("a.md", "---\nA rule, no field\n---\nWords.", (), ("a", "A rule, no field", "unknown", "a")),
        ("a.txt", "An Act on Bees\n\nHives are boxes.", (), ("a", "An Act on Bees", "unknown", "a")),
        ("b/p.html", "<title>404 Deposits</title><p>x", (), ("b-p", "404 Deposits", "b", "b-p")),
        ("a.pdf", pdf([column(["An Act on Bees", "Hives are boxes."])]), (), ("a", "An Act on Bees", "unknown", "a")),
        ("r.json", '{"id": "law/1", "text": "Words", "n": 3}', ("title=n",), ("law-1", "3", "unknown", "law-1")),
        ("r.jsonl", '\n{"body": "Words.", "title": null}\n', ("text=body",), ("r-2", "r-2", "unknown", "r-2")),
        ("r.json", '[{"text": "Two laws"}]', (), ("r-1", "Two laws", "unknown", "r-1")),
    ],
)  # fmt: skip
def test_id_title_stratum_and_family_come_from_fields_and_else_from_the_file(tmp_path, name, content, options, facts):
    document = one(tmp_path, name, content, *options)
    assert (document.doc_id, document.title, document.stratum, document.family) == facts


LAW = """An Act on Bees

Title I General

Chapter 1

Article 1. Hives

A hive is a box in which bees live and which is
Section 8 applies to what is moved by persons that
keep bees, and by nobody else of any description.

Artículo 2 – Enjambres

See article 1 of this Act.

§ 3. Amount.
The fine is 50 dollars for the first hive that is lost by its keeper and 20 for others.

Section 4. The fine is doubled for any person who was fined in the year before this one.

2.1 Costs

They are borne by the keeper.
"""


def test_headings_of_text_are_numbered_lines_ranked_by_the_word_before_the_number(tmp_path):
    expected = [
        (1, "Title I General"),
        (2, "Chapter 1"),
        (3, "Article 1. Hives"),
        (3, "Artículo 2 – Enjambres"),
        (4, "§ 3. Amount."),
        (5, "2.1 Costs"),
    ]
    assert headings(one(tmp_path, "law.txt", LAW)) == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "# One\n\nWords.\n\n## Two\n\nMore."),
        ("a.html", "<script>let x = '<h1>No</h1>'</script><nav>Menu</nav><h1>One</h1>Words.<h2>Two</h2>More."),
        ("a.json", json.dumps({"text": "# One\n\nWords.\n\n## Two\n\nMore."})),
        ("a.json", json.dumps({"text": "<h1>One</h1><p>Words.</p><h2>Two</h2>More."})),
    ],
)
def test_markdown_html_and_records_of_either_have_the_same_sections_and_no_word_of_a_script(tmp_path, name, content):
    document = one(tmp_path, name, content)
    assert (document.text, headings(document)) == ("One\n\nWords.\n\nTwo\n\nMore.", [(1, "One"), (2, "Two")])


@pytest.mark.parametrize("charset", ["windows-1252", "ISO-8859-1", "iso-8859-15"])
def test_a_page_that_declares_its_charset_is_read_in_it(tmp_path, charset):
    page = f'<head><meta http-equiv="Content-Type" content="text/html; charset={charset}"></head><p>Café - Straße'
    assert one(tmp_path, "a.html", page.encode(charset)).text == "Café - Straße"
    assert "not UTF-8" in refused(tmp_path, "b.html", page.replace(charset, "utf-9").encode("cp1252"))


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
def test_text_in_utf_16_is_read_by_its_mark(tmp_path, mark):
    assert one(tmp_path, "a.md", "\ufeff# Café\r\n\r\nWords.".encode(mark)).text == "Café\n\nWords."


def test_folder_zip_file_and_table_hold_the_same_records(tmp_path):
    rows = [{"id": f"r{n}", "text": f"Words {n}", "topic": "x"} for n in range(3)]
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(lines, "laws/rows.jsonl")
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE laws (id, text, topic)")
        database.executemany("INSERT INTO laws VALUES (:id, :text, :topic)", rows)
    database.close()
    of_lines = read(lines, "stratum=topic").documents
    assert [document.doc_id for document in of_lines] == ["r0", "r1", "r2"]
    assert read(tmp_path / "a.zip", "stratum=topic").documents == of_lines
    assert read(tmp_path / "a.db", "stratum=topic").documents == of_lines
    assert read(tmp_path / "a.db", "stratum=topic", "table=laws").documents == of_lines


@pytest.mark.parametrize(
    ("name", "content", "options", "said"),
    [
        ("a.md", "---\ntitle: [\n---\nWords.", (), "its front matter is not YAML"),
        ("a.md", "---\nx: &a 1\ny: *a\n---\nWords.", (), "its front matter is not YAML (found an alias"),
        ("a.md", b"\xff\xfe\x00", (), "binary data"),
        ("a.md", b"caf\xe9", (), "not UTF-8 (byte 4)"),
        ("a.html", "<script>only()</script>", (), "has no text but what is on every page"),
        ("a.pdf", pdf([[]]), (), "it is a scan or empty"),
        ("a.pdf", b"%PDF-1.7\nno more", (), "PDF: damaged"),
        ("r.json", '{"body": "Words."}', (), "no text in the field 'text'. Fields: body. Name the one that has it"),
        ("r.json", '{"text": ["Words."]}', (), "no text in the field 'text'"),
        ("r.json", "[1]", (), "record 1 is not an object"),
        ("r.json", "{", (), "not JSON"),
        ("r.json", "[" * 100_000, (), "nests too deep"),
        ("r.jsonl", '{"text": "a"}\nx', (), "line 2: not JSON"),
        ("r.jsonl", '{"text": "a"}\n{"texts": "b"}', (), "record 2: no text in the field 'text'. Fields: texts"),
        ("r.jsonl", '{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}', (), "its id has another text (1 was read from"),
        ("r.jsonl", '{"text": null}', (), "1 left out as record without a text"),
        ("a.csv", "x", (), "holds no .md or"),
        ("a.md", "Words", ("body=x",), "has no option 'body'"),
    ],
)
def test_what_is_no_document_is_refused_with_its_reason(tmp_path, name, content, options, said):
    assert said in refused(tmp_path, name, content, *options)


@pytest.mark.parametrize(
    ("statements", "options", "said"),
    [
        (("CREATE TABLE a (text)", "CREATE TABLE b (text)"), (), "which table has the documents? Name it: table=NAME"),
        (("CREATE TABLE a (text)",), ("table=b",), "the table b is not there"),
        (("CREATE VIEW a AS SELECT 'x' AS text",), (), "a is a view, not a table"),
        (("CREATE TABLE a (body)", "INSERT INTO a VALUES ('x')"), (), "Fields: body"),
        (("CREATE TABLE a (text)",), (), "holds no .md"),
    ],
)
def test_a_table_that_cannot_be_read_says_what_to_name(tmp_path, statements, options, said):
    with sqlite3.connect(tmp_path / "a.db") as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    with pytest.raises(InputError) as caught:
        read(tmp_path / "a.db", *options)
    assert said in str(caught.value)


def test_a_file_larger_than_its_limit_is_not_opened(tmp_path):
    (tmp_path / "a.md").write_text("Words.")
    with (tmp_path / "huge.jsonl").open("wb") as file:
        file.truncate(2_000_000_000)
    with pytest.raises(InputError, match="2000 MB, more than the limit of 160 MB"):
        read(tmp_path)
