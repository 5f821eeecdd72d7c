"""A backend that makes other vectors than this machine does is found out, and what is wrong with it is said."""

import json
import logging
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from runner.base.errors import BackendError
from runner.base.places import CACHE_VARIABLE
from runner.base.store import Store
from runner.commands import main as cli
from runner.embed.backends import LocalBackend
from runner.embed.encoder import Answer, Grouping
from runner.embed.local_encoder import TransformerEncoder, encoder_for
from runner.embed.parity.checks import FLOAT32_COSINE, HALF_PRECISION_COSINE
from runner.embed.parity.compare import Parity, keep, parity, parity_of
from runner.embed.parity.texts import parity_texts
from runner.eval_set import catalog
from tests.support.fake_encoder import FakeEncoder, _noise

TODAY = "2026-01-31"
PROMPT = "query: "


class Here(FakeEncoder):
    """The local encoder."""

    name = "local"
    dtype = "float32"

    def __init__(self, prompt=PROMPT):
        super().__init__(query_prompt=prompt)

    def identity(self):
        return {"encoder": "fake", "backend": {"name": self.name, "dtype": self.dtype}}


class There(Here):
    """The same encoder on another machine, in half precision, answering several forward batches at once."""

    name, dtype = "modal", "float16"
    tolerance = 2e-3
    facts = MappingProxyType({"device": "NVIDIA L4"})
    grouping = Grouping(200, request_texts=8, request_tokens=400)

    def encode(self, texts, side):
        rows = super().encode(texts, side)
        seeds = [int(1e6 * abs(row[0])) for row in rows]  # rounding is the same whenever a text comes again
        rows += np.array([np.random.default_rng(seed).normal(0, 5e-4, 16) for seed in seeds], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def checks(found):
    return {check.name: check for check in found.checks}


def compared(remote, local=None):
    return parity(local or Here(), remote, today=TODAY)


def failed(remote, local=None):
    return {check.name: check.said for check in compared(remote, local).checks if not check.passed}


def test_rounding_passes_and_every_figure_is_on_record():
    found = compared(There())
    assert found.passed
    assert list(checks(found)) == ["tokens", "cosine", "norms", "prompts", "truncation"]
    assert (found.encoder, found.local["name"], found.remote["name"]) == ("fake", "local", "modal")
    assert found.served == {"device": "NVIDIA L4"}
    assert HALF_PRECISION_COSINE == found.cosine_required < found.cosine_min < 1
    assert 0 < found.difference_max < 5e-3
    assert found.norm_error_max < 1e-6
    assert found.worst in checks(found)["cosine"].said


class Float32(There):
    dtype = "float32"


def test_float32_is_held_to_a_closer_bound_than_half_precision():
    found = compared(Float32())
    assert found.cosine_required == FLOAT32_COSINE
    assert not checks(found)["cosine"].passed
    assert f"at least {FLOAT32_COSINE} is asked for" in checks(found)["cosine"].said


class Misreading(There):
    """`read` is the row of a text and side, given this encoder."""

    def __init__(self, read, prompt=PROMPT):
        super().__init__(prompt)
        self.read = read

    def _row(self, text, side):
        return self.read(super()._row, text, side)


def up_to(limit):
    """Reads so many words of a text, whatever the catalogued limit is."""

    def read(row, text, side):
        words = row.__self__._words(text, side)[:limit] or [""]
        return np.mean([_noise(word) for word in words], axis=0)

    return read


OTHER_SIDE = {"query": "document", "document": "query"}


@pytest.mark.parametrize(
    ("read", "prompt", "name", "words"),
    [
        (lambda row, text, side: row(text, "document"), PROMPT, "prompts", "'query: ' is not applied"),
        (lambda row, text, side: row(text, "document"), PROMPT, "cosine", "16 of 32 texts are below"),
        (lambda row, text, side: row(text, OTHER_SIDE[side]), PROMPT, "prompts", "or to the other side"),
        (lambda row, text, side: row(text, "query"), PROMPT, "prompts", "is not applied"),
        (lambda row, text, side: row(PROMPT * (side == "query") + text, side), PROMPT, "prompts", "this one twice"),
        (lambda row, text, side: row("search " * (side == "query") + text, side), "", "prompts", "none are cata"),
        (up_to(30), PROMPT, "truncation", "it reads less of a text"),
        (up_to(16), PROMPT, "truncation", "32 tokens"),
        (up_to(40), PROMPT, "truncation", "it reads on"),
    ],
)
def test_another_prompt_or_limit_is_named(read, prompt, name, words):
    assert words in failed(Misreading(read, prompt), Here(prompt))[name]


def test_without_a_prompt_there_is_none_to_miss():
    assert failed(There(""), Here("")) == {}


def test_other_weights_are_named_by_the_text_that_they_move_most():
    class Other(There):
        def _row(self, text, side):
            return super()._row(text, side) + 0.3 * _noise("drift") * (text == "Repealed.")

    found = compared(Other())
    assert "'one word'" in found.worst
    assert "'one word'" in checks(found)["cosine"].said
    assert "2 of 32 texts are below" in checks(found)["cosine"].said


def test_vectors_that_are_nearly_unit_vectors_fail_in_float32_and_pass_from_half_precision():
    class Longer(Here):
        name = "modal"

        def encode(self, texts, side):
            return super().encode(texts, side) * np.float32(1.0005)

    class HalfLonger(Longer):
        dtype = "float16"

    assert list(failed(Longer())) == ["norms"]
    assert "5.0e-04 off a length of 1" in failed(Longer())["norms"]
    assert failed(HalfLonger()) == {}


def test_tokens_counted_otherwise_by_the_backend_are_named():
    class Counting(There):
        def embed(self, batches):
            for answer, batch in zip(super().embed(batches), batches, strict=True):
                counts = self.token_counts(batch.texts, batch.side)
                yield replace(answer, n_tokens=counts + np.array(["§" in text for text in batch.texts]))

    said = failed(Counting())["tokens"]
    assert "4 of 32 texts are cut otherwise, the document 'one sign' into 2 instead of 1" in said


def test_lost_and_repeated_answers_change_nothing():
    class Unsteady(There):
        resubmissions = 2
        calls = 0

        def embed(self, batches):
            self.calls += 1
            for number, answer in enumerate(super().embed(batches)):
                if number % 2 == 0 or self.calls % 3 == 0:
                    yield answer
                    yield answer
            yield Answer("", error="a worker was lost")

    assert compared(Unsteady()).sha256 == compared(There()).sha256


def test_texts_that_never_come_back_end_the_comparison_by_name():
    class Deaf(There):
        def embed(self, batches):
            for answer, batch in zip(super().embed(batches), batches, strict=True):
                poisoned = any("Núñez" in text for text in batch.texts)
                yield Answer(batch.batch_id, error="out of memory") if poisoned else answer

    with pytest.raises(BackendError, match=r"of 16 texts were not embedded \(out of memory\), the first the document "):
        compared(Deaf())


def test_two_kinds_of_machine_in_one_comparison_are_refused():
    class Mixed(There):
        def embed(self, batches):
            for number, answer in enumerate(super().embed(batches)):
                yield replace(answer, facts={"device": f"GPU {number % 2}"})

    with pytest.raises(BackendError, match=r"two kinds of machine \(device: 'GPU 0' and 'GPU 1'\)"):
        compared(Mixed())


def test_the_digest_is_of_the_figures_and_not_of_the_day():
    found = compared(There())
    assert parity(Here(), There(), today="2027-12-31").sha256 == found.sha256
    assert found.model_copy(update={"cosine_min": 0.9}).sha256 != found.sha256


@pytest.mark.parametrize("limit", [16, 120, 256, 1000])
def test_there_are_sixteen_different_texts_a_side_and_they_meet_the_limit_exactly(limit):
    texts = parity_texts(lambda some: [len(text.split()) + 2 for text in some], limit)
    for side in (texts.documents, texts.queries):
        assert len({row.text for row in side}) == len({row.name for row in side}) == len(side) == 16
    first, second = (texts.documents[place].text for place in texts.at_limit)
    past = texts.documents[texts.past_limit].text
    assert len(first.split()) + 2 == len(second.split()) + 2 == limit
    assert past.startswith(first)
    assert len(past.split()) + 2 > limit
    assert texts == parity_texts(lambda some: [len(text.split()) + 2 for text in some], limit)


def test_a_passed_parity_is_found_by_the_remote_encoder_alone(tmp_path):
    store, found = Store(tmp_path), compared(There())
    assert parity_of(store, There().identity()) is None
    path = keep(store, There().identity(), found)
    assert parity_of(store, There().identity()) == found
    assert path.parent.parent == tmp_path / "parity"
    assert Parity.model_validate(json.loads(path.read_text())) == found

    class Newer(There):
        def identity(self):
            return {"encoder": "fake", "backend": {"name": "modal", "dtype": "float16", "gpu": "A10"}}

    assert parity_of(store, Newer().identity()) is None


def test_a_failed_parity_takes_the_passed_one_away_and_is_kept_for_reading(tmp_path):
    store, found = Store(tmp_path), compared(There())
    keep(store, There().identity(), found)
    bad = found.model_copy(update={"checks": [found.checks[0].model_copy(update={"passed": False})]})
    path = keep(store, There().identity(), bad)
    assert parity_of(store, There().identity()) is None
    assert path.name == "failed.json"
    assert path.is_file()
    keep(store, There().identity(), found)
    assert parity_of(store, There().identity()) is not None
    assert not path.exists()


def test_a_damaged_record_counts_as_not_made_and_says_so(tmp_path, caplog):
    store = Store(tmp_path)
    path = keep(store, There().identity(), compared(There()))
    path.write_text(path.read_text()[:-20])
    with caplog.at_level(logging.WARNING):
        assert parity_of(store, There().identity()) is None
    assert f"{path} is not JSON" in caplog.text


class ThereToo(LocalBackend):
    """A backend called Modal, whose encoders run here in half precision; `kind` makes them."""

    name = "modal"

    def __init__(self, kind):
        super().__init__(kind)
        self.prepared = []

    def prepare(self, work):
        self.prepared += work


ONE = ("--parity=modal", "--encoder=minilm-l6-v2")


@pytest.fixture(name="doctor")
def _doctor(tmp_path, monkeypatch, capsys):
    """Exit code, stdout and stderr of `doctor`, with encoders that need no weights, and the folder of its ledger."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr("runner.embed.local_encoder.encoder_for", lambda name: Here())
    monkeypatch.setattr("runner.embed.weights.verified_folder", lambda spec: tmp_path)

    def call(backend, *arguments):
        """`backend` is one, or the class of its encoders."""
        opened, places = backend if isinstance(backend, ThereToo) else ThereToo(lambda name: backend()), []
        monkeypatch.setattr(
            "runner.commands.doctor.backend_from", lambda options, folder: places.append(folder) or opened
        )
        try:
            code = cli.main(["doctor", *(arguments or ONE), "--ascii"])
        except SystemExit as stopped:
            code = stopped.code
        said = capsys.readouterr()
        return code, said.out, said.err, places

    return call


def test_the_doctor_says_that_a_backend_passes_and_keeps_the_record(doctor, tmp_path):
    backend = ThereToo(lambda name: There())
    code, out, _, places = doctor(backend)
    found = parity_of(Store(tmp_path), There().identity())
    assert code == 0
    assert out.startswith("[ok] fake on modal (NVIDIA L4, float16): smallest cosine 0.99")
    assert out.strip().endswith(f"parity {found.sha256[:12]}")
    assert [(work.encoder, work.texts) for work in backend.prepared] == [("fake", 32)]
    assert backend.prepared[0].tokens < int(checks(found)["tokens"].said.split()[0])
    assert places[0].parts[-3:-1] == (".work", "parity"), "what it spends belongs to no version"


def test_the_doctor_ends_with_1_and_says_what_is_wrong(doctor, tmp_path):
    class NoPrompt(There):
        def encode(self, texts, side):
            return super().encode(texts, "document")

    code, out, err, _ = doctor(NoPrompt)
    assert code == 1
    assert out.startswith("[x] fake on modal (NVIDIA L4, float16): other vectors than here")
    assert "    prompts: query and document vectors of one text are the same: 'query: ' is not applied" in out
    assert "failed.json" in err
    assert parity_of(Store(tmp_path), NoPrompt().identity()) is None


def test_the_doctor_gives_the_whole_record_as_json(doctor):
    code, out, _, _ = doctor(There, *ONE, "--json")
    said = json.loads(out)
    assert (code, said["ok"]) == (0, True)
    (row,) = said["parity"]
    assert row["passed"] is True
    assert [check["name"] for check in row["checks"]] == ["tokens", "cosine", "norms", "prompts", "truncation"]


def test_a_backend_that_is_not_there_is_found_out_before_anything_is_embedded_here(doctor, monkeypatch):
    embedded = []

    class Loading(Here):
        def encode(self, texts, side):
            embedded.extend(texts)
            return super().encode(texts, side)

    class Absent(There):
        def embed(self, batches):
            raise BackendError("nobody answers at this address")
            yield

    monkeypatch.setattr("runner.embed.local_encoder.encoder_for", lambda name: Loading())
    code, _, err, _ = doctor(Absent)
    assert (code, embedded) == (5, [])
    assert "nobody answers at this address" in err


def test_an_encoder_named_twice_is_compared_once(doctor):
    backend = ThereToo(lambda name: There())
    code, out, _, _ = doctor(backend, *ONE, ONE[1])
    assert (code, out.count("[ok]"), len(backend.prepared)) == (0, 1, 1)


@pytest.mark.parametrize(
    ("is_here", "told", "said"),
    [(False, "cells are kept. Add --rehearse.", "make mpnet"), (True, "not the catalogued", "not the catalogued")],
)
def test_missing_or_other_weights_are_named_before_the_backend_is_started(doctor, monkeypatch, is_here, told, said):
    def refuse(spec):
        raise BackendError(f"{spec.name}: {told}")

    monkeypatch.setattr("runner.embed.weights.verified_folder", refuse)
    monkeypatch.setattr("runner.embed.weights.is_here", lambda spec: is_here)
    code, _, err, places = doctor(There, "--parity=modal", "--encoder=mpnet-base-v2")
    assert (code, places) == (5, [])
    assert "mpnet-base-v2" in err
    assert said in err
    assert "kept" not in err
    assert "--rehearse" not in err


def test_without_a_name_every_encoder_whose_weights_are_here_is_compared(doctor, monkeypatch):
    monkeypatch.setattr("runner.embed.weights.is_here", lambda spec: spec.name.startswith("minilm"))
    asked = []
    code, out, _, _ = doctor(ThereToo(lambda name: asked.append(name) or There()), "--parity=modal")
    assert (code, asked) == (0, ["minilm-l6-v2", "minilm-static-384"])
    assert out.count("[ok]") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--parity=http"], "--parity http needs --encoder-url URL"),
        (["--parity=http", "--encoder-url=http://127.0.0.1:1"], "Which encoder does the server serve?"),
        (["--parity=modal", "--encoder=minilm"], "There is no encoder 'minilm'"),
        (["--parity=modal", "--encoder-url=http://127.0.0.1:1"], "--encoder-url belongs to --parity http"),
        (["--parity=http", "--modal"], "--modal belongs to --parity modal"),
        (["--encoder=minilm-l6-v2"], "--encoder belongs to --parity modal and --parity http"),
        (["--modal"], "--modal belongs to --parity modal"),
        (["--gpu=L4"], "--gpu belongs to --parity modal"),
        (["--max-usd=0"], "--max-usd belongs to --parity modal"),
        (["--encoder-api=tei"], "--encoder-api belongs to --parity http"),
        (["--parity=http", "--encoder-url=http://127.0.0.1:1", "--gpu=L4"], "--gpu belongs to --parity modal"),
        (["--parity=modal", "--quick"], "--quick shortens the examination of the installation"),
    ],
)
def test_flags_that_do_not_fit_are_usage_errors(doctor, arguments, said):
    code, _, err, places = doctor(There, *arguments)
    assert code == 2
    assert said in err
    assert places == []


@pytest.mark.slow
@pytest.mark.model
def test_minilm_in_half_precision_is_close_to_float32_and_six_tokens_less_are_noticed():
    spec = catalog.encoder("minilm-l6-v2")
    short = TransformerEncoder(replace(spec, max_tokens=250), dtype="float16")
    found = checks(parity(encoder_for("minilm-l6-v2"), short, today=TODAY))
    assert [name for name, check in found.items() if not check.passed] == ["cosine", "truncation"]
    assert "4 of 32 texts are below" in found["cosine"].said, "those past 250 tokens and no others"
    assert "it reads less of a text" in found["truncation"].said
