"""What every test shares: no network but loopback, and the way to the shared corpora."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
_LOOPBACK = ("127.", "localhost", "::1")
_Result = TypeVar("_Result")


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to anything but this machine, or a look-up of its name, fails the test that tried it.

    Processes that a test starts are told to leave the model hub alone.
    """
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _guarded_connection(getattr(socket.socket, name)))
    monkeypatch.setattr(socket, "getaddrinfo", _guarded_lookup(socket.getaddrinfo))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def _guarded_connection(connect: Callable[[socket.socket, Any], _Result]) -> Callable[[socket.socket, Any], _Result]:
    def guarded(self: socket.socket, address: Any) -> _Result:
        if self.family != socket.AF_UNIX:
            _check(address[0] if isinstance(address, tuple) else address)
        return connect(self, address)

    return guarded


def _guarded_lookup(look_up: Callable[..., _Result]) -> Callable[..., _Result]:
    def guarded(host: str | bytes | None, *more: Any, **named: Any) -> _Result:
        if host is not None:
            _check(host.decode() if isinstance(host, bytes) else host)
        return look_up(host, *more, **named)

    return guarded


def _check(host: object) -> None:
    if not str(host).startswith(_LOOPBACK):
        raise AssertionError(f"a test tried to reach {host!r}; tests may use loopback only")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared corpora and vectors: PSE_SHARED, by default ../shared."""
    folder = Path(os.environ.get("PSE_SHARED", CHECKOUT.parent / "shared"))
    if not (folder / "corpora").is_dir():
        message = f"SHARED CORPORA NOT FOUND at {folder}: set PSE_SHARED; tests over real documents did not run"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return folder
