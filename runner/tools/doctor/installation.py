"""What the doctor asks of a machine: Python, pinned packages, writable folders, the store, offline tokens, the encoder.

What a check examines is imported in the check, so that a part that is missing or broken fails it and not the doctor.
"""

import logging
import platform
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from runner.base.errors import NegativeVerdict

ENCODER = "minilm-l6-v2"
_TEXT = "The fee is $1,250 a berth – section 78dd–1 applies to každý harbor."
_TEXT_TOKENS = 24
"""Of _TEXT, in cl100k_base."""


class Skipped(Exception):
    """A check that was not made, and why."""


def python_version(checkout: Path) -> str:
    """The version, where it is one that pyproject.toml asks for."""
    wanted = _project(checkout)["requires-python"]
    least = tuple(int(part) for part in re.findall(r"\d+", wanted))
    found = platform.python_version()
    if sys.version_info[: len(least)] < least:
        raise NegativeVerdict(f"Python {found}; {wanted} is needed")
    return f"Python {found} ({wanted})"


def packages(checkout: Path) -> str:
    """How many packages are installed as pinned, and which extras are not there."""
    project = _project(checkout)
    wrong, missing = _compared(project["dependencies"])
    wrong += [f"{name} is not installed" for name in missing]
    notes = []
    for extra, pins in project["optional-dependencies"].items():
        differing, absent = _compared(pins)
        wrong += differing
        if absent:
            notes.append(f"extra {extra} lacks {', '.join(absent)}")
    if wrong:
        raise NegativeVerdict("; ".join(wrong))
    return "; ".join([f"{len(project['dependencies'])} packages as pinned", *(notes or ["every extra too"])])


def writable_folders(folders: Sequence[Path]) -> str:
    """The free space below folders in which a file can be written; a folder to be made is tried where it would lie."""
    for folder in folders:
        place = next(path for path in (folder, *folder.parents) if path.exists())
        try:
            with tempfile.TemporaryDirectory(prefix=".tmp-", dir=place) as scratch:
                (Path(scratch) / "file").write_bytes(b"written")
        except OSError as error:
            raise NegativeVerdict(f"{place} cannot be written ({error.strerror})") from error
    return f"{len(folders)} folders, {shutil.disk_usage(place).free / 1e9:.1f} GB free"


def store_round_trip() -> str:
    """That an artefact is built once, found again, and built anew after its bytes changed."""
    from runner.base.store import Store

    built = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "rows.txt").write_text("one\ntwo\n", encoding="utf-8")

    with tempfile.TemporaryDirectory() as scratch, _silent("runner.base.store"):
        store = Store(Path(scratch))
        for _ in range(2):
            artefact = store.ensure("doctor", {"rows": 2}, build) / "rows.txt"
        if len(built) != 1:
            raise NegativeVerdict(f"an artefact that was asked for twice was built {len(built)} times")
        artefact.write_text("one\ntwx\n", encoding="utf-8")
        again = store.ensure("doctor", {"rows": 2}, build) / "rows.txt"
        if again.read_text(encoding="utf-8") != "one\ntwo\n":
            raise NegativeVerdict("a changed artefact was taken for the one that was written")
    return "built once, found again, a changed byte noticed and repaired"


def offline_tokens() -> str:
    """That the packaged table of cl100k_base is the pinned one, and counts a known text as it should."""
    from chunkers.tokens import ranks_path, read_ranks, tokenize

    ranks = read_ranks(ranks_path())
    counted = tokenize(_TEXT).n_tokens
    if counted != _TEXT_TOKENS:
        raise NegativeVerdict(f"a text of {_TEXT_TOKENS} tokens was counted as {counted}")
    return f"{len(ranks):,} tokens from the package, digest as pinned; a text of {counted} counted as {counted}"


def local_encoder(checkout: Path) -> str:
    """The margin by which the packaged encoder passes its probe."""
    absent = _compared(_project(checkout)["optional-dependencies"]["local"])[1]
    if absent:
        raise Skipped(f"the extra local is not installed whole ({', '.join(absent)}); BM25 cells work without it")
    from runner.embed.local_encoder import encoder_for
    from runner.embed.probe import probe

    figures = probe(encoder_for(ENCODER))
    return (
        f"{ENCODER}, {figures['dim']} dimensions: paraphrases at {figures['paraphrase_min']:.2f} or more, strangers at "
        f"{figures['stranger_max']:.2f} or less; reads {figures['truncates_at']} tokens and no more"
    )


def _project(checkout: Path) -> Mapping[str, Any]:
    path = checkout / "pyproject.toml"
    try:
        project: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    except (OSError, ValueError, KeyError) as error:
        raise NegativeVerdict(f"{path} cannot be read ({type(error).__name__}: {error})") from error
    return project


def _compared(pins: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is installed in another version, in words, and the names of what is not installed.

    A build of the pinned version ("2.13.0+cpu") is that version, as for pip.
    """
    wrong, missing = [], []
    for pin in pins:
        name, _, wanted = pin.partition("==")
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if wanted not in (found, found.partition("+")[0]):
            wrong.append(f"{name} is {found}, pinned {wanted}")
    return wrong, missing


@contextmanager
def _silent(logger: str) -> Iterator[None]:
    """No message of a logger, whose warning of a planted defect would look like one of this machine."""
    log = logging.getLogger(logger)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
