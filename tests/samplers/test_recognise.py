import re
from pathlib import Path

import pytest

from runner.base.errors import DocumentError
from samplers.corpus.recognise import named_elsewhere, recognised
from samplers.registry import SAMPLERS, SOURCES, source_format
from tests.support.reader_goldens import fixtures

PRE = b"<html>\n<title> - A TITLE</title>\n<body><pre>\n"


@pytest.mark.parametrize(
    ("data", "name", "source"),
    [
        (b"<bill/>", "a.xml", "bills"),
        (b'<?xml version="1.0"?>\n<?xml-stylesheet href="x"?>\n<resolution a="b">', "a.xml", "bills"),
        (b'<!DOCTYPE bill PUBLIC "-//US Congress//DTDs/bill.dtd//EN" "bill.dtd">\n<bill>', "a.xml", "bills"),
        (b'<!DOCTYPE bill [<!ENTITY a "<b>">\n<!ENTITY c "d">]><bill>', "a.xml", "bills"),
        (b"<!-- <RULE> --><!-- x --><engrossedAmendment>", "a.xml", "bills"),
        (b'<pLaw xmlns="http://schemas.gpo.gov/xml/uslm">', "a.xml", "public_laws"),
        (b'<ns3:uscDoc xmlns:ns3="http://xml.house.gov/schemas/uslm/1.0">', "a.xml", "us_code"),
        (b'<section xmlns="x" identifier="/us/usc/t9/s1">', "a.xml", "us_code"),
        (b'<section xmlns="x" identifier="/us/cfr/t40/s52.39">', "a.xml", "ecfr_and_cfr"),
        (b"\xef\xbb\xbf<FEDREG>", "a.xml", "federal_register"),
        (b"  <PRESDOCU>", "a.xml", "federal_register"),
        ('<?xml version="1.0" encoding="UTF-16"?><NOTICE>'.encode("utf-16"), "a.xml", "federal_register"),
        (b"<CFRGRANULE>", "a.xml", "ecfr_and_cfr"),
        (b"<PART><EAR>Pt. 9</EAR>", "a.xml", "ecfr_and_cfr"),
        (b'<DIV5 N="1" TYPE="PART">', "a.xml", "ecfr_and_cfr"),
        (PRE + b"[House Hearing, 199 Congress]", "a.htm", "hearing_transcripts"),
        (PRE + b"[Senate Hearing 199-1]", "a.htm", "hearing_transcripts"),
        (PRE + b"[Congressional Record Volume 1, Number 2 (Monday)]", "a.htm", "congressional_record"),
        (PRE + b"[House Report 199-1]", "a.htm", "committee_reports"),
        (b"<html>\n<title>Senate Report 199-1 - X</title>", "a.htm", "committee_reports"),
        (b"# Ferries\n\n**Product Type:** Reports\n**Report No.:** R99999\n", "a.md", "crs_reports"),
        (b'{"gao_id": "GAO-99-1", "title": "x"}', "a.json", "gao_reports"),
        (b"%PDF-1.7 ...", "44-Name-199-2099-01-02_hr1.pdf", "statements_of_administration_policy"),
        (b"%PDF-1.7 ...", "statements/44-Name/199/2099-01-02_hjres1.pdf", "statements_of_administration_policy"),
        (b"%PDF-1.7 ...", "hr1-cost-estimate.pdf", "cbo_cost_estimates"),
        (b"CONGRESSIONAL BUDGET OFFICE\n     COST ESTIMATE\n\nJanuary 1", "a.txt", "cbo_cost_estimates"),
    ],
)
def test_a_file_is_known_by_its_first_lines(data, name, source):
    assert recognised(data, name).source == source


@pytest.mark.parametrize(
    "data",
    [b"", b" ", b"\x00" * 100, b"words", b"<x/>", b"<p>Mr. Speaker</p>", b"{}", b"<?xml", b"<!DOCTYPE a [", b"<!--"],
)
def test_an_unknown_file_is_of_no_source(data):
    assert recognised(data, "bill.xml").source == ""
    assert named_elsewhere(data, "bill.xml", "bills") == ""


def test_a_file_of_another_source_is_named_with_what_gave_it_away():
    assert named_elsewhere(b"<RULE>", "a", "bills") == "this is a federal_register file (root <RULE>), not one of bills"
    said = named_elsewhere(PRE + b"[House Hearing, 199 Congress]", "a", "committee_reports")
    assert said.startswith('this is a hearing_transcripts file (it begins with "[House Hearing, 1")')
    assert named_elsewhere(b"<bill>", "a", "bills") == ""


def test_the_words_that_stand_first_tell_the_source():
    report, record = b"[House Report 199-1]", b"[Congressional Record Volume 1]"
    assert recognised(PRE + report + b"\n" + record, "a.htm").source == "committee_reports"
    assert recognised(PRE + record + b"\n" + report, "a.htm").source == "congressional_record"


def test_a_root_element_of_a_million_letters_is_not_repeated():
    assert recognised(b"<" + b"a" * 1_000_000 + b">", "a.xml").source == ""
    said = named_elsewhere(b"<" + b"a" * 3000 + b' identifier="/us/usc/t1">', "a.xml", "bills")
    assert len(said) < 160


OF_FOLDER = {"bill_status": "", "bills_119_markdown": ""}


@pytest.mark.shared
def test_every_real_file_is_known_as_its_sources(shared):
    wrong = {}
    for path in sorted((shared / "corpora").rglob("*.*")):
        folder = path.relative_to(shared / "corpora").parts[0]
        if path.is_file() and path.suffix not in (".tsv", ".yaml"):
            found = recognised(path.read_bytes(), path.name).source
            if found != OF_FOLDER.get(folder, folder):
                wrong[path.name] = found
    assert wrong == {}


def taken(source: str, path: Path) -> bool:
    """Whether a source's reader makes something of a file."""
    row = source_format(source)
    if not path.name.lower().endswith(row.suffixes):
        return False
    try:
        return row.read(path.read_bytes(), path.name, frozenset()).documents != ()
    except DocumentError:
        return False


@pytest.mark.parametrize("source", SAMPLERS)
def test_a_file_that_its_reader_takes_is_not_known_as_another_sources(source):
    for path in fixtures(source):
        if taken(source, path):
            assert recognised(path.read_bytes(), path.name).source in ("", source)


@pytest.mark.parametrize("source", SAMPLERS)
def test_a_reader_refuses_the_files_of_every_other_source(source):
    others = [(other, path) for other in SAMPLERS if other != source for path in fixtures(other)]
    assert [path.name for other, path in others if taken(source, path) and taken(other, path)] == []


@pytest.mark.parametrize("line", [line for row in SOURCES.values() for line in row.known_by.lines])
def test_words_at_the_head_of_a_file_begin_with_one_character_so_that_junk_is_skipped_fast(line):
    first, _ = re._parser.parse(line.replace("^", "\n"))[0]
    assert str(first) == "LITERAL"
