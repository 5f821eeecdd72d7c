"""How far the judges of a version agree; templates/sentences/judges.j2 says it in words."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from runner.base.records import Ints, Run
from runner.eval_set.shapes.judges import Judging, Readers, SecondJudge
from runner.eval_set.shapes.labels import Label, undated
from runner.eval_set.shapes.plan import Plan
from runner.judge.agreement.by_cell import favours
from runner.judge.agreement.double_graded import Double, doubles, drifts, repeats
from runner.judge.agreement.kappa import confusion, estimates


def judge_agreement(labels: Iterable[Label], runs: Mapping[str, Run], query_ids: Iterable[str], plan: Plan) -> Judging:
    """Return what the labels of these queries say of the judges; no entries if no pair was read more than once.

    `runs` are those whose first ten are told apart; without the baseline among them nothing is said by cell.
    """
    known = set(query_ids)
    rows = [label for label in labels if label.query_id in known]
    pairs = {(label.query_id, label.doc_id) for label in rows if label.round == 1}
    twice = doubles(rows)
    read = Counter(double.second_judge for double in twice)
    judges = sorted(read, key=lambda judge: (-read[judge], judge))
    return Judging(
        pairs=len(pairs),
        read_twice=len({(double.query_id, double.doc_id) for double in twice}),
        seconds=[_second([d for d in twice if d.second_judge == judge], runs, plan) for judge in judges],
        drift=drifts(repeats(rows), seed=plan.significance.seed),
        noise=None,
    )


def _second(twice: Sequence[Double], runs: Mapping[str, Run], plan: Plan) -> SecondJudge:
    by_query = _by_query(twice)
    settings = plan.significance
    compared = runs if plan.baseline in runs else {}
    kappa, binary = estimates(
        by_query, plan.relevant_grade, seed=plan.bootstrap.seed, confidence=plan.bootstrap.confidence
    )
    by_cell = favours(twice, compared, plan.baseline, alpha=settings.alpha, seed=settings.seed) if compared else []
    return SecondJudge(
        judge=twice[0].second_judge,
        models=sorted({double.second_model for double in twice} - {""}),
        readers=_readers(twice),
        first_judges=sorted({double.first_judge for double in twice}),
        pairs=len(twice),
        queries=len(by_query),
        same=sum(double.first == double.second for double in twice),
        kappa=kappa,
        binary=binary,
        by_cell=by_cell,
    )


def _readers(twice: Sequence[Double]) -> Readers:
    if not all(double.first_model and double.second_model for double in twice):
        return "people"
    is_one = all(undated(double.first_model) == undated(double.second_model) for double in twice)
    return "one model" if is_one else "models"


def _by_query(twice: Sequence[Double]) -> dict[str, Ints]:
    grades: dict[str, list[tuple[int, int]]] = {}
    for double in twice:
        grades.setdefault(double.query_id, []).append((double.first, double.second))
    return {query_id: confusion(found) for query_id, found in grades.items()}
