"""Made-up predictors whose verdict is known: a gate that fails the oracle or passes a cheater decides nothing."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from runner.base.records import Ints
from runner.eval_set.shapes.gate import ControlResult
from runner.gate.graded_gate import GradedGate
from runner.gate.nulls import GradedSet, Predictor, answers_of, as_rankings
from runner.gate.qrels_table import DEPTH

_CHANCE = 0.001


def controls(gate: GradedGate, document_chunks: Mapping[str, int]) -> list[ControlResult]:
    """The predictors through the gate of an eval set: the oracle must pass, those of the nulls must not.

    "oracle" returns the documents by grade; the others ignore the query and stand in the rows of the nulls that catch
    them, the plainest first. Those that are drawn may pass as often as chance lets them: more passes than `bound` have
    a probability of at most 0.001. "insufficient" is not a pass.
    """
    cheaters = {name: make for null in reversed(gate.nulls) for name, make in null.controls.items()}
    predictors: dict[str, Predictor] = {"oracle": _oracle, **cheaters}
    found = (_result(gate, name, make(gate.graded), document_chunks) for name, make in predictors.items())
    return [one for one in found if one.draws]


def most_by_chance(draws: int, share: float) -> int:
    """The least number that so many independent draws exceed with a probability of at most 0.001."""
    more = 0.0
    for count in range(draws, 0, -1):
        more += math.comb(draws, count) * share**count * (1 - share) ** (draws - count)
        if more > _CHANCE:
            return count
    return 0


def _result(gate: GradedGate, name: str, runs: Iterable[Ints], document_chunks: Mapping[str, int]) -> ControlResult:
    trials = [gate.trial(run, document_chunks) for run in runs]
    draws, passes = len(trials), sum(passed for _, passed in trials)
    honest = name == "oracle"
    bound = most_by_chance(draws, gate.alpha) if draws > 1 else int(honest)
    return ControlResult(
        name=name,
        expected="pass" if honest else "fail",
        mean=sum(score for score, _ in trials) / max(draws, 1),
        draws=draws,
        passes=passes,
        bound=bound,
        behaves=passes >= bound if honest else passes <= bound,
    )


def _oracle(of: GradedSet) -> list[Ints]:
    """Each query's graded documents by grade, then doc_id, and others of the corpus down to the tenth place."""
    answers = answers_of(of)
    lists = []
    for own in answers:
        graded = own[own >= 0]
        others = np.setdiff1d(of.corpus[: DEPTH + len(graded)], graded)
        lists.append(np.concatenate((graded, others))[:DEPTH])
    return [as_rankings(lists)]
