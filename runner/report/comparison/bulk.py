"""A report on the substrate beside the record: every search of it, and the cell of the record that it should equal."""

from collections.abc import Mapping

from runner.base.canonical import JSON
from runner.eval_set.shapes.tests import MeasureResult
from runner.report.comparison.asked import told_side
from runner.report.comparison.inputs import Side
from runner.score.score import COMPARED
from runner.substrate.shapes import ArmResult, PostBulk
from runner.substrate.verdict import verdict


def compared_bulk(now: Side, bulk: PostBulk, bulk_sha256: str) -> dict[str, JSON]:
    """As `compared_results`: the record is what was before, the substrate what is now, and one row an arm."""
    record = told_side(now, f"record, {now.name}")
    return {
        "sides": [record, _substrate(bulk, bulk_sha256)],
        "asked": _asked(now, bulk),
        "queries": {"common": len(bulk.queries), "changed": [], "new": [], "gone": []},
        "reading": _reading(bulk),
        "rows": [_row(arm) for arm in bulk.arms],
        "common": list(bulk.queries),
        "texts": {query.id: query.text for query in now.results.queries},
        "findings": [finding.model_dump() for finding in bulk.findings],
        "limits": list(bulk.limits),
    }


def _substrate(bulk: PostBulk, digest: str) -> dict[str, JSON]:
    faults = len(bulk.faults)
    return {
        "name": f"substrate {bulk.substrate.version}",
        "source": bulk.source,
        "kind": "post-bulk",
        "tier": f"{faults} fault{'' if faults == 1 else 's'}" if faults else "no fault",
        "sentence": verdict(bulk),
        "not_shown": "",
        "baseline": bulk.plan.baseline,
        "sha256": digest,
        "decision": None,
        "gains": False,
    }


def _asked(now: Side, bulk: PostBulk) -> list[dict[str, JSON]]:
    covered = bulk.coverage
    rows: list[tuple[str, JSON, JSON, bool | None]] = [
        ("Queries", len(now.results.queries), len(bulk.queries), True),
        ("Documents with chunks", covered.documents, covered.with_chunks, covered.documents == covered.with_chunks),
        ("Cell decided upon, and vectors held to", bulk.chosen.cell, bulk.model.model_id, None),
        ("Chunks held by the substrate", None, bulk.substrate.chunks, None),
        ("Words of full text", None, bulk.substrate.tokenizer, None),
    ]
    return [{"what": what, "before": old, "now": new, "same": same} for what, old, new, same in rows]


def _reading(bulk: PostBulk) -> dict[str, JSON]:
    """Labels are the record's: hits that nobody graded count as worthless on the substrate's side alone."""
    unjudged, covered = sum(arm.unjudged for arm in bulk.arms), bulk.coverage
    missing = covered.documents - covered.with_chunks
    sentences = ["Both answered the same queries and were scored with the same labels."]
    if unjudged:
        sentences.append(
            f"{unjudged:,} hits of the searches' top tens were never graded and count as not relevant, which flatters "
            "the record: a search's nDCG@10 lies between its bounds."
        )
    if missing:
        sentences.append(
            f"{missing:,} of the record's {covered.documents:,} documents have no chunks in the substrate, so no "
            "search can find them."
        )
    if not unjudged and not missing:
        sentences.append(
            "Every document has chunks, and every hit of the top ten is graded: a difference is of the search and of "
            "what was bulk embedded."
        )
    return {"level": "with care" if unjudged or missing else "yes", "sentences": sentences}


def _row(arm: ArmResult) -> dict[str, JSON]:
    beside = arm.beside
    moved: dict[str, JSON] = dict.fromkeys(COMPARED)
    if beside is not None:
        moved = {name: beside.differences[name].model_dump() for name in COMPARED}
    return {
        "name": arm.arm,
        "record": beside.cell if beside else "",
        "before": _values_of(beside.scores) if beside else None,
        "now": _values_of(arm.scores) | {"bounds": list(arm.bounds), "unjudged": arm.unjudged},
        "moved": moved,
        "same_run": False,
        "roles": ["", ""],
        "p": beside.test.p if beside else None,
    }


def _values_of(scores: Mapping[str, MeasureResult]) -> dict[str, JSON]:
    found = {name: scores[name] for name in COMPARED}
    return {
        "scores": {name: {"mean": s.mean, "low": s.low, "high": s.high} for name, s in found.items()},
        "per_query": list(found["ndcg@10"].per_query),
        "gain": None,
    }
