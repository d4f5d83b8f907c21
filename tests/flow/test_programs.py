"""Programs of flows, and the client of the Model Context Protocol, against real processes and servers."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from outlive._features.flows.outside.http_client import Fetcher
from outlive._features.flows.outside.mcp_client import HttpWire, call_program_tool, call_tool
from outlive._features.flows.outside.program import Program
from outlive.errors.outside import HttpStatusError, ProgramError, ToolError, UnreachableError
from tests.flow.test_http_client import LOCAL
from tests.flow.tools import respond
from tests.flow.web import Asked, answer, serving


def shell(script: str, *arguments: str, **options: Any) -> Program:
    """A program that is a script."""
    return Program(name="test", argv=["/bin/sh", "-c", script, "sh", *arguments], env=options.pop("env", {}), **options)


async def test_a_program_runs_with_what_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments as they are, its own environment and folder; nothing of the worker's environment. [S26 FE-O11]"""
    monkeypatch.setenv("WORKERS_OWN", "secret")
    script = 'cat; echo "$1|$2|$OWN|$WORKERS_OWN|$(pwd)"; echo oops >&2; exit 3'
    program = shell(script, "a b; rm", "$(x)", env={"OWN": "yes"}, folder=str(tmp_path))

    ended = await program.run(b"given\n")

    assert ended.code == 3
    assert ended.output.decode() == f"given\na b; rm|$(x)|yes||{tmp_path}\n"
    assert (ended.errors, ended.is_cut) == (b"oops\n", False)


async def test_a_program_is_bounded(tmp_path: Path) -> None:
    """In output, which is cut and said to be, and in time, with everything that it has started. [FB-G5 S26]"""
    ended = await shell("yes | head -c 300000", bytes_max=1_000).run()
    assert (len(ended.output), ended.is_cut, ended.code) == (1_000, True, 0)

    pid = tmp_path / "pid"
    program = shell(f"(trap '' TERM; sleep 1000) & echo $! > {pid}; wait", seconds_max=0.3)
    with pytest.raises(ProgramError, match=r"did not end within 0\.3 s, and was killed"):
        await program.run()
    await wait_until_gone(int(pid.read_text()))


async def test_a_program_is_killed_when_its_step_is_cancelled(tmp_path: Path) -> None:
    """With everything that it has started."""
    pid = tmp_path / "pid"
    running = asyncio.create_task(shell(f"sleep 1000 & echo $! > {pid}.new; mv {pid}.new {pid}; wait").run())
    while not pid.exists():  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.01)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await wait_until_gone(int(pid.read_text()))


async def test_a_program_that_cannot_begin() -> None:
    """Says why."""
    with pytest.raises(ProgramError, match=r"cannot begin: .*No such file"):
        await Program(name="gone", argv=["/nowhere/at/all"], env={}).run()
    with pytest.raises(ProgramError, match="NUL"):
        await Program(name="odd", argv=["/bin/echo", "a\0b"], env={}).run()


async def wait_until_gone(pid: int) -> None:
    """A process that was killed dies when the kernel comes to it."""
    while is_alive(pid):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process runs, and is not only waiting to be forgotten."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


# -- The Model Context Protocol --------------------------------------------------------------------------------


@pytest.mark.parametrize("is_modern", [False, True])
@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_tool_over_http(is_modern: bool, is_stream: bool) -> None:  # noqa: FBT001
    """A tool is called over HTTP on servers with sessions and on servers of the revision without, with answers as JSON
    or as a stream."""

    def handle(asked: Asked) -> bytes:
        message = json.loads(asked.body)
        found = respond(message, is_modern=is_modern)
        if found is None:
            return answer(202)
        if is_modern and "error" in found and message["method"] == "initialize":
            return answer(400, json.dumps(found), Content_Type="application/json")
        session = {} if is_modern else {"Mcp_Session_Id": "s-1"}
        if not is_stream:
            return answer(200, json.dumps(found), Content_Type="application/json", **session)
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
        text = f": hello\r\n\r\nevent: message\r\ndata: {note}\r\n\r\ndata: {json.dumps(found)}\r\n\r\n"
        return answer(200, text, Content_Type="text/event-stream", **session)

    async with serving(handle) as web:

        def wire() -> HttpWire:
            return HttpWire(Fetcher(LOCAL), "calc", web.url("/mcp"), token="t-1", seconds_max=5)

        result = await call_tool(wire(), "calc", "add", {"numbers": [1, 2, 3]})
        for tool, complaint in (("fail", "it hurts"), ("ask", "input of a person"), ("other", "no tool other")):
            with pytest.raises(ToolError, match=f"MCP server calc: tool '{tool}'.*{complaint}"):
                await call_tool(wire(), "calc", tool, {})

    assert result["structuredContent"] == {"total": 6}
    headers = web.asked[1 if is_modern else 2].headers
    assert headers["authorization"] == "Bearer t-1"
    if is_modern:
        assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "add")
        assert headers["mcp-protocol-version"] == "2026-07-28"
    else:
        assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("s-1", "2025-06-18")


async def test_a_server_in_trouble_may_be_asked_again() -> None:
    """Its status is an error that another attempt may change."""
    async with serving(lambda _: answer(503, "busy")) as web:
        wire = HttpWire(Fetcher(LOCAL), "calc", web.url("/mcp"), token=None, seconds_max=5)
        with pytest.raises(HttpStatusError, match="status 503"):
            await call_tool(wire, "calc", "add", {})


SERVER = """
import json, sys
from tests.flow.tools import respond
print("log line that is not a message", flush=True)
for line in sys.stdin:
    found = respond(json.loads(line), is_modern=%r)
    if found is not None:
        print(json.dumps(found), flush=True)
"""


async def test_a_tool_of_a_program(tmp_path: Path) -> None:
    """Over its pipes; the program is killed afterwards."""
    root = str(Path(__file__).parents[2])
    for is_modern in (False, True):
        argv = [sys.executable, "-c", SERVER % is_modern]
        program = Program(name="calc", argv=argv, env={"PYTHONPATH": root}, seconds_max=30)
        result = await call_program_tool(program, "calc", "add", {"numbers": [4, 5]})
        assert result["structuredContent"] == {"total": 9}

    with pytest.raises(UnreachableError, match=r"ended before it answered|does not read"):
        await call_program_tool(shell("exit 0"), "calc", "add", {})
    with pytest.raises(UnreachableError, match=r"did not answer within 0\.2 s"):
        await call_program_tool(shell("cat > /dev/null", seconds_max=0.2), "calc", "add", {})
