import argparse
import contextlib
import inspect
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest

from runner import __version__
from runner.base import errors, places
from runner.base.errors import EvalError
from runner.base.places import CHECKOUT
from runner.commands import flags
from runner.commands import main as cli
from runner.commands.verbs import VERBS
from runner.eval_set.preregistration import preregister
from tests.support.parsers import runnable
from tests.support.small_set import begin, write_corpus

CODES = {"NegativeVerdict": 1, "InputError": 2, "PlanError": 2, "DocumentError": 2, "InputNeeded": 3}
CODES |= {"IntegrityError": 4, "BackendError": 5, "PackageMissing": 5}


DRIVER = CHECKOUT / "bin" / "per-source-eval.py"
ANSWER = '{"query_id": "q01", "doc_id": "BILLS-117hr101ih", "grade": 3}\n'


@pytest.fixture
def frozen(tmp_path):
    """The small set's version, preregistered."""
    version = begin(tmp_path)
    preregister(version)
    return version


def process(tmp_path, *arguments):
    done = subprocess.run(
        [sys.executable, str(DRIVER), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, places.CACHE_VARIABLE: str(tmp_path / ".cache")},
    )
    assert "Traceback" not in done.stderr
    return done


def test_every_failure_has_the_exit_code_of_the_table():
    found = {
        name: kind.exit_code
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, EvalError) and kind is not EvalError
    }
    assert found == CODES
    for name, code in CODES.items():
        assert re.search(rf"{name} +exit {code} ", errors.__doc__)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--dry-run",), 2, "Give --source NAME, or begin with a verb"),
        (("grad", "--demo"), 2, "There is no verb 'grad'; did you mean 'grade'?"),
        (("labels", "imprt"), 2, "labels has no action 'imprt'; did you mean 'import'?"),
        (("queries",), 2, "There are: sample, check, add."),
        (("--source=bils",), 2, "There is no source 'bils'; did you mean 'bills'?"),
        (("--source=hearings",), 2, "hearings is not evaluated"),
        (("--source=demo", "--dry-rum"), 2, "unrecognized arguments"),
        (("verify", "--source=lda-filings"), 2, "structured metadata"),
        (("run", "demo", "--reherse"), 2, "did you mean '--rehearse'?"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_why(tmp_path, monkeypatch, capsys, arguments, code, said):
    monkeypatch.chdir(tmp_path)
    try:
        ended = cli.main(list(arguments))
    except SystemExit as stopped:
        ended = stopped.code
    done = capsys.readouterr()
    assert (ended, done.out) == (code, "")
    assert said in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        (str(DRIVER), str(DRIVER)),
        ("here/bin/per-source-eval.py", "here/bin/per-source-eval.py"),
        (f"PATH={DRIVER.parent}:$PATH per-source-eval.py", "per-source-eval.py"),
        (f"{sys.base_prefix}/bin/python3 here/bin/per-source-eval.py", "here/bin/per-source-eval.py"),
    ],
)
def test_printed_commands_begin_as_the_command_was_typed(tmp_path, typed, printed):
    (tmp_path / "here").symlink_to(CHECKOUT)
    line = f"{typed} next us_code --eval-set-path sets --rehearse"
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert f": {printed} init us_code --eval-set-path=" in done.stderr


@pytest.mark.slow
def test_each_state_of_a_process_has_its_exit_code(tmp_path, where):
    done = process(tmp_path, "--source=demo", where, f"--corpus-path={tmp_path / 'nowhere'}")
    assert done.returncode == 2
    assert f"{tmp_path / 'nowhere'} does not exist" in done.stderr
    done = process(tmp_path, "--source=demo", where, f"--corpus-path={write_corpus(tmp_path / 'corpus')}")
    assert done.returncode == 3
    assert done.stdout.startswith("demo v1: your turn (this is not an error)")
    assert "no queries yet" in done.stdout
    assert process(tmp_path, "--source=demo", "--dry-run", where).returncode == 1
    version = begin(tmp_path)
    preregister(version)
    version.judge_path.write_text("other words")
    done = process(tmp_path, "--source=demo", where)
    assert done.returncode == 4
    assert "judge-v1.md changed" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cells", "bm25 x whole_doc"), "not preregistered yet"),
        (("view", "--passages"), "`run` makes it"),
    ],
)
@pytest.mark.usefixtures("own_place")
def test_what_cannot_be_done_yet_exits_2_and_says_why(command, arguments, said):
    code, out, heard = command(*arguments)
    assert (code, out) == (2, "")
    assert said in heard


def test_an_exploration_of_a_cell_that_does_not_exist_names_the_near_one(frozen, command):
    for cell, said in {
        "minilm x whole_doc": "did you mean 'minilm-l6-v2'?",
        "bm25 x whole-doc": "did you mean 'whole_doc'?",
        "bm25": "is not a cell",
        "arctic-m-v2.0 x whole_doc": "is excluded",
    }.items():
        code, _, heard = command("--cells", cell)
        assert code == 2
        assert said in heard


@pytest.mark.parametrize("name", ["missing", "folder", "not-utf-8", "half-a-line"])
def test_an_answer_file_that_cannot_be_read_is_named(tmp_path, frozen, command, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "not-utf-8").write_bytes(ANSWER.encode("utf-16"))
    (tmp_path / "half-a-line").write_text(ANSWER[:30])
    code, out, heard = command("labels", "import", str(tmp_path / name), "--judge=j", "--person")
    assert (code, out) == (2, "")
    assert str(tmp_path / name) in heard
    assert not frozen.labels_path.exists()


def test_a_preregistration_cannot_be_made_again_once_labels_are_there(frozen):
    frozen.labels_path.write_text("{}\n")
    frozen.preregistration_path.unlink()
    with pytest.raises(errors.IntegrityError, match="cannot be frozen a second time"):
        preregister(frozen)


def test_a_place_that_cannot_be_written_exits_5(tmp_path, command):
    (tmp_path / "eval-sets").write_text("a file where a folder must be")
    code, _, heard = command(f"--corpus-path={write_corpus(tmp_path / 'corpus')}")
    assert code == 5
    assert "cannot be written" in heard


@pytest.mark.usefixtures("own_place")
def test_an_interrupt_is_one_line(command, monkeypatch):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("runner.commands.standing.describe", interrupted)
    code, out, heard = command("--dry-run")
    assert (code, out) == (130, "")
    assert heard == "per-source-eval: interrupted; what was finished is kept, run the command again\n"


@pytest.mark.usefixtures("own_place")
def test_an_interrupt_that_a_library_swallows_is_not_taken_for_the_users_error(command, monkeypatch):
    def interrupted(*arguments, **named):
        with contextlib.suppress(KeyboardInterrupt):
            cli._interrupt(signal.SIGTERM, None)
        raise errors.InputError("not of the form <unprintable>")

    monkeypatch.setattr(cli, "_interrupts", [])
    monkeypatch.setattr("runner.commands.standing.describe", interrupted)
    code, _, heard = command("--dry-run")
    assert (code, "interrupted; what was finished is kept" in heard) == (130, True)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["demo", "a x b", "--reason", "so = what", "--by", "me"], ["demo"]),
        (["--by=me", "--reason=", "--source", "demo", "a x b"], ["--source", "demo"]),
        (["demo", "--corpus-path", "my bills", "a x b"], ["demo", "--corpus-path", "my bills"]),
    ],
)
def test_the_command_that_continues_an_evening_leaves_the_choice_out(given, kept):
    options = argparse.Namespace(words=given)
    assert flags.again("run", options, but="a x b") == shlex.join(["run", *flags.source_first(kept)])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["--source=demo"], ["run", "--source=demo"]),
        (["--source", "demo", "--modal", "--dry-run"], ["plan", "--source", "demo", "--modal"]),
        (["--post-bulk", "--source=demo", "--corpus-path=x"], ["post-bulk", "--source=demo", "--corpus-path=x"]),
        (["--cells", "a x b", "--source=demo", "--cells=c x d"], ["explore", "--source=demo", "a x b", "c x d"]),
    ],
)
def test_the_line_of_flags_is_a_verb_with_its_words(line, words):
    assert cli.spelled(line) == words


def test_without_an_argument_and_with_help_there_is_one_screen(capsys):
    for arguments in ([], ["--help"], ["-h"], ["help"]):
        assert cli.main(arguments) == 0
        out = capsys.readouterr().out
        assert len(out.splitlines()) <= 40
        assert max(map(len, out.splitlines())) <= 120
        assert all(re.search(rf"(?m)\b{name}\b", out) for name in VERBS if " " not in name)
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"per-source-eval {__version__}\n"


@pytest.mark.parametrize("verb", [name for name, _ in runnable()])
def test_help_before_a_verb_is_the_verbs_own_with_exit_codes_and_an_example(verb, capsys):
    helps = []
    for words in (["help", *verb.split()], ["--help", *verb.split()], [*verb.split(), "--help"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(words)
        assert not stopped.value.code
        helps.append(capsys.readouterr().out)
    assert len(set(helps)) == 1
    assert re.search(r"exit codes: 0 [\s\S]*\nexample: ", helps[0])


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 5, "the memory is full"),
        (OSError(5, "I/O error"), 5, "I/O error"),
        (ZeroDivisionError(), 70, "ZeroDivisionError"),
    ],
)
def test_neither_a_machine_that_gives_out_nor_a_defect_ends_as_a_verdict(monkeypatch, capsys, error, code, said):
    def broken(options):
        raise error

    monkeypatch.setattr("runner.commands.labels.double", broken)
    assert cli.main(["labels", "double", "demo"]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "2>/dev/full"])
def test_a_closed_or_full_stream_changes_no_exit_code(closed, tmp_path):
    command = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(DRIVER))} grade --input nope --pool nope {closed}"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_an_argument_in_utf_8_is_one_under_an_environment_of_ascii_too(tmp_path):
    (tmp_path / "bändel.jsonl").write_text("[]\n")
    arguments = [sys.executable, str(DRIVER), "grade", "--input", "bändel.jsonl", "--pool", "nope"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run(list(map(os.fsencode, arguments)), cwd=tmp_path, env=environment, capture_output=True)
    assert done.returncode == 2
    assert "bändel.jsonl:1: " in done.stderr.decode()


def test_a_working_folder_that_is_gone_is_an_error_of_input(tmp_path):
    command = (
        f"mkdir gone; cd gone; rmdir ../gone; exec {shlex.quote(sys.executable)} {shlex.quote(str(DRIVER))} --help"
    )
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_a_device_is_no_file_to_read(tmp_path, capsys):
    golden = tmp_path / "golden.yaml"
    golden.write_text("- {name: a, text: b, expected: [c]}\n")
    (tmp_path / "run").write_text("a Q0 c 1 1.0 t\n")
    given = ["tripwire", "check", str(golden), "--run", str(tmp_path / "run"), "--snapshot", "/dev/zero"]
    assert cli.main(given) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_the_driver_it_ends_as_if_interrupted(ending, tmp_path):
    """So that what it started elsewhere is stopped."""
    (tmp_path / "pool.txt").write_text("d1\nd2\n")
    with subprocess.Popen(
        [sys.executable, str(DRIVER), "grade", "--input", "-", "--pool", str(tmp_path / "pool.txt")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        # More than a pipe holds: when the last write returns, the driver is reading.
        for _ in range(20):
            process.stdin.write(b'{"retrieved": ["d1"], "gold": "d1"}\n' * 100)
        process.send_signal(ending)
        assert process.wait(30) == 130
        assert b"interrupted; what was finished is kept" in process.stderr.read()
