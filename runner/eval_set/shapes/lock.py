"""The shape of lock.json, of a record and of any other folder."""

from typing import Literal

from pydantic import Field

from runner.base.schema import FrozenModel, Sha256, Sparse


class FolderFacts(FrozenModel):
    """What a lock of any folder holds beside the digests of its files.

    Files with one of `extensions` count, or all if it is empty; `own` is the lock's own path in the folder, or empty.
    """

    locked_at: str
    git: dict[str, str | bool]
    extensions: list[str]
    own: str
    score: float | None = Field(allow_inf_nan=False)
    meta: dict[str, str]


class Lock(Sparse):
    """lock.json: SHA-256 of every file, and of that table; with `folder` the lock of a folder that is not a record."""

    schema_version: Literal[1]
    files: dict[str, Sha256]
    root_sha256: Sha256
    folder: FolderFacts | None = None
