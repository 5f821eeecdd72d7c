"""A loopback server of embeddings, OpenAI's API and TEI's, that can be told to fail in every way that servers do."""

import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from tokenizers import Tokenizer

from runner.embed.probe import PARAPHRASES
from runner.embed.weights import tokenizer_folder
from runner.eval_set import catalog

MINILM = catalog.encoder("minilm-l6-v2")
DIM = 384


@cache
def tokenizer() -> Tokenizer:
    found = Tokenizer.from_file(str(tokenizer_folder(MINILM) / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return found


@cache
def _noise(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(np.random.PCG64(seed)).standard_normal(DIM)


def toy_rows(texts: Sequence[str], limit: int = 512, prompt: str = "") -> np.ndarray:
    """Unit rows (texts, DIM): the mean of one random vector a token, read to the server's own limit, not ours."""
    ids = [encoding.ids[:limit] for encoding in tokenizer().encode_batch([prompt + text for text in texts])]
    rows = np.array([np.mean([_noise(f"token {i}") for i in some], axis=0) for some in ids])
    for row, text in zip(rows, texts, strict=True):
        for topic, pair in enumerate(PARAPHRASES):
            if any(sentence in text for sentence in pair):
                row += 4 * _noise(f"topic {topic}")
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass(frozen=True)
class Reply:
    """One answer. `cut` sends so many bytes of the body and resets the connection; `chunked` declares no length."""

    body: bytes = b""
    status: int = 200
    type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    cut: int | None = None
    hold: threading.Event | None = None
    """Nothing is sent before it is set."""


def as_json(value: object, status: int = 200, **more: object) -> Reply:
    return Reply(json.dumps(value).encode(), status, **more)


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    texts: list[str]
    body: dict[str, object]


Tamper = Callable[["Server", Request], Reply]


@dataclass
class Server:
    """`faults` are taken one a POST, None for a right answer; then all answers are right. `info` is TEI's page."""

    port: int = 0
    rows: Callable[[Sequence[str]], np.ndarray] = toy_rows
    faults: list[Reply | Tamper | None] = field(default_factory=list)
    poison: dict[str, Reply] = field(default_factory=dict)
    """Replies to every request with a text that holds the word."""
    info: Reply | None = None
    paths: tuple[str, ...] = ("/v1/embeddings", "/embed")
    model: str = MINILM.hub_id
    log: list[Request] = field(default_factory=list)
    gets: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def texts(self) -> list[str]:
        """Every text received, in order."""
        return [text for request in self.log for text in request.texts]

    def right(self, request: Request) -> Reply:
        return self.answer(request, self.rows(request.texts).tolist())

    def answer(self, request: Request, rows: object) -> Reply:
        """An answer with these rows, in the shape that the path has."""
        n_tokens = sum(len(encoding.ids) for encoding in tokenizer().encode_batch(request.texts))
        if request.path.endswith("/embed"):
            return as_json(rows, headers=(("x-compute-tokens", str(n_tokens)),))
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
        return as_json({"object": "list", "data": data, "model": self.model, "usage": usage})

    def reply(self, request: Request) -> Reply:
        with self.lock:
            self.log.append(request)
            fault = self.faults.pop(0) if self.faults else None
        if request.path not in self.paths:
            return Reply(b"<!DOCTYPE html><html>Not here</html>", 404, "text/html")
        for word, reply in self.poison.items():
            if any(word in text for text in request.texts):
                return reply
        if fault is None:
            return self.right(request)
        return fault(self, request) if callable(fault) else fault


def tei_info(**more: object) -> Reply:
    """What TEI's /info says of the catalogued MiniLM."""
    info = {
        "model_id": MINILM.hub_id,
        "model_sha": MINILM.revision,
        "model_dtype": "float16",
        "model_type": {"embedding": {"pooling": "mean"}},
        "max_concurrent_requests": 512,
        "max_input_length": 256,
        "max_batch_tokens": 16384,
        "max_client_batch_size": 32,
        "auto_truncate": False,
        "version": "1.8.2",
    }
    return as_json(info | more)


@contextmanager
def served(server: Server) -> Iterator[Server]:
    """The server on a port of its own while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each reply waits 40 ms for an acknowledgement

        def do_GET(self) -> None:
            server.gets.append(self.path)
            known = server.info if self.path.endswith("/info") else None
            self._send(known or Reply(b"<html>nothing</html>", 404, "text/html"))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            texts = body["inputs"] if "inputs" in body else body["input"]
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(server.reply(Request(self.path, headers, texts, body)))

        def _send(self, reply: Reply) -> None:
            try:
                _write(self, reply)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # clients that hang up are part of the play

    http = Quiet(("127.0.0.1", 0), Handler)
    server.port = http.server_address[1]
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


def _write(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    if reply.hold:
        reply.hold.wait(30)
    handler.send_response(reply.status)
    for name, value in reply.headers:
        handler.send_header(name, value)
    handler.send_header("Content-Type", reply.type)
    handler.send_header("Content-Length", str(len(reply.body)))
    handler.end_headers()
    handler.wfile.write(reply.body if reply.cut is None else reply.body[: reply.cut])
    handler.wfile.flush()
    if reply.cut is not None:
        # An abortive close: the client meets a reset, not an end.
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
        handler.close_connection = True
