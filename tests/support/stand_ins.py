"""`python -m tests.support.stand_ins` plays Modal, the model hub and the judges' API on this machine.

It prints what the environment needs, and serves until it is interrupted. The hub has
MiniLM's packaged weights; judges grade by shared words. No grade of theirs is worth anything.
"""

import signal
import tempfile
import threading
from pathlib import Path

from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.hub_server import HubServer, packaged_minilm
from tests.support.judge_rows import grade_of
from tests.support.loopback import served
from tests.support.modal_server.server import ModalServer


def main() -> None:
    """One line `export NAME=VALUE` per variable; JUDGES is for `--judge-url`."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    judge = AnthropicServer(grade=grade_of, key=KEY)
    with (
        tempfile.TemporaryDirectory() as folder,
        served(judge),
        HubServer(packaged_minilm()) as hub,
        ModalServer(Path(folder), executor="container", environment={"HF_ENDPOINT": hub.url}) as modal,
    ):
        for name, value in {
            **modal.environment(),
            "HF_ENDPOINT": hub.url,
            "ANTHROPIC_API_KEY": KEY,
            "JUDGES": judge.url,
        }.items():
            print(f"export {name}={value}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
