"""One version of a source's eval set on disk: where its files lie, and how each is read and written.

docs/eval-architecture.md describes every file; `runner.eval_set.shapes` has their shapes, which check them.
"""

import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.base.canonical import file_sha256, jsonl_bytes, read_json, read_jsonl, remove_stale, slug
from runner.base.errors import EvalError, InputError, IntegrityError, PlanError
from runner.base.given_files import display, printable
from runner.base.places import DRIVER, EVAL_SETS, INSTALLED, OWN_FILES, OWN_SETS, WORKPLACE, cache_folder
from runner.base.plain_yaml import read_yaml
from runner.base.progress import say
from runner.base.schema import Model, checked
from runner.base.store import disk_errors, exclusive
from runner.eval_set import catalog
from runner.eval_set.asked import asked
from runner.eval_set.catalog import SourceSpec
from runner.eval_set.door import LOCK_NAME, held
from runner.eval_set.mix import mix_problems
from runner.eval_set.plan import load_plan
from runner.eval_set.runs import read_lists
from runner.eval_set.shapes.cell import CellFile
from runner.eval_set.shapes.corpus import CorpusHeader, CorpusRow
from runner.eval_set.shapes.decision import Decision, Receipt
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.queries import Queries, QueryRow
from runner.eval_set.shapes.results import Results

NOISE_FLOOR_CELL = "aa"
"""File name of the baseline's run over vectors that were embedded once more, in other batches."""


class _File:
    """A file of a version by its name; one of the view lies in the record or in its rehearsal."""

    def __init__(self, name: str, *, of_view: bool = False) -> None:
        self.name = name
        self.of_view = of_view

    def __get__(self, version: "Version", _: object) -> Path:
        return (version.record if self.of_view else version.folder) / self.name


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a source's eval set, seen as the record or, with `rehearsal`, as its rehearsal.

    `folder` holds what is shared (queries, corpus, labels).
    """

    source: SourceSpec
    number: int
    folder: Path
    work: Path
    cache: Path
    rehearsal: bool = False
    tried_from: "Version | None" = None
    """The version that a trial is of, whose queries it takes; None for any other."""
    apart: Path | None = None
    """Where runs and results go instead of into the version, as those of an exploration do."""

    # Queries, corpus, labels (append-only until the lock) and what was frozen are those of record and rehearsal alike.
    queries_path = _File("queries.yaml")
    corpus_path = _File("corpus.jsonl")
    labels_path = _File("labels.jsonl")
    collection_path = _File("collection.json")
    qrels_path = _File("qrels.txt")
    preregistration_path = _File("preregistration.json")
    results_path = _File("results.json", of_view=True)
    lists_path = _File("lists.json.bz2", of_view=True)

    @property
    def record(self) -> Path:
        """Where runs, results and the decision go."""
        return self.apart or (self.folder / "rehearsal" if self.rehearsal else self.folder)

    @property
    def name(self) -> str:
        """The version as messages say it: "bills v1", "bills v1 (rehearsal)", "bills v1 (trial)"."""
        view = "trial" if self.tried_from is not None else "rehearsal" if self.rehearsal else ""
        return self.number_name + (f" ({view})" if view else "")

    @property
    def number_name(self) -> str:
        """The version without its view, as batches name it: "bills v1"."""
        return f"{self.source.name} v{self.number}"

    @property
    def flags(self) -> str:
        """The words behind a verb that name this version, for commands that messages suggest; a trial's with --try."""
        if self.tried_from is not None:
            return f"{self.tried_from.flags} --try"
        # A source's own folder need not be named: of the workplace, or of what came with the tool.
        given = [self.source.name]
        own = [place / self.source.name for place in (EVAL_SETS, OWN_FILES / "eval-sets", OWN_SETS)]
        if self.folder.parent.resolve() not in (folder.resolve() for folder in own):
            given.append(f"--eval-set-path={self.folder.parent}")
        return shlex.join(given)

    @property
    def origin(self) -> "Version":
        """The version that a trial is of; any other is its own."""
        return self.tried_from or self

    @property
    def viewed(self) -> str:
        """The same with --rehearse for a rehearsal that is no trial."""
        return f"{self.flags} --rehearse" if self.rehearsal and self.tried_from is None else self.flags

    @property
    def embedded_corpus(self) -> Path | None:
        """The documents that come with this tool, None for every source but the demo."""
        return OWN_FILES / self.source.corpus if self.source.corpus else None

    @property
    def judging(self) -> Path:
        """Where batches wait for a judge, outside git."""
        return self.work / "judging"

    @property
    def judge_path(self) -> Path:
        """The judge's instructions, part of the version."""
        return self.folder / f"judge-v{self.number}.md"

    @property
    def judge_prompt(self) -> Path:
        """The version's instructions or, until it has some, those that come with this tool."""
        return self.judge_path if self.judge_path.exists() else OWN_FILES / "templates" / "judge.md"

    def trec_path(self, cell: str) -> Path:
        """Return trec/<cell>.run, a run as TREC has it."""
        return self.record / "trec" / f"{slug(cell)}.run"

    def plan_path(self, *, rehearsal: bool) -> Path:
        """Return plan.yaml of the record or of the rehearsal."""
        return (self.folder / "rehearsal" if rehearsal else self.folder) / "plan.yaml"

    def run_path(self, cell: str) -> Path:
        """Return runs/<cell>.tsv.bz2."""
        return self.record / "runs" / f"{slug(cell)}.tsv.bz2"

    def chunk_run_path(self, cell: str) -> Path:
        """Return runs/<cell>.chunks.tsv.bz2."""
        return self.record / "runs" / f"{slug(cell)}.chunks.tsv.bz2"

    def cell_path(self, cell: str) -> Path:
        """Return cells/<cell>.json, written after the cell's runs: where it exists, they are whole."""
        return self.record / "cells" / f"{slug(cell)}.json"

    def plan(self, *, rehearsal: bool | None = None) -> Plan:
        """Return the plan in force, or the one that `rehearsal` names; PlanError if its mix is none of the queries."""
        which = self.rehearsal if rehearsal is None else rehearsal
        path = self.plan_path(rehearsal=which)
        plan = load_plan(path, self.source, self.number, rehearsal=which)
        queries = load_queries(self.queries_path) if plan.mix and self.queries_path.exists() else ()
        if broken := mix_problems(plan.mix, queries):
            raise PlanError(str(path), broken)
        return plan


@contextmanager
def alone(version: Version) -> Iterator[None]:
    """Hold the version's lock, and take away what killed runs left; a full or unwritable disk is a BackendError."""
    with disk_errors(version.folder), exclusive(version.work / "version.lock", f"another run of {version.name}"):
        bring_demo(version)
        remove_stale(version.folder)
        remove_stale(version.work)
        yield


def bring_demo(version: Version) -> None:
    """Copy the demo of an installed wheel into a workplace that has none yet, whole or not at all."""
    if (packaged := _packaged_demo(version)) is None:
        return
    # Copied aside first, so that a kill leaves no half of a version.
    staged = version.work / "demo"
    shutil.rmtree(staged, ignore_errors=True)  # of a run that was killed
    for path in packaged.rglob("*"):
        if path.is_file():  # its content alone: what came with a package may be read-only
            target = staged / path.relative_to(packaged)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    EVAL_SETS.mkdir(parents=True, exist_ok=True)
    staged.rename(version.folder.parent)
    say(f"copied the demo into {version.folder.parent}")


def to_read(version: Version) -> Version:
    """Return the version; in a workplace without the demo, the one that `bring_demo` would copy, to be read alone."""
    if (packaged := _packaged_demo(version)) is None:
        return version
    return replace(version, folder=packaged / version.folder.name)


def _packaged_demo(version: Version) -> Path | None:
    """Return the versions of the demo that came with a wheel, if the workplace has none of its own."""
    name, folder = version.source.name, version.folder.parent
    if not INSTALLED or not version.source.corpus or folder != (EVAL_SETS / name).resolve() or version_numbers(folder):
        return None
    return OWN_FILES / "eval-sets" / name


def version_numbers(eval_set: Path) -> list[int]:
    """Return the numbers of the versions in a folder, ascending.

    A folder without plan and decision is no version: an empty v2 must not hide what v1 decided.
    """
    files = [path for name in ("plan.yaml", "decision.json") for path in eval_set.glob(f"v*/{name}")]
    return sorted({int(match[1]) for path in files if (match := re.fullmatch(r"v(\d+)", path.parent.name))})


def is_abandoned(folder: Path) -> bool:
    """Return whether a version was given up; what was decided cannot be."""
    return (folder / "abandoned.json").exists() and not (folder / "decision.json").exists()


def open_version(eval_set: Path, work: Path, cache: Path, source: SourceSpec, *, rehearsal: bool = False) -> Version:
    """Return the newest version in a folder of them that was not given up, or one that is not on disk yet.

    `work` is kept out of git. Numbers that were decided elsewhere or given up are not used again.
    """
    numbers = version_numbers(eval_set)
    elsewhere = source.imported.version if source.imported else 0
    # What was given up stays on disk, as evidence, and is never opened again.
    usable = [number for number in numbers if not is_abandoned(eval_set / f"v{number}")]
    number = max(usable) if usable else max([elsewhere, *numbers]) + 1
    own_work = work / source.name / f"v{number}"
    return Version(source, number, eval_set / f"v{number}", own_work, cache, rehearsal=rehearsal)


def numbered(version: Version, number: int) -> Version:
    """Return another version of the same source in the same view; it need not exist on disk."""
    folder, work = version.folder.with_name(f"v{number}"), version.work.with_name(f"v{number}")
    return replace(version, number=number, folder=folder, work=work, apart=None)


TRIAL = "try"
"""The folder of a source's trial, where work lies."""


def is_trial(eval_set: Path, source: str) -> bool:
    """Return whether a folder of versions is the source's trial."""
    place = eval_set.absolute()
    return (place.name, place.parent.name) == (TRIAL, source)


def home_of(name: str) -> Path:
    """Return the folder of a source's versions where no other is named."""
    return (EVAL_SETS if name in catalog.SOURCES else OWN_SETS) / name


def is_record(eval_set: Path) -> bool:
    """Return whether a folder of versions lies in the record, whose baselines are the roster's."""
    return any(eval_set.is_relative_to(place.resolve()) for place in (EVAL_SETS, OWN_FILES / "eval-sets"))


def own_names() -> list[str]:
    """Return the names of the sources of one's own that lie where no other folder was named."""
    names = (path.name for path in OWN_SETS.glob("*") if version_numbers(path))
    return sorted(name for name in names if catalog.OWN_NAME.fullmatch(name) and name not in catalog.SOURCES)


def source_in(eval_set: Path, name: str) -> SourceSpec:
    """Return the source of that name as a folder of versions has it; InputError unless the roster or the folder does.

    Outside of the record, EVAL_SETS, the newest plan's baseline is the source's, and its block of documents makes a
    source of one's own.
    """
    row = catalog.SOURCES.get(name)
    if row is not None and (is_record(eval_set) or row.policy == "external"):
        return row
    path, plan, why = _newest_plan(eval_set)
    baseline = plan.get("baseline")
    baseline = baseline if isinstance(baseline, str) else ""
    if row is not None:  # whoever reads the plan says what is wrong with it
        return replace(row, baseline=baseline or row.baseline)
    if path is None:
        return catalog.source(name, own_names())  # which says that there is none
    if plan.get("source") != name:
        raise _damaged(path, why or f"{display(path)} does not say `source: {name}`.")
    sample = plan.get("sample")
    fields = sample.get("documents") if isinstance(sample, dict) else None
    stated = fields.items() if isinstance(fields, dict) else ()
    return catalog.own_source(name, {str(key): str(field) for key, field in stated}, baseline)


def _damaged(path: Path, why: str) -> EvalError:
    """Return the error of a plan that does not say which source of one's own it is of: IntegrityError if frozen."""
    if any(path.with_name(each).exists() for each in (LOCK_NAME, "preregistration.json")):
        return IntegrityError(f"{why} It was frozen: restore it from git or a backup.")
    return InputError(f"{why} Mend it, or restore it from git or a backup.")


def _newest_plan(eval_set: Path) -> tuple[Path | None, dict[Any, Any], str]:
    """Return the newest plan in a folder of versions, its fields, and why they cannot be read, "" if they can.

    Versions that were given up are passed over. Without a plan it is a frozen one that is gone, or None.
    """
    folders = (eval_set / f"v{number}" for number in reversed(version_numbers(eval_set)))
    plans = (folder / "plan.yaml" for folder in folders if not is_abandoned(folder))
    frozen = (path.with_name("plan.yaml") for path in eval_set.glob("v*/preregistration.json"))
    gone = next((path for path in frozen if not path.exists()), None)
    path = next((path for path in plans if path.is_file()), gone)
    try:
        fields = read_yaml(path) if path is not None else None
    except InputError as error:
        return path, {}, str(error)
    return path, fields if isinstance(fields, dict) else {}, ""


def newest_version(
    name: str, folder: Path | None = None, *, rehearsal: bool = False, begun_as: SourceSpec | None = None
) -> Version:
    """Return the newest version of a source in a folder of versions, by default the source's home.

    `begun_as` is a source of one's own that has no version yet. InputError for a source that cannot be evaluated, where
    the folder is a version itself, a file, or unusable, and for an external collection without a folder, since there
    are many of them.
    """
    # Of a source, the workplace has one eval set; of a collection, one for every folder that was ever given.
    if catalog.is_external(name) and folder is None:
        evaluated = sorted(path.parents[1] for path in (WORKPLACE / ".work" / name).glob("*/v1/results.json"))
        raise InputError(
            f"Which collection of {name}? Give --corpus-path FOLDER to the driver, or --eval-set-path to the others; "
            f"evaluated so far: {', '.join(map(str, evaluated)) or 'none'}."
        )
    if name not in catalog.SOURCES and not catalog.OWN_NAME.fullmatch(name):
        catalog.source(name, own_names())  # which says that there is none
    own = home_of(name)
    try:
        given = (folder or own).resolve()
        if given.is_file() or (given / "plan.yaml").exists():
            raise InputError(f"{display(given)} is a version or a file; give the folder that holds v1/, v2/.")
    except (OSError, RuntimeError) as error:  # too long a name, links in a circle
        raise InputError(f"{printable(str(error))}: cannot be used. Give the folder that holds v1/, v2/.") from error
    _refuse_odd_entries(given)
    if folder is not None and (of := source_of(given)) not in (None, name):
        raise InputError(
            f"--eval-set-path: {display(given)} holds versions of {of}, and {name} is named. Name {of}, or the folder "
            f"of {name}."
        )
    source = source_in(given, name) if begun_as is None or version_numbers(given) else begun_as
    # Beside an eval set of its own, work must not mix with that of the workplace's set of the same source.
    beside = WORKPLACE if given == own.resolve() else given
    return open_version(given, beside / ".work", cache_folder(), source, rehearsal=rehearsal)


def _refuse_odd_entries(eval_set: Path) -> None:
    """Raise IntegrityError for what a set's versions or work hold beside files and folders.

    Writing would follow a link that leads out of the set, and reading a pipe would never end.
    """
    paths = [eval_set / ".work", *eval_set.glob("v[0-9]*")]
    while paths:
        path = paths.pop()
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(eval_set):
            raise IntegrityError(
                f"{display(path)} is a link that leads out of {display(eval_set)}, and what is written there would "
                "follow it. Put the files themselves there."
            )
        if path.is_dir() and not path.is_symlink():
            with os.scandir(path) as entries:
                paths += [path / each.name for each in entries if not each.is_file(follow_symlinks=False)]
        elif path.exists() and not path.is_dir() and not path.is_file():
            raise IntegrityError(f"{display(path)} is a pipe, socket or device. Move it away.")


def source_of(eval_set: Path) -> str | None:
    """Return the source whose versions a folder holds, by the newest plan; None if none says."""
    _, plan, _ = _newest_plan(eval_set)
    name, sample = plan.get("source"), plan.get("sample")
    is_own = isinstance(sample, dict) and "documents" in sample
    return name if isinstance(name, str) and (name in catalog.SOURCES or is_own) else None


def existing_version(name: str, folder: Path | None = None, *, rehearsal: bool = False) -> Version:
    """Return the newest version; InputError if a folder is given, other than the source's own, that holds none.

    A source without a version in its own place is undecided; a folder that was named for its versions is mistyped.
    """
    version = newest_version(name, folder, rehearsal=rehearsal)
    eval_set = version.folder.parent
    if folder is None or eval_set == home_of(name) or version_numbers(eval_set):
        return version
    # Most often the folder above was meant, which holds one folder a source.
    below = eval_set / name
    how = "run" if version.source.policy == "external" else "init"
    to_do = (
        f"Did you mean {display(below)}?"
        if version_numbers(below)
        else f"To begin one there: {DRIVER} {how} {version.flags} --corpus-path PATH"
    )
    what = "has no version in it" if eval_set.is_dir() else "does not exist"
    raise InputError(f"--eval-set-path: {display(eval_set)} {what}. {to_do}")


def collection_folder(source: SourceSpec, corpus_path: Path) -> Path:
    """Return where a collection is evaluated by default: outside git, since its queries are somebody else's text."""
    try:
        name = slug(corpus_path.resolve().name)
    except (OSError, RuntimeError) as error:  # too long a name, links in a circle
        raise InputError(f"{printable(str(error))}: cannot be used. Give the folder of a collection.") from error
    return WORKPLACE / ".work" / source.name / (name or "collection")


def load_queries(path: Path) -> tuple[QueryRow, ...]:
    """Return the queries in file order; an InputError names duplicate ids and texts, those of all wordings compared."""
    # Ids are compared as they stand, texts without regard to case and spacing.
    rows = checked(Queries, read_yaml(held(path)), path).queries
    # A published set may ask the same twice; who writes queries should not.
    written = asked(row for row in rows if row.origin != "harvested")
    texts = [" ".join(one.text.casefold().split()) for one in written]
    for field, values in (("id", [row.id for row in rows]), ("text", texts)):
        if repeated := sorted(value for value, count in Counter(values).items() if count > 1):
            raise InputError(f"{path}: the same {field} twice: {', '.join(map(repr, repeated))}.")
    return tuple(rows)


def load_corpus(path: Path) -> tuple[CorpusHeader, tuple[CorpusRow, ...]]:
    """Return the manifest's header and rows, documents in id order; an InputError names the line that is wrong."""
    lines = list(read_jsonl(held(path)))
    if not lines:
        raise InputError(f"{path} is empty; delete it and `run` with --corpus-path to sample again.")
    header = checked(CorpusHeader, lines[0][1], f"{path}:{lines[0][0]}")
    rows = tuple(checked(CorpusRow, row, f"{path}:{number}") for number, row in lines[1:])
    # Ids ascend strictly: one comparison shows what is missing, repeated or out of order.
    if len(rows) != header.n_documents or [r.doc_id for r in rows] != sorted({r.doc_id for r in rows}):
        raise InputError(
            f"{path}: rows are missing, repeated or out of order; {header.n_documents} documents expected."
        )
    return header, rows


def corpus_bytes(header: CorpusHeader, rows: Iterable[CorpusRow]) -> bytes:
    """Return corpus.jsonl: the header, then one row per document in id order."""
    ordered = sorted(rows, key=lambda row: row.doc_id)
    return jsonl_bytes([header.model_dump(), *(row.model_dump() for row in ordered)])


def load_decision(version: Version) -> Decision:
    """Return decision.json of the version's record; IntegrityError if it is another source's or version's."""
    path = version.record / "decision.json"
    decision = _checked_file(Decision, path)
    if (decision.source, decision.version) != (version.source.name, version.number):
        raise IntegrityError(
            f"{path} decides {decision.source} v{decision.version}, and this is {version.name}. Give --eval-set-path "
            "the folder of the source's own versions, or restore the file from git or a backup."
        )
    return decision


def load_results(version: Version) -> Results:
    """Return results.json of the version's record."""
    return _checked_file(Results, version.results_path)


def load_lists(version: Version) -> RankedLists:
    """Return lists.json.bz2 of the version's record."""
    return read_lists(version.lists_path)


def load_receipt(path: Path) -> Receipt:
    """Return a receipt.json: the record's own, or one that a command line names."""
    return _checked_file(Receipt, path)


def load_cell_file(path: Path) -> CellFile:
    """Return cells/<cell>.json."""
    return _checked_file(CellFile, path)


def is_made(version: Version, cell: str, name: str) -> bool:
    """Return whether the record holds, under that name, a run of the cell for the present corpus and queries.

    IntegrityError if one of its files is gone or was edited.
    """
    path = version.cell_path(name)
    if not path.exists():
        return False
    facts = load_cell_file(path)
    inputs = {version.corpus_path: facts.corpus_sha256, version.queries_path: facts.queries_sha256}
    if any(not given.exists() or file_sha256(given) != then for given, then in inputs.items()):
        return False
    if name == NOISE_FLOOR_CELL and facts.cell != cell:
        return False  # made for another baseline, before the plan was frozen
    runs = {version.run_path(name): facts.run_sha256, version.chunk_run_path(name): facts.chunk_run_sha256}
    for run, then in runs.items():
        again = f"from git or a backup, or delete {path} to make the cell again."
        if not run.exists():
            raise IntegrityError(f"{run} is gone. Restore it {again}")
        if facts.cell != cell or file_sha256(run) != then:
            raise IntegrityError(f"{run} is not the run of {cell} that {path} should name. Restore both {again}")
    return True


def _checked_file(model: type[Model], path: Path) -> Model:
    return checked(model, read_json(held(path)), path)
