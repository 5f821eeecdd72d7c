"""A fixture for tests of `evaluate`: import `few` into the module, and each of its evaluations takes few draws."""

import pytest

from runner.base.places import CACHE_VARIABLE
from runner.eval_set.plan import default_plan_text
from tests.support.small_set import few_draws


@pytest.fixture(autouse=True, scope="module")
def few(tmp_path_factory):
    """Few draws, and a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "runner.tools.evaluate.default_plan_text",
            lambda source, rehearsal: few_draws(default_plan_text(source, rehearsal=rehearsal)),
        )
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield
