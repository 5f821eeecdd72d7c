"""The roster of sources as lines, as data and as docs/data-status.md: how far each has come, and which is next."""

from collections.abc import Sequence
from pathlib import Path

from runner.base.canonical import JSON, write_atomic
from runner.base.errors import IntegrityError
from runner.base.places import DRIVER, WORKPLACE
from runner.base.store import disk_errors
from runner.base.terminal import table, terminal_width
from runner.decide.policy import HARD_ABOVE
from runner.decide.roster import NOT_BEGUN, Standing, next_to_evaluate
from runner.eval_set.catalog import ENCODERS, REFUSED
from runner.eval_set.shapes.decision import Decision
from runner.tools import markdown

_HEAD = ("   source", "predicted best", "observed best", "version", "state", "live")


def roster_lines(standings: Sequence[Standing], own: Sequence[Standing] = ()) -> list[str]:
    """Return a table of one row per source, those of one's `own` apart, and what *live* means of an undecided one."""
    lines = []
    if standings:
        lines = table(_HEAD, [_table_row(standing) for standing in standings], terminal_width(1000))
    if own:
        head = ("   documents of your own", *_HEAD[1:])
        lines += table(head, [_table_row(standing) for standing in own], terminal_width(1000))
    if all(standing.is_decided for standing in standings):
        return lines
    return [*lines, f"live of an undecided source is the baseline, for at most {HARD_ABOVE:,} documents (bulk-gate)"]


def _table_row(standing: Standing) -> tuple[str, ...]:
    source = standing.source
    return (
        f"{source.trigger_order or '':2} {source.name}",
        source.predicted_best,
        standing.observed_best or "-",
        "-" if standing.state == "not begun" else f"v{standing.version.number}",
        (standing.state if source.policy == "evaluate" or standing.decision else "baseline not adopted yet")
        + (", rehearsed" if standing.rehearsed else "")
        + (f"; {standing.beside}" if standing.beside else ""),
        standing.live,
    )


def data_row(standing: Standing) -> dict[str, JSON]:
    """Return one source for a program."""
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
        "recorded": standing.is_decided,
        "beside": standing.beside,
        "rehearsed": None if standing.rehearsed is None else standing.rehearsed.chosen.cell,
        "rehearsed_standing": None if standing.rehearsed is None else _standing(standing.rehearsed),
        "live": standing.live,
        "decision": None if decision is None else decision.model_dump(),
        "decided_elsewhere": None
        if elsewhere is None
        else {"version": elsewhere.version, "cell": elsewhere.cell, "ndcg@10": elsewhere.ndcg, "artefacts": False},
        "note": source.note,
    }


def next_step(standings: Sequence[Standing]) -> tuple[dict[str, JSON], list[str]]:
    """Return the source to evaluate next and those whose baseline waits to be adopted, as data and as lines."""
    following = next_to_evaluate(list(standings))
    waiting = [s.source.name for s in standings if s.source.policy == "baseline" and not s.is_decided]
    lines = ["every source of the roster that is to be evaluated is decided"]
    if following is not None:
        lines = [f"next: {following.source.name}", f"{DRIVER} run {following.version.flags} --corpus-path FOLDER"]
    if waiting:
        lines.append(f"by policy, without an evaluation (choose SOURCE baseline --by NAME): {', '.join(waiting)}")
    return {"evaluate": following and following.source.name, "adopt_baseline": waiting}, lines


def write_data_status(standings: Sequence[Standing], own: Sequence[Standing], *, check: bool) -> str:
    """Write docs/data-status.md and, of sources of one's own, a page beside them; return what was done.

    With `check`, hold both to what they should be.
    """
    pages = {WORKPLACE / "docs" / "data-status.md": data_status_page(standings)}
    if own:
        pages[own[0].version.folder.parents[1] / "data-status.md"] = f"{OWN_HEAD}{_rows(own)}"
    return "\n".join(_written(path, content.encode(), check=check) for path, content in pages.items())


def _written(path: Path, content: bytes, *, check: bool) -> str:
    if not check:
        with disk_errors(path):
            write_atomic(path, content)
    elif not path.exists() or path.read_bytes() != content:
        raise IntegrityError(f"{path} is not what the catalog and the eval sets make. Write it again: sources --write.")
    return f"{path} is {'reproduced byte for byte' if check else 'written'}"


HEAD = """\
# Data status

Generated by `bin/per-source-eval.py sources --write`; continuous integration compares it with the eval sets of this checkout.
The order is that of bulk embedding. *Predicted best* is the catalog's, made before anything was measured; *observed best* is the chunker of the dense
cell with the highest nDCG@10 of the decided version. *Live* is what is to be embedded: what was decided, else the production baseline, for at
most 10,000 documents. *The per-source specification* is the document that this tool is made from: it says which sources are to be evaluated, and
takes those of weak structure on the baseline; decisions quote its numbered weaknesses. *Phase 1* is the comparison before it, elsewhere, of encoders over nine sources.

"""

OWN_HEAD = """\
# Data status of documents of one's own

Generated by `bin/per-source-eval.py sources --write`. Each has a baseline of its own, which is *live* until its plan is decided.

"""

_WINDOWS = (
    "- Windows of 512 tokens may hold back encoders that read further: Arctic-L and nomic read 8,192 and were compared in "
    "`fixed_token_512_50` alone (Phase 1). The cells with `fixed_token_1024_100` of a plan test it."
)

COLUMNS = ("", "source", "policy", "structural chunker", "predicted best", "observed best", "version", "state", "live")


def data_status_page(standings: Sequence[Standing]) -> str:
    """Return the page's Markdown."""
    following = next_to_evaluate(list(standings))
    name = following.source.name if following else "none, all are decided"
    refused = "".join(f"- **{source}**: {why}.\n" for source, why in REFUSED.items())
    return (
        f"{HEAD}{_rows(standings)}\nNext to evaluate: {name}.\n\n{_unmeasured(standings)}{_notes(standings)}\n"
        f"{_baseline()}\nNot evaluated:\n\n{refused}"
    )


def _rows(standings: Sequence[Standing]) -> str:
    return markdown.table(COLUMNS, ([cell.replace("|", "\\|") for cell in cells(each)] for each in standings))


def _unmeasured(standings: Sequence[Standing]) -> str:
    """Return what rehearsals leave open, while no source has a production decision over results."""
    decided = any(each.decision is not None and each.decision.kind == "production" for each in standings)
    if decided or not any(each.rehearsed for each in standings):
        return ""
    return (
        "**No production plan was run.** A rehearsal runs encoders that a small machine can over the same documents, queries\n"
        "and grades, and decides nothing: the production baseline was run over none of these sources, so none has a\n"
        "`v1/results.html` of its record. What the rehearsals say: [findings.md](findings.md).\n\n"
    )


def _standing(decision: Decision) -> str:
    """Return the chosen cell's standing: its tier, unless a baseline was taken and the tier is another cell's."""
    if decision.chosen.standing != "the baseline" or decision.tier == "baseline kept":
        return decision.tier
    return "the baseline; there was a candidate" if decision.tier == "candidate" else f"the baseline, {decision.tier}"


def cells(standing: Standing) -> tuple[str, ...]:
    """Return one source's cells, in the order of COLUMNS."""
    source, decision = standing.source, standing.decision
    chunker = f"`{source.structural_chunker}`" + (f" of {source.reuses}" if source.reuses else "")
    # Who decided, what stands beside it, and what a rehearsal said, one after the other.
    state = standing.state
    waits = source.policy == "baseline" and decision is None
    if decision is not None:
        who = f"by {decision.decided_by}, {decision.decided_on}"
        state += f", {who}" if decision.kind == "policy" else f" {who} ({decision.tier})"
    if standing.beside:
        state += f"; {standing.beside}"
    if (rehearsed := standing.rehearsed) is not None:
        state += f"; rehearsed {rehearsed.decided_on}: `{rehearsed.chosen.cell}` ({_standing(rehearsed)})"
    return (
        str(source.trigger_order or ""),
        source.name,
        "evaluate" if source.policy == "evaluate" else "baseline, weak structure",
        chunker,
        f"`{source.predicted_best}`",
        standing.observed_best,
        "" if standing.state == NOT_BEGUN else f"v{standing.version.number}",
        "baseline not adopted yet" if waits else state,
        f"`{standing.live}`",
    )


def _notes(standings: Sequence[Standing]) -> str:
    lines = []
    for standing in standings:
        source, elsewhere = standing.source, standing.source.imported
        if elsewhere is not None:
            lines.append(
                f"- **{source.name}** v{elsewhere.version} was decided elsewhere: `{elsewhere.cell}`, nDCG@10 "
                f"{elsewhere.ndcg:.4f}, without artefacts here ({elsewhere.note})."
            )
        if source.note:
            lines.append(f"- **{source.name}**: {source.note}.")
    return "\n".join(lines) + "\n"


def _baseline() -> str:
    """Return what the comparison that made the baseline left open: weaknesses 8 and 9 of the specification."""
    excluded = [f"- **{row.name}** was not compared: {row.excluded}." for row in ENCODERS.values() if row.excluded]
    return "\n".join(["What the production baseline's own comparison left open:\n", _WINDOWS, *excluded]) + "\n"
