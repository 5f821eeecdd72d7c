"""A plan without an encoder that cannot be had: the lines that go, whether criteria 1 to 4 still hold, the record."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from runner.base.canonical import write_atomic
from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.records import BM25Cell, CrossCell, parse_cell
from runner.eval_set.plan import plan_problems, read_plan
from runner.eval_set.shapes.plan import LeftOut, Plan
from runner.eval_set.version import Version
from runner.evening.next_version import says

FLAG = "--without"


def without_advice(version: Version, encoder: str) -> str:
    """How an evening goes on without a model: the plan's lines to remove, and what criteria say of the rest.

    It is an encoder or a cross-encoder. "" if there is no plan yet, or it has no cell of it.
    """
    path = version.plan_path(rehearsal=version.rehearsal)
    if not path.exists():
        return ""
    plan = read_plan(path)
    if not (cells := _cells_of(plan, encoder)):
        return ""
    if version.preregistration_path.exists():
        return (
            f"{version.number_name} is frozen with {len(cells)} cells of {encoder}; an evaluation without it takes a "
            f"new version: {DRIVER} version new {version.origin.flags}"
        )
    broken = _problems(version, _without(plan, encoder, ""))
    lines = [f"  {number}: {line.strip()}" for number, line in _lines(path, cells)]
    listed = "\n".join([f"If {encoder} cannot be had, remove these lines of {path}:", *lines])
    if broken:
        return f"{listed}\nThe plan would then break {'; '.join(broken)}. Add other cells in their place."
    return (
        f"{listed}\nThe plan then still meets criteria 1 to 4. This does it, and records it in plan and decision: "
        f"{DRIVER} run {version.viewed} {FLAG} {encoder}"
    )


def leave_out(version: Version, encoders: Sequence[str], today: str) -> None:
    """Take the encoders' cells out of the plan in view, and say so in it; what is left out already stays as it is.

    InputError, and nothing written, for a frozen plan, an encoder that it does not name, and one whose cells criteria 1
    to 4 need.
    """
    path = version.plan_path(rehearsal=version.rehearsal)
    plan = wanted = read_plan(path)
    known = {one.encoder for one in plan.left_out}
    for encoder in dict.fromkeys(encoders):
        if encoder in known:
            continue
        if not _cells_of(plan, encoder):
            named = sorted({name for cell in plan.cells if (name := _encoder(cell))})
            raise InputError(f"{FLAG} {encoder}: {path} has no cell of it. It has cells of {', '.join(named)}.")
        wanted = _without(wanted, encoder, today)
    if wanted == plan:
        return
    if version.preregistration_path.exists():
        raise InputError(f"{FLAG}: {path} is frozen. {without_advice(version, encoders[0])}")
    if broken := _problems(version, wanted):
        raise InputError(
            f"{FLAG} {' '.join(encoders)}: the plan would break {'; '.join(broken)}. Nothing was changed; edit {path}."
        )
    write_atomic(path, _text(path, plan, wanted).encode())
    for row in wanted.left_out[len(plan.left_out) :]:
        say(f"{path}: {row.sentence}")


def _encoder(cell: str) -> str:
    """The model that makes the cell, which of a re-ranked one is the cross-encoder; "" for one without."""
    parsed = parse_cell(cell)
    if isinstance(parsed, BM25Cell):
        return ""
    return parsed.model if isinstance(parsed, CrossCell) else parsed.encoder


def _cells_of(plan: Plan, encoder: str) -> list[str]:
    return [cell for cell in plan.cells if _encoder(cell) == encoder]


def _without(plan: Plan, encoder: str, today: str) -> Plan:
    gone = _cells_of(plan, encoder)
    row = LeftOut.model_construct(encoder=encoder, cells=gone, left_out_on=today)
    cells, first = ([cell for cell in some if cell not in gone] for some in (plan.cells, plan.first))
    return plan.model_copy(update={"cells": cells, "first": first, "left_out": [*plan.left_out, row]})


def _problems(version: Version, plan: Plan) -> list[str]:
    path = version.plan_path(rehearsal=version.rehearsal)
    return plan_problems(plan, path, version.source, version.number, rehearsal=version.rehearsal)


def _lines(path: Path, cells: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Number and text of each line of a plan.yaml that lists one of the cells."""
    for number, line in enumerate(path.read_bytes().decode().splitlines(keepends=True), start=1):
        if re.match(r"\s*-\s", line) and yaml.safe_load(line.strip()) in ([cell] for cell in cells):
            yield number, line


def _text(path: Path, plan: Plan, wanted: Plan) -> str:
    """plan.yaml as wanted; its comments and order stay where that can be."""
    gone = [cell for cell in plan.cells if cell not in wanted.cells]
    numbers = {number for number, _ in _lines(path, gone)}
    kept = path.read_bytes().decode().splitlines()
    text = "".join(f"{line}\n" for number, line in enumerate(kept, start=1) if number not in numbers)
    if wanted.first != plan.first:
        text = re.sub(r"^first:.*\n", f"first: {json.dumps(wanted.first)}\n", text, flags=re.MULTILINE)
    rows = "".join(f"  - {json.dumps(row.model_dump())}\n" for row in wanted.left_out)
    text = re.sub(r"^left_out:\n(?:  - .*\n)*", "", text, flags=re.MULTILINE) + f"left_out:\n{rows}"
    return text if says(text, wanted) else yaml.safe_dump(wanted.model_dump(), sort_keys=False)
