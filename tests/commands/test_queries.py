import json
import re
from dataclasses import replace

import pytest
import yaml

from runner.base.errors import InputError
from runner.embed.backends import LocalBackend
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.preregistration import preregister
from runner.eval_set.shapes.labels import Judges, JudgeSpec
from runner.eval_set.shapes.queries import Queries
from runner.queries.draft_asks import all_draft_rows
from runner.queries.query_file import read_queries
from runner.queries.reading_pack import INDEX, pack_documents, reading_folder, write_reading_pack
from tests.queries.test_drafting import answer_of
from tests.support.anthropic_server import AnthropicServer, served
from tests.support.query_fixtures import document, drafted
from tests.support.small_set import fake_encoders


@pytest.fixture
def queries(command, monkeypatch):
    monkeypatch.setattr("runner.embed.backends.LocalBackend", lambda: LocalBackend(fake_encoders))
    return lambda *arguments: command("queries", *map(str, arguments))


@pytest.fixture
def unwritten(version):
    version.queries_path.unlink()
    return version


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_pack_is_written_with_its_index_and_the_form_of_queries(unwritten, queries):
    code, out, _ = queries("sample")
    folder = reading_folder(unwritten)
    assert code == 0
    assert f"16 of 16 documents to read: {folder} (index.jsonl lists them)" in out
    assert "queries draft demo" in out
    rows = [json.loads(line) for line in (folder / INDEX).read_text(encoding="utf-8").splitlines()]
    documents = {one.doc_id: one for one in corpus_documents(unwritten, None)}
    assert {row["doc_id"] for row in rows} == set(documents)
    for row in rows:
        one = documents[row["doc_id"]]
        assert (row["title"], row["stratum"], row["n_chars"]) == (one.title, one.stratum, len(one.text))
        assert one.text in (folder / row["file"]).read_text(encoding="utf-8")
    form = (folder / "queries.yaml.template").read_text(encoding="utf-8")
    assert Queries.model_validate(yaml.safe_load(form)).queries[0].origin == "person"
    assert "#   citation 5: names what it looks for" in form
    example = Queries.model_validate(yaml.safe_load(form)).queries[0]
    assert (example.source_document, bool(example.note)) == ("...", True)
    assert sum(int(count) for count in re.findall(r"^#   [a-z]+ (\d+): ", form, re.MULTILINE)) == 25


def test_a_pack_twice_is_the_same_pack_and_takes_nothing_else_away(unwritten, queries):
    queries("sample")
    folder = reading_folder(unwritten)
    (folder / "03-my-notes.md").write_text("mine")
    before = contents(folder)
    queries("sample")
    assert contents(folder) == before


def test_the_pack_of_the_command_is_the_evening_s(unwritten, queries):
    queries("sample")
    folder = reading_folder(unwritten)
    before = contents(folder)
    documents = corpus_documents(unwritten, None)
    assert write_reading_pack(unwritten, documents, unwritten.plan(rehearsal=False).sample.seed) == folder
    assert contents(folder) == before


def test_another_pack_leaves_no_file_of_the_one_before(version):
    first = [document(f"A{n}") for n in range(3)]
    folder = write_reading_pack(version, first, 1)
    write_reading_pack(version, [document("B")], 1)
    assert [path.name for path in sorted(folder.glob("*.md"))] == ["01-B.md"]


@pytest.mark.parametrize("doc_id", ["../../../etc/passwd", "/us/usc/t5/s101@2024", "a\\b:c*?", "x" * 400, ".."])
def test_no_document_s_id_leads_out_of_the_folder(version, doc_id):
    folder = write_reading_pack(version, [document(doc_id)], 1)
    (row,) = [json.loads(line) for line in (folder / INDEX).read_text(encoding="utf-8").splitlines()]
    assert row["doc_id"] == doc_id
    assert [path.name for path in folder.glob("*.md")] == [row["file"]]


def test_an_index_of_others_makes_nothing_be_removed(version):
    folder = reading_folder(version)
    outside = folder.parent / "kept.md"
    folder.mkdir(parents=True)
    outside.write_text("kept")
    (folder / INDEX).write_text('{"file": "../kept.md"}\n{"file": 3}\n')
    write_reading_pack(version, [document("A")], 1)
    assert outside.exists()


def test_documents_with_a_status_are_not_read_and_all_of_them_cannot_be(version):
    documents = [document("live"), document("dead", status="repealed")]
    assert [one.doc_id for one in pack_documents(version, documents, 1)] == ["live"]
    with pytest.raises(InputError, match="each of its 1 documents has a status"):
        pack_documents(version, documents[1:], 1)


@pytest.fixture
def rows(unwritten, queries):
    """The rows of a draft file with one query per document."""
    queries("draft", "--per-document", "1")
    return list(rows_by_key(reading_folder(unwritten)).values())


def answered(version, folder, query='zeppelin "moorings in fog" H.R. {n}'):
    rows = rows_by_key(folder).values()
    lines = [drafted(row.kind, query.format(n=n), "note", key=row.key) for n, row in enumerate(rows)]
    path = version.folder.parent / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_from_nothing_to_queries_by_file(unwritten, queries):
    folder = reading_folder(unwritten)
    queries("sample")
    code, out, _ = queries("draft")
    assert code == 0
    assert f"32 queries to draft: {folder / 'draft-0001.jsonl'}, by the draft-instructions.md beside it" in out
    assert "0 of 32 rows have a usable draft, 32 still lack one; 17 drafts are wanted." in out
    assert "--answers FILE" in out
    code, out, _ = queries("draft", "--answers", answered(unwritten, folder))
    assert (code, out.split(" ")[0]) == (0, "32")
    code, out, _ = queries("check", folder / "drafted.yaml")
    assert "32 queries of demo v1" in out
    # numbers part them, so none is a repeat
    assert code == 0
    code, out, _ = queries("add", folder / "drafted.yaml")
    assert code == 0
    assert "32 queries added as q01 to q32" in out
    assert len(read_queries(unwritten.queries_path)) == 32
    code, out, _ = queries("check")
    assert code == 0
    assert str(folder / "review.html") in out


def test_drafts_that_break_rules_are_left_out_by_name(unwritten, queries):
    queries("draft")
    folder = reading_folder(unwritten)
    code, out, err = queries("draft", "--answers", answered(unwritten, folder, "what does this bill do, no. {n}"))
    assert code == 2
    assert err.count("left out: ") == 32
    assert "says 'this bill'" in err
    assert "No draft keeps the rules" in err
    assert not (folder / "drafted.yaml").exists()
    assert out == ""


def rows_by_key(folder):
    return {row.key: row for _, row in all_draft_rows(folder)}


def give(queries, tmp_path, *answers):
    """What `queries draft --answers` says to (row, query, note) triples."""
    path = tmp_path / "given.jsonl"
    lines = [drafted(row.kind, query, note, key=row.key) for row, query, note in answers]
    path.write_text("\n".join(lines) + "\n")
    return queries("draft", "--answers", path)


def test_a_row_answered_again_has_its_draft_replaced(unwritten, queries, rows, tmp_path):
    folder = reading_folder(unwritten)
    first, second = [row for row in rows if row.kind == "topic"][:2]
    code, out, _ = give(queries, tmp_path, (first, "zeppelin moorings", "n"), (second, "gliders at dusk", "n"))
    assert (code, out.startswith("2 drafts are new")) == (0, True)
    code, out, _ = give(queries, tmp_path, (first, "balloons over fog", "better"))
    assert code == 0
    assert out.startswith(f"0 drafts are new in {folder / 'drafted.yaml'}, 1 replaced.")
    assert "2 of 16 rows have a usable draft, 14 still lack one; 17 drafts are wanted." in out
    assert [(one.id, one.text, one.note) for one in read_queries(folder / "drafted.yaml")] == [
        ("d01", "balloons over fog", "better"),
        ("d02", "gliders at dusk", "n"),
    ]
    _, out, _ = give(queries, tmp_path, (first, "zeppelin moorings", "n"))
    assert "1 were changed in drafted.yaml since" in out
    assert read_queries(folder / "drafted.yaml")[0].text == "balloons over fog"


def test_only_rows_without_a_usable_draft_are_offered_again(unwritten, queries, rows, tmp_path):
    folder = reading_folder(unwritten)
    topic = next(row for row in rows if row.kind == "topic")
    give(queries, tmp_path, (topic, "zeppelin moorings", "n"))
    _, out, _ = queries("draft", "--per-document", "1")
    assert out.startswith(f"15 queries to draft: {folder / 'draft-0002.jsonl'}, ")
    offered = [row.key for path, row in all_draft_rows(folder) if path.name == "draft-0002.jsonl"]
    assert offered == [row.key for row in rows if row != topic]
    queries("draft", "--answers", answered(unwritten, folder))
    code, out, _ = queries("draft", "--per-document", "1")
    assert (code, out.splitlines()[0]) == (
        0,
        "Nothing is left to draft. 16 of 16 rows have a usable draft, 0 still lack one; 17 drafts are wanted.",
    )
    assert f"queries add {unwritten.flags} {folder / 'drafted.yaml'}" in out
    assert not (folder / "draft-0003.jsonl").exists()


def test_what_became_of_each_answer_is_said_by_line_and_key(queries, rows, tmp_path):
    first, second, third = [row for row in rows if row.kind == "topic"][:3]
    place = tmp_path / "a.jsonl"
    lines = [
        drafted("topic", "zeppelin moorings", "n", key=first.key),
        drafted("amount", "gliders at dusk", "n", key=second.key),
        drafted("topic", "", "it settles nothing", key=third.key),
    ]
    place.write_text("\n".join(lines))
    code, out, err = queries("draft", "--answers", place)
    assert code == 0
    assert out.startswith("1 draft is new in ")
    assert "; 1 row: the drafter found no honest query; 1 left out." in out
    assert f"left out: {place}:2, {second.key[:12]} (topic from" in err
    assert "'topic' was wanted, 'amount' came" in err
    assert f"no honest query: {place}:3, {third.key[:12]}" in err
    assert err.count("left out: ") == 1


def test_no_honest_query_at_all_is_no_fault(queries, rows, tmp_path):
    code, out, _ = give(queries, tmp_path, *((row, "", "nothing in it") for row in rows))
    assert (code, "16 rows: the drafter found no honest query." in out) == (0, True)
    assert "queries check" not in out


def test_a_file_with_a_broken_line_takes_nothing(unwritten, queries, rows):
    folder = reading_folder(unwritten)
    path = answered(unwritten, folder)
    path.write_text(path.read_text() + "{half\n")
    code, out, err = queries("draft", "--answers", path)
    assert (code, out) == (2, "")
    assert f"Nothing of {path} was taken." in err
    assert not (folder / "drafted.yaml").exists()


def with_judges(version, model="claude-sonnet-4-6", api="anthropic"):
    """The plan with one judge, or with none for ""."""
    path = version.plan_path(rehearsal=False)
    plan = {name: value for name, value in yaml.safe_load(path.read_text()).items() if name != "judges"}
    judges = Judges(first=JudgeSpec(api=api, model=model), second=None) if model else None
    path.write_text(yaml.safe_dump(plan | ({"judges": judges.model_dump()} if judges else {})))


def test_from_nothing_to_queries_by_a_language_model(unwritten, queries, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-drafting-0123456789")
    with_judges(unwritten)
    server = AnthropicServer(grade=answer_of)
    with served(server):
        code, out, err = queries("draft", "--per-document", "1", "--judge", "--judge-url", server.url)
        assert code == 0, err
        assert out.startswith("16 drafts are new")
        n_asked = len(server.asked)
        code, out, _ = queries("draft", "--per-document", "1", "--judge", "--judge-url", server.url)
    assert (code, out.startswith("Nothing is left to draft. 16 of 16 rows have a usable draft")) == (0, True)
    assert len(server.asked) == n_asked == 16
    drafts = read_queries(reading_folder(unwritten) / "drafted.yaml")
    assert {one.origin for one in drafts} == {"claude-sonnet-4-6"}
    assert "sk-ant" not in out + err


def test_a_ceiling_stops_a_draft_before_anything_is_sent(unwritten, queries, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-drafting-0123456789")
    with_judges(unwritten)
    server = AnthropicServer(grade=answer_of)
    with served(server):
        code, _, err = queries("draft", "--judge", "--judge-url", server.url, "--max-usd", "0.0001")
    assert code == 5
    assert "--max-usd" in err
    assert server.asked == []


@pytest.mark.parametrize("how", [("--judge",), (), ("--answers", "answers.jsonl")])
def test_once_queries_are_frozen_nothing_is_drafted_and_nothing_is_sent(version, queries, monkeypatch, how):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-drafting-0123456789")
    with_judges(version)
    preregister(version)
    server = AnthropicServer(grade=answer_of)
    with served(server):
        code, out, err = queries("draft", *how, *(("--judge-url", server.url) if "--judge" in how else ()))
    assert (code, out, server.requests) == (2, "", [])
    assert "The queries of demo v1 are frozen" in err
    assert "version new demo" in err
    assert not reading_folder(version).exists()
    assert not (version.work / "spend").exists()


def test_a_pack_of_frozen_queries_is_to_be_read_and_recommends_no_draft(version, queries):
    preregister(version)
    code, out, _ = queries("sample")
    assert (code, (reading_folder(version) / INDEX).exists()) == (0, True)
    assert "The queries of demo v1 are frozen" in out
    assert "version new demo" in out
    assert "draft" not in out


def test_an_address_that_is_none_is_refused_before_a_key_is_asked_for(unwritten, queries, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with_judges(unwritten)
    code, _, err = queries("draft", "--judge", "--judge-url", "foo")
    assert code == 2
    assert "--judge-url is no address" in err


def test_a_folder_given_before_there_is_a_corpus_is_answered_with_the_command_that_samples_it(
    version, queries, tmp_path
):
    version.corpus_path.unlink()
    code, _, err = queries("sample", "--corpus-path", tmp_path / "my bills")
    assert code == 3
    assert "Give a folder" not in err
    assert err.rstrip().endswith(f"--corpus-path '{tmp_path / 'my bills'}'")
    assert "has no corpus yet. The driver samples it" in err


def test_a_plan_without_judges_says_how_they_are_named(unwritten, queries):
    with_judges(unwritten, "")
    code, _, err = queries("draft", "--judge")
    assert code == 2
    assert "names no judges" in err


def test_a_judge_that_answers_by_file_drafts_by_file(unwritten, queries):
    with_judges(unwritten, "claude", "files")
    code, _, err = queries("draft", "--judge")
    assert code == 2
    assert "--answers FILE" in err
    assert queries("draft")[0] == 0


def test_a_check_says_errors_by_its_exit_code_and_as_json(version, queries):
    rows = yaml.safe_load(version.queries_path.read_text())
    rows["queries"].append({**rows["queries"][0], "id": "q99"})
    version.queries_path.write_text(yaml.safe_dump(rows))
    code, out, _ = queries("check", "--json")
    assert code == 2
    report = json.loads(out)
    assert [one["rule"] for one in report["findings"] if one["severity"] == "error"] == ["same text"]
    assert report["queries"][0]["flags"][0] == "same text"
    code, out, _ = queries("check", "--lexical-only")
    assert (code, "not checked: the encoder" in out) == (2, True)


def test_without_queries_a_check_says_what_comes_first(unwritten, queries):
    code, out, err = queries("check")
    assert (code, out) == (3, "")
    assert "queries sample demo" in err


def test_without_a_corpus_every_action_says_how_to_bring_one(version, queries, tmp_path):
    version.corpus_path.unlink()
    path = tmp_path / "some.yaml"
    path.write_bytes(version.queries_path.read_bytes())
    for arguments in (("sample",), ("draft",), ("check",), ("add", path)):
        code, _, err = queries(*arguments)
        assert code == 3, err
        assert "no corpus yet" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ask",), "There are: sample, draft, import, check, add"),
        (("add",), "the following arguments are required: FILE"),
        (("sample", "x.yaml"), "unrecognized arguments"),
        (("sample", "--per-document", "2"), "unrecognized arguments"),
        (("draft", "--per-document", "0"), "from 1 to 10"),
        (("draft", "--answers", "x", "--judge"), "goes without --judge"),
        (("draft", "--max-usd", "3"), "--max-usd belongs to --judge"),
        (("draft", "--judge", "letters"), "invalid choice"),
    ],
)
def test_a_wrong_command_line_exits_2_and_writes_nothing(version, queries, arguments, said):
    code, out, err = queries(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert not reading_folder(version).exists()


def test_files_may_stand_after_the_flags(version, queries, where, capsys):
    from runner.commands.main import main

    assert main(["queries", "check", "--source=demo", where, "--lexical-only", str(version.queries_path)]) == 0
    assert "25 queries of demo v1" in capsys.readouterr().out


def test_a_collection_brings_its_own_queries():
    from runner.commands.queries import sample

    with pytest.raises(InputError, match="brings its own queries"):
        sample(["beir"])


def test_a_draft_of_a_source_without_shapes_is_refused(version):
    from runner.eval_set.catalog import SOURCES
    from runner.queries.draft_asks import draft_rows

    with pytest.raises(InputError, match="nothing to draft"):
        draft_rows(replace(version, source=SOURCES["beir"]), [document()], [document()], 1)
