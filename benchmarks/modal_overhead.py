"""What Modal's client costs: 10,000 chunks through the stand-in service, with a model that does nothing.

    python benchmarks/modal_overhead.py

The stand-in serves from a process of its own. Ours is the whole way from texts to vectors on disk: plan, digests,
client, checks, vector file and journal, meter; the peer is the same engine over an encoder in this process that answers
at once, so that what is left is the client. Of that, the bytes are moved by Modal's library, in Python and by HTTP/2
frames of 16 KB: the floor is a bare call of grpclib with as many bytes each way, and nothing else of Modal or of ours.
Seconds are CPU seconds of this process with all its threads.
"""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from multiprocessing.queues import Queue
from pathlib import Path

import numpy as np
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.server import Server, Stream
from measuring import each_alone, peak_mb
from no_op_encoder import n_tokens, rows
from numpy.typing import NDArray
from sizes import sized

from runner.base.places import CHECKOUT
from runner.base.records import PromptSide
from runner.base.store import Store
from runner.embed import embed_chunks
from runner.embed.cost.budget import Meter
from runner.embed.cost.prices import RemoteOptions
from runner.embed.encoder import Encoder, Grouping, InProcessEncoder, Matrix
from runner.embed.modal.backend import ModalBackend
from runner.embed.modal.encoder import ModalEncoder

N_TEXTS = sized(10_000, 256)
CHARACTERS = 1000
BATCH = 128
OWN_GROUPING = ModalEncoder.grouping
WANTED_MS, WANTED_MB = 3.0, 500
ENCODERS = sized(("minilm-l6-v2", "arctic-l-v2.0"), ("minilm-l6-v2",))
ROUNDS = sized(3, 1)
CALLS = sized(60, 2)


class Here(InProcessEncoder):
    """The peer: as much work for the engine, and no client."""

    def __init__(self, like: ModalEncoder) -> None:
        self.spec, self._grouping = like.spec, like.grouping

    @property
    def grouping(self) -> Grouping:
        """As the requests of the encoder that it stands beside."""
        return self._grouping

    def identity(self) -> dict[str, object]:
        """Its name."""
        return {"encoder": self.spec.name, "backend": {"name": "local"}}

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.int64]:
        """As the containers count."""
        return np.array([n_tokens(text) for text in texts])

    def encode(self, texts: Sequence[str], side: PromptSide) -> Matrix:
        """The rows of the containers."""
        return np.frombuffer(rows(len(texts), self.spec.dim)[0], "<f4").reshape(-1, self.spec.dim)


@contextmanager
def served() -> Iterator[None]:
    """The stand-in in another process, and this one's environment pointing to it."""
    command = [sys.executable, "-m", "tests.support.modal_server", "--executor", "inprocess"]
    objects = ["--object", "Embedder=no_op_encoder:NoOp", "--object", "fetch=no_op_encoder:fetch"]
    path = os.pathsep.join([str(CHECKOUT), str(Path(__file__).parent)])
    with subprocess.Popen(
        [*command, *objects], cwd=CHECKOUT, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            name, _, value = line.removeprefix("export ").strip().partition("=")
            os.environ[name] = value
            if name == "MODAL_DISABLE_API_PROXY":
                break
        try:
            yield
        finally:
            process.terminate()


class Bytes:
    """Messages as they are, and a service that answers each with as many bytes as it asks for in its first ten."""

    __content_subtype__ = "bytes"

    def encode(self, message: bytes, _: object) -> bytes:
        """The message."""
        return message

    decode = encode

    def __mapping__(self) -> dict[str, Handler]:
        async def answer(stream: Stream[bytes, bytes]) -> None:
            asked = await stream.recv_message()
            await stream.send_message(bytes(int(asked[:10])))

        return {"/Bytes/Move": Handler(answer, Cardinality.UNARY_UNARY, bytes, bytes)}


async def serve_bytes(ports: "Queue[int]") -> None:
    """Serve until the process is ended."""
    server = Server([Bytes()], codec=Bytes())
    await server.start("127.0.0.1", 0)
    ports.put(server._server.sockets[0].getsockname()[1])
    await server.wait_closed()


async def moved(port: int, up: int, down: int) -> float:
    """CPU seconds of one call with so many bytes each way."""
    channel = Channel("127.0.0.1", port, codec=Bytes())
    move = UnaryUnaryMethod(channel, "/Bytes/Move", bytes, bytes)
    message = f"{down:010}".encode().ljust(up)
    await move(message)
    started = time.process_time()
    for _ in range(CALLS):
        await move(message)
    taken = time.process_time() - started
    channel.close()
    return taken / CALLS


def serve_in_process(ports: "Queue[int]") -> None:
    """The server of `moved`."""
    asyncio.run(serve_bytes(ports))


def floor(up: int, down: int) -> float:
    """CPU seconds of moving so many bytes by grpclib alone, the least of some rounds."""
    spawned = multiprocessing.get_context("spawn")
    ports: Queue[int] = spawned.Queue()
    server = spawned.Process(target=serve_in_process, args=(ports,), daemon=True)
    server.start()
    port = ports.get()
    try:
        return min(asyncio.run(moved(port, up, down)) for _ in range(ROUNDS))
    finally:
        server.kill()


def seconds_of(folder: Path, encoder: Encoder, texts: list[str]) -> tuple[float, float]:
    """CPU and clock seconds of one embedding into an empty store."""
    cpu, clock = time.process_time(), time.perf_counter()
    embed_chunks.embed(Store(folder), encoder, texts, "document")
    return time.process_time() - cpu, time.perf_counter() - clock


def measure(name: str, request_texts: int) -> None:
    """With so many texts a request; as many as a run sends for 0."""
    embed_chunks.refuse_changed = lambda store, encoder: None  # nothing that does nothing passes a probe
    ModalEncoder.token_counts = lambda self, texts, side: np.array([n_tokens(text) for text in texts])
    ModalEncoder.grouping = Grouping(1 << 30, request_texts, 1 << 40, request_texts) if request_texts else OWN_GROUPING
    texts = [f"{number:08d} {'legislation ' * (CHARACTERS // 12)}" for number in range(N_TEXTS)]
    with tempfile.TemporaryDirectory() as scratch, served():
        folder = Path(scratch)
        remote = RemoteOptions(containers=2)
        with ModalBackend(Meter.of(folder / "work" / "spend", remote), remote) as backend:
            encoder = backend.encoder(name)
            seconds_of(folder / "warm", encoder, texts[:512])
            before = peak_mb()
            ours = [seconds_of(folder / f"ours-{n}", encoder, texts) for n in range(ROUNDS)]
            peer = [seconds_of(folder / f"peer-{n}", Here(encoder), texts) for n in range(ROUNDS)]
        peak = peak_mb()
    (cpu, _), (bare, _), clock = min(ours), min(peer), min(clock for _, clock in ours)
    a_batch = 1000 * BATCH / N_TEXTS
    bytes_moved = 1000 * floor(BATCH * CHARACTERS, 4 * BATCH * encoder.spec.dim)
    print(
        f"{N_TEXTS:,} chunks of {CHARACTERS} characters x {encoder.spec.dim}, {encoder.grouping.request_texts} a "
        f"request: {cpu * a_batch:.2f} CPU-ms for {BATCH} with the engine, {bare * a_batch:.2f} without the client, so "
        f"{(cpu - bare) * a_batch:.2f} for it (wanted {WANTED_MS:.0f}), of which grpclib alone takes {bytes_moved:.2f} "
        f"to move the bytes; {clock * a_batch:.1f} ms by the clock; peak "
        f"{peak} MB (wanted {WANTED_MB}), {peak - before} MB of it while embedding",
        flush=True,
    )


def main() -> None:
    each_alone(measure, product(ENCODERS, sized((0, BATCH), (0,))))


if __name__ == "__main__":
    main()
