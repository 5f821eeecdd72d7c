"""What a plan runs of other distributions, and the pins by which a production plan holds it to one state of them."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from chunkers.registry import BARE
from chunkers.registry import BUILT_IN as CHUNKERS
from runner.base.errors import InputError
from runner.base.plug_ins import PIN, Group, PlugIn, plug_in
from runner.base.records import WITHOUT_VECTORS, OwnCell
from runner.eval_set.catalog import ENCODERS, SOURCES, SourceSpec
from runner.eval_set.shapes.labels import APIS, Judges

if TYPE_CHECKING:
    from runner.eval_set.shapes.plan import Plan

BUILT_IN: Mapping[Group, Collection[str]] = {
    "chunkers": CHUNKERS,
    "readers": SOURCES,
    "encoders": ENCODERS,
    "judges": APIS,
}

Part = tuple[Group, str]


def parts_of(cells: Iterable[OwnCell], own: Collection[str] = ()) -> list[Part]:
    """Chunkers and encoders of cells that are neither built in nor among a plan's `own` encoders."""
    named: list[Part] = []
    for cell in cells:
        named.append(("chunkers", cell.chunker.removesuffix(BARE)))
        if not isinstance(cell, WITHOUT_VECTORS) and cell.encoder not in own:
            named.append(("encoders", cell.encoder))
    return _foreign(named)


def judge_parts(judges: Judges | None) -> list[Part]:
    """The services through which a plan's judges are asked, as far as they are not built in."""
    return _foreign(("judges", one.api) for one in judges.each) if judges else []


def source_parts(source: SourceSpec) -> list[Part]:
    """The source, if a plug-in reads it."""
    return _foreign([("readers", source.name)])


def pin_lines(source: SourceSpec) -> list[str]:
    """What a new plan pins: the source as it is installed, if a plug-in reads it."""
    found = [plug_in(group, name, BUILT_IN[group]) for group, name in source_parts(source)]
    return ["plug_ins:", *(f'  {one.name}: "{one.pin}"' for one in found if one)] if any(found) else []


def _foreign(named: Iterable[Part]) -> list[Part]:
    return list(dict.fromkeys((group, name) for group, name in named if name not in BUILT_IN[group]))


def pin_problems(plan: "Plan", cells: Iterable[OwnCell], source: SourceSpec, *, rehearsal: bool) -> list[str]:
    """What a plan's `plug_ins` lack, or have too much; a plan that decides something pins all it runs of others."""
    parts = [*source_parts(source), *parts_of(cells, plan.encoders), *judge_parts(plan.judges)]
    problems = [
        f"plug_ins: no plug-in of this plan is called {name!r}; leave it out"
        for name in plan.plug_ins
        if name not in {name for _, name in parts}
    ]
    for group, name in parts:
        if name in plan.plug_ins:
            continue
        found = plug_in(group, name, BUILT_IN[group])
        if found is None and group == "judges":
            problems.append(f"judges: there is no api {name!r}; write {' or '.join(APIS)}, or install its plug-in")
        elif found is not None and not rehearsal and source.policy != "external":
            problems.append(f"plug_ins: {name} is not pinned; {_advice(found)}")
    return problems


def _advice(found: PlugIn) -> str:
    if not re.match(PIN, found.pin):
        return f"{found.origin} is an editable install, which can change at any time: install it as a wheel"
    return f"write plug_ins: {{{found.name}: {json.dumps(found.pin)}}}"


def check_pins(pins: Mapping[str, str], parts: Iterable[Part]) -> str:
    """The pinned parts in words; an InputError names one that is not installed, or not in the state that is pinned."""
    held = [(group, name) for group, name in parts if name in pins]
    for group, name in held:
        found = plug_in(group, name, BUILT_IN[group])
        if found is None or found.pin != pins[name]:
            there = f"{found.pin} is installed" if found else "nothing installed registers that name"
            raise InputError(
                f"The plan pins {name} as {pins[name]}, and {there}. Install what is pinned; or, if the plan is not "
                "frozen yet, write the other pin."
            )
    return ", ".join(f"{name}: {pins[name]}" for _, name in held)
