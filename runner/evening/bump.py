"""A new encoder beside what was decided: the plan of the version that tries it, and the work that it leaves.

Everything is counted from the decided version's files, so that it is known before a next version is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from runner.base.errors import InputError
from runner.base.records import parse_cell
from runner.base.terminal import table, terminal_width
from runner.decide.receipt import measured_rate
from runner.decide.roster import own_standings, roster
from runner.embed.cost.estimate import local_seconds
from runner.embed.cost.prices import shown
from runner.eval_set import catalog
from runner.eval_set.plan import encoder_cells, read_plan
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_corpus, load_decision, newest_version
from runner.evening.costs import Asked, costs
from runner.judge.models.api import JudgeOptions
from runner.judge.models.estimate import pairs_left


@dataclass(frozen=True)
class Work:
    """What a plan leaves to do: pairs to judge, dollars for its judges, None if they read by file, and seconds here."""

    pairs: int
    usd: float | None
    seconds: float

    @property
    def dollars(self) -> str:
        """The dollars as they are said."""
        return "by file" if self.usd is None else shown(self.usd)


def plan_with(before: Version, encoders: Sequence[str]) -> Plan:
    """Return a decided version's plan with the cells of further encoders, tested first, and the chosen cell's role.

    InputError for an encoder that there is not or that the plan has, and for a version that decided over no scores.
    """
    decided = (before.record / "decision.json").exists()
    if not decided or load_decision(before).kind == "policy":
        how = "was decided by policy, without queries or grades" if decided else "is not decided"
        raise InputError(
            f"{before.name} {how}, so a new encoder has nothing to stand beside. Decide over queries first, or add the "
            "encoder's cells to the plan before pairs go to a judge."
        )
    plan = read_plan(before.plan_path(rehearsal=before.rehearsal))
    planned = {getattr(parse_cell(cell), "encoder", ""): cell for cell in plan.cells}
    cells, first = [], []
    for name in encoders:
        catalog.encoder(name, plan.encoders)
        if name in planned:
            raise InputError(f"--encoder {name}: {before.name} has compared it already ({planned[name]}).")
        own = encoder_cells(name, plan.baseline, before.source.structural_chunker)
        cells += own
        # Those over the structural chunker have most of the error that may be spent, as in a default plan.
        first += [cell for cell in own if cell.rpartition(" x ")[2] == own[-1].rpartition(" x ")[2]]
    changes = {"cells": [*plan.cells, *cells], "first": first, "confirms": None}
    return plan.model_copy(update={**changes, "incumbent": incumbent_of(before, plan)})


def incumbent_of(before: Version, plan: Plan) -> str:
    """Return the cell that a version chose over the baseline; "" if it chose that, or is not decided."""
    decided = (before.record / "decision.json").exists()
    chosen = load_decision(before).chosen.cell if decided else plan.baseline
    return "" if chosen == plan.baseline else chosen


def work_of(version: Version, plan: Plan) -> Work:
    """Return what a plan would leave to do over a version's documents, queries, runs and labels."""
    asks = plan.judges is not None and not any(judge.by_file for judge in plan.judges.each)
    left = costs(version, plan, Asked(judge=JudgeOptions() if asks else None))
    return Work(
        pairs=pairs_left(version, plan, len(load_corpus(version.corpus_path)[1])),
        usd=left.total.judging if asks else None,
        seconds=local_seconds(left.embedding, measured_rate(version, plan.cells)),
    )


def bumped_everywhere(encoders: Sequence[str]) -> tuple[list[str], list[Version]]:
    """Return a table of what the encoders would leave to do, a row a decided source, and the versions to open from."""
    rows, able, total = [], [], Work(0, 0.0, 0.0)
    for standing in [*roster(), *own_standings()]:
        if standing.decision is None or standing.decision.kind == "policy":
            continue
        newest = newest_version(standing.source.name)
        try:
            work = work_of(standing.version, plan_with(standing.version, encoders))
            if newest.number != standing.version.number:
                raise InputError(f"v{newest.number} is open")
        except InputError as error:
            rows.append((standing.source.name, f"v{standing.version.number}", "-", "-", f"left out: {error}"))
            continue
        able.append(newest)
        total = Work(total.pairs + work.pairs, (total.usd or 0) + (work.usd or 0), total.seconds + work.seconds)
        rows.append((standing.source.name, f"v{newest.number}", *_figures(work)))
    if not rows:
        raise InputError("No source is decided over scores yet, so no encoder has anything to stand beside.")
    head = ("source", "decided", "new pairs", "judges", "hours to embed here")
    rows.append((f"{len(able)} sources", "", *_figures(total)))
    return table(head, rows, terminal_width(1000)), able


def _figures(work: Work) -> tuple[str, str, str]:
    return f"{work.pairs:,}", work.dollars, f"{work.seconds / 3600:.1f}"
