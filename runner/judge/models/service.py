"""A judge's service: the address that --judge-url gives, the keys, and the JSON that it sends."""

import json
import os
from ipaddress import IPv6Address, ip_address
from urllib.parse import unquote, urlsplit

from runner.base.canonical import JSON
from runner.base.errors import InputError
from runner.base.http_client import Unusable, parsed, plain_address, without_keys

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


def base_url(url: str) -> str:
    """The address without a slash at its end; an InputError, which repeats nothing of it, for a bad one."""
    place = plain_address(url, "--judge-url", f"{ANTHROPIC_KEY} or {JUDGE_KEY}")
    for variable in (ANTHROPIC_KEY, JUDGE_KEY):
        key = os.environ.get(variable, "").strip()
        if any(without_keys(text, key) != text for text in (url, unquote(url))):
            raise InputError(
                f"--judge-url holds the key of {variable}. Give the address without it: the key is sent in a header."
            )
    return place.origin + place.path


def is_own(url: str) -> bool:
    """Whether a checked address is on this machine or in a private network, by its host alone: no name is looked up."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_private or address.is_link_local
