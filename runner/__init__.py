"""The rooms of per-source-eval, from documents to a decision.

In come a source's documents, its queries and judges' grades; out come the files of an eval set and the pages over them.
The fourteen rooms are layers: `commands` at the top, `base` at the bottom, and a room imports only those below it.
pyproject.toml holds the order, and each room's docstring says what it takes, returns and must not know.

`evaluate` is the way in from Python, `open_index` that of whoever searches what was decided, and `cohens_d` and
`needed_n` stand beside them.
"""

__all__ = ["Evaluation", "__version__", "cohens_d", "evaluate", "needed_n", "open_index"]

__version__ = "1.0.0"


def __getattr__(name: str) -> object:
    """What the package offers, imported when it is asked for: every room imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    rooms = {"cohens_d": "score.power", "needed_n": "score.power", "open_index": "substrate.open_index"}
    return getattr(import_module(f"runner.{rooms.get(name, 'tools.evaluate')}"), name)
