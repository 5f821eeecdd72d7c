"""What benchmarks read: real documents where PSE_SHARED has them, the demo's fictional bills elsewhere."""

import os
import sys
from pathlib import Path

from sizes import SMALL

CHECKOUT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("PSE_SHARED", CHECKOUT.parent / "shared"))
CORPORA = SHARED / "corpora"
SCIFACT, NFCORPUS = SHARED / "bench" / "scifact", SHARED / "bench" / "nfcorpus"


def bills_folder() -> Path:
    """The folder named on the command line, the shared corpus of bills, or the demo's."""
    given = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")]
    if given:
        return given[0]
    shared = CORPORA / "bills"
    return shared if shared.is_dir() and not SMALL else CHECKOUT / "eval-sets" / "demo" / "corpus"
