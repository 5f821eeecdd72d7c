"""JSON as a service sent it, which may be anything.

A key that the environment has, and texts without it.

The address of a judge's service, as --judge-url gives it.
"""

import json
import os
import re
from ipaddress import IPv6Address, ip_address
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from runner.base.canonical import JSON
from runner.base.errors import InputError
from runner.base.given_files import printable

DEEPEST = 50
"""Lists and objects within one another; no answer needs a tenth of it."""


class Unreadable(Exception):
    """An answer that cannot be used; it may have been charged."""


def received(text: str) -> JSON:
    """What a text of JSON holds; Unreadable for no JSON, and for what could not be written down again.

    That is NaN, what overflows to infinity, half a surrogate pair, and what is nested deeper than DEEPEST.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Unreadable("the answer is not JSON") from None
    if not _is_shallow(value, DEEPEST):
        raise Unreadable("the answer is nested too deep")
    return value


def _is_shallow(value: JSON, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in items)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


ANTHROPIC_KEY = "ANTHROPIC_API_KEY"

JUDGE_KEY = "PSE_JUDGE_API_KEY"
"""Variables of the environment that hold judges' keys."""

SHORTEST = 8
"""Characters of the shortest key that is looked for in texts: a shorter one stands in words that say nothing of it."""


class Secret:
    """A key; it is `value` alone that shows it."""

    def __init__(self, variable: str, value: str) -> None:
        self.variable = variable
        self.value = value

    def __repr__(self) -> str:
        return f"Secret({self.variable})"

    def without(self, text: str) -> str:
        """The text with [key] wherever the key stood, in any case, its slashes escaped or not."""
        if len(self.value) < SHORTEST:
            return text
        return re.sub(re.escape(self.value).replace("/", r"\\?/"), "[key]", text, flags=re.IGNORECASE)

    def shown(self, text: str, longest: int = 300) -> str:
        """A service's words as a message can show them: printable, cut, and without the key."""
        return printable(" ".join(self.without(text).split()), longest)


def secret_of(variable: str) -> Secret:
    """The variable's key, an InputError, which does not show it, where there is none or it is no key."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(f"The environment has no {variable}. Put the service's key there; it is written nowhere.")
    if not re.fullmatch(r"[!-~]{1,4096}", value):
        raise InputError(f"What the environment has as {variable} is no key: a space, or signs beyond ASCII.")
    return Secret(variable, value)


def base_url(url: str) -> str:
    """Scheme, host, port and path without a slash at its end; an InputError, which repeats nothing, for a bad one."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.scheme not in ("http", "https") or not re.fullmatch(r"[!-~]+", url):
        raise InputError("--judge-url is no address. Give one such as http://localhost:8000/v1 or https://host/path.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputError(
            "--judge-url holds a user, a password or a query, which may be a key. Give scheme, host, port and path "
            "alone; a key comes from the environment."
        )
    _check_no_key(url)
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{place}" + (f":{port}" if port else "") + parts.path.rstrip("/")


def is_own(url: str) -> bool:
    """Whether an address that `base_url` takes is on this machine or in a private network, by its host alone.

    No name is looked up: one that is not localhost's may be anybody's.
    """
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


def _check_no_key(url: str) -> None:
    """Nothing, or an InputError where the address holds a judge's key: it is shown in messages and kept in replies."""
    for variable in (ANTHROPIC_KEY, JUDGE_KEY):
        secret = Secret(variable, os.environ.get(variable, "").strip())
        if any(secret.without(text) != text for text in (url, unquote(url))):
            raise InputError(
                f"--judge-url holds the key of {variable}. Give the address without it: the key is sent in a header."
            )
