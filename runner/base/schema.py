"""Checking a file against its schema, naming every problem at its place, and the types of value that schemas share."""

import reprlib
from collections.abc import Sequence
from functools import cache
from math import isnan
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer
from pydantic_core import ErrorDetails

from runner.base.errors import InputError


class FrozenModel(BaseModel):
    """A frozen model that refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Sparse(FrozenModel):
    """A strict model that leaves out fields which still have their default, so that files without them stay valid."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        defaults = _defaults(type(self))
        values: dict[str, Any] = written(self)
        return {
            name: value
            for name, value in values.items()
            if name not in defaults or getattr(self, name) != defaults[name]
        }


@cache
def _defaults(model: type[Sparse]) -> dict[str, Any]:
    """Return the default of each field that has one; pydantic looks at the signature of a factory at every call."""
    fields = model.model_fields.items()
    return {name: field.get_default(call_default_factory=True) for name, field in fields if not field.is_required()}


MOST_NAMED = 5
"""Items of a list, and wrong fields of one, that a message names; of more, how many is enough."""

WHOLE = "the whole"
_FIELDS = "no fields (`name: value`)"
_WRONG = {
    "missing": "missing",
    "extra_forbidden": "not a known field",
    "model_type": _FIELDS,
    "model_attributes_type": _FIELDS,
    "dict_type": _FIELDS,
    "list_type": "not a list",
    "string_type": "not text",
    "int_type": "not a whole number",
    "int_from_float": "not a whole number",
    "float_type": "not a number",
    "bool_type": "neither true nor false",
    "finite_number": "not a finite number",
    "literal_error": "only {expected} is possible",
    "greater_than": "not above {gt}",
    "greater_than_equal": "below {ge}",
    "less_than": "not below {lt}",
    "less_than_equal": "above {le}",
    "string_too_short": "empty",
    "too_short": "fewer than {min_length} items",
    "too_long": "more than {max_length} items",
    "string_pattern_mismatch": "not {form}",
}
"""What is wrong with a field, by pydantic's name for it; its own sentences are for programmers."""

_FORMS = {
    r"\S": "text; write some",
    r"^[^\s\x00-\x1f\x7f-\x9f]+$": "an id, which has no white space",
    r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$": "a name in letters, digits and . _ : / @ -",
    r"^[0-9a-f]{64}$": "a SHA-256",
    r"^\w[\w -]{0,59}$": "the name of a field: letters, digits, _, - and blanks",
}
"""Patterns in words."""

Model = TypeVar("Model", bound=FrozenModel)


def checked(model: type[Model], value: object, where: str | Path) -> Model:
    """`value` as a `model`; an InputError names the place and every field that is wrong."""
    _check_schema_version(model, value, where)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        rows = row_problems(error, value)
        said = f" {rows[0]}." if len(rows) == 1 else "".join(f"\n  - {row}" for row in rows)
        raise InputError(f"{where}:{said}") from error


def _check_schema_version(model: type[FrozenModel], value: object, where: str | Path) -> None:
    """Raise one InputError for a file of another release, since any of its fields may be wrong."""
    field = model.model_fields.get("schema_version")
    stated = value.get("schema_version") if isinstance(value, dict) else None
    if field is None or not isinstance(stated, int) or stated in get_args(field.annotation):
        return
    expected = " or ".join(map(str, get_args(field.annotation)))
    raise InputError(
        f"{where} is of schema version {stated}, and this release reads {expected}. Make it again with this release, "
        "or read it with the one that wrote it."
    )


def part(shape: type[Model], record: FrozenModel) -> Model:
    """Return a record of the shape, with those fields that it has of a larger one."""
    return shape.model_validate({name: getattr(record, name) for name in shape.model_fields}, from_attributes=True)


def field_problems(error: ValidationError) -> list[str]:
    """Return one line a wrong field: its place, what is wrong, what was found."""
    rows = error.errors(include_url=False)
    return [f"{'.'.join(map(str, row['loc'])) or WHOLE}: {_wrong(row)}" for row in rows]


def row_problems(error: ValidationError, value: object) -> list[str]:
    """Return one line an item of a list, by its id, with each of its wrong fields; of many the first and a count."""
    items: dict[str, list[str]] = {}
    for row in error.errors(include_url=False):
        # An item begins after the last number: "queries.3.kind" is the kind of queries.3.
        place = list(row["loc"])
        n_item = max((at for at, part in enumerate(place, start=1) if isinstance(part, int)), default=0)
        item = _name(value, place[:n_item])
        field = ".".join(map(str, place[n_item:]))
        items.setdefault(item if place else WHOLE, []).append(f"{field}: {_wrong(row)}" if field else _wrong(row))
    return _first([": ".join(filter(None, [item, "; ".join(_first(wrong))])) for item, wrong in items.items()])


def _first(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_NAMED
    return lines if more <= 0 else [*lines[:MOST_NAMED], f"and {more} more"]


def _name(value: object, place: Sequence[int | str]) -> str:
    """Return what people call an item: its place, and its id if it has one."""
    try:
        for part in place:
            value = value[part]  # type: ignore[index]
    except (LookupError, TypeError):  # a place that pydantic names and the file has not
        value = None
    path = ".".join(map(str, place))
    name = value.get("id") if isinstance(value, dict) else None
    return f"{path} ({_short(name)})" if isinstance(name, str) and path else path


def _wrong(row: ErrorDetails) -> str:
    """Return what is wrong with a field, in words of our own, and what was found there."""
    value = row["input"]
    found = "" if row["type"] == "missing" else f" (found {_short(value)})"
    words, limits = _WRONG.get(row["type"]), row.get("ctx", {})
    if words is None:  # one of ours
        return f"{row['msg'][0].lower()}{row['msg'][1:]}{found}"
    if isinstance(value, float) and isnan(value):  # it is beyond every limit
        return f"{_WRONG['float_type']}{found}"
    pattern = str(limits.get("pattern"))
    return words.format_map({**limits, "form": _FORMS.get(pattern, f"of the form {pattern}")}) + found


def _short(value: object) -> str:
    # reprlib looks at the first few items alone: a file of YAML aliases can stand for more text than there is memory.
    text = reprlib.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

Share = Annotated[float, Field(ge=0, le=1)]

Count = Annotated[int, Field(ge=0)]

Ends = Annotated[list[float], Field(min_length=2, max_length=2)]
"""Low and high end of an interval."""
