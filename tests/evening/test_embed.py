"""A decision carried out over the small set: the index, what changes it, and who is refused."""

import shutil

import pytest

from runner.decide.decide import Choice
from runner.embed.backends import LocalBackend
from runner.evening.embed import embed_source
from runner.evening.post_bulk import post_bulk
from tests.support.evening_process import run
from tests.support.small_set import fake_encoders, make_version

CHOSEN = "minilm-l6-v2 x fixed_token_512_50"


@pytest.fixture(name="evening", scope="module")
def _evening(tmp_path_factory):
    """A folder with a version whose baseline was chosen, and is locked."""
    folder = tmp_path_factory.mktemp("decided")
    run(folder, Choice(CHOSEN, "tests", "a test"))
    return folder


@pytest.fixture(name="home")
def _home(evening, tmp_path):
    """A copy of the decided version and its corpus."""
    shutil.copytree(evening, tmp_path, dirs_exist_ok=True)
    return tmp_path


def embedded(home, to, **more):
    return embed_source(make_version(home), home / "corpus", home / to, LocalBackend(fake_encoders), **more)


def test_what_was_embedded_has_no_fault_after_bulk(home):
    print(embedded(home, "index.db"))
    print(embedded(home, "index"))
    print(post_bulk(make_version(home), home / "index.db", encoders=fake_encoders))
