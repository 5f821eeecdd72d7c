"""The versions of one source: which exist, which each was opened from, which were given up."""

from dataclasses import replace

from runner.base.canonical import read_json
from runner.base.errors import IntegrityError
from runner.base.schema import Model, checked
from runner.eval_set.door import held
from runner.eval_set.shapes.versions import Abandoned, Opened
from runner.eval_set.version import Version, is_abandoned, numbered, version_numbers


def versions_of(version: Version) -> list[Version]:
    """Return every version on disk of the same source in the same folder, by number, given-up ones too."""
    return [numbered(version, number) for number in version_numbers(version.folder.parent)]


def with_results(version: Version) -> list[Version]:
    """Return either view of each earlier version, if it has results: of those that were given up too."""
    before = [each for each in versions_of(version) if each.number < version.number]
    views = [replace(each, rehearsal=rehearsal) for each in before for rehearsal in (False, True)]
    return [view for view in views if view.results_path.exists()]


def opened(version: Version) -> Opened | None:
    """Return what opened.json says; None for a version that was not opened from another."""
    return _read(Opened, version, "opened.json")


def abandoned(version: Version) -> Abandoned | None:
    """Return what abandoned.json says; None for a version that was not given up."""
    return _read(Abandoned, version, "abandoned.json") if is_abandoned(version.folder) else None


def earlier(version: Version) -> Version | None:
    """Return the version that this one was opened from, in the same view; None if there is none.

    An IntegrityError if opened.json names a version that is not there.
    """
    known = opened(version)
    if known is None:
        return None
    if known.previous not in version_numbers(version.folder.parent):
        raise IntegrityError(
            f"{version.folder / 'opened.json'} says that {version.number_name} was opened from v{known.previous}, "
            f"and {version.folder.with_name(f'v{known.previous}')} is no version. Restore it from git or a backup."
        )
    return numbered(version, known.previous)


def _read(model: type[Model], version: Version, name: str) -> Model | None:
    path = version.folder / name
    if not path.exists():
        return None
    # A file copied from another version would otherwise speak for this one.
    record = checked(model, read_json(held(path)), path)
    named = (getattr(record, "source", ""), getattr(record, "version", 0))
    if named != (version.source.name, version.number):
        raise IntegrityError(
            f"{path} is of {named[0]} v{named[1]}, and this is {version.number_name}. Restore the file from "
            "git or a backup."
        )
    return record
