"""Where an encoder's files are, whether they are the catalogued ones, and its tokenizer, which needs no torch.

A model with code of its own runs the pinned code only. Passing `code_revision` on does not hold: sentence-transformers
6.2.0 drops it, and transformers runs the main branch. A folder with model and code needs neither.
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from runner.base.canonical import digest, file_sha256
from runner.base.errors import BackendError
from runner.eval_set.catalog import EncoderSpec

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MODELS = Path(__file__).resolve().parents[2] / ".models"
"""Weights that `python -m runner.embed.packaged_weights` put into the checkout, one folder per encoder."""

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
_NEEDED = ("config.json", "modules.json", TOKENIZER, WEIGHTS)
_OTHER_FORMATS = ["*.bin", "*.h5", "*.msgpack", "*.onnx", "*.ot", "*.xml", "onnx/*", "openvino/*"]
_CODE = ["*.py", "*.json"]
_HUB_SECONDS = 10
_INSTALL = {"mpnet-base-v2": "`make mpnet` installs it from the package index."}


def verified_folder(spec: EncoderSpec) -> Path:
    """The folder of the encoder's files: from its package, the checkout's `.models`, or the hub, in this order.

    A BackendError if the weights are not the catalogued ones or cannot be had.
    """
    _refuse_unpinned_code(spec)
    folder = _installed_folder(spec) or _from_hub(spec, _files_of(spec), _NEEDED)
    _check_weights(spec, folder)
    return folder


def tokenizer_folder(spec: EncoderSpec) -> Path:
    """A folder with the encoder's tokenizer.json, fetched without weights; a BackendError if it cannot be had."""
    if (installed := _installed_folder(spec)) is not None:
        return installed

    def file(*, local_files_only: bool) -> Path:
        from huggingface_hub import hf_hub_download

        path = hf_hub_download(spec.hub_id, TOKENIZER, revision=spec.revision, local_files_only=local_files_only)
        return Path(path).parent

    return _from_hub(spec, file, (TOKENIZER,))


def download(spec: EncoderSpec) -> dict[str, str]:
    """Fill the hub's cache with the encoder's files and any pinned code; returns what was fetched.

    "weights_sha256" is that of the file fetched; a BackendError if it is not the catalogued one.
    """
    _refuse_unpinned_code(spec)
    folder = _files_of(spec)(local_files_only=False)
    if spec.trust_remote_code:
        _code_of(spec)(local_files_only=False)
    _check_weights(spec, folder)
    return {**_pinned(spec), "weights_sha256": file_sha256(folder / WEIGHTS)}


def downloaded_folder(spec: EncoderSpec) -> Path:
    """The folder that `download` filled, without asking the hub; a BackendError if the weights are wrong."""
    _refuse_unpinned_code(spec)
    folder = _files_of(spec)(local_files_only=True)
    _check_weights(spec, folder)
    return folder


def code_folder(spec: EncoderSpec) -> Path:
    """The folder of the encoder's remote code at its pinned revision: from the hub's cache, else downloaded."""
    _refuse_unpinned_code(spec)
    return _from_hub(spec, _code_of(spec), ())


def download_mark(spec: EncoderSpec) -> str:
    """The name of a file that says that `download` has finished: one for each set of files."""
    return f"complete-{digest({**_pinned(spec), 'weights_sha256': spec.weights_sha256})}.json"


def _pinned(spec: EncoderSpec) -> dict[str, str]:
    return {
        "hub_id": spec.hub_id,
        "revision": spec.revision,
        "code_hub_id": spec.code_hub_id,
        "code_revision": spec.code_revision,
    }


def is_here(spec: EncoderSpec) -> bool:
    """Whether the encoder's files are all here, in its package, the checkout or the hub's cache; not checked."""
    if spec.package:
        return find_spec(spec.package.replace("-", "_")) is not None
    if (MODELS / spec.name).is_dir():
        return True
    if find_spec("huggingface_hub") is None or _cached(_files_of(spec), _NEEDED) is None:
        return False
    return not spec.trust_remote_code or _cached(_code_of(spec), ()) is not None


class HubSilent(BackendError):
    """The model hub cannot be reached."""


def hub_has(spec: EncoderSpec) -> None:
    """Raise HubSilent if the model hub does not answer, BackendError if it has not the encoder's pinned revision."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        found = HfApi().model_info(spec.hub_id, revision=spec.revision, timeout=_HUB_SECONDS).sha
    except HfHubHTTPError as error:
        found = f"nothing ({type(error).__name__})"
        if error.response is not None and error.response.status_code >= 500:
            raise HubSilent(f"The model hub cannot be reached ({type(error).__name__}).") from error
    except Exception as error:
        raise HubSilent(f"The model hub cannot be reached ({type(error).__name__}).") from error
    if found != spec.revision:
        raise BackendError(
            f"{spec.name}: of {spec.hub_id} the model hub has {found}, where the catalogue pins {spec.revision}."
        )


def _check_weights(spec: EncoderSpec, folder: Path) -> None:
    path = folder / WEIGHTS
    if not path.is_file():
        raise BackendError(f"{spec.name}: {path} is missing. Install the weights again.")
    if spec.weights_sha256 and (found := file_sha256(path)) != spec.weights_sha256:
        raise BackendError(
            f"{spec.name}: {path} is not the catalogued model: sha256 {found}, expected {spec.weights_sha256}. "
            "Install the weights again; vectors of unknown weights are never used."
        )


def _refuse_unpinned_code(spec: EncoderSpec) -> None:
    if spec.trust_remote_code and not (spec.code_hub_id and spec.code_revision):
        raise BackendError(
            f"{spec.name} runs code from the model hub, and runner/eval_set/catalog.py pins no code_revision and "
            "code_hub_id for it. Pin the repository and the 40-hex revision of that code there, or embed with another "
            "encoder."
        )


def _installed_folder(spec: EncoderSpec) -> Path | None:
    """The encoder's package or its folder in the checkout; None if neither carries it."""
    if not spec.package:
        return MODELS / spec.name if (MODELS / spec.name).is_dir() else None
    try:
        package = import_module(spec.package.replace("-", "_"))
    except ImportError as error:
        raise BackendError(
            f"{spec.name} needs the package {spec.package}. Run `make setup`, or pip install -e '.[local]'."
        ) from error
    return Path(package.get_model_path())


class _Get(Protocol):
    """A folder of the hub's files; a LocalEntryNotFoundError if only the cache is asked and has none."""

    def __call__(self, *, local_files_only: bool) -> Path: ...


def _files_of(spec: EncoderSpec) -> _Get:
    return _snapshot(spec.hub_id, spec.revision, ignore=_OTHER_FORMATS)


def _code_of(spec: EncoderSpec) -> _Get:
    return _snapshot(spec.code_hub_id, spec.code_revision, allow=_CODE)


def _snapshot(hub_id: str, revision: str, *, allow: list[str] | None = None, ignore: list[str] | None = None) -> _Get:
    def get(*, local_files_only: bool) -> Path:
        from huggingface_hub import snapshot_download

        path = snapshot_download(
            hub_id, revision=revision, allow_patterns=allow, ignore_patterns=ignore, local_files_only=local_files_only
        )
        return Path(path)

    return get


def _cached(get: _Get, needed: tuple[str, ...]) -> Path | None:
    """The folder that `get` finds in the hub's cache if it has all files needed; the hub is not asked."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when the library is imported
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = get(local_files_only=True)
    except LocalEntryNotFoundError:
        return None  # never downloaded on this machine
    return folder if all((folder / name).is_file() for name in needed) else None


def _from_hub(spec: EncoderSpec, get: _Get, needed: tuple[str, ...]) -> Path:
    """The folder that `get` finds in the hub's cache with all files needed, else what it downloads. No retries."""
    if (folder := _cached(get, needed)) is not None:
        return folder
    try:
        hub_has(spec)
        return get(local_files_only=False)
    except Exception as error:
        install = _INSTALL.get(spec.name, "No package carries its weights.")
        raise BackendError(
            f"{spec.name} ({spec.hub_id} at revision {spec.revision}) is not on this machine and the model hub "
            f"cannot be reached ({type(error.__cause__ or error).__name__}). {install} Run again where the hub can be "
            "reached: cells that are finished are kept. To rehearse with packaged encoders, add --rehearse. Nothing "
            "else is embedded in its place."
        ) from error


_TOKENIZED_AT_ONCE = 256
"""An encoding holds far more than the ids of its text."""


def tokenizer(folder: Path) -> "Tokenizer":
    """The tokenizer of a folder with a tokenizer.json; it neither truncates nor pads."""
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(folder / TOKENIZER))
    # MiniLM's file carries truncation at 128 and padding, which would hide what is lost.
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def encodings(loaded: "Tokenizer", texts: Sequence[str], *, special: bool = True) -> "Iterator[Encoding]":
    """One encoding a text, in order and without offsets; `special` adds the tokens that open and close a text."""
    for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
        yield from loaded.encode_batch_fast(texts[start : start + _TOKENIZED_AT_ONCE], add_special_tokens=special)


CONFIG = "config.json"


def with_code(model: Path, code: Path, into: Path) -> Path:
    """`into`, filled with links to the model's files and copies of the code, which its config then names."""
    for path in sorted(model.rglob("*")):
        place = into / path.relative_to(model)
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path.resolve())
    for path in sorted(code.glob("*.py")):
        shutil.copyfile(path, into / path.name)
    config = json.loads((model / CONFIG).read_bytes())
    # "repository--module.Class" is fetched from the repository's main branch; "module.Class" lies beside the config.
    config["auto_map"] = {name: place.rpartition("--")[2] for name, place in config.get("auto_map", {}).items()}
    (into / CONFIG).unlink()
    (into / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    return into
