"""A key goes to a host once somebody agreed to it; that nothing is sent before, test_service_encoder.py holds."""

import pytest

from runner.base.errors import InputError
from runner.base.sent_keys import agree, is_agreed, refuse_unagreed


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("A_KEY", "planted-secret")


def test_a_pair_is_agreed_to_once_and_is_about_this_variable_and_this_host():
    with pytest.raises(InputError, match="--send-key A_KEY=api") as caught:
        refuse_unagreed("A_KEY", "api.example", "encoders.own.url")
    assert "planted-secret" not in str(caught.value)
    agree(["A_KEY=API.example", "B_KEY=::1"])
    agree(["C_KEY=c.example"])
    refuse_unagreed("A_KEY", "api.example", "encoders.own.url")
    pairs = [("A_KEY", "Api.Example"), ("B_KEY", "::1"), ("C_KEY", "c.example")]
    assert all(is_agreed(*pair) for pair in pairs)
    others = [("A_KEY", "api.example.org"), ("A_KEY", "c.example"), ("A_KEY", "example"), ("KEY", "api.example")]
    assert not any(is_agreed(*pair) for pair in others)
    refuse_unagreed("NO_SUCH_KEY", "api.example", "encoders.own.url")  # nothing would be sent


@pytest.mark.parametrize(
    "pair", ["", "A_KEY", "A_KEY=", "=host", "a_key=host", "A_KEY=https://host", "A=h\nB=h", "A=h B"]
)
def test_what_is_no_pair_is_refused_and_nothing_is_kept(pair):
    with pytest.raises(InputError, match="NAME=HOST"):
        agree(["A_KEY=host", pair])
    assert not is_agreed("A_KEY", "host")
