"""The lock of a record: SHA-256 of every file of it, written last, verified by every command that reads one.

Every digest that one of the files holds of another is verified too.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from runner.base.canonical import (
    JSON,
    digest,
    file_sha256,
    json_bytes,
    read_json,
    read_jsonl,
    sha256,
    slug,
    write_atomic,
)
from runner.base.errors import IntegrityError
from runner.eval_set.door import (
    LOCK_NAME,
    REPORT,
    REPORTS,
    fault_of,
    held,
    is_of_any_folder,
    is_report,
    read_lock,
    way_out,
)
from runner.eval_set.plan import plan_digest, read_plan
from runner.eval_set.shapes.decision import Lock
from runner.eval_set.version import NOISE_FLOOR_CELL, Version, load_decision

_CELL_FILES = (("runs", ".tsv"), ("runs", ".chunks.tsv"), ("cells", ".json"))
_FILES = (
    "corpus.jsonl",
    "decision.json",
    "labels.jsonl",
    "lists.json",
    "opened.json",
    "plan.yaml",
    "preregistration.json",
    "queries.yaml",
    "receipt.json",
    "results.html",
    "results.json",
)


def locked_files(record: Path) -> list[str]:
    """The record's own files by name, sorted, POSIX paths relative to it; what else lies there is not the record's.

    Runs are those of the plan's cells and of the A/A run: a cell that left the plan before it was frozen is no part.
    """
    plan = record / "plan.yaml"
    planned = read_plan(plan).cells if plan.exists() else []  # a decision by policy has none
    cells = [*map(slug, planned), NOISE_FLOOR_CELL]
    runs = (f"{folder}/{cell}{ending}" for cell in cells for folder, ending in _CELL_FILES)
    prompts = (path.name for path in record.glob("judge-v*.md"))
    return sorted(name for name in (*_FILES, *prompts, *runs) if (record / name).is_file())


def lock_over(folder: Path, names: Iterable[str]) -> Lock:
    """The lock over files of the folder as they are, by their POSIX paths relative to it; nothing is written."""
    files = {name: file_sha256(folder / name) for name in names}
    return Lock(schema_version=1, files=files, root_sha256=digest(files))


def write_lock(record: Path) -> Lock:
    """The lock over the record's files as they are, created exclusively.

    An existing lock is an IntegrityError, and so is a link among the files: what it leads to is not the record's.
    """
    lock = lock_over(record, locked_files(record))
    if fault := next(filter(None, (fault_of(record, *file) for file in lock.files.items())), ""):
        raise IntegrityError(f"{fault}. Put the file itself there and run again.")
    path = record / LOCK_NAME
    try:
        write_atomic(path, json_bytes(lock.model_dump()), new=True)
    except FileExistsError as error:
        raise IntegrityError(f"{path} exists already; a record is locked once.") from error
    return lock


def verify_lock(record: Path) -> Lock | None:
    """The lock of a record or of a report after checking every file against it, None if no record is locked yet.

    An IntegrityError names each file that is missing, changed or a link, both digests, and the way out; else every
    digest that one file holds of another and that contradicts it. A report is made with its lock, so one without it is
    an IntegrityError too, as is any file in its folder that the lock does not name, but for hidden ones.
    """
    if not os.path.lexists(record / LOCK_NAME):
        if is_report(record):
            raise IntegrityError(f"{record} has lost its {LOCK_NAME}. {way_out(record)}")
        return None
    lock = read_lock(record)
    faults = (fault_of(record, name, expected) for name, expected in sorted(lock.files.items()))
    problems = [fault for fault in faults if fault] or contradictions(record, lock.files)
    if is_report(record):
        problems += [f"{file}: not in the report's lock; move it away" for file in _strangers(record, lock)]
    if problems:
        what = "A report" if is_report(record) else "A frozen eval set"
        listed = "\n  ".join(problems)
        raise IntegrityError(f"{what} changed:\n  {listed}\n{way_out(record)}")
    return lock


def verified(path: Path) -> Path:
    """The path of a given file, once the record that it lies in is verified; a file of no record passes."""
    record = path.resolve().parent
    if not is_of_any_folder(record / LOCK_NAME):
        verify_lock(record)
    return held(path)


def report_folders(record: Path) -> list[Path]:
    """The record's reports on the production database, oldest first; `verify_lock` holds each to its lock."""
    named = [(match, path) for path in (record / REPORTS).glob("*") if (match := REPORT.fullmatch(path.name))]
    return [path for _, path in sorted(named, key=lambda pair: (pair[0][1], int(pair[0][2] or 1)))]


def _strangers(folder: Path, lock: Lock) -> list[Path]:
    """What lies in the folder, hidden files aside, and is neither its lock nor named in it."""
    own = {LOCK_NAME, *lock.files}
    files = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(p for p in files if not p.name.startswith(".") and p.relative_to(folder).as_posix() not in own)


def verify_version(version: Version) -> tuple[Lock | None, Lock | None]:
    """The locks of the record and of its rehearsal, both verified; a decision must be of this source and version.

    A locked rehearsal also holds the lines of labels.jsonl that it was scored with; later ones may follow. A record
    that is decided and given up at once is an IntegrityError.
    """
    record, rehearsal = verify_lock(version.folder), verify_lock(version.folder / "rehearsal")
    if (version.folder / "abandoned.json").exists() and (version.folder / "decision.json").exists():
        raise IntegrityError(
            f"{version.folder} is decided and abandoned.json says that it was given up. What was decided cannot be: "
            "remove abandoned.json, or restore the folder from git."
        )
    if (version.record / "decision.json").exists():
        load_decision(version)
    return record, rehearsal


Claim = tuple[str, Path, str]
"""The file that says it, the file that it is said of, and the digest."""

_IN_PAGE = re.compile(r"<th scope=\"row\">(results\.json|post_bulk\.json)</th><td[^>]*>\D*?([0-9a-f]{64})")


def contradictions(record: Path, files: Mapping[str, str]) -> list[str]:
    """What contradicts a digest that a locked file holds of another file; `files` are the locked ones by name.

    A file that is not there contradicts nothing, but if runs are locked, all files of the record that another one
    names must be there.
    """
    problems, is_whole = [], any(name.startswith("runs/") for name in files)
    for holder, target, said in _claims(record, files):
        name = target.relative_to(record).as_posix() if target.is_relative_to(record) else ""
        found = files.get(name) or (file_sha256(target) if target.is_file() else "")
        if found != said and (found or (is_whole and name)):
            now = f"it is {found[:16]}" if found else "it is not there"
            problems.append(f"{target}: {holder} says {said[:16]}, and {now}")
    if (_home(record) / "labels.jsonl").is_file() or is_whole or record != _home(record):
        problems += _of_labels(record, files)
    return list(dict.fromkeys(problems)) + _of_plan(record, files)


def _claims(record: Path, files: Mapping[str, str]) -> Iterator[Claim]:
    home = _home(record)
    for holder in sorted(files):
        if holder.endswith(".html"):
            text = (record / holder).read_text(encoding="utf-8", errors="replace")
            yield from ((holder, record / name, said) for name, said in _IN_PAGE.findall(text))
        elif holder.endswith(".json"):
            value = read_json(record / holder)
            told = _TOLD.get(holder, _of_cell if holder.startswith("cells/") else _nothing)
            for target, said in told(value, record, home, Path(holder).stem):
                if isinstance(said, str):
                    yield holder, target, said


def _home(record: Path) -> Path:
    """Where queries, corpus, labels and prompt lie: a rehearsal shares its version's."""
    return record.parent if record.name == "rehearsal" else record


Told = Iterator[tuple[Path, JSON]]


def _nothing(value: JSON, record: Path, home: Path, stem: str) -> Told:
    yield from ()


def _of_decision(value: JSON, record: Path, home: Path, stem: str) -> Told:
    yield record / "results.json", _at(value, "results_sha256")


def _of_preregistration(value: JSON, record: Path, home: Path, stem: str) -> Told:
    yield home / "queries.yaml", _at(value, "queries_sha256")
    yield home / "corpus.jsonl", _at(value, "corpus_sha256")
    yield home / f"judge-{home.name}.md", _at(value, "judge_prompt_sha256")


def _of_cell(value: JSON, record: Path, home: Path, stem: str) -> Told:
    yield home / "queries.yaml", _at(value, "queries_sha256")
    yield home / "corpus.jsonl", _at(value, "corpus_sha256")
    yield record / "runs" / f"{stem}.tsv", _at(value, "run_sha256")
    yield record / "runs" / f"{stem}.chunks.tsv", _at(value, "chunk_run_sha256")


def _of_results(value: JSON, record: Path, home: Path, stem: str) -> Told:
    yield home / "preregistration.json", _at(value, "preregistration_sha256")
    yield home / f"judge-{home.name}.md", _at(value, "judge_prompt_sha256")
    yield home / "queries.yaml", _at(value, "queries_sha256")
    yield home / "corpus.jsonl", _at(value, "corpus", "manifest_sha256")
    yield record / "lists.json", _at(value, "lists_sha256")
    for row in _at(value, "cells") or ():
        yield from _of_cell(_at(row, "provenance"), record, home, slug(str(_at(row, "cell"))))
    before = home.with_name(f"v{_at(value, 'previous', 'version')}") / record.relative_to(home)
    yield before / "results.json", _at(value, "previous", "decision", "results_sha256")


def _of_opened(value: JSON, record: Path, home: Path, stem: str) -> Told:
    before = home.with_name(f"v{_at(value, 'previous')}") / LOCK_NAME
    said = _at(value, "previous_root_sha256")
    if said is not None and before.is_file() and _at(read_json(before), "root_sha256") != said:
        yield before, said  # which is no file's digest, so that it never agrees


def _of_report(value: JSON, record: Path, home: Path, stem: str) -> Told:
    yield record.parents[1] / "results.json", _at(value, "results_sha256")
    yield record.parents[1] / LOCK_NAME, _at(value, "lock_sha256")
    for row in _at(value, "arms") or ():
        yield record / "runs" / f"{slug(str(_at(row, 'arm')))}.tsv", _at(row, "run_sha256")


_TOLD = {
    "decision.json": _of_decision,
    "preregistration.json": _of_preregistration,
    "results.json": _of_results,
    "opened.json": _of_opened,
    "post_bulk.json": _of_report,
}


def _of_labels(record: Path, files: Mapping[str, str]) -> list[str]:
    """Labels that were scored begin labels.jsonl, and each was given by the version's prompt."""
    home, problems = _home(record), []
    path, prompt = home / "labels.jsonl", home / f"judge-{home.name}.md"
    if "results.json" in files:
        scored = _at(read_json(record / "results.json"), "labels")
        lines, said = _at(scored, "lines"), _at(scored, "sha256")
        content = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
        if isinstance(lines, int) and sha256(b"".join(content[:lines])) != said:
            problems.append(f"{path}: the first {lines} lines changed since {record / 'results.json'} was made of them")
    if "labels.jsonl" in files and prompt.is_file():
        asked = {str(row.get("prompt_sha256", "")) for _, row in read_jsonl(path)} - {"", file_sha256(prompt)}
        problems += [f"{prompt}: {path} has labels given by another, {other[:16]}" for other in sorted(asked)]
    return problems


def _of_plan(record: Path, files: Mapping[str, str]) -> list[str]:
    """The rule is the one that was frozen before the first pair was judged."""
    frozen, path = _home(record) / "preregistration.json", record / "plan.yaml"
    if path.name not in files or not frozen.is_file():
        return []
    said = _at(read_json(frozen), "production" if record == _home(record) else "rehearsal", "rule_sha256")
    now = plan_digest(read_plan(path)).rule_sha256
    return [] if said in (None, now) else [f"{path}: {frozen} froze the rule {str(said)[:16]}, and it is {now[:16]}"]


def _at(value: JSON, *names: str) -> JSON:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
