"""The looks of a version that did not end it, each kept in a file of its own and held to what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.base.canonical import file_sha256, json_bytes, read_json, sha256, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.schema import checked
from runner.eval_set.door import held
from runner.eval_set.shapes.labels import LabelPrefix
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import KeptLook, LookCell, Results
from runner.eval_set.version import Version, load_results

LOOKS = "looks"
"""In a record, the folder of its kept looks: 1.json, 2.json."""


@dataclass(frozen=True, slots=True)
class KeptLooks:
    """The looks that are over, in order; the first `vouched` of them are those that results.json names."""

    looks: Sequence[KeptLook]
    digests: Sequence[str]
    vouched: int

    @property
    def next(self) -> int:
        """The number of the look that is to be judged and scored next."""
        return len(self.looks) + 1


def look_files(record: Path) -> list[Path]:
    """The files of the record's kept looks, in order."""
    found = [path for path in (record / LOOKS).glob("*.json") if path.stem.isdecimal()]
    return sorted(found, key=lambda path: int(path.stem))


def kept_look(results: Results) -> KeptLook:
    """What is kept of the results of a look."""
    assert results.look is not None
    assert results.preregistration_sha256 is not None
    cells = [
        LookCell(
            cell=row.cell,
            gain=row.differences["ndcg@10"].mean,
            recall=row.differences["recall@10"].mean,
            p_gain=row.test.p_gain,
        )
        for row in results.cells
        if row.test is not None
    ]
    return KeptLook(
        schema_version=1,
        source=results.source,
        version=results.version,
        kind=results.kind,
        look=results.look,
        preregistration_sha256=results.preregistration_sha256,
        labels=LabelPrefix(lines=results.labels.lines, sha256=results.labels.sha256),
        sentence=results.outcome.sentence,
        cells=cells,
        results_sha256=sha256(json_bytes(results.model_dump())),
    )


def keep_look(version: Version, results: Results) -> None:
    """Write what is kept of a look that is over, before its results.json: without it, that one is not of this look."""
    kept = kept_look(results)
    path = version.record / LOOKS / f"{kept.look.number}.json"
    try:
        write_atomic(path, json_bytes(kept.model_dump()), new=True)
    except FileExistsError as error:
        raise IntegrityError(f"{path} exists already; a look is held once.") from error


def kept_looks(version: Version, plan: Plan) -> KeptLooks:
    """The record's kept looks, held to plan, preregistration, one another and results.json.

    An IntegrityError if one is missing, repeated, altered, or of another plan or version.
    """
    files = look_files(version.record)
    looks: list[KeptLook] = []
    digests: list[str] = []
    for path in files:
        try:
            look = checked(KeptLook, read_json(held(path)), path)
        except InputError as error:
            raise _broken(path, f"is damaged ({error})") from error
        if problem := _problem(version, plan, look, path, digests):
            raise _broken(path, problem)
        looks.append(look)
        digests.append(file_sha256(path))
    named = _named(version) if plan.looks else []
    for place, expected in enumerate(named):
        path = version.record / LOOKS / f"{place + 1}.json"
        if place >= len(digests):
            raise _broken(path, f"is missing, though {version.results_path} is of that look or a later one")
        if digests[place] != expected:
            raise _broken(path, f"is not the one that {version.results_path} names")
    return KeptLooks(looks, digests, len(named))


def _problem(version: Version, plan: Plan, look: KeptLook, path: Path, before: Sequence[str]) -> str:
    """What makes a file no kept look of this version, "" if nothing does."""
    number = len(before) + 1
    if path.name != f"{number}.json":
        return f"is there, and {number}.json is not"
    if number >= len(plan.looks):
        return f"is no look that another one follows: {version.plan_path(rehearsal=version.rehearsal)} has {plan.looks}"
    planned = (number, len(plan.looks), plan.looks[number - 1], plan.looks[-1])
    if (look.look.number, look.look.of, look.look.queries, look.look.planned) != planned:
        return f"is of another look than the plan's {number} of {len(plan.looks)}, after {planned[2]} queries"
    if list(before) != look.look.kept or look.look.ended != "next look":
        return "does not follow the looks before it"
    if (look.source, look.version) != (version.source.name, version.number):
        return f"is of {look.source} v{look.version}"
    if {row.cell for row in look.cells} != set(plan.cells) - {plan.baseline}:
        return "is of other cells than the plan's: none is added once a look is over"
    if look.preregistration_sha256 != file_sha256(version.preregistration_path):
        return "is of another preregistration"
    lines = version.labels_path.read_bytes().splitlines(keepends=True) if version.labels_path.exists() else []
    if sha256(b"".join(lines[: look.labels.lines])) != look.labels.sha256:
        return f"was scored with other labels than {version.labels_path} begins with"
    return ""


def _named(version: Version) -> list[str]:
    """The digests of kept looks that results.json vouches for: those before its look, and its own if one follows."""
    if not version.results_path.exists():
        return []
    results = load_results(version)
    if results.look is None:
        return []
    own = [sha256(json_bytes(kept_look(results).model_dump()))] if results.look.ended == "next look" else []
    return [*results.look.kept, *own]


def _broken(path: Path, problem: str) -> IntegrityError:
    return IntegrityError(
        f"{path} {problem}. A look is held once, in its turn, and what it found is kept: restore it from git, or open "
        "the next version."
    )
