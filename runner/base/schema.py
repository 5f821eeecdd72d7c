"""Checking a file against its schema, naming every problem at its place, and the types of value that schemas share."""

import reprlib
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from runner.base.errors import InputError


class FrozenModel(BaseModel):
    """A frozen model that refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Sparse(FrozenModel):
    """A strict model that leaves out fields which still have their default, so that files without them stay valid."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        values: dict[str, Any] = written(self)
        return {
            name: value
            for name, value in values.items()
            if fields[name].is_required() or getattr(self, name) != fields[name].get_default(call_default_factory=True)
        }


Model = TypeVar("Model", bound=FrozenModel)


def checked(model: type[Model], value: object, where: str | Path) -> Model:
    """`value` as a `model`; an InputError names the place and every field that is wrong."""
    _check_schema_version(model, value, where)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InputError(f"{where}: {'; '.join(problems(error))}.") from error


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
    return shape.model_validate(record.model_dump(include=set(shape.model_fields)))


def problems(error: ValidationError) -> list[str]:
    """Return one line a wrong field: its place, what is wrong, what was found."""
    rows = []
    for problem in error.errors(include_url=False):
        field_path = ".".join(str(part) for part in problem["loc"]) or "the whole"
        rows.append(f"{field_path}: {problem['msg'][0].lower()}{problem['msg'][1:]} (found {_short(problem['input'])})")
    return rows


def _short(value: object) -> str:
    # reprlib looks at the first few items alone: a file of YAML aliases can stand for more text than there is memory.
    text = reprlib.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

Share = Annotated[float, Field(ge=0, le=1)]

Count = Annotated[int, Field(ge=0)]

Ends = Annotated[list[float], Field(min_length=2, max_length=2)]
"""Low and high end of an interval."""
