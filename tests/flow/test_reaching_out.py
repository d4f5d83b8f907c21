"""Built-ins that the operator has to allow: llm, mcp, shell, docker and blob, as steps of flows."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outlive import flow
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.settings import Settings, read
from outlive.errors import RunFailedError
from outlive.errors.outside import SettingsError
from outlive.testing import TestEngine
from tests.flow.tools import respond
from tests.flow.web import Asked, answer, serving

KEY = "key-of-the-endpoint"


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OUTLIVE_SECRET_REACHING_KEY", KEY)
    with settings.using(Settings()):
        yield


def one_step(name: str, use: str, given: Any, **more: Any) -> flow.FlowWorkflow:
    """A flow of one step, whose result is its output."""
    step: dict[str, Any] = {"use": use, "with": given, **more}
    variables = {"key": {"secret": True, "env": "OUTLIVE_SECRET_REACHING_KEY"}}
    document: dict[str, Any] = {"name": name, "vars": variables, "steps": {"do": step}, "output": "${{ steps.do }}"}
    return flow.parse(json.dumps(document))


async def result_of(made: flow.FlowWorkflow) -> Any:
    """What a run of it gives."""
    async with TestEngine() as engine:
        return await (await engine.start(made)).result()


async def failure_of(made: flow.FlowWorkflow) -> Any:
    """What a run of it fails with."""
    with pytest.raises(RunFailedError) as caught:
        await result_of(made)
    return caught.value.failure


@pytest.mark.parametrize(
    ("use", "given", "key"),
    [
        ("shell", {"command": "ls"}, "[flows.shell.ls]"),
        ("docker", {"image": "alpine"}, "[flows.docker.alpine]"),
        ("mcp", {"server": "files", "tool": "read"}, "[flows.mcp.files]"),
        ("llm", {"prompt": "hi"}, "[flows.llm.default]"),
        ("blob", {"put": 1}, "[flows.blobs] folder"),
        ("blob", {"file": "a.txt"}, "[flows.files] folder"),
    ],
)
async def test_nothing_is_allowed_unless_the_settings_name_it(use: str, given: Any, key: str) -> None:
    """S26: absent by default; the error names the key, and is not tried again. [FB-C10]"""
    failure = await failure_of(one_step(f"reaching_denied_{len(key)}_{use}", use, given))

    assert failure.type == "outlive.errors.NotAllowedError"
    assert key in failure.message


# -- Programs ------------------------------------------------------------------------------------------------------


async def test_a_command_of_the_settings(tmp_path: Path) -> None:
    """With what the operator lets a flow add; its secret does not come back. [FE-S11]"""
    script = 'cat; echo "$1 $TOKEN"; echo "$TOKEN" >&2; exit $2'
    argv = ["/bin/sh", "-c", script, "sh"]
    table = {"shell": {"say": {"argv": argv, "arguments": True, "secrets": ["TOKEN"], "folder": str(tmp_path)}}}
    given: dict[str, Any] = {
        "command": "say",
        "arguments": ["a; b", "0"],
        "env": {"TOKEN": "t-${{ vars.key }}"},
        "input": "in\n",
    }
    with settings.using(read(table)):
        result = await result_of(one_step("reaching_shell", "shell", given))
        failure = await failure_of(one_step("reaching_shell_3", "shell", {**given, "arguments": ["x", "3"]}))
        fine = one_step("reaching_shell_fine", "shell", {**given, "arguments": ["x", "3"], "expect": [3]})
        assert (await result_of(fine))["code"] == 3

    assert result == {"code": 0, "output": "in\na; b t-[REDACTED]\n", "errors": "t-[REDACTED]\n", "is_cut": False}
    assert failure.type == "outlive.errors.ProgramError"
    assert failure.message == "command say ended with code 3: t-[REDACTED]"
    assert failure.attributes["exit_code"] == 3


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"arguments": ["--evil"]}, "takes no arguments of a flow"),
        ({"env": {"A": "b"}}, "does not take the variable 'A' of a flow: it takes TOKEN, KEY; the operator lists"),
    ],
)
async def test_a_flow_adds_only_what_the_operator_allows(more: dict[str, Any], complaint: str) -> None:
    """No arguments by default, and only the listed variables. [S26]"""
    with settings.using(read({"shell": {"say": {"argv": ["/bin/echo"], "secrets": ["TOKEN", "KEY"]}}})):
        failure = await failure_of(one_step(f"reaching_more_{next(iter(more))}", "shell", {"command": "say", **more}))

    assert complaint in failure.message


DECIDING = """
PATH HOME LD_PRELOAD DYLD_INSERT_LIBRARIES BASH_ENV ENV BASH_FUNC_ls PS4 SHELLOPTS NODE_OPTIONS PERL5OPT PERL5LIB
PYTHONPATH PYTHONSTARTUP RUBYOPT JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS GIT_SSH_COMMAND GIT_CONFIG_COUNT
DOCKER_HOST LESSOPEN PAGER https_proxy SSL_CERT_FILE DOTNET_STARTUP_HOOKS npm_config_script_shell A=B 1A
"""


@pytest.mark.parametrize("kind", ["shell", "docker"])
@pytest.mark.parametrize("name", DECIDING.split())
async def test_variables_that_would_change_the_program_are_refused(kind: str, name: str) -> None:
    """Where the operator lists them, and where a step gives them all the same. [S26]"""
    place = {"argv": ["/bin/bash"]} if kind == "shell" else {"image": "x"}
    with pytest.raises(SettingsError, match=rf"flows\.{kind}\.say\.secrets\[1\]: no flow may set"):
        read({kind: {"say": {**place, "secrets": ["OWN", name]}}})

    with settings.using(read({kind: {"say": {**place, "secrets": ["OWN"]}}})) as own:
        getattr(own, kind)["say"].secrets.append(name)
        given = {"command" if kind == "shell" else "image": "say", "env": {name: "x"}}
        made = one_step(f"reaching_env_{kind}", kind, given)
        assert "cannot be given the variable" in (await failure_of(made)).message


def test_a_boolean_lists_no_variables() -> None:
    """It let flows set any."""
    with pytest.raises(SettingsError, match=r"secrets: Expected `array`, got `bool`"):
        read({"shell": {"say": {"argv": ["/bin/echo"], "secrets": True}}})


async def test_a_command_is_killed_with_its_run(tmp_path: Path) -> None:
    """A run that is cancelled leaves no process behind."""
    file = tmp_path / "pid"
    script = f"sleep 1000 & echo $! > {file}.new; mv {file}.new {file}; wait"
    with settings.using(read({"shell": {"nap": {"argv": ["/bin/sh", "-c", script]}}})):
        made = one_step("reaching_nap", "shell", {"command": "nap"})
        async with TestEngine() as engine:
            run = await engine.start(made)
            while not file.exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
            await engine.cancel(run.id)
            with pytest.raises(RunFailedError):
                await run.result()
    state = Path(f"/proc/{file.read_text().strip()}/stat")
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] not in "ZX":  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_a_container_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the docker program, with the options of the operator; a secret is in its environment and not in its words.
    [FE-S11 FE-O11]
    """
    docker = tmp_path / "docker"
    docker.write_text(
        '#!/bin/sh\necho "$@" >> "$0.log"\necho "said $TOKEN"\n[ "$1" = run ] && [ -e "$0.hang" ] && sleep 1000\ntrue\n'
    )
    docker.chmod(docker.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    options = ["--network=none", "--memory=64m"]
    image = {"image": "registry.example/convert:3", "options": options, "secrets": ["TOKEN"], "seconds_max": 0.4}
    given = {"image": "convert", "arguments": ["--in", "a b"], "env": {"TOKEN": "${{ vars.key }}"}}
    with settings.using(read({"docker": {"convert": image}})):
        result = await result_of(one_step("reaching_docker", "docker", given))
        (tmp_path / "docker.hang").touch()
        failure = await failure_of(one_step("reaching_docker_slow", "docker", given))

    assert result["output"] == "said [REDACTED]\n"
    first, second, removed = (tmp_path / "docker.log").read_text().splitlines()
    assert first.startswith("run --rm --init --interactive --name outlive-")
    assert first.endswith(f"{' '.join(options)} --env TOKEN registry.example/convert:3 --in a b")
    assert "did not end within 0.4 s" in failure.message
    name = second.split("--name ")[1].split()[0]
    assert removed == f"rm --force {name}"


# -- Servers -------------------------------------------------------------------------------------------------------


async def test_a_tool_of_the_settings() -> None:
    """A tool of the settings is called on a server over HTTP and on a program; a tool that is not listed is refused.
    [FE-S11]
    """

    def handle(asked: Asked) -> bytes:
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        found = respond(json.loads(asked.body), is_modern=False)
        return answer(202) if found is None else answer(200, json.dumps(found), Content_Type="application/json")

    program = [sys.executable, "-c", PROGRAM]
    async with serving(handle) as web:
        table = {
            "mcp": {
                "calc": {"url": web.url("/mcp"), "token": "reaching_key", "tools": ["add", "fail"]},
                "local": {"argv": program, "env": {"PYTHONPATH": str(Path(__file__).parents[2])}},
            }
        }
        with settings.using(read(table)):
            for server in ("calc", "local"):
                given = {"server": server, "tool": "add", "arguments": {"numbers": [1, 2]}}
                result = await result_of(one_step(f"reaching_mcp_{server}", "mcp", given))
                assert result == {"text": "3", "data": {"total": 3}, "content": [{"type": "text", "text": "3"}]}
            failure = await failure_of(one_step("reaching_mcp_fail", "mcp", {"server": "calc", "tool": "fail"}))
            refused = await failure_of(one_step("reaching_mcp_tool", "mcp", {"server": "calc", "tool": "drop"}))

    assert (failure.type, failure.message) == (
        "outlive.errors.ToolError",
        "MCP server calc: tool 'fail' failed: it hurts",
    )
    assert "tool 'drop' is not allowed here (allowed are add, fail)" in refused.message


PROGRAM = """
import json, sys
from tests.flow.tools import respond
for line in sys.stdin:
    found = respond(json.loads(line), is_modern=False)
    if found is not None:
        print(json.dumps(found), flush=True)
"""


@pytest.mark.parametrize("body", ["[]", '{"choices": []}', "\xff"])
async def test_an_answer_that_is_not_a_completion_fails_the_step(body: str) -> None:
    """An answer of a model that is not a completion fails the step with what is wrong."""

    def handle(asked: Asked) -> bytes:
        return answer(200, body, Content_Type="application/json")

    async with serving(handle) as web:
        endpoint = {"url": web.url("/v1"), "key": "reaching_key", "model": "small"}
        chosen = settings.using(read({"llm": {"default": endpoint}}))
        with chosen, pytest.raises(RunFailedError, match="is not a completion"):
            await result_of(one_step("reaching_llm_odd", "llm", {"prompt": "x"}))


async def test_a_completion_of_the_settings() -> None:
    """With the key and the model of the endpoint; its usage is in the result, and its data is parsed. [FE-S11]"""
    replies = [answer(429, "slow down", Retry_After="1")]

    def handle(asked: Asked) -> bytes:
        if replies:
            return replies.pop()
        body = json.loads(asked.body)
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        text = '{"title": "A"}' if "response_format" in body else f"echo {KEY}"
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"usage": {"prompt_tokens": 7, "completion_tokens": 2}} if "response_format" in body else {}
        completion = {"model": body["model"], "choices": [choice], **usage}
        return answer(200, json.dumps(completion), Content_Type="application/json")

    async with serving(handle) as web:
        endpoint = {"url": web.url("/v1"), "key": "reaching_key", "model": "small"}
        with settings.using(read({"llm": {"default": endpoint}})):
            given = {"system": "Be brief.", "prompt": "Sum up", "max_tokens": 9, "options": {"seed": 1}}
            plain = await result_of(one_step("reaching_llm", "llm", given))
            typed = await result_of(one_step("reaching_llm_data", "llm", {"prompt": "x", "schema": {"type": "object"}}))
        with settings.using(read({"http": {"allow_networks": ["127.0.0.0/8"]}})):
            own = {"url": web.url("/v1/"), "key": "${{ vars.key }}", "model": "m", "messages": [{"role": "user"}]}
            named = await result_of(one_step("reaching_llm_url", "llm", own))

    sent = json.loads(web.asked[1].body)
    assert web.asked[1].path == "/v1/chat/completions"
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Sum up"}]
    assert (sent["model"], sent["max_tokens"], sent["seed"]) == ("small", 9, 1)
    assert (plain["text"], plain["usage"], plain["finish_reason"]) == ("echo [REDACTED]", None, "stop")
    assert typed["data"] == {"title": "A"}
    assert typed["usage"] == {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
    assert named["model"] == "m"


# -- Blobs ---------------------------------------------------------------------------------------------------------


async def test_blobs_of_flows(tmp_path: Path) -> None:
    """JSON, text and bytes, by their hash; null for another type or id. [SF-B3 SF-B6 SF-B9 SF-B10]"""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("[1, 2]")
    (tmp_path / "in" / "link").symlink_to("/etc/passwd")
    table = {"blobs": {"folder": str(tmp_path / "blobs"), "bytes_max": 50}, "files": {"folder": str(tmp_path / "in")}}
    with settings.using(read(table)):

        async def blob(name: str, **given: Any) -> Any:
            return await result_of(one_step(f"reaching_blob_{name}", "blob", given))

        made = await blob("put", put={"b": 1, "a": [None]}, type="order", filename="o.json")
        same = await blob("same", text='{"a":[null],"b":1}')
        raw = await blob("raw", base64=base64.b64encode(b"\xff\x00").decode())
        text = await blob("text", text="hej")
        assert made == {"id": same["id"], "size": 18, "type": "order", "filename": "o.json"}
        assert same["type"] == "order"
        assert (await blob("get", get=made["id"], form="json"))["data"] == {"a": [None], "b": 1}
        assert (await blob("bytes", get=raw["id"]))["data"] == "/wA="
        found = await blob("typed", get=text["id"], type="text")
        assert (found["data"], "filename" in found) == ("hej", False)
        assert await blob("other", get=made["id"], type="invoice") is None
        assert await blob("unknown", get="0" * 64, type="order") is None
        assert (await blob("file", file="a.json"))["data"] == [1, 2]
        for number, path in enumerate(["../blobs/x", "/etc/passwd", "link", "missing", "a//b", "."]):
            failure = await failure_of(one_step(f"reaching_file_{number}", "blob", {"file": path}))
            assert failure.type == "outlive.errors.BlobError", path
        big = await failure_of(one_step("reaching_big", "blob", {"text": "x" * 51}))
        two = await failure_of(one_step("reaching_two", "blob", "${{ {'text': 'x', 'put': 1} }}"))

    assert "has 51 bytes" in big.message
    assert "one of put, text" in two.message
