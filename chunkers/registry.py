"""The chunkers by their versioned names."""

import re
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from inspect import signature
from typing import NamedTuple

from chunkers.contract import held_to_contract
from chunkers.fixed_path import fixed_path
from chunkers.fixed_token import fixed_token
from chunkers.recursive import recursive_v1
from chunkers.sections import by_section
from chunkers.speakers import speaker_turn
from chunkers.structural import BILLS, CODE, MARKDOWN, REGULATIONS, REPORTS
from chunkers.tokens import count_tokens
from chunkers.whole_doc import whole_doc
from runner.base.errors import InputError
from runner.base.plug_ins import Lent, PlugIn, plug_in
from runner.base.records import Chunk, Document

Chunker = Callable[[Document], list[Chunk]]
"""Chunks in text order, indices from 0; together they cover every character that is not white space."""


class Row(NamedTuple):
    """A chunker and the most tokens that a chunk of it has, context included; 0 for no limit."""

    cut: Callable[..., list[Chunk]]
    limit: int


CHUNKERS: dict[str, Row] = {
    "by_heading_v1": Row(partial(by_section, rules=MARKDOWN), limit=512),
    "fixed_path_192_20": Row(partial(fixed_path, size=192, overlap=20), limit=192),
    "fixed_path_256_25": Row(partial(fixed_path, size=256, overlap=25), limit=256),
    "fixed_path_512_50": Row(partial(fixed_path, size=512, overlap=50), limit=512),
    "fixed_token_256_25": Row(partial(fixed_token, size=256, overlap=25), limit=256),
    "fixed_token_512_50": Row(partial(fixed_token, size=512, overlap=50), limit=512),
    "fixed_token_1024_100": Row(partial(fixed_token, size=1024, overlap=100), limit=1024),
    "markdown_header_v1": Row(partial(by_section, rules=MARKDOWN), limit=512),
    "recursive_v1": Row(recursive_v1, limit=512),
    "section_aware_bills_v1": Row(partial(by_section, rules=BILLS), limit=512),
    "section_aware_committee_v1": Row(partial(by_section, rules=REPORTS), limit=512),
    "section_aware_fr_v1": Row(partial(by_section, rules=REGULATIONS), limit=512),
    "speaker_turn_v1": Row(speaker_turn, limit=2048),
    "usc_uslm_section_v1": Row(partial(by_section, rules=CODE), limit=512),
    "whole_doc": Row(whole_doc, limit=0),
}

NARROWED: dict[str, Row] = {
    re.sub(r"_(?=v\d+$)", f"_{most}_", name): Row(partial(row.cut, most=most), limit=most)
    for name, row in CHUNKERS.items()
    for most in (256, 512)
    if re.search(r"_v\d+$", name) and "most" in signature(row.cut).parameters
}
"""By a number before the version: the same boundaries, each chunk cut further at what an encoder of so many reads.

Of every chunker that takes `most`, the tokens of that encoder; 0 cuts no further.
"""

BUILT_IN = (*CHUNKERS, *NARROWED)

BARE = "-bare"
"""Suffix for the same boundaries without context, to measure what context adds."""


def chunker(name: str) -> Chunker:
    """Return the chunker of that name, with or without "-bare"; an InputError names the nearest one.

    One of a plug-in keeps the contract, or its cut is an InputError.
    """
    cut = _row(name).cut
    return partial(_without_context, cut) if name.endswith(BARE) else cut


def plugged(name: str) -> PlugIn | None:
    """Return the plug-in that brings that chunker, with or without "-bare"; None if it is built in or unknown."""
    base = name.removesuffix(BARE)
    return None if base in BUILT_IN else plug_in("chunkers", base)


def limit_of(name: str) -> int:
    """Return the most tokens of a chunk by that chunker, with or without "-bare"; 0 for no limit."""
    return _row(name).limit


def uncut(name: str) -> str:
    """Return the chunker whose boundaries and rules that one has, without "-bare" and any cut at an encoder's limit."""
    base = name.removesuffix(BARE)
    return re.sub(r"_\d+(?=_v\d+$)", "", base) if base in NARROWED else base


def cut_at(name: str, most: int) -> str:
    """Return the chunker as it cuts for an encoder that reads so many tokens, 0 for any number; itself if it must not.

    >>> cut_at("section_aware_bills_v1", 256), cut_at("section_aware_bills_v1", 8192)
    ('section_aware_bills_256_v1', 'section_aware_bills_v1')
    """
    if not most or most >= limit_of(name):
        return name
    fitting = {row.limit: other for other, row in NARROWED.items() if uncut(other) == name and row.limit <= most}
    return fitting[max(fitting)] if fitting else name


def _row(name: str) -> Row:
    base = name.removesuffix(BARE)
    # The product's own names win over a plug-in's.
    if base in BUILT_IN:
        return CHUNKERS[base] if base in CHUNKERS else NARROWED[base]
    if found := plugged(name):
        row = found.load()
        if not isinstance(row, Row):
            raise found.wrong("is not a Row of chunkers.registry")
        if isinstance(found, Lent):  # what it cuts was looked at when it was lent
            return row
        return row._replace(cut=partial(held_to_contract, of=found, cut=row.cut, limit=row.limit))
    # A typing error is the usual cause, or a size that there is not: then all there are get named.
    without_sizes = partial(re.sub, r"(?<=_)\d+", "")
    near = [each for each in BUILT_IN if without_sizes(each) == without_sizes(base) != base]
    near = near or get_close_matches(base, BUILT_IN, n=1)
    hint = f"; did you mean {' or '.join(repr(each + name[len(base) :]) for each in near)}?" if near else "."
    raise InputError(
        f"There is no chunker {name!r}{hint} Chunkers: {', '.join(CHUNKERS)}, each also with {BARE}; most "
        "of them also cut further, such as section_aware_bills_256_v1. One of your own takes a few lines: a "
        "row of chunkers/registry.py, or an installed package (docs/chunking.md#adding-a-chunker)."
    )


def _without_context(cut: Chunker, document: Document) -> list[Chunk]:
    return [
        replace(chunk, context="", n_tokens=chunk.n_tokens - count_tokens(chunk.context)) for chunk in cut(document)
    ]
