"""An index for whoever searches it: what embeds its queries, once that is known to be what embedded its chunks."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from runner.base.canonical import today
from runner.base.errors import InputError
from runner.base.given_files import display, printable
from runner.base.places import DRIVER
from runner.base.records import PromptSide
from runner.embed.encoder import checked_encode
from runner.embed.local_encoder import local_encoder
from runner.embed.probe import signature, signed_texts
from runner.embed.vectors import Matrix, unit
from runner.eval_set.catalog import ENCODERS
from runner.substrate.index import Fingerprint, refuse_other
from runner.substrate.parquet_index import ParquetIndex
from runner.substrate.sqlite_index import SqliteIndex

DATABASES = (".db", ".sqlite", ".sqlite3")

Index = SqliteIndex | ParquetIndex
"""A place that holds an index; one process writes at a time, and what it writes is kept whole or not at all."""

Encode = Callable[[list[str], PromptSide], ArrayLike]
"""A row for each text, with the prompt of its side; a caller's own."""


def index_at(to: Path, source: str) -> Index:
    """Return the place for an index: a database if it is a file or its name ends so, else a folder of shards."""
    is_database = to.is_file() or (not to.is_dir() and to.suffix.lower() in DATABASES)
    return SqliteIndex(to, source, today()) if is_database else ParquetIndex(to)


def no_index(to: Path, source: str, flags: str) -> InputError:
    """Return what to raise where a place holds no index of a source; `flags` name its version in a command."""
    what = f"holds no index of {source}" if to.exists() else "does not exist"
    make = f"{DRIVER} embed {flags} --corpus-path FOLDER --to {shlex.quote(str(to))}"
    return InputError(f"{display(to)} {what}. Make it: {make}")


def open_index(path: str | Path, source: str, encode: Encode | None = None) -> Callable[[Sequence[str]], Matrix]:
    """Return what embeds queries for the source's index at `path`: a row each, as its vectors are stored.

    By default the catalog's encoder does, on this machine; `encode(texts, "query" or "document")` is a caller's own.
    IntegrityError, which names what differs, unless it makes the vectors that the index was made with. InputError if
    there is no index, or none of vectors.
    """
    place = Path(path)
    made = index_at(place, source).fingerprint()
    if made is None:
        raise no_index(place, source, source)
    if made.spec is None:
        raise InputError(
            f"{display(place)} holds no vectors of {source}, since {made.cell} has none: search its words."
        )
    spec = ENCODERS.get(made.encoder, made.spec)
    if encode is not None:
        rows = unit(np.vstack([np.asarray(encode(texts, side), np.float64) for texts, side in signed_texts(made.spec)]))
        refuse_other(made, made.model_copy(update={"probe": rows.tolist(), "dtype": ""}), place)
        return _asking(made, lambda texts: unit(np.asarray(encode(texts, "query"), np.float64)))
    if spec.api:
        raise InputError(f"{made.encoder} is a service: give `encode`, which asks it with your key.")
    refuse_other(made, made.model_copy(update={"row": spec}), place)
    encoder = local_encoder(spec)
    now = {"probe": signature(encoder).tolist(), "dtype": encoder.identity()["backend"].get("dtype", "")}
    refuse_other(made, made.model_copy(update=now), place)
    return _asking(made, lambda texts: checked_encode(encoder, texts, "query"))


def _asking(made: Fingerprint, rows_of: Callable[[list[str]], Matrix]) -> Callable[[Sequence[str]], Matrix]:
    """Return what embeds texts with `rows_of`, as the index stores them, once it has seen that they are texts."""

    def ask(texts: Sequence[str]) -> Matrix:
        # A string is a sequence too: each of its letters would get a vector.
        if isinstance(texts, str):
            raise InputError("One text is given, and a list of texts is expected. Put it into brackets.")
        asked = list(texts)
        for number, text in enumerate(asked):
            if not isinstance(text, str):
                raise InputError(f"texts[{number}] is {printable(repr(text), 40)}, not a text.")
        return made.stored(rows_of(asked)) if asked else np.zeros((0, made.dim), np.float32)

    return ask
