"""`python -m tests.support.modal_server` serves until interrupted, and prints what a client's environment needs."""

import argparse
import signal
import tempfile
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.modal_server.server import ModalServer


def main() -> None:
    """One line `export NAME=VALUE` per variable, then nothing more."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.modal_server", description=__doc__)
    parser.add_argument("--executor", choices=["container", "inprocess"], default="container")
    parser.add_argument("--object", action="append", default=[], metavar="NAME=MODULE:ATTRIBUTE", help="for inprocess")
    flags = parser.parse_args()
    plain = {name: _imported(place) for name, place in (pair.split("=", 1) for pair in flags.object)}
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with (
        tempfile.TemporaryDirectory() as folder,
        ModalServer(Path(folder), executor=flags.executor, objects=plain) as server,
    ):
        for name, value in server.environment().items():
            print(f"export {name}={value}", flush=True)
        ended.wait()


def _imported(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


if __name__ == "__main__":
    main()
