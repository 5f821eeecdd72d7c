"""The shape of queries.yaml."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import FrozenModel


class QueryRow(FrozenModel):
    """One query of queries.yaml."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
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
