"""MCP servers of durable agents of the OpenAI Agents SDK.

The SDK asks a server for its tools before each request to the model, and calls them. In a workflow both are steps, and
the journal has what the server answered, as MCP writes it. A server that is connected when the step runs is used as it
is. One that is not connected is connected in the step and closed in it, so an agent needs no place to open it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from agents import AgentsException
from agents.mcp import MCPServer
from mcp.types import CallToolResult, Tool

from outlive.integrations.agents import CallOptions, by_name, call_step, is_workflow_code, step_name


class DurableServer(MCPServer):
    """An MCP server whose tools are listed and called in steps; outside of workflows it is the server that it wraps.

    Args:
        wrapped: the server.
        agent: the name of the agent, for the names of the steps.
        options: how its tools are listed and called.
    """

    # The settings that a server is made with are those of the wrapped one: see `__getattr__`.
    def __init__(self, wrapped: Any, *, agent: str, options: CallOptions) -> None:
        self._wrapped, self._agent, self._options = wrapped, agent, options
        self._one_at_a_time = asyncio.Lock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_wrapped" not in vars(self):
            raise AttributeError(name)
        return getattr(self._wrapped, name)

    @property
    def name(self) -> str:
        """The name of the server."""
        return str(self._wrapped.name)

    @property
    def cached_tools(self) -> Any:
        """None: tools come out of the journal."""
        return None

    async def connect(self) -> None:
        """Connect the server, for all steps until `cleanup`."""
        await self._wrapped.connect()

    async def cleanup(self) -> None:
        """Close the connection."""
        await self._wrapped.cleanup()

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Any]:
        """The tools of the server, out of the journal."""

        async def tools() -> Any:
            return await self._wrapped.list_tools(run_context, agent)

        if not is_workflow_code():
            return list(await tools())
        stored = await self._in_step(step_name(self._agent, "tools", self.name), tools, _all_as_json)
        return [Tool.model_validate(each) for each in stored]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        """The result of a tool of the server, out of the journal."""

        async def call() -> Any:
            return await self._wrapped.call_tool(tool_name, arguments, *(() if meta is None else (meta,)))

        if not is_workflow_code():
            return await call()
        name = step_name(self._agent, "tool", self.name, tool_name)
        stored = await self._in_step(name, call, _as_json, shown=partial(by_name, arguments or {}))
        return CallToolResult.model_validate(stored)

    async def list_prompts(self) -> Any:
        """The prompts of the server; in a workflow, ask in a step."""
        return await self._wrapped.list_prompts()

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        """A prompt of the server; in a workflow, ask in a step."""
        return await self._wrapped.get_prompt(name, arguments)

    async def _in_step(
        self,
        name: str,
        ask: Callable[[], Coroutine[Any, Any, Any]],
        write: Callable[[Any], Any],
        *,
        shown: Callable[[], Mapping[str, Any]] | None = None,
    ) -> Any:
        async def carry_out() -> Any:
            async with self._connected():
                return write(await ask())

        return await call_step(carry_out, name=name, options=self._options, raises=(AgentsException,), shown=shown)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        """The connection that the server has, or one for this step."""
        is_connected = getattr(self._wrapped, "session", self) is not None
        if is_connected and not self._one_at_a_time.locked():  # Held, it would be the connection of another step.
            yield
            return
        async with self._one_at_a_time:
            await self._wrapped.connect()
            try:
                yield
            finally:
                await self._wrapped.cleanup()


def _as_json(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _all_as_json(values: Any) -> list[Any]:
    return [_as_json(each) for each in values]
