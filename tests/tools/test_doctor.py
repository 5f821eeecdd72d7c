"""The doctor: a sound installation passes, and each part that is broken on purpose is named."""

import importlib
import json
import resource
import signal

import pytest

from runner.base.errors import BackendError, NegativeVerdict
from runner.base.places import CACHE_VARIABLE, CHECKOUT
from runner.base.steps import Check, Step, examined, writable_folders
from runner.commands.main import called
from runner.tools.doctor import parts as doctor_parts
from runner.tools.doctor.doctor import all_checks
from tests.support.fake_encoder import FakeEncoder
from tests.support.forked import processes

CHEATERS = [f"planted: {name}" for name in ("constant", "popularity", "random", "marginal-matched", "source-prior")]


@pytest.fixture(autouse=True)
def fresh_tiny_set():
    doctor_parts.tiny_set.cache_clear()
    yield
    doctor_parts.tiny_set.cache_clear()


@pytest.fixture
def broken(monkeypatch):
    """Puts something else in a module's attribute, named "module:attribute"."""

    def put(where, other):
        module, attribute = where.split(":")
        loaded = importlib.import_module(module)
        monkeypatch.setattr(loaded, attribute, other(getattr(loaded, attribute)))

    return put


def failed(names=None):
    checks = [check for check in all_checks() if names is None or check.name in names]
    return {outcome.name: outcome.say for outcome in examined(checks, quick=True) if outcome.state == "blocked"}


def always(value):
    return lambda _: lambda *arguments, **named: value


def test_a_sound_installation_passes_every_check_and_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = {path.name for path in CHECKOUT.iterdir()}
    outcomes = list(examined(all_checks(), quick=True))
    assert [outcome for outcome in outcomes if outcome.state == "blocked"] == []
    assert [outcome.name for outcome in outcomes if outcome.state == "open"] == ["encoder"]
    assert len({outcome.name for outcome in outcomes}) == len(outcomes) == 19
    assert all(outcome.say and not outcome.ways for outcome in outcomes)
    assert list(tmp_path.iterdir()) == []
    assert {path.name for path in CHECKOUT.iterdir()} <= before | {".cache"}


def verdict(name):
    return lambda gate: lambda *arguments, **named: {**gate(*arguments, **named), "verdict": name, "reasons": ["so"]}


def graded(name):
    return lambda gate: lambda *arguments, **named: gate(*arguments, **named).model_copy(update={"verdict": name})


def misbehaving(controls):
    def found(*arguments, **named):
        first, *others = controls(*arguments, **named)
        return [first.model_copy(update={"passes": 0}), *others]

    return found


def deaf(bm25_run):
    def run(cell, variant, queries, chunks, texts):
        return bm25_run(cell, variant, dict.fromkeys(queries, next(iter(queries.values()))), chunks, texts)

    return run


def without_last(chunk_corpus):
    return lambda documents, name: chunk_corpus(documents, name)[:-1]


SABOTAGE = {
    "a gate that passes all": ("runner.tools.grade.grade:four_null_gate", verdict("pass"), CHEATERS),
    "a gate that fails all": ("runner.tools.grade.grade:four_null_gate", verdict("fail"), ["gate"]),
    "a graded gate that passes all": (
        "runner.tools.doctor.defects:_gate",
        graded("pass"),
        ["planted: deaf BM25", "planted: permuted labels"],
    ),
    "a graded gate that fails all": ("runner.tools.doctor.defects:_gate", graded("fail"), ["graded gate"]),
    "controls of which one misbehaves": ("runner.gate.controls:controls", misbehaving, ["planted: graded cheaters"]),
    "a probe that accepts everything": ("runner.embed.probe:probe", always({}), ["planted: constant vector"]),
    "a BM25 that ignores its query": ("runner.retrieve.bm25:bm25_run", deaf, ["bm25", "graded gate"]),
    "a chunker that loses text": ("runner.embed.chunk_corpus:chunk_corpus", without_last, ["chunkers"]),
    "a lock that always holds": ("runner.eval_set.door:folder_differences", always([]), ["planted: flipped byte"]),
    "a lock that never holds": ("runner.eval_set.door:folder_differences", always([{}]), ["planted: flipped byte"]),
    "a tokenizer of words": (
        "chunkers.tokens:tokenize",
        lambda tokenize: lambda text: tokenize(text.partition(" ")[0]),
        ["tokens"],
    ),
}


@pytest.mark.parametrize(("where", "other", "named"), SABOTAGE.values(), ids=SABOTAGE)
def test_a_broken_part_fails_the_checks_that_are_named_for_it(broken, where, other, named):
    broken(where, other)
    assert set(failed(named)) == set(named)


def test_a_part_that_raises_fails_its_checks_with_its_message_and_ends_no_other(broken):
    def part(*arguments, **named):
        raise ZeroDivisionError("the part fell apart")

    broken("runner.retrieve.bm25:bm25_run", lambda _: part)
    found = failed(["bm25", "graded gate", "gate"])
    assert "bm25" in found
    assert set(found.values()) == {"ZeroDivisionError: the part fell apart"}
    assert "gate" not in found


def test_an_interruption_is_no_finding():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(examined([Check("slow", "wait", interrupted)], quick=False))


def project(folder, dependencies=(), local=(), python=">=3.11"):
    folder.joinpath("pyproject.toml").write_text(
        f"[project]\nrequires-python = '{python}'\ndependencies = {list(dependencies)}\n"
        f"[project.optional-dependencies]\nlocal = {list(local)}\n"
    )
    return folder


def test_every_pin_that_is_not_kept_is_named_with_both_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor_parts.metadata, "version", {"torch": "2.13.0+cpu", "lxml": "5"}.__getitem__)
    monkeypatch.setattr(doctor_parts.metadata, "PackageNotFoundError", KeyError)
    with pytest.raises(NegativeVerdict) as error:
        doctor_parts.packages(project(tmp_path, ["torch==2.13.0", "lxml==0.0.1", "absent==1.0"], ["lxml==9.9"]))
    said = str(error.value)
    assert "lxml is 5, pinned 0.0.1" in said
    assert "pinned 9.9" in said
    assert "absent is not installed" in said
    assert "torch" not in said, "a build of the pinned version is that version"
    said = doctor_parts.packages(project(tmp_path, ["torch==2.13.0"], ["absent==1.0"]))
    assert said == "1 packages as pinned; extra local lacks absent"


def test_without_the_packaged_weights_the_encoder_is_not_checked(monkeypatch):
    monkeypatch.setattr("runner.embed.weights.is_here", lambda spec: False)
    with pytest.raises(doctor_parts.Skipped, match="packaged_weights minilm-l6-v2"):
        doctor_parts.local_encoder()


def test_an_older_python_than_the_pinned_one_is_named(tmp_path):
    with pytest.raises(NegativeVerdict, match=r">=3\.99 is needed"):
        doctor_parts.python_version(project(tmp_path, python=">=3.99"))


def test_a_checkout_without_pyproject_is_a_finding(tmp_path):
    (outcome,) = examined((check for check in all_checks(tmp_path) if check.name == "packages"), quick=True)
    assert outcome.state == "blocked"
    assert "pyproject.toml" in outcome.say


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendError, match="file cannot be written"):
        writable_folders([tmp_path, tmp_path / "file" / ".cache"])


def killed_while_writing(folder):
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    writable_folders([folder])


def test_a_kill_while_a_folder_is_tried_leaves_nothing_in_it(tmp_path):
    process = processes.Process(target=killed_while_writing, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGXFSZ
    assert list(tmp_path.iterdir()) == []


def test_quick_leaves_out_what_is_slow_which_is_no_failure_as_what_is_wrong_is():
    def wrong():
        raise NegativeVerdict("it is wrong")

    checks = [Check("bad", "mend it", wrong), Check("slow", "", lambda: "done", slow=True)]
    assert [*examined(checks, quick=True)] == [
        Step("bad", "blocked", "it is wrong", ("mend it",), "machine"),
        Step("slow", "open", "--quick leaves it out"),
    ]
    assert [outcome.state for outcome in examined(checks, quick=False)] == ["blocked", "done"]
    assert [check.name for check in all_checks() if check.slow] == ["encoder"]


def test_the_command_passes_here_and_prints_a_line_a_check(capsys):
    assert called(["doctor", "--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20
    assert lines[0].startswith("✓ python: ")
    assert lines[-1] == "18 checks passed, skipped: encoder"


def test_the_command_names_what_failed_and_what_to_do_next(broken, capsys):
    broken("runner.retrieve.bm25:bm25_run", deaf)
    assert called(["doctor", "--quick"]) == 1
    out = capsys.readouterr().out
    assert "✗ bm25: bm25: " in out
    assert "    next: `git status`" in out
    assert out.endswith("2 of 19 checks failed: bm25, graded gate\n")


@pytest.fixture
def one_check_raises(monkeypatch):
    def wrong():
        raise ValueError("Δ\n\x1b[31m é")

    checks = [Check("good", "", lambda: "fine"), Check("bad", "mend it", wrong)]
    monkeypatch.setattr("runner.commands.doctor.all_checks", lambda: checks)


def test_its_json_is_json_alone(one_check_raises, capsys):
    assert called(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert [check["state"] for check in found["checks"]] == ["done", "blocked"]


def test_the_packaged_encoder_is_probed_and_a_probe_that_fails_is_raised(monkeypatch):
    # tests/embed/test_local_encoder.py sends the real one through the same probe.
    encoders = {"minilm-l6-v2": FakeEncoder()}
    monkeypatch.setattr("runner.embed.local_encoder.encoder_for", encoders.__getitem__)
    said = doctor_parts.local_encoder()
    assert said.startswith("minilm-l6-v2, 16 dimensions: paraphrases at ")
    assert said.endswith("; reads 32 tokens and no more")
    encoders["minilm-l6-v2"] = FakeEncoder(lie=lambda rows: rows * 2)
    with pytest.raises(BackendError, match="unit rows are expected"):
        doctor_parts.local_encoder()
