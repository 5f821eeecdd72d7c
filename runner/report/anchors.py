"""Where on a results page a query is: the part of an address after #."""

SECTIONS = frozenset(
    [
        "differences",
        "ranking",
        "queries",
        "tests",
        "recall",
        "passages",
        "cost",
        "gate",
        "judges",
        "pool",
        "slices",
        "scale",
        "previous",
        "corpus",
        "chunks",
        "cells",
        "limits",
        "reproduce",
        "receipt",
        "lists",
        "help",
        "top",
        "hatch",
    ]
)
"""The page's own anchors; further ones have a hyphen after one of these words, or are captions."""


def anchor(query_id: str) -> str:
    """The query's id itself where it can be no anchor of the page's own, else with a word before it.

    >>> anchor("q12"), anchor("cost"), anchor("12"), anchor("gate-caption"), anchor("query-1")
    ('q12', 'query-cost', '12', 'query-gate-caption', 'query-query-1')
    """
    first = query_id.partition("-")[0]
    return f"query-{query_id}" if first in SECTIONS or first == "query" or query_id.endswith("-caption") else query_id
