"""Bodies of strangers: who sends one is looked at first, and what all of them hold together has a limit."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from outlive import flow
from outlive._features.approvals.link_operations import DecideByLink
from outlive._features.batches import starting as batches
from outlive._kernel.client import definitions, slices
from outlive.engine import view
from outlive.flow import FlowInputError
from outlive.http import Api, ApiLimits, exchange
from outlive.http.exchange import Request
from outlive.http.nesting import CONTAINERS_MAX, holds_more, is_deeper
from outlive.http.operation import Call, operation
from outlive.testing import TestEngine
from outlive.types import NewLink
from tests.http import shop
from tests.http.caller import Answer, Caller

FAR = "192.0.2.7"
HOOKS = """
name: bodied.{name}
input: {{ order: any }}
vars:
  key: {{ type: string, secret: true, env: BODIED_KEY }}
triggers:
  - webhook: /bodied/{name}
    {more}
steps:
  look: {{ use: noop }}
"""
TOKEN = "a-token-of-a-sender-that-is-known"


@pytest.fixture(autouse=True)
def _hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BODIED_KEY", TOKEN)
    for name, more in (("open", "manual: false"), ("token", "token: key"), ("signed", "hmac: key")):
        flow.parse(HOOKS.format(name=name, more=more))


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine with a run that asks."""
    async with TestEngine() as engine:
        await engine.start(shop.api_refund, id="run-0")
        await engine.settle()
        yield engine


async def link_for(engine: TestEngine) -> NewLink:
    """A link for Ann."""
    return await engine.approvals.links.create("run-0", "refund", approved=True, by="ann")


class Sender:
    """Sends a request whose body comes only when it says so."""

    def __init__(self, api: Api, path: str, *, headers: dict[str, str] | None = None, address: str = FAR) -> None:
        self.body = b""
        self.is_asked = asyncio.Event()
        """The app reads the body."""
        self.is_asked_first = False
        """It did so before it began to answer."""
        self._goes_on, self._said = asyncio.Event(), list[Any]()
        own = {"host": "localhost", "content-type": "application/json", "content-length": "1000000"} | (headers or {})
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in own.items()],
            "client": (address, 5000),
        }
        self._task = asyncio.ensure_future(api(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        self.is_asked_first = self.is_asked_first or not self._said
        body, self.body = self.body, b""
        if not body:
            self.is_asked.set()
            await self._goes_on.wait()
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.request", "body": body, "more_body": True}

    async def _send(self, message: Any) -> None:
        self._said.append(message)

    async def end(self) -> Answer:
        """Send the end of the body; the answer."""
        self._goes_on.set()
        await self._task
        return Answer(self._said[0]["status"], {}, b"".join(each.get("body", b"") for each in self._said[1:]))


# -- Who sends it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/decide/old_0123_nothing", {}, 404),
        ("/webhooks/bodied/token", {"x-webhook-token": "wrong"}, 401),
        ("/webhooks/bodied/token", {}, 401),
        ("/webhooks/bodied/signed", {}, 401),
        ("/webhooks/bodied/signed", {"webhook-id": "1", "webhook-timestamp": "7", "webhook-signature": "v1,x"}, 401),
        ("/api/v1/runs", {"authorization": "Bearer wrong"}, 401),
    ],
)
async def test_a_body_of_a_sender_who_is_refused_is_not_read(
    engine: TestEngine, path: str, headers: dict[str, str], status: int
) -> None:
    """The answer begins before any of it is asked for. [S10 S35]"""
    sender = Sender(Api(engine, auth="keys"), path, headers=headers)
    answer = await sender.end()

    assert (answer.status, sender.is_asked_first) == (status, False)


async def test_a_link_takes_a_small_body(engine: TestEngine) -> None:
    """16 KiB; a link that was sent with more can be used again. [S35]"""
    made, stranger = await link_for(engine), Caller(Api(engine, auth="keys"), address=FAR)
    large = await stranger.post(made.path, body=[b'{"comment": "', b"x" * 16_384, b'"}'])
    small = await stranger.post(made.path, {"comment": "x" * 9_000})

    assert [413, 200] == [large.status, small.status]


async def test_a_webhook_that_knows_no_sender_takes_a_small_body(engine: TestEngine) -> None:
    """Who has its token may send more. [S35]"""
    api = Caller(Api(engine, auth="keys"), address=FAR)
    body = {"order": "x" * 16_384}
    unknown = await api.post("/webhooks/bodied/open", body)
    known = await api.post("/webhooks/bodied/token", body, headers={"x-webhook-token": TOKEN})

    assert [413, 202] == [unknown.status, known.status]


def test_an_operation_without_a_key_looks_at_its_sender_before_a_body() -> None:
    """One that does not is an error while it is imported. [S35]"""

    async def take_anything(call: Call, body: DecideByLink) -> None:
        """Take what anyone sends."""

    with pytest.raises(AssertionError, match=r"anything\.take reads a body"):
        operation("anything.take", "POST", "/anything", scope="none", answers=204)(take_anything)


# -- All of them together -------------------------------------------------------------------------------------------


async def test_all_bodies_together_are_limited(engine: TestEngine) -> None:
    """A request without room for its body gets 503, and finds room when another one was answered. [S35]"""
    made = await link_for(engine)
    api = Api(engine, auth="keys", limits=ApiLimits(open_bodies_bytes_max=10_000))
    first = Sender(api, made.path, headers={"content-length": "4000"})
    first.body = b" " * 4_000
    await first.is_asked.wait()
    stranger = Caller(api, address=FAR)
    second = await stranger.post(made.path, body=[b" " * 4_000])
    await first.end()
    third = await stranger.post(made.path, body=[b" " * 4_000])

    assert (second.status, second.code, second.headers["retry-after"]) == (503, "too_busy", "5")
    assert third.status != 503


async def test_bodies_of_one_stranger_leave_room_for_those_of_another(engine: TestEngine) -> None:
    """Who has no key is counted by address, of IPv6 by network; a proxy of this machine sends for many. [S35 S51]"""
    made = await link_for(engine)

    async def statuses(*addresses: str) -> list[int]:
        api = Api(engine, auth="keys", limits=ApiLimits(open_bodies_bytes_max=10_000))
        senders: list[Sender] = []
        for address in addresses:
            senders.append(Sender(api, made.path, headers={"content-length": "4000"}, address=address))
            senders[-1].body = b" " * 2_500
            await senders[-1].is_asked.wait()
        return [(await sender.end()).status for sender in senders]

    assert await statuses(FAR, FAR, FAR, "192.0.2.8") == [400, 400, 503, 400]
    assert await statuses("2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1") == [400, 400, 503, 400]
    assert await statuses("127.0.0.1", "127.0.0.1", "127.0.0.1") == [400, 400, 400]


async def test_a_body_in_small_parts_takes_no_more_memory_than_its_bytes(engine: TestEngine) -> None:
    """A body in parts of two bytes takes less than ten times its length in memory, where objects of their own would
    take twenty. [S35]"""
    count = 50_000

    async def receive() -> dict[str, Any]:
        nonlocal count
        count -= 1
        return {"type": "http.request", "body": bytes([count % 256, 32]), "more_body": count > 0}

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"transfer-encoding", b"chunked")]}
    tracemalloc.start()
    try:
        body = await Request(scope, receive).body(bytes_max=1_000_000, seconds=30)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(body) == 100_000
    assert most < 10 * len(body)


async def test_bodies_of_one_key_leave_room_for_those_of_another(engine: TestEngine) -> None:
    """A tenant that holds many slow bodies open gets half of what there is, whatever its keys are
    called. [S33 S35 S51]"""
    api = Api(engine, auth="keys", limits=ApiLimits(bodies_bytes_max=10_000))
    made = [await engine.keys.create("app", scope="operator", tags={"tenant": name}) for name in ("a", "b")]
    noisy, quiet = ({"authorization": f"Bearer {each.secret}", "content-length": "4000"} for each in made)
    senders: list[Sender] = []
    for headers in (noisy, noisy, noisy, quiet):
        senders.append(Sender(api, "/api/v1/runs", headers=headers))
        senders[-1].body = b" " * 2_500
        await senders[-1].is_asked.wait()

    answers = [await sender.end() for sender in senders]
    assert [400, 400, 503, 400] == [answer.status for answer in answers], answers


async def test_senders_that_are_not_known_do_not_use_up_what_others_need(engine: TestEngine) -> None:
    """They have a small budget of their own. [S35]"""
    limits = ApiLimits(open_bodies_bytes_max=10, bodies_bytes_max=10_000)
    api = Caller(Api(engine, auth="keys", limits=limits), address=FAR)
    unknown = await api.post("/webhooks/bodied/open", {"order": "x" * 100})
    known = await api.post("/webhooks/bodied/token", {"order": "x" * 100}, headers={"x-webhook-token": TOKEN})

    assert [503, 202] == [unknown.status, known.status]


async def test_room_of_a_body_is_given_back_however_its_request_ends(engine: TestEngine) -> None:
    """The room of a body is given back when its request is refused or was too large. [S35]"""
    limits = ApiLimits(body_bytes_max=800, bodies_bytes_max=1_000)
    api = Caller(Api(engine, limits=limits))
    for body in (b"[" * 700, b'{"workflow": "' + b"x" * 700 + b'"}', b"x" * 900):
        assert (await api.post("/api/v1/runs", body=[body])).status in (400, 413)

    assert (await api.post("/api/v1/runs", {"workflow": "none"})).status == 404


@pytest.mark.parametrize("row_seconds", [0.0001, 0.001, 0.02])
async def test_the_rows_of_a_batch_give_way_to_other_requests(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch, row_seconds: float
) -> None:
    """Rows are checked, and cut into chunks, for a slice of time, and then others have their turn: a dear row counts
    for more than a cheap one. [S35 S51]"""
    turns, now = 0, 0.0
    checked: Counter[int] = Counter()
    check = definitions.checked_input

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def count(*arguments: Any, **named: Any) -> bytes:
        nonlocal now
        checked[turns] += 1
        now += row_seconds
        return await check(*arguments, **named)

    monkeypatch.setattr(batches, "checked_input", count)
    monkeypatch.setattr(slices, "_now", lambda: now)
    other = asyncio.ensure_future(take_turns())
    answer = await Caller(Api(engine)).post("/api/v1/batches", {"workflow": "api_fussy", "rows": [1] * 200})
    other.cancel()

    assert (answer.status, checked.total()) == (201, 200)
    assert max(checked.values()) <= slices.SLICE_SECONDS / row_seconds + 1


# -- Looking at it --------------------------------------------------------------------------------------------------

DEEP = {"lists": b"[],", "maps": b'{"a":1},', "open": b"[", "texts": b'"[",', "marks": b'"\\"[",', "mixed": b'["["],'}


@pytest.mark.parametrize("part", DEEP)
def test_the_depth_of_json_costs_no_step_for_each_bracket(part: str) -> None:
    """A text of ten times the length takes as many lines of Python. [S35]"""

    def lines(text: bytes) -> int:
        count = 0

        def trace(frame: Any, event: str, arg: Any) -> Any:
            nonlocal count
            count += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            is_deeper(text, 100)
        finally:
            sys.settrace(before)
        return count

    assert lines(b"[" * 99 + DEEP[part] * 1_000) == lines(b"[" * 99 + DEEP[part] * 10_000)


async def test_a_body_that_does_not_fit_is_not_walked_through() -> None:
    """Where nothing is redacted, nothing has to be found in it; in a long one nothing is looked for. [S35 S44]"""
    rows = [f"card-{number:04}" for number in range(10_000)]
    said: list[str] = []
    for redact in ([], ["card"]):
        async with TestEngine(redact=redact) as engine:
            api = Caller(Api(engine))
            for cards in (rows[:1], rows):
                walked: list[Any] = []
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(view, "public_value", lambda value, what, walked=walked: walked.append(value) or {})
                    answer = await api.post(
                        "/api/v1/runs", {"workflow": "none", "id": "x", "arguments": {"card": cards}}
                    )
                assert answer.status == 404
                said.append(f"{len(walked)} {answer.data['detail'][:30]}")

    assert said == [
        "0 no worker has described a work",
        "0 no worker has described a work",
        "1 no worker has described a work",
        "0 what was sent is too long to s",
    ]


async def test_a_body_with_too_many_maps_and_lists_is_refused(engine: TestEngine) -> None:
    """A body with too many maps and lists is refused; brackets in texts do not count. [S35]"""
    assert not holds_more(b"[" + b"{}," * 9 + b'"[[[{{{"]', 10)
    assert holds_more(b"[" + b"{}," * 10 + b'"]"]', 10)
    flow.parse(HOOKS.format(name="many", more="manual: false"))
    await engine.flows.apply(HOOKS.format(name="many", more="manual: false"))
    api = Caller(Api(engine))
    rows = b'{"workflow": "api_fussy", "rows": [' + b"[]," * CONTAINERS_MAX + b"1]}"
    many = await api.post("/api/v1/batches", body=[rows])
    unknown = await api.post(
        "/api/v1/flows/bodied.many/runs", {"input": {"order": 1}, "vars": {f"name_{each}": 1 for each in range(9_000)}}
    )

    assert (many.status, many.data["detail"]) == (400, "the body holds more than 250,000 maps and lists")
    assert (unknown.status, unknown.code) == (422, "flow_input")
    with pytest.raises(FlowInputError) as error:
        await engine.flows.start("bodied.many", {"order": 1}, vars={f"name_{each}": 1 for each in range(9_000)})
    assert len(error.value.problems) == 100


@pytest.mark.parametrize(("sizes", "read"), [((4, 4), 1), ((3, 9, 9), 2), ((2, 1, 0), 3), ((3, 1, 9), 2)])
async def test_what_is_left_of_a_body_is_dropped_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], read: int
) -> None:
    """The answer ends when so many bytes were dropped, or at the end of the body."""
    monkeypatch.setattr(exchange, "UNREAD_BYTES_MAX", 4)
    left, sent = list(sizes), list[Any]()

    async def receive() -> dict[str, Any]:
        size = left.pop(0)
        return {"type": "http.request", "body": b"x" * size, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append((message["body"], message.get("more_body", False)))

    scope = {"method": "POST", "path": "/", "headers": [(b"content-length", b"30")]}
    await Request(scope, receive).answer(send, b"no")

    assert len(sizes) - len(left) == read
    assert sent == [(b"no", True), (b"", False)]
