"""The shape of lists.json.bz2: ranked lists with their judgments."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import Count, FrozenModel, Sparse
from runner.eval_set.shapes.labels import CharacterSpan, Grade

Cause = Literal["fusion", "copies", "unread", "below", "absent"]
"""Why a relevant document is not among a cell's first ten; `runner.decide.misses` says when each holds."""


class ListedDocument(FrozenModel):
    """A document that some query lists; `title` is empty if texts are not ours to show."""

    doc_id: str
    url: str
    title: str


class FurtherReading(FrozenModel):
    """What a later reading of the pair said; it is not scored."""

    judge: str
    model: str
    round: Annotated[int, Field(ge=1)]
    grade: Grade
    reason: str


class ShownPassage(FrozenModel):
    """Characters of a document, and what stands there."""

    start: Count
    end: Count
    text: str


class PairShown(FrozenModel):
    """A document for one query: its scored judgment, `grade` null if there is none.

    `document` is the place in `RankedLists.documents`; `spans` are the characters that the judge marked; `passages`
    are those that the page shows, none if texts are not ours to show.
    """

    document: Count
    grade: int | None
    judge: str
    reason: str
    spans: list[CharacterSpan]
    readings: list[FurtherReading]
    passages: list[ShownPassage]


class QueryLists(Sparse):
    """One query: its documents, highest grade first, and every cell's hits down to the depth shown.

    A hit is [place in this query's `documents`, start, end] of the evidence that ranked it, and below rank
    EVIDENCE_DEPTH [place]. A relevant document is there though no cell lists it, unless the collection lacks it:
    `relevant` counts those too, as Recall does.
    """

    id: str
    relevant: Count
    documents: list[PairShown]
    hits: Annotated[
        dict[str, list[Annotated[list[Count], Field(min_length=1, max_length=3)]]],
        Field(description="by cell: [place in this query's `documents`, start, end], below rank 10 [place]"),
    ]
    missed: dict[str, dict[Cause, list[Count]]] = Field(
        default_factory=dict, description="relevant documents that are not among a cell's first ten, by cause"
    )
    halves: dict[str, list[Annotated[list[float], Field(min_length=2, max_length=2)]]] = Field(
        default_factory=dict,
        description="of each hit of a sum: [share of the words, room of the meaning], 0 for neither",
    )
    scores: dict[str, list[float]] = Field(
        default_factory=dict, description="of the first hits of the cells that the page shows, with texts alone"
    )
    unlisted: dict[str, int] = Field(
        default_factory=dict, description="grades above 0 of documents that are not in `documents`, with texts alone"
    )


class RankedLists(FrozenModel):
    """lists.json.bz2: every query's lists down to `depth`; `texts` says whether titles and passages are with them."""

    schema_version: Literal[1] = 1
    depth: Annotated[int, Field(ge=1)]
    texts: bool
    documents: list[ListedDocument]
    queries: list[QueryLists]
