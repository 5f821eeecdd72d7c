"""The shape of lock.json, of a record and of any other folder."""

from typing import Literal

from runner.base.schema import FrozenModel, Sha256, Sparse


class FolderFacts(FrozenModel):
    """What a lock of any folder holds beside the digests of its files; `own` is its own path there, or empty."""

    locked_at: str
    git: dict[str, str | bool]
    own: str


class Lock(Sparse):
    """lock.json: SHA-256 of every file, and of that table; with `folder` the lock of a folder that is not a record."""

    schema_version: Literal[1]
    files: dict[str, Sha256]
    root_sha256: Sha256
    folder: FolderFacts | None = None
