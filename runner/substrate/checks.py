"""What is wrong with a substrate before anything is searched: findings with stable names, always in one order.

Those of the full-text index hold that every chunk is in it, as it reads now, cut by the expected tokenizer.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from runner.base.given_files import printable
from runner.base.records import Document
from runner.retrieve.bm25 import lucene_tokens
from runner.substrate.database import Substrate, json_array
from runner.substrate.search import match_expression
from runner.substrate.shapes import CoverageResult, FindingResult, chunk_names, finding, note
from runner.substrate.tables import FTS_COLUMNS
from runner.substrate.texts import Cut, chunks_finding, coverage, outside_finding, read_texts, text_findings
from runner.substrate.vectors import Embed, Model, embedded_again, jobs_finding, model_finding, vector_findings

SAMPLE = 200
"""Chunks whose words are looked up in the index."""

RAREST = 3
"""Words of each that are looked up: the ones in the fewest chunks."""

CANARIES: dict[str, tuple[str, str]] = {
    "inflection": ("The Secretary may award grants to States.", "grant"),
    "section number": ("payments under section 1396a of title 42", "1396a"),
    "section number printed with an en dash": ("an issuer subject to section 78dd–1 of title 15", "78dd-1"),
    "hyphenated word": ("coverage of long-term care", "long term"),
    "case": ("THE SECRETARY OF AGRICULTURE", "secretary"),
    "stop word": ("the Act of the State", "the"),
    "accent": ("El Niño and its effects", "nino"),
}
"""A text and a search for it."""


def fts_findings(substrate: Substrate, chunk_ids: Sequence[int], tokenizer: str, seed: int) -> Iterator[FindingResult]:
    """The three findings on the index."""
    indexed, known = {row[0] for row in substrate.rows("SELECT id FROM {docsize}")}, set(chunk_ids)
    yield finding(
        "FTS rows missing",
        chunk_names(sorted(known ^ indexed)),
        len(known | indexed),
        "rows are in the chunk table and not in the full-text index, or in the index alone",
    )
    yield tokenizer_finding(substrate.tokenizer, tokenizer)
    yield _stale(substrate, np.array(sorted(known & indexed), np.int64), seed)


def tokenizer_finding(declared: str, expected: str) -> FindingResult:
    """Whether the index is cut as expected, by name and by the CANARIES that the harness' BM25 finds."""
    finds = {name: (_bm25_finds(*pair), _fts5_finds(declared, *pair)) for name, pair in CANARIES.items()}
    lost = [name for name, (ours, theirs) in finds.items() if ours and not theirs]
    gained = [name for name, (ours, theirs) in finds.items() if theirs and not ours]
    other = _normal(declared) != _normal(expected)
    said = [f"The index is cut by {printable(declared)!r}{f', not by {printable(expected)!r}' if other else ''}."]
    if lost:
        said.append(f"Unlike the harness' BM25 it does not find: {', '.join(lost)}.")
    if gained:
        said.append(f"Unlike the harness' BM25 it finds: {', '.join(gained)}.")
    examples = [f"{CANARIES[name][1]!r} does not find {CANARIES[name][0]!r}" for name in lost]
    wrong = len(lost) + other
    return note("FTS tokenizer mismatch", wrong, len(CANARIES) + 1, " ".join(said), examples, fault=wrong > 0)


def _stale(substrate: Substrate, ids: NDArray[np.int64], seed: int) -> FindingResult:
    """Whether a sample of chunks drawn by `seed` is found by its own rarest words and has as many as the index says.

    The number shows words that are gone; it is compared if the index has the columns FTS_COLUMNS and no others.
    """
    columns = substrate.rows("SELECT name FROM pragma_table_info(?)", (substrate.layout.fts,))
    countable = tuple(name for (name,) in columns) == FTS_COLUMNS
    generator = np.random.default_rng(np.random.PCG64(seed))
    bindings = (json_array(np.sort(generator.choice(ids, min(SAMPLE, len(ids)), replace=False)).tolist()),)
    rows = substrate.rows(
        "SELECT chunk_id, context, text FROM {chunks} WHERE chunk_id IN (SELECT value FROM json_each(?))", bindings
    )
    held = dict(substrate.rows("SELECT id, sz FROM {docsize} WHERE id IN (SELECT value FROM json_each(?))", bindings))
    words, sizes = _cut(substrate.tokenizer, list(rows))
    counts: dict[str, int] = {}
    for term in {term for terms in words.values() for term in terms}:
        found = list(substrate.rows("SELECT doc FROM {terms} WHERE term = ?", (term,)))
        counts[term] = found[0][0] if found else 0
    examples = []
    for chunk_id in sorted(words):
        rarest = sorted(words[chunk_id], key=lambda term: (counts[term], term))[:RAREST]
        unfound = [term for term in rarest if not _in_index(substrate, term, chunk_id)]
        if unfound:
            examples.append(f"chunk {chunk_id}: its word {printable(unfound[0])!r} does not find it")
        elif countable and held.get(chunk_id) != sizes[chunk_id]:
            examples.append(f"chunk {chunk_id}: the index counts other words")
    return finding(
        "FTS index stale",
        examples,
        len(words),
        "chunks tried are not in the full-text index as they read now",
        "keyword search answers from text that is gone",
    )


def _in_index(substrate: Substrate, term: str, chunk_id: int) -> bool:
    query = "SELECT 1 FROM {places} WHERE term = ? AND doc = ? LIMIT 1"
    return bool(list(substrate.rows(query, (term, chunk_id))))


def _cut(tokenizer: str, rows: Sequence[tuple[Any, ...]]) -> tuple[dict[int, set[str]], dict[int, bytes]]:
    """The distinct words of each row (chunk_id, then FTS_COLUMNS), and its counts of words as FTS5 stores them."""
    words: dict[int, set[str]] = {row[0]: set() for row in rows}
    with _fts5(tokenizer, FTS_COLUMNS) as connection:
        connection.executemany("INSERT INTO probe(rowid, context, text) VALUES (?, ?, ?)", rows)
        connection.execute("CREATE VIRTUAL TABLE places USING fts5vocab(probe, instance)")
        for term, chunk_id in connection.execute("SELECT term, doc FROM places"):
            words[chunk_id].add(term)
        return words, dict(connection.execute("SELECT id, sz FROM probe_docsize"))


def _fts5_finds(tokenizer: str, text: str, query: str) -> bool:
    with _fts5(tokenizer, ("text",)) as connection:
        connection.execute("INSERT INTO probe VALUES (?)", (text,))
        found = connection.execute("SELECT 1 FROM probe WHERE probe MATCH ?", (match_expression(query),))
        return bool(list(found))


@contextmanager
def _fts5(tokenizer: str, columns: Sequence[str]) -> Iterator[apsw.Connection]:
    """A database in memory whose table `probe` is cut by the tokenizer."""
    quoted = tokenizer.replace("'", "''")
    connection = apsw.Connection(":memory:")
    try:
        connection.execute(f"CREATE VIRTUAL TABLE probe USING fts5({', '.join(columns)}, tokenize = '{quoted}')")
        yield connection
    finally:
        connection.close()


def _bm25_finds(text: str, query: str) -> bool:
    words, wanted = lucene_tokens([text, query])
    return not set(words).isdisjoint(wanted)


def _normal(tokenizer: str) -> str:
    """The tokenizer's declaration in one form: "porter" alone wraps unicode61."""
    words = tokenizer.lower().split()
    return "porter unicode61" if words == ["porter"] else " ".join(words)


@dataclass(frozen=True, slots=True)
class Expected:
    """What the substrate should be; `version` is None if none was recorded, `cut` holds the documents' chunks."""

    model_id: str
    model_version: str
    cut: Cut
    version: str | None = None
    tokenizer: str = "porter unicode61"


@dataclass(frozen=True, slots=True)
class Checks:
    """Every finding, also those with nothing to say, in the order of the checks; and the coverage."""

    findings: tuple[FindingResult, ...]
    coverage: CoverageResult

    @property
    def faults(self) -> tuple[FindingResult, ...]:
        """The findings that are faults."""
        return tuple(finding for finding in self.findings if finding.fault)


def check_substrate(
    substrate: Substrate,
    documents: Sequence[Document],
    expected: Expected,
    *,
    embed: Embed | None = None,
    seed: int = 0,
) -> Checks:
    """Every finding about the source's tables, against the eval set's archived documents.

    Tables are read row by row; of chunks, ids and places alone stay in memory. `embed` embeds a sample of chunks
    again, drawn by `seed`; without it that finding is left out.
    """
    texts = read_texts(substrate, documents)
    covered, lacking = coverage(texts, documents)

    def findings() -> Iterator[FindingResult]:
        model = Model(expected.model_id, expected.model_version)
        chunk_ids = [row[0] for row in substrate.rows("SELECT chunk_id FROM {chunks}")]
        yield _version(substrate, expected.version)
        yield model_finding(substrate, model)
        yield jobs_finding(substrate, model)
        yield from vector_findings(substrate, chunk_ids)
        if embed is not None:
            yield embedded_again(substrate, embed, seed)
        yield from text_findings(texts, lacking, documents)
        left_out = texts.changed.keys() | lacking.keys()
        yield chunks_finding(substrate, documents, expected.cut, left_out=left_out)
        yield outside_finding(substrate, documents)
        yield from fts_findings(substrate, chunk_ids, expected.tokenizer, seed)

    return Checks(tuple(findings()), covered)


def _version(substrate: Substrate, expected: str | None) -> FindingResult:
    """A note if the substrate's version is not the one expected."""
    other = expected is not None and substrate.version != expected
    unlike = f", not {printable(str(expected))!r}" if other else ""
    return note(
        "substrate version", int(other), 1, f"The substrate's version is {printable(substrate.version)!r}{unlike}."
    )
