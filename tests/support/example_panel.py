"""What stands beside the scores in results.json: judges, marked passages, a version before. Figures invented."""

from runner.eval_set.shapes.judges import (
    CellFavour,
    CellUnderJudge,
    Estimate,
    JudgeDrift,
    JudgeNoise,
    Judging,
    MissedByList,
    NoisyCell,
    SecondJudge,
    SourceDocuments,
    SourceFound,
)
from runner.eval_set.shapes.paired import Difference, SpanRecall, SpanResult
from runner.eval_set.shapes.versions import Compared, Kept, PreviousVersion

FIRST, SECOND = "judge-model-1", "judge-model-2"
MODEL = "judge-model-2-2026"


def second_judge(challengers, baseline):
    """A model's readings: of the first challenger enough to tell a favour, of the others too few; none holds."""
    telling = {"contrast": 0.41, "beyond_chance": 0.37, "p_for_cell": 0.0123, "p_for_baseline": 1.0}
    few = dict.fromkeys(telling)
    return SecondJudge(
        judge=SECOND,
        models=[MODEL],
        first_judges=[FIRST],
        pairs=400,
        queries=30,
        same=335,
        higher=41,
        copied=3,
        relevant=200,
        lost=17,
        others=200,
        gained=9,
        alike=Estimate(value=0.8756, low=0.8213, high=0.9214),
        kappa=Estimate(value=0.8149, low=0.7351, high=0.8849),
        ac2=Estimate(value=0.8523, low=0.7921, high=0.9011),
        by_cell={
            cell: CellFavour(n_cell=2, n_baseline=1, **few)
            if place
            else CellFavour(n_cell=24, n_baseline=31, **telling)
            for place, cell in enumerate(challengers)
        },
        cells={cell: CellUnderJudge(gain=0.0289, p_gain=0.0712, holds=False) for cell in challengers},
        recommended=baseline,
    )


def drift():
    return {FIRST: JudgeDrift(repeats=40, queries=22, same=37, shift=0.025, p_shift=0.6543)}


def noise(challengers):
    ends = {"interval": [-0.0123, 0.0741], "queries_only": [0.0051, 0.0688]}
    return JudgeNoise(
        judge=SECOND,
        draws=2000,
        no_candidate=0.258,
        cells={cell: NoisyCell(gain=0.0312, candidate=0.612, **ends) for cell in sorted(challengers)},
        unknown="",
    )


def panel(cells, baseline):
    """Judged by a model, 400 of 4,180 pairs by another one, 40 once more."""
    challengers = [cell for cell in cells if cell != baseline]
    return Judging(
        read_twice=400,
        seconds=[second_judge(challengers, baseline)],
        graded=["judge-model-1"],
        read_again=["judge-model-2-2026"],
        drift=drift(),
        noise=noise(challengers),
    )


def sources(cells, baseline):
    """Cells level by the documents that queries were written from; two of them missed, one of those twice."""
    return SourceDocuments(
        cells={
            cell: SourceFound(
                first_ten=Estimate(value=0.8214, low=0.6786, high=0.9643),
                mrr=Estimate(value=0.6123 - place / 100, low=0.4512, high=0.7651),
                difference=None if cell == baseline else Estimate(value=0.0214, low=-0.0312, high=0.0741),
            )
            for place, cell in enumerate(cells)
        },
        tau=0.7143,
        missed={"q03": [2], "q04": []},
        by_list={
            cell: MissedByList(cell_judged=17, cell_missed=2, baseline_judged=9, baseline_missed=0)
            for cell in cells
            if cell != baseline
        },
    )


def panel_of_one(*, repeats=False):
    """Judged once, with or without repeats."""
    return Judging(
        read_twice=0,
        seconds=[],
        graded=["claude"],
        read_again=[],
        drift=drift() if repeats else {},
        noise=None,
    )


NO_SPANS = SpanResult(queries=0, documents=0, unmarked=61, cells={})


def spans(cells, baseline, n_queries):
    """Marks for all queries but one."""
    moved = Difference(mean=0.0214, low=-0.0103, high=0.0535, wins=9, ties=11, losses=9)

    def recall(cell, tokens):
        return SpanRecall(
            tokens=tokens, mean=0.4321, low=0.3321, high=0.5321, difference=None if cell == baseline else moved
        )

    found = {cell: [recall(cell, tokens) for tokens in (512, 2_048, 8_192)] for cell in sorted(cells)}
    return SpanResult(queries=n_queries - 1, documents=88, unmarked=12, cells=found)


def previous(cells):
    """A first version that was decided, with one cell less; two queries were replaced since."""
    means = dict.fromkeys(("ndcg@10", "recall@10"), 0.5)
    moved = Difference(mean=0.0213, low=-0.0041, high=0.0467, wins=12, ties=9, losses=7)

    def beside(difference=(), changed=(), before=means):
        return Compared(before=before, difference=dict(difference), changed=[*changed])

    return PreviousVersion(
        version=1,
        chosen=cells[0],
        tier="candidate",
        results_sha256="ab" * 32,
        queries=Kept(common=28, changed=1, new=2, gone=1),
        documents=Kept(common=740, changed=0, new=8, gone=2),
        labels_carried=3900,
        changed=["pool_depth"],
        cells={
            cells[0]: beside(dict.fromkeys(means, moved)),
            cells[1]: beside(changed=["run_sha256"]),
            cells[-1]: beside(before={}),
            "bm25-okapi x whole_doc": beside(),
        },
    )
