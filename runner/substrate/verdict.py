"""What the figures of a substrate say: two faults that only a comparison shows, the verdict, and its limits."""

from collections.abc import Sequence

from runner.base.figures import p_text, round4
from runner.base.records import parse_cell
from runner.eval_set.shapes.plan import Plan
from runner.substrate.search import BINARY, EXACT, KEYWORD
from runner.substrate.shapes import ArmResult, Beside, CoverageResult, FindingResult, PostBulk, Quantisation

QUANTISATION_LOSS = "quantisation loss"
SCORE_LOSS = "vector scores below the record"


def compared_findings(arms: Sequence[ArmResult], quantisation: Quantisation, plan: Plan) -> list[FindingResult]:
    """The two findings that searching adds to the checks of the tables."""
    return [_quantisation_loss(quantisation), _score_loss(arms, plan)]


def _quantisation_loss(found: Quantisation) -> FindingResult:
    """A fault if the mean index recall lies below its floor at either depth, whatever it costs in nDCG@10."""
    short = [recall for recall in found.recall if round4(recall.mean) < recall.floor]
    shares = " and ".join(f"{recall.mean:.4f} of the first {recall.depth}" for recall in found.recall)
    floors = " and ".join(f"{recall.floor:g} at {recall.depth}" for recall in found.recall)
    return FindingResult(
        name=QUANTISATION_LOSS,
        fault=bool(short),
        count=len(short),
        of=len(found.recall),
        sentence=(
            f"The binary index with rescoring keeps {shares} chunks of exact search (at least {floors} is asked for); "
            f"nDCG@10 of the eval set's documents among all changes by {found.difference.mean:+.4f} "
            f"(p {p_text(found.test.p)})."
        ),
        examples=list(dict.fromkeys(query_id for recall in short for query_id in recall.worst)),
    )


def _score_loss(arms: Sequence[ArmResult], plan: Plan) -> FindingResult:
    """A fault if a vector arm scores below the record's cell beyond chance, were its unjudged hits perfect too.

    Full text and fusion are not held to this: FTS5 ranks chunks by its own words, which is another method.
    """
    alpha = plan.significance.alpha
    vectors = [(arm, arm.beside) for arm in arms if arm.arm in (EXACT, BINARY) and arm.beside is not None]
    short = [(arm.arm, beside) for arm, beside in vectors if _falls_short(arm, beside, alpha)]
    said = [
        f"{arm} {beside.differences['ndcg@10'].mean:+.4f} to {beside.cell} (p {p_text(beside.test.p)})"
        for arm, beside in short
    ]
    sentence = "No search of the vectors scores below the record's cell beyond chance and unjudged hits."
    if said:
        sentence = f"nDCG@10 is below the record's, and would be if every unjudged hit were perfect: {'; '.join(said)}."
    return FindingResult(
        name=SCORE_LOSS, fault=bool(short), count=len(short), of=len(vectors), sentence=sentence, examples=[]
    )


def _falls_short(arm: ArmResult, beside: Beside, alpha: float) -> bool:
    is_less = beside.differences["ndcg@10"].mean < 0 and round4(beside.test.p) <= alpha
    return is_less and round4(arm.bounds[1]) < round4(beside.scores["ndcg@10"].mean)


def verdict(found: PostBulk) -> str:
    """One sentence: every fault by name, or that there is none and what the figures are."""
    if names := [fault.name for fault in found.faults]:
        counted = "1 fault" if len(names) == 1 else f"{len(names)} faults"
        return f"The substrate has {counted}: {'; '.join(names)}."
    arm = next(row for row in found.arms if row.arm == BINARY)
    beside = ""
    if arm.beside is not None:
        beside = f", beside {arm.beside.scores['ndcg@10'].mean:.4f} of {arm.beside.cell} in the record"
    kept = found.quantisation.recall[0]
    return (
        f"No fault was found: {BINARY} scores {arm.scores['ndcg@10'].mean:.4f} nDCG@10{beside}, and keeps "
        f"{kept.mean:.4f} of the first {kept.depth} chunks of exact search."
    )


def limits(arms: Sequence[ArmResult], coverage: CoverageResult, chunker: str, *, n_queries: int) -> list[str]:
    """What the report cannot claim, the most consequential first."""
    return [
        *_holes(arms),
        *_alone(arms),
        *_other_chunker(arms, chunker),
        f"Scores are over the {coverage.documents:,} documents of the eval set, since nothing else is graded: how many "
        "of the substrate's other documents would come before them is not measured. Index recall, what it costs in "
        "nDCG@10, and latency are over everything that the source holds.",
        f"The {n_queries} queries are the frozen ones of the eval set; what people ask the production system was not "
        "asked.",
        "Full text ranks chunks by FTS5's own words and weights, the record's BM25 whole documents with a stemmer and "
        "stop words: their difference is of all of this, so it is shown and never a fault.",
        "Latency is that of one connection to a local copy on this machine, one query at a time after a warm-up, "
        "without the embedding of the query; the live service under load was not measured.",
        "Whether a vector belongs to its chunk's text is tested on a sample of chunks, not on all.",
    ]


def _holes(arms: Sequence[ArmResult]) -> list[str]:
    holes = [f"{arm.arm} {arm.unjudged}" for arm in arms if arm.unjudged]
    if not holes:
        return []
    return [
        f"Some hits of the top ten were never graded and count as not relevant ({', '.join(holes)}): an arm's nDCG@10 "
        "lies between its bounds, and its difference to the record, whose own hits are graded, flatters the record."
    ]


def _alone(arms: Sequence[ArmResult]) -> list[str]:
    alone = [arm.arm for arm in arms if arm.beside is None]
    return [f"The record has no cell to stand beside {', '.join(alone)}."] if alone else []


def _other_chunker(arms: Sequence[ArmResult], chunker: str) -> list[str]:
    cells = [(row.arm, row.beside.cell) for row in arms if row.beside is not None and row.arm != KEYWORD]
    others = [f"{arm} ({cell})" for arm, cell in cells if parse_cell(cell).chunker != chunker]
    if not others:
        return []
    return [
        f"The substrate should hold the chunks of {chunker}; a cell of another chunker stands beside "
        f"{'; '.join(others)}."
    ]
