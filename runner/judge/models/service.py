"""JSON as a service sent it, which may be anything."""

import json
from typing import NoReturn

from runner.base.canonical import JSON

DEEPEST = 50
"""Lists and objects within one another; no answer needs a tenth of it."""


class Unreadable(Exception):
    """An answer that cannot be used; it may have been charged."""


def received(text: str) -> JSON:
    """What a text of JSON holds; Unreadable for no JSON, and for what could not be written down again.

    That is NaN, what overflows to infinity, half a surrogate pair, and what is nested deeper than DEEPEST.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Unreadable("the answer is not JSON") from None
    if not _is_shallow(value, DEEPEST):
        raise Unreadable("the answer is nested too deep")
    return value


def _is_shallow(value: JSON, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in items)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")
