"""A folder of source files as documents, with an account of what could not be read."""

from dataclasses import dataclass
from pathlib import Path

from runner.errors import DocumentError, InputError
from runner.records import Document
from samplers.registry import MAX_BYTES, READERS, Reader

QUARANTINE_LIMIT = 0.02
"""Share of unreadable files above which a run stops: more than that is no accident, and biases the sample."""

N_NAMED = 10


@dataclass(frozen=True)
class Reading:
    """What a folder held."""

    documents: tuple[Document, ...]
    """Sorted by doc_id, ids unique."""
    quarantined: tuple[tuple[str, str], ...]
    """Path relative to the folder and reason of each file that could not be read, sorted."""
    n_duplicates: int
    """Documents left out because an equal one with the same id had been read."""
    n_ignored: int
    """Files that are not .xml."""


def read_folder(folder: Path, reader_name: str) -> Reading:
    """Every document of the .xml files below a folder, read in the order of their paths.

    Two documents of one id: an equal one is dropped, a different one is quarantined, so the first path wins.
    InputError for a missing folder, one without .xml files, and more than QUARANTINE_LIMIT unreadable files.
    """
    reader = READERS[reader_name]
    paths, n_ignored = _xml_files(folder)
    documents: dict[str, tuple[Document, str]] = {}
    quarantined = []
    n_duplicates = 0
    for path in paths:
        place = path.relative_to(folder).as_posix()
        try:
            for document in _read(path, place, reader):
                known, first_place = documents.setdefault(document.doc_id, (document, place))
                if known is document:
                    continue
                if known.sha256 != document.sha256:
                    raise DocumentError(place, f"{document.doc_id} with other text was read from {first_place}")
                n_duplicates += 1
        except DocumentError as error:
            quarantined.append((place, error.reason))
    _stop_if_many(quarantined, len(paths), folder)
    by_id = tuple(documents[doc_id][0] for doc_id in sorted(documents))
    return Reading(by_id, tuple(quarantined), n_duplicates, n_ignored)


def _xml_files(folder: Path) -> tuple[list[Path], int]:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder. Give --corpus-path the folder that holds the source's .xml files.")
    files = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.as_posix())
    paths = [path for path in files if path.suffix.lower() == ".xml"]
    if not paths:
        raise InputError(f"{folder} holds no .xml file ({len(files)} others). Give --corpus-path another folder.")
    return paths, len(files) - len(paths)


def _read(path: Path, place: str, reader: Reader) -> list[Document]:
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise DocumentError(place, f"{size / 1e6:.0f} MB, more than the limit of {MAX_BYTES / 1e6:.0f} MB")
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(place, f"cannot be opened ({error.strerror})") from error
    return reader(data, place)


def _stop_if_many(quarantined: list[tuple[str, str]], n_files: int, folder: Path) -> None:
    if len(quarantined) <= QUARANTINE_LIMIT * n_files:
        return
    named = "\n".join(f"  - {place}: {reason}" for place, reason in quarantined[:N_NAMED])
    more = f"\n  and {len(quarantined) - N_NAMED} more" if len(quarantined) > N_NAMED else ""
    raise InputError(
        f"{len(quarantined)} of {n_files} files in {folder} cannot be read, more than {QUARANTINE_LIMIT:.0%}:\n"
        f"{named}{more}\nRepair or remove them and run the command again."
    )
