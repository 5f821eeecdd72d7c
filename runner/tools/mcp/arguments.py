"""What the tools of the MCP server are called with: strict models, whose bounds keep a call within minutes."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from runner.base.schema import Strict
from runner.tools.grade.grade import TAU, TRIALS

MAX_QUERIES = 20_000
MAX_DEPTH = 1_000
MAX_POOL = 500_000
MAX_TRIALS = 10_000
MAX_DRAWS = 50_000_000
"""Queries times trials of one call."""
MAX_RESAMPLES = 100_000


def _as_text(value: object) -> object:
    return str(value) if type(value) is int else value.strip() if isinstance(value, str) else value


Item = Annotated[str, BeforeValidator(_as_text), Field(min_length=1, max_length=1_000)]
"""An id; a whole number stands for its digits, and white space around it is no part of it."""

Name = Annotated[str, Field(min_length=1, max_length=200)]
Scores = Annotated[dict[Name, float], Field(min_length=1, max_length=MAX_QUERIES)]
Means = Annotated[dict[Name, float], Field(max_length=100)]
FilePath = Annotated[str, Field(min_length=1, max_length=1_000)]


class GradeArguments(Strict):
    """Arguments of grade_retrieval."""

    retrieved: Annotated[
        list[Annotated[list[Item], Field(max_length=MAX_DEPTH)]],
        Field(min_length=1, max_length=MAX_QUERIES, description="A list of ids a query, best first"),
    ]
    gold: Annotated[list[Item], Field(max_length=MAX_QUERIES, description="The one right id of each query")]
    item_pool: Annotated[
        list[Item], Field(min_length=1, max_length=MAX_POOL, description="Every id that could have been retrieved")
    ]
    metric: Annotated[str, Field(max_length=40, description="ndcg@K, recall@K or mrr@K")] = "ndcg@5"
    rel: Annotated[
        list[Annotated[int, Field(ge=0)]] | None, Field(max_length=MAX_QUERIES, description="Grade of each right id")
    ] = None
    strata: Annotated[
        list[Item] | None, Field(max_length=MAX_QUERIES, description="Source or stratum of each query")
    ] = None
    n_trials: Annotated[int, Field(ge=1, le=MAX_TRIALS, description="Draws of each null")] = TRIALS
    tau: Annotated[float, Field(ge=0, le=1, description="Least difference from a null that counts")] = TAU
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 2026


class CompareArguments(Strict):
    """Arguments of compare_runs; a run is given as scores or as a file, and so is the other if there is one."""

    run: Annotated[Scores | None, Field(description="Scores from 0 to 1 by query id")] = None
    run_file: Annotated[
        FilePath | None, Field(description="results.json or per-query run below the server's working directory")
    ] = None
    cell: Annotated[Name | None, Field(description="Cell of run_file, where that is a results.json")] = None
    other: Annotated[Scores | None, Field(description="The run to compare with, query by query")] = None
    other_file: Annotated[FilePath | None, Field(description="As run_file")] = None
    other_cell: Annotated[Name | None, Field(description="Cell of other_file")] = None
    measure: Annotated[str, Field(min_length=1, max_length=40, description="Measure to read from files")] = "ndcg@10"
    baselines: Annotated[Means | None, Field(description="Published means by name")] = None
    resamples: Annotated[int, Field(ge=40, le=MAX_RESAMPLES)] = 10_000
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 2026
    allow_unmatched: Annotated[bool, Field(description="Pair the queries that both have")] = False


class VersionArguments(Strict):
    """Arguments of explain_decision and dry_run."""

    source: Annotated[Name, Field(description="bills, us_code, demo, ...")]
    eval_set_path: Annotated[
        FilePath | None,
        Field(description="Folder that holds v1/, v2/, below the server's working directory; default eval-sets/SOURCE"),
    ] = None
