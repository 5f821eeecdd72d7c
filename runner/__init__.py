"""The rooms of per-source-eval, from documents to a decision.

In come a source's documents, its queries and judges' grades; out come the files of an eval set and the pages over them.
The fourteen rooms are layers: `commands` at the top, `base` at the bottom, and a room imports only those below it.
pyproject.toml holds the order, and each room's docstring says what it takes, returns and must not know.
"""

__version__ = "0.1.0"
