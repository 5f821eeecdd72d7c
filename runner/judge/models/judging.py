"""Has a language model grade exported batches: every reply is kept, and answers are imported batch by batch."""

import shlex
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from runner.base.canonical import file_sha256, json_line, today
from runner.base.errors import BackendError, EvalError, InputError
from runner.base.places import DRIVER
from runner.base.progress import Progress, Report, say
from runner.base.store import FULL
from runner.eval_set.shapes.labels import BatchRow
from runner.eval_set.version import Version
from runner.judge.answers import Given
from runner.judge.models.kept_replies import KeptReply, ReplyFiles
from runner.judge.models.prompt import UnreadableReply, asks_of, instructions, parse
from runner.judge.models.requests import Ask, LanguageModel, Reply

ASKED_AGAIN = 2
"""How often a pair without a usable reply is asked about once more."""

MANY_UNREADABLE = 20
"""Replies without one answer among them after which a model is given up."""

NAMED = 10
"""Pairs without an answer that a message names."""

NO_REPLY = "no reply came"


Importer = Callable[[Sequence[Given]], object]
"""Takes the answers of a few batches in the order of their rows; one imported before must change nothing."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a call of `judge_batches` did: pairs answered, and how many of them by replies of earlier attempts."""

    pairs: int
    kept: int
    requests: int


def judge_batches(
    version: Version,
    batches: Mapping[str, Sequence[BatchRow]],
    model: LanguageModel,
    importer: Importer,
    *,
    report: Report | None = None,
    today: Callable[[], str] = today,
) -> Judged:
    """Have every row graded, and the answers imported in the order of the batches, whatever the order of replies.

    No pair with a usable kept reply is asked about again. Once all others are imported, a BackendError names the pairs
    without an answer. If the asking ends early (budget, Ctrl-C, a refused key), replies beyond the complete batches
    wait for the next run. An InputError if a row was exported for another prompt.
    """
    job = _Job(version, batches, model, importer, report, today)
    job.run()
    return Judged(len(job.answers), job.n_kept, job.n_requests)


class _Job:
    """One call. Everything is known by the ask's key."""

    def __init__(
        self,
        version: Version,
        batches: Mapping[str, Sequence[BatchRow]],
        model: LanguageModel,
        importer: Importer,
        report: Report | None,
        today: Callable[[], str],
    ) -> None:
        self.version, self.model, self.importer = version, model, importer
        self.report, self.today = report, today
        self.system = instructions(version.judge_path)
        self.files = ReplyFiles(version.judging, model.model)
        self.asks: dict[str, Ask] = {}
        self.rows: dict[str, tuple[str, BatchRow]] = {}
        """The name of the batch, and the row."""
        self.batches = {name: self._keys(name, rows) for name, rows in batches.items()}
        self.answers: dict[str, Given] = {}
        self.troubles: dict[str, str] = {}
        """Why the last reply was no answer."""
        self.final: set[str] = set()
        self.n_kept = self.n_requests = 0
        self.n_complete = self.n_imported = 0
        """Batches, from the first one on."""

    def run(self) -> None:
        """Ask until every pair has an answer or its tries are used up, and import; then say which have none."""
        self._take_kept()
        self._import_complete()
        self._report()
        stopped = self._ask_all()
        self._import(len(self.batches))
        if len(self.answers) < len(self.asks):
            error, said = (type(stopped), f"{stopped}\n") if stopped else (BackendError, "")
            raise error(f"{said}{self._unanswered()}") from stopped

    def _ask_all(self) -> BackendError | None:
        """What ended the asking after every pair had been asked about, so that the others are imported; else raised."""
        for attempt in range(1 + ASKED_AGAIN):
            wanted = [ask for key, ask in self.asks.items() if key not in self.answers and key not in self.final]
            if wanted and attempt:
                trouble = self.troubles.get(wanted[0].key, NO_REPLY)
                said = f"asking once more about {len(wanted)} of {len(self.asks)} pairs (the first: {trouble})"
                say(f"{self.model.model}: {said}")
            try:
                self._ask(wanted)
            except BackendError as error:
                if self.asks.keys() - self.answers.keys() - self.troubles.keys():
                    raise
                return error
        return None

    def _keys(self, name: str, rows: Sequence[BatchRow]) -> list[str]:
        """The keys of a batch's rows, in order, after their asks are made."""
        self._check_binding(name, rows)
        asks = asks_of(rows, self.system, self.model.model)
        for ask, row in zip(asks, rows, strict=True):
            self.asks[ask.key], self.rows[ask.key] = ask, (name, row)
        return list(dict.fromkeys(ask.key for ask in asks))

    def _check_binding(self, name: str, rows: Sequence[BatchRow]) -> None:
        """Raise InputError unless the rows belong to this version and prompt, before their answers are paid for."""
        now = (self.version.number_name, file_sha256(self.version.judge_path))
        if any((row.version, row.prompt_sha256) != now for row in rows):
            raise InputError(
                f"{name} was exported for another version or judge prompt than {now[0]} has now. Delete "
                f"{self.version.judging / name}.jsonl and run the driver again: it is exported anew. Nothing was asked."
            )

    def _take_kept(self) -> None:
        for name, keys in self.batches.items():
            wanted = set(keys)
            for kept in self.files.read(name):
                if kept.key in wanted and kept.key not in self.answers:
                    self._read(kept)
        self.n_kept = len(self.answers)

    def _ask(self, asks: Sequence[Ask]) -> None:
        """One call of the model; every reply to a pair that has no answer yet is kept before it is read."""
        if not asks:
            return
        unreadable = 0
        with closing(self._received(asks)) as replies:
            for reply in replies:
                if reply.key not in self.asks or reply.key in self.answers:
                    continue
                self.n_requests += 1
                unreadable += not self._take(reply) and not reply.problem
                if unreadable >= MANY_UNREADABLE and not self.answers:
                    raise BackendError(self._does_not_keep_form(unreadable, reply.key))
        self._import_complete()

    def _take(self, reply: Reply) -> bool:
        """Whether a reply is an answer; batches that it completes are imported."""
        name, row = self.rows[reply.key]
        kept = KeptReply.of(reply, row.query_id, row.doc_id, self.today())
        self.files.append(name, kept)
        if reply.final:
            self.final.add(reply.key)
        if not self._read(kept):
            return False
        self._import_complete(many=True)
        self._report()
        return True

    def _read(self, kept: KeptReply) -> bool:
        name, row = self.rows[kept.key]
        where = f"{self.files.path(name)} (query {row.query_id} and {row.doc_id})"
        try:
            answer = parse(kept.reply, row, self.model.model)
        except UnreadableReply as error:
            self.troubles[kept.key] = str(error)
            return False
        self.answers[kept.key] = Given(where, answer, kept.received_on)
        return True

    def _received(self, asks: Sequence[Ask]) -> Generator[Reply]:
        """The model's replies; what ends them early becomes a BackendError that says what is kept."""
        try:
            yield from self.model.replies(asks)
        except BackendError as error:
            self._import_complete()
            raise type(error)(f"{error} {self._kept()}") from error
        except EvalError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise  # our own disk, not the service
            self._import_complete()
            raise BackendError(f"{self.model.model} failed: {type(error).__name__}. {self._kept()}") from error

    def _import_complete(self, *, many: bool = False) -> None:
        """Import the complete batches from the first on; with `many`, once there are twice as many as were imported.

        Every import reads all batches.
        """
        names = list(self.batches)
        while self.n_complete < len(names) and self.answers.keys() >= set(self.batches[names[self.n_complete]]):
            self.n_complete += 1
        if not many or self.n_complete >= 2 * self.n_imported:
            self._import(self.n_complete)

    def _import(self, n_batches: int) -> None:
        """Import what is answered of the first batches, so many, and was not yet."""
        keys = [key for name in list(self.batches)[self.n_imported : n_batches] for key in self.batches[name]]
        if given := [self.answers[key] for key in keys if key in self.answers]:
            self.importer(given)
        self.n_imported = n_batches

    def _report(self) -> None:
        if self.report is not None:
            self.report(Progress(len(self.answers), len(self.asks), len(self.answers), len(self.asks)))

    def _kept(self) -> str:
        return (
            f"{len(self.answers)} of {len(self.asks)} pairs are answered and kept; run the command again and only the "
            "others are asked about."
        )

    def _does_not_keep_form(self, n_replies: int, key: str) -> str:
        return (
            f"{self.model.model} does not keep to the form: {n_replies} replies and no answer among them. The last: "
            f"{self.troubles[key]}. The replies are kept in {self.files.folder}. Choose a model, or a server, that "
            "keeps to a JSON schema."
        )

    def _unanswered(self) -> str:
        """Which pairs have no answer, why, and what to do."""
        missing = [key for key in self.asks if key not in self.answers]
        lines = []
        for key in missing[:NAMED]:
            name, row = self.rows[key]
            lines.append(f"  {name}: query {row.query_id} and {row.doc_id}: {self.troubles.get(key, NO_REPLY)}")
        if len(missing) > NAMED:
            lines.append(f"  and {len(missing) - NAMED} more")
        name, row = self.rows[missing[0]]
        example = json_line({"query_id": row.query_id, "doc_id": row.doc_id, "grade": 0, "reason": "why"})
        file = shlex.quote(str(self.version.judging / f"{name}.answers.jsonl"))
        return (
            f"Pairs without an answer by {self.model.model}: {len(missing)} of {len(self.asks)}.\n"
            + "\n".join(lines)
            + f"\nAll others are imported, and every reply is kept in {self.files.folder}. Run the command again to "
            f"ask about these once more, or judge them by file, one line a pair:\n  {example}\n"
            f"  {DRIVER} labels import {self.version.flags} --judge=NAME --person {file}\n"
            "with --model=ID in place of --person where a language model judged."
        )
