"""The rooms of per-source-eval, from documents to a decision.

In come a source's documents, its queries and judges' grades; out come the files of an eval set and the pages over them.
The fourteen rooms are layers: `commands` at the top, `base` at the bottom, and a room imports only those below it.
pyproject.toml holds the order, and each room's docstring says what it takes, returns and must not know.

`evaluate` is the way in from Python.
"""

__all__ = ["Evaluation", "__version__", "evaluate"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """`evaluate` and its `Evaluation`, imported when they are asked for: every room imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("runner.tools.evaluate"), name)
