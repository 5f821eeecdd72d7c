"""Modal's own container runtime on this machine: uploaded files, pinned packages, fetched weights, no network.

In a file of its own: for as long as it runs, the client of this process is led to the stand-in, and the app is one that
was defined with a token for the model hub.
"""

import os
import sys

import pytest

from runner.embed.encoder import Batch
from runner.embed.local_encoder import TransformerEncoder
from runner.embed.weights import download_mark, verified_folder
from runner.eval_set import catalog
from tests.support.hub_server import HubServer, packaged_minilm
from tests.support.modal_server import ModalServer
from tests.support.modal_server.launch import walls
from tests.support.modal_words import TEXTS, backend
from tests.support.random_models import REDUCED, write_model

MINILM = catalog.encoder("minilm-l6-v2")
OWN = catalog.EncoderSpec(name="own", model="me/own", revision="a" * 40, dim=384, max_tokens=256, pooling="mean")
"""MiniLM's files as a plan's own encoder, which the container's catalogue does not have."""


@pytest.fixture(name="cloud", scope="module")
def _cloud(tmp_path_factory):
    """The stand-in with modal's own container runtime, and a model hub that it downloads from."""
    folder = tmp_path_factory.mktemp("cloud")
    # Bits can depend on the number of threads, so the container has as many as this process.
    threads = {name: os.environ[name] for name in ("OMP_NUM_THREADS",) if name in os.environ}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_TOKEN", "hf_planted_secret")
        # The token is read when the app is defined; in the end the app of before is put back.
        import runner.embed.modal.app

        patch.delitem(sys.modules, "runner.embed.modal.app")
        patch.delattr(runner.embed.modal, "app")
        with (
            HubServer(packaged_minilm() | dict.fromkeys([(OWN.model, OWN.revision)], verified_folder(MINILM))) as hub,
            ModalServer(folder / "server", environment={"HF_ENDPOINT": hub.url} | threads) as server,
            server.client_environment(),
        ):
            yield server, hub


@pytest.mark.slow
@pytest.mark.model
def test_modals_own_runtime_gives_the_local_rows_bit_for_bit_from_fetched_weights(cloud, tmp_path):
    server, hub = cloud
    batches = [Batch("document", tuple(TEXTS[at : at + 12]), (8, 4)) for at in (0, 12, 24)]
    with backend(tmp_path, gpu="cpu", containers=1) as rented:
        answers = {answer.batch_id: answer for answer in rented.encoder(MINILM.name).embed(batches)}
    here = {answer.batch_id: answer.rows for answer in TransformerEncoder(MINILM).embed(batches)}
    assert {name: answer.rows.tobytes() for name, answer in answers.items()} == {
        name: rows.tobytes() for name, rows in here.items()
    }
    with backend(tmp_path / "own", gpu="cpu", containers=1) as rented:
        own = {answer.batch_id: answer.rows for answer in rented.encoder_of(OWN).embed(batches)}
    assert {name: rows.tobytes() for name, rows in own.items()} == {name: rows.tobytes() for name, rows in here.items()}
    assert (server.volume("per-source-eval-weights") / download_mark(OWN)).is_file()
    for answer in answers.values():
        assert (answer.facts["device"], answer.facts["dtype"]) == ("cpu", "float32")
        assert answer.facts["weights_sha256"] == MINILM.weights_sha256
    assert (server.volume("per-source-eval-weights") / download_mark(MINILM)).is_file()
    sent = {request.headers.get("authorization") for request in hub.requests}
    assert sent - {None} == {"Bearer hf_planted_secret"}
    logs = [container.log.read_bytes() for container in server.containers if container.log]
    assert logs
    assert b"hf_planted_secret" not in b"".join(logs)


OF_TODAY = ("embeddinggemma-300m", "qwen3-embedding-0.6b", "granite-embedding-english-r2")


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_TODAY)
def test_a_row_that_a_plan_pinned_is_fetched_probed_and_applied_in_a_container_as_here(cloud, tmp_path, name):
    """With random weights: what the catalog has without a commit travels with the plan's."""
    server, hub = cloud
    folder = tmp_path / "model"
    row = write_model(folder, name, sizes=REDUCED).model_copy(update={"revision": "c" * 40, "max_tokens": 256})
    hub.models[row.model, row.revision] = folder
    batch = Batch("query", tuple(TEXTS[:12]), (8, 4))
    with backend(tmp_path, gpu="cpu", containers=1) as rented:
        (there,) = rented.encoder_of(row).embed([batch])
    (here,) = TransformerEncoder(row, find=lambda spec: folder).embed([batch])
    assert there.error == ""
    assert there.rows.tobytes() == here.rows.tobytes()
    assert (server.volume("per-source-eval-weights") / download_mark(row)).is_file()


def test_a_container_connects_to_nobody_but_the_service_and_changes_no_file_that_is_read_only():
    hook = walls({50051}, block_network=True, read_only=("/weights",))
    hook("socket.connect", (None, ("127.0.0.1", 50051)))
    hook("open", ("/weights/a", "r", os.O_RDONLY))
    hook("os.rename", ("/tmp/a", "/tmp/b"))
    for event, arguments, said in (
        ("socket.connect", (None, ("127.0.0.1", 9)), "Network is unreachable"),
        ("open", ("/weights/a", "w", os.O_WRONLY), "Read-only"),
        ("os.rename", ("/tmp/a", "/weights/../weights/b"), "Read-only"),
    ):
        with pytest.raises(OSError, match=said):
            hook(event, arguments)
