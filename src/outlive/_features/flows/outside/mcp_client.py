"""A client of the Model Context Protocol that calls one tool: JSON-RPC over streamable HTTP or the pipes of a program.

The package of the protocol has 20 dependencies and a session that lives longer than a step. A step of a flow calls one
tool, so this client is two messages: it opens a session as servers up to revision 2025-11-25 want it, and where the
server refuses that (revision 2026-07-28 has no sessions) it says who it is with the call itself. What a server asks of
its client (sampling, input of a person, roots) this one does not offer.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from outlive._features.flows.outside.grants import Bounds
from outlive._features.flows.outside.http_answer import Answer
from outlive._features.flows.outside.http_client import Fetcher, Request
from outlive._features.flows.outside.program import Program, kill
from outlive.errors.outside import HttpStatusError, ToolError, UnreachableError

SESSION_VERSION = "2025-11-25"
"""The newest revision that begins with `initialize`."""
VERSION = "2026-07-28"
ANSWER_BYTES_MAX = 4 * 1024 * 1024
CLIENT = {"name": "outlive", "version": "1"}
EXCERPT_CHARACTERS_MAX = 500

_OWN = "io.modelcontextprotocol/"


class RpcError(Exception):
    """The server answered a request with an error."""


class Wire(Protocol):
    """How messages reach a server."""

    async def ask(self, message: dict[str, Any], headers: dict[str, str]) -> Any:
        """The result of a request.

        Raises:
            RpcError: the server answers with an error.
            ToolError: it does not answer as the protocol has it.
        """

    async def notify(self, message: dict[str, Any], headers: dict[str, str]) -> None:
        """Send something that has no answer."""


async def call_tool(wire: Wire, server: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a tool, as the protocol has it: `content`, and `structuredContent` if it has a schema.

    Raises:
        ToolError: the tool, or the server, reports an error.
    """
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    headers: dict[str, str] = {}
    hello = {"protocolVersion": SESSION_VERSION, "capabilities": {}, "clientInfo": CLIENT}
    try:
        greeted = await wire.ask(_message(1, "initialize", hello), {})
    except RpcError:
        meta = {f"{_OWN}protocolVersion": VERSION, f"{_OWN}clientInfo": CLIENT, f"{_OWN}clientCapabilities": {}}
        params["_meta"] = meta
        headers = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    else:
        version = greeted.get("protocolVersion") if isinstance(greeted, dict) else None
        headers = {"MCP-Protocol-Version": str(version or SESSION_VERSION)}
        await wire.notify({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)
    try:
        result = await wire.ask(_message(2, "tools/call", params), headers)
    except RpcError as error:
        raise ToolError(server, f"tool {tool!r}: {error}") from None
    if not isinstance(result, dict):
        raise ToolError(server, f"tool {tool!r} gave no result")
    if result.get("resultType", "complete") != "complete":
        raise ToolError(server, f"tool {tool!r} asks for input of a person, which a step cannot give")
    if result.get("isError"):
        raise ToolError(server, f"tool {tool!r} failed: {text_of(result)[:EXCERPT_CHARACTERS_MAX]}")
    return result


def text_of(result: dict[str, Any]) -> str:
    """The texts among what a tool returned."""
    parts = [each for each in result.get("content") or [] if isinstance(each, dict)]
    return "\n".join(str(each["text"]) for each in parts if each.get("type") == "text" and "text" in each)


def _message(id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _result_of(answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if error is not None:
        said = error if isinstance(error, dict) else {}
        raise RpcError(f"{said.get('message', error)} (code {said.get('code')})")
    return answer.get("result")


def _answer_in(lines: list[bytes], id: int) -> dict[str, Any] | None:
    """The answer to a request among JSON texts; what is none of ours is passed over."""
    for line in lines:
        try:
            found = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(found, dict) and found.get("id") == id and ("result" in found or "error" in found):
            return found
    return None


class HttpWire:
    """Streamable HTTP: each message is a POST; the answer is JSON, or a stream of events that ends with it."""

    def __init__(
        self,
        fetcher: Fetcher,
        server: str,
        url: str,
        *,
        token: str | None,
        seconds_max: float,
        bounds: tuple[Bounds, ...] = (),
    ) -> None:
        self._bounds = bounds
        self._fetcher, self._server, self._url = fetcher, server, url
        self._seconds_max = seconds_max
        self._own = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token is not None:
            self._own["Authorization"] = f"Bearer {token}"

    async def ask(self, message: dict[str, Any], headers: dict[str, str]) -> Any:
        """See `Wire`."""
        id = message["id"]
        answer = await self._post(message, headers, lambda body: _answer_in(_events(body), id) is not None)
        if session := answer.headers.get("mcp-session-id"):
            self._own["Mcp-Session-Id"] = session
        is_stream = answer.media_type == "text/event-stream"
        found = _answer_in(_events(answer.body) if is_stream else [answer.body], id)
        if found is None:
            if answer.status >= 500 or answer.status == 429:
                raise HttpStatusError(answer.status, request=f"POST {self._url}")
            raise RpcError(f"it answers with status {answer.status} and no result")
        return _result_of(found)

    async def notify(self, message: dict[str, Any], headers: dict[str, str]) -> None:
        """See `Wire`."""
        await self._post(message, headers, lambda body: True)

    async def _post(
        self, message: dict[str, Any], headers: dict[str, str], is_complete: Callable[[bytes], bool]
    ) -> Answer:
        request = Request(
            url=self._url,
            method="POST",
            headers={**self._own, **headers},
            body=msgspec.json.encode(message),
            total_seconds=self._seconds_max,
            bytes_max=ANSWER_BYTES_MAX,
            redirects_max=0,
            bounds=self._bounds,
        )
        return await self._fetcher.fetch(request, is_complete=is_complete)


def _events(body: bytes) -> list[bytes]:
    """The data of the complete events of a stream."""
    text = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found = []
    for event in text.split(b"\n\n")[:-1]:
        lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
        found.append(b"\n".join(lines))
    return found


class ProgramWire:
    """The pipes of a program: a line for each message."""

    def __init__(self, process: asyncio.subprocess.Process, server: str) -> None:
        self._process, self._server = process, server

    async def ask(self, message: dict[str, Any], headers: dict[str, str]) -> Any:
        """See `Wire`."""
        await self.notify(message, headers)
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:
                raise ToolError(self._server, f"it sent a line of more than {ANSWER_BYTES_MAX} bytes") from None
            if not line:
                raise UnreachableError(f"MCP server {self._server}", "ended before it answered")
            found = _answer_in([line], message["id"])
            if found is not None:
                return _result_of(found)

    async def notify(self, message: dict[str, Any], headers: dict[str, str]) -> None:
        """See `Wire`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(message) + b"\n")
            await self._process.stdin.drain()
        except OSError as error:
            raise UnreachableError(f"MCP server {self._server}", f"does not read: {error}") from None


async def call_program_tool(program: Program, server: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Begin the program of a server, call a tool, and kill the program. See `call_tool`."""
    process = await program.start(stderr=subprocess.DEVNULL, limit=ANSWER_BYTES_MAX)
    timeout = asyncio.timeout(program.seconds_max)
    try:
        async with timeout:
            return await call_tool(ProgramWire(process, server), server, tool, arguments)
    except TimeoutError:
        if not timeout.expired():
            raise
        raise UnreachableError(f"MCP server {server}", f"did not answer within {program.seconds_max:g} s") from None
    finally:
        await kill(process)
