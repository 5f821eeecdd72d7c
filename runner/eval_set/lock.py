"""The lock of a record: SHA-256 of every file of it, written last, verified by every command that reads one.

Every digest that one of the files holds of another is verified too.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from runner.base.canonical import JSON, file_sha256, json_bytes, read_json, read_jsonl, sha256, slug, write_atomic
from runner.base.errors import IntegrityError
from runner.eval_set.door import (
    LOCK_NAME,
    REPORT,
    REPORTS,
    fault_of,
    held,
    is_report,
    lock_over,
    names_below,
    read_lock,
    way_out,
)
from runner.eval_set.plan import plan_digest, read_plan
from runner.eval_set.shapes.lock import Lock
from runner.eval_set.version import NOISE_FLOOR_CELL, Version, load_decision

_CELL_FILES = (*(("runs", f"{kind}.tsv.bz2") for kind in ("", ".chunks")), ("cells", ".json"))
_FILES = (
    *("corpus.jsonl", "decision.json", "labels.jsonl", "lists.json.bz2", "opened.json", "plan.yaml"),
    *("preregistration.json", "queries.yaml", "receipt.json", "results.html", "results.json"),
)


def locked_files(record: Path) -> list[str]:
    """Return the record's own files by name, sorted, POSIX paths relative to it; what else lies there is not its.

    Runs are those of the plan's cells and of the A/A run: a cell that left the plan before it was frozen is no part.
    """
    plan = record / "plan.yaml"
    planned = read_plan(plan).cells if plan.exists() else []  # a decision by policy has none
    cells = [*map(slug, planned), NOISE_FLOOR_CELL]
    runs = (f"{folder}/{cell}{ending}" for cell in cells for folder, ending in _CELL_FILES)
    prompts = (path.name for path in record.glob("judge-v*.md"))
    return sorted(name for name in (*_FILES, *prompts, *runs) if (record / name).is_file())


def write_lock(record: Path) -> Lock:
    """Create the lock over the record's files as they are, and return it.

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
    """Return the lock of a record or of a report after checking every file against it, None if none is locked yet.

    An IntegrityError names each file that is missing, changed or a link, both digests, and the way out; else every
    digest that one file holds of another and that contradicts it. A report is made with its lock, so one without it is
    an IntegrityError too, as is any file in its folder that the lock does not name, but for hidden ones.
    """
    if not os.path.lexists(record / LOCK_NAME):
        if is_report(record):
            raise IntegrityError(f"{record} has lost its {LOCK_NAME}. {way_out(record)}")
        return None
    lock = read_lock(record)
    # First the bytes; what files say of each other is asked only where these are as locked.
    faults = (fault_of(record, name, expected) for name, expected in sorted(lock.files.items()))
    problems = [fault for fault in faults if fault] or contradictions(record, lock.files)
    if is_report(record):
        # A report is made at once and whole, so nothing may join it later.
        problems += [f"{record / name}: not in the report's lock; move it away" for name in unlocked(record, lock)]
    if problems:
        what = "A report" if is_report(record) else "A frozen eval set"
        listed = "\n  ".join(problems)
        raise IntegrityError(f"{what} changed:\n  {listed}\n{way_out(record)}")
    return lock


def unlocked(record: Path, lock: Lock) -> list[str]:
    """Return the files and links of a record's folder that its lock does not hold, by name; hidden ones are left out.

    The rehearsal and whatever has a lock of its own, as a report has, are held by themselves.
    """
    strangers = []
    for name in sorted({*names_below(record)} - {LOCK_NAME, *lock.files}):
        is_hidden = any(part.startswith(".") for part in name.split("/"))
        inner = [record / folder for folder in PurePosixPath(name).parents if folder.name]
        if not is_hidden and not any(each.name == "rehearsal" or (each / LOCK_NAME).is_file() for each in inner):
            strangers.append(name)
    return strangers


def verified(path: Path) -> Path:
    """Return the path of a given file, once the record that it lies in is verified; a file of no record passes."""
    record = path.resolve().parent
    if not (record / LOCK_NAME).exists() or read_lock(record).folder is None:
        verify_lock(record)
    return held(path)


def report_folders(record: Path) -> list[Path]:
    """Return the record's reports on the production database, oldest first; `verify_lock` holds each to its lock."""
    named = [(match, path) for path in (record / REPORTS).glob("*") if (match := REPORT.fullmatch(path.name))]
    return [path for _, path in sorted(named, key=lambda pair: (pair[0][1], int(pair[0][2] or 1)))]


def verify_version(version: Version) -> tuple[Lock | None, Lock | None]:
    """Return the locks of the record and of its rehearsal, both verified; a decision must be of source and version.

    A locked rehearsal also holds the lines of labels.jsonl that it was scored with; later ones may follow. A record
    that is decided and given up at once is an IntegrityError.
    """
    record, rehearsal = verify_lock(version.folder), verify_lock(version.folder / "rehearsal")
    if (version.folder / "abandoned.json").exists() and (version.folder / "decision.json").exists():
        raise IntegrityError(
            f"{version.folder} is decided and abandoned.json says that it was given up. What was decided cannot be: "
            "remove abandoned.json, or restore the folder from git or a backup."
        )
    if (version.record / "decision.json").exists():
        load_decision(version)
    return record, rehearsal


Claim = tuple[str, Path, JSON]
"""The file that says it, the file that it is said of, and the digest."""

_IN_PAGE = re.compile(r"<th scope=\"row\">(results\.json|post_bulk\.json)</th><td[^>]*>\D*?([0-9a-f]{64})")


def contradictions(record: Path, files: Mapping[str, str]) -> list[str]:
    """Return what contradicts a digest that a locked file holds of another; `files` are the locked ones by name.

    A file that is not there contradicts nothing, but if runs are locked, all files of the record that another one
    names must be there.
    """
    problems, is_whole = [], any(name.startswith("runs/") for name in files)
    digests = {record / name: digest for name, digest in files.items()}
    results = read_json(record / "results.json") if "results.json" in files else None
    for holder, target, expected in _claims(record, files, results):
        if target not in digests:
            digests[target] = file_sha256(target) if target.is_file() else ""
        present = digests[target]
        # A rehearsal or an external collection may lack a file that results name; a record with runs may not.
        must_be_there = is_whole and target.is_relative_to(record)
        if isinstance(expected, str) and present != expected and (present or must_be_there):
            now = f"it is {present[:16]}" if present else "it is not there"
            problems.append(f"{target}: {holder} says {expected[:16]}, and {now}")
    if (_home(record) / "labels.jsonl").is_file() or is_whole or record != _home(record):
        problems += _of_labels(record, files, results)
    return list(dict.fromkeys(problems)) + _of_plan(record, files)


def _home(record: Path) -> Path:
    """Return where queries, corpus, labels and prompt lie: a rehearsal shares its version's."""
    return record.parent if record.name == "rehearsal" else record


def _claims(record: Path, files: Mapping[str, str], results: JSON) -> Iterator[Claim]:
    home = _home(record)
    for holder in sorted(files):
        # The page prints digests for people; they are read back from its table.
        if holder.endswith(".html"):
            text = (record / holder).read_text(encoding="utf-8", errors="replace")
            yield from ((holder, record / name, stated) for name, stated in _IN_PAGE.findall(text))
        elif holder.startswith("cells/"):
            yield from _of_cell(holder, record, read_json(record / holder), Path(holder).stem)
        elif holder == "decision.json":
            yield holder, record / "results.json", _at(read_json(record / holder), "results_sha256")
        elif holder == "preregistration.json":
            frozen = read_json(record / holder)
            yield holder, home / "queries.yaml", _at(frozen, "queries_sha256")
            yield holder, home / "corpus.jsonl", _at(frozen, "corpus_sha256")
            yield holder, home / f"judge-{home.name}.md", _at(frozen, "judge_prompt_sha256")
        elif holder == "results.json":
            yield from _of_results(holder, record, results)
        elif holder == "post_bulk.json":  # of a report, in post-bulk/DAY of its record
            report = read_json(record / holder)
            yield holder, record.parents[1] / "results.json", _at(report, "results_sha256")
            yield holder, record.parents[1] / LOCK_NAME, _at(report, "lock_sha256")
            for row in _at(report, "arms") or ():
                yield holder, record / "runs" / f"{slug(str(_at(row, 'arm')))}.tsv.bz2", _at(row, "run_sha256")
        elif holder == "opened.json":
            opened = read_json(record / holder)
            before, root = (
                home.with_name(f"v{_at(opened, 'previous')}") / LOCK_NAME,
                _at(opened, "previous_root_sha256"),
            )
            if root is not None and before.is_file() and _at(read_json(before), "root_sha256") != root:
                yield holder, before, root  # which is no file's digest, so that it never agrees


def _of_cell(holder: str, record: Path, provenance: JSON, cell: str) -> Iterator[Claim]:
    """Yield what a cell's file, or its provenance in results.json, says of what was searched and of its runs."""
    yield holder, _home(record) / "queries.yaml", _at(provenance, "queries_sha256")
    yield holder, _home(record) / "corpus.jsonl", _at(provenance, "corpus_sha256")
    yield holder, record / f"runs/{cell}.tsv.bz2", _at(provenance, "run_sha256")
    yield holder, record / f"runs/{cell}.chunks.tsv.bz2", _at(provenance, "chunk_run_sha256")


def _of_results(holder: str, record: Path, results: JSON) -> Iterator[Claim]:
    """Yield what results say of files by name, of each cell's runs, and of the version before."""
    home, digests = _home(record), _at(results, "digests")
    for name, stated in digests.items() if isinstance(digests, dict) else ():
        yield holder, (record if name == "lists.json.bz2" else home) / Path(name).name, stated
    for row in _at(results, "cells") or ():
        yield from _of_cell(holder, record, _at(row, "provenance"), slug(str(_at(row, "cell"))))
    before = home.with_name(f"v{_at(results, 'previous', 'version')}") / record.relative_to(home)
    yield holder, before / "results.json", _at(results, "previous", "results_sha256")


def _of_labels(record: Path, files: Mapping[str, str], results: JSON) -> list[str]:
    """Return what keeps the labels that were scored from beginning labels.jsonl, each given by the version's prompt."""
    home, problems = _home(record), []
    path, prompt = home / "labels.jsonl", home / f"judge-{home.name}.md"
    if "results.json" in files:
        scored = _at(results, "labels")
        lines, expected = _at(scored, "lines"), _at(scored, "sha256")
        # Labels may grow after a rehearsal: only the lines that were scored are held.
        content = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
        if isinstance(lines, int) and sha256(b"".join(content[:lines])) != expected:
            problems.append(f"{path}: the first {lines} lines changed since {record / 'results.json'} was made of them")
    if "labels.jsonl" in files and prompt.is_file():
        asked = {str(row.get("prompt_sha256", "")) for _, row in read_jsonl(path)} - {"", file_sha256(prompt)}
        problems += [f"{prompt}: {path} has labels given by another, {other[:16]}" for other in sorted(asked)]
    return problems


def _of_plan(record: Path, files: Mapping[str, str]) -> list[str]:
    """Return how the rule differs from the one that was frozen before the first pair was judged."""
    frozen, path = _home(record) / "preregistration.json", record / "plan.yaml"
    if path.name not in files or not frozen.is_file():
        return []
    before = _at(read_json(frozen), "production" if record == _home(record) else "rehearsal", "rule_sha256")
    now = plan_digest(read_plan(path)).rule_sha256
    return (
        [] if before in (None, now) else [f"{path}: {frozen} froze the rule {str(before)[:16]}, and it is {now[:16]}"]
    )


def _at(value: JSON, *names: str) -> JSON:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
