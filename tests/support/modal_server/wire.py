"""The gRPC side: every route of the client's protocol is bound; what nobody answers fails by its name."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpclib.const
import grpclib.server
from google.protobuf.message import Message
from grpclib import GRPCError, Status
from modal_proto import api_grpc, api_pb2

from tests.support.modal_server.faults import Faults

CONTAINER_HEADER = "x-stand-in-container"


@dataclass(frozen=True)
class Caller:
    """Who calls: a container by its id, or a client ("")."""

    container_id: str
    token: tuple[str, str]
    is_client: bool


Answer = Callable[..., Any]
"""(request, caller) to the reply's coroutine, or to an async iterator of replies."""


def answers(rpc: str) -> Callable[[Answer], Answer]:
    """Marks the method that answers an RPC: a coroutine function, or an async generator function for a stream."""

    def mark(method: Answer) -> Answer:
        method.rpc = rpc
        return method

    return mark


class Wire:
    """Routes of all services, with counting, tokens and faults."""

    def __init__(self, services: list[object], faults: Faults, token: tuple[str, str]) -> None:
        self.faults, self.token = faults, token
        self.calls: Counter[str] = Counter()
        self.unanswered: list[str] = []
        self._methods: dict[str, Answer] = {
            method.rpc: method
            for service in services
            for name in dir(service)
            if hasattr(method := getattr(service, name), "rpc")
        }

    def __mapping__(self) -> Mapping[str, grpclib.const.Handler]:
        """What grpclib serves."""
        routes = {}
        for path, handler in _Routes().__mapping__().items():
            rpc = path.rsplit("/", 1)[1]
            streams = handler.cardinality.server_streaming
            routes[path] = handler._replace(func=partial(self._stream if streams else self._unary, rpc))
        return routes

    async def _unary(self, rpc: str, stream: grpclib.server.Stream[Message, Message]) -> None:
        request, caller = await stream.recv_message(), self._caller(stream)
        method = self._admitted(rpc, caller)
        await stream.send_message(await method(request, caller))

    async def _stream(self, rpc: str, stream: grpclib.server.Stream[Message, Message]) -> None:
        request, caller = await stream.recv_message(), self._caller(stream)
        method = self._admitted(rpc, caller)
        async for reply in method(request, caller):
            await stream.send_message(reply)

    def _admitted(self, rpc: str, caller: Caller) -> Answer:
        self.calls[rpc] += 1
        if rpc not in self._methods:
            self.unanswered.append(rpc)
            raise GRPCError(Status.UNIMPLEMENTED, f"the stand-in does not answer {rpc}")
        if caller.is_client and (self.faults.token_refused or caller.token != self.token):
            raise GRPCError(Status.UNAUTHENTICATED, "Token validation failed.")
        self.faults.before(rpc)
        return self._methods[rpc]

    @staticmethod
    def _caller(stream: grpclib.server.Stream[Message, Message]) -> Caller:
        headers = stream.metadata or {}
        token = str(headers.get("x-modal-token-id", "")), str(headers.get("x-modal-token-secret", ""))
        kind = str(headers.get("x-modal-client-type", ""))
        return Caller(str(headers.get(CONTAINER_HEADER, "")), token, kind == str(api_pb2.CLIENT_TYPE_CLIENT))


class _Routes(api_grpc.ModalClientBase):
    """Every route, none answered."""


_Routes.__abstractmethods__ = frozenset()
