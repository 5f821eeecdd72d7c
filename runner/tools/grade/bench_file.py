"""A bench as people bring it: one JSON object per line, and a pool of the ids that could have been retrieved.

Every id becomes a string without white space around it: 1, "1" and the line "1 " of a text pool are one id.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from runner.base.errors import InputError
from runner.base.given_files import decoded, display, numbered_lines, parsed
from runner.base.schema import FrozenModel, checked

DEFAULT_REL = 3
_MAX_REL = (1 << 31) - 1

_ROW = 'a row such as {"retrieved": ["A", "B", "C"], "gold": "A", "rel": 3}'
_HINT = f"Write {_ROW}."


def _as_text(value: object) -> object:
    if isinstance(value, str):
        value.encode()  # a ValueError for half of a surrogate pair, which is no text
        return value.strip()
    return str(value) if type(value) is int else value


Item = Annotated[str, BeforeValidator(_as_text), Field(min_length=1, max_length=1_000)]
"""An id; a whole number stands for its digits, and white space around it is no part of it."""


class Row(FrozenModel):
    """One query of a bench; fields of other names are passed over."""

    model_config = ConfigDict(extra="ignore")

    retrieved: list[Item]
    gold: Item
    rel: Annotated[int, Field(ge=0, le=_MAX_REL)] = DEFAULT_REL
    stratum: Item | None = None


class _Pool(FrozenModel):
    """The ids of a pool."""

    pool: Annotated[list[Item], Field(min_length=1)]


@dataclass(frozen=True)
class Bench:
    """A bench as columns, one entry per query: ids best first, the right id, its grade, its stratum or None."""

    retrieved: list[list[str]]
    gold: list[str]
    rel: list[int]
    strata: list[str] | None


def read_bench(path: str | Path) -> Bench:
    """Return the bench in a JSONL file, or on standard input for "-"; at least one row.

    `rel` is 3 if a row has none, `stratum` stands in every row or in none. An empty `retrieved` and an id twice in it
    are the gate's to judge; InputError with file and line for all else.
    """
    rows = []
    for number, line in numbered_lines(path):
        where = f"{display(path)}:{number}"
        rows.append(checked(Row, parsed(decoded(line, where), where, _HINT), where))
        # Half a column of strata would put the others' queries into a stratum of nobody.
        if (rows[-1].stratum is None) != (rows[0].stratum is None):
            raise InputError(f"{where}: a stratum stands in every row or in none, and the rows above differ from this.")
    if not rows:
        raise InputError(f"{display(path)} has no rows. One JSON object a line is expected: {_ROW}.")
    strata = [row.stratum for row in rows if row.stratum is not None]
    return Bench([row.retrieved for row in rows], [row.gold for row in rows], [row.rel for row in rows], strata or None)


def read_pool(path: str | Path) -> list[str]:
    """Return the ids of a pool in the order of the file: one per line, or a JSON array if it begins with [.

    InputError on an empty pool, and on anything that is no id.
    """
    name = display(path)
    lines = [decoded(line, f"{name}:{number}").strip() for number, line in numbered_lines(path)]
    if lines and lines[0].startswith("["):
        ids = parsed("\n".join(lines), name, "A pool that begins with [ is an array of ids.")
    else:
        ids = [line for line in lines if line]
    if not ids:
        raise InputError(f"{name} is an empty pool. Write every id that could have been retrieved, one a line.")
    return checked(_Pool, {"pool": ids}, name).pool
