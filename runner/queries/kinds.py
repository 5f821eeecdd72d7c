"""The kinds of query, and how many of each a source's queries should have, by the weights of its row."""

from collections.abc import Mapping, Sequence

from samplers.source import QueryKind

WANTED_HAND = 8
WANTED_GENERATED = 17
"""Of 25: spec, task t3, brought up to criterion 1."""

KINDS: Mapping[str, str] = {
    "citation": "names what it looks for: a number, a section, a short title, a docket",
    "quote": "a half-remembered phrase in quotation marks, to find where it stands",
    "attribution": "who said, asked or promised something, with the person or office named",
    "topic": "a subject as somebody who works on it would put it",
    "paraphrase": "a subject as a layman would put it, who knows none of its terms",
    "authority": "who may, must or must not do something, and by whose leave",
    "definition": "what a term means, or who and what counts as something",
    "deadline": "by when, from when, for how long",
    "amount": "how much: money, a rate, a limit, a number of people",
    "comparison": "how two things, versions or years differ",
}
"""The known kinds and what each is; another kind is allowed and reported."""


def expected(kinds: Sequence[QueryKind], n_queries: int) -> dict[str, float]:
    """Return how many of `n_queries` would be of each kind, were they spread as a source's weights say."""
    total = sum(kind.weight for kind in kinds)
    return {kind.kind: n_queries * kind.weight / total for kind in kinds}


def whole_shares(kinds: Sequence[QueryKind], n_queries: int) -> dict[str, int]:
    """Return `expected` in whole queries that sum to `n_queries`: those with the largest remainders are rounded up."""
    wanted = expected(kinds, n_queries)
    shares = {kind: int(share) for kind, share in wanted.items()}
    lacking = n_queries - sum(shares.values())
    for kind in sorted(wanted, key=lambda kind: shares[kind] - wanted[kind])[:lacking]:
        shares[kind] += 1
    return shares
