"""The check after the bulk embedding: a decided version's queries in the production substrate, beside its record."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from runner.base.canonical import read_json
from runner.base.errors import NegativeVerdict
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.schema import checked
from runner.embed.encoder import Encoder
from runner.embed.local_encoder import encoder_for
from runner.eval_set.lock import report_folders, verify_lock, verify_version
from runner.eval_set.version import Version, alone
from runner.report.post_bulk_page import PAGE, place_report
from runner.substrate.database import open_substrate
from runner.substrate.measure import measured, verdict
from runner.substrate.record import decided
from runner.substrate.shapes import PostBulk


def post_bulk(version: Version, substrate: Path, *, encoders: Callable[[str], Encoder] = encoder_for) -> str:
    """Return the answer for stdout if no fault was found; else raise NegativeVerdict with each fault and the page.

    Either way one more report lies below the record's post-bulk/, whole; after any other error there is none. The
    record is verified first and again before the report appears. Nothing else in it is written.
    """
    with alone(version):
        verify_version(version)
        known = decided(version, encoders)
        # The newest report's substrate, so that a change shows; asked before the new report lies there.
        before = None
        if reports := report_folders(version.record):
            verify_lock(reports[-1])
            path = reports[-1] / "post_bulk.json"
            before = checked(PostBulk, read_json(path), path).substrate.version
        with open_substrate(substrate, version.source.name) as opened:
            outcome = measured(known, opened, before)
        folder = place_report(version.record, outcome, check=partial(verify_version, version))
    report = outcome.report
    lines = [f"{version.name}: {verdict(report)}", *(f"  {fault.name}: {fault.sentence}" for fault in report.faults)]
    answer = "\n".join([*(printable(line, LONGEST_LINE) for line in lines), f"page: {folder / PAGE}"])
    if report.faults:
        raise NegativeVerdict(answer)
    return answer
