"""What is wrong with a substrate before anything is searched: findings with stable names, always in one order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from runner.base.given_files import printable
from runner.base.records import Document
from runner.retrieve.engine.database import Substrate
from runner.substrate.full_text import fts_findings
from runner.substrate.shapes import CoverageResult, FindingResult, note
from runner.substrate.texts import Cut, chunks_finding, coverage, outside_finding, read_texts, text_findings
from runner.substrate.vectors import (
    Embed,
    Model,
    embedded_again,
    jobs_finding,
    model_finding,
    read_vectors,
    vector_findings,
)


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
        chunk_ids = np.array([row[0] for row in substrate.rows("SELECT chunk_id FROM {chunks}")], np.int64)
        vectors = read_vectors(substrate)
        yield _version(substrate, expected.version)
        yield model_finding(substrate, model)
        yield jobs_finding(substrate, model, vectors.ids, chunk_ids)
        yield from vector_findings(substrate, vectors, chunk_ids)
        if embed is not None:
            yield embedded_again(substrate, vectors.ids, embed, seed)
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
