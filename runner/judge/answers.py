"""Judges' answers, held against what was exported, and appended to labels.jsonl: all of a file or nothing of it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runner.base.canonical import file_sha256, read_jsonl
from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.progress import say
from runner.base.schema import checked
from runner.eval_set.batches import Pair, RawRow, raw_rows, rounds
from runner.eval_set.labels import append_labels, load_labels, scored
from runner.eval_set.plan import is_same_model
from runner.eval_set.shapes.labels import Answer, BatchRow, Label
from runner.eval_set.version import Version, load_corpus, load_queries

_NAMED_AFTER_BATCH = re.compile(r"((?:batch|double)-\d+)\b.*")


@dataclass(frozen=True, slots=True)
class Given:
    """An answer, the place that messages name it by, and the day on which it was given (YYYY-MM-DD)."""

    where: str
    answer: Answer
    judged_on: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What one answer file brought: new labels, and answers that were in labels.jsonl already."""

    added: int
    known: int


def import_rows(version: Version, answers: Iterable[Given], host: str = "") -> Imported:
    """What `Importer.take` does with answers that say who judged which batch, asked at that host."""
    return Importer(version, host=host).take(answers)


class Importer:
    """Appends answers to labels.jsonl; with `by_people`, an answer that names a model is refused."""

    def __init__(self, version: Version, *, by_people: bool = False, host: str = "") -> None:
        self._by_people = by_people
        self._host = host
        self._path = version.labels_path
        self._known = {label.key: label for label in load_labels(version.labels_path)}
        self._check = _AnswerCheck(version, self._known.values())

    def take_file(self, path: Path, *, judge: str, model: str, judged_on: str) -> Imported:
        """Append a file of answers, all of them or none.

        An answer that is known with the same grade is left out; one with another grade, or that does not fit what was
        exported, is an InputError that names file and line. The file answers the batch that it is named after
        (batch-0007.answers.jsonl), else the only one that holds all its pairs.
        """
        rows = [
            Given(f"{path}:{number}", checked(Answer, fields, f"{path}:{number}"), judged_on)
            for number, fields in read_jsonl(path)
        ]
        if not rows:
            raise InputError(f"{path} holds no answers.")
        named = _NAMED_AFTER_BATCH.fullmatch(path.name)
        if by_model := next((given for given in rows if self._by_people and given.answer.model), None):
            raise InputError(
                f"{by_model.where}: the model {by_model.answer.model!r} judged, and --person says a person. {_NOTHING} "
                "Leave out --person, and give --model ID."
            )
        batch = named[1] if named else ""
        return self.take(rows, judge=judge, model=model, batch=batch, refuse_copies=True)

    def take(
        self,
        answers: Iterable[Given],
        *,
        judge: str = "",
        model: str = "",
        batch: str = "",
        refuse_copies: bool = False,
    ) -> Imported:
        """Append answers, all of them or none, in the order of the batches' rows.

        `judge`, `model` and `batch` are meant if an answer does not say. With `refuse_copies`, answers that repeat
        another judge's are an InputError.
        """
        answers, check = list(answers), self._check
        check.batch = batch or check.only_batch(given.answer for given in answers if not given.answer.batch)
        fresh: dict[tuple[str, str, str, int], Label] = {}
        repeated = 0
        for given in answers:
            label = check.label(given, judge=judge, model=model).model_copy(update={"host": self._host})
            earlier = self._known.get(label.key) or fresh.get(label.key)
            if earlier is None:
                fresh[label.key] = label
            elif earlier.grade == label.grade:
                repeated += 1
            else:
                raise InputError(
                    f"{given.where}: query {label.query_id} and {label.doc_id} have grade {earlier.grade} by "
                    f"{label.judge} already; this line says {label.grade}. {_NOTHING} A second reading is another "
                    "round, or another judge's."
                )
        if refuse_copies:
            self._refuse_copies(fresh.values())
        if fresh:
            added = sorted(fresh.values(), key=check.place)
            append_labels(self._path, added)
            self._known.update(fresh)
            check.know(added)
        return Imported(len(fresh), repeated)

    def _refuse_copies(self, fresh: Iterable[Label]) -> None:
        """Raise InputError if a judge's answers are another one's: the same grades and reasons, all but a few.

        Where no reasons are given, the same grades of many pairs are said and let pass: two people may well agree.
        """
        by_pair: dict[Pair, list[Label]] = defaultdict(list)
        for label in self._known.values():
            by_pair[label.query_id, label.doc_id].append(label)
        counts: Counter[tuple[str, str]] = Counter()
        alike: Counter[tuple[str, str]] = Counter()
        in_words: Counter[tuple[str, str]] = Counter()
        for label in fresh:
            for other in by_pair[label.query_id, label.doc_id]:
                if other.judge != label.judge:
                    both = (label.judge, other.judge)
                    same = (label.grade, label.reason) == (other.grade, other.reason)
                    counts[both] += 1
                    alike[both] += same
                    in_words[both] += same and bool(label.reason)
        for (judge, first), n_pairs in counts.items():
            n_alike, n_in_words = alike[judge, first], in_words[judge, first]
            if n_in_words >= max(FEWEST_COPIED, COPIED_SHARE * n_pairs):
                raise InputError(
                    f"{n_in_words} of {n_pairs} answers of {judge} have the grade and the reason of {first}, word for "
                    f"word: that is a copy, no second reading. {_NOTHING} Have the pairs read by somebody who does not "
                    "see the first grades."
                )
            if n_alike == n_pairs >= MANY_ALIKE:
                say(f"warning: all {n_pairs} grades of {judge} are those of {first}, without a reason; is it a copy?")


FEWEST_COPIED = 5
COPIED_SHARE = 0.9
"""From so many answers, and from this share of the pairs that both judges read, the same words are no accident."""

MANY_ALIKE = 20
"""Grades without reasons that all agree: two judges of agreement 0.9 do so in one case of eight."""

LONGEST_NAME = 100
LONGEST_REASON = 2_000
"""Characters of a judge's or a model's name, and of a reason."""

_NOTHING = "Nothing of the file was imported."


class _AnswerCheck:
    """What answers of one version are held to."""

    def __init__(self, version: Version, known: Iterable[Label]) -> None:
        self.queries = {query.query_id for query in load_queries(version.queries_path)}
        self.corpus = {row.doc_id: row for row in load_corpus(version.corpus_path)[1]}
        self.prompt = file_sha256(version.judge_path)
        self.name = version.number_name
        known, judges = list(known), version.plan().judges
        graded_by = (label.model for label in scored(known).values() if label.model)
        self.model = judges.first.model if judges else next(graded_by, "")
        """The one language model whose first grades are taken, "" while that is open."""
        self.batch = ""
        """Which batch is meant if an answer does not say."""
        self._first_judge: dict[Pair, str] = {}
        self._answered: dict[tuple[str, Pair, str], int] = {}
        self.know(known)
        self._exported: dict[Pair, list[RawRow]] = defaultdict(list)
        self._places: dict[tuple[str, Pair], int] = {}
        self._batches: dict[str, dict[Pair, BatchRow]] = {}
        self._raw: dict[str, list[RawRow]] = defaultdict(list)
        rows = list(raw_rows(version.judging))
        self._rounds = rounds((row.batch, row.pair) for row in rows)
        for place, row in enumerate(rows):
            self._raw[row.batch].append(row)
            self._exported[row.pair].append(row)
            self._places[row.batch, row.pair] = place

    def know(self, labels: Iterable[Label]) -> None:
        """Remember who graded which pair first, and which answers were given."""
        for label in labels:
            pair = (label.query_id, label.doc_id)
            self._answered[label.batch, pair, label.judge] = label.round
            if label.round == 1:
                self._first_judge.setdefault(pair, label.judge)

    def only_batch(self, answers: Iterable[Answer]) -> str:
        """The one batch that holds all these pairs, "" if there are several or none."""
        of_pairs = [
            {row.batch for row in self._exported.get((answer.query_id, answer.doc_id), [])} for answer in answers
        ]
        shared = set.intersection(*of_pairs) if of_pairs else set()
        return shared.pop() if len(shared) == 1 else ""

    def place(self, label: Label) -> int:
        """Where a label belongs among new ones: as the batches have their rows; those of no batch come last."""
        return self._places.get((label.batch, (label.query_id, label.doc_id)), len(self._places))

    def label(self, given: Given, *, judge: str, model: str) -> Label:
        """The answer as a row of labels.jsonl."""
        answer, where = given.answer, given.where
        self._check_ids(answer, where)
        judge, model = answer.judge or judge, answer.model or model
        if not judge:
            raise InputError(f"{where}: who judged? Give --judge NAME, or a judge in every line.")
        for what, name in (("judge", judge), ("model", model)):
            if name != name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
                raise InputError(
                    f"{where}: the {what} {name[:40]!r} is no name: at most {LONGEST_NAME} printable characters on one "
                    f"line, without blanks around them. {_NOTHING}"
                )
        if len(answer.reason) > LONGEST_REASON:
            raise InputError(
                f"{where}: the reason has {len(answer.reason):,} characters, at most {LONGEST_REASON:,} are kept. "
                f"{_NOTHING}"
            )
        document = self.corpus[answer.doc_id]
        row = self._row(answer, where)
        self._check_binding(answer, row, where)
        spans = [*answer.spans, *self._passage_spans(answer, row, where)]
        if any(not 0 <= start < end <= document.n_chars for start, end in spans):
            raise InputError(f"{where}: a supporting span lies outside {answer.doc_id} (0 to {document.n_chars}).")
        label = Label(
            query_id=answer.query_id,
            doc_id=answer.doc_id,
            grade=answer.grade,
            reason=printable(" ".join(answer.reason.split()), LONGEST_REASON),
            judge=judge,
            model=model,
            prompt_sha256=self.prompt,
            evidence_sha256=row.evidence_sha256,
            spans=sorted(spans),
            round=answer.round or self._round(row, judge),
            batch=row.batch,
            judged_on=given.judged_on,
        )
        self._refuse_own_second_reading(label, where)
        self._refuse_other_model(label, where)
        return label

    def _round(self, row: BatchRow, judge: str) -> int:
        """As the batches have it; an answer given before keeps its round, though batches were deleted since."""
        pair = (row.query_id, row.doc_id)
        return self._answered.get((row.batch, pair, judge)) or self._rounds[row.batch, pair]

    def _refuse_own_second_reading(self, label: Label, where: str) -> None:
        """Raise InputError if whoever graded a pair first answers its second reading too."""
        first = self._first_judge.get((label.query_id, label.doc_id), "")
        if label.batch.startswith("double-") and first == label.judge:
            raise InputError(
                f"{where}: {label.batch} is for a second judge, and {label.judge} graded query {label.query_id} and "
                f"{label.doc_id} first. {_NOTHING} Give the name of whoever read it the second time."
            )

    def _refuse_other_model(self, label: Label, where: str) -> None:
        """Raise InputError if the first grade of a pair is of another model than the version's."""
        is_first = label.round == 1 and (label.query_id, label.doc_id) not in self._first_judge
        if not (is_first and label.model):
            return
        self.model = self.model or label.model
        if not is_same_model(self.model, label.model):
            raise InputError(
                f"{where}: {label.model} judged, and the first grades of {self.name} are {self.model}'s. {_NOTHING} "
                f"Two models grade on two scales: open a new version, whose plan names {label.model}."
            )

    def _check_ids(self, answer: Answer, where: str) -> None:
        for kind, name, known in (
            ("query", answer.query_id, self.queries),
            ("document", answer.doc_id, self.corpus.keys()),
        ):
            if name not in known:
                raise InputError(
                    f"{where}: {self.name} has no {kind} {name!r}. {_NOTHING} Is it an answer to another version?"
                )

    def _row(self, answer: Answer, where: str) -> BatchRow:
        """The exported row that is answered."""
        rows = self._exported.get((answer.query_id, answer.doc_id), [])
        wanted = answer.batch or self.batch
        meant = [row for row in rows if row.batch == wanted] or ([] if answer.batch else rows)
        pair = f"query {answer.query_id} and {answer.doc_id}"
        if not meant:
            place = f"{answer.batch} does not hold" if answer.batch else "no batch holds"
            raise InputError(f"{where}: {place} {pair}. {_NOTHING} Was it exported for another version?")
        if len(meant) > 1:
            names = ", ".join(row.batch for row in meant)
            raise InputError(
                f'{where}: {pair} stand in {names}: say which is answered, with "batch": "{names.split(", ")[0]}" in '
                f"the line or by naming the file after it. {_NOTHING}"
            )
        return self._checked(meant[0])

    def _checked(self, row: RawRow) -> BatchRow:
        """The row, once all of its batch are as they were exported."""
        if row.batch not in self._batches:
            self._batches[row.batch] = {other.pair: other.checked() for other in self._raw[row.batch]}
        return self._batches[row.batch][row.pair]

    def _check_binding(self, answer: Answer, row: BatchRow, where: str) -> None:
        """Raise InputError unless what answer and batch say of version, prompt and evidence is true now."""
        if row.version != self.name or row.prompt_sha256 != self.prompt:
            raise InputError(
                f"{where}: {row.batch} was exported for {row.version} with another judge prompt or version than "
                f"{self.name} has now. {_NOTHING}"
            )
        for what, said, true in (
            ("version", answer.version, self.name),
            ("judge prompt", answer.prompt_sha256, self.prompt),
            ("evidence", answer.evidence_sha256, row.evidence_sha256),
        ):
            if said and said != true:
                raise InputError(
                    f"{where}: it answers another {what} ({said[:40]}) than {row.batch} of {self.name} has "
                    f"({true[:40]}). {_NOTHING}"
                )

    def _passage_spans(self, answer: Answer, row: BatchRow, where: str) -> list[list[int]]:
        shown = {passage.number: passage for passage in row.evidence}
        if unknown := [number for number in answer.passages if number not in shown]:
            raise InputError(
                f"{where}: passage {unknown[0]} is none of the {len(shown)} that the batch shows of {answer.doc_id}. "
                f"{_NOTHING}"
            )
        return [[shown[number].start, shown[number].end] for number in dict.fromkeys(answer.passages)]
