"""The record of a decided version that a substrate is held to: its encoder, and a cell for every arm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.base.records import WITHOUT_VECTORS, BM25Cell, DenseCell, HybridCell, parse_cell
from runner.decide.compared import Recorded, recorded
from runner.embed.encoder import Encoder
from runner.embed.local_encoder import TransformerEncoder
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.plan import read_plan
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.version import Version, load_decision
from runner.substrate.search import BINARY, EXACT, KEYWORD, SUM


@dataclass(frozen=True)
class Decided:
    """A record with its decision; `encoder` and `chunker` are the chosen cell's or, `of_baseline`, the baseline's.

    `cut` is the number of dimensions that its vectors are cut to, "" for whole ones.
    """

    record: Recorded
    decision: Decision
    encoder: Encoder
    chunker: str
    of_baseline: bool
    cut: str = ""


def decided(version: Version, encoders: Callable[[str], Encoder]) -> Decided:
    """Return the version's recorded and locked decision with its encoder; an InputError if nothing is decided yet."""
    path = version.record / "decision.json"
    if not path.exists() or not (version.record / LOCK_NAME).exists():
        raise InputError(
            f"{version.name} is not decided and locked yet, so there is nothing to hold a substrate against. Run: "
            f"{DRIVER} run {version.viewed}"
        )
    decision = load_decision(version)
    if decision.kind == "policy":
        raise InputError(
            f"{version.name} was decided by policy, so there is neither query nor figure to hold a substrate against."
        )
    of_baseline = not decision.chosen.encoder
    cell = parse_cell(decision.baseline if of_baseline else decision.chosen.cell)
    if isinstance(cell, WITHOUT_VECTORS):
        raise InputError(
            f"{version.name}: neither the chosen cell nor the baseline has an encoder, so there are no vectors to "
            "check. Full text alone needs no bulk embedding."
        )
    own = read_plan(version.plan_path(rehearsal=version.rehearsal)).encoders.get(cell.encoder)
    if own is not None and own.api:
        raise InputError(
            f"{version.name}: {cell.encoder} is a service of the plan's own. Holding a substrate against one would "
            "embed its chunks again, which is charged, and is not done. Compare a few vectors by hand."
        )
    encoder = encoders(cell.encoder) if own is None else TransformerEncoder(own)
    cut = cell.variant if isinstance(cell, DenseCell) and cell.variant.isdigit() else ""
    return Decided(recorded(version), decision, encoder, cell.chunker, of_baseline, cut)


def counterparts(cells: Sequence[str], encoder: str, chunker: str, cut: str = "") -> dict[str, str]:
    """Return the cell that stands beside each arm, if one of `cells` (best first) resembles it.

    For vectors: the dense cell of this encoder and chunker, else the best of this encoder, with `cut` as its variant;
    the binary arm has the cell of bits first. The sum: a sum likewise. Full text: BM25 over whole
    documents.
    """
    parsed = {cell: parse_cell(cell) for cell in cells}
    own = {
        cell: parts
        for cell, parts in parsed.items()
        if not isinstance(parts, WITHOUT_VECTORS) and parts.encoder == encoder
    }
    own = dict(sorted(own.items(), key=lambda item: item[1].chunker != chunker))  # stable: best first within each
    dense = [cell for cell, parts in own.items() if isinstance(parts, DenseCell) and parts.variant == cut]
    # Bits of a vector that is cut are no cell.
    bits = [] if cut else [cell for cell in own if cell == str(DenseCell(encoder, chunker, "bit"))]
    wanted = {
        EXACT: dense,
        BINARY: [*bits, *dense],
        KEYWORD: [cell for cell in cells if cell == str(BM25Cell("bm25", "whole_doc"))],
        SUM: [cell for cell, parts in own.items() if isinstance(parts, HybridCell) and parts.method == "sum"],
    }
    return {arm: candidates[0] for arm, candidates in wanted.items() if candidates}
