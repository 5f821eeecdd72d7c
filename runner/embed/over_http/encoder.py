"""Encoders behind HTTP: a TEI, vLLM, infinity or llama.cpp server that somebody else runs.

What a TEI server says of itself is held against the catalogue before it embeds anything. Texts are cut to the limit of
tokens here, for servers that may read further than the catalogue allows.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON, sha256
from runner.base.errors import BackendError, InputError
from runner.base.http_client import Client, Patience, Response, Unusable, parsed
from runner.base.records import PromptSide
from runner.base.threads import in_threads
from runner.embed.backends import Unmetered
from runner.embed.encoder import UNIT_TOLERANCE, Answer, Batch, Grouping, Matrix
from runner.embed.local_encoder import STATIC, encoder_class
from runner.embed.over_http.dialects import ENCODER, Address, address, embeddings, request_body
from runner.embed.weights import encodings, tokenizer, tokenizer_folder
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


class Uncuttable(Exception):
    """A text whose openings all tokenize otherwise than the text itself."""


class Clipped(NamedTuple):
    """A text within the limit, and its tokens, special ones included."""

    text: str
    n_tokens: int


class Clip:
    """An encoder's tokenizer and its catalogued limit; `find` gives the tokenizer's folder when it is first needed."""

    def __init__(self, spec: EncoderSpec, find: Callable[[EncoderSpec], Path] = tokenizer_folder) -> None:
        self._spec = spec
        self._find = find

    def token_counts(self, prompted: Sequence[str]) -> NDArray[np.int64]:
        """Tokens per text, special ones included, before anything is cut."""
        return np.array([len(encoding) for encoding in encodings(self._tokenizer, prompted)], dtype=np.int64)

    def cut(self, prompted: Sequence[str]) -> list[Clipped]:
        """Each text as it is, or its opening whose tokens are the first ones of the whole text.

        WordPiece takes the longest match from the left, and a unigram model's best path holds the best paths to its own
        tokens, so the opening up to the last allowed token nearly always fits. If a normaliser joins what the cut
        parts, tokens are given up, one at first; Uncuttable if half of them are gone.
        """
        with_offsets = self._tokenizer.encode_batch(list(prompted))
        return [self._clipped(text, encoding) for text, encoding in zip(prompted, with_offsets, strict=True)]

    def _clipped(self, text: str, encoding: "Encoding") -> Clipped:
        limit, ids = self._spec.max_tokens, encoding.ids
        if not limit or len(ids) <= limit:
            return Clipped(text, len(ids))
        mask = encoding.special_tokens_mask
        first = mask.index(0)
        n_special = first + mask[::-1].index(0)  # those that open a text, and those that close it
        allowed = limit - n_special
        kept, step = allowed, 1
        while kept > allowed // 2:
            opening = text[: encoding.offsets[first + kept - 1][1]]
            again = self._tokenizer.encode(opening)
            if again.ids[first : first + kept] == ids[first : first + kept] and len(again.ids) == kept + n_special:
                return Clipped(opening, len(again.ids))
            kept -= step
            step *= 2
        raise Uncuttable(
            f"the text with sha256 {sha256(text)} cannot be cut to {limit} tokens: its opening tokenizes otherwise"
        )

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        return tokenizer(self._find(self._spec))


TEXTS_PER_REQUEST = 32
"""TEI's own default; it answers 413 to more."""


class ServerInfo(NamedTuple):
    """How a server is to be used; `counts_tokens` if the tokens it reports are those its model read."""

    facts: dict[str, str]
    texts_per_request: int = TEXTS_PER_REQUEST
    counts_tokens: bool = False


def server_info(spec: EncoderSpec, page: Response | None, where: str, shown: Callable[[str], str]) -> ServerInfo:
    """What /info says; nothing if the server is not TEI. A BackendError if it serves another model."""
    try:
        info = parsed(page.body) if page else None
    except Unusable:
        info = None
    if not isinstance(info, dict) or not isinstance(info.get("model_id"), str) or "max_input_length" not in info:
        return ServerInfo({})
    _check(spec, info, where, shown)
    facts = {"server": f"text-embeddings-inference {shown(str(info.get('version') or 'of unknown version'))}"}
    for fact in ("model_id", "model_sha", "model_dtype"):
        if info.get(fact):
            facts[fact] = shown(str(info[fact]))
    most = info.get("max_client_batch_size")
    texts = min(TEXTS_PER_REQUEST, most) if isinstance(most, int) and most > 0 else TEXTS_PER_REQUEST
    return ServerInfo(facts, texts, counts_tokens=True)


def _check(spec: EncoderSpec, info: dict[str, JSON], where: str, shown: Callable[[str], str]) -> None:
    model, revision, longest = info["model_id"], info.get("model_sha"), info["max_input_length"]
    start = f"Start it with --model-id {spec.model} --revision {spec.revision}, or give another --encoder-url."
    # A folder says nothing of the model in it; the probe, and `replay --encoder`, then stand alone.
    if not model.startswith(("/", ".")) and model.lower() != spec.model.lower():
        raise BackendError(f"{where} serves {shown(model)}, {spec.name} is {spec.model}. {start}")
    if revision and revision != spec.revision:
        raise BackendError(
            f"{where} serves revision {shown(str(revision))} of {spec.model}, {spec.revision} is catalogued. {start}"
        )
    if isinstance(longest, int) and longest < spec.max_tokens:
        raise BackendError(
            f"{where} reads at most {longest} tokens of a text, {spec.name} is catalogued with {spec.max_tokens}. "
            "Start the server with the model's full length."
        )


CLIENT = 1
"""Raised when texts are cut, grouped or normalised otherwise: it is part of the identity."""

FORWARD_TOKENS = 16384
BYTES_PER_NUMBER = 64
"""No number of an answer is longer, with what stands around it; a float64 has 25 characters at most."""

MAX_INFO = 1_000_000


class HttpBackend(Unmetered):
    """All encoders of one address; its owner knows what it costs. "{encoder}" in `url` is the encoder's name.

    The key comes only from the environment variable PSE_ENCODER_API_KEY; an InputError if it would go unencrypted to a
    public address. Each encoder has `connections` requests at once; a try may take
    `timeout` seconds.
    """

    name: Literal["http"] = "http"
    concurrent = True

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 300.0,
        connections: int = 4,
        patience: Patience | None = None,
        find_tokenizer: Callable[[EncoderSpec], Path] = tokenizer_folder,
    ) -> None:
        self._url, self._connections = url, connections
        self._find = find_tokenizer
        place = address(url, "encoder").place  # refused before anything is embedded
        self._client = Client(timeout, patience or Patience(), ENCODER, place)

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def check(self, encoders: Sequence[str]) -> None:
        """Have each encoder embed one word: a refused key, or no model at the address, is a BackendError."""
        for name in encoders:
            self.encoder(name).check()

    def located(self, spec: EncoderSpec) -> str:
        """At the server, which embeds one word."""
        return self.encoder_of(spec).located()

    def encoder(self, name: str) -> "HttpEncoder":
        """The encoder of a catalogued name, nothing sent yet; an InputError for one that no server can have."""
        return self.encoder_of(catalog.encoder(name))

    def encoder_of(self, spec: EncoderSpec) -> "HttpEncoder":
        """The encoder of a catalogue's row, nothing sent yet; an InputError for one that no server can have."""
        if spec.name in STATIC:
            raise InputError(
                f"{spec.name} is made on this machine from token vectors; no server has it. Embed it locally."
            )
        where = address(self._url, spec.name)
        return HttpEncoder(spec, where, self._client, self._connections, Clip(spec, self._find))


class _Read(NamedTuple):
    """The rows of one request, the model's name, and whether every row came with length 1."""

    rows: NDArray[np.float64]
    model: str
    is_unit: bool


class HttpEncoder:
    """One encoder of a server. Prompts, truncation and normalisation are done here; its weights are not verified."""

    grouping = Grouping(FORWARD_TOKENS)
    tolerance = 2e-3
    resubmissions = 2

    def __init__(self, spec: EncoderSpec, where: Address, client: Client, connections: int, clip: Clip) -> None:
        self.spec = spec
        self._where, self._client, self._connections, self._clip = where, client, connections, clip
        self._lock = threading.Lock()
        self._info: ServerInfo | None = None
        self._is_unit: bool | None = None

    def check(self) -> bool:
        """Whether a word is answered; a BackendError for what every request would meet, a refused key first of all."""
        body = request_body(self._where.api, self.spec.model, ["word"], "document")
        return self._client.check_key(self._where.endpoint, body)

    def located(self) -> str:
        """Which server it is, and whether it answers one word; a BackendError as `check` has it."""
        host = self._where.place.host
        return f"answers at {host}" if self.check() else f"at {host}, which does not answer now; a run waits a while"

    def identity(self) -> dict[str, JSON]:
        """Catalogue row, method, address and grouping; nothing is sent."""
        return {
            **self.spec.provenance,
            "method": encoder_class(self.spec.name).method,
            "backend": {
                "name": "http",
                "client": CLIENT,
                "api": self._where.api,
                "url": self._where.endpoint,
                "revision": "unverified",
                "grouping": {**self.grouping._asdict(), "texts_per_request": TEXTS_PER_REQUEST},
            },
        }

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.int64]:
        """Tokens per text by the catalogued tokenizer, prompt and special tokens included, before truncation."""
        return self._clip.token_counts(self._prompted(texts, side))

    def embed(self, batches: Sequence[Batch]) -> Generator[Answer, None, None]:
        """Answers as they arrive. A BackendError is raised after the answers that were still under way."""
        return in_threads(batches, self._answer, self._connections)

    def _answer(self, batch: Batch, stopped: threading.Event) -> Answer:
        try:
            info = self._server(stopped)
            parts = list(self._parts(batch, info, stopped))
            rows, facts = self._joined(parts, info)
        except (Unusable, Uncuttable) as error:
            return Answer(batch.batch_id, error=str(error))
        return Answer(batch.batch_id, rows, facts=facts)

    def _parts(self, batch: Batch, info: ServerInfo, stopped: threading.Event) -> Iterator[_Read]:
        clipped = self._cut(self._prompted(batch.texts, batch.side))
        for start in range(0, len(clipped), info.texts_per_request):
            yield self._request(clipped[start : start + info.texts_per_request], batch.side, info, stopped)

    def _cut(self, prompted: Sequence[str]) -> list[Clipped]:
        """The texts as they are sent."""
        return self._clip.cut(prompted)

    def _send(self, body: bytes, longest: int, stopped: threading.Event) -> Response:
        """The answer to one request; raises as `Client.post` does."""
        return self._client.post(self._where.endpoint, body, longest, stopped)

    def _request(
        self, clipped: Sequence[Clipped], side: PromptSide, info: ServerInfo, stopped: threading.Event
    ) -> _Read:
        where, n_texts = self._where, len(clipped)
        body = request_body(where.api, self.spec.model, [text for text, _ in clipped], side)
        repeated = len(body) if where.api == "cohere" else 0  # its answer holds the texts again
        longest = n_texts * self.spec.dim * BYTES_PER_NUMBER + MAX_INFO + repeated
        answer = embeddings(where.api, self._send(body, longest, stopped), n_texts)
        if answer.rows.shape[1] != self.spec.dim:
            raise Unusable(f"vectors of {self.spec.dim} were catalogued, {answer.rows.shape[1]} numbers received")
        self._check_tokens(sum(n_tokens for _, n_tokens in clipped), answer.n_tokens, info)
        norms = np.linalg.norm(answer.rows, axis=1)
        if not np.isfinite(norms).all():
            raise Unusable(f"{int((~np.isfinite(norms)).sum())} of {n_texts} vectors are not finite")
        if not norms.all():
            raise Unusable(f"{int((norms == 0).sum())} of {n_texts} vectors are all zeros")
        is_unit = bool(np.abs(norms - 1).max() <= UNIT_TOLERANCE)
        return _Read(answer.rows / norms[:, None], self._client.secret.shown(answer.model), is_unit)

    def _check_tokens(self, sent: int, read: int | None, info: ServerInfo) -> None:
        """Raise BackendError if TEI read other tokens than were meant: a default prompt shows nowhere else."""
        if info.counts_tokens and read is not None and read != sent:
            raise BackendError(
                f"{self._where.endpoint} read {read} tokens where {self.spec.name} has {sent}: the server adds a "
                "prompt of its own (--default-prompt, --default-prompt-name), truncates, or tokenizes otherwise. Start "
                "it without these options: prompts are sent with the texts."
            )

    def _joined(self, parts: Sequence[_Read], info: ServerInfo) -> tuple[Matrix, dict[str, str]]:
        """Unit rows and where they come from; Unusable if requests of one batch met two models."""
        models, lengths = {part.model for part in parts}, {part.is_unit for part in parts}
        if len(models) > 1:
            raise Unusable(f"two models answered: {' and '.join(sorted(models))}")
        is_unit = self._agreed(lengths)
        facts = {
            "device": self._where.place.host,
            "model": models.pop() or self.spec.model,
            "revision": "unverified",
            "rows": "unit" if is_unit else "normalised here",
            **info.facts,
        }
        return np.concatenate([part.rows for part in parts]).astype(np.float32), facts

    def _agreed(self, lengths: set[bool]) -> bool:
        """Whether this server sends unit rows, as its first answer showed; Unusable if a later one differs."""
        with self._lock:
            if self._is_unit is None:
                self._is_unit = lengths == {True}
            if self._is_unit and lengths != {True}:
                raise Unusable("a vector is not of length 1, although the server's vectors were so far")
            return self._is_unit

    def _server(self, stopped: threading.Event) -> ServerInfo:
        with self._lock:
            if self._info is None:
                page = self._client.get(self._where.info, MAX_INFO, stopped)
                self._info = server_info(self.spec, page, self._where.endpoint, self._client.secret.shown)
            return self._info

    def _prompted(self, texts: Sequence[str], side: PromptSide) -> list[str]:
        return [self.spec.prompt(side) + text for text in texts]
