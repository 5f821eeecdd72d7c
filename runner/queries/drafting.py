"""Drafts by a language model: every row asked, every reply kept as received, what cannot be used named."""

import re
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import NamedTuple

from runner.base.errors import BackendError, InputError
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.eval_set.version import Version
from runner.judge.models.kept_replies import KeptReply, ReplyFiles
from runner.judge.models.requests import LanguageModel, Reply
from runner.queries.additions import refuse_frozen
from runner.queries.draft_answers import Answered, DraftAnswer, reply_answer
from runner.queries.draft_asks import DraftRow

ATTEMPTS = 3
_REPLIES = "drafts"


def frozen(version: Version) -> str:
    """Why the version takes no query any more, and how one is opened that does; "" while it takes some."""
    try:
        refuse_frozen(version)
    except InputError as error:
        return f"{error} To open it: {DRIVER} version new {version.flags}"
    return ""


class Asked(NamedTuple):
    """What a model drafted, in the order of the rows, and a line on each row that it gave nothing usable for."""

    answers: list[Answered]
    failed: list[str]


def ask_model(rows: Sequence[DraftRow], model: LanguageModel, folder: Path, today: str) -> Asked:
    """The model's answers; a row that has a usable reply in `folder` from before is not asked again.

    A row without a usable reply is asked up to ATTEMPTS times, unless its reply is final. What ends a session (no key,
    the budget) is raised; replies that came before are kept for the next run.
    """
    job = _Job(rows, model, ReplyFiles(folder, model.model), today)
    for _ in range(ATTEMPTS):
        if not job.open_rows():
            break
        try:
            job.ask()
        except BackendError:
            if any(row.key not in job.answers and row.key not in job.trouble for row in rows):
                raise
            break  # every row was asked about: those that came to nothing must not keep the others
    origin = re.sub(r"[^\w.:/@-]+", "-", model.model, flags=re.ASCII).strip("-")
    done = [Answered(row, job.answers[row.key], f"row {row.number}", origin) for row in rows if row.key in job.answers]
    open_rows = [row for row in rows if row.key not in job.answers]
    failed = [f"row {row.number}, {row.name}: {job.trouble.get(row.key, 'no reply came')}" for row in open_rows]
    return Asked(done, failed)


class _Job:
    """What is known of each row, by its key, while a model is asked."""

    def __init__(self, rows: Sequence[DraftRow], model: LanguageModel, files: ReplyFiles, today: str) -> None:
        self.rows, self.model, self.files, self.today = rows, model, files, today
        self.answers: dict[str, DraftAnswer] = {}
        self.trouble: dict[str, str] = {}
        self.final: set[str] = set()
        for kept in files.read(_REPLIES):
            self._take(kept.reply)
        self.trouble.clear()  # of earlier runs; what fails again says so again

    def open_rows(self) -> dict[str, DraftRow]:
        """The rows that are still to be asked about."""
        return {row.key: row for row in self.rows if row.key not in self.answers and row.key not in self.final}

    def ask(self) -> None:
        """One request a row that is open; every reply is on disk before it is read."""
        wanted = self.open_rows()
        say(f"{self.model.model}: {len(wanted)} queries to draft")
        replies = self.model.replies([row.ask for row in wanted.values()])
        try:
            for reply in replies:
                if reply.key in wanted:
                    self.files.append(_REPLIES, KeptReply.of(reply, "", wanted[reply.key].doc_id, self.today))
                    self._take(reply)
        finally:
            if isinstance(replies, Generator):
                replies.close()

    def _take(self, reply: Reply) -> None:
        if reply.final:
            self.final.add(reply.key)
        try:
            self.answers[reply.key] = reply_answer(reply)
        except InputError as error:
            self.trouble[reply.key] = str(error)
