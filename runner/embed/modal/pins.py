"""The pins of the installed distribution; those of an encoder are installed on Modal, which then runs what this machine
runs.
"""

import re
from importlib import metadata

from runner.base.errors import BackendError

LIBRARIES = ("sentence-transformers", "tokenizers", "torch", "transformers")
"""Whose versions may change a vector: part of an encoder's identity, here and there."""

_CARRIED = ("huggingface-hub", "numpy", "safetensors", "tokenizers")
"""What a container needs of the packages that are no extra."""

DISTRIBUTION = "per-source-eval"


def image_pins() -> dict[str, str]:
    """Version by distribution, sorted: the extra `local` without packages of weights, and _CARRIED; a BackendError if
    this tool is not installed.
    """
    return {
        name: version
        for name, version, extra in all_pins()
        if name in _CARRIED or (extra == "local" and not name.startswith("gt-"))
    }


def model_pins() -> dict[str, str]:
    """The image's version of each of LIBRARIES."""
    return {name: version for name, version in image_pins().items() if name in LIBRARIES}


def payload_pin() -> str:
    """The requirement of the payload format, which images of older workspaces lack; a BackendError without a pin.

    No vector depends on it, so it is no part of an encoder's identity.
    """
    for name, version, extra in all_pins():
        if (name, extra) == ("cbor2", "modal"):
            return f"{name}=={version}"
    raise BackendError(f"The installed {DISTRIBUTION} has no pin of cbor2 in its extra `modal`. Run `make setup`.")


def all_pins() -> list[tuple[str, str, str]]:
    """Name, version and extra ("" for none) of every pin of the installed distribution, sorted; a BackendError if there
    is none.
    """
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError as error:
        raise BackendError(
            f"{DISTRIBUTION} is not installed, so the versions for Modal's image are not known. Run `make setup`."
        ) from error
    found = []
    for requirement in requirements:
        pin, _, marker = requirement.partition(";")
        name, _, version = pin.strip().partition("==")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        found.append((name, version, extra[1] if extra else ""))
    return sorted(found)
