"""Where the product's own files lie, where its user works, and how a message names the command."""

import os
import shlex
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
"""Where the packages lie: the checkout, or what a wheel was installed into."""

_IN_WHEEL = CHECKOUT / "runner" / "own"

INSTALLED = _IN_WHEEL.is_dir()
"""Whether this is a wheel and no checkout; pyproject.toml puts that folder into wheels alone."""

OWN_FILES = _IN_WHEEL if INSTALLED else CHECKOUT
"""The product's own files: templates/ and eval-sets/demo/. Nothing is written there if it came from a wheel."""

WORKPLACE = Path.cwd() if INSTALLED else CHECKOUT
"""Where the user works: holds EVAL_SETS, .work/, .cache/ and .models/."""

EVAL_SETS = WORKPLACE / "eval-sets"
"""The eval sets of the roster's sources where no other folder is named, one folder per source: the record."""

OWN_SETS = WORKPLACE / "own-sets"
"""The same for sources of one's own, which are apart from the record and outside git."""

COMMAND = "per-source-eval"
"""The command as pages name it, whose bytes are the same everywhere."""

_DRIVER = COMMAND if INSTALLED else "bin/per-source-eval.py"


def _typed() -> str:
    """Return how this process's command was typed, so that what messages print runs from the same folder."""
    path = Path(sys.argv[0] if sys.argv else "")
    if path.name != Path(_DRIVER).name:  # a program that imports this one
        return _DRIVER
    # A shell that finds the command by PATH gives the whole path, which nobody typed.
    is_found = str(path.parent) in os.environ.get("PATH", "").split(os.pathsep)
    return path.name if is_found else shlex.quote(sys.argv[0])


DRIVER = _typed()
"""The command that messages name."""

CACHE_VARIABLE = "PER_SOURCE_EVAL_CACHE"
"""Names the cache's folder where that is not .cache of the workplace."""


def cache_folder(workplace: Path = WORKPLACE) -> Path:
    """Return where a workplace's cache lies: the folder that CACHE_VARIABLE names, else .cache."""
    return Path(os.environ.get(CACHE_VARIABLE) or workplace / ".cache")
