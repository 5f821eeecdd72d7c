from pathlib import Path

import pytest

from runner.base.errors import DocumentError
from samplers.formats.uslm.walk import walk
from samplers.sources.bills import ROOTS


def bill(body: str, form: str = "") -> bytes:
    return f"<bill><form>{form}</form><legis-body>{body}</legis-body></bill>".encode()


MANY_ATTRIBUTES = "an element has more than 256 attributes"
BOMB = b"".join(
    (
        b'<!DOCTYPE bill [<!ENTITY a0 "ha">',
        *(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12)),
        b"]><bill><legis-body><text>&a11;</text></legis-body></bill>",
    )
)
EXTERNAL = (
    b'<!DOCTYPE bill [<!ENTITY x SYSTEM "file:///etc/hostname">]><bill><legis-body><text>&x;</text></legis-body></bill>'
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"%PDF-1.7", "malformed XML (line 1)"),
        (b"<bill><legis-body>\n<text>x</legis-body></bill>", "malformed XML (line 2)"),
        (b"<html><body>Not found</body></html>", "the root element is <html>, which this source does not have"),
        (b"<bill><legis-body/></bill>", "no text in the body"),
        (bill("", "<official-title>To do nothing.</official-title>"), "no text in the body"),
        (bill("<text>caf\xe9</text>").decode().encode("latin-1"), "the declared encoding is not the file's (line 1)"),
        (b'<?xml version="1.0" encoding="klingon"?><bill/>', "the declared encoding is not the file's (line 1)"),
        (BOMB, "declares entities of its own"),
        (EXTERNAL, "declares entities of its own"),
        (b'<!DOCTYPE bill SYSTEM "bill.dtd"><bill><text>&nonsense;</text></bill>', "unknown entity &nonsense;"),
        (bill("<quote>" * 10_000 + "x" + "</quote>" * 10_000), "nested too deep"),
        (bill("<section>" * 200 + "x" + "</section>" * 200), "nested more than 120 elements deep"),
        (bill("<text>" + "pond " * 2_100_000 + "</text>"), "one piece of text is longer than 10 MB"),
        (f"<bill {' '.join(f'a{n}={chr(39)}1{chr(39)}' for n in range(64_000))}/>".encode(), MANY_ATTRIBUTES),
        (b"<bill>" + b" " * 50_000_000 + b"</bill>", "larger than 40 MB (50 MB)"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_short_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        walk(data, "hostile.xml", ROOTS)
    assert caught.value.reason == reason
    assert len(reason) <= 80


def test_nothing_outside_the_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "bill.dtd").write_text("this is no DTD and would fail to parse")
    data = f'<!DOCTYPE bill SYSTEM "{tmp_path / "bill.dtd"}"><bill><text>pond</text></bill>'.encode()
    assert walk(data, "x", ROOTS).text == "pond"


def test_nesting_up_to_the_limit_is_read() -> None:
    body = "<section>" * 100 + "x" + "</section>" * 100
    walked = walk(bill(body), "x", ROOTS)
    assert [section.level for section in walked.sections] == list(range(11, 111))
