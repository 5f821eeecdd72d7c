"""What is wrong with `encoders:` in a plan, each problem at its line, with what to write there.

What stands in a wrong field is never repeated: it may be a key.
"""

import re
from pathlib import Path

from pydantic import ValidationError

from runner.base.errors import InputError
from runner.base.http_client import is_own, plain_address
from runner.base.plain_yaml import line_of
from runner.base.schema import field_problems
from runner.eval_set.catalog import ENCODERS
from runner.eval_set.shapes.encoder import EncoderSpec
from runner.eval_set.shapes.plan import Plan

BLOCK = "encoders"

_WANTED = {True: ("url", "usd_per_million_tokens"), False: ("revision", "pooling")}
"""The fields that a service, or a model of the hub, cannot do without."""

_IDLE = {
    True: ("revision", "pooling", "weights_sha256", "config"),
    False: ("url", "usd_per_million_tokens", "key_env"),
}
_OF_THE_CATALOG = ("name", "package", "excluded", "matryoshka", "dense", "half", "licence")
_HOST_OF = {"OPENAI": ".openai.com", "VOYAGE": ".voyageai.com", "COHERE": ".cohere.com", "CO": ".cohere.com"}
_KEYS_OF = re.compile(
    rf"({'|'.join(_HOST_OF)}|ACTIONS|ANTHROPIC|AWS|AZURE|CI|CLAUDE|CLOUDFLARE|DATABASE|DOCKER|GCP|GEMINI|GH|GITHUB|GITLAB"
    r"|GOOGLE|HF|HUGGING_?FACE|KUBE\w*|MISTRAL|MODAL|NPM|PER_SOURCE_EVAL|PG\w*|PSE|PYPI|SLACK|SSH|STRIPE|TWINE|UV)(_|$)"
)
"""How variables begin that hold keys of known services, of which a few have an API that a plan can name."""

_FIELDS = [field for field in EncoderSpec.model_fields if field not in _OF_THE_CATALOG]


def shape_problems(error: ValidationError, path: Path) -> list[str]:
    """Return one line a wrong field; of the plan's own encoders with the line of the file and what to write."""
    rows = error.errors(include_url=False, include_input=False)
    lines = []
    # Both lists are pydantic's, in its order: one with the place, the other in words.
    for row, plain in zip(rows, field_problems(error), strict=True):
        if row["loc"][:1] != (BLOCK,):
            lines.append(plain)
            continue
        name, field = (*map(str, row["loc"][1:3]), "", "")[:2]
        if not field:
            lines.append(_told(path, name, "", f"write fields below it, {', '.join(_FIELDS)}; or leave it out"))
        elif row["type"] == "extra_forbidden":
            lines.append(_told(path, name, field, f"no such field; there are {', '.join(_FIELDS)}"))
        else:
            trouble = "is missing" if row["type"] == "missing" else "is not usable"
            lines.append(_told(path, name, field, f"{trouble}: write {EncoderSpec.model_fields[field].description}"))
    return lines


def encoder_problems(plan: Plan, path: Path) -> list[str]:
    """Return what no single field shows: unusable or taken names, unusable addresses, idle prompts."""
    return [_told(path, name, *problem) for name, spec in plan.encoders.items() for problem in _problems(name, spec)]


def _told(path: Path, name: str, field: str, problem: str) -> str:
    field_path = ".".join(filter(None, [BLOCK, name, field]))
    return f"line {line_of(path, [BLOCK, name, field])}: {field_path}: {problem}"


def _problems(name: str, spec: EncoderSpec) -> list[tuple[str, str]]:
    """Return field, "" for the block, and what is wrong."""
    wrong = []
    known = ENCODERS.get(name)
    if known and not (known.revision or known.excluded):
        # A row without a revision is taken with one, and with nothing else that the catalog has not.
        if not spec.revision:
            return [("revision", f"is missing: write {EncoderSpec.model_fields['revision'].description}")]
        if spec == known.model_copy(update={"revision": spec.revision}):
            return []
        return [("", f"the catalog has {name}: write its revision alone, or another name, such as {name}-own")]
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) or name.startswith("bm25"):
        wrong.append(("", "write a name in lower-case letters, digits, dots and dashes, such as bge-m3; not bm25"))
    elif name in ENCODERS:
        wrong.append(("", f"the catalog has {name} already; write another name, such as {name}-own"))
    is_service = bool(spec.api)
    # An empty text is as good as none.
    stated = {field for field in spec.model_fields_set if getattr(spec, field) != ""}
    advice = {field: f"write {info.description}" for field, info in EncoderSpec.model_fields.items()}
    wrong += [(field, f"is missing: {advice[field]}") for field in _WANTED[is_service] if field not in stated]
    # What only the other kind of encoder reads would have no effect, so it is refused.
    kind = "with" if is_service else "without"
    wrong += [(field, f"leave it out {kind} api") for field in _IDLE[is_service] if field in stated]
    wrong += [(field, "leave it out: it is the catalog's") for field in _OF_THE_CATALOG[1:] if field in stated]
    if spec.name != name:
        wrong.append(("name", "leave it out: the block stands under it"))
    if spec.max_tokens == 0:
        wrong.append(("max_tokens", "write a number above 0"))
    if not is_service and not re.fullmatch(r"[\w.-]+/[\w.-]+", spec.model):
        wrong.append(("model", advice["model"]))
    # An address is looked at where nothing else is wrong: its error would repeat theirs.
    if not is_service or wrong:
        return wrong
    try:
        server = plain_address(spec.url, "url", "")
    except InputError as error:
        return [("url", str(error))]
    if spec.has_input_types and (spec.query_prompt or spec.document_prompt):
        side = "query_prompt" if spec.query_prompt else "document_prompt"
        wrong.append((side, f"the {spec.api} API is told which side a text is on (input_type); leave prompts out"))
    if (of := _KEYS_OF.match(spec.key_env)) and not f".{server.host}".endswith(_HOST_OF.get(of[1], " ")):
        wrong.append(("key_env", "that is another service's key; write the name of a variable made for this one"))
    if spec.key_env and server.origin.startswith("http:") and not is_own(server.host):
        wrong.append(("url", "a key would go unencrypted; write an https address, or leave key_env out"))
    return wrong
