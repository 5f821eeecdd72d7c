"""A loopback server of embeddings, OpenAI's API and TEI's, that can be told to fail in every way that servers do."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from tokenizers import Tokenizer

from runner.embed.probe import PARAPHRASES
from runner.embed.weights import tokenizer_folder
from runner.eval_set import catalog
from tests.support.fake_encoder import direction
from tests.support.loopback import NOTHING_HERE, Loopback, Request, Wire, as_json

MINILM = catalog.encoder("minilm-l6-v2")
DIM = 384


@cache
def tokenizer() -> Tokenizer:
    found = Tokenizer.from_file(str(tokenizer_folder(MINILM) / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return found


def toy_rows(texts: Sequence[str], limit: int = 512, prompt: str = "") -> np.ndarray:
    """Unit rows (texts, DIM): the mean of one random vector a token, read to the server's own limit, not ours."""
    ids = [encoding.ids[:limit] for encoding in tokenizer().encode_batch([prompt + text for text in texts])]
    rows = np.array([np.mean([direction(f"token {i}", DIM) for i in some], axis=0) for some in ids])
    for row, text in zip(rows, texts, strict=True):
        for topic, pair in enumerate(PARAPHRASES):
            if any(sentence in text for sentence in pair):
                row += 4 * direction(f"topic {topic}", DIM)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


Tamper = Callable[["Server", Request], Wire]


@dataclass
class Server(Loopback):
    """`faults` are taken one a POST, None for a right answer; then all answers are right. `info` is TEI's page."""

    rows: Callable[[Sequence[str]], np.ndarray] = toy_rows
    faults: list[Wire | Tamper | None] = field(default_factory=list)
    poison: dict[str, Wire] = field(default_factory=dict)
    """Replies to every request with a text that holds the word."""
    takes: Callable[[Request], bool] = lambda request: True
    refusal: int = 413
    """The status in answer to a request that it does not take."""
    answered: list[str] = field(default_factory=list)
    """Every text whose row was sent: what a service would charge."""
    info: Wire | None = None
    paths: tuple[str, ...] = ("/v1/embeddings", "/embed")
    model: str = MINILM.model
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def log(self) -> list[Request]:
        """The requests for rows, in order."""
        return [request for request in self.requests if request.method == "POST"]

    @property
    def texts(self) -> list[str]:
        """Every text received, in order."""
        return [text for request in self.log for text in request.texts]

    def answer(self, request: Request) -> Wire:
        if request.method == "GET":
            return (self.info if request.path.endswith("/info") else None) or NOTHING_HERE
        with self.lock:
            fault = self.faults.pop(0) if self.faults else None
        if request.path not in self.paths:
            return NOTHING_HERE
        for word, reply in self.poison.items():
            if any(word in text for text in request.texts):
                return reply
        if not self.takes(request):
            return as_json({"error": "too much"}, self.refusal)
        if fault is None:
            return self.right(request)
        return fault(self, request) if callable(fault) else fault

    def right(self, request: Request) -> Wire:
        return self.with_rows(request, self.rows(request.texts).tolist())

    def with_rows(self, request: Request, rows: object) -> Wire:
        """An answer with these rows, in the shape that the path has."""
        with self.lock:
            self.answered += request.texts
        n_tokens = sum(len(encoding.ids) for encoding in tokenizer().encode_batch(request.texts))
        if request.path.endswith("/embed"):
            return as_json(rows, headers=(("x-compute-tokens", str(n_tokens)),))
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
        return as_json({"object": "list", "data": data, "model": self.model, "usage": usage})


def tei_info(**more: object) -> Wire:
    """What TEI's /info says of the catalogued MiniLM."""
    info = {
        "model_id": MINILM.model,
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
