"""Has a language model grade exported batches: every reply is kept, and labels are imported when the asking ends."""

import shlex
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import takewhile

from runner.base.canonical import file_sha256, json_line, today
from runner.base.errors import BackendError, InputError
from runner.base.places import DRIVER
from runner.base.progress import Progress, Report, say
from runner.eval_set.shapes.labels import BatchRow, Label
from runner.eval_set.version import Version
from runner.judge.models.client import Ask, JudgeClient
from runner.judge.models.kept_replies import KeptReply, ReplyFiles
from runner.judge.models.prompt import UnreadableReply, asks_of, instructions, parse

ASKED_AGAIN = 2
"""How often a pair without a usable reply is asked about once more."""

MANY_UNREADABLE = 20
"""Replies of a model, unreadable, cut off or refused, without one answer among them after which it is given up."""

NAMED = 10
"""Pairs without an answer that a message names."""

Desk = Callable[[Sequence[tuple[str, Label]]], object]
"""Takes labels, each with its place for messages, in the order of their rows; one taken before must change nothing."""


class Judging:
    """Has every row graded, and the labels taken in the order of the rows, whatever the order of replies.

    Rows come batch by batch. No pair with a usable kept reply is asked about again. An InputError if a row was exported
    for another prompt. Rows, asks, labels and troubles are known by the ask's key.
    """

    def __init__(
        self,
        version: Version,
        rows: Sequence[BatchRow],
        model: JudgeClient,
        desk: Desk,
        *,
        report: Report = lambda _: None,
        today: Callable[[], str] = today,
    ) -> None:
        self.version, self.model, self.desk, self.report, self.today = version, model, desk, report, today
        self.files = ReplyFiles(version.judging, model.model)
        self.labels: dict[str, Label] = {}
        self.troubles: dict[str, str] = {}
        """Why the last reply was no answer."""
        self.final: set[str] = set()
        bound_to = version.number_name, file_sha256(version.judge_path)
        if odd := [row.batch for row in rows if (row.version, row.prompt_sha256) != bound_to]:
            raise InputError(
                f"{odd[0]} was exported for another version or judge prompt than {bound_to[0]} has now. Delete "
                f"{version.judging / odd[0]}.jsonl and `run` again: it is exported anew. Nothing was asked."
            )
        asks = asks_of(rows, instructions(version.judge_path), model.model)
        self.asks = {ask.key: ask for ask in asks}
        self.rows = {ask.key: row for ask, row in zip(asks, rows, strict=True)}

    def run(self) -> None:
        """Ask until every pair has a label or its tries are used up, and import.

        Once all others are taken, a BackendError names the pairs without an answer. If the asking ends early (budget,
        Ctrl-C, a refused key), replies beyond the complete batches wait for the next run.
        """
        for name in dict.fromkeys(row.batch for row in self.rows.values()):
            for kept in self.files.read(name):
                if kept.key in self.rows and kept.key not in self.labels:
                    self._read(kept)
        self._report()
        try:
            stopped = self._ask_all()
        except BaseException as ended:
            self._import(before=next((row.batch for _, row in self._missing()), ""))
            if isinstance(ended, BackendError):
                raise type(ended)(
                    f"{ended} {len(self.labels)} of {len(self.rows)} pairs are answered and kept; run the command "
                    "again and only the others are asked about."
                ) from ended
            raise
        self._import()
        if len(self.labels) < len(self.rows):
            error, why = (type(stopped), f"{stopped}\n") if stopped else (BackendError, "")
            raise error(f"{why}{self._unanswered()}") from stopped

    def _missing(self) -> list[tuple[str, BatchRow]]:
        """Return keys and rows of the pairs without a label, in order."""
        return [(key, row) for key, row in self.rows.items() if key not in self.labels]

    def _ask_all(self) -> BackendError | None:
        """Ask up to 1 + ASKED_AGAIN times about each pair.

        Return what ended the asking after every pair had been asked about, so that the others are imported; what ended
        it before is raised.
        """
        for attempt in range(1 + ASKED_AGAIN):
            wanted = [self.asks[key] for key, _ in self._missing() if key not in self.final]
            if not wanted:
                return None
            if attempt:
                say(
                    f"{self.model.model}: asking once more about {len(wanted)} of {len(self.rows)} pairs (the first: "
                    f"{self.troubles[wanted[0].key]})"
                )
            try:
                self._ask(wanted)
            except BackendError as error:
                if self.rows.keys() - self.labels.keys() - self.troubles.keys():
                    raise
                return error
        return None

    def _ask(self, asks: Sequence[Ask]) -> None:
        """Call the model once; every reply is kept before it is read."""
        n_unreadable = 0
        with closing(self.model.replies(asks)) as replies:
            for reply in replies:
                row = self.rows[reply.key]
                kept = KeptReply(**dict(reply), query_id=row.query_id, doc_id=row.doc_id, received_on=self.today())
                # Kept before it is read: a reply that is paid for is not asked for twice.
                self.files.append(row.batch, kept)
                if reply.final:
                    self.final.add(reply.key)
                if self._read(kept):
                    self._report()
                elif reply.model or not reply.problem:  # the model's own doing, and no trouble on the way
                    n_unreadable += 1
                if n_unreadable >= MANY_UNREADABLE and not self.labels:
                    raise BackendError(
                        f"{self.model.model} does not answer in the form: {n_unreadable} replies and no answer among "
                        f"them. The last: {self.troubles[reply.key]}. The replies are kept in {self.files.folder}. "
                        "Choose a model, or a server, that keeps to a JSON schema and is neither cut off nor refuses."
                    )

    def _read(self, kept: KeptReply) -> bool:
        """Return whether a kept reply is an answer, which then becomes a label."""
        try:
            self.labels[kept.key] = parse(kept, self.rows[kept.key], self.model.model, kept.received_on)
        except UnreadableReply as error:
            self.troubles[kept.key] = str(error)
            return False
        return True

    def _import(self, *, before: str = "") -> None:
        """Import what is answered of the batches before the one of that name; of all, without a name."""
        rows = takewhile(lambda item: item[1].batch != before, self.rows.items())
        given = [
            (f"{self.files.path(row.batch)} (query {row.query_id} and {row.doc_id})", self.labels[key])
            for key, row in rows
            if key in self.labels
        ]
        if given:
            self.desk(given)

    def _report(self) -> None:
        self.report(Progress(len(self.labels), len(self.rows), len(self.labels), len(self.rows)))

    def _unanswered(self) -> str:
        """Return which pairs have no answer, why, and what to do."""
        # The first few by name, then one as an example of how to judge it by file.
        missing = self._missing()
        lines = [
            f"  {row.batch}: query {row.query_id} and {row.doc_id}: {self.troubles[key]}"
            for key, row in missing[:NAMED]
        ]
        if len(missing) > NAMED:
            lines.append(f"  and {len(missing) - NAMED} more")
        row = missing[0][1]
        example = json_line({"query_id": row.query_id, "doc_id": row.doc_id, "grade": 0, "reason": "why"})
        file = shlex.quote(str(self.version.judging / f"{row.batch}.answers.jsonl"))
        return (
            f"Pairs without an answer by {self.model.model}: {len(missing)} of {len(self.rows)}.\n"
            + "\n".join(lines)
            + f"\nAll others are imported, and every reply is kept in {self.files.folder}. Run the command again to "
            f"ask about these once more, or judge them by file, one line a pair:\n  {example}\n"
            f"  {DRIVER} labels import {self.version.flags} --judge=NAME --person {file}\n"
            "with --model=ID in place of --person where a language model judged."
        )
