"""The embedding engine above every backend: one plan of batches, every answer checked, every finished batch kept."""

import json
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import json_bytes, write_atomic
from runner.base.errors import BackendError, EvalError, InputError
from runner.base.progress import Progress, Report
from runner.base.records import PromptSide, Vectors
from runner.base.store import FULL, MANIFEST, PIECES, Store
from runner.embed.batches import Order, TextSet, planned, token_counts, tokens_read
from runner.embed.encoder import Answer, Batch, Encoder, checked_rows
from runner.embed.probe import refuse_changed
from runner.embed.vectors import ROWS, VectorFile, noted, placed, save_array

SAME_VECTOR = 1e-6
MANY_FAILURES = 20
"""Answers without a single good one among them, after which the backend as a whole is given up."""

MOST_NAMED = 32
"""Texts of a failed batch that a message names."""


def embed(
    store: Store,
    encoder: Encoder,
    texts: Sequence[str],
    side: PromptSide,
    *,
    order: Order = "forward",
    name_of: Callable[[int], str] | None = None,
    report: Report | None = None,
) -> Vectors:
    """One unit row per text, in input order; memory-mapped, or a copy if texts repeat and rows are few.

    Batches depend on the set of distinct texts alone: repeats, input order and killed attempts change no bit.
    `order="reversed"` embeds the same texts in other batches, for the A/A arm. `name_of` names the text of an index in
    messages. A batch that fails does not stop the others; at the end a BackendError names its texts, and what was
    finished is kept.
    """
    if not texts:
        none = np.zeros(0, dtype=np.int64)
        return Vectors(np.zeros((0, encoder.spec.dim), dtype=np.float32), none, none)
    work = _text_set(texts, side, order, name_of)

    def name(index: int) -> str:
        if name_of is not None:
            return name_of(texts.index(work.texts[index]))
        return f"the text with sha256 {work.digests[index].tobytes().hex()}"

    def build(folder: Path) -> None:
        refuse_changed(store, encoder)
        _Job(encoder, work, folder, name, report).run()

    folder = store.ensure("vectors", work.inputs(encoder.identity()), build)
    rows, counts = np.load(folder / ROWS, mmap_mode="r"), np.load(folder / "tokens.npy")
    if len(work.texts) < len(texts):
        position = {text: index for index, text in enumerate(work.texts)}
        places = np.array([position[text] for text in texts], np.int64)
        rows, counts = placed(store, folder, places), counts[places]
    facts = json.loads((folder / "facts.json").read_bytes())
    return Vectors(rows, counts, counts - tokens_read(counts, encoder.spec.max_tokens), facts)


def outstanding(
    store: Store, encoder: Encoder, texts: Sequence[str], side: PromptSide, order: Order = "forward"
) -> tuple[int, int]:
    """How many distinct texts, and tokens read of them, `embed` would send; nothing is sent.

    Batches of an earlier attempt count as whole; only `embed` reads their bytes.
    """
    if not texts:
        return 0, 0
    work = _text_set(texts, side, order, None)
    folder = store.folder("vectors", work.inputs(encoder.identity()))
    if (folder / MANIFEST).exists():
        return 0, 0
    counts = token_counts(encoder, work)
    known = noted(folder / PIECES)
    rows = [row for batch, rows in planned(encoder, work, counts) if batch.batch_id not in known for row in rows]
    return len(rows), int(tokens_read(counts, encoder.spec.max_tokens)[rows].sum())


def is_begun(store: Store, encoder: Encoder, texts: Sequence[str], side: PromptSide, order: Order = "forward") -> bool:
    """Whether an earlier run left vectors of some of these texts."""
    work = _text_set(texts, side, order, None)
    folder = store.folder("vectors", work.inputs(encoder.identity()))
    return any((folder / name).exists() for name in (MANIFEST, PIECES))


def _text_set(texts: Sequence[str], side: PromptSide, order: Order, name_of: Callable[[int], str] | None) -> TextSet:
    """The texts without repeats; an InputError names one that is not valid Unicode."""
    try:
        return TextSet.of(texts, side, order)
    except UnicodeEncodeError as error:
        index = texts.index(error.object)
        name = name_of(index) if name_of else f"text {index}"
        raise InputError(
            f"{name} has half of a surrogate pair at character {error.start}, which is no Unicode text. Mend the "
            "document, or leave it out."
        ) from error


@dataclass
class _Job:
    """One artefact in the making."""

    encoder: Encoder
    work: TextSet
    folder: Path
    name: Callable[[int], str]
    report: Report | None
    troubles: dict[str, str] = field(default_factory=dict)
    """What was last wrong, by batch id; under "" what the backend could not assign."""
    done: int = 0
    done_tokens: int = 0

    def run(self) -> None:
        """Write `rows.npy`, `tokens.npy` and `facts.json`, rows in the order of the texts and never all in memory."""
        self.counts = token_counts(self.encoder, self.work)
        self.lengths = tokens_read(self.counts, self.encoder.spec.max_tokens)
        with VectorFile(self.folder / PIECES, len(self.work.texts), self.encoder.spec.dim) as file:
            missing = {}
            for batch, rows in planned(self.encoder, self.work, self.counts):
                if file.holds(batch.batch_id, rows):
                    self._count(rows)
                else:
                    missing[batch.batch_id] = (batch, rows)
            self._report()
            self._embed_missing(file, missing)
            self._refuse_constant(file)
        save_array(self.folder / "tokens.npy", self.counts)
        write_atomic(self.folder / "facts.json", json_bytes(file.facts or {}))
        # A second name, not another one: until the manifest is there, a killed attempt needs the first.
        (self.folder / ROWS).hardlink_to(file.path)

    def _refuse_constant(self, file: VectorFile) -> None:
        if not self.done or float((file.high - file.low).max()) > SAME_VECTOR or not _differ(self.work.texts):
            return
        shutil.rmtree(self.folder / PIECES)  # or the next run would take them for finished
        raise BackendError(
            f"{self.encoder.spec.name} returned one and the same vector for {self.done} texts. None was kept; "
            "check the model and run the command again."
        )

    def _embed_missing(self, file: VectorFile, missing: dict[str, tuple[Batch, list[int]]]) -> None:
        """Send what is missing until nothing is or the tries are used up; then name the first batch that failed."""
        for _ in range(1 + self.encoder.resubmissions):
            if not missing:
                return
            self._send(file, missing)
        if missing:
            self._refuse_constant(file)
            raise BackendError(f"{self._failed(list(missing.values()))} {self._kept()}")

    def _send(self, file: VectorFile, missing: dict[str, tuple[Batch, list[int]]]) -> None:
        """Submit once; what comes back whole leaves `missing`. Repeats and strangers change nothing."""
        failures = 0
        with self._session(), closing(self.encoder.embed([batch for batch, _ in missing.values()])) as answers:
            for answer in answers:
                failures = 0 if self._takes(file, answer, missing) else failures + 1
                if failures >= MANY_FAILURES:
                    raise BackendError(
                        f"{self.encoder.spec.name} failed {failures} times in a row, the last time so: "
                        f"{self.troubles[answer.batch_id]}."
                    )

    def _takes(self, file: VectorFile, answer: Answer, missing: dict[str, tuple[Batch, list[int]]]) -> bool:
        """Whether the answer is no failure: its rows are written, or were before."""
        if answer.error or answer.rows is None:
            self.troubles[answer.batch_id] = answer.error or "0 vectors received"
            return False
        if answer.batch_id not in missing:
            return True
        batch, rows = missing[answer.batch_id]
        try:
            file.write(batch.batch_id, rows, self._checked(batch, rows, answer), answer.facts)
        except BackendError as error:
            self.troubles[answer.batch_id] = str(error)
            return False
        del missing[answer.batch_id]
        self._count(rows)
        self._report()
        return True

    def _checked(self, batch: Batch, rows: Sequence[int], answer: Answer) -> NDArray[np.float32]:
        vectors = checked_rows(self.encoder, np.asarray(answer.rows), len(batch.texts))
        if float(np.ptp(vectors, axis=0).max()) <= SAME_VECTOR and _differ(batch.texts):
            raise BackendError("one and the same vector for all of its texts")
        if answer.n_tokens is not None and answer.n_tokens.tolist() != self.counts[rows].tolist():
            raise BackendError("the backend counts other tokens than the catalogued tokenizer: another model or prompt")
        return vectors

    def _failed(self, failed: Sequence[tuple[Batch, list[int]]]) -> str:
        """How much failed, what was wrong with the first batch, and which texts are in it."""
        batch, rows = failed[0]
        trouble = self.troubles.get(batch.batch_id) or self.troubles.get("") or "no answer came"
        n_texts = sum(len(each) for _, each in failed)
        where = f"{len(failed)} batch{'es' if len(failed) > 1 else ''} of {n_texts} texts"
        more = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
        named = ", ".join(self.name(row) for row in rows[:MOST_NAMED]) + more
        return f"{self.encoder.spec.name}: {where} could not be embedded. It fails on {named}: {trouble}."

    @contextmanager
    def _session(self) -> Iterator[None]:
        """A call into the backend: what ends it becomes a BackendError that says what is kept."""
        try:
            yield
        except EvalError as error:
            raise type(error)(f"{error} {self._kept()}") from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise  # our own disk, which the store has words for
            raise BackendError(
                f"{self.encoder.spec.name} failed: {type(error).__name__}: {error}. {self._kept()}"
            ) from error

    def _kept(self) -> str:
        return (
            f"{self.done} of {len(self.work.texts)} texts are embedded and kept; run the command again and only the "
            "others are sent."
        )

    def _count(self, rows: Sequence[int]) -> None:
        self.done += len(rows)
        self.done_tokens += int(self.lengths[rows].sum())

    def _report(self) -> None:
        if self.report is not None:
            self.report(Progress(self.done, len(self.work.texts), self.done_tokens, int(self.lengths.sum())))


def _differ(texts: Sequence[str]) -> bool:
    """Whether at least three texts have visibly different openings.

    Equal vectors alone prove nothing: texts may differ only in case, or past the encoder's limit.
    """
    openings = set()
    for text in texts:
        plain = unicodedata.normalize("NFKD", text[:400]).casefold()
        openings.add(re.sub(r"[\W_]+", " ", plain).strip()[:100])
        if len(openings) >= 3:
            return True
    return False
