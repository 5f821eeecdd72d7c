"""The records that flow through the pipeline, frozen and validated on construction, and arithmetic of text spans."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from runner.base.canonical import digest
from runner.base.errors import InputError

if TYPE_CHECKING:  # names are looked up by commands that load no numpy
    import numpy as np
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"

PromptSide = Literal["query", "document"]
"""Which prompt an encoder applies."""

Verdict = Literal["pass", "fail", "insufficient"]
"""What a null gate says; "insufficient" if a clearly better engine would not have passed either."""

RecallState = Literal["shown not to fall", "open", "shown to fall"]
"""What is known of a mean of Recall@10: whether it falls by more than the rule allows."""

SCORE_UNIT = 1_000_000_000
"""Per-query scores are integers of 1e-9, so that sums, sign flips and ties are exact."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters start (included) to end (excluded) of a document's text; never empty."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"span {self.start}-{self.end} is empty or negative")


@dataclass(frozen=True, slots=True)
class Section:
    """A structural part of a document.

    `level` is 1 for the outermost rank a source has and grows inward; `kind` is the source's own word for it
    (division, title, section, paragraph, turn, ...); `label` is its heading as a reader would cite it, such as
    "Sec. 3. Grants", or "" where the source gives none.
    """

    span: Span
    level: int
    kind: str
    label: str


@dataclass(frozen=True)
class Document:
    """One document: the unit a user would open.

    `sections` are in text order (by start, longer first) and nested or disjoint. `family` groups versions of one
    text, of which a sample holds one, or parts of one whole, as the source has it. `stratum` is the sampling stratum,
    parts joined by "/". `status` says why no query should be written from this document ("repealed", "reserved",
    "short"), "" for one that is live; such documents are retrieved like others.
    """

    doc_id: str
    text: str
    title: str
    stratum: str
    family: str
    url: str
    sections: tuple[Section, ...] = ()
    status: str = ""

    def __post_init__(self) -> None:
        if not self.doc_id or re.search(r"\s", self.doc_id):
            raise ValueError(f"document id {self.doc_id!r} is empty or has white space")
        if not self.text.strip():
            raise ValueError(f"{self.doc_id}: the text is empty")
        if not unicodedata.is_normalized("NFC", self.text):
            raise ValueError(f"{self.doc_id}: the text is not NFC")
        # Sections are nested or disjoint: a stack holds the ends of those that are still open.
        enclosing: list[int] = []
        previous = (0, -len(self.text))
        for section in self.sections:
            start, end = section.span.start, section.span.end
            if end > len(self.text) or (start, -end) < previous:
                raise ValueError(f"{self.doc_id}: section {section.label!r} is out of order or past the text")
            while enclosing and enclosing[-1] <= start:
                enclosing.pop()
            if enclosing and end > enclosing[-1]:
                raise ValueError(f"{self.doc_id}: section {section.label!r} overlaps its neighbour")
            enclosing.append(end)
            previous = (start, -end)

    @cached_property
    def sha256(self) -> str:
        """Digest of everything a chunker can see: text, title and sections."""
        sections = [
            {"span": {"start": s.span.start, "end": s.span.end}, "level": s.level, "kind": s.kind, "label": s.label}
            for s in self.sections
        ]
        return digest({"text": self.text, "title": self.title, "sections": sections})


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document with the context that is embedded before it.

    `n_tokens` counts context and text in cl100k_base tokens of the whole document's tokenisation.
    """

    doc_id: str
    index: int
    span: Span
    context: str
    n_tokens: int

    def reading(self, document: Document) -> str:
        """Return what encoders and BM25 read: the context, a line break, the text; the text alone without context."""
        text = document.text[self.span.start : self.span.end]
        return f"{self.context}\n{text}" if self.context else text


@dataclass(frozen=True)
class Vectors:
    """Unit rows, float32 (n, dim), one per input text in input order.

    `n_tokens` and `n_lost` are int64 (n,): each text's tokens as the encoder counts them, prompt and special
    tokens included, and how many of them lie past its maximum and were never read. `facts` say where the rows were
    made: the device's full name, library versions; empty for no rows.
    """

    rows: "NDArray[np.float32]"
    n_tokens: Ints
    n_lost: Ints
    facts: Mapping[str, str] = field(default_factory=dict)


LANGUAGES: Mapping[str, str] = {
    "da": "danish",
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}
"""Languages beside English that BM25 is made for (`bm25@de`): each has a Snowball stemmer and stop words."""

_NAME = r"[a-z0-9][a-z0-9._-]*"
_BM25_NAME = rf"bm25(?:-okapi|-plain|@(?:{'|'.join(LANGUAGES)}))?"
_VARIANT = r"int8|bit|[1-9][0-9]{0,4}"


@dataclass(frozen=True, slots=True)
class DenseCell:
    """One encoder over one chunker's chunks.

    `variant` says what is searched in place of the whole float32 vectors: their first N dimensions ("256"), "int8"
    codes, or "bit" for signs with rescoring; "" for the vectors themselves.
    """

    encoder: str
    chunker: str
    variant: str = ""

    def __str__(self) -> str:
        stored = f"@{self.variant}" if self.variant else ""
        return f"{self.encoder}{stored} x {self.chunker}"


@dataclass(frozen=True, slots=True)
class BM25Cell:
    """A sparse cell; `variant` is a row of runner.retrieve.bm25.BM25_VARIANTS or bm25@LANGUAGE."""

    variant: str
    chunker: str

    def __str__(self) -> str:
        return f"{self.variant} x {self.chunker}"


@dataclass(frozen=True, slots=True)
class HybridCell:
    """BM25 with a dense arm over chunks: of the same chunks summed; of whole documents re-ranked, or fused by rank."""

    method: Literal["rerank", "rrf", "sum"]
    variant: str
    encoder: str
    chunker: str

    def __str__(self) -> str:
        if self.method == "rerank":
            return f"{self.variant}>{self.encoder} x {self.chunker}"
        return f"{self.method}({self.variant},{self.encoder}) x {self.chunker}"


@dataclass(frozen=True, slots=True)
class CrossCell:
    """BM25 over chunks, whose documents a cross-encoder re-ranks by reading query and best chunk together."""

    variant: str
    model: str
    chunker: str

    def __str__(self) -> str:
        return f"rerank({self.variant},{self.model}) x {self.chunker}"


IMPORTED = "trec"
"""What the name of an imported cell begins with."""


@dataclass(frozen=True, slots=True)
class ImportedCell:
    """Another system's ranking of documents, taken from a TREC run file; `name` is the file's tag as a slug."""

    name: str

    def __str__(self) -> str:
        return f"{IMPORTED}:{self.name}"


OwnCell = DenseCell | BM25Cell | HybridCell | CrossCell
"""A cell that this tool can run."""

WITHOUT_VECTORS = (BM25Cell, CrossCell)
"""The cells that need no encoder."""


def bm25_in(language: str) -> str:
    """BM25 as cells name it for a language, such as bm25@de for "german"."""
    return next(f"bm25@{code}" for code, name in LANGUAGES.items() if name == language)


def parse_cell(text: str) -> OwnCell:
    """Return the cell to run that a string names, never an imported one; `parse_cell(str(cell)) == cell`."""
    retriever, separator, chunker = text.strip().rpartition(" x ")
    if separator and re.fullmatch(_NAME, chunker):
        # BM25 first: its names would pass for those of encoders.
        if re.fullmatch(_BM25_NAME, retriever):
            return BM25Cell(retriever, chunker)
        if match := re.fullmatch(rf"({_BM25_NAME})>({_NAME})", retriever):
            return HybridCell("rerank", match[1], match[2], chunker)
        if match := re.fullmatch(rf"(rrf|sum)\(({_BM25_NAME}),({_NAME})\)", retriever):
            return HybridCell("rrf" if match[1] == "rrf" else "sum", match[2], match[3], chunker)
        if match := re.fullmatch(rf"rerank\(({_BM25_NAME}),({_NAME})\)", retriever):
            return CrossCell(match[1], match[2], chunker)
        if match := re.fullmatch(rf"({_NAME})(?:@({_VARIANT}))?", retriever):
            return DenseCell(match[1], chunker, match[2] or "")
    raise InputError(
        f"{text!r} is not a cell. Write 'ENCODER x CHUNKER', 'bm25 x CHUNKER', 'bm25>ENCODER x CHUNKER', "
        "'sum(bm25,ENCODER) x CHUNKER', 'rrf(bm25,ENCODER) x CHUNKER', 'rerank(bm25,MODEL) x CHUNKER', with @256, "
        "@int8 or @bit after a lone ENCODER if its vectors are stored so. "
        f"bm25@de is BM25 for German; others: {', '.join(sorted(LANGUAGES.keys() - {'de'}))}."
    )


HARVESTED = "harvested"
"""The origin of a query that somebody asked: of a log, or published."""

TRAFFIC = "traffic"
"""The origin of a query that `queries sample` drew from a log."""

ASKED = (HARVESTED, TRAFFIC)
"""Origins of queries that somebody asked; nobody wrote them for an evaluation."""

PERSON = "person"
"""The origin of a query that a person wrote for the evaluation."""


def by_model(origin: str) -> bool:
    """Return whether a language model wrote the queries of an origin, which is then the model's name."""
    return origin.casefold() not in (PERSON, *ASKED)


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved document, its score (a multiple of 1e-5, of 1e-9 in fused and summed runs), its best chunk's span.

    The record keeps the spans of a query's first EVIDENCE_DEPTH hits: of others that were read from it, it is None.
    """

    doc_id: str
    score: float
    span: Span | None


@dataclass(frozen=True, slots=True)
class Arms:
    """A document that either arm of a sum has among its first RUN_DEPTH, with its evidence (see Hit).

    `words` is the share of the most that BM25 could give, `meaning` the room above the dense floor: multiples of 1e-9
    from 0 to 1, None for an arm that lacks the document.
    """

    doc_id: str
    words: float | None
    meaning: float | None
    span: Span | None

    @property
    def hit(self) -> Hit:
        """The document as the sum has it: half of what both arms say, in whole steps of 1e-9."""
        steps = sum(round(half * SCORE_UNIT) for half in (self.words, self.meaning) if half is not None)
        return Hit(self.doc_id, steps // 2 / SCORE_UNIT, self.span)


@dataclass(frozen=True, slots=True)
class ChunkHit:
    """A retrieved chunk as one step of reading down a ranking: where it is, and how many tokens it costs."""

    doc_id: str
    span: Span
    n_tokens: int


@dataclass(frozen=True)
class Run:
    """A cell's final rankings: for every query at most 100 hits, best first, no document twice.

    The order is authoritative; a query without a hit is present with an empty tuple.
    """

    cell: str
    hits: Mapping[str, tuple[Hit, ...]]
    ranks: Mapping[str, Mapping[str, int]] = field(init=False, repr=False, compare=False)
    """Every query's documents in ranked order, each with its place, from 0."""

    def __post_init__(self) -> None:
        # A document that stands twice would keep its last place alone, so that the table is shorter than the list.
        ranks = {
            query_id: dict(zip([hit.doc_id for hit in hits], range(len(hits)), strict=True))
            for query_id, hits in self.hits.items()
        }
        for query_id, hits in self.hits.items():
            if len(ranks[query_id]) != len(hits):
                raise ValueError(f"{self.cell}: query {query_id} retrieves a document twice")
        object.__setattr__(self, "ranks", ranks)


@dataclass(frozen=True)
class Scores:
    """A cell's per-query values by measure, integers of 1e-9 in [0, 1e9], in the order of `query_ids`."""

    cell: str
    query_ids: tuple[str, ...]
    values: Mapping[str, tuple[int, ...]]

    def __post_init__(self) -> None:
        for measure, values in self.values.items():
            if len(values) != len(self.query_ids) or not all(0 <= v <= SCORE_UNIT for v in values):
                raise ValueError(f"{self.cell}: {measure} has a value outside [0, 1] or misses a query")


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, both ends included."""

    low: float
    high: float


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the same characters as disjoint spans in text order; spans that touch become one."""
    apart: list[Span] = []
    # In text order a span can only touch the one before it.
    for span in sorted(spans):
        if apart and span.start <= apart[-1].end:
            apart[-1] = Span(apart[-1].start, max(apart[-1].end, span.end))
        else:
            apart.append(span)
    return tuple(apart)


def n_characters(spans: Iterable[Span]) -> int:
    """Return how many characters disjoint spans hold."""
    return sum(span.end - span.start for span in spans)


def n_shared(left: Sequence[Span], right: Sequence[Span]) -> int:
    """Return how many characters lie in both; each side disjoint and in text order."""
    # Walk down both lists at once; whichever span ends first is done with.
    shared = i = j = 0
    while i < len(left) and j < len(right):
        shared += max(0, min(left[i].end, right[j].end) - max(left[i].start, right[j].start))
        if left[i].end <= right[j].end:
            i += 1
        else:
            j += 1
    return shared


RUN_DEPTH = 100
"""Documents kept per query, after every chunk was considered."""

EVIDENCE_DEPTH = 10
"""Documents of a query whose best chunk the record keeps: those that a page shows."""

READ_TOKENS = 8192
"""A reading list ends with the chunk that brings its tokens to this many."""

Reading = Mapping[str, tuple[ChunkHit, ...]]
"""For every query, the chunks that a reader of the ranking meets, best first."""

ArmLists = Mapping[str, tuple[Arms, ...]]
"""For every query of a sum, both arms' documents in the sum's order: the run has the first RUN_DEPTH of them."""


def arms_run(cell: str, lists: ArmLists) -> Run:
    """Return the run of a sum."""
    return Run(cell, {query_id: tuple(arms.hit for arms in found[:RUN_DEPTH]) for query_id, found in lists.items()})


Qrels = Mapping[str, Mapping[str, int]]
"""query_id -> doc_id -> grade."""
