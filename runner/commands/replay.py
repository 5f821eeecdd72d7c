"""`replay`: a recorded version embedded once more; or one encoder's vectors elsewhere beside those of this machine."""

import argparse
from typing import TYPE_CHECKING

from runner.base.canonical import today
from runner.base.errors import InputError
from runner.base.figures import signed
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.places import WORKPLACE
from runner.base.terminal import MARKS
from runner.commands.console import tell
from runner.commands.flags import backend_of, check_models, version_of
from runner.decide.roster import version_in_force

if TYPE_CHECKING:
    from runner.tools.replay import CellReplay, Replay


def replay(options: argparse.Namespace) -> int:
    """Embed a recorded version again; 0 if every cell holds or the encoder's vectors are the same, else 1."""
    if bool(options.encoder) == bool(options.source):
        raise InputError("Give either SOURCE or --encoder NAME.")
    check_models(options)
    if options.encoder and not (options.modal or options.encoder_url):
        raise InputError(
            "--encoder is compared with this machine; say where else it runs: --modal or --encoder-url URL."
        )
    return _encoder(options) if options.encoder else _version(options)


def _version(options: argparse.Namespace) -> int:
    """Replay a version. What it spends is counted apart: a version's own ledger says what its record cost."""
    from runner.tools import replay as stage

    # What counts is replayed: an open version has runs of which nothing is decided.
    newest = version_of(options)
    version = newest if options.rehearse else version_in_force(newest) or newest
    work = version.work / "replay"
    with backend_of(options, version, work) as backend:
        found = stage.replay(version, backend)
    tell(options, {**found.model_dump(), "holds": found.holds}, lambda: replay_lines(found))
    return 0 if found.holds else 1


def _encoder(options: argparse.Namespace) -> int:
    """Compare an encoder. What that spends is counted for the day, and in no version's ledger."""
    from runner.tools.replay import encoder_beside

    with backend_of(options, None, WORKPLACE / ".work" / "replay" / today()) as backend:
        found = encoder_beside(backend, options.encoder)
        name = backend.name
    said = "the vectors of this machine" if found.same else "other vectors than on this machine"
    head = f"{MARKS['pass' if found.same else 'fail']} {options.encoder} on {name}: {said}; {found.worst} has the"
    figures = f"smallest cosine {found.cosine:.6f}, at least {found.required} is asked for"
    line = printable(f"{head} {figures}; coordinates differ by {found.difference:.1e} at most", LONGEST_LINE)
    data = {"encoder": options.encoder, "backend": name, "same": found.same, **found._asdict()}
    tell(options, data, lambda: [line])
    return 0 if found.same else 1


def replay_lines(found: "Replay") -> list[str]:
    """Return each cell then and now, and how many hold."""
    held = sum(cell.holds for cell in found.cells)
    lines = [line for cell in found.cells for line in _cell_lines(cell)]
    devices = sorted({cell.device for cell in found.cells if cell.device})
    where = f"{found.backend} ({', '.join(devices)})" if devices else found.backend
    return [*lines, printable(f"{found.version} on {where}: {held} of {len(found.cells)} cells hold", LONGEST_LINE)]


def _cell_lines(cell: "CellReplay") -> list[str]:
    sign = MARKS["pass" if cell.holds else "fail"]
    head = f"{sign} {cell.cell}: nDCG@10 {cell.recorded:.4f} then, {cell.replayed:.4f} now"
    if cell.identical:  # the same bytes, so there is no difference to explain
        return [printable(f"{head}; the same run", LONGEST_LINE)]
    interval = " to ".join(signed(value, 4) for value in (cell.difference.low, cell.difference.high))
    worst = f" ({cell.worst_query})" if cell.worst_query else ""
    allowed = f"scores moved by {cell.score_shift:.5f}, rounding explains {cell.rounding:.5f}"
    text = f"{head}, {signed(cell.difference.mean, 4)} ({interval}); largest change of a query "
    text += f"{cell.max_change:.4f}{worst}; {allowed}"
    return [printable(text, LONGEST_LINE), *([f"    {printable(cell.note, LONGEST_LINE)}"] if cell.note else [])]
