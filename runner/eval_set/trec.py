"""TREC's run files (query Q0 document rank score tag) and qrels (query iteration document grade), read and written.

Columns are parted by spaces or tabs; ids are kept byte for byte as UTF-8. What trec_eval takes in silence is an error
that names the line: a document twice in a query, a score or grade that is no number, a column too many.
"""

import math
import re
from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from runner.base.canonical import slug
from runner.base.errors import InputError
from runner.base.given_files import display, graded, keep_grade, numbered_lines, printable
from runner.base.records import RUN_DEPTH, Hit, Qrels, Run, Span

WHOLE = Span(0, 1)
"""Stands for a whole document: TREC's files name documents and no part of them."""

_LARGEST_SCORE = float(np.finfo(np.float32).max)
_RUN_FORM = "query Q0 document rank score tag"
_QRELS_FORM = "query iteration document grade"


class TrecRun(NamedTuple):
    """A run file: the run, every document that it names at any depth, and queries whose ranks contradict scores.

    `n_tags` tags stand in it, of which the first names the run.
    """

    run: Run
    documents: frozenset[str]
    contradicted: tuple[str, ...]
    n_tags: int = 1


def read_trec_run(path: str | Path, *, depth: int = RUN_DEPTH) -> TrecRun:
    """Return the run in a TREC file (or standard input for "-"), each query's best `depth` documents by falling score.

    Ties are broken as trec_eval breaks them: scores are compared as 32-bit floats, so that 0.5 and 0.5 + 1e-9 tie, and
    of equal ones the greater document id in byte order comes first. Queries stand in order of appearance, and their
    lines need not stand together; the run's cell is the first line's tag and every hit's span is WHOLE. `contradicted`
    are queries in which a better rank has a lower score: trec_eval, as this, goes by scores. Raises InputError with
    file and line.
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    tag, tags, scores = "", set[bytes](), dict[str, dict[str, float]]()
    ranks: dict[str, array[int]] = {}

    def keep(line: bytes) -> None:
        nonlocal tag
        query_id, doc_id, rank, score, last = _run_line(line)
        of_query = scores.setdefault(query_id, {})
        if doc_id in of_query:
            raise ValueError(f"query {printable(query_id)} has {printable(doc_id)} twice. Keep one line")
        of_query[doc_id] = score
        ranks.setdefault(query_id, array("i")).append(rank)
        tag = tag or last.decode()
        tags.add(last)

    _read(path, _RUN_FORM, keep)
    hits, contradicted = {}, []
    for query_id, of_query in scores.items():
        # By rank, best first, and of one rank by score: a score that rises on the way down contradicts its rank.
        values = np.array(list(of_query.values()))
        by_rank = values[np.lexsort((-values, np.array(ranks[query_id])))]
        if (by_rank[1:] > by_rank[:-1]).any():
            contradicted.append(query_id)
        # As trec_eval orders: by the 32-bit score, then by the greater id.
        compared = values.astype(np.float32).tolist()
        ordered = sorted(zip(compared, of_query.items(), strict=True), reverse=True)
        hits[query_id] = tuple(Hit(doc_id, score, WHOLE) for _, (doc_id, score) in ordered[:depth])
    return TrecRun(Run(tag, hits), frozenset().union(*scores.values()), tuple(contradicted), len(tags))


def read_trec_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Return the grades in a qrels file (or standard input for "-"): query_id -> doc_id -> grade from 0.

    A negative grade marks a document that was not judged and leaves it out, which trec_eval's measures cannot tell
    from grade 0; a query that has no other grades keeps its place with none. Raises InputError with file and line.
    """
    qrels: dict[str, dict[str, int]] = {}

    def keep(line: bytes) -> None:
        query, _, document, grade = _columns(line, 4, _QRELS_FORM)
        keep_grade(qrels, query.decode(), document.decode(), grade.decode(errors="backslashreplace"))

    _read(path, _QRELS_FORM, keep)
    return graded(qrels)


def _read(path: str | Path, form: str, keep: Callable[[bytes], None]) -> None:
    """Hand every line of a file to `keep`; its ValueError becomes an InputError with file and line."""
    number = 0
    for number, line in numbered_lines(path):
        try:
            keep(line)
        except UnicodeDecodeError as error:
            raise InputError(f"{display(path)}:{number}: an id is not UTF-8. Save the file as UTF-8.") from error
        except ValueError as error:
            raise InputError(f"{display(path)}:{number}: {error}.") from error
    # A file without lines is a failed export rather than a run without hits.
    if not number:
        raise InputError(f"{display(path)} has no lines. Lines of {form!r} are expected.")


def _columns(line: bytes, expected: int, form: str) -> list[bytes]:
    fields = line.split()
    if len(fields) != expected:
        raise ValueError(f"{len(fields)} columns instead of {expected}. Lines of {form!r} are expected")
    return fields


def _run_line(line: bytes) -> tuple[str, str, int, float, bytes]:
    """Return query, document, rank, score and tag of a line; a ValueError says why it has none."""
    query, _, document, rank, score, tag = _columns(line, 6, _RUN_FORM)
    if not rank.isdigit() or len(rank) > 9:
        raise ValueError(f"the rank (column 4) is {_shown(rank)}, not a whole number")
    try:
        # Python would read 1_0 as 10.
        value = float(score) if b"_" not in score else math.nan
    except ValueError:
        value = math.nan
    # So turned round, the comparison catches nan as well.
    if not abs(value) <= _LARGEST_SCORE:
        raise ValueError(
            f"the score (column 5) is {_shown(score)}, not a number that a 32-bit float, as trec_eval has, can hold"
        )
    return query.decode(), document.decode(), int(rank), value, tag


def trec_run_bytes(run: Run) -> bytes:
    """Return the run as a TREC file that trec_eval reads back in the run's order; a query without hits has no line.

    Scores are the run's own where 32-bit floats and trec_eval's ties keep the order of every query, else all of them
    count down to 1 at the last rank. The tag is the cell's slug. Raises ValueError on an id or tag that is empty or has
    white space, and on a score that is not finite.
    """
    tag = _word(slug(run.cell))
    # All queries or none: scores of two scales in one file would mislead whoever compares them.
    own = all(_survives(hits) for hits in run.hits.values())
    lines = []
    for query_id, hits in run.hits.items():
        for rank, hit in enumerate(hits, start=1):
            score = repr(float(hit.score)) if own else str(len(hits) - rank + 1)
            lines.append(f"{_word(query_id)} Q0 {_word(hit.doc_id)} {rank} {score} {tag}\n")
    return "".join(lines).encode()


def trec_qrels_bytes(qrels: Qrels) -> bytes:
    """Return the grades as a qrels file, in their own order; one without any has no line. ValueError as for a run."""
    return "".join(
        f"{_word(query_id)} 0 {_word(doc_id)} {grade}\n"
        for query_id, grades in qrels.items()
        for doc_id, grade in grades.items()
    ).encode()


def _survives(hits: Sequence[Hit]) -> bool:
    """Return whether trec_eval's order of these scores is the order that the hits have."""
    scores = np.array([hit.score for hit in hits], np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("a score is not finite")
    if (np.abs(scores) > _LARGEST_SCORE).any():
        return False
    keys = list(zip(scores.astype(np.float32).tolist(), [hit.doc_id for hit in hits], strict=True))
    return all(first > second for first, second in pairwise(keys))


def _word(text: str) -> str:
    if not text or re.search(r"\s", text):
        raise ValueError(f"{text!r} is empty or has white space, which parts the columns of a TREC file")
    return text


def _shown(field: bytes) -> str:
    return printable(field.decode(errors="backslashreplace"), longest=40)
