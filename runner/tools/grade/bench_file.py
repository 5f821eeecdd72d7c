"""A bench as people bring it: one JSON object per line, and a pool of the ids that could have been retrieved.

Every id becomes a string without white space around it: 1, "1" and the line "1 " of a text pool are one id.
"""

from dataclasses import dataclass
from pathlib import Path

from runner.base.canonical import JSON
from runner.base.errors import InputError
from runner.base.given_files import decoded, display, numbered_lines, parsed, printable, quoted

DEFAULT_REL = 3
_MAX_REL = (1 << 31) - 1

_ROW = 'a row such as {"retrieved": ["A", "B", "C"], "gold": "A", "rel": 3}'


@dataclass(frozen=True)
class Bench:
    """A bench as columns, one entry per query: ids best first, the right id, its grade, its stratum or None."""

    retrieved: list[list[str]]
    gold: list[str]
    rel: list[int]
    strata: list[str] | None


def read_bench(path: str | Path) -> Bench:
    """The bench in a JSONL file, or on standard input for "-"; at least one row.

    `rel` is 3 if a row has none, `stratum` stands in every row or in none, other fields are ignored. An empty
    `retrieved` and an id twice in it are the gate's to judge; InputError with file and line for all else.
    """
    retrieved, gold, rel = [], [], []
    strata: list[str] = []
    for number, line in numbered_lines(path):
        where = f"{display(path)}:{number}"
        row = _row(line, where)
        retrieved.append([item_id(item, f"{where}: retrieved") for item in _items(row, where)])
        gold.append(item_id(_field(row, "gold", where), f"{where}: gold"))
        rel.append(_grade(row.get("rel", DEFAULT_REL), where))
        if "stratum" in row:
            strata.append(item_id(row["stratum"], f"{where}: stratum"))
        if len(strata) not in (0, len(gold)):
            raise InputError(f"{where}: a stratum stands in every row or in none, and the rows above differ from this.")
    if not gold:
        raise InputError(f"{display(path)} has no rows. One JSON object a line is expected: {_ROW}.")
    return Bench(retrieved, gold, rel, strata or None)


def read_pool(path: str | Path) -> list[str]:
    """The ids of a pool in the order of the file, repeated ones too: one per line, or a JSON array if it begins with [.

    InputError on an empty pool, and on anything that is no id, with file and line or position.
    """
    name = display(path)
    lines = [(number, decoded(line, f"{name}:{number}").strip()) for number, line in numbered_lines(path)]
    if lines and lines[0][1].startswith("["):
        items = parsed("\n".join(line for _, line in lines), name, "A pool that begins with [ is an array of ids.")
        ids = [item_id(item, f"{name}: item {place}") for place, item in enumerate(items, start=1)]
    else:
        ids = [line for _, line in lines if line]
    if not ids:
        raise InputError(f"{name} is an empty pool. Write every id that could have been retrieved, one a line.")
    return ids


def item_id(value: JSON, where: str) -> str:
    """An id as a string, from a string or a whole number; InputError says at `where` that it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"{where}: {quoted(value)} is not an id. Ids are strings or whole numbers.")
    if not value.strip():
        raise InputError(f"{where}: an id is empty. Leave it out, or name the document.")
    if not value.isascii():
        _check_unicode(value, where)
    return value.strip()


def _grade(value: JSON, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_REL:
        raise InputError(f"{where}: rel is {quoted(value)}, not a whole number from 0. Correct it or leave it out.")
    return value


def _row(line: bytes, where: str) -> dict[str, JSON]:
    row = parsed(decoded(line, where), where, f"Write {_ROW}.")
    if not isinstance(row, dict):
        raise InputError(f"{where}: {quoted(row)} is not a JSON object. Write {_ROW}.")
    return row


def _field(row: dict[str, JSON], name: str, where: str) -> JSON:
    if name not in row:
        found = printable(", ".join(row)) or "no fields"
        raise InputError(f"{where}: the field {name!r} is missing, found {found}. Write {_ROW}.")
    return row[name]


def _items(row: dict[str, JSON], where: str) -> list[JSON]:
    items = _field(row, "retrieved", where)
    if not isinstance(items, list):
        raise InputError(f"{where}: retrieved is {quoted(items)}, not a list of ids, best first. Write it in [ ].")
    return items


def _check_unicode(value: str, where: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: {quoted(value)} has half of a surrogate pair, so it is no text.") from error
