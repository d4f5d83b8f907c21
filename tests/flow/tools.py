"""A server of the Model Context Protocol, for tests: what it answers to a message."""

from __future__ import annotations

from typing import Any


def respond(message: dict[str, Any], *, is_modern: bool) -> dict[str, Any] | None:
    """What a small server answers: it has a tool that adds, and one that fails."""
    method, params = message["method"], message.get("params", {})
    if "id" not in message:
        return None
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        if is_modern:
            return {**reply, "error": {"code": -32601, "message": "no initialize in 2026-07-28"}}
        info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
        return {**reply, "result": info}
    assert method == "tools/call"
    if is_modern:
        assert params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    match params["name"]:
        case "add":
            total = sum(params["arguments"]["numbers"])
            content = [{"type": "text", "text": str(total)}]
            return {**reply, "result": {"content": content, "structuredContent": {"total": total}}}
        case "fail":
            return {**reply, "result": {"content": [{"type": "text", "text": "it hurts"}], "isError": True}}
        case "ask":
            return {**reply, "result": {"resultType": "input_required", "inputRequests": {}}}
        case other:
            return {**reply, "error": {"code": -32602, "message": f"no tool {other}"}}
