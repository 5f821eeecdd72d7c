"""Hosts that feeds may reach, their keys, and what may be shown of an address."""

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from runner.base.errors import BackendError, InputError
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.http_client import Secret, without_keys


class Endpoint(NamedTuple):
    """An official service: the environment variable of its key, and the publisher's limit of requests a second."""

    key: str = ""
    max_rate: float = float("inf")


ENDPOINTS: Mapping[str, Endpoint] = {
    "www.govinfo.gov": Endpoint(),
    "api.govinfo.gov": Endpoint(key="PER_SOURCE_EVAL_GOVINFO_KEY"),
    # Its maintainers name one request a second for full texts (federalregister-api-core, issue 13).
    "www.federalregister.gov": Endpoint(max_rate=1.0),
    "www.ecfr.gov": Endpoint(),
    "uscode.house.gov": Endpoint(),
}
"""By host; all speak https."""


class Refused(BackendError):
    """An answer, or the way to it, that cannot be used; asking again would not help."""


def followed(url: str, location: str) -> str:
    """Return where a redirect or a next page leads, over https and without a key; raise Refused for another host."""
    here = urlsplit(url).netloc
    try:
        parts = urlsplit(urljoin(url, location))
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or parts.netloc.lower() not in (here, here.removeprefix("www.")):
        # The rest of such an address is a stranger's, and may repeat a key.
        raise Refused(f"{without_key(url)} leads to another host ({shown(parts.netloc)}), which is not followed.")
    query = urlencode([pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "api_key"])
    return urlunsplit(("https", here, parts.path or "/", query, ""))


def key_of(url: str) -> str:
    """Return the key for an address, "" if none is needed; raise an InputError where one is missing."""
    host = urlsplit(url).netloc
    variable = ENDPOINTS[host].key
    if not variable:
        return ""
    key = Secret(variable).value
    if not key:
        raise InputError(
            f"{host} needs a key of api.data.gov. Put one into the environment as {variable} "
            "(https://api.data.gov/signup/ gives it, free); the key DEMO_KEY makes 30 requests an hour."
        )
    return key


def without_key(url: str) -> str:
    """Return an address that a message can show: without its query, in which a key may stand."""
    return shown(url.partition("?")[0], LONGEST_LINE)


def shown(text: str, longest: int = 200) -> str:
    """Return a server's words as a message can show them: printable, cut, and with no key of the environment in them.

    A server may repeat a key in any letters, and names of hosts and types come in lower case.
    """
    keys = (os.environ.get(row.key, "").strip() for row in ENDPOINTS.values() if row.key)
    return printable(without_keys(text, *keys), longest)


def is_official(url: str) -> bool:
    """Return whether a feed makes such addresses: https, at the host of a service, and nothing before the host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and parts.netloc in ENDPOINTS
