"""Flags that go together, and those that do not; commands that messages suggest."""

import re
import shlex

import pytest
import yaml

from runner.commands import main as cli
from tests.conftest import called
from tests.support.small_set import begin, make_version, write_corpus


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cells=bm25 x whole_doc", "--dry-run"), "--cells and --dry-run do not go together"),
        (("--dry-run", "--post-bulk"), "--dry-run and --post-bulk do not go together"),
        (("plan", "--by=me"), "unrecognized arguments: --by"),
        (("choose",), "the following arguments are required: CELL"),
        (("choose", "bm25 x whole_doc", "--reason= ", "--by=me"), "choose needs --reason TEXT and --by NAME"),
        (("explore",), "the following arguments are required: CELL"),
        (("--encoder-url=",), "--encoder-url is empty"),
        (("--encoder-url=http://localhost:1", "--modal"), "two backends"),
        (("--encoder-url=http://h/{model}", "--dry-run"), "not {encoder}, the only one that is filled in"),
        (("--encoder-url=nonsense", "--dry-run"), "--encoder-url is no address"),
        (("--gpu=L4",), "--gpu belongs to --modal"),
        (("labels", "double", "a.jsonl"), "unrecognized arguments: a.jsonl"),
        (("labels", "import", "a.jsonl", "--judge=j"), "one of the arguments --model --person is required"),
        (("labels", "import", "a.jsonl", "--model=m", "--person"), "not allowed with argument"),
        (("labels", "withdraw"), "the following arguments are required: --judge"),
        (("--modal", "--max-usd=much"), "'much' is not an amount of dollars"),
        (("--modal", "--gpu=L5", "--dry-run"), "L5"),
        (("--judge", "--judge-url=foo", "--dry-run"), "--judge-url is no address"),
        (("--live", "--corpus-path=x"), "goes without --corpus-path"),
    ],
)
@pytest.mark.usefixtures("own_place")
def test_flags_that_contradict_each_other_are_a_usage_error_and_write_nothing(tmp_path, command, arguments, said):
    code, out, heard = command(*arguments)
    assert (code, out) == (2, "")
    assert said in heard
    assert [path.name for path in tmp_path.iterdir()] == []


def suggested(message):
    """The arguments of every command that a message names, as a shell would split them."""
    return [shlex.split(found) for found in re.findall(r"bin/per-source-eval\.py ([^\n]*)", message)]


def test_every_command_that_a_message_suggests_names_the_eval_set(tmp_path, command, where):
    version = make_version(tmp_path)
    messages = [command("--cells=bm25 x whole_doc")[2]]
    corpus = write_corpus(tmp_path / "corpus")
    messages.append(command(f"--corpus-path={corpus}")[1])
    version = begin(tmp_path)
    assert not version.preregistration_path.exists()
    for message in messages:
        commands = suggested(message)
        assert commands
        assert all(where in arguments for arguments in commands)


def test_a_place_for_a_page_without_passages_is_refused(tmp_path, capsys):
    assert called("view", "demo", f"--output={tmp_path / 'page.html'}")[0] == 2


def test_init_adds_an_encoder_of_the_catalog_to_a_new_plan_and_tells_the_lines_for_one_that_is_written(
    tmp_path, capsys
):
    folder = tmp_path / "bills"
    init = ["init", "bills", f"--eval-set-path={folder}"]
    assert cli.main([*init, "--encoder=qwen3-embedding-0.6b", "--encoder=granite-embedding-english-r2"]) == 0
    cells = yaml.safe_load((folder / "v1" / "plan.yaml").read_text())["cells"]
    for name in ("qwen3-embedding-0.6b", "granite-embedding-english-r2"):
        assert {f"{name} x fixed_token_512_50", f"{name} x section_aware_bills_v1"} <= {*cells}
    assert "qwen3" not in (folder / "v1" / "rehearsal" / "plan.yaml").read_text()
    capsys.readouterr()
    assert cli.main([*init, "--encoder=qwen3-embedding-0.6b"]) == 0
    assert cli.main([*init, "--encoder=embeddinggemma-300m"]) == 2
    assert '\n  - "embeddinggemma-300m x fixed_token_512_50"' in capsys.readouterr().err
    assert cli.main([*init, "--encoder=qwen3-embeding-0.6b"]) == 2
    assert "did you mean 'qwen3-embedding-0.6b'" in capsys.readouterr().err
