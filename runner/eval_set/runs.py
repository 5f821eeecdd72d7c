"""Runs and reading lists as tab-separated files of the record, written and strictly read."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from runner.base.errors import InputError
from runner.base.records import READ_TOKENS, RUN_DEPTH, ChunkHit, Hit, Reading, Run, Span

RUN_COLUMNS = ("query_id", "rank", "doc_id", "score", "start", "end")
RUN_HEADER = "\t".join(RUN_COLUMNS)
READING_HEADER = "query_id\trank\tdoc_id\tstart\tend\tn_tokens\tcumulative"

_SCORE = re.compile(r"-?\d+\.\d{5}(?:\d{4})?")


def run_bytes(run: Run) -> bytes:
    """runs/<cell>.tsv: a header, then a line a hit, queries in the run's order, ranks from 1.

    Scores have 5 places, or 9 throughout a run whose scores need them (reciprocal ranks). A query without a hit has
    no line. `read_run` gives the same run back.
    """
    scores = [hit.score for hits in run.hits.values() for hit in hits]
    places = 5 if all(float(f"{score:.5f}") == score for score in scores) else 9
    lines = [RUN_HEADER]
    for query_id, hits in run.hits.items():
        lines += [
            f"{query_id}\t{rank}\t{hit.doc_id}\t{hit.score:.{places}f}\t{hit.span.start}\t{hit.span.end}"
            for rank, hit in enumerate(hits, start=1)
        ]
    return ("\n".join(lines) + "\n").encode()


def reading_bytes(reading: Reading) -> bytes:
    """runs/<cell>.chunks.tsv: the chunks read down each ranking, with their tokens and the running sum of them."""
    lines = [READING_HEADER]
    for query_id, chunks in reading.items():
        cumulative = 0
        for rank, chunk in enumerate(chunks, start=1):
            cumulative += chunk.n_tokens
            place = f"{chunk.doc_id}\t{chunk.span.start}\t{chunk.span.end}"
            lines.append(f"{query_id}\t{rank}\t{place}\t{chunk.n_tokens}\t{cumulative}")
    return ("\n".join(lines) + "\n").encode()


def read_run(path: Path, cell: str, query_ids: Sequence[str]) -> Run:
    """The run in a file, for exactly these queries in this order; one without a line has no hits.

    Raises InputError with file and line on a query that the set does not have, a rank that does not follow, a
    document twice, a score out of order, or anything that is not a number where one belongs.
    """
    hits: dict[str, list[Hit]] = {query_id: [] for query_id in query_ids}
    seen: set[tuple[str, str]] = set()
    for number, line in table_lines(path, RUN_HEADER, "run file"):
        try:
            query_id, hit = _parsed(line, hits)
            if (query_id, hit.doc_id) in seen:
                raise ValueError(f"query {query_id} retrieves {hit.doc_id} twice")
        except ValueError as error:
            raise InputError(f"{path}:{number}: {error}. Restore the file, or remove it and retrieve again.") from error
        seen.add((query_id, hit.doc_id))
        hits[query_id].append(hit)
    return Run(cell, {query_id: tuple(ranked) for query_id, ranked in hits.items()})


def table_lines(path: Path, header: str, what: str) -> Iterator[tuple[int, str]]:
    """Number (from 2) and text of each line below the header; an InputError where the file is no whole one."""
    try:
        first, *lines = path.read_bytes().decode().split("\n")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}). Restore it from git, or run the driver again."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 ({error}). Restore the file, or remove it and retrieve again.") from error
    if first != header or lines[-1:] != [""]:
        raise InputError(
            f"{path}: not a whole {what}; its first line is {header!r} and its last one ends with a line break. "
            "Restore the file, or remove it and retrieve again."
        )
    return enumerate(lines[:-1], start=2)


def _parsed(line: str, hits: dict[str, list[Hit]]) -> tuple[str, Hit]:
    """Query and hit of a line that continues the ranking so far; a ValueError says why it does not."""
    columns = line.split("\t")
    if len(columns) != len(RUN_COLUMNS):
        raise ValueError(f"{len(columns)} columns instead of {len(RUN_COLUMNS)}")
    query_id, rank, doc_id, score, start, end = columns
    if query_id not in hits:
        raise ValueError(f"the set has no query {query_id!r}")
    expected = len(hits[query_id]) + 1
    if rank != str(expected) or expected > RUN_DEPTH:
        raise ValueError(f"query {query_id} has rank {rank!r} where {expected} of at most {RUN_DEPTH} is due")
    if not _SCORE.fullmatch(score):
        raise ValueError(f"the score {score!r} is not a number with 5 or 9 places")
    if not (start.isdecimal() and end.isdecimal()):
        raise ValueError(f"the span {start!r} to {end!r} is not two whole numbers")
    if not doc_id or re.search(r"\s", doc_id):
        raise ValueError(f"the document id {doc_id!r} is empty or has white space")
    hit = Hit(doc_id, float(score), Span(int(start), int(end)))
    if expected > 1 and (hit.score, doc_id) > (hits[query_id][-1].score, hits[query_id][-1].doc_id):
        raise ValueError(f"query {query_id} has {doc_id} below a document that it beats")
    return query_id, hit


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
            query_id, chunk = _parsed_chunk(line, reading, read)
        except ValueError as error:
            raise InputError(f"{path}:{number}: {error}. Restore the file, or remove it and retrieve again.") from error
        reading[query_id].append(chunk)
        read[query_id] += chunk.n_tokens
    return {query_id: tuple(chunks) for query_id, chunks in reading.items()}


def _parsed_chunk(line: str, reading: dict[str, list[ChunkHit]], read: dict[str, int]) -> tuple[str, ChunkHit]:
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
