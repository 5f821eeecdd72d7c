"""An end to every exchange at its deadline, wherever it stands: no timeout of a single read can promise that."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

from runner.base.errors import EvalError
from runner.base.http_client import Busy, Unusable


class Watchdog:
    """Knows the connections of one client, which makes one request at a time, and shuts them down when time is up.

    A read that waits on a connection ends at once when it is shut down, be it for a header or for a body, and a
    connection that is opened later is shut down as it opens. Resolving a name and connecting end by themselves.
    """

    def __init__(self) -> None:
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._lock = threading.Lock()
        self._is_over = False

    def saw(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember every connection opened, from what httpx tells its `trace` extension."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            with self._lock:
                self._sockets.add(info["return_value"].get_extra_info("socket"))
                if self._is_over:
                    self._shut_down()

    @contextmanager
    def until(self, seconds: float) -> Iterator[None]:
        """Let the block use the network for so long; raise a last Busy if it took longer, whatever came of it."""
        late = Busy("no whole answer in the time that one may take", tries=1)
        self._is_over = False
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (Unusable, EvalError) as error:
            if self._is_over:
                raise late from error
            raise
        finally:
            timer.cancel()
            timer.join()  # else one that has just rung would shut down the next exchange
        if self._is_over:
            raise late

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            self._shut_down()

    def _shut_down(self) -> None:
        for opened in self._sockets:
            with suppress(OSError):  # it may be closed by now
                # Of the base class: a TLS socket's own would take the cipher away from under a read in another thread.
                socket.socket.shutdown(opened, socket.SHUT_RDWR)
