"""What a process of a pool does in place of reading: nothing here takes long to import, since each one does."""

import os
import time
from collections.abc import Sequence
from multiprocessing import parent_process

from samplers.corpus import outcome
from samplers.corpus.inputs import CorpusFile
from samplers.corpus.outcome import Outcome

in_process = outcome._all


def elsewhere(source: str, options: frozenset[str], files: Sequence[CorpusFile]) -> list[Outcome]:
    assert parent_process() is not None
    return in_process(source, options, files)


def dies(*_: object) -> None:
    os._exit(9)


def dies_at_the_third(source: str, options: frozenset[str], files: Sequence[CorpusFile], seen=[]) -> list[Outcome]:  # noqa: B006  # type: ignore[no-untyped-def]
    seen.append(files)
    return elsewhere(source, options, files) if len(seen) < 3 else os._exit(9)


def hangs(source: str, options: frozenset[str], files: Sequence[CorpusFile]) -> list[Outcome]:
    if not files[0].place.startswith("0-"):
        time.sleep(60)
    return elsewhere(source, options, files)
