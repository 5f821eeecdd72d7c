"""Runs, reading lists and what the page lists as files of the record under bzip2, written and strictly read.

bzip2, since its bytes are the same on every machine: the record names them by their digests.
"""

import bz2
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, TypeVar

from runner.base.canonical import refuse_special
from runner.base.errors import InputError
from runner.base.given_files import numbered_lines, parsed
from runner.base.records import (
    EVIDENCE_DEPTH,
    READ_TOKENS,
    RUN_DEPTH,
    ArmLists,
    Arms,
    ChunkHit,
    Hit,
    Reading,
    Run,
    Span,
    arms_run,
)
from runner.base.schema import checked
from runner.eval_set.door import held
from runner.eval_set.shapes.lists import RankedLists

RUN_HEADER = "query_id\tdoc_id\tscore\tstart\tend"
ARMS_HEADER = "query_id\tdoc_id\twords\tmeaning\tstart\tend"
READING_HEADER = "query_id\tdoc_id\tstart\tend\tn_tokens"

_PACKED = b"BZh"
_LONGEST_LINE = 1 << 16
_LISTS_ROOM, _LISTS_ROOM_A_BYTE = 1 << 24, 100
"""Bytes that lists may always unpack to, and those a packed byte; the lists of a source have about ten a byte."""

_WAY_OUT = "Restore the file, or remove it and run again."
_VALUE = re.compile(r"0\.[0-9]{9}|1\.0{9}")
_WHOLE = re.compile(r"[0-9]{1,15}")
_SCORE = re.compile(r"-?[0-9]{1,15}\.[0-9]{5}(?:[0-9]{4})?")
_Entry = TypeVar("_Entry")


def run_bytes(run: Run) -> bytes:
    """Return runs/<cell>.tsv.bz2: a header, then a line a hit, queries in the run's order, the best hit first.

    Scores have 5 places, or 9 throughout a run whose scores need them (reciprocal ranks). A query without a hit has
    no line. `read_run` gives the same run back, with the spans of a query's first EVIDENCE_DEPTH hits alone.
    """
    scores = [hit.score for hits in run.hits.values() for hit in hits]
    places = 5 if all(float(f"{score:.5f}") == score for score in scores) else 9
    lines = [RUN_HEADER]
    for query_id, hits in run.hits.items():
        lines += [
            f"{query_id}\t{hit.doc_id}\t{hit.score:.{places}f}\t{_ends(rank, hit.span)}"
            for rank, hit in enumerate(hits, start=1)
        ]
    return _packed_lines(lines)


def reading_bytes(reading: Reading) -> bytes:
    """Return runs/<cell>.chunks.tsv.bz2: the chunks read down each ranking, with their tokens."""
    lines = [READING_HEADER]
    for query_id, chunks in reading.items():
        lines += [
            f"{query_id}\t{chunk.doc_id}\t{chunk.span.start}\t{chunk.span.end}\t{chunk.n_tokens}" for chunk in chunks
        ]
    return _packed_lines(lines)


def arms_bytes(lists: ArmLists) -> bytes:
    """Return runs/<cell>.tsv.bz2 of a sum: both arms' documents in its order; "-" for an arm that lacks one.

    `read_arms` gives the same lists back, `read_run` the sum's run; spans as of `run_bytes`.
    """

    def column(half: float | None) -> str:
        return "-" if half is None else f"{half:.9f}"

    lines = [ARMS_HEADER]
    for query_id, documents in lists.items():
        lines += [
            f"{query_id}\t{arms.doc_id}\t{column(arms.words)}\t{column(arms.meaning)}\t{_ends(rank, arms.span)}"
            for rank, arms in enumerate(documents, start=1)
        ]
    return _packed_lines(lines)


def _ends(rank: int, span: Span | None) -> str:
    return f"{span.start}\t{span.end}" if span and rank <= EVIDENCE_DEPTH else "-\t-"


def _span_of(rank: int, start: str, end: str) -> Span | None:
    if rank > EVIDENCE_DEPTH and start == end == "-":
        return None
    if rank > EVIDENCE_DEPTH or not all(map(_WHOLE.fullmatch, (start, end))):
        raise ValueError(f"the span {start!r} to {end!r} is not two whole numbers to rank {EVIDENCE_DEPTH}, then '-'")
    return Span(int(start), int(end))


def read_arms(path: Path, query_ids: Sequence[str]) -> ArmLists:
    """Return the arms in a sum's file, for exactly these queries in this order; () for one without a line.

    Raises InputError with file and line on a query, document or order as `read_run` does, and on a document in neither
    arm.
    """
    lines = _lines(path, ARMS_HEADER)
    return _arms(path, next(lines), lines, query_ids)


def _arms(path: Path, header: str, lines: Iterator[str], query_ids: Sequence[str]) -> ArmLists:
    lists: dict[str, list[Arms]] = {query_id: [] for query_id in query_ids}
    due = _Due()

    def arms_of(query_id: str, doc_id: str, columns: Sequence[str]) -> Arms:
        words, meaning = _half_of(columns[0]), _half_of(columns[1])
        if words is None and meaning is None:
            raise ValueError(f"query {query_id} has {doc_id} in neither arm")
        rank = len(lists[query_id]) + 1
        if rank > 2 * RUN_DEPTH:
            raise ValueError(f"query {query_id} has more than the {RUN_DEPTH} documents of either arm")
        arms = Arms(doc_id, words, meaning, _span_of(rank, *columns[2:]))
        due.check(query_id, arms.hit)
        return arms

    _read_rows(path, header, lines, lists, arms_of)
    return {query_id: tuple(documents) for query_id, documents in lists.items()}


def _half_of(value: str) -> float | None:
    if value != "-" and not _VALUE.fullmatch(value):
        raise ValueError(f"the value {value!r} is not a number from 0 to 1 with 9 places")
    return None if value == "-" else float(value)


class _Due:
    """What the hits of a file were so far: each must come below the one before, and once."""

    def __init__(self) -> None:
        self.before: dict[str, Hit] = {}
        self.seen: set[tuple[str, str]] = set()

    def check(self, query_id: str, hit: Hit) -> None:
        """Raise ValueError on a hit that beats the one before, or was there already."""
        before = self.before.get(query_id)
        # Of equal scores the greater id comes first.
        if before and (hit.score, hit.doc_id) > (before.score, before.doc_id):
            raise ValueError(f"query {query_id} has {hit.doc_id} below a document that it beats")
        if (query_id, hit.doc_id) in self.seen:
            raise ValueError(f"query {query_id} retrieves {hit.doc_id} twice")
        self.before[query_id] = hit
        self.seen.add((query_id, hit.doc_id))


def read_run(path: Path, cell: str, query_ids: Sequence[str] | None = None) -> Run:
    """Return the run in a file, for exactly these queries in this order; one without a line has no hits.

    Without `query_ids` it is for those that the file names. A file that is not packed is read as well. A sum's run is
    the first RUN_DEPTH documents of its arms.

    Raises InputError with file and line on a query that the set does not have, a document twice, a score out of order,
    or anything that is not a number where one belongs.
    """
    if query_ids is None:
        _, *named = (line.partition("\t")[0] for line in _lines(path, RUN_HEADER, ARMS_HEADER))
        query_ids = list(dict.fromkeys(named))
    lines = _lines(path, RUN_HEADER, ARMS_HEADER)
    if (header := next(lines)) == ARMS_HEADER:
        return arms_run(cell, _arms(path, header, lines, query_ids))
    lists: dict[str, list[Hit]] = {query_id: [] for query_id in query_ids}
    due = _Due()

    def hit_of(query_id: str, doc_id: str, columns: Sequence[str]) -> Hit:
        score, *ends = columns
        rank = len(lists[query_id]) + 1
        if rank > RUN_DEPTH:
            raise ValueError(f"query {query_id} has more than {RUN_DEPTH} documents")
        # In the one form that `run_bytes` writes: a score by hand could not be written back the same.
        if not _SCORE.fullmatch(score):
            raise ValueError(f"the score {score!r} is not a number with 5 or 9 places")
        hit = Hit(doc_id, float(score), _span_of(rank, *ends))
        due.check(query_id, hit)
        return hit

    _read_rows(path, header, lines, lists, hit_of)
    return Run(cell, {query_id: tuple(hits) for query_id, hits in lists.items()})


def read_reading(path: Path, query_ids: Sequence[str]) -> Reading:
    """Return the reading lists in a file, for exactly these queries in this order; () for one without a line.

    Raises InputError with file and line on a query that the set does not have, a line after the list's end, or anything
    that is not a whole number where one belongs.
    """
    lists: dict[str, list[ChunkHit]] = {query_id: [] for query_id in query_ids}
    read = dict.fromkeys(query_ids, 0)  # tokens so far

    def chunk_of(query_id: str, doc_id: str, numbers: Sequence[str]) -> ChunkHit:
        # No more chunks than tokens: those without a token would never end.
        if max(read[query_id], len(lists[query_id])) >= READ_TOKENS:
            raise ValueError(f"query {query_id} reads on after {READ_TOKENS} tokens or chunks, the most that are read")
        if not all(map(_WHOLE.fullmatch, numbers)):
            raise ValueError(f"one of {numbers} is not a whole number")
        start, end, n_tokens = map(int, numbers)
        read[query_id] += n_tokens
        return ChunkHit(doc_id, Span(start, end), n_tokens)

    lines = _lines(path, READING_HEADER)
    _read_rows(path, next(lines), lines, lists, chunk_of)
    return {query_id: tuple(chunks) for query_id, chunks in lists.items()}


def read_lists(path: Path) -> RankedLists:
    """Return what a lists.json.bz2 holds; InputError if it is not whole, or unpacks to more than lists ever do."""
    with _opened(path) as file:
        most = max(_LISTS_ROOM, _LISTS_ROOM_A_BYTE * path.stat().st_size)
        content = file.read(most + 1)
        if len(content) > most:
            raise InputError(f"{path}: more than {most:,} bytes unpacked, which no lists of its size are. {_WAY_OUT}")
        text = content.decode()
    return checked(RankedLists, parsed(text, str(path), _WAY_OUT), path)


def _read_rows(
    path: Path,
    header: str,
    lines: Iterator[str],
    lists: Mapping[str, list[_Entry]],
    entry: Callable[[str, str, Sequence[str]], _Entry],
) -> None:
    """Put what `entry` makes of query, document and further columns of each line at the end of the query's list."""
    # Each line: columns, a known query, then what `entry` checks of the rest.
    n_columns = header.count("\t") + 1
    for number, line in enumerate(lines, start=2):
        try:
            columns = line.split("\t")
            if len(columns) != n_columns:
                raise ValueError(f"{len(columns)} columns instead of {n_columns}")
            query_id, doc_id, *others = columns
            if query_id not in lists:
                raise ValueError(f"the set has no query {query_id!r}")
            if doc_id.split() != [doc_id]:
                raise ValueError(f"the document id {doc_id!r} is empty or has white space")
            lists[query_id].append(entry(query_id, doc_id, others))
        except ValueError as error:
            raise InputError(f"{path}:{number}: {error}. {_WAY_OUT}") from error


def packed(content: bytes) -> bytes:
    """Return a file of the record under bzip2."""
    return bz2.compress(content)


def _packed_lines(lines: Sequence[str]) -> bytes:
    return packed(("\n".join(lines) + "\n").encode())


def is_run(path: Path) -> bool:
    """Return whether a file begins as a run of ours does, packed or not, and not as TREC's."""
    first = _first_line(path) if _is_packed(path) else next(numbered_lines(path), (0, b""))[1]
    return first in {RUN_HEADER.encode(), ARMS_HEADER.encode()}


def has_arms(path: Path) -> bool:
    """Return whether a run's file is a sum's, with both arms; InputError if it is not whole."""
    return _first_line(path) == ARMS_HEADER.encode()


def _first_line(path: Path) -> bytes:
    with _opened(path) as file:
        return file.readline(_LONGEST_LINE).removesuffix(b"\n")


def _is_packed(path: Path) -> bool:
    refuse_special(path)
    try:
        with path.open("rb") as file:
            return file.read(len(_PACKED)) == _PACKED
    except OSError:  # whoever reads it says why
        return False


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that may be packed: InputError where it is not whole."""
    where = held(path)
    refuse_special(where)
    try:
        # Python's own reader of bzip2 asks itself twice for every line; behind a buffer of C it does for every 8 KB.
        with BufferedReader(bz2.open(where)) if _is_packed(where) else where.open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist. {_WAY_OUT}") from error
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not whole, or not UTF-8 ({error}). {_WAY_OUT}") from error


def _lines(path: Path, *headers: str) -> Iterator[str]:
    """Yield the header, which is one of these, and the lines below it: InputError where the file is not whole."""
    with _opened(path) as file:
        line = file.readline(_LONGEST_LINE)
        header = next((each for each in headers if line == f"{each}\n".encode()), "")
        if header:
            while line.endswith(b"\n"):
                yield line[:-1].decode()
                line = file.readline(_LONGEST_LINE)
            if not line:
                return
        raise InputError(
            f"{path}: not whole; its first line is {header or headers[0]!r} and its last one ends with a line break. "
            f"{_WAY_OUT}"
        )
