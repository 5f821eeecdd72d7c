"""The shape of queries.yaml."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import FrozenModel

QueryId = Annotated[str, Field(pattern=r"^[^\s\x00-\x1f\x7f-\x9f]+$")]
"""Any text without white space and control characters: public collections name queries as they like."""


class QueryRow(FrozenModel):
    """One query of queries.yaml."""

    id: QueryId
    text: Annotated[str, Field(pattern=r"\S")]
    kind: Annotated[str, Field(min_length=1)]
    origin: Literal["hand", "generated", "harvested"]
    source_document: str = ""
    stratum: str = ""
    note: str = ""


class Queries(FrozenModel):
    """queries.yaml."""

    schema_version: Literal[1]
    queries: list[QueryRow]
