"""The shape of queries.yaml."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic_core import PydanticCustomError

from runner.base.schema import FrozenModel

Wording = Literal["", "plain", "paraphrased"]
"""How a topic is asked: in its one wording, or in one of two."""

WORDINGS: tuple[Wording, ...] = ("plain", "paraphrased")
"""Of a topic in two: as people type it, and in household words, without names, numbers and terms of the trade."""

LITERAL_KINDS = frozenset({"citation", "quote", "attribution"})
"""Kinds whose askers know words of the document, and so have one wording."""

QueryId = Annotated[str, Field(pattern=r"^[^\s\x00-\x1f\x7f-\x9f]+$")]
"""Any text without white space and control characters: public collections name queries as they like."""


Origin = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$")]
"""Who wrote a query: `person`, the name of the language model, `traffic` or `harvested` for one that somebody asked."""

Text = Annotated[str, Field(pattern=r"\S")]


class QueryRow(FrozenModel):
    """A topic: an information need with one set of grades, asked as `text`, or as `plain` and as `paraphrased`.

    `kind` is citation, topic, paraphrase, quote, ..., and `by_model` reads `origin`.
    """

    id: QueryId
    text: Text | None = None
    plain: Text | None = None
    paraphrased: Text | None = None
    kind: Annotated[str, Field(min_length=1)]
    origin: Origin
    source_document: str = ""
    stratum: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _worded(self) -> Self:
        """Raise unless there is one wording or two, as its kind allows, and the id is none of a wording."""
        trouble = ""
        if [self.text is None, self.plain is None, self.paraphrased is None] not in ([0, 1, 1], [1, 0, 0]):
            trouble = "write either text, or both plain and paraphrased"
        elif self.text is None and self.kind in LITERAL_KINDS:
            trouble = f"of the kind {self.kind}, whose askers know the words: write text in place of two wordings"
        elif self.kind in WORDINGS:
            trouble = f"of the kind {self.kind}, which is the name of a wording: call it otherwise"
        elif self.id.endswith(tuple(f".{wording}" for wording in WORDINGS)):
            trouble = "an id that ends as those of wordings do (.plain, .paraphrased): give it another"
        if trouble:
            raise PydanticCustomError("wording", "{trouble}", {"trouble": trouble})
        return self

    @model_serializer(mode="wrap")
    def _as_asked(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the wordings that there are not."""
        return {name: value for name, value in written(self).items() if value is not None}

    @property
    def wordings(self) -> dict[Wording, str]:
        """What is asked, by wording: "" alone, or "plain" and "paraphrased"."""
        if self.text is not None:
            return {"": self.text}
        return {"plain": self.plain or "", "paraphrased": self.paraphrased or ""}

    @property
    def said(self) -> str:
        """The wording that stands for the topic where there is room for one: as people type it."""
        return next(iter(self.wordings.values()))

    @property
    def in_full(self) -> str:
        """Every wording, as a judge reads the topic."""
        return "; in other words: ".join(self.wordings.values())


class Queries(FrozenModel):
    """queries.yaml."""

    schema_version: Literal[1]
    queries: list[QueryRow]
