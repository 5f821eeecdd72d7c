"""How servers are asked for embeddings: OpenAI's and Voyage's /v1/embeddings, Cohere's /v2/embed, TEI's /embed."""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON
from runner.base.errors import InputError
from runner.base.http_client import Place, Response, Service, Unusable, parsed, plain_address
from runner.base.records import PromptSide

KEY_VARIABLE = "PSE_ENCODER_API_KEY"
URL_FLAG = "--encoder-url"
ENCODER = Service(
    URL_FLAG,
    KEY_VARIABLE,
    "Either the model is not served under this name, or the path is wrong: the openai API takes POST /v1/embeddings "
    "(vLLM, infinity, llama.cpp, TEI), TEI's own POST /embed. Check --encoder-url and the server's model.",
)
PLACE = "{encoder}"
"""In an address it stands for the encoder's catalogued name: TEI serves one model a server."""

_MOST_TOKENS = 10**12
"""No request has more; a number beyond it is none."""


class Dialect(NamedTuple):
    """How an API is asked: its paths, what a body says of texts and their side, and the vectors of an answer."""

    version: str
    endpoint: str
    body: Callable[[list[str], PromptSide], dict[str, JSON]]
    vectors: Callable[[JSON, int], JSON]


def _in_data(content: JSON, n_texts: int) -> JSON:
    """Return the vectors of OpenAI's list "data" in the order of their indices."""
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, list):
        raise Unusable('the answer has no list "data"')
    if len(data) != n_texts:
        raise Unusable(f"{n_texts} texts sent, {len(data)} vectors received")
    placed: dict[int, JSON] = {}
    for item in data:
        index = item.get("index") if isinstance(item, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < n_texts:
            raise Unusable(f"a vector has no index below {n_texts}, so that its text is not known")
        if index in placed:
            raise Unusable(f"two vectors have the index {index}")
        placed[index] = item.get("embedding")
    return [placed[index] for index in range(n_texts)]


def _openai(texts: list[str], _: PromptSide) -> dict[str, JSON]:
    return {"input": texts, "encoding_format": "float"}


def _voyage(texts: list[str], side: PromptSide) -> dict[str, JSON]:
    return {"input": texts, "input_type": side, "truncation": False}


def _cohere(texts: list[str], side: PromptSide) -> dict[str, JSON]:
    return {"texts": texts, "input_type": f"search_{side}", "embedding_types": ["float"], "truncate": "NONE"}


def _tei(texts: list[str], _: PromptSide) -> dict[str, JSON]:
    return {"inputs": texts, "truncate": False, "normalize": True}


# A text that does not fit is to be an error wherever that can be said.
DIALECTS: Mapping[str, Dialect] = {
    "openai": Dialect("/v1", "/embeddings", _openai, _in_data),
    "voyage": Dialect("/v1", "/embeddings", _voyage, _in_data),
    "cohere": Dialect("/v2", "/embed", _cohere, lambda content, _: _at(content, "embeddings", "float")),
    "tei": Dialect("", "/embed", _tei, lambda content, _: content),
}


class Address(NamedTuple):
    """Where one encoder is served, and in which dialect. Nothing secret is in it."""

    api: str
    endpoint: str
    info: str
    """Where TEI describes itself."""
    place: Place


class Embeddings(NamedTuple):
    """What an answer says: float64 rows (texts, width), and the model's name and tokens read, if it has them."""

    rows: NDArray[np.float64]
    model: str
    n_tokens: int | None


def address(url: str, name: str) -> Address:
    """Return the address of the encoder `name`; for a bad one raise InputError, which repeats nothing secret.

    One that ends in /embed is of TEI's own API, any other of OpenAI's, which may end in /v1 or in /embeddings.
    """
    if re.search(r"[{}]", url.replace(PLACE, "")):
        raise InputError(f"{URL_FLAG} has a place in braces that is not {PLACE}, the only one that is filled in.")
    place = plain_address(url.replace(PLACE, name), URL_FLAG, KEY_VARIABLE)
    return address_at(place, "tei" if place.path.endswith("/embed") else "openai")


def address_at(place: Place, api: str) -> Address:
    """Return where a place is asked; its path may end in the version or in the endpoint."""
    version, name = DIALECTS[api].version, DIALECTS[api].endpoint
    # Off the end: the endpoint, then the version, each if it was given; then both are put on again.
    base = place.path.removesuffix(name)
    if base != place.path and not base.endswith(version):
        version = ""  # infinity has /embeddings without /v1
    base = base.removesuffix(version)
    return Address(api, f"{place.origin}{base}{version}{name}", f"{place.origin}{base}/info", place)


def request_body(api: str, model: str, texts: Sequence[str], side: PromptSide) -> bytes:
    """Return the JSON that asks for one vector per text.

    Cohere's and Voyage's APIs are told the side; for the others it is in the texts.
    """
    named = {} if api == "tei" else {"model": model}
    return json.dumps({**named, **DIALECTS[api].body(list(texts), side)}).encode()


def embeddings(api: str, answer: Response, n_texts: int) -> Embeddings:
    """Return the vectors of an answer in the order of the texts; Unusable says what is wrong with it."""
    content = parsed(answer.body)
    rows = _matrix(DIALECTS[api].vectors(content, n_texts), n_texts)
    if api == "tei":
        tokens = answer.headers.get("x-compute-tokens", "")
        return Embeddings(rows, "", int(tokens) if re.fullmatch(r"[0-9]{1,12}", tokens) else None)
    return Embeddings(rows, "" if api == "cohere" else str(_at(content, "model") or ""), tokens_billed(content))


def tokens_billed(content: JSON) -> int | None:
    """Return the tokens that an answer says were read, wherever its API says it; None if it does not."""
    places = (("usage", "prompt_tokens"), ("usage", "total_tokens"), ("meta", "billed_units", "input_tokens"))
    counts = (_at(content, *place) for place in places)
    # Cohere's count is 12.0; a bool is an int to Python, and no count.
    return next((int(each) for each in counts if type(each) in (int, float) and 0 <= each <= _MOST_TOKENS), None)


def _at(content: JSON, *place: str) -> JSON:
    for name in place:
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _matrix(vectors: JSON, n_texts: int) -> NDArray[np.float64]:
    if not isinstance(vectors, list):
        raise Unusable("the answer is no list of vectors")
    if len(vectors) != n_texts:
        raise Unusable(f"{n_texts} texts sent, {len(vectors)} vectors received")
    try:
        # Some servers send base64 of little-endian float32 unasked. Neither null nor text becomes a number here: both
        # give an array of objects or of characters.
        array = np.asarray(
            [
                np.frombuffer(base64.b64decode(row, validate=True), "<f4") if isinstance(row, str) else row
                for row in vectors
            ]
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise Unusable("the vectors differ in length, or are none") from error
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        raise Unusable("the vectors are no rows of numbers")
    return array.astype(np.float64)
