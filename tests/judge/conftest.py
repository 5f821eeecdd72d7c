from contextlib import ExitStack

import pytest

from tests.support.anthropic_server import KEY, RIGHT, AnthropicServer, served


@pytest.fixture
def server(monkeypatch):
    """A stand-in of Anthropic's API that grades everything alike, and a key for it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with served(AnthropicServer(grade=lambda user: RIGHT)) as server:
        yield server


@pytest.fixture
def closed():
    """Takes models, which are closed at the end."""
    with ExitStack() as stack:
        yield stack.enter_context
