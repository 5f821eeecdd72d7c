"""The chunkers by their versioned names."""

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches

from chunkers.fixed_token import fixed_token_256_25, fixed_token_512_50, fixed_token_1024_100
from chunkers.recursive import recursive_v1
from chunkers.speakers import speaker_exchange_v1, speaker_turn_v1
from chunkers.structural import (
    markdown_header_v1,
    section_aware_bills_v1,
    section_aware_committee_v1,
    section_aware_fr_v1,
    usc_uslm_section_v1,
)
from chunkers.tokens import count_tokens
from chunkers.whole_doc import whole_doc
from runner.base.errors import InputError
from runner.base.records import Chunk, Document

Chunker = Callable[[Document], list[Chunk]]
"""Chunks in text order, indices from 0; together they cover every character that is not white space."""

CHUNKERS: dict[str, Chunker] = {
    "fixed_token_256_25": fixed_token_256_25,
    "fixed_token_512_50": fixed_token_512_50,
    "fixed_token_1024_100": fixed_token_1024_100,
    "markdown_header_v1": markdown_header_v1,
    "recursive_v1": recursive_v1,
    "section_aware_bills_v1": section_aware_bills_v1,
    "section_aware_committee_v1": section_aware_committee_v1,
    "section_aware_fr_v1": section_aware_fr_v1,
    "speaker_exchange_v1": speaker_exchange_v1,
    "speaker_turn_v1": speaker_turn_v1,
    "usc_uslm_section_v1": usc_uslm_section_v1,
    "whole_doc": whole_doc,
}

LIMITS: dict[str, int] = {
    "fixed_token_256_25": 256,
    "fixed_token_512_50": 512,
    "fixed_token_1024_100": 1024,
    "markdown_header_v1": 512,
    "recursive_v1": 512,
    "section_aware_bills_v1": 512,
    "section_aware_committee_v1": 512,
    "section_aware_fr_v1": 512,
    "speaker_exchange_v1": 2048,
    "speaker_turn_v1": 2048,
    "usc_uslm_section_v1": 512,
}
"""The most tokens of a chunk, context included; a chunker that is not here has no limit."""

BARE = "-bare"
"""Suffix for the same boundaries without context, to measure what context adds."""


def chunker(name: str) -> Chunker:
    """The chunker of that name, with or without "-bare"; an InputError names the nearest one."""
    base = name.removesuffix(BARE)
    if base not in CHUNKERS:
        near = get_close_matches(base, CHUNKERS, n=1)
        hint = f"; did you mean {near[0] + name[len(base) :]!r}?" if near else "."
        raise InputError(f"There is no chunker {name!r}{hint} Chunkers: {', '.join(CHUNKERS)}, each also with {BARE}.")
    return CHUNKERS[base] if name == base else _without_context(CHUNKERS[base])


def limit_of(name: str) -> int:
    """The most tokens of a chunk by that chunker, with or without "-bare"; 0 for no limit."""
    return LIMITS.get(name.removesuffix(BARE), 0)


def _without_context(with_context: Chunker) -> Chunker:
    def bare(document: Document) -> list[Chunk]:
        return [
            replace(chunk, context="", n_tokens=chunk.n_tokens - count_tokens(chunk.context))
            for chunk in with_context(document)
        ]

    return bare
