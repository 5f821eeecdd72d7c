"""Made-up predictors whose verdict is known: a gate that fails the oracle or passes a cheater decides nothing."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from runner.base.records import Ints
from runner.eval_set.shapes.gate import ORACLE, ControlResult
from runner.gate.gate import Gate
from runner.gate.nulls import Predictor, Trials

_CHANCE = 0.001


def controls(gate: Gate, document_chunks: Mapping[str, int]) -> list[ControlResult]:
    """Return the predictors' results through the gate of an eval set: the oracle must pass, those of nulls must not.

    "oracle" returns the documents by grade; the others ignore the query and stand in the rows of the nulls that catch
    them, the plainest first. Those that are drawn may pass as often as chance lets them: more passes than `bound` have
    a probability of at most 0.001. "insufficient" is not a pass.
    """
    # The nulls stand in order of telling; their cheaters from the plainest on.
    cheaters = {name: make for null in reversed(gate.nulls) for name, make in null.controls.items()}
    predictors: dict[str, Predictor] = {ORACLE: _oracle, **cheaters}
    chunks = gate.bench.column(document_chunks)
    return [_result(gate, name, make(gate.trials), chunks) for name, make in predictors.items()]


def most_by_chance(draws: int, share: float) -> int:
    """Return the least number that so many independent draws exceed with a probability of at most 0.001."""
    more = 0.0
    for count in range(draws, 0, -1):
        more += math.comb(draws, count) * share**count * (1 - share) ** (draws - count)
        if more > _CHANCE:
            return count
    return 0


def _result(gate: Gate, name: str, runs: Iterable[Ints], chunks: Ints) -> ControlResult:
    trials = [gate.trial(rankings, chunks) for rankings in runs]
    draws, passes = len(trials), sum(passed for _, passed in trials)
    bound = most_by_chance(draws, gate.alpha) if draws > 1 else int(name == ORACLE)
    mean = sum(score for score, _ in trials) / draws
    return ControlResult(name=name, mean=mean, draws=draws, passes=passes, bound=bound)


def _oracle(trials: Trials) -> list[Ints]:
    """Return each query's graded documents by grade, then doc_id, and others of the corpus down to the last place."""
    bench = trials.bench
    lists = []
    for own in bench.perfect():
        graded = own[own >= 0]
        # Down to the last rank with documents that nobody graded.
        others = np.setdiff1d(bench.corpus[: bench.depth + len(graded)], graded)
        lists.append(np.concatenate((graded, others))[: bench.depth])
    return [bench.lists(lists)]
