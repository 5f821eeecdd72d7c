import shutil
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.canonical import file_sha256, json_bytes
from runner.base.errors import BackendError, InputError, IntegrityError
from runner.base.places import EVAL_SETS
from runner.base.records import Document
from runner.decide import passages
from runner.decide.passages import LONGEST, SEEN, densest, marked, query_terms, terms_of, with_passages, words_with
from runner.eval_set.corpus import archive_path, archived_documents, corpus_documents
from runner.eval_set.runs import packed
from runner.eval_set.shapes.lists import FurtherReading, ListedDocument, PairShown, QueryLists, RankedLists
from runner.eval_set.version import load_lists
from runner.report.local_copy import NAME, write_local_copy
from runner.retrieve.words import stemmed_terms, words
from tests.support.example_lists import listed_results
from tests.support.full_results import full_receipt

QUERY = "Who inspects levees before a flood?"
FILLER = "The clerk shall file the form in the office of the county on a weekday. "
LEVEE = "An engineer inspects each levee before the flood. "


def document(text, doc_id="d1", title="An Act"):
    return Document(doc_id, text, title, "", "", "")


def lists(*pairs, hits=None, doc_ids=("d1",)):
    listed = [ListedDocument(doc_id=doc_id, url="", title="") for doc_id in doc_ids]
    queries = [QueryLists(id="q01", relevant=1, documents=list(pairs), hits={"a": [], **(hits or {})})]
    return RankedLists(depth=30, texts=False, documents=listed, queries=queries)


def pair(grade=3, *, spans=(), number=0):
    return PairShown(
        document=number,
        grade=grade,
        judge="",
        reason="",
        spans=[list(span) for span in spans],
        readings=[FurtherReading(judge="b", model="", round=2, grade=0, reason="")],
        passages=[],
    )


def shown(text, listed, query=QUERY):
    """The passages of the first document of the only query, all of whose cells are shown."""
    made = with_passages(listed, {"d1": document(text)}, {"q01": query}, list(listed.queries[0].hits))
    return made.queries[0].documents[0].passages


# Words.


def one_word(text):
    (word,) = words(text)
    return word


@given(st.text(alphabet="aAbsSéß17 .'-\u2013\u2212\u00ad_\n(§", max_size=40))
def test_the_terms_of_a_text_are_those_that_the_sparse_cells_look_for(text):
    assert query_terms(text) == frozenset(stemmed_terms(text))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Inspections", {"inspect"}),
        ("the", set()),
        ("78dd\u20131", {"78dd", "1", "78dd-1"}),
        ("cost-sharing", {"cost", "share"}),
        ("co\u00adoperate", {"cooper"}),
    ],
)
def test_a_word_stands_for_its_stems(text, terms):
    assert terms_of(one_word(text)) == terms


def test_a_citation_is_marked_where_it_is_printed():
    text = "as in co\u00adop law (42 U.S.C. 1983)"
    parts = marked(text, query_terms("42 USC § 1983"))
    assert [part for part, is_marked in parts if is_marked] == ["42", "U.S.C.", "1983"]


@given(st.text(alphabet="abc levee flood-\u00ad\n<&", max_size=60))
def test_the_parts_of_a_marked_text_make_it_up_again_and_no_two_neighbours_are_alike_unmarked(text):
    parts = marked(text, frozenset({"leve", "flood"}))
    assert "".join(part for part, _ in parts) == text
    assert all(part for part, _ in parts)
    assert not any(not one and not other for (_, one), (_, other) in pairwise(parts))
    assert all(query_terms(part) & {"leve", "flood"} for part, is_marked in parts if is_marked)


def test_nothing_is_marked_for_a_query_without_a_term():
    assert marked(LEVEE, query_terms("is it the?")) == [(LEVEE, False)]
    assert marked("", frozenset({"leve"})) == []


WORDS = st.lists(st.sampled_from(["levee", "floods", "a", "clerk", "inspect-flood", "\n", "x" * 9]), max_size=40)


@given(WORDS, st.integers(0, 200), st.integers(0, 200), st.integers(1, 60))
def test_the_densest_window_is_the_one_that_trying_all_of_them_finds(drawn, low, length, width):
    text, terms = " ".join(drawn), query_terms(QUERY)
    found = [(word.start, word.end, terms & terms_of(word)) for word in words(text)]
    inside = [word for word in found if word[2] and low <= word[0] < low + length]
    best = None
    for place, (start, end, _) in enumerate(inside):
        window = [word for word in inside[place:] if word[1] <= start + width] or [(start, end, inside[place][2])]
        key = len(frozenset().union(*(word[2] for word in window))), len(window)
        if best is None or key > best[2:]:
            best = (start, window[-1][1], *key)
    assert densest(words_with(terms, text), low, low + length, width) == best


# Passages.


def test_a_passage_is_what_stands_there_at_most_so_long_and_begins_and_ends_with_a_word():
    text = FILLER * 40 + LEVEE + FILLER * 40
    (one,) = shown(text, lists(pair(), hits={"a": [[0, 0, len(text)]]}))
    assert text[one.start : one.end] == one.text
    assert LEVEE.strip() in one.text
    assert LONGEST - 20 < len(one.text) <= LONGEST
    assert text[one.start - 1].isspace()
    assert text[one.end].isspace()
    assert one.text == one.text.strip()


def test_passages_lie_where_cells_or_judges_point_and_nowhere_else():
    text = LEVEE * 10 + FILLER * 60 + LEVEE * 10
    start = len(LEVEE) * 10
    found = shown(text, lists(pair(), hits={"a": [[0, start, start + 900]]}))
    assert [one.start >= start and one.end <= start + 900 for one in found] == [True]


def test_of_what_the_judge_marked_the_best_is_there_and_each_chunk_that_ranked_the_document():
    text = LEVEE * 40 + FILLER * 40
    start = len(LEVEE) * 40
    hits = {cell: [[0, 600 * n, 600 * n + 590]] for n, cell in enumerate("ab")}
    marks = [(start, start + len(FILLER)), (1250, 1250 + len(LEVEE))]
    found = shown(text, lists(pair(spans=marks), hits=hits))
    assert len(found) == 3
    for low, high in ((0, 590), (600, 1190), marks[1]):
        assert any(each.start < high and low < each.end for each in found)


def test_a_chunk_of_another_cell_or_below_the_first_hits_has_no_passage():
    text = (FILLER * 9 + LEVEE) * 8
    listed = lists(pair(), *(pair(0) for _ in range(SEEN)), hits={"a": [[0, 0, 90]], "b": [[0, 700, 900]]})
    made = with_passages(listed, {"d1": document(text)}, {"q01": QUERY}, ["a"])
    (one,) = made.queries[0].documents[0].passages
    assert one.end <= 90
    below = {"a": [*([n + 1, 0, 10] for n in range(SEEN)), [0, 0, 90]]}
    assert shown(text, listed.model_copy(update={"queries": [_with_hits(listed, below)]})) == []


def _with_hits(listed, hits):
    return listed.queries[0].model_copy(update={"hits": hits})


def test_a_mark_has_its_passage_though_no_cell_lists_the_document():
    (one,) = shown(FILLER * 3 + LEVEE, lists(pair(spans=[(0, len(FILLER))]), hits={}))
    assert one.text == FILLER.strip()
    assert shown(LEVEE, lists(pair(), hits={})) == []


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 900)), min_size=1, max_size=6), st.integers(0, 900))
def test_every_chunk_has_a_passage_that_lies_in_it_wherever_others_and_marks_are(drawn, mark):
    text = (FILLER + LEVEE) * 15
    spans = [(start, start + length) for start, length in drawn]
    hits = {f"c{n}": [[0, *span]] for n, span in enumerate(spans)}
    found = shown(text, lists(pair(spans=[(mark, mark + 60)]), hits=hits))
    for low, high in spans:
        assert not text[low:high].strip() or any(low <= each.start and each.end <= high for each in found)
    assert len({(each.start, each.end) for each in found}) == len(found)


def test_a_chunk_is_shown_from_its_beginning_where_it_has_no_word_of_the_query():
    (one,) = shown(FILLER * 30, lists(pair(), hits={"a": [[0, 0, len(FILLER) * 30]]}))
    assert one.start == 0


def test_spans_past_the_text_and_spans_of_white_space_show_nothing():
    text = LEVEE + " " * 50 + "end"
    hits = {"a": [[0, 10_000, 10_400]], "b": [[0, len(LEVEE), len(LEVEE) + 40]]}
    assert shown(text, lists(pair(), hits=hits)) == []
    assert shown(text, lists(pair(), hits={"a": [[0, 3, 10_000]]}))[0].end <= len(text)


def test_a_line_without_white_space_is_cut_where_the_passage_ends():
    text = "x" * 1_000_000 + "-levee-" + "y" * 1_000_000
    (one,) = shown(text, lists(pair(), hits={"a": [[0, 0, len(text)]]}))
    assert len(one.text) == LONGEST
    assert text[one.start : one.end] == one.text


def test_every_document_is_read_once_for_all_queries(monkeypatch):
    read = []
    words = passages.words_with
    monkeypatch.setattr(passages, "words_with", lambda terms, text: read.append(text) or words(terms, text))
    one = lists(pair(), hits={"a": [[0, 0, len(LEVEE)]]})
    many = one.model_copy(
        update={"queries": [one.queries[0].model_copy(update={"id": f"q{n:02d}"}) for n in range(1, 26)]}
    )
    made = with_passages(many, {"d1": document(LEVEE * 9)}, {query.id: QUERY for query in many.queries}, ["a"])
    assert len(read) == 1
    assert {query.documents[0].passages[0].text for query in made.queries} == {LEVEE.strip()}


def test_titles_come_with_the_passages_and_what_is_not_in_the_corpus_has_neither():
    listed = lists(pair(), pair(number=1), doc_ids=("d1", "gone"), hits={"a": [[0, 0, 9], [1, 0, 9]]})
    made = with_passages(listed, {"d1": document(LEVEE)}, {"q01": QUERY}, ["a"])
    assert made.texts
    assert [one.title for one in made.documents] == ["An Act", ""]
    assert made.queries[0].documents[1].passages == []
    assert not listed.texts
    assert listed.documents[0].title == ""
    assert listed.queries[0].documents[0].passages == []


@given(st.text(alphabet="ab levee\n\u00ad-", min_size=1, max_size=300), st.integers(0, 320), st.integers(1, 320))
def test_any_text_and_any_span_give_whole_passages_and_the_same_ones_again(text, start, length):
    if not text.strip():
        return
    listed = lists(pair(spans=[(start, start + length)]), hits={"a": [[0, start // 2, start + 1]]})
    found = shown(text, listed)
    assert found == shown(text, listed)
    assert all(text[one.start : one.end] == one.text == one.text.strip() for one in found)


# The local copy.


@pytest.fixture(name="scored")
def _scored(version):
    """The small set's version with results that list its documents; they are invented, its corpus is not."""
    documents = corpus_documents(version, None)
    results, lists = listed_results(texts=False)
    listed = [
        one.model_copy(update={"doc_id": found.doc_id, "url": ""})
        for one, found in zip(lists.documents, documents, strict=False)
    ]
    made = results.model_copy(update={"digests": results.digests | {"corpus.jsonl": file_sha256(version.corpus_path)}})
    own = lists.model_copy(update={"documents": listed})
    for name, value in (("results", made), ("receipt", full_receipt(results))):
        (version.record / f"{name}.json").write_bytes(json_bytes(value.model_dump()))
    version.lists_path.write_bytes(packed(json_bytes(own.model_dump())))
    return version


def test_a_local_copy_shows_passages_of_the_archived_documents_and_says_so(scored):
    before = sorted(scored.folder.parent.rglob("*"))
    path = write_local_copy(scored)
    assert path == scored.work / NAME
    assert set(scored.folder.parent.rglob("*")) - set(before) == {path}
    page = path.read_text(encoding="utf-8")
    assert "Local copy with passages" in page
    assert file_sha256(scored.record / "results.json") in page
    stored = load_lists(scored)
    texts = {one.doc_id: one for one in archived_documents(scored)}
    for listed in stored.documents:
        assert texts[listed.doc_id].title in page
    assert page.count('<p class="chunk" dir="auto">') >= 25 * 2
    assert write_local_copy(scored).read_text(encoding="utf-8") == page


def test_a_local_copy_goes_where_one_says_but_never_into_an_eval_set(scored, tmp_path):
    elsewhere = tmp_path / "new" / "mine.html"
    assert write_local_copy(scored, elsewhere) == elsewhere
    (tmp_path / "link").symlink_to(scored.folder)
    committed = EVAL_SETS / "demo" / "page.html"
    for place in (scored.folder / "p.html", scored.folder.parent / "p.html", tmp_path / "link" / "p.html", committed):
        with pytest.raises(InputError, match=r"which is committed.*Give --output another place"):
            write_local_copy(scored, place)
        assert not place.exists()


def test_a_local_copy_never_replaces_what_is_no_page(scored, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    with pytest.raises(InputError, match=r"Give --output a name that ends in \.html"):
        write_local_copy(scored, notes)
    assert notes.read_text() == "mine"
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        write_local_copy(scored, tmp_path / "folder.html")
    with pytest.raises(BackendError, match="cannot be written"):
        write_local_copy(scored, notes / "page.html")


def test_without_the_archive_there_is_no_local_copy_and_the_message_says_what_to_do(scored):
    archive_path(scored).unlink()
    with pytest.raises(InputError, match=r"corpus\.tar\.zst is missing\. Put the archive back.*leave out --passages"):
        write_local_copy(scored)
    archive_path(scored).write_bytes(b"not an archive")
    with pytest.raises(InputError, match=r"corpus\.tar\.zst is damaged.*Put the archive back"):
        write_local_copy(scored)
    assert not (scored.work / NAME).exists()


def test_results_over_another_manifest_are_refused(scored):
    scored.corpus_path.write_bytes(scored.corpus_path.read_bytes() + b"\n")
    with pytest.raises(IntegrityError, match=r"is not the manifest that .*results\.json was made over"):
        write_local_copy(scored)


def test_a_version_without_results_says_what_brings_them(scored):
    shutil.rmtree(scored.record)
    with pytest.raises(InputError, match=r"results\.json does not exist; `run` makes it"):
        write_local_copy(scored)
