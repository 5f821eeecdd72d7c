"""labels.jsonl: what judges said of pairs of query and document, append-only until the version is decided."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from runner.base.canonical import file_sha256, jsonl_bytes, read_jsonl, sha256, write_atomic
from runner.base.errors import InputError
from runner.base.schema import checked
from runner.eval_set.batches import Kind, Pair, number_of
from runner.eval_set.door import LOCK_NAME, held
from runner.eval_set.shapes.labels import Label, LabelKey, LabelPrefix
from runner.eval_set.version import Version, load_corpus, load_queries


def load_labels(path: Path, n_lines: int | None = None) -> tuple[Label, ...]:
    """Return the labels in force of the file, or of its first lines, in file order; () if there is no file.

    Rows that were taken back, and those that take them back, are left out; one given anew stands where the first of its
    key stood, so that a first reading stays one, unless another judge has given the pair a first one since. A repeated
    key is an InputError.
    """
    return _in_force(path, held(path).read_bytes(), n_lines) if path.exists() else ()


@lru_cache(maxsize=1)
def _in_force(path: Path, content: bytes, n_lines: int | None) -> tuple[Label, ...]:
    """Return the labels of a file with that content; an evening asks for the same ones five times."""
    # Appending would join half a line to the next label, and neither could be read.
    if content and not content.endswith(b"\n"):
        raise InputError(
            f"{path} ends in the middle of a line. Delete that line, and import the answers of its batch again: what "
            "is there already is left out."
        )
    labels: dict[LabelKey, Label | None] = {}
    taken_back: dict[Pair, list[LabelKey]] = {}
    for number, row in islice(read_jsonl(path, content), n_lines):
        label = checked(Label, row, f"{path}:{number}")
        if label.void:  # takes its key back, which may be given anew further down, in the same place
            if labels.get(label.key) is None:
                raise InputError(
                    f"{path}:{number}: it takes back a label that is not there. Restore the file from git or a backup."
                )
            labels[label.key] = None
            taken_back.setdefault(label.pair, []).append(label.key)
            continue
        if labels.get(label.key):
            raise InputError(f"{path}:{number}: query {label.query_id} and {label.doc_id} are labelled twice.")
        if label.key not in labels and not label.batch.startswith("double-"):
            # Another judge's first grade, which scores count from here on: no place is kept before it.
            for key in taken_back.get(label.pair, ()):
                if key[3:] == label.key[3:] and labels.get(key) is None:
                    labels.pop(key, None)
        labels[label.key] = label
    return tuple(label for label in labels.values() if label)


def version_labels(version: Version, n_lines: int | None = None) -> tuple[Label, ...]:
    """Return the labels of a version, or of its first lines; InputError for a query, document or prompt it has not."""
    labels = load_labels(version.labels_path, n_lines)
    if not labels:
        return ()
    queries = {query.id for query in load_queries(version.queries_path)}
    documents = {row.doc_id for row in load_corpus(version.corpus_path)[1]}
    # Grades under other instructions are another measurement.
    prompt = file_sha256(version.judge_path)
    for number, label in enumerate(labels, start=1):
        problem = ""
        if label.query_id not in queries:
            problem = f"there is no query {label.query_id!r}"
        elif label.doc_id not in documents:
            problem = f"there is no document {label.doc_id!r} in the sample"
        elif label.prompt_sha256 != prompt:
            problem = f"it was judged by another prompt than {version.judge_path.name}"
        if problem:
            raise InputError(
                f"{version.labels_path}: label {number} is not one of {version.name}: {problem}. Restore the file from "
                "git or a backup."
            )
    return labels


def first_readings(labels: Iterable[Label], *, fuller: bool = False) -> dict[Pair, Label]:
    """Return the earliest label of every pair's first round, or that of its fuller reading."""
    earliest: dict[Pair, Label] = {}
    for label in labels:
        if label.round == 1 and label.is_fuller == fuller:
            earliest.setdefault(label.pair, label)
    return earliest


def scored(labels: Iterable[Label]) -> dict[Pair, Label]:
    """Return the label of every pair that scores count: its first reading, or if that is in doubt its fuller one.

    A pair whose fuller reading is not in yet is left out.
    """
    rows = tuple(labels)
    fuller = first_readings(rows, fuller=True)
    counted = {pair: fuller.get(pair, label) for pair, label in first_readings(rows).items()}
    return {pair: label for pair, label in counted.items() if label.is_fuller or not label.doubt}


def newest_batch(labels: Iterable[Label], kind: Kind) -> int:
    """Return the highest number of a batch of that kind that labels name, 0 for none: its file may be gone."""
    return max((number_of(label.batch) for label in labels if label.batch.startswith(f"{kind}-")), default=0)


def append_labels(path: Path, labels: Sequence[Label]) -> None:
    """Put `labels` at the end of labels.jsonl, whole or not at all; earlier bytes are kept as they are."""
    before = path.read_bytes() if path.exists() else b""
    write_atomic(path, before + jsonl_bytes(label.model_dump() for label in labels))


def label_prefix(path: Path) -> LabelPrefix:
    """Return how many lines labels.jsonl has and their digest, so that results name what they were scored with."""
    content = path.read_bytes() if path.exists() else b""
    return LabelPrefix(lines=content.count(b"\n"), sha256=sha256(content))


def closed(version: Version) -> str:
    """Return why no label may be added any more, "" where one may."""
    # A record is closed by its decision; a rehearsal only until its lock holds the lines that it was scored with.
    if (version.folder / LOCK_NAME).exists() or (version.folder / "decision.json").exists():
        return f"{version.number_name} is decided: its labels are final. Top-ups belong in the next version."
    rehearsal = version.folder / "rehearsal"
    if (rehearsal / "decision.json").exists() and not (rehearsal / LOCK_NAME).exists():
        return f"The rehearsal of {version.number_name} is decided but not locked. Run it with --rehearse first."
    return ""
