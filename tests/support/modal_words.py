"""An encoder of a few lines on the stand-in for Modal: the real client, engine and driver, and no model."""

import random
import shutil
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from runner.base.store import Store
from runner.commands.main import take_endings
from runner.embed import embed_chunks
from runner.embed.cost.ledger import Budget
from runner.embed.cost.prices import RemoteOptions
from runner.embed.cost.rental import Rentals
from runner.embed.embed_chunks import embed
from runner.embed.modal import app as modal_app
from runner.embed.modal import backend as modal_backend
from runner.embed.modal.backend import ModalBackend, ModalEncoder
from runner.embed.probe import probed
from runner.embed.weights import download_mark
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec
from tests.support.fake_encoder import WORDS, FakeEncoder
from tests.support.modal_server import ModalServer

SPEC = EncoderSpec(name="words", model="planted/words", revision="0" * 40, dim=16, max_tokens=32)
TEXTS = [" ".join(random.Random(seed).choices(WORDS, k=6 + seed % 27)) + f" {seed}" for seed in range(112)]
TEXTS_SET = frozenset(TEXTS)
N_BATCHES = 40


class Words(FakeEncoder):
    """The fake encoder in the place of the local ones."""

    method = "mean of random vectors"

    def __init__(self, spec=SPEC, *, device="cpu", dtype="float32", find=None):
        super().__init__(max_tokens=spec.max_tokens)
        self.spec, self.dtype = spec, dtype

    def identity(self):
        return {"encoder": self.spec.name, "backend": {"name": "local", "device": "cpu", "dtype": "float32"}}


class Container:
    """What a container of the app does, with words in place of a model. `facts` by its number among its like."""

    n_made = 0
    facts_of = staticmethod(lambda number: {"device": "cpu"})

    def __init__(self, encoder, revision, device, dtype, own):
        type(self).n_made += 1
        self.model, self.facts = Words(), self.facts_of(self.n_made)

    def embed(self, batch_id, side, texts, forwards):
        answer = {"batch_id": batch_id, "facts": self.facts}
        return {**answer, **modal_app.embedded(self.model, batch_id, side, texts, forwards)}


def holding(held, let_go, text=""):
    """A container that sets `held` when it gets a batch of TEXTS, with `text` in it, and waits for `let_go`."""

    class Holding(Container):
        def embed(self, *batch):
            if TEXTS_SET.issuperset(batch[2]) and (not text or text in batch[2]):
                held.set()
                let_go.wait(120)
            return super().embed(*batch)

    return Holding


class Bench(NamedTuple):
    """A server, a driver that leads to it, and the folder of what both write."""

    server: ModalServer
    backend: ModalBackend
    folder: Path

    @property
    def encoder(self) -> ModalEncoder:
        return self.backend.encoder(SPEC.name)

    def embed(self, texts=TEXTS, **more):
        return embed(Store(self.folder / "cache"), self.encoder, texts, "document", **more)

    def again(self) -> "Bench":
        """The same server and folder, and a driver that knows nothing of the last one."""
        return Bench(self.server, backend(self.folder), self.folder)

    def sent(self) -> Counter:
        """Return how often each batch of documents was sent, checks of the session apart."""
        return Counter(filter(None, map(batch_of, self.server.inputs)))

    def tried(self) -> Counter:
        """Return how often each batch was handed to a container, tries that failed included."""
        return Counter(batch_of(one) for one in self.server.inputs if batch_of(one) for _ in one.executions)


def batch_of(one):
    """The id of a batch of TEXTS, or None."""
    return one.args[0] if one.function == "Embedder.embed" and TEXTS_SET.issuperset(one.args[2]) else None


def holds(text):
    """Whether an input is a batch of TEXTS with this one among them."""
    return lambda one: batch_of(one) is not None and text in one.args[2]


def backend(folder, **options):
    remote = RemoteOptions(**{"gpu": "cpu", "containers": 2, **options})
    return ModalBackend(Rentals(Budget(folder / "spend", remote.max_usd), remote))


def local_rows(folder):
    return embed(Store(folder / "local"), Words(), TEXTS, "document").rows


@pytest.fixture(name="passed_probe", scope="module")
def planted_probe(tmp_path_factory):
    return probe_passed_in(tmp_path_factory.mktemp("probe"))


def probe_passed_in(folder):
    """A cache below `folder` that holds the probe, so that a bench sends one check and then its batches alone."""
    with pytest.MonkeyPatch.context() as patch:
        _plant(patch)
        probed_words = Words()
        probed_words.identity = backend(folder).encoder(SPEC.name).identity
        probed(Store(folder / "cache"), probed_words)
    return folder / "cache"


@pytest.fixture(name="bench")
def planted_bench(tmp_path, passed_probe):
    """Makes a bench; keywords are those of `benches`' maker. In the end every planted fault must have struck."""
    with benches(tmp_path, passed_probe) as (make, servers):
        yield make
        assert [server.faults.left() for server in servers] == [[]] * len(servers)


@contextmanager
def benches(parent, passed_probe):
    """A maker of benches and the list of their servers.

    The maker's keywords are the server's, `container` is what runs in it, `options` those of the driver.
    """
    servers = []
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        _plant(patch)

        def make(container=Container, options=None, fetched=False, probe=True, **server):
            folder = parent / f"bench-{len(list(parent.iterdir()))}"
            folder.mkdir()
            if probe:
                shutil.copytree(passed_probe, folder / "cache")
            container.n_made = 0
            planted = ModalServer(folder / "server", executor="inprocess", **server)
            planted.replace("Embedder", container)
            planted.replace("fetch", lambda *_: put_weights(planted))
            stack.enter_context(planted)
            servers.append(planted)
            if fetched:
                put_weights(planted)
            stack.enter_context(planted.client_environment())
            driver = stack.enter_context(backend(folder, **(options or {})))
            return Bench(planted, driver, folder)

        yield make, servers


def put_weights(server):
    """What `fetch` leaves in the Volume, as far as the driver sees it."""
    (server.volume(modal_app.WEIGHTS_VOLUME) / download_mark(SPEC)).write_text("{}")
    return {}


def _plant(patch):
    patch.setitem(catalog.ENCODERS, SPEC.name, SPEC)
    patch.setattr(modal_backend, "encoder_class", lambda name: Words)
    patch.setattr(modal_backend, "CPU_REQUEST_TOKENS", Words.batch_tokens)
    patch.setattr(embed_chunks, "SHARD_TEXTS", 1)  # so that a batch that is missing is sent alone


def main(folder):
    """The driver as a process of its own, for tests that end it."""
    take_endings()
    with pytest.MonkeyPatch.context() as patch, backend(folder) as driver:
        _plant(patch)
        embed(Store(folder / "cache"), driver.encoder(SPEC.name), TEXTS, "document")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
