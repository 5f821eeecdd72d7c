"""The shape of opened.json, abandoned.json, and of one result beside another, as `previous` in results.json."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import Count, FrozenModel, Sha256
from runner.eval_set.shapes.paired import Difference

_Name = Annotated[str, Field(min_length=1)]
_Date = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Opened(FrozenModel):
    """opened.json: which version this one was opened from, by whom and why where that was given.

    `previous_root_sha256` is the root digest of that version's lock, null if it was never decided.
    """

    schema_version: Literal[1]
    source: _Name
    version: Annotated[int, Field(ge=2)]
    previous: Annotated[int, Field(ge=1)]
    previous_root_sha256: Sha256 | None
    reason: str
    by: str
    opened_on: _Date


class Abandoned(FrozenModel):
    """abandoned.json: a version that was given up before it was decided."""

    schema_version: Literal[1]
    source: _Name
    version: Annotated[int, Field(ge=1)]
    reason: _Name
    by: _Name
    abandoned_on: _Date


class Compared(FrozenModel):
    """A cell of two results: what it scored in the earlier one, by measure, and the difference.

    `before` is empty where that one lacks the cell. `difference` is after less before, paired by query
    over those that both ask in the same words, without measures that other documents or another relevant grade keep
    from it. `changed` are the parts of its provenance that differ; without `run_sha256` among them it returned the same
    documents in the same places, so that whatever moved comes from labels alone.
    """

    before: dict[str, float]
    difference: dict[str, Difference]
    changed: list[str]


class Kept(FrozenModel):
    """Queries or documents by id, counted: `common` have the same text in both versions, `changed` another one."""

    common: Count
    changed: Count
    new: Count
    gone: Count


JUDGE_PROMPT = "judge prompt"
"""How `changed` names the judge's instructions."""


class PreviousVersion(FrozenModel):
    """The version that this one was opened from, beside it.

    `chosen` is the cell that it chose and `tier` on what evidence, both empty if it was never decided; then, and after
    a decision by policy, which has no `results_sha256`, `cells` are empty. `labels_carried` are the scored lines that
    the earlier version has too. `changed` are the fields of the plan that differ, and the judge's prompt.
    """

    version: Annotated[int, Field(ge=1)]
    chosen: str
    tier: str
    results_sha256: Sha256 | None
    queries: Kept
    documents: Kept
    labels_carried: Count
    changed: list[str]
    cells: dict[str, Compared]

    @property
    def comparable(self) -> bool:
        """Whether queries, documents, judge's prompt and relevant grade are the same in both."""
        same_grades = not {JUDGE_PROMPT, "relevant_grade"} & {*self.changed}
        return same_grades and not any(kept.changed or kept.new or kept.gone for kept in (self.queries, self.documents))
