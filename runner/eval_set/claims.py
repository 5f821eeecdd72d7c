"""What the files of a record say of one another: every digest that one holds of another."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from runner.base.canonical import JSON, file_sha256, read_json, read_jsonl, sha256, slug
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.plan import plan_digest, read_plan

Claim = tuple[str, Path, str]
"""The file that says it, the file that it is said of, and the digest."""

_IN_PAGE = re.compile(r"<th scope=\"row\">(results\.json|post_bulk\.json)</th><td>\D*?([0-9a-f]{64})")


def contradictions(record: Path, files: Mapping[str, str]) -> list[str]:
    """What contradicts a digest that a locked file holds of another file; `files` are the locked ones by name.

    Whichever release wrote them: what one did not write yet is not asked for. A file that is not there contradicts
    nothing, but where runs are locked, all files of the record that another one names must be.
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
    yield home / "corpus.jsonl", _at(value, "corpus", "manifest_sha256")
    for row in _at(value, "cells") or ():
        yield from _of_cell(_at(row, "provenance"), record, home, slug(str(_at(row, "cell"))))
    for number, said in enumerate(_at(value, "look", "kept") or (), start=1):
        yield record / "looks" / f"{number}.json", said
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
