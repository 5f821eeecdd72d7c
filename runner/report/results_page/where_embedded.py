"""Where the cells of a page were embedded, in words: what a receipt's `backends` say of each of them."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from runner.eval_set.shapes.cell import BackendRecord

UNSAID = "not said"
UNVERIFIED = "unverified: the server does not prove which revision it serves"
REPEATED = "aa"
"""The baseline once more, as receipts name it; it comes last."""

_PLACES = {"local": "locally", "modal": "on Modal", "http": "over HTTP"}
_IN_COLUMNS = frozenset({"device", "dtype", "model_dtype", "revision", "model_sha", "weights_sha256"})


class EmbeddedCell(NamedTuple):
    """One cell's backend; `further` is what it said beyond the columns, `place` how a sentence names where it ran."""

    cell: str
    backend: str
    device: str
    number_format: str
    libraries: list[str]
    revision: str
    further: list[str]
    place: str


class CellBackends(NamedTuple):
    """The cells in name order; the places with their cells if there is more than one; cells of unproven revision.

    `noise_floor_elsewhere` if the baseline and its repetition were embedded in different places.
    """

    cells: list[EmbeddedCell]
    places: list[tuple[str, list[str]]]
    unverified: list[str]
    noise_floor_elsewhere: bool


def embedded(backends: Mapping[str, BackendRecord], baseline: str) -> CellBackends:
    """The backends of a receipt, by cell, as a page says them."""
    cells = [_cell(name, backends[name]) for name in sorted(backends, key=lambda name: (name == REPEATED, name))]
    places = _by_place(cells)
    place_of = {row.cell: row.place for row in cells}
    return CellBackends(
        cells=cells,
        places=places if len(places) > 1 else [],
        unverified=[row.cell for row in cells if row.revision == UNVERIFIED],
        noise_floor_elsewhere=REPEATED in place_of and place_of[REPEATED] != place_of.get(baseline),
    )


def _by_place(cells: Iterable[EmbeddedCell]) -> list[tuple[str, list[str]]]:
    ordered = sorted(cells, key=lambda row: row.place)  # stable: the cells of a place keep their order
    return [(place, [row.cell for row in rows]) for place, rows in groupby(ordered, key=lambda row: row.place)]


def _cell(cell: str, record: BackendRecord) -> EmbeddedCell:
    name, identity, served = record.name, record.identity, record.served
    device = str(served.get("device") or identity.get("device") or UNSAID)
    number_format = str(served.get("dtype") or served.get("model_dtype") or identity.get("dtype") or UNSAID)
    pinned = identity.get("versions")
    versions = pinned.items() if isinstance(pinned, dict) else ()
    libraries = {library: served.get(library) or version for library, version in versions}
    further = sorted(served.keys() - _IN_COLUMNS - libraries.keys())
    return EmbeddedCell(
        cell=cell,
        backend=_backend(record),
        device=device,
        number_format=number_format,
        libraries=[f"{library} {libraries[library]}" for library in sorted(libraries)],
        revision=_revision(record),
        further=[f"{what}: {served[what]}" for what in further],
        place=f"{_PLACES[name]} ({', '.join(said for said in (device, number_format) if said != UNSAID) or UNSAID})",
    )


def _backend(record: BackendRecord) -> str:
    if record.name != "http":
        return {"local": "local", "modal": "Modal"}[record.name]
    return f"HTTP, {record.identity.get('api', 'API ' + UNSAID)}, {record.identity.get('url', 'address ' + UNSAID)}"


def _revision(record: BackendRecord) -> str:
    """Local and Modal backends load files that were checked; a server can only be believed."""
    if record.name == "http":
        said = record.served.get("model_sha")
        return f"{said[:12]}, as the server says" if said else UNVERIFIED
    weights = record.served.get("weights_sha256")
    return f"as catalogued, weights {weights[:12]}" if weights else "as catalogued"
