import pytest

from runner.base.errors import InputError
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.shapes.queries import QueryRow
from runner.queries.checks import check, read_files
from runner.queries.query_file import read_queries
from runner.queries.wording import Vocabulary, alike_in_words, words
from runner.tools.queries import report_text
from tests.support.query_fixtures import by_id, document
from tests.support.small_set import query_rows


def row(text=None, source="", kind="topic", origin="claude", **more):
    fields = {"id": "x1", "text": text, "kind": kind, "origin": origin, "source_document": source, **more}
    return QueryRow(**fields)


def checked(version, *rows, documents=None):
    beside = read_queries(version.queries_path) if version.queries_path.exists() else []
    return check(version, documents or corpus_documents(version, None), rows, beside)


def rules(findings):
    return {one.rule for one in findings}


def flags(report):
    return [report.flags(query.asked) for query in report.queries]


def test_the_small_set_is_checked_whole_and_has_no_errors(version):
    rows = read_files([version.queries_path])
    report = checked(version, *rows)
    assert [query.row.id for query in report.queries] == [row["id"] for row in query_rows()]
    assert report.errors == []
    assert all(0 <= query.rank <= 16 for query in report.queries)
    assert all(set(query.rare) <= set(words(query.asked.text)) for query in report.queries)
    assert checked(version, *rows) == report


def test_ids_of_two_files_may_be_the_same_and_are_told_apart_and_equal_texts_are_errors(version, tmp_path):
    copy = tmp_path / "copy.yaml"
    copy.write_bytes(version.queries_path.read_bytes())
    rows = read_files([version.queries_path, copy])
    assert [row.id for row in rows[24:26]] == ["q25", "copy.yaml:q01"]
    assert rules(checked(version, *rows).errors) == {"same words"}


@pytest.mark.parametrize(("text", "found"), [("図書館は何時に開きますか", {"script"}), ("zeppelin moorings", set())])
def test_a_set_in_a_script_without_spaces_is_told(version, text, found):
    assert rules(checked(version, row(text=text)).findings) & {"script"} == found


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


def test_likeness_does_not_depend_on_where_blocks_are_cut(monkeypatch):
    texts = [f"word{n % 7} ferry harbor dredging number" for n in range(30)]
    whole = alike_in_words(texts)
    monkeypatch.setattr("runner.queries.wording._AT_ONCE", 4)
    assert alike_in_words(texts) == whole


PIPES = document(
    "P", "Grants to replace lead pipes in Fenwick towns. The water board pays half.", "Fenwick Safe Pipes Act"
)
"""Among documents on water in general, its rare words are lead, pipes, Fenwick and what else none of them says."""

WATERS = [document(f"W{n}", f"Grants for clean water in towns, number{n}.", f"Water Act {n}") for n in range(40)]


@pytest.mark.parametrize(
    ("found", "shows", "fields"),
    [
        # As people type it: names and numbers, which make no riddle and are welcome in a plain wording.
        (
            [],
            "",
            {"plain": "Fenwick lead pipes half", "paraphrased": "help for towns whose water runs through old metal"},
        ),
        (["riddle"], "town, metal", {"text": "the town metal that makes people ill"}),
        (["riddle"], "town, metal", {"plain": "the town metal that makes people ill", "paraphrased": "old metal"}),
        (["rare words"], "fenwick, pipes", {"plain": "Fenwick pipes", "paraphrased": "Fenwick with its old pipes"}),
        # One rare word may be a household word.
        ([], "lead", {"plain": "Fenwick pipes", "paraphrased": "who takes the lead out of our water?"}),
        (["too easy"], "lead, pipes, fenwick", {"text": "lead pipes in Fenwick"}),
        (["exact title"], "Fenwick Safe Pipes Act", {"text": "what is in the Fenwick Safe Pipes Act"}),
        (["unbounded", "riddle"], "grants, water, towns", {"text": "grants for water in towns"}),
        ([], "", {"text": "the Fenwick Safe Pipes Act", "kind": "citation"}),
        ([], "", {"text": "who said grants for water", "kind": "attribution"}),
    ],
)
def test_a_wording_is_held_to_the_words_that_few_documents_have(version, found, shows, fields):
    documents, asked = [PIPES, *WATERS], {"text": None, **fields}
    report = checked(version, row(source=PIPES.doc_id, **asked), documents=documents)
    told = [one for one in report.findings if one.queries]
    assert [one.rule for one in told] == found
    assert all(shows in one.message for one in told)


def test_the_table_names_a_rule_beside_the_wording_that_it_is_about(version):
    asked = {"text": None, "plain": "the Fenwick Safe Pipes Act", "paraphrased": "Fenwick with its old pipes"}
    report = checked(version, row(source=PIPES.doc_id, **asked), documents=[PIPES, *WATERS])
    assert flags(report) == [["exact title"], ["rare words"]]
    gossip = row(source=PIPES.doc_id, kind="gossip", text=None, plain="Fenwick lead pipes", paraphrased="old metal")
    assert flags(checked(version, gossip, documents=[PIPES, *WATERS])) == [["unknown kind"]] * 2


@pytest.mark.parametrize(("n_documents", "most"), [(2, 2), (40, 2), (100, 5), (199, 9)])
def test_a_word_is_rare_that_one_document_in_twenty_holds_or_two_in_a_small_sample(n_documents, most):
    documents = [
        document(f"D{n}", f"harbor{n} {'common' * (n <= most)} {'seldom' * (n < most)}", "Act")
        for n in range(n_documents)
    ]
    found = Vocabulary(documents).shared("seldom harbor0 common", "D0")
    assert found == ["seldom", "harbor0", *["common"] * (n_documents <= most)]


def test_a_document_that_is_not_sampled_or_not_live_is_told(version):
    documents = [document("live"), document("dead", status="repealed")]
    report = checked(version, row("ferry", "gone"), row("harbor", "dead", id="x2"), documents=documents)
    of_one, of_other = flags(report)
    assert ("no document" in of_one, "status" in of_other) == (True, True)
    assert [found.queries for found in report.errors] == [["x1"]]
    assert (report.queries[0].rare, report.queries[0].rank) == (None, None)
    assert flags(checked(version, row("ferry")))[0] == []


def test_a_quotation_is_looked_for_where_it_should_stand(version):
    doc_id = "BILLS-117hr115ih"
    good = checked(version, row('which bill "keeps the tools at the end"', doc_id, "quote"))
    near = checked(version, row('which bill "keeps its tools at the end"', doc_id, "quote"))
    bad = checked(version, row('which bill "gives zeppelins to lighthouses"', doc_id, "quote"))
    assert ["quotation" in flags(report)[0] for report in (good, near, bad)] == [False, False, True]


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


def test_topical_queries_with_one_wording_are_counted_unless_somebody_asked_them(version):
    both = {"text": None, "plain": "harbor dredging", "paraphrased": "keeping the channel deep"}
    asked = [row("ferry"), row("H.R. 12", id="x2", kind="citation"), row("dog", id="x3", origin="traffic")]
    report = checked(version, *asked, row(id="x4", **both))
    assert [one.message[:18] for one in report.findings if one.rule == "one wording"] == ["1 of 2 topical que"]
    assert "one wording" not in rules(checked(version, row(id="x4", **both)).findings)


def test_what_is_too_few_or_of_one_kind_only_is_told(version):
    version.queries_path.unlink()
    report = checked(version, *[row(f"ferry{n} harbor{n} dog{n}", id=f"x{n}") for n in range(25)])
    said = [one.message for one in report.findings if one.rule in ("too few", "spread")]
    assert "0 queries are a person's own; 8 are wanted." in said
    assert "25 queries are of the kind topic; the source's share is 6." in said
    assert not any("missing" in message for message in said)
    assert "No query is of the kind citation; the source's share is 5." in said
    assert not any("at least 25" in message for message in said)


def test_topics_in_two_wordings_are_the_share_of_paraphrases_too(version):
    version.queries_path.unlink()
    words = [{"plain": f"ferry{n} harbor{n}", "paraphrased": f"boat{n} dock{n}"} for n in range(25)]
    report = checked(version, *[row(id=f"x{n}", **both) for n, both in enumerate(words)])
    said = [one.message for one in report.findings if one.rule == "spread"]
    assert "25 queries are of the kind topic; the source's share is 11." in said
    assert not any("paraphrase" in message for message in said)


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


def test_drafts_that_repeat_a_query_of_the_version_are_errors_unless_it_is_the_same_word_for_word(version):
    known = next(each for each in read_queries(version.queries_path) if each.text)
    assert checked(version, known).errors == []
    assert rules(checked(version, row(f"{known.text} -", known.source_document, known.kind)).errors) == {"same words"}


def test_the_table_shows_hostile_texts_and_interprets_none(version):
    evil = "<script>alert(1)</script> | `harbor`\u202e"
    one = document("E", f"harbor {evil}", f"# {evil}")
    text = report_text(checked(version, row(evil, "E", kind="<i>topic"), documents=[one]))
    assert not {"<script", "<i>topic", "\u202e"} & set(text.split())
    assert "<script" not in text
    head, _, line = text.splitlines()[:3]
    assert head.count("|") == line.replace("\\|", "").count("|") == 9
