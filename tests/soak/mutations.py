"""Damaged real files, read and chunked: documents or one refusal, and nothing else."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from runner.base.places import CHECKOUT
from tests.soak.trials import Kind, Trial
from tests.support.reader_fuzz import case, files_of, row_of, run
from tests.support.reader_goldens import DATA

CORPORA = Path(os.environ.get("PSE_SHARED", CHECKOUT.parent / "shared")) / "corpora"
LIMIT = 10.0
"""Seconds that one input may take."""


def kind(source: str) -> Kind:
    """Mutations of a source's real files."""
    return Kind(partial(_trials, source), at_once=250, unit="inputs")


def _trials(source: str, _: Path, numbers: Sequence[int], seed: int) -> Iterator[Trial]:
    row = row_of(source)
    files = files_of(row, CORPORA / source) or files_of(row, DATA / source)
    for number, n_documents, flaws, seconds in run(source, files, seed + 1, numbers[-1] + 1, LIMIT, begin=numbers[0]):
        if number in numbers:
            outcome = "wrong" if flaws else "read" if n_documents else "refused"
            what = " of ".join(reversed(case(source, files, seed + 1, number)[1:])) if flaws else ""
            yield Trial(f"mutations of {source}", number, 1, what, outcome, seconds, "; ".join(flaws))
