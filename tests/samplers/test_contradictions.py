"""What is reported where a file and its name, or two places in a file, say two things of one document."""

from pathlib import Path

import pytest

from samplers.registry import source_format
from tests.support.reader_goldens import fixtures

ROWS = [
    ("hearing_transcripts", "CHRG-110hhrg90001.htm", "CHRG-110hhrg90009.htm", "CHRG-110hhrg90009", "90001"),
    ("hearing_transcripts", "CHRG-110hhrg90001.htm", "CHRG-111shrg90001.htm", "CHRG-111shrg90001", "CHRG-110hhrg"),
    ("congressional_record", "CREC-2019-03-14-pt1-PgH2600.htm", "CREC-2019-03-15-pt1-PgH2600.htm", "2019-03-14", "15"),
    ("congressional_record", "CREC-2019-03-14-pt1-PgH2600.htm", "CREC-2019-03-14-pt1-PgH2601.htm", "H2600", "H2601"),
    ("federal_register", "FR-2031-06-16.xml", "FR-2031-06-17.xml", "2031-06-16", "2031-06-17"),
    ("federal_register", "2031-10001-2.xml", "2031-10002-2.xml", "2031-10001", "2031-10002"),
    ("federal_register", "2031-10001.xml", "2031-06-13_RULE_2031-10002.xml", "2031-10001", "2031-10002"),
    ("ecfr_and_cfr", "CFR-2020-title91-vol1.xml", "CFR-2021-title91-vol1.xml", "2020", "2021"),
    ("ecfr_and_cfr", "ECFR-title92.xml", "ECFR-title93.xml", "title 92", "title 93"),
    ("us_code", "usc92.xml", "usc91.xml", "title 92", "title 91"),
    ("us_code", "usc94.xml", "usc94-rp113-31.xml", "118-3", "113-31"),
    ("committee_reports", "CRPT-118srpt901.htm", "CRPT-118srpt902.htm", "CRPT-118srpt901", "CRPT-118srpt902"),
    ("public_laws", "PLAW-119publ901.xml", "PLAW-119publ902.xml", "PLAW-119publ901", "PLAW-119publ902"),
]


@pytest.mark.parametrize(("source", "file", "name", "read_as", "said"), ROWS)
def test_a_name_that_says_another_thing_than_the_file_is_reported(source, file, name, read_as, said):
    data = next(path for path in fixtures(source) if path.name == file).read_bytes()
    read, named = (source_format(source).read(data, a_name, frozenset()) for a_name in (file, f"folder/{name}"))
    assert read.contradictions == ()
    assert named.contradictions
    assert all(read_as in sentence.partition(",")[0] for sentence in named.contradictions)
    assert all(said in sentence.partition(",")[2] for sentence in named.contradictions)
    assert len(named.documents) == len(read.documents)


def read_case(shared: Path, source: str, case: str):
    paths = sorted((shared / "cases" / case).iterdir())
    return [source_format(source).read(path.read_bytes(), path.name, frozenset()) for path in paths]


@pytest.mark.shared
def test_govinfos_file_name_gives_a_hearing_its_id_and_a_misprinted_jacket_is_told(shared):
    read = read_case(shared, "hearing_transcripts", "hearings-misprinted-jacket")
    assert [each.documents[0].doc_id for each in read] == ["CHRG-131hhrg48753", "CHRG-131hhrg52397"]
    assert [len(each.contradictions) for each in read] == [0, 1]


@pytest.mark.shared
def test_a_page_of_two_days_has_no_address_that_mixes_them(shared):
    (read,) = read_case(shared, "congressional_record", "record-two-dates")
    assert "2038-02-22" in read.contradictions[0]
    assert "2049-07-20" in read.contradictions[0]
    assert read.documents[0].url == ""


TITLED = """<title>Congressional Record, Volume 195 Issue 44 (Wednesday, May 5, 2049)</title><pre>
[Congressional Record Volume 195, Number 44 (Tuesday, May 4, 2049)]
[House]
[Page H1]

  Mr. DOE. Ferries need lanterns.
</pre>"""


def test_a_pages_title_that_has_another_day_is_reported():
    read = source_format("congressional_record").read(TITLED.encode(), "CREC-2049-05-04-pt1-PgH1.htm", frozenset())
    assert read.contradictions == ("read as of 2049-05-04, but its title says 2049-05-05",)
