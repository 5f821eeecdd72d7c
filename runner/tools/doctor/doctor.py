"""The installation examined end to end: every part does its work, every planted defect is caught."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from runner.base.places import CACHE_VARIABLE, INSTALLED, WORKPLACE, cache_folder
from runner.base.steps import Check, writable_folders
from runner.tools.doctor import defects, parts

_INSTALL = "`pip install --force-reinstall per-source-eval`" if INSTALLED else "`make setup` in the checkout"
_SET_UP = f"Run {_INSTALL}, then doctor again."
_CODE = (
    f"{_SET_UP} Report it if that does not help."
    if INSTALLED
    else "`git status` shows what was edited; where nothing was, run `make test` and report the first test that fails."
)


def all_checks(workplace: Path = WORKPLACE) -> list[Check]:
    """Return every check in the order in which it is made: the machine, the parts, then the planted defects."""
    folders = (cache_folder(workplace), workplace / ".work", workplace / "eval-sets")
    # The machine comes first: what it lacks explains most of what fails below.
    machine = [
        Check("python", "Install that Python, and this tool with it.", partial(parts.python_version, workplace)),
        Check("packages", _SET_UP, partial(parts.packages, workplace)),
        Check(
            "folders",
            f"Make the folder writable for this user; {CACHE_VARIABLE} puts the cache elsewhere.",
            partial(writable_folders, folders),
        ),
        Check("tokens", _SET_UP, parts.offline_tokens),
        Check("encoder", _SET_UP, parts.local_encoder, slow=True),
    ]
    return [*machine, *(Check(name, _CODE, answer) for name, answer in _WORK)]


_WORK: tuple[tuple[str, Callable[[], str]], ...] = (
    ("chunkers", parts.chunks_documents),
    ("bm25", parts.retrieves),
    ("gate", defects.good_systems_pass),
    ("graded gate", defects.bm25_passes),
    *(
        (f"planted: {name}", partial(defects.cheater_fails, name))
        for name in ("constant", "popularity", "random", "marginal-matched", "source-prior")
    ),
    ("planted: graded cheaters", defects.graded_controls_behave),
    ("planted: deaf BM25", defects.deaf_bm25_fails),
    ("planted: permuted labels", defects.permuted_labels_fail),
    ("planted: constant vector", defects.constant_encoder_is_refused),
    ("planted: flipped byte", defects.flipped_byte_is_found),
)
