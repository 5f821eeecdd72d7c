"""What every test shares: no network but loopback, and the way to the shared corpora."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
_LOOPBACK = ("127.", "localhost", "::1")


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A connection to anything but this machine fails the test that tried it."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if self.family != socket.AF_UNIX and not str(host).startswith(_LOOPBACK):
            raise AssertionError(f"a test tried to reach {address!r}; tests may use loopback only")
        connect(self, address)  # type: ignore[arg-type]  # whatever the caller passed

    monkeypatch.setattr(socket.socket, "connect", guarded)
    return


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
