"""What is wrong with `encoders:` in a plan, each problem at its line, with what to write there.

What stands in a wrong field is never repeated: it may be a key.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from runner.base.errors import InputError
from runner.base.given_files import line_of
from runner.base.http_client import is_own, plain_address
from runner.base.schema import problems
from runner.eval_set.catalog import ENCODERS, EncoderSpec
from runner.eval_set.shapes.plan import HubEncoder, OwnEncoder, Plan, Pooling, ServiceEncoder

BLOCK = "encoders"

_ADVICE: dict[str, str] = {
    "hub_id": "the model's name on the hub, such as BAAI/bge-m3",
    "revision": "the 40 hexadecimal digits of the model's commit on the hub, never a branch such as main",
    "dim": "the number of dimensions of a vector, such as 1024",
    "max_tokens": "the most tokens of a text, prompt and special tokens included, such as 512",
    "pooling": f"what the model's 1_Pooling/config.json says: {', '.join(get_args(Pooling))}",
    "query_prompt": 'what stands before each query, such as "query: ", or leave it out',
    "document_prompt": 'what stands before each document, such as "passage: ", or leave it out',
    "api": "openai, cohere or voyage",
    "url": "the service's address, such as https://api.voyageai.com",
    "model": "the model as the service calls it, such as voyage-law-2",
    "usd_per_million_tokens": "the price of a million tokens in dollars, 0 for a server of your own",
    "key_env": "the NAME of an environment variable in capitals, such as VOYAGE_API_KEY, never the key itself",
}
"""What to write into each field."""

_NAME = r"[a-z0-9][a-z0-9._-]*"


def shape_problems(error: ValidationError, path: Path) -> list[str]:
    """One line a wrong field of a plan; those of its own encoders with the line of the file and what to write."""
    rows = error.errors(include_url=False, include_input=False)
    said = zip(rows, problems(error), strict=True)
    return [_told(path, row["loc"], row["type"]) if row["loc"][:1] == (BLOCK,) else plain for row, plain in said]


def _told(path: Path, place: Sequence[str | int], kind: str) -> str:
    # pydantic puts "hub" or "service", which no file has, behind the encoder's name.
    name, form, field = (*map(str, place[1:4]), "", "", "")[:3]
    where = f"line {line_of(path, [BLOCK, name, field])}: {'.'.join(filter(None, [BLOCK, name, field]))}"
    if not field:
        return f"{where}: write fields below it, {_fields(form)}; or leave the block out"
    if kind == "extra_forbidden":
        return f"{where}: no such field; there are {_fields(form)}"
    wrong = "is missing" if kind == "missing" else "is not usable"
    return f"{where} {wrong}: write {_ADVICE[field]}"


def _fields(form: str) -> str:
    shapes: dict[str, type[HubEncoder | ServiceEncoder]] = {"hub": HubEncoder, "service": ServiceEncoder}
    wanted = [shapes[form]] if form in shapes else shapes.values()
    return ", or ".join(", ".join(shape.model_fields) for shape in wanted)


def encoder_problems(plan: Plan, path: Path) -> list[str]:
    """What no single field shows: names that a cell cannot have, taken names, unusable addresses, idle prompts."""
    found = []
    for name, given in plan.encoders.items():
        for field, said in _problems(name, given):
            place = f"line {line_of(path, [BLOCK, name, field])}: {'.'.join(filter(None, [BLOCK, name, field]))}"
            found.append(f"{place}: {said}")
    return found


def _problems(name: str, given: OwnEncoder) -> list[tuple[str, str]]:
    """Field, "" for the block, and what is wrong."""
    found = []
    if not re.fullmatch(_NAME, name) or name.startswith("bm25"):
        found.append(("", "write a name in lower-case letters, digits, dots and dashes, such as bge-m3; not bm25"))
    elif name in ENCODERS:
        found.append(("", f"the catalog has {name} already; write another name, such as {name}-own"))
    if isinstance(given, HubEncoder):
        return found
    try:
        place = plain_address(given.url, "url", "")
    except InputError as error:
        return [*found, ("url", str(error))]
    spec = given.spec(name)
    assert spec.service is not None
    if spec.service.has_input_types and (given.query_prompt or given.document_prompt):
        side = "query_prompt" if given.query_prompt else "document_prompt"
        found.append((side, f"the {given.api} API is told which side a text is on (input_type); leave prompts out"))
    if given.key_env and place.origin.startswith("http:") and not is_own(place.host):
        found.append(("url", "a key would go unencrypted; write an https address, or leave key_env out"))
    return found


def described_encoder(spec: EncoderSpec) -> str:
    """A plan's own encoder in a line: what it is, where it runs and what a million tokens cost."""
    size = f"{spec.dim} dimensions, {spec.max_tokens} tokens"
    if spec.service is None:
        return f"{spec.hub_id} at {spec.revision[:12]} of the model hub, {size}, {spec.pooling} pooling"
    price = f"${spec.service.usd_per_million_tokens:g} a million tokens"
    key = f", key from {spec.service.key_env}" if spec.service.key_env else ""
    return f"{spec.hub_id} at {spec.service.url} ({spec.service.api}), {size}, {price}{key}"
