"""What is left of an evening costs: embedding and judging, counted from the actual corpus, under one ceiling."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from runner.decide.receipt import measured_rate
from runner.embed.chunk_corpus import stored_chunk_tokens
from runner.embed.cost import MAX_USD
from runner.embed.cost.estimate import (
    Corpus,
    TokenCount,
    Total,
    local_line,
    of_rented,
    of_services,
    planned_tokens,
)
from runner.embed.cost.ledger import SPEND, Ledger
from runner.embed.cost.prices import RemoteOptions
from runner.eval_set.asked import asked
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import NOISE_FLOOR_CELL, Version, is_made, load_corpus, load_queries

if TYPE_CHECKING:
    from runner.judge.models.api import JudgeOptions

FREE = "cost: $0.00 (local encoders)"
BY_FILE = "judging: not counted; --judge counts what the plan's language models would cost"


@dataclass(frozen=True)
class Asked:
    """Who is to embed and to judge, under which ceiling.

    `server` is the address of encoders whose price nobody knows. `documents` are the characters of each document, for a
    version that has drawn none yet.
    """

    remote: RemoteOptions | None = None
    server: str = ""
    judge: "JudgeOptions | None" = None
    max_usd: float = MAX_USD
    documents: Sequence[int] = ()


@dataclass(frozen=True)
class Costs:
    """A line for each part of what is left, and the sum; `unknown` says why it is not known yet, "" if it is.

    `embedding` are the tokens that each encoder still has to read.
    """

    lines: list[str]
    total: Total
    embedding: dict[str, TokenCount]
    unknown: str = ""

    @property
    def said(self) -> list[str]:
        """The lines, and the sum against the ceiling where anything may be paid for."""
        if self.unknown:
            held = f"--max-usd {self.total.max_usd:.2f} holds in any case"
            return [*self.lines, f"total: not known {self.unknown}; {held}"]
        return [*self.lines, self.total.line] if self.total.usd else self.lines


def costs(version: Version, plan: Plan | None, asked: Asked) -> Costs:
    """Return what is left for encoders and judges; BudgetError for a damaged ledger.

    An InputError for a plan without judges, and for a model whose price nobody knows.
    """
    documents, own = asked.documents, plan.encoders if plan else {}
    if version.corpus_path.exists():
        documents = [row.n_chars for row in load_corpus(version.corpus_path)[1]]
    total = Total(asked.max_usd, sum(entry.usd for entry in Ledger(version.work / SPEND).entries()))
    paid = asked.remote is not None or asked.judge is not None or any(spec.api for spec in own.values())
    unknown = "before documents are sampled" if paid and (plan is None or not documents) else ""
    planned: dict[str, TokenCount] = {}
    pace, is_counted = None, bool(plan and documents)
    if plan is not None and documents:
        corpus, (done, is_twice) = _texts(version, documents), current(version, plan)
        done += [NOISE_FLOOR_CELL] * is_twice
        # The baseline is embedded twice, for the noise floor; a collection has none.
        baseline = "" if version.source.policy == "external" else plan.baseline
        planned = planned_tokens(plan.cells, baseline, corpus, done, own)
        pace = measured_rate(version, plan.cells)
    # Services of the plan's own charge a token; whatever else is embedded here costs time, on rented machines money.
    served = of_services(planned, own)
    total = replace(total, embedding=served.usd)
    elsewhere = {name: count for name, count in planned.items() if not (name in own and own[name].api)}
    lines = served.lines
    if asked.server:
        lines.append(f"cost: not known (encoders of {asked.server})")
    elif asked.remote is None:
        lines += [] if any(spec.api for spec in own.values()) else [FREE]
        lines += [local_line(elsewhere, pace)] if is_counted else []
    elif is_counted:
        rented = of_rented(elsewhere, asked.remote, Ledger(version.work / SPEND).entries())
        lines, total = [*lines, *rented.lines], replace(total, embedding=total.embedding + rented.usd)
    if plan is None or version.source.policy == "external":
        return Costs(lines, total, planned, unknown)
    if asked.judge is None:
        asks = plan.judges is not None and any(not judge.by_file for judge in plan.judges.each)
        return Costs([*lines, BY_FILE if asks else "judging: by file"], total, planned, unknown)
    # Judging is paid by pairs: those of the pool or, before there is one, all that may be in it.
    from runner.judge.models.estimate import judging_left

    judging = judging_left(version, plan, asked.judge, documents)
    return Costs([*lines, *judging.lines], replace(total, judging=judging.usd, held=judging.held), planned, unknown)


def current(version: Version, plan: Plan) -> tuple[list[str], bool]:
    """Return the cells that are run already, and whether the baseline is a second time.

    IntegrityError if a file of a run is gone or was edited.
    """
    made = [cell for cell in plan.cells if is_made(version, cell, cell)]
    return made, is_made(version, plan.baseline, NOISE_FLOOR_CELL)


def _texts(version: Version, documents: Sequence[int]) -> Corpus:
    """Return what is known of the texts that encoders read."""
    queries = asked(load_queries(version.queries_path)) if version.queries_path.exists() else []
    counted = (
        cache(partial(stored_chunk_tokens, version)) if version.corpus_path.exists() else lambda chunker, limit: None
    )
    return Corpus(documents, sum(len(query.text) for query in queries), counted)
