import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.shapes.queries import QueryRow
from runner.queries import checks
from runner.queries.checks import check, read_files
from runner.queries.query_file import read_queries
from runner.queries.wording import alike_in_words
from runner.tools.queries import report_text
from tests.support.query_fixtures import by_id, document
from tests.support.small_set import query_rows


def row(text, source="", kind="topic", origin="claude", **more):
    fields = {"id": "x1", "text": text, "kind": kind, "origin": origin, "source_document": source, **more}
    return QueryRow(**fields)


def checked(version, *rows, documents=None):
    beside = read_queries(version.queries_path) if version.queries_path.exists() else []
    return check(version, documents or corpus_documents(version, None), rows, beside)


def rules(findings):
    return {one.rule for one in findings}


def flags(report):
    return [report.flags(query.row.id) for query in report.queries]


def test_the_small_set_is_checked_whole_and_has_no_errors(version):
    rows = read_files([version.queries_path])
    report = checked(version, *rows)
    assert [query.row.id for query in report.queries] == [row["id"] for row in query_rows()]
    assert report.errors == []
    assert all(0 <= query.rank <= 16 for query in report.queries)
    assert all(0 <= query.overlap <= 1 for query in report.queries)
    assert checked(version, *rows) == report


def test_no_queries_at_all_lack_everything_and_break_nothing(version):
    version.queries_path.unlink()
    report = checked(version)
    assert (report.queries, report.errors) == ([], [])
    assert "demo v1: no queries" in report_text(report)


def test_ids_of_two_files_may_be_the_same_and_are_told_apart_and_equal_texts_are_errors(version, tmp_path):
    copy = tmp_path / "copy.yaml"
    copy.write_bytes(version.queries_path.read_bytes())
    rows = read_files([version.queries_path, copy])
    assert [row.id for row in rows[24:26]] == ["q25", "copy.yaml:q01"]
    assert rules(checked(version, *rows).errors) == {"same words"}


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("zeppelin moorings", "Zeppelin  moorings", "same words"),
        ("the license of a lighthouse dog", "Lighthouse dog: the license of a...", "same words"),
        (
            "license for a lighthouse dog",
            "what license does a lighthouse dog need for work on an island",
            "similar words",
        ),
        ("zeppelin moorings", "who pays for zeppelin moorings on lighthouses when fog has come", "similar words"),
        ("license for lighthouse dogs", "moorings for zeppelins", None),
        ("section 12 of the ferry code", "section 21 of the ferry code", None),
        ("H.R. 12", "H.R. 12, 118th Congress", None),
    ],
)
def test_queries_of_the_same_words_are_found_unless_a_number_parts_them(version, first, second, found):
    report = checked(version, row(first), row(second, id="x2"))
    assert rules(report.findings) & {"same words", "similar words"} == ({found} if found else set())
    assert bool(report.errors) == (found == "same words")


@given(st.lists(st.text(max_size=12), max_size=8))
def test_likeness_in_words_is_of_two_places_in_order(texts):
    for pair in alike_in_words(texts):
        assert pair.first < pair.second < len(texts)
        assert 80 <= pair.score <= 100


def test_likeness_does_not_depend_on_where_blocks_are_cut(monkeypatch):
    texts = [f"word{n % 7} ferry harbor dredging number" for n in range(30)]
    whole = alike_in_words(texts)
    monkeypatch.setattr("runner.queries.wording._AT_ONCE", 4)
    assert alike_in_words(texts) == whole


@pytest.mark.parametrize(
    ("doc_id", "text"),
    [
        ("BILLS-117hr110ih", "closed season for cod in the northern bay"),
        ("BILLS-117hr103ih", "what became of {title} in the end"),
    ],
    ids=["its first place proves nothing", "it holds the title"],
)
def test_a_query_that_gives_its_document_away_is_too_easy_but_for_who_cites_it(version, doc_id, text):
    text = text.format(title=by_id(version)[doc_id].title)
    report = checked(version, row(text, doc_id))
    assert report.queries[0].rank == 1
    assert "too easy" in flags(report)[0]
    assert flags(checked(version, row(text, doc_id, "citation")))[0] == []


def test_a_document_that_is_not_sampled_or_not_live_is_told(version):
    documents = [document("live"), document("dead", status="repealed")]
    report = checked(version, row("ferry", "gone"), row("harbor", "dead", id="x2"), documents=documents)
    assert [found[0] for found in flags(report)] == ["no document", "status"]
    assert [found.queries for found in report.errors] == [["x1"]]
    assert (report.queries[0].overlap, report.queries[0].rank) == (None, None)
    assert flags(checked(version, row("ferry")))[0] == []


def test_a_quotation_is_looked_for_where_it_should_stand(version):
    doc_id = "BILLS-117hr115ih"
    good = checked(version, row('which bill "keeps the tools at the end"', doc_id, "quote"))
    near = checked(version, row('which bill "keeps its tools at the end"', doc_id, "quote"))
    bad = checked(version, row('which bill "gives zeppelins to lighthouses"', doc_id, "quote"))
    assert [flags(report)[0] for report in (good, near, bad)] == [[], [], ["quotation"]]


def test_copied_words_and_odd_texts_are_told(version):
    one = by_id(version)["BILLS-117hr115ih"]
    run = " ".join(one.text.split()[8:18])
    report = checked(
        version,
        row(run, one.doc_id),
        row("ferry\u202eharbor", id="x2"),
        row("x " * 200, id="x3"),
        row("who is it", id="x4"),
        row("lighthouse dogs", id="x5", kind="gossip"),
    )
    assert "copied" in flags(report)[0]
    assert [found[0] for found in flags(report)[1:]] == ["wording"] * 3 + ["unknown kind"]


def test_generated_queries_that_lean_on_their_documents_are_told_once(version):
    rows = [row(text, f"BILLS-117hr{number}ih", id=number) for number, text in LEANING.items()]
    report = checked(version, *rows)
    assert [one.message for one in report.findings if one.rule == "close to documents"] == [
        "Queries of the origin claude share 1.00 of their words with their documents, citations and quotes left "
        "out; above 0.6 they favour retrieval by words."
    ]
    own = [each.model_copy(update={"origin": "person"}) for each in rows]
    assert "close to documents" not in rules(checked(version, *own).findings)


LEANING = {"101": "loans to growers of apples", "102": "dredge the channel of harbors", "103": "nurses and bakers ride"}


def test_what_is_too_few_or_of_one_kind_only_is_told(version):
    version.queries_path.unlink()
    report = checked(version, *[row(f"ferry{n} harbor{n} dog{n}", id=f"x{n}") for n in range(25)])
    said = [one.message for one in report.findings if one.rule in ("too few", "spread")]
    assert "0 queries are a person's own; 8 are wanted." in said
    assert "25 queries are of the kind topic; the source's share is 6." in said
    assert not any("missing" in message for message in said)
    assert "No query is of the kind citation; the source's share is 5." in said
    assert not any("at least 25" in message for message in said)


def test_a_thousand_documents_are_indexed_once_for_all_queries(version, monkeypatch):
    documents = [document(f"D{n}", f"Harbor{n} ferry{n % 50} dredging office.", f"Act {n}") for n in range(1000)]
    rows = [row(f"ferry{n % 50} harbor{n} what of office{n}", f"D{n}", id=f"x{n}") for n in range(300)]
    calls = []
    real = checks.bm25_run
    monkeypatch.setattr(checks, "bm25_run", lambda *given: calls.append(given) or real(*given))
    report = checked(version, *rows, documents=documents)
    assert len(calls) == 1
    assert len(report.queries) == 300
    assert all(query.rank == 1 for query in report.queries)


def test_a_file_that_is_no_queries_is_named_with_every_wrong_field(version, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("schema_version: 1\nqueries:\n  - {id: 'a b', text: '', kind: topic, origin: a guess}\n")
    with pytest.raises(InputError) as refused:
        read_files([path])
    assert all(f"{field}: not " in str(refused.value) for field in ("id", "text", "origin"))


def test_drafts_are_counted_with_the_queries_that_the_version_has(version):
    alone = read_queries(version.queries_path)[:3]
    assert "too few" not in rules(checked(version, *alone).findings)
    version.queries_path.unlink()
    assert "too few" in rules(checked(version, *alone).findings)


def test_the_table_shows_hostile_texts_and_interprets_none(version):
    evil = "<script>alert(1)</script> | `harbor`\u202e"
    one = document("E", f"harbor {evil}", f"# {evil}")
    text = report_text(checked(version, row(evil, "E", kind="<i>topic"), documents=[one]))
    assert not {"<script", "<i>topic", "\u202e"} & set(text.split())
    assert "<script" not in text
    head, _, line = text.splitlines()[:3]
    assert head.count("|") == line.replace("\\|", "").count("|") == 9
