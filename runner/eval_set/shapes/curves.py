"""The shape of recall by rank and by tokens read."""

from typing import Annotated

from pydantic import Field

from runner.base.schema import Strict


class RecallPoint(Strict):
    """A mean over the queries, with its interval, at a rank or at so many tokens."""

    at: Annotated[int, Field(ge=1)]
    mean: float
    low: float
    high: float


class RecallCurve(Strict):
    """The share of relevant documents among the first ranks, and among what the first tokens reach.

    `by_tokens` is null for a cell without a reading list.
    """

    by_rank: Annotated[list[RecallPoint], Field(min_length=1)]
    by_tokens: list[RecallPoint] | None
