"""What is wrong with `encoders:` in a plan, each problem at its line, with what to write there.

What stands in a wrong field is never repeated: it may be a key.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from runner.base.errors import InputError
from runner.base.http_client import is_own, plain_address
from runner.base.plain_yaml import line_of
from runner.base.schema import problems
from runner.eval_set.catalog import ENCODERS, EncoderSpec
from runner.eval_set.shapes.plan import OwnEncoder, Plan

BLOCK = "encoders"

_OF_THE_HUB = ("revision", "pooling")
_OF_A_SERVICE = ("url", "usd_per_million_tokens")
"""The fields that one kind of encoder needs and the other has no use for."""

_NAME = r"[a-z0-9][a-z0-9._-]*"


def shape_problems(error: ValidationError, path: Path) -> list[str]:
    """One line a wrong field of a plan; those of its own encoders with the line of the file and what to write."""
    rows = error.errors(include_url=False, include_input=False)
    said = zip(rows, problems(error), strict=True)
    return [_told(path, row["loc"], row["type"]) if row["loc"][:1] == (BLOCK,) else plain for row, plain in said]


def _told(path: Path, place: Sequence[str | int], kind: str) -> str:
    name, field = (*map(str, place[1:3]), "", "")[:2]
    where = f"line {line_of(path, [BLOCK, name, field])}: {'.'.join(filter(None, [BLOCK, name, field]))}"
    if not field:
        return f"{where}: write fields below it, {_FIELDS}; or leave the block out"
    if kind == "extra_forbidden":
        return f"{where}: no such field; there are {_FIELDS}"
    wrong = "is missing" if kind == "missing" else "is not usable"
    return f"{where} {wrong}: write {_advice(field)}"


_FIELDS = ", ".join(OwnEncoder.model_fields)


def _advice(field: str) -> str:
    return str(OwnEncoder.model_fields[field].description)


def encoder_problems(plan: Plan, path: Path) -> list[str]:
    """Return what no single field shows: names that cells cannot have, taken ones, unusable addresses, idle prompts."""
    found = []
    for name, given in plan.encoders.items():
        for field, said in _problems(name, given):
            place = f"line {line_of(path, [BLOCK, name, field])}: {'.'.join(filter(None, [BLOCK, name, field]))}"
            found.append(f"{place}: {said}")
    return found


def _problems(name: str, given: OwnEncoder) -> list[tuple[str, str]]:
    """Return field, "" for the block, and what is wrong."""
    found = []
    if not re.fullmatch(_NAME, name) or name.startswith("bm25"):
        found.append(("", "write a name in lower-case letters, digits, dots and dashes, such as bge-m3; not bm25"))
    elif name in ENCODERS:
        found.append(("", f"the catalog has {name} already; write another name, such as {name}-own"))
    wanted, idle = (_OF_A_SERVICE, _OF_THE_HUB) if given.api else (_OF_THE_HUB, (*_OF_A_SERVICE, "key_env"))
    stated = {field for field in given.model_fields_set if getattr(given, field) != ""}
    found += [(field, f"is missing: write {_advice(field)}") for field in wanted if field not in stated]
    found += [(field, f"leave it out {'with' if given.api else 'without'} api") for field in idle if field in stated]
    if not given.api and not re.fullmatch(r"[\w.-]+/[\w.-]+", given.model):
        found.append(("model", f"write {_advice('model')}"))
    if not given.api or found:
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
    """Return a plan's own encoder in a line: what it is, where it runs and what a million tokens cost."""
    size = f"{spec.dim} dimensions, {spec.max_tokens} tokens"
    if spec.service is None:
        return f"{spec.hub_id} at {spec.revision[:12]} of the model hub, {size}, {spec.pooling} pooling"
    price = f"${spec.service.usd_per_million_tokens:g} a million tokens"
    key = f", key from {spec.service.key_env}" if spec.service.key_env else ""
    return f"{spec.hub_id} at {spec.service.url} ({spec.service.api}), {size}, {price}{key}"
