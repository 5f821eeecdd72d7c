"""A source's row: all that the tool knows of it before it runs.

Modules and functions are named as text and imported on use, so that neither a reader nor HTTP is loaded with a command
line. Reading files, recognising and fetching them, sampling, plans, queries and the roster take what they need from
here. Only their feeds, which are functions over HTTP, have a table of their own, in `samplers/feeds/table.py`.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple


class KnownBy(NamedTuple):
    """Marks that tell a file of the source from those of others; see samplers.corpus.recognise.

    `roots` are local names of root elements, `identifiers` the first part of a USLM identifier ("usc" in
    /us/usc/t9/s1), `lines` regular expressions for what the publisher prints at the head of a file, `^` being the
    start of a line, `pdf_names` regular expressions for the names of PDFs.
    """

    roots: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    pdf_names: tuple[str, ...] = ()


class Unit(NamedTuple):
    """What a document of the source never exceeds, so that one that has swallowed others is known.

    `longest` is the length in characters, rounded up, of the longest that was read from real files, 0 for none.
    `number` is a regular expression for what only begins a document, at the start of a line: the group is its number,
    which the title of the document itself names.
    """

    longest: int = 0
    number: str = ""


class QueryKind(NamedTuple):
    """A kind of query as one source gets it: `weight` of 20, what its asker wants, and an example of no real document.

    The kinds themselves are in runner/queries/kinds.py. The weights are an author's reading of who uses a source and
    how, not counts of a query log; a set that follows them is at least not one kind of question asked 25 times.
    """

    kind: str
    weight: int
    wanted: str
    example: str


def query_kinds(**kinds: tuple[int, str, str]) -> tuple[QueryKind, ...]:
    """Return the kinds of a source by name, each with its weight, what is wanted and an example."""
    return tuple(QueryKind(kind, *row) for kind, row in kinds.items())


class ImportedDecision(NamedTuple):
    """A decision that was made elsewhere and whose artefacts are not in this repository."""

    version: int
    cell: str
    ndcg: float
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """One row of the roster.

    `trigger_order` is the place in the bulk-embed order, 0 for what is not a source of the substrate. `format` is the
    module that has the `FORMAT` of its files, or of another row, as `module:ROW`; a source without one names in
    `reader` the source whose files it has, by default itself. `elsewhere` says of a source without a feed where to
    look. `policy` is "evaluate", "baseline" (weak structure: the baseline ships unevaluated) or "external" (published
    qrels, compared and never decided). `reuses` is the sibling that the structural chunker was written for, "" for the
    source's own. `predicted_best` is by default the structural chunker. `corpus` is the embedded corpus, a path in the
    checkout, or "". `by_path` is of a source whose headings say where a passage stands, so that windows under their
    path are compared; `encoders` are compared besides those of every default plan. `evidence` are the characters of a
    longer document that a default plan shows a judge: as many as let 25 topics be judged for the ceiling of ten
    dollars. `note` says what an operator should know before anything else, `weakness` what no result of it can claim.
    `fields` are what a source of one's own names of its documents, None for a source of the roster.
    """

    name: str
    structural_chunker: str
    queries: tuple[QueryKind, ...]
    trigger_order: int = 0
    format: str = ""
    reader: str = ""
    known_by: KnownBy = field(default_factory=KnownBy)
    unit: Unit = field(default_factory=Unit)
    citation_heavy: bool = False
    by_path: bool = False
    encoders: tuple[str, ...] = ()
    policy: Literal["evaluate", "baseline", "external"] = "evaluate"
    reuses: str = ""
    imported: ImportedDecision | None = None
    elsewhere: str = ""
    note: str = ""
    weakness: str = ""
    predicted_best: str = ""
    baseline: str = "arctic-l-v2.0 x fixed_token_512_50"
    sample_size: int = 750
    evidence: int = 12_000
    corpus: str = ""
    fields: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "reader", self.reader or self.name)
        object.__setattr__(self, "predicted_best", self.predicted_best or self.structural_chunker)
