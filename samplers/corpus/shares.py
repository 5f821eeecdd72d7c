"""A folder's files read by several processes, with their outcomes in the order of the files.

The first share of the files is read by this process, each further one by a process of its own, which writes its
outcomes to a file without a name. What such a process leaves unread, because it was killed or a reader raised, is read
here: so the outcomes and errors are those of one process.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import accumulate
from typing import IO

from runner.base.records import Document, Section, Span
from samplers.corpus.inputs import CorpusFile
from samplers.corpus.outcome import Outcome, outcome

BYTES_OF_SHARE = 10_000_000
"""The least that a process is started for: it starts in .2 s, in which it would read 5 MB."""

_READ = "from samplers.corpus.shares import read_share; read_share()"


def outcomes(source: str, options: frozenset[str], files: Sequence[CorpusFile]) -> Iterator[Outcome]:
    """What each file of a folder holds, in the order of the files."""
    first, *others = _shares(files)
    with ExitStack() as stack:
        started = [stack.enter_context(_reading(source, options, share)) for share in others]
        yield from (outcome(source, options, file) for file in first)
        for share, written in zip(others, started, strict=True):
            unread = iter(share)
            yield from (found for found, _ in zip(written, unread, strict=False))
            yield from (outcome(source, options, file) for file in unread)


def read_share() -> None:
    """Read the share that the standard input names and write its outcomes to the standard output."""
    source, options, files = pickle.load(sys.stdin.buffer)  # noqa: S301  # written by the process that began this one
    for file in files:
        pickle.dump(_flat(outcome(source, options, file)), sys.stdout.buffer)


def _n_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shares(files: Sequence[CorpusFile]) -> list[Sequence[CorpusFile]]:
    """The files in runs of about as many bytes, one for each processor but none below BYTES_OF_SHARE."""
    sizes = list(accumulate(file.size for file in files))
    total = sizes[-1] if sizes else 0
    n = max(1, min(_n_processors(), total // BYTES_OF_SHARE))
    ends = [sum(size <= total * part // n for size in sizes) for part in range(1, n)]
    return [files[start:end] for start, end in zip([0, *ends], [*ends, len(files)], strict=True)]


@contextmanager
def _reading(source: str, options: frozenset[str], share: Sequence[CorpusFile]) -> Iterator[Iterator[Outcome]]:
    """A process that reads a share, which ends with the block; its outcomes are waited for when they are asked for."""
    with tempfile.TemporaryFile() as request, tempfile.TemporaryFile() as answers:
        pickle.dump((source, options, share), request)
        request.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _READ],
            stdin=request,
            stdout=answers,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # an interrupt is this process's, which ends the other one
        )
        try:
            yield _written(process, answers)
        finally:
            process.kill()
            process.wait()


def _written(process: "subprocess.Popen[bytes]", answers: IO[bytes]) -> Iterator[Outcome]:
    process.wait()
    answers.seek(0)
    try:
        while True:
            yield _whole(pickle.load(answers))  # noqa: S301  # written by a process of ours
    except (EOFError, pickle.UnpicklingError):
        return


_Flat = tuple[Outcome, list[tuple[Document, list[tuple[int, int, int, str, str]]]]]


def _flat(found: Outcome) -> _Flat:
    """An outcome without sections, and its documents' sections as plain values, which take a tenth to pickle."""
    content, digest = found
    if isinstance(content, str):
        return found, []
    documents = [
        (replace(one, sections=()), [(s.span.start, s.span.end, s.level, s.kind, s.label) for s in one.sections])
        for one in content.documents
    ]
    return Outcome(replace(content, documents=()), digest), documents


def _whole(flat: _Flat) -> Outcome:
    """What `_flat` was made of."""
    (content, digest), documents = flat
    if isinstance(content, str):
        return Outcome(content, digest)
    whole = (
        replace(one, sections=tuple(Section(Span(a, b), level, kind, label) for a, b, level, kind, label in sections))
        for one, sections in documents
    )
    return Outcome(replace(content, documents=tuple(whole)), digest)
