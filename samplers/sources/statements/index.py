"""The index files of the archive of Statements of Administration Policy: what they say about each statement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from runner.base.errors import DocumentError
from samplers.sources.statements.head import LISTED, measure_of

MAX_BYTES = 5_000_000
MAX_DEPTH = 6
"""Lists and mappings inside one another; an index has three. libyaml's composer overflows the stack at 30,000."""

Key = tuple[str, str, str]
"""Congress, date as YYYY-MM-DD, and a measure as govinfo writes it, such as "hr115"."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What an index says of a statement: where it was published, "" if it does not say, and if it was taken back."""

    url: str
    rescinded: bool


def read_index(data: bytes, name: str) -> dict[Key, Entry]:
    """The entries of an index, one for each measure that a statement is about; the first of a key wins.

    Rows without congress, date or measures say nothing that can be used. DocumentError for what is no YAML list.
    """
    rows = _plain_yaml(data, name)
    if not isinstance(rows, list):
        raise DocumentError(name, "an index is a list of statements")
    entries: dict[Key, Entry] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            continue
        entry = Entry(_text(row, "fetched_from_url"), row.get("rescinded") is True)
        measures = row.get("bills")
        for measure in measures if isinstance(measures, list) else []:
            listed = LISTED.match(str(measure).lower())
            if key := measure_of(listed) if listed else "":
                entries.setdefault((_text(row, "congress"), _text(row, "date_issued"), key), entry)
    return entries


def _plain_yaml(data: bytes, name: str) -> object:
    if len(data) > MAX_BYTES:
        raise DocumentError(name, f"an index of {len(data) / 1e6:.0f} MB; the limit is {MAX_BYTES // 1_000_000} MB")
    try:
        depth = 0
        for event in yaml.parse(data, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
                raise DocumentError(name, "an index has plain values: no aliases, no tags, no deep nesting")
        rows: object = yaml.load(data, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(name, f"not YAML ({' '.join(str(error).split())[:120]})") from error
    return rows


def _text(row: Mapping[Any, Any], key: str) -> str:
    """A value as one line; dates and numbers as YAML wrote them."""
    value = row.get(key)
    return " ".join(str(value).split()) if value is not None and not isinstance(value, list | dict) else ""
