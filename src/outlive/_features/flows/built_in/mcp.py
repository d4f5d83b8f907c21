"""`use: mcp`: one call of a tool of a server that speaks the Model Context Protocol.

The operator names servers in the settings. A document names one of them and a tool; it cannot name a program.
"""

from __future__ import annotations

from typing import Any

import msgspec

from outlive._cel import ANY, LIST, MAP, STRING, Type
from outlive._features.flows.built_in.contract import Call
from outlive._features.flows.built_in.http import with_retry
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.mcp_client import HttpWire, call_program_tool, call_tool, text_of
from outlive._features.flows.outside.program import Program
from outlive._features.flows.outside.secrets import granted
from outlive.errors.outside import NotAllowedError


class McpArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`with` of an mcp step."""

    server: str
    """The name of a server in the settings."""
    tool: str
    arguments: dict[str, Any] = {}


class Mcp:
    """`use: mcp`."""

    name = "mcp"
    arguments = McpArguments
    takes_secrets = True
    result: Type = MAP({"text": STRING, "data": ANY, "content": LIST(MAP())})

    async def run(self, call: Call, given: McpArguments) -> Any:
        """One journaled step."""
        return await with_retry(call).step(call_server, given, call.secrets)


async def call_server(given: McpArguments, grants: list[str]) -> Any:
    """Call the tool."""
    known = settings.current().mcp
    server = known.get(given.server)
    if server is None:
        raise NotAllowedError("mcp server", given.server, key=f"[flows.mcp.{given.server}]", allowed=[*known])
    if server.tools is not None and given.tool not in server.tools:
        key = f"[flows.mcp.{given.server}] tools"
        raise NotAllowedError("tool", given.tool, key=key, allowed=server.tools)
    with granted(grants, to=f"mcp:{given.server}" if server.url is None else None) as revealed:
        arguments = revealed.resolve(given.arguments)
        if server.url is None:
            program = Program(name=given.server, argv=server.argv, env=server.env, seconds_max=server.seconds_max)
            result = await call_program_tool(program, given.server, given.tool, arguments)
        else:
            fetcher = settings.current().fetcher_for(server.url)
            token = None if server.token is None else revealed.own(server.token)
            wire = HttpWire(
                fetcher,
                given.server,
                server.url,
                token=token,
                seconds_max=server.seconds_max,
                bounds=revealed.bounds,
            )
            result = await call_tool(wire, given.server, given.tool, arguments)
        data = result.get("structuredContent")
        return revealed.blot({"text": text_of(result), "data": data, "content": result.get("content") or []})


BUILT_INS = {"mcp": Mcp()}
