"""The gRPC side: every route of the client's protocol is bound; what nobody answers fails by its name."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import grpclib.const
import grpclib.server
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from grpclib import GRPCError, Status
from modal_proto import api_grpc, api_pb2

from tests.support.modal_server.faults import Faults

CONTAINER_HEADER = "x-stand-in-container"

ALWAYS = {
    "AppHeartbeat": Empty(),
    "ClientHello": api_pb2.ClientHelloResponse(),
    "ContainerHeartbeat": api_pb2.ContainerHeartbeatResponse(),
    "ContainerHello": Empty(),
    "WorkspaceNameLookup": api_pb2.WorkspaceNameLookupResponse(workspace_name="stand-in", username="stand-in"),
}
"""What is answered whoever asks."""

Answer = Callable[..., Any]
"""(request, container that calls, "" for a client) to the reply, or to a list of replies for a stream."""


def answers(rpc: str) -> Callable[[Answer], Answer]:
    """Mark the method, a coroutine function or a plain one, that answers an RPC."""

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
        methods = [getattr(service, name) for service in services for name in dir(service)]
        self._methods: dict[str, Answer] = {rpc: partial(_always, reply) for rpc, reply in ALWAYS.items()}
        self._methods |= {method.rpc: method for method in methods if hasattr(method, "rpc")}

    def __mapping__(self) -> Mapping[str, grpclib.const.Handler]:
        """Return what grpclib serves."""
        return {
            path: handler._replace(func=partial(self._answer, path.rsplit("/", 1)[1]))
            for path, handler in _Routes().__mapping__().items()
        }

    async def _answer(self, rpc: str, stream: grpclib.server.Stream[Message, Message]) -> None:
        request, headers = await stream.recv_message(), stream.metadata or {}
        self.calls[rpc] += 1
        if rpc not in self._methods:
            self.unanswered.append(rpc)
            raise GRPCError(Status.UNIMPLEMENTED, f"the stand-in does not answer {rpc}")
        token = headers.get("x-modal-token-id"), headers.get("x-modal-token-secret")
        is_client = headers.get("x-modal-client-type") == str(api_pb2.CLIENT_TYPE_CLIENT)
        if is_client and (self.faults.token_refused or token != self.token):
            raise GRPCError(Status.UNAUTHENTICATED, "Token validation failed.")
        self.faults.before(rpc)
        reply = self._methods[rpc](request, headers.get(CONTAINER_HEADER, ""))
        if inspect.isawaitable(reply):
            reply = await reply
        for each in reply if isinstance(reply, list) else [reply]:
            await stream.send_message(each)


def _always(reply: Message, request: Message, container_id: str) -> Message:
    return reply


class _Routes(api_grpc.ModalClientBase):
    """Every route, none answered."""


_Routes.__abstractmethods__ = frozenset()
