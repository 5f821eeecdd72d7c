"""Damaged files given to a reader, and what it must never do with them.

python -m tests.support.reader_fuzz --source SOURCE [--n 5000] [--seed 0] [--files FOLDER] [--keep FOLDER]
    [--seconds 10]

A reader answers with documents or with a DocumentError, and the source's structural chunker covers what it reads.
Every input is read and chunked in a child process under an alarm by its processor time; what is reported is any other
exception, a hang, more memory than 8 times the input and 100 MB, text of a file that an entity pointed at, words that
cannot be shown, and characters in no chunk. Each input is a function of source, seed and number.
"""

import argparse
import faulthandler
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from chunkers.registry import Chunker, chunker
from runner.base.errors import DocumentError
from runner.base.records import Chunk, Document
from runner.eval_set.catalog import SOURCES
from samplers.corpus.parse import fault
from samplers.registry import DOCUMENTS, READERS, source_format
from samplers.source_format import SourceFormat
from tests.support.reader_mutations import SECRET, mutated

SHARED = Path(os.environ.get("PSE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "corpora"
TIMES, SPARE = 8, 100_000_000
"""Memory that a reader may take: so many times the input, and this much besides."""

HARD_LIMIT = 3_000_000_000
"""Address space beyond what the child has when it begins: past it, allocations fail and the reader with them."""


def row_of(source: str) -> SourceFormat:
    """Return a source's row; a dotted name is a module of its own, for readers that misbehave on purpose."""
    row: SourceFormat = source_format(source) if source in READERS else import_module(source).FORMAT
    return row


@cache
def chunker_of(source: str) -> Chunker:
    """Return the structural chunker of a source, or of the one that the source's files belong to."""
    spec = (
        SOURCES.get(source)
        or (source == DOCUMENTS.name and DOCUMENTS)
        or next((one for one in SOURCES.values() if one.reader == source), SOURCES["bills"])
    )
    return chunker(spec.structural_chunker)


class Answered(NamedTuple):
    """What came of one input: documents read, what is wrong with the answer, seconds taken."""

    number: int
    n_documents: int
    flaws: tuple[str, ...]
    seconds: float


def files_of(row: SourceFormat, folder: Path) -> list[Path]:
    """Return the files below a folder that the source takes, by path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if path.name.lower().endswith(row.suffixes)]


def case(source: str, files: Sequence[Path], seed: int, number: int) -> tuple[bytes, str, str]:
    """Return a damaged input: bytes, name, and what was done to it. Small files are drawn more often, for speed."""
    rng = random.Random(f"{source} {seed} {number}")
    first, second = rng.choices(files, weights=[1 / (path.stat().st_size + 5_000) for path in files], k=2)
    data, damage = mutated(first.read_bytes(), second.read_bytes(), rng)
    return data, first.name, damage


def answer(source: str, data: bytes, name: str) -> tuple[int, list[str]]:
    """Return how many documents an input holds, and what is wrong with them or their chunks."""
    row = row_of(source)
    try:
        documents = [d for d in row.read(data, name, frozenset(row.options)).documents if not fault(d)]
        chunked = chunker_of(source)
        return len(documents), [flaw for d in documents for flaw in (*_flaws(d), *_flaws_of_chunks(d, chunked(d)))]
    except DocumentError as error:
        reason = error.reason
        fits = 0 < len(reason) <= 160 and reason.isprintable() and SECRET not in reason
        return 0, [] if fits else [f"a reason that fits no table: {reason[:80]!r} ({len(reason)} characters)"]
    except Exception as error:  # noqa: BLE001  # any other exception is what is looked for
        return 0, [f"{_where(error)}{type(error).__name__}: {error}"[:200].replace("\n", " ")]


def _where(error: Exception) -> str:
    """Return file and line of the last frame of the product's own."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)[1:] if "site-packages" not in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno} " if frames else ""


def _flaws(document: Document) -> Iterator[str]:
    labels = "".join(section.label for section in document.sections)
    if SECRET in "".join((document.doc_id, document.title, document.text, labels, document.family, document.stratum)):
        yield "the text of another file"
    controls = {c for c in set(document.text + labels + document.title) if c < " " and c not in "\n\t"}
    if controls:
        yield f"control characters in the text: {sorted(controls)!r}"


def _flaws_of_chunks(document: Document, chunks: Sequence[Chunk]) -> Iterator[str]:
    end = 0
    for chunk in chunks:
        if not 0 <= chunk.span.start < chunk.span.end <= len(document.text):
            yield f"a chunk outside the text: {chunk.span}"
        if document.text[end : chunk.span.start].strip():
            yield f"characters {end} to {chunk.span.start} are in no chunk"
        end = max(end, chunk.span.end)
    if document.text[end:].strip():
        yield f"characters from {end} are in no chunk"


def child(source: str, files: list[Path], seed: int, numbers: range, seconds: float) -> None:
    """Read every input of `numbers`, say which one it is at, and die by the alarm if one takes too long."""
    row_of(source)
    chunker_of(source)(Document("warm", "up", "", "", "warm", ""))
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    faulthandler.register(signal.SIGPROF, file=sys.stdout, all_threads=False, chain=True)
    resource.setrlimit(resource.RLIMIT_AS, (in_use + HARD_LIMIT, in_use + HARD_LIMIT))
    for number in numbers:
        data, name, _ = case(source, files, seed, number)
        print("at", number, flush=True)
        # Of the processor, so that a busy machine hangs nobody.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        before, began = _reset_peak(), time.process_time()
        n_documents, complaints = answer(source, data, name)
        taken, elapsed = _status("VmHWM") - before, time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, 0)
        if taken > TIMES * len(data) + SPARE:
            complaints.append(f"{taken / 1e6:.0f} MB for an input of {len(data) / 1e6:.2f} MB")
        print("done", json.dumps((number, n_documents, list(dict.fromkeys(complaints)), elapsed)), flush=True)


def _reset_peak() -> int:
    """Return the resident bytes now, from which on the peak is counted."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def run(
    source: str, files: list[Path], seed: int, n: int, seconds: float = 10, *, begin: int = 0
) -> Iterator[Answered]:
    """Yield what came of every input from number `begin` up to `n`. A child that dies is replaced."""
    while begin < n:
        command = [sys.executable, "-m", "tests.support.reader_fuzz", "--child", str(begin), "--n", str(n)]
        command += ["--source", source, "--seed", str(seed), "--seconds", str(seconds)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace"
        ) as process:
            assert process.stdin
            assert process.stdout
            process.stdin.write("\n".join(map(str, files)))
            process.stdin.close()
            at, where = begin, ""
            for line in process.stdout:
                kind, _, rest = line.partition(" ")
                if kind == "done":
                    number, n_documents, flaws, taken = json.loads(rest)
                    yield Answered(number, n_documents, tuple(flaws), taken)
                elif kind == "at":
                    at, where = int(rest), ""
                elif frame := _OURS.search(line):
                    where = where or f"{frame[1]}:{frame[2]}"
        if process.returncode == 0:
            return
        hung = process.returncode == -signal.SIGPROF
        complaint = f"a hang in {where}" if hung else f"the process ended with {process.returncode}"
        yield Answered(at, 0, (complaint,), seconds)
        begin = at + 1


_OURS = re.compile(r'/(?:chunkers|samplers|tests)/(?:[\w]+/)*([\w.]+)", line (\d+)')
"""A frame of the product's own in a traceback."""


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if a reader was found wanting; each finding is a line with its input, kept as a file."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.reader_fuzz")
    parser.add_argument("--source", required=True)
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child is not None:
        files = [Path(line) for line in sys.stdin.read().split("\n")]
        child(given.source, files, given.seed, range(given.child, given.n), given.seconds)
        return 0
    files = files_of(row_of(given.source), given.files or SHARED / given.source)
    if not files:
        parser.error("there is no file to damage; name a folder with --files")
    n_found = n_read = 0
    for number, n_documents, flaws, _ in run(given.source, files, given.seed, given.n, given.seconds):
        n_read += n_documents > 0
        n_found += len(flaws)
        data, name, damage = case(given.source, files, given.seed, number) if flaws else (b"", "", "")
        copy = ""
        if given.keep and flaws:
            path = given.keep / f"{given.source}-{given.seed}-{number}-{name}"
            path.write_bytes(data)
            copy = f" | {path}"
        for flaw in flaws:
            print(f"{given.source} | {given.seed}/{number} {name} | {damage} | {flaw}{copy}", flush=True)
    print(f"{given.source}: {given.n} inputs from {len(files)} files, {n_read} read as documents, {n_found} findings")
    return 1 if n_found else 0


if __name__ == "__main__":
    sys.exit(main())
