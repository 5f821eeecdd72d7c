"""Has a language model grade exported batches: every reply is kept, and labels are imported when the asking ends."""

import shlex
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from itertools import takewhile
from typing import NamedTuple

from runner.base.canonical import file_sha256, json_line, today
from runner.base.errors import BackendError, EvalError, InputError
from runner.base.places import DRIVER
from runner.base.progress import Progress, Report, say
from runner.base.store import FULL
from runner.eval_set.shapes.labels import BatchRow, Label
from runner.eval_set.version import Version
from runner.judge.models.client import Ask, JudgeClient, Reply
from runner.judge.models.kept_replies import KeptReply, ReplyFiles
from runner.judge.models.prompt import UnreadableReply, asks_of, instructions, parse

ASKED_AGAIN = 2
"""How often a pair without a usable reply is asked about once more."""

MANY_UNREADABLE = 20
"""Replies of a model, unreadable, cut off or refused, without one answer among them after which it is given up."""

NAMED = 10
"""Pairs without an answer that a message names."""

NO_REPLY = "no reply came"


Desk = Callable[[Sequence[tuple[str, Label]]], object]
"""Takes labels, each with its place for messages, in the order of their rows; one taken before must change nothing."""


class Judged(NamedTuple):
    """What a judging did: pairs answered, and how many of them by replies of earlier attempts."""

    pairs: int
    kept: int
    requests: int


class _Row(NamedTuple):
    """A row on its way to the model."""

    batch: str
    row: BatchRow
    ask: Ask


class Judging:
    """Has every row graded, and the labels taken in the order of the batches, whatever the order of replies.

    No pair with a usable kept reply is asked about again. An InputError if a row was exported for another prompt. Rows,
    labels and troubles are known by the ask's key.
    """

    def __init__(
        self,
        version: Version,
        batches: Mapping[str, Sequence[BatchRow]],
        model: JudgeClient,
        desk: Desk,
        *,
        report: Report | None = None,
        today: Callable[[], str] = today,
    ) -> None:
        self.version, self.model, self.desk, self.report, self.today = version, model, desk, report, today
        self.files = ReplyFiles(version.judging, model.model)
        self.rows: dict[str, _Row] = {}
        self.batches: dict[str, list[str]] = {}
        """Keys of each batch's rows, in order."""
        self.labels: dict[str, tuple[str, Label]] = {}
        self.troubles: dict[str, str] = {}
        """Why the last reply was no answer."""
        self.final: set[str] = set()
        self.n_requests = 0
        system, bound_to = instructions(version.judge_path), (version.number_name, file_sha256(version.judge_path))
        for name, rows in batches.items():
            if any((row.version, row.prompt_sha256) != bound_to for row in rows):
                raise InputError(
                    f"{name} was exported for another version or judge prompt than {bound_to[0]} has now. Delete "
                    f"{version.judging / name}.jsonl and `run` again: it is exported anew. Nothing was asked."
                )
            asks = asks_of(rows, system, model.model)
            self.rows |= {ask.key: _Row(name, row, ask) for ask, row in zip(asks, rows, strict=True)}
            self.batches[name] = list(dict.fromkeys(ask.key for ask in asks))

    def run(self) -> Judged:
        """Ask until every pair has a label or its tries are used up, and import.

        Once all others are taken, a BackendError names the pairs without an answer. If the asking ends early (budget,
        Ctrl-C, a refused key), replies beyond the complete batches wait for the next run.
        """
        for name, keys in self.batches.items():
            wanted = set(keys)
            for kept in self.files.read(name):
                if kept.key in wanted and kept.key not in self.labels:
                    self._read(kept)
        n_kept = len(self.labels)
        self._report()
        try:
            stopped = self._ask_all()
        except BaseException:
            self._import(self._n_complete())
            raise
        self._import(len(self.batches))
        if len(self.labels) < len(self.rows):
            error, why = (type(stopped), f"{stopped}\n") if stopped else (BackendError, "")
            raise error(f"{why}{self._unanswered()}") from stopped
        return Judged(len(self.labels), n_kept, self.n_requests)

    def _ask_all(self) -> BackendError | None:
        """Ask up to 1 + ASKED_AGAIN times about each pair.

        Return what ended the asking after every pair had been asked about, so that the others are imported; what ended
        it before is raised.
        """
        for attempt in range(1 + ASKED_AGAIN):
            wanted = [row.ask for key, row in self.rows.items() if key not in self.labels and key not in self.final]
            if not wanted:
                return None
            if attempt:
                say(
                    f"{self.model.model}: asking once more about {len(wanted)} of {len(self.rows)} pairs (the first: "
                    f"{self.troubles.get(wanted[0].key, NO_REPLY)})"
                )
            try:
                self._ask(wanted)
            except BackendError as error:
                if self.rows.keys() - self.labels.keys() - self.troubles.keys():
                    raise
                return error
        return None

    def _ask(self, asks: Sequence[Ask]) -> None:
        """Call the model once; every reply to a pair that has no label yet is kept before it is read."""
        n_unreadable = 0
        with closing(self._received(asks)) as replies:
            for reply in replies:
                if reply.key not in self.rows or reply.key in self.labels:
                    continue
                self.n_requests += 1
                batch, row, _ = self.rows[reply.key]
                kept = KeptReply(**dict(reply), query_id=row.query_id, doc_id=row.doc_id, received_on=self.today())
                # Kept before it is read: a reply that is paid for is not asked for twice.
                self.files.append(batch, kept)
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
        batch, row, _ = self.rows[kept.key]
        try:
            label = parse(kept, row, self.model.model, kept.received_on)
        except UnreadableReply as error:
            self.troubles[kept.key] = str(error)
            return False
        self.labels[kept.key] = f"{self.files.path(batch)} (query {row.query_id} and {row.doc_id})", label
        return True

    def _received(self, asks: Sequence[Ask]) -> Generator[Reply]:
        """Yield the model's replies; what ends them early becomes a BackendError that says what is kept."""
        try:
            yield from self.model.replies(asks)
        except BackendError as error:
            raise type(error)(f"{error} {self._after_stop()}") from error
        except EvalError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise  # our own disk, not the service
            raise BackendError(f"{self.model.model} failed: {type(error).__name__}. {self._after_stop()}") from error

    def _after_stop(self) -> str:
        return (
            f"{len(self.labels)} of {len(self.rows)} pairs are answered and kept; run the command again and only the "
            "others are asked about."
        )

    def _n_complete(self) -> int:
        """Return how many of the batches, from the first on, are answered whole."""
        return sum(1 for _ in takewhile(self.labels.keys().__ge__, map(set, self.batches.values())))

    def _import(self, n_batches: int) -> None:
        """Import what is answered of the first batches, so many."""
        keys = [key for name in list(self.batches)[:n_batches] for key in self.batches[name]]
        if given := [self.labels[key] for key in keys if key in self.labels]:
            self.desk(given)

    def _report(self) -> None:
        if self.report is not None:
            self.report(Progress(len(self.labels), len(self.rows), len(self.labels), len(self.rows)))

    def _unanswered(self) -> str:
        """Return which pairs have no answer, why, and what to do."""
        # The first few by name, then one as an example of how to judge it by file.
        missing = [(key, row) for key, row in self.rows.items() if key not in self.labels]
        lines = [
            f"  {batch}: query {row.query_id} and {row.doc_id}: {self.troubles.get(key, NO_REPLY)}"
            for key, (batch, row, _) in missing[:NAMED]
        ]
        if len(missing) > NAMED:
            lines.append(f"  and {len(missing) - NAMED} more")
        batch, row, _ = missing[0][1]
        example = json_line({"query_id": row.query_id, "doc_id": row.doc_id, "grade": 0, "reason": "why"})
        file = shlex.quote(str(self.version.judging / f"{batch}.answers.jsonl"))
        return (
            f"Pairs without an answer by {self.model.model}: {len(missing)} of {len(self.rows)}.\n"
            + "\n".join(lines)
            + f"\nAll others are imported, and every reply is kept in {self.files.folder}. Run the command again to "
            f"ask about these once more, or judge them by file, one line a pair:\n  {example}\n"
            f"  {DRIVER} labels import {self.version.flags} --judge=NAME --person {file}\n"
            "with --model=ID in place of --person where a language model judged."
        )
