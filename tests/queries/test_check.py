from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError, InputError
from runner.embed.backends import LocalBackend
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.shapes.queries import QueryRow
from runner.queries import findability
from runner.queries.check_schemas import QueryReport
from runner.queries.checks import NOT_ASKED_FOR, FileRow, _beside, check, read_files
from runner.queries.wording import SAME_MEANING, alike_in_meaning, alike_in_words
from runner.report.query_review import review_page, summary
from tests.support.query_fixtures import by_id, document
from tests.support.small_set import fake_encoders, query_rows

BACKEND = LocalBackend(fake_encoders)
REAL = LocalBackend()


def row(text, source="", kind="topic", origin="generated", **more):
    fields = {"id": "x1", "text": text, "kind": kind, "origin": origin, "source_document": source, **more}
    return FileRow("f.yaml", QueryRow(**fields))


def checked(version, *rows, backend=None, documents=None):
    return check(version, documents or corpus_documents(version, None), rows, backend)


def rules(report, severity=None):
    return {one.rule for one in report.findings if severity in (None, one.severity)}


def test_the_small_set_is_checked_whole_and_has_no_errors(version):
    report = checked(version, *read_files([version.queries_path]), backend=BACKEND)
    assert [query.id for query in report.queries] == [row["id"] for row in query_rows()]
    assert report.errors == []
    assert report.skipped == ""
    assert {means.origin: means.queries for means in report.origins} == {"hand": 12, "generated": 13}
    assert all(1 <= query.encoder_rank <= 16 for query in report.queries)
    assert all(0 <= query.overlap <= 1 and 0 <= query.distinctive <= 1 for query in report.queries)
    assert QueryReport.model_validate(report.model_dump()) == report


def test_a_check_twice_says_the_same(version):
    rows = read_files([version.queries_path])
    assert checked(version, *rows, backend=BACKEND) == checked(version, *rows, backend=BACKEND)


def test_no_queries_at_all_lack_everything_and_break_nothing(version):
    version.queries_path.unlink()
    report = checked(version, backend=BACKEND)
    assert report.queries == []
    assert rules(report) == {"too few", "spread"} or rules(report) == {"too few"}
    assert "0 queries of demo v1" in summary(report)
    assert b"0 queries from no file" in review_page(report)


def test_repeated_ids_and_texts_are_errors_but_harvested_texts_may_repeat(version):
    one, again = row("zeppelin moorings"), row("Zeppelin  moorings", id="x2")
    assert rules(checked(version, one, again), "error") == {"same text"}
    assert rules(checked(version, one, row("lighthouse dogs"))) >= {"same id"}
    harvested = [row("zeppelin moorings", id=f"h{n}", origin="harvested") for n in range(2)]
    assert rules(checked(version, *harvested), "error") == set()


def test_ids_of_two_files_may_be_the_same_and_are_told_apart(version, tmp_path):
    copy = tmp_path / "copy.yaml"
    copy.write_bytes(version.queries_path.read_bytes())
    rows = read_files([version.queries_path, copy])
    assert [each.row.id for each in rows[24:26]] == ["q25", "copy.yaml:q01"]
    assert rules(checked(version, *rows), "error") == {"same text"}


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("the license of a lighthouse dog", "Lighthouse dog: the license of a...", "same words"),
        (
            "license for a lighthouse dog",
            "what license does a lighthouse dog need for work on an island",
            "similar words",
        ),
        ("license for lighthouse dogs", "moorings for zeppelins", None),
        ("section 12 of the ferry code", "section 21 of the ferry code", None),
        ("H.R. 12", "H.R. 12, 118th Congress", None),
    ],
)
def test_queries_of_the_same_words_are_found_unless_a_number_parts_them(version, first, second, found):
    report = checked(version, row(first), row(second, id="x2"))
    assert rules(report) & {"same words", "similar words"} == ({found} if found else set())
    assert bool(report.errors) == (found == "same words")


@given(st.lists(st.text(max_size=12), max_size=8))
def test_likeness_in_words_is_of_two_places_in_order(texts):
    for pair in alike_in_words(texts):
        assert pair.first < pair.second < len(texts)
        assert 80 <= pair.score <= 100


def test_likeness_does_not_depend_on_where_blocks_are_cut(monkeypatch):
    texts = [f"word{n % 7} ferry harbor dredging number" for n in range(30)]
    rows = np.eye(7, dtype=np.float32)[[n % 7 for n in range(30)]]
    whole = alike_in_words(texts), alike_in_meaning(texts, rows)
    monkeypatch.setattr("runner.queries.wording._AT_ONCE", 4)
    assert (alike_in_words(texts), alike_in_meaning(texts, rows)) == whole
    assert len(whole[1]) == sum(texts[a] == texts[b] for a in range(30) for b in range(a))


def test_likeness_in_meaning_begins_at_its_cosine_and_ends_at_a_number():
    near = np.array([[1, 0], [SAME_MEANING + 0.001, (1 - (SAME_MEANING + 0.001) ** 2) ** 0.5]], np.float32)
    far = np.array([[1, 0], [SAME_MEANING - 0.001, (1 - (SAME_MEANING - 0.001) ** 2) ** 0.5]], np.float32)
    assert [(pair.first, pair.second) for pair in alike_in_meaning(["a b", "c d"], near)] == [(0, 1)]
    assert alike_in_meaning(["a b", "c d"], far) == []
    assert alike_in_meaning(["fund 2019", "fund 2020"], near) == []


def test_queries_that_mean_the_same_are_found_by_the_encoder(version):
    texts = ("Each bank must report suspicious transactions within days", "Each bank must report at once")
    found = checked(version, row(texts[0]), row(texts[0] + " or at", id="x2"), row(texts[1], id="x3"), backend=BACKEND)
    assert "same meaning" not in rules(found)  # said once, by words
    assert {"same words"} <= rules(found)


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
    (query,) = checked(version, row(text, doc_id)).queries
    assert query.bm25_rank == 1
    assert "too easy" in query.flags
    assert checked(version, row(text, doc_id, "citation")).queries[0].flags == []


def test_a_query_that_neither_search_finds_its_document_for_is_impossible(version):
    others = [document(f"O{n}", f"Zeppelin moorings on lighthouse number{n}.", f"Fog {n}") for n in range(150)]
    target = document("T", "Cheese is weighed at noon.", "Dairy")
    found = checked(version, row("zeppelin moorings lighthouse", "T"), documents=[*others, target], backend=BACKEND)
    assert (found.queries[0].bm25_rank, found.queries[0].encoder_rank) == (0, 0)
    assert "impossible" in found.queries[0].flags
    without = checked(version, row("zeppelin moorings lighthouse", "T"), documents=[*others, target])
    assert without.queries[0].flags == []
    assert without.queries[0].encoder_rank is None


def test_in_a_sample_smaller_than_the_depth_the_lower_half_is_out_of_reach(version):
    others = [document(f"O{n}", f"Zeppelin moorings on lighthouse number{n}.", f"Fog {n}") for n in range(9)]
    documents = [*others, document("T", "Cheese is weighed at noon.", "Dairy")]
    report = checked(version, row("zeppelin moorings lighthouse", "T"), documents=documents, backend=BACKEND)
    query = report.queries[0]
    assert (query.bm25_rank, query.no_word) == (0, True)
    assert 5 < query.encoder_rank <= 10
    assert "impossible" in query.flags
    assert any(f"has it at {query.encoder_rank} of 10" in one.message for one in report.findings)
    assert "no word" in summary(report)
    assert ">no word</td>" in review_page(report).decode()
    found = checked(version, row("cheese at noon", "T"), documents=documents, backend=BACKEND).queries[0]
    assert not found.no_word
    assert "impossible" not in found.flags


def test_a_document_that_is_not_sampled_or_not_live_is_told(version):
    documents = [document("live"), document("dead", status="repealed")]
    report = checked(version, row("ferry", "gone"), row("harbor", "dead", id="x2"), documents=documents)
    assert [query.flags[0] for query in report.queries] == ["no document", "status"]
    assert (report.queries[0].overlap, report.queries[0].bm25_rank) == (None, None)
    assert checked(version, row("ferry")).queries[0].flags == []


def test_a_quotation_is_looked_for_where_it_should_stand(version):
    doc_id = "BILLS-117hr115ih"
    good = checked(version, row('which bill "keeps the tools at the end"', doc_id, "quote"))
    near = checked(version, row('which bill "keeps its tools at the end"', doc_id, "quote"))
    bad = checked(version, row('which bill "gives zeppelins to lighthouses"', doc_id, "quote"))
    assert [report.queries[0].flags for report in (good, near, bad)] == [[], [], ["quotation"]]


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
    assert "copied" in report.queries[0].flags
    assert [query.flags[0] for query in report.queries[1:]] == ["wording"] * 3 + ["unknown kind"]


def test_generated_queries_that_lean_on_their_documents_are_told_once(version):
    rows = [replace(row(text, f"BILLS-117hr{number}ih", id=number)) for number, text in LEANING.items()]
    report = checked(version, *rows)
    assert [one.message for one in report.findings if one.rule == "close to documents"] == [
        "Queries of the origin generated share 1.00 of their words with their documents, citations and quotes left "
        "out; above 0.6 they favour retrieval by words."
    ]
    own = [replace(each, row=each.row.model_copy(update={"origin": "hand"})) for each in rows]
    assert "close to documents" not in rules(checked(version, *own))


LEANING = {"101": "loans to growers of apples", "102": "dredge the channel of harbors", "103": "nurses and bakers ride"}


def test_what_is_too_few_or_of_one_kind_only_is_told(version):
    version.queries_path.unlink()
    report = checked(version, *[row(f"ferry{n} harbor{n} dog{n}", id=f"x{n}") for n in range(25)])
    said = [one.message for one in report.findings if one.rule in ("too few", "spread")]
    assert "0 queries are a person's own; 8 are wanted." in said
    assert "25 queries are of the kind topic; the share would be 6." in said
    assert not any("missing" in message for message in said)
    assert "No query is of the kind citation; the source's share would be 5." in said
    assert not any("at least 25" in message for message in said)


@pytest.mark.parametrize(
    ("hand", "generated", "said"),
    [
        (8, 0, "8 queries; at least 25 are needed. 17 drafted are still missing."),
        (8, 16, "24 queries; at least 25 are needed. 1 drafted is still missing."),
        (0, 0, "0 queries; at least 25 are needed. 17 drafted and 8 by a person are still missing."),
        (7, 17, "24 queries; at least 25 are needed. 1 by a person is still missing."),
    ],
)
def test_what_is_missing_is_said_by_origin(version, hand, generated, said):
    version.queries_path.unlink()
    origins = ["hand"] * hand + ["generated"] * generated
    rows = [row(f"ferry{n} dog{n}", id=f"x{n}", origin=origin) for n, origin in enumerate(origins)]
    assert said in [one.message for one in checked(version, *rows).findings]


def test_an_encoder_that_cannot_be_had_is_said_and_the_rest_is_checked(version):
    def missing(name):
        raise BackendError(f"{name} needs a package that is not installed.")

    report = checked(version, *read_files([version.queries_path]), backend=LocalBackend(missing))
    assert report.skipped == "the packaged encoder cannot be used: minilm-l6-v2 needs a package that is not installed."
    assert all(query.encoder_rank is None and query.bm25_rank is not None for query in report.queries)
    assert "not checked: the packaged encoder" in summary(report)
    assert checked(version).skipped == NOT_ASKED_FOR


def test_hostile_texts_are_shown_and_never_interpreted(version):
    evil = '<script>alert(1)</script> "&\u202e harbor'
    one = document("E", f"harbor {evil}", f"</td>{evil}", url="javascript:alert(1)")
    report = checked(version, row(evil, "E", kind="<i>topic"), documents=[one])
    page = review_page(report).decode()
    assert "<script" not in page
    assert "<i>topic" not in page
    assert "javascript:" not in page
    assert "\u202e" not in page
    assert "\u202e" not in summary(report)


def test_the_page_links_what_is_published(version):
    one = document("E", url="https://example.org/a?b=1&c=2")
    page = review_page(checked(version, row("ferry harbor", "E"), documents=[one])).decode()
    assert 'href="https://example.org/a?b=1&amp;c=2"' in page
    assert "default-src 'none'" in page


def test_a_thousand_documents_are_indexed_once_for_all_queries(version, monkeypatch):
    documents = [document(f"D{n}", f"Harbor{n} ferry{n % 50} dredging office.", f"Act {n}") for n in range(1000)]
    rows = [row(f"ferry{n % 50} harbor{n} what of office{n}", f"D{n}", id=f"x{n}") for n in range(300)]
    calls = []
    real = findability.bm25_run
    monkeypatch.setattr(findability, "bm25_run", lambda *given: calls.append(given) or real(*given))
    report = checked(version, *rows, documents=documents)
    assert len(calls) == 1
    assert len(report.queries) == 300
    assert all(query.bm25_rank == 1 for query in report.queries)


def test_a_file_that_is_no_queries_is_named_with_every_wrong_field(version, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("schema_version: 1\nqueries:\n  - {id: 'a b', text: '', kind: topic, origin: a guess}\n")
    with pytest.raises(InputError) as refused:
        read_files([path])
    assert all(f"queries.0.{field}" in str(refused.value) for field in ("id", "text", "origin"))


@pytest.mark.slow
@pytest.mark.model
def test_the_packaged_encoder_tells_one_question_in_two_wordings(version):
    same = ("How do I renew my passport?", "What are the steps to renew a passport?")
    report = checked(version, row(same[0]), row(same[1], id="x2"), row("moorings of zeppelins", id="x3"), backend=REAL)
    assert report.skipped == ""
    assert [one.queries for one in report.findings if one.rule == "same meaning"] == [["x1", "x2"]]


def test_drafts_are_counted_with_the_queries_that_the_version_has(version):
    rows = read_files([version.queries_path])
    beside = [each.row.model_copy(update={"id": f"x{place}"}) for place, each in enumerate(rows[:3])]
    alone = [FileRow("drafted.yaml", row) for row in beside]
    assert [row.text for row in _beside(version, alone)] == [each.row.text for each in rows]
    assert _beside(version, rows) == []
