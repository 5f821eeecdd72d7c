"""Labels as a judge would have given them."""

from runner.eval_set.shapes.labels import Label

SHA = "ab" * 32


def label(query_id="q01", doc_id="d1", grade=2, judge="j", model="", **fields) -> Label:
    """A label of the first round, with these fields changed."""
    given = {"reason": "why", "spans": [], "round": 1, "batch": "", "judged_on": "2026-01-31", **fields}
    given |= {"prompt_sha256": SHA, "evidence_sha256": SHA}
    return Label(query_id=query_id, doc_id=doc_id, grade=grade, judge=judge, model=model, **given)
