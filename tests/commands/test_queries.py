import json
import re

import pytest
import yaml

from runner.base.errors import InputError
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.preregistration import preregister
from runner.eval_set.shapes.queries import Queries
from runner.queries.query_file import read_queries
from runner.queries.reading_pack import INDEX, pack_documents, reading_folder, write_reading_pack
from tests.support.query_fixtures import document


@pytest.fixture
def queries(command):
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
    assert (folder / "draft-queries.md").read_text().startswith("# How to write queries")
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
    # The evening writes the same one by itself.
    documents = corpus_documents(unwritten, None)
    assert write_reading_pack(unwritten, documents, unwritten.plan(rehearsal=False).sample.seed) == folder
    assert contents(folder) == before


def test_another_pack_leaves_no_file_of_the_one_before(version):
    first = [document(f"A{n}") for n in range(3)]
    folder = write_reading_pack(version, first, 1)
    write_reading_pack(version, [document("B")], 1)
    assert [path.name for path in sorted(folder.glob("[0-9]*.md"))] == ["01-B.md"]


@pytest.mark.parametrize("doc_id", ["../../../etc/passwd", "/us/usc/t5/s101@2024", "a\\b:c*?", "x" * 400, ".."])
def test_no_document_s_id_leads_out_of_the_folder(version, doc_id):
    folder = write_reading_pack(version, [document(doc_id)], 1)
    (row,) = [json.loads(line) for line in (folder / INDEX).read_text(encoding="utf-8").splitlines()]
    assert row["doc_id"] == doc_id
    assert [path.name for path in folder.glob("[0-9]*.md")] == [row["file"]]


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


def written(path, n_queries, text="zeppelin moorings no. {n}"):
    """A file of queries as somebody who read the pack would write it."""
    fields = {"kind": "citation", "origin": "claude-sonnet-4-6", "source_document": "BILLS-117hr101ih"}
    rows = [{"id": f"x{n}", "text": text.format(n=n), **fields} for n in range(n_queries)]
    path.write_text(yaml.safe_dump({"schema_version": 1, "queries": rows}))
    return path


def test_from_nothing_to_queries_by_file(unwritten, queries, tmp_path):
    queries("sample")
    path = written(tmp_path / "mine.yaml", 32)
    code, out, _ = queries("check", path)
    assert (code, "32 queries" in out) == (0, True)  # numbers part them, so none is a repeat
    code, out, _ = queries("add", path)
    assert (code, "32 queries added as q01 to q32" in out) == (0, True)
    assert {one.origin for one in read_queries(unwritten.queries_path)} == {"claude-sonnet-4-6"}
    assert queries("check")[0] == 0


def test_drafts_that_name_documents_by_path_are_checked_as_they_would_be_added(unwritten, queries, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("query,document\nzeppelin moorings,BILLS-117hr101ih.md\nkite strings,acts/kites.md\n")
    code, out, _ = queries("check", path)
    assert (code, out.count("is not in the sample"), "acts/kites.md" in out) == (2, 1, True)
    code, _, err = queries("add", path)
    assert (code, unwritten.queries_path.exists(), "q02: no document 'acts/kites.md'" in err) == (2, False, True)


def test_a_pack_of_frozen_queries_is_to_be_read_and_recommends_no_draft(version, queries):
    preregister(version)
    code, out, _ = queries("sample")
    assert (code, (reading_folder(version) / INDEX).exists()) == (0, True)
    assert "The queries of demo v1 are frozen" in out
    assert "version demo" in out
    assert "draft" not in out


def test_a_folder_given_before_there_is_a_corpus_is_answered_with_the_command_that_samples_it(
    version, queries, tmp_path
):
    version.corpus_path.unlink()
    code, _, err = queries("sample", "--corpus-path", tmp_path / "my bills")
    assert code == 3
    assert "Give a folder" not in err
    assert err.rstrip().endswith(f"--corpus-path '{tmp_path / 'my bills'}'")
    assert "has no corpus yet. The driver samples it" in err


def test_a_check_says_errors_by_its_exit_code(version, queries):
    rows = yaml.safe_load(version.queries_path.read_text())
    rows["queries"].append({**rows["queries"][0], "id": "q99"})
    version.queries_path.write_text(yaml.safe_dump(rows))
    code, out, _ = queries("check")
    assert (code, "- error: q01 and q99 say the same" in out) == (2, True)


def test_without_queries_a_check_says_what_comes_first(unwritten, queries):
    code, out, err = queries("check")
    assert (code, out) == (3, "")
    assert "queries sample demo" in err


def test_without_a_corpus_every_action_says_how_to_bring_one(version, queries, tmp_path):
    version.corpus_path.unlink()
    path = tmp_path / "some.yaml"
    path.write_bytes(version.queries_path.read_bytes())
    for arguments in (("sample",), ("check",), ("add", path)):
        code, _, err = queries(*arguments)
        assert code == 3, err
        assert "no corpus yet" in err


def test_files_may_stand_after_the_flags(version, queries, where, capsys):
    from runner.commands.main import main

    assert main(["queries", "check", "--source=demo", where, str(version.queries_path)]) == 0
    assert "demo v1: 25 queries" in capsys.readouterr().out


def test_a_collection_brings_its_own_queries():
    from runner.commands.main import called

    with pytest.raises(InputError, match="brings its own queries"):
        called(["queries", "sample", "beir"])
