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
    times: int | None
    when: When | None = None
    value: Any = True
    has_struck: bool = False


class Faults:
    """Faults of one server. Every method may be called before the client starts or while it runs."""

    def __init__(self) -> None:
        self._planted: list[_Planted] = []
        self.token_refused = False

    def error(self, rpc: str, status: Status, times: int | None = None) -> None:
        """Have a status answered before any work."""
        self._planted.append(_Planted(rpc, times, value=status))

    def bad_token(self) -> None:
        """Refuse every client's token."""
        self.token_refused = True

    def change_output(self, change: Callable[[Any], Any], when: When | None = None, times: int | None = 1) -> None:
        """Put `change` of what a method returned in its place."""
        self._planted.append(_Planted("change_output", times, when, change))

    def fail_input(self, when: When | None, times: int | None = 1, text: str = "RuntimeError('injected')") -> None:
        """Have the method raise, as far as the client can tell."""
        self._planted.append(_Planted("fail_input", times, when, text))

    def kill_container(self, when: When | None = None, times: int | None = 1) -> None:
        """Have the container that is handed the input die with it."""
        self._planted.append(_Planted("kill_container", times, when))

    def fail_entry(self, times: int | None = 1, text: str | Exception = "injected: entry failed") -> None:
        """Have a container end with RuntimeError(text), or with the error given, in place of becoming ready."""
        error = text if isinstance(text, Exception) else RuntimeError(text)
        self._planted.append(_Planted("fail_entry", times, value=error))

    def strike(self, kind: str, subject: Input | None = None) -> Any:
        """Return the value of a planted fault that strikes here, or None; one occasion is used up."""
        for planted in self._planted:
            is_meant = planted.kind == kind and planted.times != 0
            if is_meant and not (planted.when and subject and not planted.when(subject)):
                planted.has_struck = True
                planted.times = planted.times and planted.times - 1
                return planted.value
        return None

    def left(self) -> list[str]:
        """Return kinds of faults that were planted and have not struck, or not as often as they should."""
        return [planted.kind for planted in self._planted if planted.times or not planted.has_struck]

    def before(self, rpc: str) -> None:
        """Raise the status planted for this call."""
        if status := self.strike(rpc):
            raise GRPCError(status, "injected")
