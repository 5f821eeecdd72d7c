"""What stands beside the scores in results.json: judges, pool, passages, slices, a version before. Figures invented."""

from runner.eval_set.shapes.judges import (
    Agreement,
    CellFavour,
    CellUnderJudge,
    Estimate,
    JudgeDrift,
    JudgeOutcome,
    NoiseResult,
    NoisyCell,
    SecondJudge,
)
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.pool import (
    Slice,
    SliceMeans,
    SpanBudget,
    SpanMeasure,
    SpanResult,
)
from runner.eval_set.shapes.results import JudgePanel
from runner.eval_set.shapes.versions import CellBeside, DecidedBefore, Kept, PreviousVersion

FIRST, SECOND, PERSON = "judge-model-1", "judge-model-2", "reader-b"
MODEL = "judge-model-2-2026"
TOO_FEW = "so few readings with these differences could not tell a favoured side from chance"


def second_judge(challengers):
    """A model's readings: of the first challenger enough to tell a favour, of the others too few."""
    found = {"contrast": 0.41, "beyond_chance": 0.37}
    few = {**dict.fromkeys(found), "p_for_cell": None, "p_for_baseline": None, "unknown": TOO_FEW}
    rows = [
        CellFavour(cell=cell, n_cell=2, n_baseline=1, **few)
        if place
        else CellFavour(cell=cell, n_cell=24, n_baseline=31, **found, p_for_cell=0.0123, p_for_baseline=1.0, unknown="")
        for place, cell in enumerate(challengers)
    ]
    return SecondJudge(
        judge=SECOND,
        models=[MODEL],
        readers="models",
        first_judges=[FIRST],
        pairs=400,
        queries=30,
        same=335,
        kappa=Estimate(value=0.8149, low=0.7351, high=0.8849),
        binary=Estimate(value=0.935, low=0.9, high=0.96),
        by_cell=rows,
    )


def drift():
    return JudgeDrift(judge=FIRST, repeats=40, queries=22, same=37, shift=0.025, p_shift=0.6543)


def noise(challengers):
    return NoiseResult(
        judge=SECOND,
        readings=400,
        changed=65,
        draws=2000,
        chosen=challengers[-1],
        stability=0.742,
        stability_queries_only=0.9985,
        cells=[
            NoisyCell(
                cell=cell,
                gain=0.0312,
                interval=[-0.0123, 0.0741],
                queries_only=[0.0051, 0.0688],
            )
            for cell in sorted(challengers)
        ],
        unknown="",
    )


def under(judge, challengers, baseline):
    return JudgeOutcome(
        judge=judge,
        n_pairs=400,
        n_changed=65,
        recommended=baseline,
        cells=[
            CellUnderJudge(
                cell=cell,
                gain=0.0289,
                p_gain=0.0712,
                holds=False,
            )
            for cell in challengers
        ],
    )


def panel(cells, baseline):
    """Judged by a model, 400 of 4,180 pairs by another one, 40 once more, 120 by a person."""
    challengers = [cell for cell in cells if cell != baseline]
    return JudgePanel(
        agreement=Agreement(
            pairs=4180,
            read_twice=400,
            seconds=[second_judge(challengers)],
            drift=[drift()],
        ),
        noise=noise(challengers),
        others=[under(SECOND, challengers, baseline), under(PERSON, challengers, baseline)],
    )


def panel_of_one(*, repeats=False):
    """Judged once, with or without repeats."""
    agreement = Agreement(
        pairs=60,
        read_twice=0,
        seconds=[],
        drift=[drift()] if repeats else [],
    )
    return JudgePanel(agreement=agreement, noise=None, others=[])


NO_SPANS = SpanResult(queries=0, documents=0, unmarked=61, cells={})


def spans(cells, baseline, n_queries):
    """Marks for all queries but one; nothing is defined at the last budget."""

    def measure(cell, mean):
        moved = Difference(mean=0.0214, low=-0.0103, high=0.0535, wins=9, ties=11, losses=9)
        return SpanMeasure(
            queries=n_queries - 1,
            mean=mean,
            low=mean - 0.1,
            high=mean + 0.1,
            difference=None if cell == baseline else moved,
        )

    empty = SpanMeasure(queries=0, mean=None, low=None, high=None, difference=None)

    def budgets(cell):
        return [
            SpanBudget(
                tokens=tokens,
                recall=measure(cell, 0.4321) if tokens < 8_192 else empty,
            )
            for tokens in (512, 2_048, 8_192)
        ]

    cells_found = {cell: budgets(cell) for cell in sorted(cells)}
    return SpanResult(queries=n_queries - 1, documents=88, unmarked=12, cells=cells_found)


def slices(cells):
    means = {cell: SliceMeans(ndcg=0.6187, recall=0.7149) for cell in sorted(cells)}
    return [
        Slice(by="origin", name="claude", queries=20, cells=means),
        Slice(by="origin", name="person", queries=10, cells=means),
        Slice(by="kind", name="citation", queries=4, cells=means),
    ]


def previous(cells):
    """A first version that was decided, with one cell less; two queries were replaced since."""
    before = dict.fromkeys(("ndcg@10", "recall@10"), 0.5)
    moved = Difference(mean=0.0213, low=-0.0041, high=0.0467, wins=12, ties=9, losses=7)
    return PreviousVersion(
        version=1,
        decision=DecidedBefore(kind="production", tier="candidate", cell=cells[0], results_sha256="ab" * 32),
        comparable=False,
        queries=Kept(common=28, changed=1, new=2, gone=1),
        documents=Kept(common=740, changed=0, new=8, gone=2),
        labels_carried=3900,
        prompt_changed=False,
        settings=["pool_depth"],
        cells_new=[cells[-1]],
        cells_gone=["bm25-okapi x whole_doc"],
        cells=[
            CellBeside(cell=cells[0], same_run=True, before=before, moved=dict.fromkeys(before, moved)),
            CellBeside(cell=cells[1], same_run=False, before=before, moved={}),
        ],
    )
