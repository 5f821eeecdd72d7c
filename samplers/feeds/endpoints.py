"""Addresses that feeds may reach: official hosts, or the mirrors given in their place."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from runner.base.errors import BackendError, InputError
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.http_client import Secret, plain_address, without_keys


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An official service. `key` names the environment variable of its key; `max_rate` is the publisher's limit."""

    origin: str
    key: str = ""
    max_rate: float = float("inf")


ENDPOINTS: Mapping[str, Endpoint] = {
    "govinfo": Endpoint("https://www.govinfo.gov"),
    "govinfo-api": Endpoint("https://api.govinfo.gov", key="PER_SOURCE_EVAL_GOVINFO_KEY"),
    # Its maintainers name one request a second for full texts (federalregister-api-core, issue 13).
    "federal-register": Endpoint("https://www.federalregister.gov", max_rate=1.0),
    "ecfr": Endpoint("https://www.ecfr.gov"),
    "olrc": Endpoint("https://uscode.house.gov"),
    "congress-api": Endpoint("https://api.congress.gov", key="PER_SOURCE_EVAL_CONGRESS_KEY"),
    "congress": Endpoint("https://www.congress.gov"),
}

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Refused(BackendError):
    """An answer, or the way to it, that cannot be used; asking again would not help."""


class Endpoints:
    """Turns addresses into official ones and back into those that are sent.

    Feeds, files and messages know official addresses alone, so that a mirror leaves no trace in what is recorded.
    """

    def __init__(self, mirrors: Mapping[str, str]) -> None:
        self._origins = {name: row.origin for name, row in ENDPOINTS.items()}
        for name, origin in mirrors.items():
            self._origins[name] = _mirror(name, origin)
        self._names = {urlsplit(origin).netloc: name for name, origin in self._origins.items()}
        # Official hosts stay known beside their mirrors, whose listings name them, with and without "www.".
        for name, row in ENDPOINTS.items():
            host = urlsplit(row.origin).netloc
            self._names.setdefault(host, name)
            self._names.setdefault(host.removeprefix("www."), name)

    def official(self, url: str) -> str:
        """Return the official form of an address: https, no fragment, no key; raise Refused for a foreign host."""
        try:
            parts = urlsplit(url)
            host = parts.hostname or "no host"
            name = self._names.get(parts.netloc.lower()) if parts.scheme in ("http", "https") else None
        except ValueError:
            name, host = None, "no host"
        if name is None:
            # The rest of such an address is a stranger's, and may repeat a key.
            raise Refused(f"An address at {shown(host)} was given, none of those that this feed may reach.")
        query = urlencode([pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "api_key"])
        return urlunsplit(("https", urlsplit(ENDPOINTS[name].origin).netloc, parts.path or "/", query, ""))

    def followed(self, url: str, location: str) -> str:
        """Return where a redirect or the next page leads; raise Refused if that is another service."""
        try:
            joined = urljoin(self.sent(url), location)
        except ValueError:
            joined = location
        target = self.official(joined)
        if self.name(target) != self.name(url):
            raise Refused(
                f"{without_key(url)} leads to another host ({urlsplit(target).netloc}), which is not followed."
            )
        return target

    def sent(self, url: str) -> str:
        """Return the address that is sent for an official one."""
        parts = urlsplit(url)
        scheme, netloc = urlsplit(self._origins[self.name(url)])[:2]
        return urlunsplit((scheme, netloc, parts.path, parts.query, ""))

    def name(self, url: str) -> str:
        """Return which endpoint an official address belongs to."""
        return self._names[urlsplit(url).netloc]

    def key(self, url: str) -> str:
        """Return the key for an address, "" if none is needed; raise an InputError where one is missing."""
        variable = ENDPOINTS[self.name(url)].key
        if not variable:
            return ""
        key = Secret(variable).value
        if not key:
            raise InputError(
                f"{urlsplit(url).netloc} needs a key of api.data.gov. Put one into the environment as {variable} "
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
    return f"{parts.scheme}://{parts.netloc}" in {row.origin for row in ENDPOINTS.values()}


def _mirror(name: str, origin: str) -> str:
    # What is given may hold a password, so nothing of it is shown, not even what should have been a name.
    if name not in ENDPOINTS:
        raise InputError(f"--endpoint NAME=URL: there is no endpoint of this name. Endpoints: {', '.join(ENDPOINTS)}.")
    address = plain_address(origin, f"--endpoint {name}", ENDPOINTS[name].key)
    if address.path:
        raise InputError(
            f"--endpoint {name}: the address is of the form https://HOST or http://HOST:PORT, without a path."
        )
    if ENDPOINTS[name].key and address.origin.startswith("http:") and address.host not in _LOOPBACK:
        raise InputError(f"--endpoint {name}: a key is sent to it, so it must be https.")
    return address.origin
