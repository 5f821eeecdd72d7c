"""What goes wrong, said beforehand: each call plants a fault that strikes the next `times` occasions, None for all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grpclib import GRPCError, Status

from tests.support.modal_server.records import Input

When = Callable[[Input], bool]


@dataclass
class _Planted:
    kind: str
    rpc: str = ""
    times: int | None = 1
    when: When | None = None
    value: Any = None
    has_struck: bool = False


class Faults:
    """Faults of one server. Every method may be called before the client starts or while it runs."""

    def __init__(self) -> None:
        self._planted: list[_Planted] = []
        self.token_refused = False

    def unavailable(self, rpc: str, times: int | None = 1) -> None:
        """UNAVAILABLE before any work."""
        self.error(rpc, Status.UNAVAILABLE, "injected", times)

    def resource_exhausted(self, rpc: str, times: int | None = None) -> None:
        """RESOURCE_EXHAUSTED before any work."""
        self.error(rpc, Status.RESOURCE_EXHAUSTED, "injected: a limit of the workspace is reached", times)

    def error(self, rpc: str, status: Status, message: str = "injected", times: int | None = 1) -> None:
        """Any status before any work."""
        self._planted.append(_Planted("error", rpc, times, value=(status, message)))

    def bad_token(self) -> None:
        """Every client's token is refused."""
        self.token_refused = True

    def change_output(self, change: Callable[[Any], Any], when: When | None = None, times: int | None = 1) -> None:
        """What a method returned is replaced by `change` of it."""
        self._planted.append(_Planted("change_output", times=times, when=when, value=change))

    def fail_input(self, when: When | None, times: int | None = 1, text: str = "RuntimeError('injected')") -> None:
        """The method raises, as far as the client can tell."""
        self._planted.append(_Planted("fail_input", times=times, when=when, value=text))

    def kill_container(self, when: When | None = None, times: int | None = 1) -> None:
        """The container that is handed the input dies by SIGKILL with it."""
        self._planted.append(_Planted("kill_container", times=times, when=when))

    def fail_entry(self, times: int | None = 1, text: str | Exception = "injected: entry failed") -> None:
        """A container ends with RuntimeError(text), or with the error given, in place of becoming ready."""
        self._planted.append(_Planted("fail_entry", times=times, value=text))

    def strike(self, kind: str, subject: Input | None = None, rpc: str = "") -> Any:
        """The value of a planted fault that strikes here, True where it has none, or None; one occasion is used up."""
        for planted in self._planted:
            if planted.kind != kind or planted.rpc != rpc or planted.times == 0:
                continue
            if planted.when and subject and not planted.when(subject):
                continue
            planted.has_struck = True
            if planted.times is not None:
                planted.times -= 1
            return True if planted.value is None else planted.value
        return None

    def left(self) -> list[str]:
        """Kinds of faults that were planted and have not struck, or not as often as they should."""
        return [planted.kind for planted in self._planted if planted.times or not planted.has_struck]

    def before(self, rpc: str) -> None:
        """Raises the status planted for this call."""
        if planted := self.strike("error", rpc=rpc):
            status, message = planted
            raise GRPCError(status, message)
