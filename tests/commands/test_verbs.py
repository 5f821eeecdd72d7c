"""Every verb's help shows an example, and every example runs."""

import json
import shlex
import shutil

import pytest

from runner.base import places
from runner.base.places import DRIVER
from runner.commands import main as cli
from runner.commands.verbs import VERBS, command_of, found_verb
from tests.support.parsers import parser_of, runnable
from tests.support.small_set import answers, make_version, write_corpus

ELSEWHERE = {
    "fetch": "asks the publisher",
    "mcp": "waits for a client",
    "compare": "reads files of the reader's",
    "tripwire": "reads files of the reader's",
    "pooled": "reads locked records of the checkout",
    "replay": "embeds for minutes",
    "post-bulk": "reads the production database",
    "doctor": "examines the whole installation; it has tests of its own",
}
"""Examples that are parsed and not run here, and why."""

WAITING = (
    "labels import",
    "labels page",
    "labels double",
    "labels agreement",
    "labels withdraw",
    "version",
)
BEGUN = ("queries sample", "queries check", "queries add", "init")
"""Verbs whose examples run while a version waits for its judges, or has queries alone; the others on a decided one."""


def test_every_function_of_the_table_is_there_and_every_action_has_its_verb():
    for name, _ in runnable():
        assert callable(command_of(name))
    assert {name.split()[0] for name in VERBS} <= VERBS.keys()


@pytest.mark.parametrize("name", [name for name, _ in runnable()])
def test_a_help_ends_with_an_example_that_parses(name):
    text, example = parser_of(name).format_help(), VERBS[name].example
    assert text.rstrip().endswith(f"example: {DRIVER} {example}")
    verb, words = found_verb(shlex.split(example))
    assert verb == name
    assert parser_of(name).parse_args(words)


@pytest.fixture(name="folder")
def _folder(tmp_path, monkeypatch, ready, decided_evening, waiting_evening, request):
    """A folder with the version that an example needs, and the files that it names."""
    name = request.node.callspec.params["name"]
    state = waiting_evening if name in WAITING else ready if name in BEGUN else decided_evening
    shutil.copytree(state, tmp_path, dirs_exist_ok=True)
    version = make_version(tmp_path)
    if name.startswith("labels"):
        path = answers(version)[0]
        path.rename(tmp_path / "answers.jsonl")
        if name != "labels import" and name != "labels page":
            where = f"--eval-set-path={version.folder.parent}"
            given = ["labels", "import", "demo", where, "--judge=ann", "--person", str(tmp_path / "answers.jsonl")]
            assert cli.main(given) == 0
    if name in ("queries check", "queries add"):
        shutil.copy(version.queries_path, tmp_path / "drafts.yaml")
    if name == "try":
        (tmp_path / "docs").mkdir()
        for topic in ("ferries", "wells"):
            (tmp_path / "docs" / f"{topic}.md").write_text(f"# All about {topic}\n\n" + f"Many {topic} are old. " * 9)
    if name == "lock":
        shutil.copytree(version.folder, tmp_path / "bench")
    monkeypatch.setenv(places.CACHE_VARIABLE, str(tmp_path / ".cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [name for name, _ in runnable() if name not in ELSEWHERE])
def test_an_example_runs(name, folder, capsys):
    words = shlex.split(VERBS[name].example)
    if "demo" in words or "bills" in words or "gao_reports" in words:
        words.append(f"--eval-set-path={folder / 'eval-sets' / ('gao' if 'gao_reports' in words else 'demo')}")
    words = ["demo" if word == "bills" else word for word in words]
    code = cli.main(words)
    said = capsys.readouterr()
    assert code == 0, said.err
    assert said.out


def test_a_mistyped_eval_set_path_is_one_input_error_of_every_verb_that_begins_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    tried = []
    for name, verb in runnable():
        words = shlex.split(verb.example)
        if "demo" in words and "--eval-set-path" in parser_of(name).format_help():
            for place in (tmp_path / "empty", tmp_path / "missing"):
                code = cli.main([*words, f"--eval-set-path={place}"])
                said = capsys.readouterr()
                assert (code, said.out, f"--eval-set-path: {place} " in said.err) == (2, "", True), (name, said.err)
            tried.append(name)
    assert {"plan", "next", "run", "choose", "verify", "bulk-gate", "labels import", "queries add"} < set(tried)
    assert [*tmp_path.rglob("*")] == [tmp_path / "empty"]
    assert cli.main(["plan", "demo", f"--eval-set-path={places.CHECKOUT / 'eval-sets'}"]) == 2
    assert f"Did you mean {places.CHECKOUT / 'eval-sets' / 'demo'}?" in capsys.readouterr().err


def test_a_folder_of_another_source_is_called_that_and_next_finds_its_source(ready, tmp_path, capsys):
    folder = f"--eval-set-path={ready / 'eval-sets' / 'demo'}"
    for verb in ("next", "run", "plan", "verify", "init"):
        assert cli.main([verb, "bills", folder]) == 2
        assert "holds versions of demo, and bills is named" in capsys.readouterr().err
    assert cli.main(["next", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == "demo v1"
    for flag in (f"--eval-set-path={tmp_path}", "--rehearse", "--try"):
        assert (cli.main(["next", flag]), capsys.readouterr().out) == (2, "")


def test_init_begins_a_version_and_next_says_what_comes_and_writes_nothing(tmp_path, command):
    corpus = write_corpus(tmp_path / "corpus")
    code, out, _ = command("init", f"--corpus-path={corpus}")
    version = make_version(tmp_path)
    assert (code, version.corpus_path.exists(), version.plan_path(rehearsal=False).exists()) == (0, True, True)
    assert "no queries yet" in out
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code, following, _ = command("next")
    assert code == 0
    assert following.splitlines()[1:] == out.splitlines()[1:]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert cli.main(["next", "beir"]) == 2


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("ready", "cells to embed and search"),
        ("waiting_evening", "pairs to judge"),
        ("decided_evening", "decided and locked"),
    ],
)
def test_next_says_whose_turn_it_is_in_every_state(state, said, request, tmp_path, command):
    shutil.copytree(request.getfixturevalue(state), tmp_path, dirs_exist_ok=True)
    code, out, _ = command("next")
    assert (code, said in out) == (0, True)
    commands = [line.split(DRIVER)[1] for line in out.splitlines() if DRIVER in line and not line.startswith("note:")]
    for line in commands:
        verb, words = found_verb(shlex.split(line.split("      ")[0].replace(" ...", "")))
        assert parser_of(verb).parse_args(words)
