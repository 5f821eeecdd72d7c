"""`doctor SOURCE`: every tick made red once, with the sentence that it then says, and all of them green together."""

import json
import shutil
from collections import namedtuple
from dataclasses import replace

import pytest
import yaml
from grpclib import Status
from huggingface_hub import constants

from runner.base.errors import BackendError, PackageMissing
from runner.base.places import CACHE_VARIABLE
from runner.base.steps import INSTALL, examined
from runner.commands import main as cli
from runner.embed.backends import LocalBackend
from runner.embed.cost.ledger import Ledger
from runner.embed.cost.prices import Price, RemoteOptions
from runner.embed.modal import backend as modal_backend
from runner.embed.modal.app import WEIGHTS_VOLUME
from runner.embed.over_http.encoder import HttpBackend
from runner.embed.weights import (
    HubSilent,
    download_mark,
    hub_has,
    newest_commit,
    tokenizer_folder,
    verified_folder,
)
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec
from runner.eval_set.corpus import archive_path, archived_documents
from runner.eval_set.preregistration import preregister
from runner.evening.costs import Asked
from runner.evening.evening import Evening
from runner.evening.needs import Needs
from runner.judge.models.api import JudgeOptions
from tests.support import anthropic_server as api
from tests.support.embedding_server import Server
from tests.support.hub_server import HubServer
from tests.support.loopback import Wire, served
from tests.support.modal_words import SPEC, benches, probe_passed_in
from tests.support.small_set import make_version, write_corpus

MINILM = catalog.encoder("minilm-l6-v2")
HUB = EncoderSpec(name="elsewhere", model="planted/elsewhere", revision="a" * 40, dim=384, max_tokens=256)


def grade(user):
    return {"passages": [1], "reason": "It pays for bridges.", "grade": 3}


@pytest.fixture(name="version")
def _version(ready, tmp_path, monkeypatch):
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("ANTHROPIC_API_KEY", api.KEY)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / ".cache"))
    return make_version(tmp_path)


@pytest.fixture(name="judge")
def _judge():
    server = api.AnthropicServer(grade=grade, key=api.KEY)
    with served(server):
        yield server


def checks_of(version, backend=None, encoder="", **asked):
    """The checks of the version's plan; `encoder` is the only one of its cells."""
    found = Needs(version, backend or LocalBackend(), Asked(max_usd=asked.pop("max_usd", 5.0), **asked))
    if encoder:
        cells = [f"{encoder} x fixed_token_512_50", "bm25 x whole_doc"]
        found.plan = version.plan().model_copy(update={"cells": cells, "baseline": cells[0]})
    return found


def looked(found, name=""):
    """What came of the checks, by name, or of one of them, made once the documents are read."""
    checks = (check for check in found.checks(documents=True) if name in ("", check.name) or check.name == "documents")
    outcomes = {outcome.name: outcome for outcome in examined(checks)}
    return outcomes[name] if name else outcomes


def red(found, name):
    """The sentence of a check that must have failed, and says what to do."""
    outcome = looked(found, name)
    assert outcome.state == "blocked"
    assert outcome.ways
    return outcome.say


@pytest.fixture(name="hub")
def _hub(monkeypatch, tmp_path):
    """Puts the model hub at an address, for this process; the catalogue gets an encoder that only a hub has."""
    monkeypatch.setitem(catalog.ENCODERS, HUB.name, HUB)

    def at(url):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setenv("no_proxy", "*")

    return at


def test_a_sound_version_is_green_at_no_cost_and_nothing_is_written(version, judge):
    before = {path for path in version.folder.parent.rglob("*") if path.is_file()}
    found = looked(checks_of(version, judge=JudgeOptions(url=judge.url)))
    assert {name for name, outcome in found.items() if outcome.state == "blocked"} == set()
    assert {name for name, outcome in found.items() if outcome.state == "open"} == {"model hub"}
    assert "in the archive, as listed" in found["documents"].say
    assert found["total"].say.startswith("$0.00 embedding + $")
    assert not judge.asked
    assert {path for path in version.folder.parent.rglob("*") if path.is_file()} == before


def with_judges(version, first, second):
    """The version's plan with these as judges."""
    judges = {"first": first, "second": {**second, "share": 0.2}}
    path = version.plan_path(rehearsal=False)
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"judges": judges}))


def test_judges_that_answer_by_file_are_asked_by_nobody_and_cost_nothing(version):
    by_file = {"api": "files", "model": "claude"}
    with_judges(version, by_file, by_file)
    found = checks_of(version, judge=JudgeOptions(price=Price(3, 15)))
    said = red(found, "judges' keys")
    assert f"labels import {version.flags} --judge=NAME --model=claude" in said
    assert [check.name for check in found.trials()] == ["trial of minilm-l6-v2", "trial of minilm-static-384"]
    assert looked(found, "total").say.startswith("nothing is paid for")


def test_a_plan_that_cannot_be_run_is_red_and_nothing_else_is_looked_at(version):
    path = version.plan_path(rehearsal=False)
    plan = path.read_text()
    path.write_text(plan.replace("pool_depth: 30", "pool_depth: 5"))
    assert {name: outcome.state for name, outcome in looked(checks_of(version)).items()} == {"plan": "blocked"}
    path.write_text(yaml.safe_dump(yaml.safe_load(plan) | {"judges": None}))
    found = looked(checks_of(version, judge=JudgeOptions()))
    assert {name: outcome.state for name, outcome in found.items()} == {"plan": "blocked"}


def test_documents_that_are_not_here_are_red(version):
    archive_path(version).unlink()
    assert "does not hold the documents of" in red(checks_of(version), "documents")
    version.corpus_path.unlink()
    elsewhere = replace(version, source=replace(version.source, corpus=""))
    outcomes = looked(checks_of(elsewhere, judge=JudgeOptions()))
    assert "no corpus yet" in outcomes["documents"].say
    assert "not known before documents are sampled" in outcomes["total"].say


def test_a_hub_that_cannot_be_reached_is_red_once(version, hub):
    hub("http://127.0.0.1:9")
    outcomes = looked(checks_of(version, encoder=HUB.name))
    assert outcomes["model hub"].state == "blocked"
    assert "The model hub cannot be reached" in outcomes["model hub"].say
    assert outcomes[f"encoder {HUB.name}"].state == "open"


def test_a_revision_that_the_hub_has_not_is_red_and_says_how_to_do_without(version, hub, monkeypatch):
    path = version.plan_path(rehearsal=False)
    lines = (
        path.read_text().replace('"minilm-static-384 x', f'"{HUB.name} x').replace("pool_depth: 30", "pool_depth: 10")
    )
    path.write_text(lines)
    folder = tokenizer_folder(MINILM)
    with HubServer({(HUB.model, "b" * 40): folder}) as server:
        hub(server.url)
        outcomes = looked(checks_of(version))
        assert outcomes["model hub"].state == "done"
        said = outcomes[f"encoder {HUB.name}"].say
        assert f"where the catalogue pins {'a' * 40}" in said
        assert f"remove its cells from {path}" in said
    monkeypatch.setattr("runner.evening.needs.tokenizer_folder", lambda spec: folder)
    with HubServer({(HUB.model, HUB.revision): folder}) as server:
        hub(server.url)
        outcome = looked(checks_of(version), f"encoder {HUB.name}")
        assert (outcome.state, outcome.say.split(";")[0]) == ("done", f"at the model hub, revision {'a' * 12}")
        assert not [request for request in server.requests if "safetensors" in request.path], "nothing is downloaded"


def test_the_hubs_commit_is_pinned_in_the_plan_once_it_says_one_and_an_open_row_is_never_loaded(version, hub, tmp_path):
    row = catalog.ENCODERS["granite-embedding-english-r2"]
    folder = tokenizer_folder(MINILM)
    with HubServer({(row.model, "c" * 40): folder}) as server:
        hub(server.url)
        assert newest_commit(row) == "c" * 40
        hub_has(row)
        with pytest.raises(BackendError, match="The catalog does not pin granite-embedding-english-r2"):
            verified_folder(row)
    with HubServer({}) as server:
        hub(server.url)
        with pytest.raises(BackendError, match="the model hub has nothing"):
            newest_commit(row)
    hub("http://127.0.0.1:9")
    with pytest.raises(HubSilent):
        newest_commit(row)


def test_a_run_pins_and_says_the_commits_before_anything_is_embedded(version, monkeypatch, capsys):
    path, name = version.plan_path(rehearsal=False), "granite-embedding-english-r2"
    path.write_text(path.read_text().replace("cells:\n", f'cells:\n  - "{name} x fixed_token_512_50"\n'))
    monkeypatch.setattr("runner.evening.evening.newest_commit", lambda row: "c" * 40)
    evening = Evening(version)
    evening._pin()
    assert evening.plan.encoders[name].revision == version.plan().encoders[name].revision == "c" * 40
    assert f"pinned {name} to {catalog.ENCODERS[name].model} at {'c' * 40}" in capsys.readouterr().err
    before = path.read_bytes()
    Evening(version)._pin()
    assert path.read_bytes() == before


def test_a_tokenizer_that_cannot_be_read_is_red(version, monkeypatch, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    monkeypatch.setattr("runner.evening.needs.tokenizer_folder", lambda spec: tmp_path)
    assert "The tokenizer of minilm-l6-v2 cannot be read" in red(checks_of(version), "encoder minilm-l6-v2")


def test_passages_of_long_documents_need_the_encoder_on_this_machine(version, monkeypatch):
    assert looked(checks_of(version), "passages for judges").say.startswith("not needed")
    path = version.plan_path(rehearsal=False)
    path.write_text(path.read_text().replace("chars: 12000", "chars: 2000"))
    assert looked(checks_of(version), "passages for judges").say.startswith("minilm-l6-v2 of this machine, for 6 ")
    monkeypatch.setattr("runner.embed.backends.is_here", lambda spec: False)
    assert "6 documents are too long to be shown whole" in red(checks_of(version), "passages for judges")


def test_a_disk_without_room_is_red(version, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda place: usage(10**9, 6 * 10**8, 4 * 10**8))
    assert "has 0.4 GB free, and some 0.5 GB are needed" in red(checks_of(version), "disk")
    assert looked(replace(checks_of(version), cells=[]), "disk").state != "blocked"


def test_a_judges_key_that_is_missing_or_refused_is_red(version, judge, monkeypatch):
    judge.key = "another"
    assert "HTTP 401" in red(checks_of(version, judge=JudgeOptions(url=judge.url)), "judges' keys")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert "no ANTHROPIC_API_KEY" in red(checks_of(version, judge=JudgeOptions(url=judge.url)), "judges' keys")


def unsure(found, name):
    """The sentence of a check that was not made."""
    outcome = looked(found, name)
    assert outcome.state == "open"
    return outcome.say


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_service_that_does_not_answer_now_is_neither_green_nor_red(version, judge, status):
    judge.models = status
    assert f"HTTP {status}" in unsure(checks_of(version, judge=JudgeOptions(url=judge.url)), "judges' keys")
    encoders = Server(faults=[Wire(b"{}", status)] * 9)
    with served(encoders), HttpBackend(f"{encoders.url}/v1/embeddings") as backend:
        found = checks_of(version, backend, encoder=MINILM.name)
        assert f"HTTP {status}" in unsure(found, f"encoder {MINILM.name}")
        encoders.takes, encoders.refusal, encoders.faults = (lambda request: False), 400, []
        assert "HTTP 400" in unsure(found, f"encoder {MINILM.name}")
    with HttpBackend(encoders.url) as backend:
        assert "connection failed" in unsure(checks_of(version, backend, encoder=MINILM.name), f"encoder {MINILM.name}")


def test_a_total_over_the_ceiling_is_red_with_its_parts(version, judge):
    said = red(checks_of(version, judge=JudgeOptions(url=judge.url), max_usd=0.5), "total")
    assert "over --max-usd 0.50, so it would be refused" in said
    assert "judging: claude-sonnet-4-6, 400 pairs" in said


def test_a_server_of_encoders_that_refuses_the_key_is_red(version):
    server = Server(faults=[Wire(b"{}", 401, "")] * 9)
    with served(server), HttpBackend(f"{server.url}/v1/embeddings") as backend:
        said = red(checks_of(version, backend, encoder=MINILM.name), f"encoder {MINILM.name}")
        assert "PSE_ENCODER_API_KEY" in said
        server.faults = []
        assert (
            looked(checks_of(version, backend, encoder=MINILM.name), f"encoder {MINILM.name}").say
            == "answers at 127.0.0.1"
        )


# On Modal


@pytest.fixture(name="modal")
def _modal(tmp_path, tmp_path_factory, monkeypatch):
    """Makes a bench whose only encoder is that of words, as `tests.support.modal_words` has it."""
    monkeypatch.setattr("runner.evening.needs.tokenizer_folder", lambda spec: tokenizer_folder(MINILM))
    parent = tmp_path / "benches"
    parent.mkdir()
    with benches(parent, probe_passed_in(tmp_path_factory.mktemp("probe"))) as (make, _):
        yield make


def on_modal(version, made, **asked):
    return checks_of(version, made.backend, encoder=SPEC.name, remote=RemoteOptions(gpu="cpu"), **asked)


def test_a_token_that_modal_refuses_is_red_and_nothing_after_it_is_asked(version, modal):
    made = modal(fetched=True)
    made.server.faults.bad_token()
    outcomes = looked(on_modal(version, made))
    assert "modal token new" in outcomes["Modal"].say
    assert outcomes["Modal"].state == "blocked"
    assert {outcomes[name].state for name in ("model hub", f"encoder {SPEC.name}")} == {"open"}


def test_on_modal_the_workspace_is_named(version, modal):
    outcomes = looked(on_modal(version, modal(fetched=True)))
    assert outcomes["Modal"].say.endswith("workspace stand-in")
    assert outcomes[f"encoder {SPEC.name}"].say == "in Modal's Volume"
    assert outcomes["total"].say.startswith("$")


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (lambda faults: faults.fail_entry(times=None, text="not known"), "no container on Modal could be made ready"),
        (lambda faults: faults.error("FunctionMap", Status.RESOURCE_EXHAUSTED), "limits and spending"),
    ],
    ids=["no container can load it", "a quota of the workspace"],
)
def test_an_encoder_that_cannot_be_tried_on_modal_is_red(version, modal, fail, said):
    made = modal(fetched=True)
    fail(made.server.faults)
    (outcome,) = examined(on_modal(version, made).trials())
    assert (outcome.name, outcome.state) == (f"trial of {SPEC.name}", "blocked")
    assert said in outcome.say


@pytest.mark.parametrize(("fault", "said"), [(api.cut_off, "cut"), (Wire(b"{}", 400, ""), "400")])
def test_a_judge_that_gives_no_answer_is_red(version, judge, fault, said):
    judge.always = {"bridges": fault}
    trials = checks_of(version, judge=JudgeOptions(url=judge.url)).trials()
    outcomes = list(examined(check for check in trials if "claude" in check.name))
    assert {outcome.state for outcome in outcomes} == {"blocked"}
    assert said in outcomes[0].say


def test_the_command_is_green_tries_everything_with_yes_and_counts_it_for_the_version(
    version, modal, judge, monkeypatch, capsys
):
    made = modal(fetched=True)
    path = version.plan_path(rehearsal=False)
    path.write_text(path.read_text().replace("minilm-static-384", SPEC.name))
    (made.server.volume(WEIGHTS_VOLUME) / download_mark(MINILM)).write_text("{}")
    containers = []
    opened = modal_backend.ModalBackend
    monkeypatch.setattr(
        modal_backend,
        "ModalBackend",
        lambda rentals: containers.append(rentals.options.containers) or opened(rentals),
    )
    monkeypatch.setattr(Needs, "encoders", property(lambda checks: [SPEC.name]))
    where = f"--eval-set-path={version.folder.parent}"
    command = ["doctor", "demo", where, "--modal", "--gpu=cpu", "--judge", f"--judge-url={judge.url}", "--max-usd=9"]
    assert cli.main(command) == 0
    capsys.readouterr()
    assert not judge.asked
    assert not made.server.inputs
    assert cli.main([*command, "--yes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"]
    assert [row["state"] for row in found["checks"][-3:]] == ["done"] * 3
    assert len(judge.asked) == 2
    sent = [text for one in made.server.inputs if one.function == "Embedder.embed" for text in one.args[2]]
    assert len(sent) >= 8
    assert containers == [1, 1]
    entries = Ledger(version.work / "spend").entries()
    assert {each.kind for each in entries} == {"app", "embed", "judge"}
    assert cli.main([*command[:-1], "--max-usd=0.5", "--yes"]) == 1
    said = capsys.readouterr().out
    assert "1 of 9 checks failed: total" in said
    assert len(judge.asked) == 2, "nothing is tried where something is red"


def test_the_versions_own_documents_are_found_in_a_folder_and_others_are_said_to_be_others(version, tmp_path):
    found = checks_of(version)
    found.corpus_path = write_corpus(tmp_path / "same")
    own = archived_documents(version)
    assert looked(found, "documents").say.startswith(f"{len(own)} of demo v1, as listed, in ")
    assert found.drawn == own
    next(iter(found.corpus_path.iterdir())).unlink()
    assert "are drawn from" in looked(found, "documents").say
    assert "they are not those of demo v1" in looked(found, "documents").say


def test_without_libraries_and_hub_no_tokenizer_is_called_damaged(version, hub, monkeypatch):
    hub("http://127.0.0.1:9")
    found = checks_of(version, encoder=HUB.name)

    def nowhere(_spec):
        raise PackageMissing("needs the package torch")

    monkeypatch.setattr(found.backend, "located", nowhere)
    outcomes = looked(found)
    assert outcomes["model hub"].state == "blocked"
    assert outcomes[f"encoder {HUB.name}"].ways == (INSTALL,)


def test_what_was_frozen_and_changed_ends_it(version, capsys):
    preregister(version)
    version.judge_path.write_text("other words")
    assert cli.main(["doctor", "demo", f"--eval-set-path={version.folder.parent}"]) == 4
    assert "judge-v1.md changed" in capsys.readouterr().err
