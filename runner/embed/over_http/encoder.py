"""Encoders behind HTTP: a TEI, vLLM, infinity or llama.cpp server that somebody else runs.

What a TEI server says of itself is held against the catalogue before it embeds anything. Texts are cut to the limit of
tokens here, for servers that may read further than the catalogue allows.
"""

import threading
from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON, sha256
from runner.base.errors import BackendError, InputError
from runner.base.http_client import Busy, Client, Patience, Response, Unusable, parsed
from runner.base.records import Ints, PromptSide
from runner.base.steps import Skipped
from runner.base.threads import in_threads
from runner.embed.backends import Backend, BackendName
from runner.embed.encoder import UNIT_TOLERANCE, Answer, Batch, Encoder, Grouping
from runner.embed.local_encoder import STATIC, encoder_class
from runner.embed.over_http.dialects import ENCODER, Address, address, embeddings, request_body
from runner.embed.weights import encodings, tokenizer, tokenizer_folder
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec
from runner.eval_set.shapes.encoder import TEXTS_PER_REQUEST

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

CLIENT = 1
"""Raised when texts are cut, grouped or normalised otherwise: it is part of the identity."""

FORWARD_TOKENS = 16384
TIMEOUT, CONNECTIONS = 300.0, 4
BYTES_PER_NUMBER = 64
"""No number of an answer is longer, with what stands around it; a float64 has 25 characters at most."""

MAX_INFO = 1_000_000


class Clipped(NamedTuple):
    """A text within the limit, and its tokens, special ones included."""

    text: str
    n_tokens: int


class Clip:
    """An encoder's tokenizer and its catalogued limit; `find` gives the tokenizer's folder when it is first needed."""

    def __init__(self, spec: EncoderSpec, find: Callable[[EncoderSpec], Path] = tokenizer_folder) -> None:
        self._spec = spec
        self._find = find

    def token_counts(self, prompted: Sequence[str]) -> Ints:
        """Return the tokens of each text, special ones included, before anything is cut."""
        return np.array([len(encoding) for encoding in encodings(self._tokenizer, prompted)], dtype=np.int64)

    def cut(self, prompted: Sequence[str]) -> list[Clipped]:
        """Return each text as it is, or its opening whose tokens are the first ones of the whole text.

        WordPiece takes the longest match from the left, and a unigram model's best path holds the best paths to its own
        tokens, so the opening up to the last allowed token nearly always fits. If a normaliser joins what the cut
        parts, tokens are given up, one at first; Unusable if half of them are gone.
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
        # Give up tokens, ever more at a time, until what is left tokenizes as it did in the whole text.
        n_own, step = allowed, 1
        while n_own > allowed // 2:
            opening = text[: encoding.offsets[first + n_own - 1][1]]
            again = self._tokenizer.encode(opening)
            if again.ids[first : first + n_own] == ids[first : first + n_own] and len(again.ids) == n_own + n_special:
                return Clipped(opening, len(again.ids))
            n_own -= step
            step *= 2
        raise Unusable(
            f"the text with sha256 {sha256(text)} cannot be cut to {limit} tokens: its opening tokenizes otherwise"
        )

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        return tokenizer(self._find(self._spec))


class ServerInfo(NamedTuple):
    """What TEI says of itself, nothing of any other server, and how many texts a request may have."""

    facts: dict[str, str]
    texts_per_request: int


def server_info(spec: EncoderSpec, page: Response | None, address: Address, shown: Callable[[str], str]) -> ServerInfo:
    """Return what /info says; nothing if the server is not TEI. A BackendError if it serves another model."""
    try:
        info = parsed(page.body) if page else None
    except Unusable:
        info = None
    if not isinstance(info, dict) or not isinstance(info.get("model_id"), str) or "max_input_length" not in info:
        return ServerInfo({}, spec.texts_per_request)
    model, revision, longest = info["model_id"], info.get("model_sha"), info["max_input_length"]
    wrong = ""
    # A folder says nothing of the model in it; the probe, and `replay --encoder`, then stand alone.
    if not model.startswith(("/", ".")) and model.lower() != spec.model.lower():
        wrong = f"serves {shown(model)}, {spec.name} is {spec.model}"
    elif revision and revision != spec.revision:
        wrong = f"serves revision {shown(str(revision))} of {spec.model}, {spec.revision} is catalogued"
    elif isinstance(longest, int) and longest < spec.max_tokens:
        wrong = f"reads at most {longest} tokens of a text, {spec.name} is catalogued with {spec.max_tokens}"
    if wrong:
        raise BackendError(
            f"{address.endpoint} {wrong}. Start it with --model-id {spec.model} --revision {spec.revision} and the "
            "model's full length, or give another --encoder-url."
        )
    facts = {"server": f"text-embeddings-inference {shown(str(info.get('version') or 'of unknown version'))}"}
    facts |= {name: shown(str(info[name])) for name in ("model_id", "model_sha", "model_dtype") if info.get(name)}
    theirs = info.get("max_client_batch_size")
    most = spec.texts_per_request
    return ServerInfo(facts, min(most, theirs) if isinstance(theirs, int) and theirs > 0 else most)


class HttpBackend(Backend):
    """All encoders of one address; its owner knows what it costs. "{encoder}" in `url` is the encoder's name.

    The key comes only from the environment variable PSE_ENCODER_API_KEY; an InputError if it would go unencrypted to a
    public address. Each encoder has `connections` requests at once; a try may take `timeout` seconds.
    """

    name: BackendName = "http"
    concurrent = True

    def __init__(
        self,
        url: str,
        *,
        timeout: float = TIMEOUT,
        connections: int = CONNECTIONS,
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
            self.encoder_of(catalog.encoder(name)).check()

    def located(self, spec: EncoderSpec) -> str:
        """Return which server it is, which embeds one word."""
        return self.encoder_of(spec).located()

    def encoder_of(self, spec: EncoderSpec) -> "HttpEncoder":
        """Return the encoder of a row, nothing sent yet; an InputError for one that no server can have."""
        if spec.name in STATIC:
            raise InputError(
                f"{spec.name} is made on this machine from token vectors; no server has it. Embed it locally."
            )
        where = address(self._url, spec.name)
        return HttpEncoder(spec, where, self._client, self._connections, Clip(spec, self._find))


class HttpEncoder(Encoder):
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
        self._most_texts = spec.texts_per_request
        """Of a request; fewer once the server has refused a request and taken its halves."""
        self._came: dict[str, dict[int, tuple[NDArray[np.float64], str]]] = {}
        """Unit row and model by the text's place, of batches that are not whole: what was paid is not sent again."""

    def check(self) -> str:
        """Return what keeps a word from being answered, "" for nothing; BackendError for what every request meets."""
        body = request_body(self._where.api, self.spec.model, ["word"], "document")
        return self._client.check_key(self._where.endpoint, body)

    def located(self) -> str:
        """Return which server it is; Skipped if it does not answer one word now, a BackendError as `check` has it."""
        host = self._where.place.host
        if trouble := self.check():
            raise Skipped(f"{host} does not answer now: {trouble}. It may be up when it is needed; a run waits a while")
        return f"answers at {host}"

    def identity(self) -> dict[str, JSON]:
        """Return the row's provenance, method, address and grouping; nothing is sent."""
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

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> Ints:
        """Return tokens by the catalogued tokenizer, prompt and special tokens included, before truncation."""
        return self._clip.token_counts(self._prompted(texts, side))

    def embed(self, batches: Sequence[Batch]) -> Generator[Answer, None, None]:
        """Yield answers as they arrive. A BackendError is raised after the answers that were still under way."""
        return in_threads(batches, self._answer, self._connections)

    def _answer(self, batch: Batch, stopped: threading.Event) -> Answer:
        came = self._came.setdefault(batch.batch_id, {})
        try:
            server = self._server(stopped)
            texts = self._cut(self._prompted(batch.texts, batch.side))
            missing = [place for place in range(len(texts)) if place not in came]
            while missing:
                n_texts = min(server.texts_per_request, self._most_texts)
                part, missing = missing[:n_texts], missing[n_texts:]
                for places, unit, model in self._parts(part, texts, batch.side, server, stopped):
                    came |= {place: (row, model) for place, row in zip(places, unit, strict=True)}
        except Unusable as error:
            return Answer(batch.batch_id, error=str(error))
        self._came.pop(batch.batch_id, None)
        if len(models := {model for _, model in came.values()}) > 1:
            return Answer(batch.batch_id, error=f"two models answered: {' and '.join(sorted(models))}")
        facts = {
            "device": self._where.place.host,
            "model": models.pop() or self.spec.model,
            "revision": "unverified",
            "rows": "unit" if self._is_unit else "normalised here",
            **server.facts,
        }
        rows = np.stack([came[place][0] for place in range(len(texts))])
        return Answer(batch.batch_id, rows.astype(np.float32), facts=facts)

    def _parts(
        self,
        places: list[int],
        texts: Sequence[Clipped],
        side: PromptSide,
        server: ServerInfo,
        stopped: threading.Event,
    ) -> Generator[tuple[list[int], NDArray[np.float64], str], None, None]:
        """Yield places, unit rows and model of each request, by halves while the server refuses their size."""
        try:
            yield places, *self._request([texts[place] for place in places], side, server, stopped)
            return
        except Unusable as error:
            # Limits of texts, tokens and bytes are told in many ways; a refusal costs nothing, so that halves may tell.
            if error.is_charged or isinstance(error, Busy):
                raise
            if len(places) == 1:
                raise Unusable(f"{error}: the text that begins {texts[places[0]].text[:60]!r}") from error
        middle = (len(places) + 1) // 2
        for half in (places[:middle], places[middle:]):
            yield from self._parts(half, texts, side, server, stopped)
        # Both halves came, so that it was the size.
        self._most_texts = min(self._most_texts, middle)

    def _request(
        self, texts: Sequence[Clipped], side: PromptSide, server: ServerInfo, stopped: threading.Event
    ) -> tuple[NDArray[np.float64], str]:
        """Return unit rows and the name of the model that made them; Unusable if they cannot be trusted."""
        api, n_texts = self._where.api, len(texts)
        body = request_body(api, self.spec.model, [text for text, _ in texts], side)
        repeated = len(body) if api == "cohere" else 0  # its answer holds the texts again
        longest = n_texts * self.spec.dim * BYTES_PER_NUMBER + MAX_INFO + repeated
        answer = embeddings(api, self._send(body, longest, stopped), n_texts)
        if answer.rows.shape[1] != self.spec.dim:
            raise Unusable(f"vectors of {self.spec.dim} were catalogued, {answer.rows.shape[1]} numbers received")
        sent = sum(n_tokens for _, n_tokens in texts)
        # What TEI reports are the tokens that its model read: a default prompt shows nowhere else.
        if server.facts and answer.n_tokens not in (None, sent):
            raise BackendError(
                f"{self._where.endpoint} read {answer.n_tokens} tokens where {self.spec.name} has {sent}: the server "
                "adds a prompt of its own (--default-prompt, --default-prompt-name), truncates, or tokenizes "
                "otherwise. Start it without these options: prompts are sent with the texts."
            )
        norms = np.linalg.norm(answer.rows, axis=1)
        for is_bad, what in ((~np.isfinite(norms), "not finite"), (norms == 0, "all zeros")):
            if is_bad.any():
                raise Unusable(f"{int(is_bad.sum())} of {n_texts} vectors are {what}")
        is_unit = bool(np.abs(norms - 1).max() <= UNIT_TOLERANCE)
        with self._lock:
            self._is_unit = is_unit if self._is_unit is None else self._is_unit
            if self._is_unit and not is_unit:
                raise Unusable("a vector is not of length 1, although the server's vectors were so far")
        return answer.rows / norms[:, None], self._client.secret.shown(answer.model)

    def _prompted(self, texts: Sequence[str], side: PromptSide) -> list[str]:
        return [self.spec.prompt(side) + text for text in texts]

    def _cut(self, prompted: Sequence[str]) -> list[Clipped]:
        """Return the texts as they are sent."""
        return self._clip.cut(prompted)

    def _send(self, body: bytes, longest: int, stopped: threading.Event) -> Response:
        """Return the answer to one request; raise as `Client.post` does."""
        return self._client.post(self._where.endpoint, body, longest, stopped)

    def _server(self, stopped: threading.Event) -> ServerInfo:
        with self._lock:
            if self._info is None:  # a service of a plan describes itself nowhere
                page = None if self.spec.api else self._client.get(self._where.info, MAX_INFO, stopped)
                self._info = server_info(self.spec, page, self._where, self._client.secret.shown)
            return self._info
