"""Labels of an earlier version that hold for the next one too."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from runner.base.canonical import file_sha256
from runner.base.errors import IntegrityError
from runner.eval_set.history import earlier, opened
from runner.eval_set.labels import append_labels, first_readings, load_labels, version_labels
from runner.eval_set.lock import verify_version
from runner.eval_set.shapes.labels import Label, is_same_model
from runner.eval_set.version import Version, load_corpus, load_queries


class Carried(NamedTuple):
    """How many labels the earlier version has, how many were carried, and why the others were not, with counts."""

    source: str
    total: int
    carried: int
    left: dict[str, int]

    @property
    def sentence(self) -> str:
        """As the terminal says it; "" if there was nothing to carry."""
        if not self.total:
            return ""
        reasons = ", ".join(f"{count:,} {why}" for why, count in self.left.items())
        left = f"; {self.total - self.carried:,} left: {reasons}" if reasons else ""
        return f"{self.carried:,} of {self.total:,} labels of {self.source} carried{left}"


NOTHING = Carried("", 0, 0, {})


def carry_labels(version: Version) -> Carried:
    """Return what was carried into labels.jsonl of a preregistered version that has none yet; else NOTHING.

    Labels stay as they are, in their order. An IntegrityError if the earlier version has changed since.
    """
    if version.labels_path.exists() or not version.preregistration_path.exists():
        return NOTHING
    carried, kept = _carried(version)
    # In their order and with their own fields, so that they read as they did.
    if kept:
        append_labels(version.labels_path, kept)
    return carried


def labels_at_hand(version: Version) -> Sequence[Label]:
    """Return the version's labels or, before they are carried, those of the earlier version that will be."""
    there = version.corpus_path.exists() and version.queries_path.exists()
    if version.labels_path.exists() or not there:
        return version_labels(version)
    return _carried(version)[1]


def _carried(version: Version) -> tuple[Carried, list[Label]]:
    """Return which labels of the earlier version hold for this one, and what is said of them and of the others."""
    before = earlier(version)
    if before is None:
        return NOTHING, []
    check_earlier(version, before)
    labels = load_labels(before.labels_path)
    if not labels or version.plan().confirms is not None:  # what chose the cell may not confirm it
        return NOTHING, []
    reasons = _reasons(labels, before, version)
    kept = [label for label, reason in zip(labels, reasons, strict=True) if not reason]
    left = dict(Counter(filter(None, reasons)).most_common())
    return Carried(before.number_name, len(labels), len(kept), left), kept


def check_earlier(version: Version, before: Version) -> None:
    """Raise IntegrityError unless the earlier version's locks hold and this version was opened from its record."""
    known, lock = opened(version), verify_version(before)[0]
    then = known.previous_root_sha256 if known else None
    if then is not None and (lock is None or lock.root_sha256 != then):
        now = "is not locked any more" if lock is None else f"has now {lock.root_sha256[:16]}"
        raise IntegrityError(
            f"{version.number_name} was opened from {before.number_name} as locked with {then[:16]}, and that {now}. "
            f"Restore it (git checkout -- {before.folder})."
        )


def _reasons(labels: Sequence[Label], before: Version, now: Version) -> list[str]:
    """Return why each label of one version does not hold for another: the first reason that applies, "" if it holds."""
    then_queries, queries, then_documents, documents = texts(before), texts(now), digests(before), digests(now)
    prompt, judges = file_sha256(now.judge_path), now.plan().judges
    graded_by = {pair: label.model for pair, label in first_readings(labels).items()}
    shown_then, shown = before.plan().evidence, now.plan().evidence
    lengths = {row.doc_id: row.n_chars for row in load_corpus(now.corpus_path)[1]}

    # The scale, then the prompt, then what was asked and shown: any of them makes it another grade.
    def reason(label: Label) -> str:
        model = graded_by.get(label.pair, "")
        if judges and model and not is_same_model(judges.first.model, model):
            return "first graded by another model than the plan's"
        if label.prompt_sha256 != prompt:
            return "whose judge prompt changed"
        for what, name, then, current in (
            ("query", label.query_id, then_queries, queries),
            ("document", label.doc_id, then_documents, documents),
        ):
            if name not in current:
                return f"whose {what} is gone"
            if then.get(name) != current[name]:
                return f"whose {what} changed"
        if shown_then != shown and lengths[label.doc_id] > min(shown_then.chars, shown.chars):
            return "given on other passages than the plan's"
        return ""

    return [reason(label) for label in labels]


def texts(version: Version) -> dict[str, str]:
    """Return what is asked of each topic, a line a wording, by id; none if the version has no queries."""
    path = version.queries_path
    return {query.id: "\n".join(query.wordings.values()) for query in load_queries(path)} if path.exists() else {}


def digests(version: Version) -> dict[str, str]:
    """Return documents' digests by id; none if the version has no corpus."""
    path = version.corpus_path
    return {row.doc_id: row.sha256 for row in load_corpus(path)[1]} if path.exists() else {}
