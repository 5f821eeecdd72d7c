"""Every reply of a language model, kept as received: one append-only file per model and batch."""

import json
import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from runner.base.canonical import slug
from runner.base.errors import InputError
from runner.base.schema import Sha256, checked
from runner.base.store import disk_errors
from runner.judge.models.client import Reply


class KeptReply(Reply):
    """One attempt at one pair: a line of a reply file."""

    key: Sha256
    query_id: str
    doc_id: str
    received_on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class ReplyFiles:
    """The reply files of one model below a version's folder of batches."""

    def __init__(self, judging: Path, model: str) -> None:
        # An id of dots alone would name the folder of the batches.
        self.folder = judging / "replies" / (slug(model).strip(".") or "model")

    def path(self, batch: str) -> Path:
        """Return where the replies to a batch lie."""
        return self.folder / f"{batch}.jsonl"

    def read(self, batch: str) -> list[KeptReply]:
        """Return all attempts as they arrived; a torn last line is passed over, any other damaged one an InputError."""
        path = self.path(batch)
        whole = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        replies = []
        for number, line in enumerate(whole, start=1):
            where = f"{path}:{number}"
            try:
                replies.append(checked(KeptReply, json.loads(line), where))
            except (ValueError, RecursionError, InputError) as error:
                raise InputError(
                    f"{where}: not a kept reply ({error}). Delete the line; its pair is asked about again."
                ) from error
        return replies

    def append(self, batch: str, kept: KeptReply) -> None:
        """Put an attempt at the end of a batch's file, over what a kill left of one; one process at a time may."""
        # ASCII, and NaN as Python has it: what a service sent is kept, be it Unicode and strict JSON or not.
        line = json.dumps(kept.model_dump(), sort_keys=True) + "\n"
        path = self.path(batch)
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as stream:
                # A line that a kill cut off is taken away, so that the next one begins a line.
                if stream.tell():
                    stream.seek(-1, os.SEEK_END)
                    if stream.read(1) != b"\n":
                        stream.seek(0)
                        stream.truncate(stream.read().rfind(b"\n") + 1)
                stream.write(line.encode())
