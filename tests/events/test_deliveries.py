"""The outbox: events are delivered to HTTP sinks, at least once, with a stable id, back-off and dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

import outlive
from outlive._features.flows.outside import settings
from outlive.errors import InvalidArgumentError
from outlive.http.problem import Problem
from outlive.http.signature import check_signature
from outlive.testing import TestEngine
from tests.engine.dying import deaths
from tests.engine.support import Place, in_time

OPEN = ("pending", "running", "waiting")
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@outlive.workflow(name="deliveries.sell")
async def sell(number: int) -> list[str]:
    """Sends an event."""
    sent = await outlive.events.send("deliveries.sold", {"number": number})
    return [run.run_id for run in sent.deliveries]


class Receiver:
    """A server of another company, on this machine."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[str] = []
        """What the next answers are: a status, and headers perhaps; 200 OK when there are none."""
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        lines = [line.partition(": ") for line in head[1:]]
        headers = {name.lower(): value for name, _, value in lines}
        self.requests.append((headers, await reader.readexactly(int(headers["content-length"]))))
        said = self.answers.pop(0) if self.answers else "200 OK"
        if said:
            writer.write(f"HTTP/1.1 {said}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
        writer.close()

    @property
    def ids(self) -> list[str]:
        """The ids of the deliveries that came, in order."""
        return [headers["webhook-id"] for headers, _ in self.requests]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A sink that can be reached."""
    found = Receiver()
    async with await asyncio.start_server(found.serve, "127.0.0.1", 0) as server:
        found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hooks"
        with settings.using(settings.read({"http": {"allow_hosts": ["127.0.0.1"]}})):
            yield found


async def test_an_event_is_delivered_signed_and_once(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pending in the transaction that takes it, then delivered; sent again it is the same delivery. [FB-S6 FB-R16]"""
    monkeypatch.setenv("OUTLIVE_SECRET_CRM_KEY", KEY)
    async with TestEngine() as engine:
        await engine.events.add_sink("crm", receiver.url, types=["deliveries.*"], secret="crm_key")
        sent = await engine.events.send("deliveries.sold", {"number": 7}, id="e1", source="shop")
        again = await engine.events.send("deliveries.sold", {"number": 7}, id="e1", source="shop")
        assert [(True, False)] == [(a.is_new, b.is_new) for a, b in zip(sent.deliveries, again.deliveries, strict=True)]
        assert 200 == await engine.get(sent.deliveries[0].run_id).result()
        assert [] == (await engine.events.send("others.sold")).deliveries
        ((headers, body),) = receiver.requests
        event = {"id": "e1", "type": "deliveries.sold", "source": "shop", "data": {"number": 7}}
        assert event.items() <= msgspec.json.decode(body).items()
        now = engine.clock.now() / 1_000_000
        assert headers["webhook-id"] == check_signature(KEY, headers, body, now_seconds=now)
        with pytest.raises(Problem):
            check_signature("another key", headers, body, now_seconds=now)


async def test_a_sink_that_is_away_is_tried_again_and_then_a_dead_letter(receiver: Receiver) -> None:
    """Later and later, with the same id; then the run has failed, and a retry delivers it. [FB-R16 FB-S7 FE-R15]"""
    async with TestEngine() as engine:
        await engine.events.add_sink("crm", receiver.url)
        receiver.answers = ["503 Busy", "", "429 Slow\r\nRetry-After: 100", *["500 Broken"] * 12]
        begun = engine.clock.now()
        sent = await engine.events.send("deliveries.sold", id="e1")
        run = engine.get(sent.deliveries[0].run_id)
        with pytest.raises(outlive.errors.RunFailedError, match="status 500"):
            await run.result()
        assert timedelta(days=1) < timedelta(microseconds=engine.clock.now() - begun) < timedelta(days=3)
        assert (15, 1) == (len(receiver.requests), len(set(receiver.ids)))
        dead = await engine.list(workflow="outlive.delivery", status="failed", tags={"sink": "crm"}, limit=10)
        assert [run.id] == [each.id for each in dead]
        await engine.retry(run.id)
        assert 200 == await run.result()


async def test_a_sink_that_does_not_want_an_event_is_not_asked_again(receiver: Receiver) -> None:
    """Nor one that may not be reached, nor one that is gone; the reason is in the failure."""
    async with TestEngine() as engine:
        await engine.events.add_sink("crm", receiver.url)
        await engine.events.add_sink("inner", "http://169.254.169.254/latest")
        receiver.answers = ["410 Gone"]
        sent = await engine.events.send("deliveries.sold")
        reasons = []
        for each in sent.deliveries:
            with pytest.raises(outlive.errors.RunFailedError) as failed:
                await engine.get(each.run_id).result()
            reasons.append(str(failed.value))
        assert "status 410" in reasons[0]
        assert "169.254.169.254" in reasons[1]
        assert 1 == len(receiver.requests)
        await engine.pause(workflow="outlive.delivery")
        sent = await engine.events.send("deliveries.sold")
        for name in ("crm", "inner", "crm"):
            await engine.events.remove_sink(name)
        await engine.resume(workflow="outlive.delivery")
        with pytest.raises(outlive.errors.RunFailedError, match="no such sink"):
            await engine.get(sent.deliveries[0].run_id).result()
        assert [] == await engine.events.sinks()


async def test_a_key_that_this_worker_does_not_have_yet_is_waited_for(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent unsigned, and nothing is given up for it; what is pending is found by its age. [FB-S7]"""
    async with TestEngine() as engine:
        await engine.events.add_sink("crm", receiver.url, secret="late_key")
        sent = await engine.events.send("deliveries.sold")
        run = engine.get(sent.deliveries[0].run_id)
        await engine.skip(seconds=30)
        await engine.events.send("deliveries.sold")
        assert [] == receiver.requests
        assert "next attempt of outlive.deliver" in await run.why()
        old = datetime.fromtimestamp(engine.clock.now() / 1_000_000 - 10, UTC)
        pending = await engine.list(workflow="outlive.delivery", status=OPEN, until=old, limit=1)
        assert [run.id] == [each.id for each in pending]
        monkeypatch.setenv("OUTLIVE_SECRET_LATE_KEY", KEY)
        assert 200 == await run.result()


async def test_a_slow_sink_does_not_hold_up_the_others(receiver: Receiver) -> None:
    """Its deliveries wait behind its own slots; and other runs do not wait behind deliveries. [FB-S8]"""
    gate, waiting = asyncio.Event(), asyncio.Semaphore(0)

    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting.release()
        await gate.wait()
        writer.close()

    async with await asyncio.start_server(stall, "127.0.0.1", 0) as server, outlive.Engine("memory:") as engine:
        await engine.events.add_sink("slow", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", types=["slow"])
        await engine.events.add_sink("quick", receiver.url, types=["quick"])
        for number in range(12):
            await engine.events.send("slow", id=str(number))
        for _ in range(10):
            await in_time(waiting.acquire())
        sent = await engine.events.send("quick")
        assert 200 == await in_time(engine.get(sent.deliveries[0].run_id).result())
        assert 2 == (await engine.queues.stats("outlive.deliveries")).in_line
        await engine.cancel(workflow="outlive.delivery", status=("running", "pending"))
        gate.set()


@pytest.mark.any_store
async def test_a_workflow_that_is_killed_delivers_its_event_once_in_the_store(place: Place, receiver: Receiver) -> None:
    """Killed at every commit: there is one delivery for each run, and the sink sees one id for it. [FB-R16]"""
    async with place.engine(worker=False) as client:
        await client.events.add_sink("crm", receiver.url)
    runs = 0
    async for run_id in deaths(place, sell, 7):
        async with place.engine() as engine:
            (delivery,) = await in_time((await engine.start(sell, 7, id=run_id)).result())
            assert 200 == await in_time(engine.get(delivery).result())
            runs += 1
            assert runs == await engine.count(workflow="outlive.delivery") == len(set(receiver.ids))


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "ftp://x"},
        {"url": "crm"},
        {"url": "https://me:word@crm.example/"},
        {"types": "x"},
        {"types": []},
        {"types": ["order.*.paid"]},
        {"name": "a b"},
        {"secret": "whsec_word@"},
        {"secret": "a word@ of it"},
    ],
)
async def test_a_sink_that_cannot_work_is_refused(wrong: dict[str, Any]) -> None:
    """A sink with a wrong address, pattern, name or secret is refused, and the message shows neither password nor
    secret."""
    right = {"name": "crm", "url": "https://crm.example/hooks", "types": ["*"]}
    async with outlive.Engine("memory:", worker=False) as engine:
        with pytest.raises(InvalidArgumentError, match="add_sink") as refused:
            await engine.events.add_sink(**(right | wrong))
        assert "word@" not in str(refused.value)
