"""`python -m tests.support.modal_server` serves until interrupted, and prints what a client's environment needs."""

import argparse
import signal
import tempfile
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.modal_server.server import ModalServer


def main() -> None:
    """One line `export NAME=VALUE` per variable, then nothing more."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.modal_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--executor", choices=["container", "inprocess"], default="container")
    parser.add_argument("--object", action="append", default=[], metavar="NAME=MODULE:ATTRIBUTE", help="for inprocess")
    parser.add_argument("--protocol", choices=["control", "input"], default="control")
    parser.add_argument("--folder", type=Path, help="where Volumes stay; by default a temporary folder")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for containers")
    flags = parser.parse_args()
    more = dict(pair.split("=", 1) for pair in flags.env)
    plain = {name: _imported(place) for name, place in (pair.split("=", 1) for pair in flags.object)}
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with (
        tempfile.TemporaryDirectory() as folder,
        ModalServer(
            flags.folder or Path(folder),
            executor=flags.executor,
            protocol=flags.protocol,
            objects=plain,
            environment=more,
            port=flags.port,
        ) as server,
    ):
        for name, value in server.environment().items():
            print(f"export {name}={value}", flush=True)
        ended.wait()


def _imported(place: str) -> Callable[..., Any]:
    module, _, attribute = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute)
    return found


if __name__ == "__main__":
    main()
