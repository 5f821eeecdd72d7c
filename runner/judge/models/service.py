"""A judge's service: the address that --judge-url gives, the keys, and the JSON that it sends."""

import json
import os
from urllib.parse import unquote

from runner.base.canonical import JSON
from runner.base.errors import InputError
from runner.base.http_client import Place, Unusable, parsed, plain_address, without_keys

DEEPEST = 50
"""Lists and objects within one another; no answer needs a tenth of it."""


def received(text: str) -> JSON:
    """What a text of JSON holds; Unusable for no JSON, NaN, infinity, half a surrogate pair, and DEEPEST exceeded."""
    value = parsed(text)
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Unusable("the answer is not JSON") from None
    if not _is_shallow(value, DEEPEST):
        raise Unusable("the answer is nested too deep")
    return value


def _is_shallow(value: JSON, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in items)


ANTHROPIC_KEY = "ANTHROPIC_API_KEY"

JUDGE_KEY = "PSE_JUDGE_API_KEY"
"""Variables of the environment that hold judges' keys."""

URL_FLAG = "--judge-url"


def judge_address(url: str) -> Place:
    """The parts of an address; an InputError, which repeats nothing of it, for a bad one."""
    place = plain_address(url, URL_FLAG, f"{ANTHROPIC_KEY} or {JUDGE_KEY}")
    for variable in (ANTHROPIC_KEY, JUDGE_KEY):
        key = os.environ.get(variable, "").strip()
        if any(without_keys(text, key) != text for text in (url, unquote(url))):
            raise InputError(
                f"{URL_FLAG} holds the key of {variable}. Give the address without it: the key is sent in a header."
            )
    return place
