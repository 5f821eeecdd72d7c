"""The documents that benchmarks read: real bills where PSE_SHARED has them, the demo's fictional ones elsewhere."""

import os
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def bills_folder() -> Path:
    """The folder named on the command line, the shared corpus of bills, or the demo's."""
    shared = Path(os.environ.get("PSE_SHARED", CHECKOUT.parent / "shared")) / "corpora" / "bills"
    given = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")]
    if given:
        return given[0]
    return shared if shared.is_dir() else CHECKOUT / "eval-sets" / "demo" / "corpus"
