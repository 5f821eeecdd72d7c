"""The shape of queries.yaml."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import FrozenModel

QueryId = Annotated[str, Field(pattern=r"^[^\s\x00-\x1f\x7f-\x9f]+$")]
"""Any text without white space and control characters: public collections name queries as they like."""


Origin = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$")]
"""Who wrote a query: `person`, the name of the language model, `traffic` or `harvested` for one that somebody asked."""


class QueryRow(FrozenModel):
    """An information need; `kind` is citation, topic, paraphrase, quote, ..., and `by_model` reads `origin`."""

    id: QueryId
    text: Annotated[str, Field(pattern=r"\S")]
    kind: Annotated[str, Field(min_length=1)]
    origin: Origin
    source_document: str = ""
    stratum: str = ""
    note: str = ""


class Queries(FrozenModel):
    """queries.yaml."""

    schema_version: Literal[1]
    queries: list[QueryRow]
