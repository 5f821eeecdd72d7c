"""What a check of queries finds, as --json prints it."""

from typing import Literal

from runner.base.schema import FrozenModel

Severity = Literal["error", "warning"]
Rule = Literal[
    "same id",
    "same text",
    "same words",
    "similar words",
    "same meaning",
    "too few",
    "spread",
    "unknown kind",
    "wording",
    "copied",
    "close to documents",
    "quotation",
    "no document",
    "status",
    "too easy",
    "impossible",
]


class Finding(FrozenModel):
    """One thing to mend (error) or to look at (warning); `queries` are the ids that it is about."""

    severity: Severity
    rule: Rule
    queries: list[str]
    message: str


class CheckedQuery(FrozenModel):
    """One query and how it stands to its source document; None if that cannot be said.

    `overlap` is the share of its content words that the document holds, `distinctive` the share that gives the document
    away, `shared` these words. Ranks are over the sample, 0 below the first 100; `no_word` if BM25 can never find it.
    """

    file: str
    id: str
    text: str
    kind: str
    origin: str
    source_document: str
    title: str
    url: str
    overlap: float | None
    distinctive: float | None
    shared: list[str]
    bm25_rank: int | None
    no_word: bool
    encoder_rank: int | None
    flags: list[Rule]


class OriginMeans(FrozenModel):
    """How near queries of one origin are to their documents; asked freely is all but the literal kinds."""

    origin: str
    queries: int
    overlap: float | None
    overlap_asked_freely: float | None
    distinctive: float | None


class KindCount(FrozenModel):
    """Queries of a kind, and how many there would be by the source's shape; None for a kind that it does not have."""

    kind: str
    queries: int
    expected: float | None


class QueryReport(FrozenModel):
    """Everything that a check found; `skipped` says what was not checked and why, "" for nothing."""

    schema_version: Literal[1]
    source: str
    version: int
    files: list[str]
    queries: list[CheckedQuery]
    origins: list[OriginMeans]
    kinds: list[KindCount]
    findings: list[Finding]
    skipped: str

    @property
    def errors(self) -> list[Finding]:
        """What must be mended."""
        return [finding for finding in self.findings if finding.severity == "error"]
