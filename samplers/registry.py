"""The sources that can be sampled, by the name of the module that reads them."""

from collections.abc import Mapping
from importlib import import_module

from samplers.source_format import SourceFormat

SAMPLERS: Mapping[str, str] = {
    source: f"samplers.sample_{source}"
    for source in (
        "bills",
        "us_code",
        "public_laws",
        "federal_register",
        "ecfr_and_cfr",
        "hearing_transcripts",
        "congressional_record",
        "committee_reports",
        "crs_reports",
        "gao_reports",
        "cbo_cost_estimates",
        "statements_of_administration_policy",
    )
}
"""Reader name -> module; each has a `FORMAT`. Modules are imported when a file is read, not with the command line."""


def source_format(name: str) -> SourceFormat:
    """The row of a reader."""
    row: SourceFormat = import_module(SAMPLERS[name]).FORMAT
    return row
