"""The address of a judge's service, as --judge-url gives it."""

import os
import re
from ipaddress import IPv6Address, ip_address
from urllib.parse import unquote, urlsplit

from runner.base.errors import InputError
from runner.judge.models.secret import ANTHROPIC_KEY, JUDGE_KEY, Secret


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
