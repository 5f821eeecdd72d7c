"""Which key of the environment may be sent to which host.

A plan names both, and a plan may be a stranger's: whoever runs it agrees to each pair once, by --send-key. That is kept
in a file of the person, since folders of work can come from strangers too.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from runner.base.canonical import write_atomic
from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.places import COMMAND


def agree(pairs: Sequence[str]) -> None:
    """Keep that each NAME=HOST is agreed to; raise InputError for what is not such a pair."""
    for pair in pairs:
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*=[\w.:-]+", pair, flags=re.ASCII):
            raise InputError(f"--send-key {pair!r}: give NAME=HOST, such as VOYAGE_API_KEY=api.voyageai.com.")
    wanted = {f"{name}={host.lower()}" for name, _, host in (pair.partition("=") for pair in pairs)}
    if not wanted <= (agreed := _agreed()):
        write_atomic(_path(), "".join(f"{pair}\n" for pair in sorted(wanted | agreed)).encode())


def is_agreed(variable: str, host: str) -> bool:
    """Return whether the variable's key may be sent to the host."""
    return f"{variable}={host.lower()}" in _agreed()


def refuse_unagreed(variable: str, host: str, what: str) -> None:
    """Raise InputError if `what` would send a key that the environment has to a host to which nobody agreed."""
    if os.environ.get(variable) and not is_agreed(variable, host):
        raise InputError(
            f"{what} would send {variable} of your environment to {printable(host, 100)}. If that is right, agree to "
            f"it once: add --send-key {variable}={printable(host, 100)}"
        )


def _path() -> Path:
    try:
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / COMMAND / "sent-keys"
    except RuntimeError as error:  # an account without a home
        raise InputError("There is no home folder to keep --send-key in; set XDG_CONFIG_HOME.") from error


def _agreed() -> set[str]:
    path = _path()
    return set(path.read_text(encoding="utf-8", errors="replace").split()) if path.is_file() else set()
