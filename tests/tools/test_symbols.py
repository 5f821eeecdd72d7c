import io
from dataclasses import astuple

import pytest

from runner.base.terminal import ASCII, Signs, signs_for
from runner.commands.console import show


def stream(encoding):
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030"])
def test_a_stream_that_can_take_the_signs_gets_them(encoding):
    assert signs_for(stream(encoding)) == Signs()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437"])
def test_a_stream_that_lacks_a_sign_gets_plain_ones(encoding):
    assert signs_for(stream(encoding)) == ASCII


def test_a_stream_without_an_encoding_takes_every_sign():
    assert signs_for(io.StringIO()) == Signs()


def test_every_plain_sign_is_ascii_and_tells_the_others_apart():
    assert all(sign.isascii() and sign for sign in astuple(ASCII))
    assert len(set(astuple(ASCII))) == len(astuple(ASCII))
    assert len(set(astuple(Signs()))) == len(astuple(Signs()))


def test_a_verdict_that_is_neither_pass_nor_fail_is_unsure():
    assert [ASCII.of(verdict) for verdict in ("pass", "fail", "insufficient")] == ["[ok]", "[x]", "[?]"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.12345, "+0.123"), (-0.5, "−0.500"), (0, "+0.000"), (-0.0, "+0.000"), (-1e-9, "+0.000")]
)
def test_a_number_has_a_sign_and_zero_has_one_form(value, text):
    assert Signs().signed(value, 3) == text


def test_with_plain_signs_everything_is_ascii(capsys):
    show(["é", "Δ"], Signs())
    show(["é", "Δ"], ASCII)
    assert capsys.readouterr().out == "é\nΔ\n\\xe9\n\\u0394\n"
