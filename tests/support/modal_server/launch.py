"""What a container process runs: modal's entry point, behind the walls that a container has and a process has not.

Run by path, without the site module: nothing of the checkout can be imported.
"""

import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate")


def walls(
    ports: set[int], *, block_network: bool, read_only: tuple[str, ...]
) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that refuses connections past the server's ports, and changes below read-only folders."""

    def below(path: object) -> bool:
        text = os.path.abspath(os.fsdecode(path)) if isinstance(path, str | bytes | os.PathLike) else ""  # noqa: PTH100
        return any(text == folder or text.startswith(f"{folder}/") for folder in read_only)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.connect" and block_network and isinstance(args[1], tuple) and args[1][1] not in ports:
            raise OSError(101, f"Network is unreachable: the function blocks it ({args[1]})")
        if read_only and (
            (event == "open" and args[2] & _WRITES and below(args[0]))
            or (event in _CHANGES and any(below(path) for path in args[:2]))
        ):
            raise OSError(30, "Read-only file system", str(args[0]))

    return hook


def main() -> None:
    """Puts up the walls and becomes modal's container runtime."""
    ports = {int(port) for port in os.environ.pop("STAND_IN_PORTS").split(",")}
    read_only = tuple(filter(None, os.environ.pop("STAND_IN_READ_ONLY", "").split(os.pathsep)))
    block = bool(os.environ.pop("STAND_IN_BLOCK_NETWORK", ""))
    sys.addaudithook(walls(ports, block_network=block, read_only=read_only))
    sys.argv = ["modal._container_entrypoint"]
    runpy.run_module("modal._container_entrypoint", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
