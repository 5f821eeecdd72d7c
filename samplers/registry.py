"""The sources that can be sampled, by the name of the module that reads them."""

from collections.abc import Mapping
from importlib import import_module

from samplers.source_format import SourceFormat

SAMPLERS: Mapping[str, str] = {
    "bills": "samplers.sources.bills.sample_bills",
    "us_code": "samplers.sources.sample_us_code",
    "public_laws": "samplers.sources.sample_public_laws",
    "federal_register": "samplers.sources.federal_register.sample_federal_register",
    "ecfr_and_cfr": "samplers.sources.cfr.sample_ecfr_and_cfr",
    "hearing_transcripts": "samplers.sources.hearings.sample_hearing_transcripts",
    "congressional_record": "samplers.sources.congressional_record.sample_congressional_record",
    "committee_reports": "samplers.sources.committee_reports.sample_committee_reports",
    "crs_reports": "samplers.sources.crs.sample_crs_reports",
    "gao_reports": "samplers.sources.sample_gao_reports",
    "cbo_cost_estimates": "samplers.sources.sample_cbo_cost_estimates",
    "statements_of_administration_policy": "samplers.sources.statements.sample_statements_of_administration_policy",
}
"""Reader name -> module; each has a `FORMAT`. Modules are imported when a file is read, not with the command line."""


def source_format(name: str) -> SourceFormat:
    """The row of a reader."""
    row: SourceFormat = import_module(SAMPLERS[name]).FORMAT
    return row
