"""The roster of sources, as lines and as data: how far each has come, and which is next."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.canonical import JSON, write_atomic
from runner.base.errors import IntegrityError
from runner.base.store import disk_errors
from runner.eval_set.version import CHECKOUT, DRIVER, newest_version

if TYPE_CHECKING:
    from runner.decide.roster import Standing

_HEAD = ("source", "predicted best", "observed best", "version", "state", "live")


def roster_lines(standings: Sequence["Standing"]) -> list[str]:
    """A table of one row per source, with its heads."""
    rows = [("", *_HEAD), *map(_table_row, standings)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _table_row(standing: "Standing") -> tuple[str, ...]:
    source = standing.source
    return (
        str(source.trigger_order),
        source.name,
        source.predicted_best,
        standing.observed_best or "-",
        "-" if standing.state == "not begun" else f"v{standing.version.number}",
        (standing.state if source.policy == "evaluate" or standing.decision else "baseline not adopted yet")
        + (f"; {standing.beside}" if standing.beside else ""),
        standing.live,
    )


def data_row(standing: "Standing") -> dict[str, JSON]:
    """One source for a program."""
    source, decision, elsewhere = standing.source, standing.decision, standing.source.imported
    return {
        "trigger_order": source.trigger_order,
        "source": source.name,
        "policy": source.policy,
        "structural_chunker": source.structural_chunker,
        "reuses": source.reuses,
        "predicted_best": source.predicted_best,
        "observed_best": standing.observed_best,
        "version": standing.version.number,
        "state": standing.state,
        "beside": standing.beside,
        "live": standing.live,
        "decision": None if decision is None else decision.model_dump(),
        "decided_elsewhere": None
        if elsewhere is None
        else {"version": elsewhere.version, "cell": elsewhere.cell, "ndcg@10": elsewhere.ndcg, "artefacts": False},
        "note": source.note,
    }


def next_step(standings: Sequence["Standing"]) -> tuple[dict[str, JSON], list[str]]:
    """The source to evaluate next and those whose baseline waits to be adopted, as data and as lines."""
    from runner.decide.roster import next_to_evaluate

    following = next_to_evaluate(list(standings))
    waiting = [s.source.name for s in standings if s.source.policy == "baseline" and not s.is_decided]
    lines = ["every source of the roster that is to be evaluated is decided"]
    if following is not None:
        lines = [f"next: {following.source.name}", f"{DRIVER} run {following.version.flags} --corpus-path FOLDER"]
    if waiting:
        lines.append(f"by policy, without an evaluation (adopt SOURCE --by NAME): {', '.join(waiting)}")
    return {"evaluate": following and following.source.name, "adopt_baseline": waiting}, lines


def write_data_status(standings: Sequence["Standing"], *, check: bool) -> str:
    """That docs/data-status.md is written or, with `check`, current; IntegrityError if it is not."""
    from runner.report.data_status import page

    path, content = CHECKOUT / "docs" / "data-status.md", page(standings).encode()
    if not check:
        with disk_errors(path):
            write_atomic(path, content)
    elif not path.exists() or path.read_bytes() != content:
        raise IntegrityError(f"{path} is not what the catalog and the eval sets make. Write it again: sources --write.")
    return f"{path} is {'reproduced byte for byte' if check else 'written'}"


def write_index(standings: Sequence["Standing"], given: str) -> Path:
    """The path of today's page over all sources; "" stands for its own place."""
    from runner.report.comparison.file import write_html
    from runner.report.index_page import index_page, sources_outside

    path = Path(given) if given else CHECKOUT / ".work" / "index.html"
    every = [*standings, *sources_outside(newest_version)]
    content = index_page(every, datetime.now(UTC).date().isoformat(), path.parent)
    return write_html(path, content, None, CHECKOUT / "eval-sets", flag="--html")
