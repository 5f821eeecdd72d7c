import re

import numpy as np
import pytest

from runner.base.errors import InputError
from runner.base.records import Document, Section, Span
from runner.commands.main import main
from runner.eval_set.given import document_named, given_documents
from runner.queries.headings import asked_by_heading
from runner.tools import try_folder as tool
from runner.tools.try_folder import CELLS, Lists, try_folder
from tests.support.few import few  # noqa: F401  # a fixture

TOPICS = {
    "deposits": "A landlord keeps at most two months of rent, in an account apart, and pays interest on it.",
    "heating": "From October on every room reaches twenty degrees by day, or the rent falls by a tenth.",
    "pets": "A cat needs no leave. For a dog the owner of the house is asked, who answers in two weeks.",
    "noise": "After ten at night music stays within one's own walls; the court hears complaints.",
    "mould": "Who finds damp tells it in writing, and airs the rooms twice a day until a mason has come.",
    "parking": "Each flat has one place in the yard. Guests stand in the street, and lorries nowhere.",
}


def page(topic, text, headings=True):
    title, below = f"On {topic} in let flats", f"What the council says of {topic}"
    return f"# {title}\n\n{text}\n\n## {below}\n\n{text}\n" if headings else f"{text}\n\n{text}\n"


@pytest.fixture(name="folder")
def _folder(tmp_path):
    for topic, text in TOPICS.items():
        place = tmp_path / "tenants" / topic[0] / f"{topic}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(page(topic, text))
    return tmp_path / "tenants"


@pytest.mark.model
def test_a_folder_alone_is_ranked_by_its_headings_and_twice_the_same(folder):
    tried, again = (try_folder(folder) for _ in range(2))
    one = str(tried)
    assert one == str(again)
    assert {row.cell for row in tried.found.results.cells} == set(CELLS)
    assert tried.scope == (6, 6, 6, True, True, False)
    assert {query.kind for query in tried.found.results.queries} == {"given"}
    assert "A smoke test" in one


@pytest.mark.model
def test_wanted_documents_are_scored_and_the_page_shows_what_was_found(folder, tmp_path, capsys):
    queries = tmp_path / "asked.csv"
    rows = [f"Who decides on {topic}?,{topic[0]}/{topic}.md" for topic in TOPICS] + ["Who pays?,", "Who pays?,n-noise"]
    queries.write_text("\n".join(["query,document", *rows, "Who lives here?,"]))
    out = tmp_path / "tried.html"
    assert main(["try", str(folder), "--queries", str(queries), "--output", str(out)]) == 0
    printed = capsys.readouterr()
    assert all(cell.rpartition(" ")[2] in printed.out for cell in CELLS)
    assert (
        f"init --documents {folder} --name NAME --baseline '{CELLS[0]}'\n" in printed.out,
        out.as_uri() in printed.out,
    ) == (True, True)
    assert "not scored" in printed.err
    assert "q10" in printed.err
    text = out.read_text()
    assert "twice a day until a mason" in re.sub(r"</?mark>", "", text)
    assert not (tmp_path / "tenants" / "v1").exists()


@pytest.mark.model
def test_queries_of_which_nobody_says_what_is_right_are_compared_and_not_scored(folder, tmp_path):
    queries = tmp_path / "asked.txt"
    queries.write_text("Who pays interest on a deposit?\n\nMay a dog live here?\n")
    tried = try_folder(folder, queries)
    assert isinstance(tried.found, Lists)
    assert tried.scope == (6, 6, 2, False, False, False)
    assert str(tried).count("6.0 of 6\n") == len([cell for cell in CELLS[1:] if not cell.startswith("bm25")])
    shown = tried.found.page_with_passages().decode()
    assert shown.count("<details") == 2 * len(CELLS)
    assert "May a dog live here?" in shown


HOSTILE = {
    "no folder": (lambda folder: folder / "none", None, "none is not a folder"),
    "an empty folder": (lambda folder: folder.parent / "empty", None, "holds no"),
    "a file without content": (lambda folder: folder.parent / "void", None, "1 x is empty: a.md"),
    "one document": (lambda folder: folder / "p" / "pets.md", None, "1 document"),
    "no headings": (lambda folder: folder.parent / "plain", None, "--queries FILE"),
    "headings that all have": (lambda folder: folder.parent / "same", None, "0 of 3 documents"),
    "no queries": (lambda folder: folder, "query,document\n", "has no queries"),
    "no column": (lambda folder: folder, "asked,document\nWho?,p-pets\n", "columns query"),
    "a query without words": (lambda folder: folder, "query,document\nA,p-pets\n ,p-pets\n", ":3: no text"),
    "two rows that are wrong": (
        lambda folder: folder,
        "query,document\n ,p-pets\nA,p-pets\na\0,p-pets\n",
        ":4: no text",
    ),
    "fields too many": (lambda folder: folder, "query,document\nWho, what?,p-pets\n", ":2: 3 fields"),
    "an unknown document": (
        lambda folder: folder,
        "query,document\nA,p-pets\nB,p-pest\n",
        ":3: no document 'p-pest'; is it 'p-pets'",
    ),
}


@pytest.mark.parametrize(("place", "queries", "said"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_wrong_is_one_error_that_names_the_place(folder, tmp_path, place, queries, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "void").mkdir()
    (tmp_path / "void" / "a.md").touch()
    for kind in ("plain", "same"):
        (tmp_path / kind).mkdir()
        for number, text in enumerate([*TOPICS.values()][:3]):
            (tmp_path / kind / f"{number}.md").write_text(page("all things", text, headings=kind == "same"))
    path = tmp_path / "asked.csv"
    path.write_text(queries or "")
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        try_folder(place(folder), None if queries is None else path)
    assert "--corpus-path" not in str(caught.value), "try has no such flag"


def test_files_that_are_no_documents_are_counted_by_kind(folder, capsys):
    (folder / "prices.csv").write_text("item,price\n")
    assert len(given_documents(folder)) == len(TOPICS)
    assert "1 (1 .csv file)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *(("p-pets", "p-pets"), ("p/pets.md", "p-pets"), ("p/pets", "p-pets"), ("./p/pets.md", "p-pets")),
        *(("no. 5", "no.-5"), ("no. 5.TXT", "no.-5")),
    ],
)
def test_a_document_is_named_by_its_id_or_its_path(name, found):
    assert document_named(name, {"p-pets", "no.-5", "no"}, "here") == found


@pytest.mark.parametrize("name", ["p/pets.docx", "pets", "p/pets.md.md", "no.6"])
def test_what_names_no_document_is_said_with_the_place(name):
    with pytest.raises(InputError, match=f"here: no document '{name}'"):
        document_named(name, {"p-pets", "no.-5", "no"}, "here")


def test_a_large_folder_is_cut_by_its_chunks_and_what_is_wanted_stays(monkeypatch):
    monkeypatch.setattr(tool, "MOST_TEXTS", 40)
    documents = [Document(f"d{n}", f"Text {n} is short.", "", "s", f"d{n}", "") for n in range(5000)]
    wanted = frozenset({"d7", "d4999"})
    kept = tool._cut(documents, wanted)
    assert len(kept) == 20
    assert wanted <= {document.doc_id for document in kept}
    assert kept == tool._cut(documents[::-1], wanted)
    assert len(tool._cut(documents[:10], wanted)) == 10


@pytest.mark.model
def test_what_was_left_out_is_known_to_the_results_and_to_the_page(folder, monkeypatch):
    monkeypatch.setattr(tool, "MOST_TEXTS", 9)
    monkeypatch.setattr(tool, "N_HEADINGS", 2)
    tried = try_folder(folder)
    corpus = tried.found.results.corpus
    assert (corpus.documents, corpus.n_read) == (tried.scope.searched, tried.scope.documents)
    assert 2 <= corpus.documents < corpus.n_read == len(TOPICS)
    shown = tried.found.page_with_passages().decode()
    said, doubts = f"{corpus.documents} of {corpus.n_read} documents", shown.partition('<ul class="doubts">')[2]
    assert said in doubts.partition("</ul>")[0]
    assert said in shown.partition('<header class="first">')[2].partition("<h1>")[0]


BETWEEN = "Some text of a length that suffices, for it has more than eighty characters in all of it."


def documented(*headings, title="A title"):
    text, sections = "", []
    for heading in headings:
        start = len(text)
        text += f"{heading}\n\n{BETWEEN}\n\n"
        sections.append(Section(Span(start, len(text)), 1, "heading", heading))
    doc_id = title.replace(" ", "-")
    return Document(doc_id, text, title, "s", doc_id, "", tuple(sections))


def test_the_heading_that_is_asked_for_leaves_text_title_and_sections_of_its_document():
    document = documented("Of ferries and piers", "Of trains", title="Of ferries and piers")
    other = documented("Of ferries", "Of trains", title="Other things")
    found = dict(asked_by_heading([document, other], 20, 1))
    assert set(found) == {"Of ferries and piers", "Of ferries"}
    for heading, left in found.items():
        assert heading.casefold() not in f"{left.text} {left.title} {[part.label for part in left.sections]}".casefold()
    left = found["Of ferries and piers"]
    assert (left.title, [part.label for part in left.sections]) == ("", ["", "Of trains"])
    start = left.sections[1].span.start
    assert left.text[start:].startswith("Of trains")


@pytest.mark.parametrize("seed", range(20))
def test_headings_of_any_spacing_are_taken_out_whole(seed):
    rng = np.random.default_rng(seed)
    words = ["Cost", "costs", "OF", "of", "water", "1", "(a)", "§"]
    headings = [" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(rng.integers(1, 6))]
    for heading, left in asked_by_heading([documented(*headings)], 20, seed):
        assert re.search(r"\s+".join(map(re.escape, heading.split())), left.text, re.I) is None
        assert heading not in {part.label for part in left.sections}
