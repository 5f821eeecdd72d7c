"""The pins of the installed distribution; those of an encoder are installed on Modal, which then runs what this machine
runs.
"""

import re
from importlib import metadata

from runner.base.errors import BackendError

_CARRIED = ("cbor2", "huggingface-hub", "numpy", "safetensors", "tokenizers")
"""What a container needs beside the libraries; the first is the payloads' format, which older images lack."""

DISTRIBUTION = "per-source-eval"


def image_pins() -> dict[str, str]:
    """Return version by distribution, sorted: of the extra `local` without packages of weights, and of _CARRIED.

    A BackendError if this tool is not installed.
    """
    return {
        name: version
        for name, version, extra in all_pins()
        if name in _CARRIED or (extra == "local" and not name.startswith("gt-"))
    }


def all_pins() -> list[tuple[str, str, str]]:
    """Return name, version and extra ("" for none) of every pin of the installed distribution, sorted.

    A BackendError if it is not installed.
    """
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError as error:
        raise BackendError(
            f"{DISTRIBUTION} is not installed, so the versions for Modal's image are not known. Run `make setup`."
        ) from error
    pins = []
    for requirement in requirements:
        # As packaging metadata has it: `torch==2.9.1 ; extra == "local"`.
        pin, _, marker = requirement.partition(";")
        name, _, version = pin.strip().partition("==")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        pins.append((name, version, extra[1] if extra else ""))
    return sorted(pins)
