"""The shape of opened.json, abandoned.json, and `previous` in results.json."""

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


class DecidedBefore(FrozenModel):
    """What the earlier version's decision.json says; `results_sha256` is null for one by policy."""

    kind: Literal["production", "rehearsal", "policy"]
    tier: _Name
    cell: _Name
    results_sha256: Sha256 | None


class Kept(FrozenModel):
    """Queries or documents by id, counted: `common` have the same text in both versions, `changed` another one."""

    common: Count
    changed: Count
    new: Count
    gone: Count


class CellBeside(FrozenModel):
    """A cell that both versions scored; what it scores now is its row of results.json.

    `same_run`: it returned the same documents in the same places, so that whatever moved comes from labels alone.
    `before` is what it scored, by measure; `moved` is now less before, paired by query over those that both versions
    ask in the same words, without measures that other documents or another relevant grade keep from it.
    """

    cell: _Name
    same_run: bool
    before: dict[str, float]
    moved: dict[str, Difference]


class PreviousVersion(FrozenModel):
    """The version that this one was opened from, beside it.

    `decision` is null if it was never decided; then, and after a decision by policy, `cells` are empty. `comparable`:
    queries, documents, judge prompt and relevant grade are the same in both. `labels_carried` are the scored lines that
    the earlier version has too. `settings` are the fields of the plan that differ, `cells_new` and `cells_gone` those
    of its cells that only one plan has.
    """

    version: Annotated[int, Field(ge=1)]
    decision: DecidedBefore | None
    comparable: bool
    queries: Kept
    documents: Kept
    labels_carried: Count
    prompt_changed: bool
    settings: list[str]
    cells_new: list[str]
    cells_gone: list[str]
    cells: list[CellBeside]
