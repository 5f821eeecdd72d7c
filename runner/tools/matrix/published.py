"""Published values that the matrix sets beside its own, from one data file: matrix/published.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from runner.base.errors import InputError
from runner.base.given_files import display, printable, read_yaml
from runner.base.schema import Share, Strict, checked
from runner.tools.matrix.runs import Dataset, Measure

_FIELDS = {"schema_version", "sources", "values"}

Text = Annotated[str, Field(min_length=1, max_length=600, pattern=r"\S")]
Url = Annotated[str, Field(max_length=300, pattern=r"^https://[A-Za-z0-9._~/%#?=&:+@-]+$")]


class Source(Strict):
    """Where values come from.

    A "reference run" was measured with another implementation over the same files and is published nowhere. `read_in`
    is where the values were read; null says that they are second-hand. `unlike` says what is not as in our run.
    """

    title: Text
    url: Url | None
    kind: Literal["published", "reference run"]
    configuration: Text
    read_in: Text | None
    unlike: Text | None


class Value(Strict):
    """One value. `system` is the cell that it is set beside, or a name of its own.

    Without a `tolerance` it is only shown. `reason` is the cause that was found where ours differs by more.
    """

    dataset: Dataset
    system: Text
    measure: Measure
    value: Share
    tolerance: Annotated[float, Field(gt=0, le=0.1)] | None
    source: Text
    reason: Text | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """The values in file order, and their sources by name."""

    sources: Mapping[str, Source]
    values: tuple[Value, ...]


def load_published(path: Path) -> Published:
    """What the file holds; an InputError names the row and the field that is wrong, or a value that is given twice."""
    where, document = display(path), read_yaml(path)
    if not isinstance(document, dict) or set(document) != _FIELDS or document["schema_version"] != 1:
        raise InputError(f"{where}: {', '.join(sorted(_FIELDS))} are expected, and schema_version is 1.")
    given, rows = document["sources"], document["values"]
    if not isinstance(given, dict) or not isinstance(rows, list):
        raise InputError(f"{where}: `sources` is a mapping of names, `values` is a list.")
    sources = {
        str(name): checked(Source, row, f"{where}: source {printable(str(name))}") for name, row in given.items()
    }
    values = [checked(Value, row, f"{where}: {_name(row, number)}") for number, row in enumerate(rows, start=1)]
    _check_rows(values, sources, where)
    return Published(sources, tuple(values))


def _check_rows(values: list[Value], sources: Mapping[str, Source], where: str) -> None:
    places: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(values, start=1):
        if row.source not in sources:
            raise InputError(
                f"{where}: {_name(row.model_dump(), number)}: there is no source {printable(row.source)!r}."
            )
        first = places.setdefault((row.dataset, row.system, row.measure, row.source), number)
        if first != number:
            raise InputError(
                f"{where}: {_name(row.model_dump(), number)}: row {first} has a value from the same source. Keep one."
            )


def _name(row: object, number: int) -> str:
    fields = [row.get(field) for field in ("dataset", "system", "measure")] if isinstance(row, dict) else []
    about = ", ".join(field for field in fields if isinstance(field, str))
    return f"row {number}" + (f" ({printable(about)})" if about else "")
