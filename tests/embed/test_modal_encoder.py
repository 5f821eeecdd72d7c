import asyncio
import re
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from itertools import chain
from pkgutil import resolve_name

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import BackendError
from runner.base.store import Store
from runner.embed.backends import Work
from runner.embed.batches import plan_forwards, plan_requests
from runner.embed.cost import MAX_USD
from runner.embed.cost.estimate import Total
from runner.embed.cost.ledger import Budget, BudgetError, spend_receipt
from runner.embed.cost.prices import CORE_USD, GPUS, RemoteOptions, container_price
from runner.embed.cost.rental import Rentals
from runner.embed.embed_chunks import embed
from runner.embed.encoder import Batch, Grouping
from runner.embed.local_encoder import TransformerEncoder, encoder_for
from runner.embed.modal import app as modal_app
from runner.embed.modal import service as modal_service
from runner.embed.modal.backend import ModalBackend
from runner.embed.modal.pins import image_pins
from runner.eval_set import catalog
from tests.embed.test_local_encoder import said_by
from tests.support.hub_server import HubServer, packaged_minilm
from tests.support.modal_words import (  # noqa: F401  # fixtures
    SPEC,
    TEXTS,
    Container,
    Words,
    holding,
    holds,
    local_rows,
    planted_bench,
    planted_probe,
)

MINILM = catalog.encoder("minilm-l6-v2")
CONTAINER_HOME = "/root"
"""Where Modal puts the files that a client adds."""

LOCALLY = pytest.mark.filterwarnings("ignore:The Embedder.embed function is executing locally")


def driver(folder, **options):
    remote = RemoteOptions(**options)
    return ModalBackend(Rentals(Budget(folder / "spend", remote.max_usd), remote))


def test_the_request_names_gpu_pins_limits_and_a_weights_folder_that_cannot_be_written(bench):
    made = bench(options={"gpu": "L4", "containers": 3}, probe=False)
    made.embed(TEXTS[:5])
    asked = made.server.function("Embedder")
    said = asked.definition
    assert (said.block_network, asked.volumes) == (True, {"/weights": ("per-source-eval-weights", True)})
    assert (said.timeout_secs, said.startup_timeout_secs, said.autoscaler_settings.scaledown_window) == (600, 900, 60)
    retries = said.retry_policy
    assert (retries.retries, retries.initial_delay_ms, retries.backoff_coefficient) == (3, 1000, 2.0)
    (bound,) = made.server.bound
    assert (bound.gpu, bound.max_containers) == ("L4", 3)
    assert bound.parameters == {
        "encoder": "words",
        "revision": "0" * 40,
        "device": "cuda",
        "dtype": "float16",
        "own": "",
    }
    lines = "\n".join(asked.dockerfile)
    for name, version in image_pins().items():
        assert f"{name}=={version}" in lines
    assert "uv:latest" not in lines
    assert f"uv:{modal_app.UV_VERSION}" in lines
    shipped = tuple(f"{CONTAINER_HOME}/{package}/" for package in ("runner", "samplers"))
    assert all(name.startswith(shipped) for name in asked.mounted)


def test_the_weights_function_has_a_network_an_hour_and_no_gpu(bench):
    made = bench()
    made.embed(TEXTS[:5])
    asked = made.server.function("fetch")
    said = asked.definition
    assert (asked.gpu, said.block_network, said.timeout_secs, said.retry_policy.retries) == ("", False, 3600, 2)
    assert (said.resources.milli_cpu, said.resources.milli_cpu_max) == (1000, 1000)
    assert asked.volumes == {"/weights": ("per-source-eval-weights", False)}
    assert "HF_HUB_OFFLINE" in asked.secrets


def test_pins_are_those_of_the_local_extra_with_numpy_and_without_packages_of_weights():
    pins = image_pins()
    assert {"numpy", "torch", "transformers", "tokenizers", "sentence-transformers", "huggingface-hub"} <= set(pins)
    assert MINILM.package not in pins
    assert all(version for version in pins.values())
    assert pins["cbor2"] == metadata.version("cbor2")


def test_without_a_gpu_forward_batches_are_the_local_ones_and_an_answer_stays_below_a_mebibyte(tmp_path):
    on_cpu, on_gpu = driver(tmp_path, gpu="cpu"), driver(tmp_path, gpu="L4")
    local = encoder_for("minilm-l6-v2").grouping.forward_tokens
    assert on_cpu.encoder("minilm-l6-v2").grouping == Grouping(local, 512, 8_192)
    assert on_gpu.encoder("minilm-l6-v2").grouping == Grouping(32_768, 512, 262_144, 512)
    arctic = on_gpu.encoder("arctic-l-v2.0").grouping
    assert arctic.request_texts * 1024 * 4 == 1 << 20


@given(
    st.lists(st.integers(1, 600), min_size=1, max_size=3_000),
    st.sampled_from(["minilm-l6-v2", "arctic-l-v2.0"]),
    st.sampled_from(["forward", "reversed"]),
)
def test_no_request_to_a_gpu_has_more_texts_than_an_answer_should(tmp_path_factory, lengths, name, order):
    encoder = driver(tmp_path_factory.getbasetemp(), gpu="L4").encoder(name)
    grouping, counts = encoder.grouping, np.array(lengths)
    digests = np.random.default_rng(0).integers(0, 256, (len(counts), 32), np.uint8)
    requests = plan_requests(plan_forwards(counts, digests, grouping, order), counts, grouping)
    sent = [list(chain.from_iterable(request)) for request in requests]
    assert sorted(chain.from_iterable(sent)) == list(range(len(counts)))
    assert max(map(len, sent)) * encoder.spec.dim * 4 <= 1 << 20


@pytest.mark.parametrize("gpu", ["L4", "H100", "cpu"])
def test_no_container_is_billed_for_more_cores_than_its_price_has(tmp_path, gpu):
    request, limit = driver(tmp_path, gpu=gpu).container_options["cpu"]
    assert request == limit
    device = GPUS[gpu].usd if gpu in GPUS else 0.0
    assert container_price(gpu) == pytest.approx(device + limit * CORE_USD)


def test_an_h100_is_never_served_by_another_gpu(bench):
    made = bench(options={"gpu": "H100"}, probe=False)
    made.embed(TEXTS[:5])
    assert {bound.gpu for bound in made.server.bound} == {"H100!"}
    assert made.encoder.identity()["backend"]["gpu"] == "H100"
    (paid,) = (each.price_per_second for each in made.backend.budget.entries() if each.gpu == "H100")
    assert paid == pytest.approx(container_price("H100"))


def test_half_precision_is_allowed_to_move_more(tmp_path):
    on_cpu, on_gpu = (driver(tmp_path, gpu=gpu).encoder("minilm-l6-v2") for gpu in ("cpu", "L4"))
    assert (on_cpu.tolerance, on_gpu.tolerance) == (1e-4, 2e-3)
    assert (on_cpu.identity()["backend"]["dtype"], on_gpu.identity()["backend"]["dtype"]) == ("float32", "float16")
    assert [each.identity()["backend"]["forward_texts"] for each in (on_cpu, on_gpu)] == [0, 512]
    table = driver(tmp_path, gpu="L4").encoder("minilm-static-384")
    assert (table.identity()["backend"]["dtype"], table.tolerance) == ("float32", 1e-4)


def test_identities_differ_from_the_local_one_by_the_backend_alone(tmp_path):
    there, here = driver(tmp_path).encoder("minilm-l6-v2").identity(), encoder_for("minilm-l6-v2").identity()
    assert {**there, "backend": None} == {**here, "backend": None}
    assert there["backend"]["gpu"] == "L4"
    assert set(there["backend"]["versions"]) == set(TransformerEncoder.libraries)
    assert there["backend"]["versions"].items() <= image_pins().items()


def test_a_package_that_moves_files_about_may_change_without_anything_embedded_again(tmp_path, monkeypatch):
    before, pins = driver(tmp_path).encoder("minilm-l6-v2").identity(), metadata.requires("per-source-eval")
    movers = ("numpy==", "safetensors==", "huggingface-hub==")
    bumped = [re.sub(r"==[^;]*", "==99.0 ", pin) if pin.startswith(movers) else pin for pin in pins]
    monkeypatch.setattr(metadata, "requires", lambda name: bumped)
    assert set(image_pins().values()) > {"99.0"}
    assert driver(tmp_path).encoder("minilm-l6-v2").identity() == before


def test_tokens_are_counted_here_as_the_local_encoder_counts(tmp_path):
    texts = [*TEXTS, "", "a\x00b", "word " * 600]
    counted = driver(tmp_path).encoder("minilm-l6-v2").token_counts(texts, "query")
    assert counted.tolist() == encoder_for("minilm-l6-v2").token_counts(texts, "query").tolist()


def test_neither_modal_nor_torch_is_imported_before_the_first_batch(tmp_path):
    code = (
        "import sys; from pathlib import Path; from runner.embed.cost.ledger import Budget\n"
        "from runner.embed.cost.rental import Rentals; from runner.embed.cost.prices import RemoteOptions\n"
        "from runner.embed.modal.backend import ModalBackend\n"
        f"with ModalBackend(Rentals(Budget(Path({str(tmp_path)!r}), 5.0), RemoteOptions())) as backend:\n"
        "    encoder = backend.encoder('minilm-l6-v2'); encoder.identity(); encoder.token_counts(['a'], 'query')\n"
        "print({'modal', 'torch', 'transformers'} & set(sys.modules))"
    )
    assert said_by(code).strip() == "set()"


def test_an_open_backend_that_embeds_nothing_talks_to_nobody(bench):
    made = bench()
    with made.backend:
        assert list(made.encoder.embed([])) == []
    assert not made.server.calls


def test_closing_stops_the_app_which_carries_the_runs_tag(bench):
    made = bench()
    with made.backend:
        made.embed(TEXTS[:5])
        (app,) = made.server.apps
        assert (app.tags, app.stopped) == ({"run": made.backend.service.run_id}, False)
    assert made.server.apps_stopped == [app.app_id]


def test_an_interrupt_stops_the_app_and_whoever_waits_for_it(bench):
    working, interrupted = threading.Event(), threading.Event()
    made = bench(holding(working, interrupted))
    with ThreadPoolExecutor(1) as threads:
        embedding = threads.submit(made.embed)

        def interrupt():
            with made.backend:
                assert working.wait(60)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupt()
        with pytest.raises(BackendError, match="The app on Modal was stopped"):
            embedding.result(60)
    interrupted.set()
    assert len(made.server.apps_stopped) == 1


def test_an_interrupt_while_modals_thread_begins_is_the_only_error(monkeypatch):
    begins = asyncio.run

    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            if not interrupts:
                return super().wait(timeout)
            raise interrupts.pop()

    monkeypatch.setattr(asyncio, "run", lambda work: (time.sleep(0.2), begins(work)))
    service, interrupts = modal_service.ModalService("a-run"), [KeyboardInterrupt()]
    service._begun = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        service.started()
    service.close()
    assert not service._thread.is_alive()


def test_a_stop_while_the_app_starts_waits_for_nobody_and_starts_nothing(bench, monkeypatch):
    made, starting, go_on = bench(), threading.Event(), threading.Event()

    def slow():
        starting.set()
        go_on.wait(60)
        return modal_app

    monkeypatch.setattr(modal_service, "_modal_app", slow)
    service = modal_service.ModalService("a-run")
    with ThreadPoolExecutor(1) as threads:
        wanted = threads.submit(service.started)
        assert starting.wait(60)
        service.stop("enough")
        with pytest.raises(BackendError, match="enough"):
            wanted.result(60)
    go_on.set()
    service.close()
    assert not made.server.calls


def test_encoders_embed_at_the_same_time_in_one_app(bench, monkeypatch):
    other = SPEC.model_copy(update={"name": "other-words", "model": "planted/other"})
    monkeypatch.setitem(catalog.ENCODERS, other.name, other)
    made = bench()
    both = threading.Barrier(2, timeout=60)

    class Together(Container):
        met = False

        def embed(self, *batch):
            if not self.met and set(batch[2]) <= set(TEXTS):
                self.met = True
                both.wait()
            return super().embed(*batch)

    made.server.replace("Embedder", Together)
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(
            lambda name: embed(Store(made.folder / name), made.backend.encoder(name), TEXTS, "document").rows,
            (SPEC.name, other.name),
        )
        rows = list(found)
    assert np.array_equal(rows[0], local_rows(made.folder))
    assert np.array_equal(rows[1], rows[0])
    assert len(made.server.apps) == 1
    assert {bound.parameters["encoder"] for bound in made.server.bound} == {SPEC.name, other.name}


def test_characters_that_protocols_trip_over_arrive_as_they_are(bench):
    made = bench()
    texts = ["a\x00b grant", "\ufeffbridge \u2028 smoke", "cod \U0001f41f bank", "river\r\nstate\x1b[0m"]
    assert len(made.embed(texts).rows) == 4
    assert {text for one in made.server.inputs if one.function != "fetch" for text in one.args[2]} >= set(texts)


def test_a_ceiling_that_is_reached_stops_the_app_and_keeps_what_is_done(bench):
    made, now = bench(), [0.0]
    rentals = Rentals(Budget(made.folder / "spend", 5.0), made.backend.options, lambda: now[0])

    def dear(seconds):
        class Dear(Container):
            def embed(self, *batch):
                now[0] += seconds * (TEXTS[0] in batch[2])
                return super().embed(*batch)

        return Dear

    made.server.replace("Embedder", dear(1e6))
    reports = []
    with pytest.raises(BudgetError, match=r"max-usd.*kept"), ModalBackend(rentals) as backend:
        made._replace(backend=backend).embed(report=reports.append)
    assert len(made.server.apps_stopped) == 1
    before = made.sent()
    made.server.replace("Embedder", dear(300))
    again = made.again()
    again.backend.budget.max_usd = 1000.0
    with again.backend:
        assert np.array_equal(again.embed().rows, local_rows(made.folder))
    n_missing = sum((made.sent() - before).values())
    assert 0 < n_missing < len(before)


def test_the_watchdog_ends_a_wait_that_nothing_would_end(bench):
    made, now, stuck = bench(), [0.0], threading.Event()
    rentals = Rentals(Budget(made.folder / "spend", 5.0), made.backend.options, lambda: now[0])
    ended = threading.Event()
    made.server.replace("Embedder", holding(stuck, ended))
    with ModalBackend(rentals) as backend, ThreadPoolExecutor(1) as threads:
        embedding = threads.submit(made._replace(backend=backend).embed)
        assert stuck.wait(60)
        now[0] += 1e8
        rentals.beat()
        with pytest.raises(BudgetError):
            embedding.result(60)
        ended.set()
    assert len(made.server.apps_stopped) == 1


def test_the_estimate_is_said_before_anything_starts_in_the_words_of_a_dry_run(bench, capsys):
    made = bench()
    made.backend.prepare([Work("words", 10, 100), Work("done", 0, 0)])
    first, cost, time, total = capsys.readouterr().err.splitlines()
    assert first.startswith("  words: 100 tokens (counted) at ")
    assert cost.startswith("cost: ")
    assert re.match(r"time: about \d+ minutes? by these figures", time)
    assert total.endswith("$0.00 spent before; within --max-usd 10.00, so it would start")
    made.backend.prepare([Work("words", 0, 0)], Total(5.0, judging=9.0))
    assert capsys.readouterr().err == "", "nothing is left to embed"
    with pytest.raises(BudgetError, match=r"\+ \$4\.90 judging"):
        made.backend.prepare([Work("words", 10, 100)], Total(5.0, judging=4.9))
    assert not made.server.calls


@pytest.mark.parametrize("is_estimated", [True, False])
def test_every_run_that_started_an_app_is_remembered_with_its_estimate_if_it_had_one(bench, is_estimated):
    made = bench()
    assert spend_receipt(made.folder / "spend") is None
    if is_estimated:
        made.backend.prepare([Work("words", 10, 100)])
    made.embed(TEXTS[:5])
    (app,) = (each for each in made.backend.budget.entries() if each.kind == "app")
    assert (app.what, app.max_usd) == (made.backend.service.run_id, MAX_USD)
    assert spend_receipt(made.folder / "spend").max_usd == MAX_USD
    assert app.estimate_usd > 0 if is_estimated else app.estimate_usd is None


def test_without_the_package_the_way_to_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(modal_service.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"needs the package modal.*pip install"), driver(tmp_path):
        pass


def test_no_secret_reaches_a_message_a_log_the_cache_or_the_ledger(bench, monkeypatch, caplog):
    monkeypatch.setenv("HF_TOKEN", "hf_planted_secret")
    caplog.set_level("INFO")
    made = bench()
    secrets = ("hf_planted_secret", *(made.server.environment()[f"MODAL_TOKEN_{part}"] for part in ("ID", "SECRET")))
    made.server.faults.fail_input(holds(TEXTS[0]), times=None, text=f"ValueError('{' '.join(secrets)}')")
    with pytest.raises(BackendError, match=r"\[HF_TOKEN\]") as raised:
        made.embed()
    told = "".join(traceback.format_exception(raised.value)) + caplog.text
    written = b"".join(
        path.read_bytes()
        for part in ("cache", "spend")
        for path in sorted((made.folder / part).rglob("*"))
        if path.is_file()
    )
    for secret in secrets:
        assert secret not in told
        assert secret.encode() not in written


@pytest.mark.parametrize(
    ("revision", "device", "said"),
    [("f" * 40, "cpu", "is catalogued at revision"), (MINILM.revision, "cuda", "Nothing runs on a CPU instead")],
)
@pytest.mark.model
def test_a_container_refuses_another_revision_and_a_missing_gpu(revision, device, said):
    with pytest.raises(BackendError, match=said):
        modal_app.loaded(MINILM.name, revision, device, "float32")


@pytest.fixture(name="failing")
def _failing(monkeypatch):
    """Lets a container's model fail; gives the calls by which the container saves itself."""
    calls = []
    monkeypatch.setattr(modal_app.modal.experimental, "stop_fetching_inputs", lambda: calls.append("retired"))
    monkeypatch.setattr("torch.cuda.empty_cache", lambda: calls.append("emptied"))

    def run(device, error):
        class Broken(Words):
            def encode(self, texts, side):
                raise error

        monkeypatch.setattr(modal_app, "loaded", lambda *_: (Broken(), {"device": device}))
        container = modal_app.Embedder(encoder="words", revision="0" * 40, device=device, dtype="float32")
        batch = Batch("document", ("a grant",), (1,))
        return container.embed.local(batch.batch_id, batch.side, list(batch.texts), list(batch.forwards))

    return run, calls


@LOCALLY
@pytest.mark.parametrize(
    ("device", "kind", "saved"),
    [
        ("cuda", "RuntimeError", ["retired"]),
        ("cuda", "MemoryError", ["retired"]),
        ("cuda", "torch.cuda.OutOfMemoryError", ["emptied"]),
        ("cpu", "RuntimeError", []),
    ],
)
def test_a_gpu_that_is_full_is_emptied_and_one_that_fails_takes_no_more_inputs(failing, device, kind, saved):
    run, calls = failing
    error = resolve_name(kind if "." in kind else f"builtins.{kind}")
    with pytest.raises(error):  # so that Modal tries again
        run(device, error("CUDA error"))
    assert calls == saved


@LOCALLY
def test_an_error_about_a_text_is_its_answer_and_retires_no_container(failing):
    run, calls = failing
    assert "no such character" in run("cuda", ValueError("no such character"))["error"]
    assert not calls


def test_a_tokenizer_is_fetched_without_the_weights(tmp_path):
    code = (
        "from dataclasses import replace; from runner.eval_set import catalog\n"
        "from runner.embed.weights import tokenizer_folder\n"
        f"spec = catalog.encoder({MINILM.name!r}).model_copy(update={{'name': 'elsewhere', 'package': ''}})\n"
        "print(sorted(path.name for path in tokenizer_folder(spec).iterdir()), tokenizer_folder(spec).name)"
    )
    with HubServer(packaged_minilm()) as hub:
        said = said_by(code, HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path), HF_HUB_OFFLINE="0")
        assert said.strip() == f"['tokenizer.json'] {MINILM.revision}"
        assert not [request for request in hub.requests if "safetensors" in request.path]
