"""The MCP server on standard input and output: the protocol by the official SDK, the work in processes beside it.

Standard output carries the protocol alone. A wrong argument is the tool's error, an unknown tool the protocol's. A
call that is cancelled, or whose client leaves, ends with its process.
"""

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import ValidationError

from runner import __version__
from runner.base.errors import BackendError, EvalError, InputError
from runner.base.places import CHECKOUT
from runner.tools.mcp.tools import TOOLS, Answer, checked_arguments

NAME = "per-source-eval"
INSTRUCTIONS = (
    "Grades retrievers against null systems, compares runs query by query, and tells which embedding model and chunker "
    "were chosen for a legislative source, and why. Everything is read-only."
)
CALLS_AT_ONCE = 4
"""Further calls wait for one of these to end."""

Work = Callable[[str, Mapping[str, Any]], Awaitable[Answer]]

_WORK = "from runner.tools.mcp.tools import work; work()"


def serve(root: Path) -> None:
    """Serve one client until it closes standard input; files are read below `root`. An interrupt ends it at once."""
    # The SDK reads lines in a thread, which an exception in the main one does not wake.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(_serve, root)


async def _serve(root: Path) -> None:
    server = make_server(partial(in_own_process, root))
    async with stdio_server() as (messages, replies):
        await server.run(cast(Any, _Messages(messages, replies)), replies, server.create_initialization_options())


def make_server(work: Work) -> Server[Any]:
    """The server of TOOLS; `work` answers a call whose arguments were checked."""
    limit = anyio.CapacityLimiter(CALLS_AT_ONCE)

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=_listed())

    async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        if params.name not in TOOLS:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        arguments = params.arguments or {}
        try:
            checked_arguments(params.name, arguments)
            async with limit:
                answer = await work(params.name, arguments)
        except EvalError as error:
            return CallToolResult(content=[_text(str(error))], is_error=True)
        return CallToolResult(content=[_text(answer.text)], structured_content=answer.data)

    return Server(
        NAME, version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def in_own_process(root: Path, tool: str, arguments: Mapping[str, Any]) -> Answer:
    """A call's answer by a new process, which reads below `root` and is killed if the call is cancelled.

    Raises InputError with what is wrong with the call, BackendError if the process dies.
    """
    done = await anyio.run_process(
        [sys.executable, "-P", "-c", _WORK],
        input=json.dumps({"tool": tool, "arguments": arguments, "root": str(root)}).encode(),
        stderr=None,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))},
    )
    if done.returncode != 0:
        raise BackendError(
            f"{tool}: the process that worked on it ended with {done.returncode}. The server's standard error says why."
        )
    reply = json.loads(done.stdout)
    if "error" in reply:
        raise InputError(reply["error"])
    return Answer(**reply)


def _listed() -> list[Tool]:
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    return [
        Tool(
            name=name,
            title=tool.title,
            description=tool.description,
            input_schema=tool.arguments.model_json_schema(),
            output_schema=tool.output,
            annotations=reads,
        )
        for name, tool in TOOLS.items()
    ]


def _text(text: str) -> TextContent:
    # A file name that is not UTF-8 would otherwise stop the writer of standard output.
    return TextContent(text=text.encode(errors="backslashreplace").decode())


class _Messages:
    """The client's messages; a line that is none is answered with an error that names no request, and left out."""

    def __init__(self, messages: Any, replies: Any) -> None:  # noqa: ANN401 - streams of the SDK, whose types are private
        self._messages = messages
        self._replies = replies

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the stream's own
        return getattr(self._messages, name)

    def __aiter__(self) -> "_Messages":
        return self

    async def __anext__(self) -> SessionMessage:
        while isinstance(message := await anext(self._messages), Exception):
            await self._replies.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=_refusal(message))))
        return cast(SessionMessage, message)


def _refusal(error: Exception) -> ErrorData:
    if isinstance(error, ValidationError) and any(row["type"] != "json_invalid" for row in error.errors()):
        return ErrorData(code=INVALID_REQUEST, message="The line is no JSON-RPC message.")
    return ErrorData(code=PARSE_ERROR, message="The line is not JSON.")
