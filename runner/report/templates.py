"""The environment in which templates are rendered: figures as text, and jinja's byte code beside Python's."""

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

from runner.base import figures
from runner.base.canonical import sha256
from runner.base.places import OWN_FILES
from runner.decide.tiers import interval_of, stand
from runner.score.recall_bound import recall_state

TEMPLATES = OWN_FILES / "templates"

_OPTIONS: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}


def own_functions(module: ModuleType) -> dict[str, FunctionType]:
    """Return the public functions that a module defines, by name: what templates may ask of it."""
    functions = {name: each for name, each in vars(module).items() if isinstance(each, FunctionType)}
    return {name: each for name, each in functions.items() if each.__module__ == module.__name__ and name[0] != "_"}


_FILTERS = own_functions(figures)
"""Every way to write a figure."""

_ASKED: tuple[Callable[..., object], ...] = (
    *(interval_of, recall_state, stand),
    *(figures.figure_beside_bar, figures.p_and_bar, figures.texts),
)


def environment(*, autoescape: bool) -> Environment:
    """Return what renders a template: for pages with escapes, for sentences and Markdown without."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,  # noqa: S701  # a sentence is plain text, which a page escapes
        bytecode_cache=_byte_code(autoescape=autoescape),
        **_OPTIONS,
    )
    made.filters |= _FILTERS | {"grouped": "{:,}".format, "quoted": shlex.quote}
    made.globals |= {each.__name__: each for each in _ASKED}
    return made


def _byte_code(*, autoescape: bool) -> FileSystemBytecodeCache | None:
    """Return the cache of compiled templates beside Python's own, None if Python keeps nothing there or cannot."""
    folder = Path(cache_from_source(str(TEMPLATES / "page.py"))).parent
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if sys.dont_write_bytecode or not os.access(folder, os.W_OK) or not folder.is_dir():
        return None
    # Compiled by another jinja or with other options a template is another one.
    made_with = sha256(f"{version('jinja2')} {autoescape} {_OPTIONS}")[:8]
    return FileSystemBytecodeCache(str(folder), f"{made_with}-%s.cache")
