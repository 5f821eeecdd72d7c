"""What the figures of a substrate say: two faults that only a comparison shows, and the verdict."""

from collections.abc import Sequence

from runner.base.figures import p_text, round4
from runner.substrate.search import BINARY, EXACT
from runner.substrate.shapes import ArmResult, Beside, FindingResult, PostBulk, Quantisation, finding


def compared_findings(arms: Sequence[ArmResult], lost: Quantisation, alpha: float) -> list[FindingResult]:
    """Return the two findings that searching adds to the checks of the tables."""
    return [_quantisation_loss(lost), _score_loss(arms, alpha)]


def _quantisation_loss(lost: Quantisation) -> FindingResult:
    """Return a fault if the mean index recall lies below its floor at either depth, whatever it costs in nDCG@10."""
    short = [recall for recall in lost.recall if round4(recall.mean) < recall.floor]
    shares = " and ".join(f"{recall.mean:.4f} of the first {recall.depth}" for recall in lost.recall)
    floors = " and ".join(f"{recall.floor:g} at {recall.depth}" for recall in lost.recall)
    worst = dict.fromkeys(query_id for recall in short for query_id in recall.worst)
    sentence = (
        f"The binary index with rescoring keeps {shares} chunks of exact search (at least {floors} is asked for); "
        f"nDCG@10 of the eval set's documents among all changes by {lost.difference.mean:+.4f} "
        f"(p {p_text(lost.test.p)})."
    )
    return finding("quantisation loss", len(short), len(lost.recall), sentence=sentence, examples=worst)


def _score_loss(arms: Sequence[ArmResult], alpha: float) -> FindingResult:
    """Return a fault if a vector arm scores below the record's cell beyond chance, were its unjudged hits perfect too.

    Full text and fusion are not held to this: FTS5 ranks chunks by its own words, which is another method.
    """
    vectors = [(arm, arm.beside) for arm in arms if arm.arm in (EXACT, BINARY) and arm.beside is not None]
    short = [
        f"{arm.arm} {beside.differences['ndcg@10'].mean:+.4f} to {beside.cell} (p {p_text(beside.test.p)})"
        for arm, beside in vectors
        if _falls_short(arm, beside, alpha)
    ]
    sentence = "No search of the vectors scores below the record's cell beyond chance and unjudged hits."
    if short:
        listed = "; ".join(short)
        sentence = f"nDCG@10 is below the record's, and would be if every unjudged hit were perfect: {listed}."
    return finding("vector scores below the record", len(short), len(vectors), sentence=sentence)


def _falls_short(arm: ArmResult, beside: Beside, alpha: float) -> bool:
    is_less = beside.differences["ndcg@10"].mean < 0 and round4(beside.test.p) <= alpha
    return is_less and round4(arm.bounds[1]) < round4(beside.scores["ndcg@10"].mean)


def verdict(report: PostBulk) -> str:
    """Return one sentence: every fault by name, or that there is none and what the figures are."""
    if names := [fault.name for fault in report.faults]:
        counted = "1 fault" if len(names) == 1 else f"{len(names)} faults"
        return f"The substrate has {counted}: {'; '.join(names)}."
    arm = next(row for row in report.arms if row.arm == BINARY)
    beside = ""
    if arm.beside is not None:
        beside = f", beside {arm.beside.scores['ndcg@10'].mean:.4f} of {arm.beside.cell} in the record"
    kept = report.quantisation.recall[0]
    return (
        f"No fault was found: {BINARY} scores {arm.scores['ndcg@10'].mean:.4f} nDCG@10{beside}, and keeps "
        f"{kept.mean:.4f} of the first {kept.depth} chunks of exact search."
    )
