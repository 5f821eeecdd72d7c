"""What is wrong with a run, by its rankings and by the null gate, in a sentence that names the likely defect."""

from collections import Counter
from collections.abc import Sequence

from runner.base.figures import gain_text, p_text, round4
from runner.base.records import Run
from runner.eval_set.asked import topic_of
from runner.eval_set.shapes.gate import GateVerdict, NullResult
from runner.gate.nulls import BY_NAME
from runner.score.score import DISCOUNTS

_MANY = 0.5

_NAMED = 5
"""Queries without a relevant document that are named."""

_BLIND = 0.65
"""Share of blind queries that is named: over real sets engines have 0 to 0.4, a static table of words up to 0.58."""

NOTHING_FOUND = (
    "no query gets a relevant document among its first ten: scores may be sorted worst first, or the index may hold "
    "vectors under the ids of other documents"
)


def diagnosis(run: Run, gate: GateVerdict, blind: float, alpha: float, unanswered: Sequence[str] = ()) -> str:
    """Return a sentence on the run and on what the gate says of it; "" if nothing is wrong.

    If it does not pass, queries without a relevant document come first, and if they are half of all or more, nothing is
    guessed. Else it begins with the `cause`; then come how many queries are blind (`Gate.blind`) if they are many,
    every null that failed, or where none did, those that could not decide.
    """
    failed, empty = _failed(gate, alpha), _empty(run, unanswered) if gate.verdict != "pass" else ""
    n_topics = len({topic_of(query_id) for query_id in run.hits})
    guess = sameness(run) if 2 * len(unanswered) >= n_topics else cause(run, gate, alpha)
    parts = [empty, guess, "" if sameness(run) else blind_queries(gate, blind, len(run.hits))]
    if failed:
        figures = ", ".join(f"{null.name} (p {p_text(null.p)}, delta {gain_text(null.delta)})" for null in failed)
        parts.append(f"the run fails {figures}")
    elif gate.verdict == "insufficient":
        parts.append(_undecided(gate, alpha))
    said = "; ".join(filter(None, parts))
    return f"{said}." if said else ""


def cause(run: Run, gate: GateVerdict, alpha: float) -> str:
    """Return what the run shows, else what the most telling failure points at, in a clause; "" if there is neither.

    A run shows by itself, whether the gate passes or not, the same documents for half of the queries or more.
    """
    failed = _failed(gate, alpha)
    if (alike := sameness(run)) or not failed:
        return alike
    return _likely(_most_telling(failed, alpha), alpha) if gate.real else NOTHING_FOUND


def _empty(run: Run, unanswered: Sequence[str]) -> str:
    """Return a clause on the queries without a relevant document; "" if there are none."""
    if not unanswered:
        return ""
    n_topics = len({topic_of(query_id) for query_id in run.hits})
    named = ", ".join(unanswered[:_NAMED]) + (", ..." if len(unanswered) > _NAMED else "")
    verb = "has" if len(unanswered) == 1 else "have"
    return f"{len(unanswered)} of {n_topics} queries {verb} no relevant document ({named}), so that they say nothing"


def _failed(gate: GateVerdict, alpha: float) -> list[NullResult]:
    """Return the nulls that failed, and one of the order alone if even chance does better, whatever its verdict."""
    worse = [null for null in gate.nulls if BY_NAME[null.name].p_alone and _is_worse(null, alpha)]
    return [null for null in gate.nulls if null.verdict == "fail" or null in worse]


def sameness(run: Run) -> str:
    """Return a clause on the commonest list if half of the queries or more get it in any order, "" otherwise."""
    # Lists are compared whole: one document of difference is another list.
    lists = Counter(frozenset(hit.doc_id for hit in hits[: len(DISCOUNTS)]) for hits in run.hits.values())
    documents, n_alike = lists.most_common(1)[0]
    n_queries = len(run.hits)
    if n_queries < 2 or n_alike < _MANY * n_queries:
        return ""
    everybody = n_alike == n_queries
    who = "every query gets" if everybody else f"{n_alike} of {n_queries} queries get"
    if not documents:
        return f"{who} no document at all: nothing was retrieved"
    what = "document" if len(documents) == 1 else f"{len(documents)} documents"
    where = "" if everybody else "there "
    return f"{who} the same {what}: {where}the retriever ignores the query"


def blind_queries(gate: GateVerdict, blind: float, n_queries: int) -> str:
    """Return a clause on the queries that other queries' lists serve as well, if they are many; else ""."""
    if blind < _BLIND or not gate.real:
        return ""
    n_blind = round(blind * n_queries)
    return (
        f"about {n_blind} of {n_queries} queries get lists that serve them no better than other queries' lists do: "
        "there the retriever ignores the query, or finds nothing for it"
    )


def _most_telling(failed: Sequence[NullResult], alpha: float) -> NullResult:
    """Return the first failure; but an order worse than chance explains the constant lists' failures, not they it."""
    if BY_NAME[failed[0].name].likely_if_worse:
        return failed[0]
    worse = (null for null in failed if BY_NAME[null.name].likely_if_worse and _is_worse(null, alpha))
    return next(worse, failed[0])


def _is_worse(null: NullResult, alpha: float) -> bool:
    return round4(null.p) >= 1 - alpha and round4(null.delta) < 0


def _likely(null: NullResult, alpha: float) -> str:
    worse = _is_worse(null, alpha)
    how = "better than" if worse else "as well as" if round4(null.p) > alpha else "almost as well as"
    row = BY_NAME[null.name]
    return f"{row.found.format(how=how)}: {(worse and row.likely_if_worse) or row.likely}"


def _undecided(gate: GateVerdict, alpha: float) -> str:
    names = ", ".join(null.name for null in gate.nulls if null.verdict == "insufficient")
    return (
        f"a clearly better engine would not have passed {names} either at p {alpha:g}: too few draws, or too few "
        "queries whose judgments differ"
    )
