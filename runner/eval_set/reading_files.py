"""A strict reader of reading lists, runs/<cell>.chunks.tsv, which `run_files.reading_bytes` writes."""

from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import InputError
from runner.base.records import ChunkHit, Span
from runner.eval_set.runs import READING_HEADER, table_lines
from runner.retrieve.ranking import READ_TOKENS, Reading

_COLUMNS = len(READING_HEADER.split("\t"))


def read_reading(path: Path, query_ids: Sequence[str]) -> Reading:
    """The reading lists in a file, for exactly these queries in this order; () for one without a line.

    Raises InputError with file and line on a query that the set does not have, a rank or a running sum that does not
    follow, a line after the list's end, or anything that is not a whole number where one belongs.
    """
    reading: dict[str, list[ChunkHit]] = {query_id: [] for query_id in query_ids}
    read = dict.fromkeys(query_ids, 0)
    for number, line in table_lines(path, READING_HEADER, "reading list"):
        try:
            query_id, chunk = _parsed(line, reading, read)
        except ValueError as error:
            raise InputError(f"{path}:{number}: {error}. Restore the file, or remove it and retrieve again.") from error
        reading[query_id].append(chunk)
        read[query_id] += chunk.n_tokens
    return {query_id: tuple(chunks) for query_id, chunks in reading.items()}


def _parsed(line: str, reading: dict[str, list[ChunkHit]], read: dict[str, int]) -> tuple[str, ChunkHit]:
    """Query and chunk of a line that continues the list so far; a ValueError says why it does not."""
    columns = line.split("\t")
    if len(columns) != _COLUMNS:
        raise ValueError(f"{len(columns)} columns instead of {_COLUMNS}")
    query_id, rank, doc_id, *numbers = columns
    if query_id not in reading:
        raise ValueError(f"the set has no query {query_id!r}")
    if rank != str(len(reading[query_id]) + 1):
        raise ValueError(f"query {query_id} has rank {rank!r} where {len(reading[query_id]) + 1} is due")
    if read[query_id] >= READ_TOKENS:
        raise ValueError(f"query {query_id} reads on after {read[query_id]} tokens, of {READ_TOKENS} that are read")
    if not doc_id or any(character.isspace() for character in doc_id):
        raise ValueError(f"the document id {doc_id!r} is empty or has white space")
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        raise ValueError(f"one of {numbers} is not a whole number")
    start, end, n_tokens, cumulative = map(int, numbers)
    if cumulative != read[query_id] + n_tokens:
        raise ValueError(f"the running sum {cumulative} is not {read[query_id]} and {n_tokens} tokens")
    return query_id, ChunkHit(doc_id, Span(start, end), n_tokens)
