import os
import socket

import pytest

OUTSIDE = ("192.0.2.1", 9)
"""An address for documentation, which nobody has (RFC 5737)."""


@pytest.mark.parametrize("call", ["connect", "connect_ex"])
def test_no_test_connects_to_another_machine(call):
    with socket.socket() as client, pytest.raises(AssertionError, match="tried to reach"):
        getattr(client, call)(OUTSIDE)


@pytest.mark.parametrize("host", ["example.org", b"example.org", "192.0.2.1"])
def test_no_test_looks_a_name_up(host):
    with pytest.raises(AssertionError, match="tried to reach"):
        socket.getaddrinfo(host, 443)
    with pytest.raises(AssertionError, match="tried to reach"):
        socket.create_connection((host, 443), timeout=1)


def test_loopback_is_open():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        assert socket.getaddrinfo("localhost", 80)
        assert socket.getaddrinfo(None, 80)


def test_processes_that_tests_start_leave_the_model_hub_alone():
    assert os.environ["HF_HUB_OFFLINE"] == "1"
