"""Judges' answers, held against what was exported, and appended to labels.jsonl: all of a file or nothing of it."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from runner.base.canonical import JSON, file_sha256, read_jsonl
from runner.base.csv_files import Faults, csv_rows
from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.schema import checked
from runner.eval_set.batches import Pair, all_rows, rounds
from runner.eval_set.labels import append_labels, first_readings, load_labels
from runner.eval_set.shapes.labels import Answer, BatchRow, Label, LabelKey, is_same_model
from runner.eval_set.version import Version, load_corpus, load_queries

LONGEST_NAME = 100
LONGEST_REASON = 2_000
"""Characters of a judge's or a model's name, and of a reason."""

_NAMED_AFTER_BATCH = re.compile(r"((?:batch|fuller|double)-\d+)\b.*")
_NOTHING = "Nothing of the file was imported."


class Imported(NamedTuple):
    """What was brought: new labels, and answers that were in labels.jsonl already."""

    added: int
    known: int


_NEEDED = {"query_id": "qid query-id", "doc_id": "docid document document_id corpus-id", "grade": "relevance rel score"}
_OTHERS = {"reason": "rationale comment", **dict.fromkeys(("doubt", "judge", "model", "batch"), "")}
"""Columns of grades in a CSV file, with other names that people have for them."""


def _csv_answers(path: Path) -> Iterator[tuple[int, dict[str, JSON]]]:
    """Yield number and fields of each row of a CSV file of answers; a cell left empty says nothing."""
    for number, row in csv_rows(path, _NEEDED, _OTHERS):
        said: dict[str, JSON] = {name: value for name, value in row.items() if value}
        if re.fullmatch(r"[0-9]{1,9}", row["grade"]):
            said["grade"] = int(row["grade"])
        if (doubt := row.get("doubt", "").casefold()) in ("true", "false"):
            said["doubt"] = doubt == "true"
        yield number, said


def _graded(label: Label) -> str:
    return f"{label.grade}, in doubt" if label.doubt else str(label.grade)


class Importer:
    """Appends answers to labels.jsonl; with `by_people`, an answer that names a model is refused.

    `host` is where a model was asked, if not at its service's own address.
    """

    def __init__(self, version: Version, *, by_people: bool = False, host: str = "") -> None:
        self._version, self._by_people, self._host = version, by_people, host
        self._queries = {query.id for query in load_queries(version.queries_path)}
        self._n_chars = {row.doc_id: row.n_chars for row in load_corpus(version.corpus_path)[1]}
        self._prompt = file_sha256(version.judge_path)
        self._exported: dict[Pair, list[BatchRow]] = defaultdict(list)
        self._places: dict[tuple[str, Pair], int] = {}
        # What was asked, in which batch and at which place: an answer is held against its row.
        rows = list(all_rows(version.judging))
        self._rounds = rounds(rows)
        for number, row in enumerate(rows):
            self._exported[row.pair].append(row)
            self._places[row.batch, row.pair] = number
        self._is_way_told = False
        self._known: dict[LabelKey, Label] = {}
        self._answered: dict[tuple[str, Pair, str], int] = {}
        self._first_judge: dict[Pair, str] = {}
        # What was answered before, which decides rounds, repeats and who is the first judge.
        self._know(load_labels(version.labels_path))
        self._planned = judges = version.plan().judges
        graded_by = (label.model for label in first_readings(self._known.values()).values() if label.model)
        self._model = judges.first.model if judges else next(graded_by, "")
        """The one language model whose first grades are taken, "" while that is open."""

    def _know(self, labels: Iterable[Label]) -> None:
        """Remember which answers were given, in which round, and who graded which pair first."""
        for label in labels:
            self._known[label.key] = label
            self._answered[label.batch, label.pair, label.judge] = label.round
            if label.round == 1 and not label.is_fuller:
                self._first_judge.setdefault(label.pair, label.judge)

    def take_file(self, path: Path, *, judge: str, model: str, judged_on: str) -> Imported:
        """Append a file of answers, all of them or none; `judge` and `model` are meant if an answer does not say.

        An answer that is known with the same grade is left out; one with another grade, or that does not fit what was
        exported, is an InputError that names file and row, a line for each fault. The file answers the batch that it is
        named after (batch-0007.answers.jsonl), else the only one that holds all its pairs.
        """
        read = _csv_answers if path.suffix.lower() == ".csv" else read_jsonl
        rows: list[tuple[str, Answer]] = []
        faults = Faults()
        for number, fields in read(path):
            where = f"{path}:{number}"
            with faults.of_row():
                answer = checked(Answer, fields, where)
                if self._by_people and answer.model:
                    raise InputError(
                        f"{where}: the model {answer.model!r} judged, and --person says a person. {_NOTHING} Leave out "
                        "--person, and give --model ID."
                    )
                rows.append((where, answer))
        faults.stop()
        if not rows:
            raise InputError(f"{path} holds no answers.")
        is_table = read is _csv_answers
        if is_table:
            rows = self._asked_for(rows, path)
        # Of a pair in several batches, the file's name says which one is meant, else all its pairs together.
        if named := _NAMED_AFTER_BATCH.fullmatch(path.name):
            batch = named[1]
        else:
            holding = [
                {row.batch for row in self._exported.get((answer.query_id, answer.doc_id), [])}
                for _, answer in rows
                if not answer.batch
            ]
            shared = set.intersection(*holding) if holding else set()
            batch = shared.pop() if len(shared) == 1 else ""
        labels: list[tuple[str, Label]] = []
        for where, answer in rows:
            asked = self._exported.get((answer.query_id, answer.doc_id), [])
            # A table has one grade a pair. If the pair is asked again, to see whether a judge repeats itself, the first
            # batch is answered.
            if is_table and len(asked) > 1 and not (answer.batch or batch):
                answer = answer.model_copy(update={"batch": asked[0].batch})
            with faults.of_row():
                label = self._label(answer, where, judge=judge, model=model, batch=batch, judged_on=judged_on)
                labels.append((where, label))
        faults.stop()
        return self.take(labels)

    def _asked_for(self, rows: Sequence[tuple[str, Answer]], path: Path) -> list[tuple[str, Answer]]:
        """Return the rows of a table of one's own without those of known pairs that no batch holds."""
        pairs = self._exported.keys()
        kept = [
            (where, answer)
            for where, answer in rows
            if (answer.query_id, answer.doc_id) in pairs
            or not (answer.query_id in self._queries and answer.doc_id in self._n_chars)
        ]
        if n_odd := len(rows) - len(kept):
            say(f"note: {path}: {n_odd:,} of {len(rows):,} rows are of pairs that nobody asked for, and are left out")
        return kept

    def take(self, given: Iterable[tuple[str, Label]]) -> Imported:
        """Append labels, each with its place for messages, all of them or none, in the order of the batches' rows."""
        # All are checked before any is written.
        fresh: dict[LabelKey, Label] = {}
        places: dict[LabelKey, str] = {}
        n_known, faults, what_next = 0, Faults(), ""
        for where, answered in given:
            with faults.of_row():
                label = self._in_its_round(answered)
                self._check_judge(label, where)
                earlier = self._known.get(label.key) or fresh.get(label.key)
                if earlier is None:
                    fresh[label.key], places[label.key] = label, where
                elif (earlier.grade, earlier.doubt) == (label.grade, label.doubt):
                    n_known += 1
                elif label.key in places:
                    raise InputError(
                        f"{where}: query {label.query_id} and {label.doc_id} stand twice in what is imported, by "
                        f"{label.judge}: with grade {_graded(label)} here, and with {_graded(earlier)} at "
                        f"{places[label.key]}. {_NOTHING} Keep one of the two lines."
                    )
                else:
                    what_next = (
                        f"{_NOTHING} To mend a grade, take back all of {label.judge}'s ({DRIVER} labels withdraw "
                        f"{self._version.flags} --judge={shlex.quote(label.judge)}) and import every file again. A "
                        'second reading, which no score counts, is another judge\'s or has "round": 2.'
                    )
                    raise InputError(
                        f"{where}: query {label.query_id} and {label.doc_id} have grade {_graded(earlier)} by "
                        f"{label.judge} already; this line says {_graded(label)}."
                    )
        faults.stop(what_next)
        if fresh:
            # Those of no batch come last.
            added = sorted(
                fresh.values(), key=lambda label: self._places.get((label.batch, label.pair), len(self._places))
            )
            append_labels(self._version.labels_path, added)
            self._know(added)
        return Imported(len(fresh), n_known)

    def _in_its_round(self, label: Label) -> Label:
        """Return the label with its round as the batches have it; one given before keeps its, though they are gone."""
        asked = label.batch, label.pair
        round_ = label.round or self._answered.get((*asked, label.judge)) or self._rounds[asked]
        return label.model_copy(update={"round": round_, "host": self._host})

    def _check_judge(self, label: Label, where: str) -> None:
        """Raise InputError for a second reading by whoever read first, for a fuller one by anybody else, and for a
        first one by another model.
        """
        first = self._first_judge.get(label.pair, "")
        if label.is_fuller and first != label.judge:
            raise InputError(
                f"{where}: {label.batch} shows more of what left {first or 'its first judge'} in doubt, and "
                f"{label.judge} answers. {_NOTHING} Have it read by whoever read query {label.query_id} and "
                f"{label.doc_id} first, and import that before it."
            )
        if label.batch.startswith("double-") and first == label.judge:
            raise InputError(
                f"{where}: {label.batch} is for a second judge, and {label.judge} graded query {label.query_id} and "
                f"{label.doc_id} first. {_NOTHING} Give the name of whoever read it the second time."
            )
        # Only the model of a first grade is held to the plan's: people and second readers may be others.
        if not label.model or label.round > 1 or first:
            return
        self._model = self._model or label.model
        if not is_same_model(self._model, label.model):
            name = self._version.number_name
            what = f"the plan of {name} names {self._model} as first judge"
            if self._planned is None:
                what = f"the first grades of {name} are {self._model}'s"
            raise InputError(f"{where}: {label.model} judged, and {what}. {_NOTHING}{self._way_for(label.model)}")

    def _way_for(self, model: str) -> str:
        """Return what to do with another model's first grades, "" from the second time on: a file may have hundreds."""
        if self._is_way_told:
            return ""
        self._is_way_told = True
        return (
            " Two models grade on two scales. If people judged, say --person and name no model. Else open a new "
            f"version ({DRIVER} version {self._version.origin.flags}) and write `judges: {{first: {{api: files, model: "
            f"{model}}}}}` into its plan before its first run."
        )

    # From an answer of a file to a label

    def _label(self, answer: Answer, where: str, *, judge: str, model: str, batch: str, judged_on: str) -> Label:
        """Return the answer as a row of labels.jsonl; an InputError if it does not fit what was exported."""
        for kind, name, known in (
            ("query", answer.query_id, self._queries),
            ("document", answer.doc_id, self._n_chars.keys()),
        ):
            if name not in known:
                raise InputError(
                    f"{where}: {self._version.number_name} has no {kind} {name!r}. {_NOTHING} Is it an answer to "
                    "another version?"
                )
        judge, model = answer.judge or judge, answer.model or model
        if not judge:
            raise InputError(f"{where}: who judged? Give --judge NAME, or a judge in every line.")
        for what, name in (("judge", judge), ("model", model)):
            if name != name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
                raise InputError(
                    f"{where}: {name[:40]!r} is not the name of a {what}: at most {LONGEST_NAME} printable characters "
                    f"on one line, without blanks around them. {_NOTHING}"
                )
        if len(answer.reason) > LONGEST_REASON:
            raise InputError(
                f"{where}: the reason has {len(answer.reason):,} characters, at most {LONGEST_REASON:,} are kept. "
                f"{_NOTHING}"
            )
        # What was shown decides which passages and characters an answer may point at.
        row = self._row(answer, where, batch)
        self._check_binding(answer, row, where)
        shown = {passage.number: passage for passage in row.evidence}
        if unknown := [number for number in answer.passages if number not in shown]:
            raise InputError(
                f"{where}: passage {unknown[0]} is none of the {len(shown)} that the batch shows of {answer.doc_id}. "
                f"{_NOTHING}"
            )
        if answer.doubt and not row.left_out:
            raise InputError(
                f"{where}: a doubt says that the deciding part may be in what is not shown, and {row.batch} shows the "
                f"whole of {answer.doc_id}. {_NOTHING} Grade what is there, without the doubt."
            )
        n_chars = self._n_chars[answer.doc_id]
        if any(not 0 <= start < end <= n_chars for start, end in answer.spans):
            raise InputError(f"{where}: a supporting span lies outside {answer.doc_id} (0 to {n_chars}).")
        spans = [[shown[number].start, shown[number].end] for number in dict.fromkeys(answer.passages)]
        return Label.answering(
            row,
            grade=answer.grade,
            reason=printable(" ".join(answer.reason.split()), LONGEST_REASON),
            doubt=answer.doubt,
            judge=judge,
            model=model,
            spans=sorted([*answer.spans, *spans]),
            round=answer.round or 0,
            judged_on=judged_on,
        )

    def _row(self, answer: Answer, where: str, batch: str) -> BatchRow:
        """Return the exported row that is answered."""
        rows = self._exported.get((answer.query_id, answer.doc_id), [])
        wanted = answer.batch or batch
        meant = [row for row in rows if row.batch == wanted] or ([] if answer.batch else rows)
        pair = f"query {answer.query_id} and {answer.doc_id}"
        if not meant:
            where_not = f"{answer.batch} does not hold" if answer.batch else "no batch holds"
            raise InputError(f"{where}: {where_not} {pair}. {_NOTHING} Was it exported for another version?")
        if len(meant) > 1:
            names = ", ".join(row.batch for row in meant)
            raise InputError(
                f'{where}: {pair} stand in {names}: say which is answered, with "batch": "{meant[0].batch}" in the '
                f"line or by naming the file after it. {_NOTHING}"
            )
        return meant[0]

    def _check_binding(self, answer: Answer, row: BatchRow, where: str) -> None:
        """Raise InputError unless what answer and batch say of version, prompt and evidence is true now."""
        name = self._version.number_name
        if row.version != name or row.prompt_sha256 != self._prompt:
            raise InputError(
                f"{where}: {row.batch} was exported for {row.version} with another judge prompt or version than "
                f"{name} has now. {_NOTHING}"
            )
        for what, claimed, true in (
            ("version", answer.version, name),
            ("judge prompt", answer.prompt_sha256, self._prompt),
            ("evidence", answer.evidence_sha256, row.evidence_sha256),
        ):
            if claimed and claimed != true:
                raise InputError(
                    f"{where}: it answers another {what} ({claimed[:40]}) than {row.batch} of {name} has "
                    f"({true[:40]}). {_NOTHING}"
                )
