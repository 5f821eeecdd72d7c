"""What a TEI server says of itself, held against the catalogue before it embeds anything."""

from collections.abc import Callable
from typing import NamedTuple

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from runner.base.http_client import Response, Unusable, parsed
from runner.eval_set.catalog import EncoderSpec

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
    start = f"Start it with --model-id {spec.hub_id} --revision {spec.revision}, or give another --encoder-url."
    # A folder says nothing of the model in it; the probe and the parity check then stand alone.
    if not model.startswith(("/", ".")) and model.lower() != spec.hub_id.lower():
        raise BackendError(f"{where} serves {shown(model)}, {spec.name} is {spec.hub_id}. {start}")
    if revision and revision != spec.revision:
        raise BackendError(
            f"{where} serves revision {shown(str(revision))} of {spec.hub_id}, {spec.revision} is catalogued. {start}"
        )
    if isinstance(longest, int) and longest < spec.max_tokens:
        raise BackendError(
            f"{where} reads at most {longest} tokens of a text, {spec.name} is catalogued with {spec.max_tokens}. "
            "Start the server with the model's full length."
        )
