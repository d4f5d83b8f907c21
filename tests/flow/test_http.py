"""`use: http` in a flow: what it sends, what it returns, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest

from outlive import flow
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.settings import HttpSettings, Settings
from outlive.errors import RunFailedError
from outlive.testing import TestEngine
from tests.flow.web import Asked, answer, serving

LOCAL = Settings(http=HttpSettings(allow_networks=["127.0.0.0/8"]))


@pytest.fixture(autouse=True)
def _local() -> Iterator[None]:
    with settings.using(LOCAL):
        yield


def asking(name: str, **given: Any) -> flow.FlowWorkflow:
    """A flow of one http step, whose result is its output."""
    options: dict[str, Any] = {key: given.pop(key) for key in ("retry", "timeout", "on_error") if key in given}
    step: dict[str, Any] = {"use": "http", "with": given, **options}
    document: dict[str, Any] = {
        "name": name,
        "input": {"url": "string"},
        "steps": {"call": step},
        "output": "${{ steps.call }}",
    }
    return flow.parse(json.dumps(document))


async def run(made: flow.FlowWorkflow, url: str) -> Any:
    """The output of a run."""
    async with TestEngine() as engine:
        return await (await engine.start(made, {"url": url})).result()


async def failure_of(made: flow.FlowWorkflow, url: str) -> Any:
    """What a run fails with."""
    with pytest.raises(RunFailedError) as caught:
        await run(made, url)
    return caught.value.failure


async def test_a_request_of_a_flow() -> None:
    """Query, headers, JSON body and the key of the step; the answer as plain data, without cookies."""
    made = asking(
        "http_post",
        method="post",
        url="${{ input.url }}?a=1",
        query={"b": ["x y", 2], "c": None, "d": True},
        headers={"X-Count": 3},
        body={"id": "${{ input.url }}"},
    )
    reply = answer(201, '{"made": [1, null]}', Content_Type="application/json; charset=utf-8", Set_Cookie="s=1")
    async with serving(lambda _: reply) as web:
        url = web.url("/orders")
        result = await run(made, url)

    (asked,) = web.asked
    assert (asked.method, asked.path) == ("POST", "/orders?a=1&b=x+y&b=2&d=true")
    assert (json.loads(asked.body), asked.headers["content-type"]) == ({"id": url}, "application/json")
    assert asked.headers["x-count"] == "3"
    assert asked.headers["idempotency-key"]
    assert (result["status"], result["body"]) == (201, {"made": [1, None]})
    assert "set-cookie" not in result["headers"]


@pytest.mark.parametrize(
    ("given", "body", "kind"),
    [
        ({"text": "plain"}, b"plain", "text/plain; charset=utf-8"),
        ({"form": {"a": "1 2", "b": [True, 3]}}, b"a=1+2&b=true&b=3", "application/x-www-form-urlencoded"),
        ({"body": None}, b"null", "application/json"),
        ({"text": "<a/>", "headers": {"content-type": "text/xml"}}, b"<a/>", "text/xml"),
    ],
)
async def test_bodies_of_requests(given: dict[str, Any], body: bytes, kind: str) -> None:
    """Text, forms and JSON, each with its type."""
    made = asking(f"http_body_{crc32(body)}", method="PUT", url="${{ input.url }}", **given)
    async with serving(lambda _: answer(200)) as web:
        await run(made, web.url())

    assert (web.asked[0].body, web.asked[0].headers["content-type"]) == (body, kind)
    assert "idempotency-key" not in web.asked[0].headers


@pytest.mark.parametrize(
    ("reply", "form", "body"),
    [
        (answer(200, '{"a": 1}', Content_Type="application/problem+json"), "auto", {"a": 1}),
        (answer(200, "hi", Content_Type="text/html"), "auto", "hi"),
        (answer(200, b"\xff\x00", Content_Type="image/png"), "auto", "/wA="),
        (answer(200, "7", Content_Type="text/plain"), "json", 7),
        (answer(200, "\xe5".encode("latin-1"), Content_Type="text/plain; charset=latin-1"), "text", "å"),
        (answer(204), "auto", None),
    ],
)
async def test_bodies_of_answers(reply: bytes, form: str, body: Any) -> None:
    """By the type that the server names, or as the step says."""
    made = asking(f"http_answer_{crc32(reply)}", url="${{ input.url }}", response=form)
    async with serving(lambda _: reply) as web:
        assert (await run(made, web.url()))["body"] == body


async def test_a_status_that_is_not_expected_fails_the_step() -> None:
    """At once, with the status and the beginning of the body; unless the step expects it. [FB-C7 FB-C9]"""
    async with serving(lambda _: answer(404, "no  such\norder " + "x" * 9_000)) as web:
        failure = await failure_of(asking("http_404", url="${{ input.url }}?key=hidden"), web.url("/orders"))
        fine = await run(asking("http_404_fine", url="${{ input.url }}", expect=[200, 404]), web.url())

    assert (len(web.asked), fine["status"]) == (2, 404)
    assert failure.type == "outlive.errors.HttpStatusError"
    assert failure.message.startswith(f"GET {web.url('/orders')} answered with status 404: no such order xxx")
    assert len(failure.message) < 700
    assert failure.attributes["status"] == 404


async def test_a_server_in_trouble_is_asked_again_with_the_same_key() -> None:
    """429 after the time that it names, 5xx after the back-off; the key of the step is the same each time."""
    replies = [answer(429, Retry_After="100"), answer(503), answer(200, "done", Content_Type="text/plain")]
    made = asking("http_busy", method="POST", url="${{ input.url }}")
    async with serving(lambda _: replies.pop(0)) as web, TestEngine() as engine:
        begin = engine.now()
        assert (await (await engine.start(made, {"url": web.url()})).result())["body"] == "done"
        took = (engine.now() - begin).total_seconds()

    assert len({asked.headers["idempotency-key"] for asked in web.asked}) == 1
    assert len(web.asked) == 3
    assert 100 <= took < 130


async def test_a_time_of_day_is_that_of_the_server() -> None:
    """Whatever the clock of the worker says."""
    times = {"Date": "Mon, 01 Jan 2001 10:00:00 GMT", "Retry_After": "Mon, 01 Jan 2001 10:01:30 GMT"}
    replies = [answer(503, **times), answer(200)]
    made = asking("http_date", url="${{ input.url }}")
    async with serving(lambda _: replies.pop(0)) as web, TestEngine() as engine:
        begin = engine.now()
        await (await engine.start(made, {"url": web.url()})).result()
        assert 90 <= (engine.now() - begin).total_seconds() < 110


async def test_json_without_an_end_is_an_error_of_the_answer() -> None:
    """However deep it is."""
    async with serving(lambda _: answer(200, "[" * 90_000, Content_Type="application/json")) as web:
        failure = await failure_of(asking("http_deep", url="${{ input.url }}"), web.url())

    assert failure.type == "outlive.errors.AnswerError"


async def test_server_errors_and_lost_connections_are_tried_again() -> None:
    """A server error other than 501 and a lost connection are tried again, and a client error only if `on` names it."""
    counts = {}
    replies = {"/400": answer(400), "/501": answer(501), "/500": answer(500), "/gone": b"", "/409": answer(409)}
    async with serving(lambda asked: replies[asked.path]) as web:
        for path in replies:
            retry = {"attempts": 2, "first": 0, "on": [409] if path == "/409" else []}
            await failure_of(asking(f"http_again{path[1:]}", url="${{ input.url }}", retry=retry), web.url(path))
            counts[path] = sum(asked.path == path for asked in web.asked)

    assert counts == {"/400": 1, "/501": 1, "/500": 2, "/gone": 2, "/409": 2}


async def test_an_address_that_a_flow_may_not_reach_is_refused() -> None:
    """An address that a flow may not reach is an error of the step that is not tried again, also after a redirect."""
    async with serving(lambda _: answer(302, Location="http://169.254.169.254/latest/meta-data")) as web:
        made = asking("http_reach", url="${{ input.url }}")
        redirected = await failure_of(made, web.url())
        with settings.using(Settings()):
            local = await failure_of(made, web.url())

    assert len(web.asked) == 1
    assert (redirected.type, local.type) == ("outlive.errors.AddressRefusedError",) * 2
    assert "link-local" in redirected.message
    assert "allow_networks" in local.message


async def test_two_bodies_are_refused() -> None:
    """Before anything runs where it can be seen, else before anything is sent."""
    with pytest.raises(flow.FlowError, match="has body and text; keep one of them"):
        asking("http_two", url="${{ input.url }}", text="a", body=1)
    steps = {"call": {"use": "http", "with": "${{ {'url': input.url, 'text': 'a', 'body': 1} }}"}}
    made = flow.parse(json.dumps({"name": "http_two", "input": {"url": "string"}, "steps": steps}))
    failure = await failure_of(made, "http://127.0.0.1:1/")

    assert "one of body, text and form" in failure.message


async def test_undoing_by_http() -> None:
    """A flow that fails after a request sends the request that takes it back."""
    document = {
        "name": "http_undo",
        "input": {"url": "string"},
        "steps": {
            "make": {
                "use": "http",
                "with": {"method": "POST", "url": "${{ input.url }}/things"},
                "undo": {"use": "http", "with": {"method": "DELETE", "url": "${{ input.url }}/${{ result.body.id }}"}},
            },
            "fail": {"use": "http", "after": ["make"], "with": {"url": "${{ input.url }}/fail"}},
        },
    }

    def handle(asked: Asked) -> bytes:
        if asked.path == "/things":
            return answer(200, '{"id": 7}', Content_Type="application/json")
        return answer(200 if asked.method == "DELETE" else 400)

    async with serving(handle) as web:
        await failure_of(flow.parse(json.dumps(document)), web.url("").rstrip("/"))

    assert [f"{asked.method} {asked.path}" for asked in web.asked] == ["POST /things", "GET /fail", "DELETE /7"]
