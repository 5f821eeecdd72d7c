"""What runs on Modal: a class that embeds with any catalogued encoder, and a function that fetches weights.

A container sees this package, as it was uploaded, and the image's pinned libraries. The class has no network, so a
revision that was not fetched fails. GPU, cores and number of containers come from the caller (`with_options`): an
option set here could not be unset for a run without a GPU.
"""

import json
import os
import sys
from functools import partial
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import modal
import modal.experimental
import numpy as np

from runner.base.canonical import file_sha256
from runner.base.errors import BackendError, EvalError
from runner.base.records import PromptSide
from runner.embed.cost.prices import CONTAINERS, CORES
from runner.embed.encoder import Batch
from runner.embed.local_encoder import Dtype, TransformerEncoder, encoder_class
from runner.embed.modal.pins import image_pins
from runner.embed.probe import probe
from runner.embed.weights import LIBRARIES, WEIGHTS, download_mark, downloaded
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec

WEIGHTS_MOUNT = "/weights"
WEIGHTS_VOLUME = "per-source-eval-weights"
UV_VERSION = "0.9.2"
"""The program that installs the packages while the image is built: none of ours, so pyproject.toml has no pin of it."""

SCALEDOWN_SECONDS = 60


def _requirements() -> list[str]:
    """Return the image's pins; none in a container, which is made from it already."""
    if not modal.is_local():
        return []
    return [f"{name}=={version}" for name, version in image_pins().items()]


app = modal.App("per-source-eval", include_source=False)
image = (
    modal.Image.debian_slim(python_version=f"{sys.version_info.major}.{sys.version_info.minor}")
    .uv_pip_install(*_requirements(), uv_version=UV_VERSION)
    .env(
        {
            "HF_HOME": WEIGHTS_MOUNT,
            "HF_HUB_OFFLINE": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
    )
    .add_local_python_source("runner", "samplers")
)
volume = modal.Volume.from_name(WEIGHTS_VOLUME, create_if_missing=True)
_hub_access = modal.Secret.from_dict({"HF_HUB_OFFLINE": "0", "HF_TOKEN": os.environ.get("HF_TOKEN") or None})


@app.function(
    image=image,
    secrets=[_hub_access],
    volumes={WEIGHTS_MOUNT: volume},
    cpu=(CORES["weights"], CORES["weights"]),  # no more can be billed than is metered
    timeout=3600,
    max_containers=4,
    retries=modal.Retries(max_retries=2, initial_delay=1.0, backoff_coefficient=2.0),
)
def fetch(encoder: str, revision: str, own: str = "") -> dict[str, str]:
    """Return what was downloaded into the Volume. The mark is written after the files are committed, never before."""
    spec = _spec(encoder, revision, own)
    folder = downloaded(spec, offline=False)
    fetched = {"model": spec.model, "revision": spec.revision, "weights_sha256": file_sha256(folder / WEIGHTS)}
    volume.commit()
    (_weights_home() / download_mark(spec)).write_text(json.dumps(fetched))
    volume.commit()
    return fetched


@app.cls(
    image=image,
    volumes={WEIGHTS_MOUNT: volume.with_mount_options(read_only=True)},
    block_network=True,
    memory=4096,
    scaledown_window=SCALEDOWN_SECONDS,
    max_containers=CONTAINERS,
    timeout=600,
    startup_timeout=900,
    retries=modal.Retries(max_retries=3, initial_delay=1.0, backoff_coefficient=2.0),
)
class Embedder:
    """One encoder at one revision; `device` is "cuda" or "cpu", and never the one in place of the other.

    `own` is the row of a plan's own encoder as JSON, "" for one of the catalog.
    """

    encoder: str = modal.parameter()
    revision: str = modal.parameter()
    device: str = modal.parameter()
    dtype: str = modal.parameter()
    own: str = modal.parameter(default="")

    @modal.enter()
    def load(self) -> None:
        """Load and probe the model; an error that a retry would not mend is kept and answered to every batch."""
        self.refusal = ""
        # Raised here it would start container after container; as an answer it ends the run at the first batch.
        try:
            dtype = cast(Dtype, self.dtype)
            self.model, self.facts = loaded(self.encoder, self.revision, self.device, dtype, self.own)
        except EvalError as error:
            self.refusal = str(error)

    @modal.method()
    def embed(self, batch_id: str, side: str, texts: list[str], forwards: list[int]) -> dict[str, Any]:
        """Return the rows as bytes with their digest; "refusal" or "error" in their place.

        A RuntimeError of torch may be this machine's fault: it leaves the method, and Modal tries again, in another
        container if this one's GPU is lost.
        """
        answer = {"batch_id": batch_id}
        if self.refusal:
            return {**answer, "refusal": self.refusal}
        try:
            return {
                **answer,
                **embedded(self.model, batch_id, cast(PromptSide, side), texts, forwards),
                "facts": self.facts,
            }
        except (RuntimeError, MemoryError) as error:
            if self.device == "cuda":
                recover_or_retire(error)
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, it is about this batch and carries its id
            return {**answer, "error": f"{type(error).__name__}: {error}"}


def recover_or_retire(error: Exception) -> None:
    """Free the GPU's memory if it ran out; after any other failure on a GPU take no more inputs.

    A CUDA context that is broken once fails everything from then on, as fast as inputs come.
    """
    import torch

    if isinstance(error, torch.cuda.OutOfMemoryError):
        torch.cuda.empty_cache()
    else:
        modal.experimental.stop_fetching_inputs()


def _spec(encoder: str, revision: str, own: str) -> EncoderSpec:
    spec = EncoderSpec.model_validate(json.loads(own)) if own else catalog.encoder(encoder)
    if spec.revision != revision:
        raise BackendError(f"{encoder} is catalogued at revision {spec.revision}; {revision} was asked for.")
    return spec


def loaded(
    encoder: str, revision: str, device: str, dtype: Dtype, own: str = ""
) -> tuple[TransformerEncoder, dict[str, str]]:
    """Return the probed model and where it runs; a BackendError if it is not what was asked for."""
    import torch

    spec = _spec(encoder, revision, own)
    if device == "cuda" and not torch.cuda.is_available():
        raise BackendError(f"{encoder} was to run on a GPU, and the container has none. Nothing runs on a CPU instead.")
    mark = _weights_home() / download_mark(spec)
    if not mark.is_file():
        raise BackendError(f"{encoder}: the weights at revision {revision} are not in Modal's Volume. Run again.")
    # The mark says that a download was finished; the files themselves are checked when they are loaded.
    model = encoder_class(encoder)(
        spec, device="cuda" if device == "cuda" else "cpu", dtype=dtype, find=partial(downloaded, offline=True)
    )
    probe(model)
    facts = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "dtype": model.dtype,
        "weights_sha256": str(json.loads(mark.read_text())["weights_sha256"]),
        **{library: metadata.version(library) for library in LIBRARIES},
    }
    return model, facts


def embedded(
    model: TransformerEncoder, batch_id: str, side: PromptSide, texts: list[str], forwards: list[int]
) -> dict[str, Any]:
    """Return the rows of one batch as bytes, with what the driver checks them against."""
    batch = Batch(side, tuple(texts), tuple(forwards))
    if batch.batch_id != batch_id:
        raise BackendError("the texts that arrived are not those that were sent")
    counts = model.token_counts(texts, side)
    rows = np.concatenate([model.encode(some, side) for some in batch.forward_texts()]).astype("<f4")
    data = rows.tobytes()
    return {
        "n": rows.shape[0],
        "dim": rows.shape[1],
        "dtype": "<f4",
        "data": data,
        "sha256": sha256(data).hexdigest(),
        "tokens": counts.astype("<i4").tobytes(),
    }


def _weights_home() -> Path:
    return Path(os.environ["HF_HOME"])
