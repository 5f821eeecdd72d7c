"""The installation examined end to end: every part does its work, every planted defect is caught."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from runner.base.checks import Check, writable_folders
from runner.base.places import CACHE_VARIABLE, INSTALLED, WORKPLACE, cache_folder
from runner.tools.doctor import defects, parts

_INSTALL = "`pip install --force-reinstall per-source-eval`" if INSTALLED else "`make setup` in the checkout"
_SET_UP = f"Run {_INSTALL}, then doctor again."
_CODE = (
    f"{_SET_UP} Report it if that does not help."
    if INSTALLED
    else "`git status` shows what was edited; where nothing was, run `make test` and report the first test that fails."
)


def all_checks(workplace: Path = WORKPLACE) -> list[Check]:
    """Every check in the order in which it is made: the machine, the parts, then the planted defects."""
    folders = (cache_folder(workplace), workplace / ".work", workplace / "eval-sets")
    machine = [
        Check(
            "python",
            "compared this Python with the one that is asked for",
            "Install that Python, and this tool with it.",
            partial(parts.python_version, workplace),
        ),
        Check(
            "packages",
            "compared installed packages with the pins",
            _SET_UP,
            partial(parts.packages, workplace),
        ),
        Check(
            "folders",
            "wrote a file into the cache's, the work's and the eval sets' folder",
            f"Make the folder writable for this user; {CACHE_VARIABLE} puts the cache elsewhere.",
            partial(writable_folders, folders),
        ),
        Check("tokens", "read cl100k_base from its package and counted a text", _SET_UP, parts.offline_tokens),
        Check(
            "encoder",
            "loaded the packaged encoder and probed it",
            _SET_UP,
            parts.local_encoder,
            slow=True,
        ),
    ]
    ours = [Check(name, did, _CODE, answer) for name, did, answer in _WORK]
    return [*machine, *ours]


_WORK: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("chunkers", "read twelve bills of two sentences and cut them with every chunker", parts.chunks_documents),
    ("bm25", "asked twelve questions, each of which one bill answers", parts.retrieves),
    ("gate", "graded an oracle and a plausible engine, which must pass", defects.good_systems_pass),
    ("graded gate", "graded BM25 over the bills, which must pass", defects.bm25_passes),
    *(
        (f"planted: {name}", f"graded {what}, which must fail", partial(defects.cheater_fails, name))
        for name, what in (
            ("constant", "a predictor that always gives the most frequent answer"),
            ("popularity", "a list of the most frequent answers"),
            ("random", "lists drawn at random"),
            ("marginal-matched", "lists drawn by how frequent answers are"),
            ("source-prior", "lists of each source's most frequent answers"),
        )
    ),
    ("planted: graded cheaters", "sent made-up predictors through the graded gate", defects.graded_controls_behave),
    ("planted: deaf BM25", "graded a BM25 that ignores its query, which must fail", defects.deaf_bm25_fails),
    ("planted: permuted labels", "graded BM25 with other queries' labels; must fail", defects.permuted_labels_fail),
    ("planted: constant vector", "probed an encoder with one vector for all", defects.constant_encoder_is_refused),
    ("planted: flipped byte", "locked a folder and changed a byte of it", defects.flipped_byte_is_found),
)
