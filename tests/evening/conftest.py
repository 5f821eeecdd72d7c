"""What tests of the next version share."""

import shutil
from pathlib import Path

import pytest

from runner.eval_set.version import Version
from tests.support.small_set import make_version


@pytest.fixture
def v1(decided: Path, tmp_path: Path) -> Version:
    """The decided v1 of the module's own `decided`, in a folder of its own."""
    shutil.copytree(decided, tmp_path, dirs_exist_ok=True)
    return make_version(tmp_path)
