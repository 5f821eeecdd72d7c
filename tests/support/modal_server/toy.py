"""An app to try the stand-in with: a class with parameters, entry and methods, a function, a Volume."""

import os
import sys
from importlib import metadata
from pathlib import Path

import modal

CONTAINER_HOME = "/root"
"""Where Modal puts the files that a client adds."""

PACKAGES = tuple(f"{name}=={metadata.version(name)}" for name in ("huggingface-hub", "numpy"))
UV_VERSION = "0.9.2"

app = modal.App("toy", include_source=False)
image = (
    modal.Image.debian_slim(python_version=f"{sys.version_info.major}.{sys.version_info.minor}")
    .uv_pip_install(*PACKAGES, uv_version=UV_VERSION)
    .env({"TOY_HOME": "/data", "TOY_SAYS": "two words"})
    .add_local_file(__file__, f"{CONTAINER_HOME}/tests/support/modal_server/toy.py")
)
volume = modal.Volume.from_name("toy-data", create_if_missing=True)


@app.function(image=image, env={"TOY_SAYS": "from the function"}, volumes={"/data": volume}, timeout=60)
def fetch(name: str, text: str) -> str:
    """Writes a file into the Volume; gives back what the environment says."""
    (Path(os.environ["TOY_HOME"]) / name).write_text(text)
    volume.commit()
    return os.environ["TOY_SAYS"]


@app.function(image=image, env={"HF_HOME": "/data"}, volumes={"/data": volume}, timeout=60)
def download(hub_id: str, revision: str) -> list[str]:
    """Names of a model's files, once they are in the Volume."""
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(hub_id, revision=revision))
    volume.commit()
    return sorted(path.name for path in folder.iterdir())


@app.cls(
    image=image,
    gpu="L4",
    volumes={"/data": volume.with_mount_options(read_only=True)},
    block_network=True,
    scaledown_window=60,
    max_containers=4,
    timeout=600,
    startup_timeout=900,
    retries=modal.Retries(max_retries=3, initial_delay=1.0, backoff_coefficient=2.0),
)
class Worker:
    """Multiplies; `of` is checked on entry."""

    of: str = modal.parameter()
    times: int = modal.parameter(default=2)

    @modal.enter()
    def enter(self) -> None:
        if self.of == "nothing":
            raise RuntimeError("there is nothing to multiply")
        self.ready = True

    @modal.method()
    def run(self, number: int, payload: bytes = b"") -> dict[str, object]:
        """The product and the payload, and where it came from."""
        if number < 0:
            raise ValueError(f"negative: {number}")
        container = os.environ.get("MODAL_TASK_ID", "")
        return {"number": number, "product": number * self.times, "payload": payload, "container": container}

    @modal.method()
    def look(self, what: str) -> object:
        """What a container can see: a file of the Volume, whether a module can be imported, a write, a connection."""
        return _looks[what]()


def _read() -> str:
    return (Path(os.environ["TOY_HOME"]) / "greeting").read_text()


def _write() -> str:
    (Path(os.environ["TOY_HOME"]) / "other").write_text("written")
    return "written"


def _connect() -> str:
    import socket

    socket.create_connection(("127.0.0.1", 9), timeout=5)
    return "connected"


def _imports() -> dict[str, bool]:
    from importlib.util import find_spec

    return {name: find_spec(name) is not None for name in ("numpy", "runner", "pydantic", "pytest")}


_looks = {"read": _read, "write": _write, "connect": _connect, "imports": _imports}
