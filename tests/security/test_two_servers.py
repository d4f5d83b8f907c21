"""Two servers on one store, and requests that overlap: what one of them has accepted, the other keeps to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from typing import Any

import pytest

import outlive
from outlive.errors import OutliveError
from outlive.http import Api, ApiLimits
from tests.engine.support import Place, until
from tests.http.caller import Answer, Caller

FAR = "192.0.2.7"
API = "/api/v1"
RUNS = f"{API}/runs"
AT_ONCE = 8
DOCUMENT = "name: two-servers\nsteps:\n  rest:\n    use: sleep\n    with: {seconds: %d}\n"


@outlive.workflow
async def two_servers_wait(note: str) -> str:
    """Waits for a person."""
    answer = await outlive.wait_for_approval("refund", title=note)
    return f"{answer.by} {answer.approved}"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Any) -> Place:
    """A store that several processes may use."""
    place = Place(tmp_path / "engine.db")
    if request.param == "postgres":
        place.server_url = request.getfixturevalue("postgres_url")
    return place


@pytest.fixture
async def servers(place: Place) -> AsyncIterator[list[outlive.Engine]]:
    """Two engines on it, each with a connection of its own."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(place.engine(worker=first)) for first in (True, False)]


def callers(servers: list[outlive.Engine], key: str) -> list[Caller]:
    """A caller of each server, with the same key, so often as there are requests at once."""
    apps = [Api(engine, auth="keys") for engine in servers]
    return [Caller(apps[number % len(apps)], key=key, address=FAR) for number in range(AT_ONCE)]


async def asked(run: outlive.types.RunHandle[Any]) -> None:
    """People have been asked."""

    async def has_asked() -> bool:
        return bool(await run.approvals())

    await until(has_asked)


async def at_once(*requests: Awaitable[Answer]) -> list[Answer]:
    """The answers to requests that are sent at the same moment."""
    return list(await asyncio.gather(*requests))


async def test_a_key_works_on_both_servers_until_one_revokes_it(servers: list[outlive.Engine]) -> None:
    """It is used, noted as used and revoked at the same moment; no use that is noted late lets it in again. [S3 S50]"""
    made = await servers[0].keys.create("a", scope="operator")
    each = callers(servers, made.secret)
    admin = await servers[0].keys.create("admin", scope="admin")
    revoker = Caller(Api(servers[1], auth="keys"), key=admin.secret, address=FAR)

    await at_once(*(it.get(RUNS) for it in each), revoker.post(f"{API}/keys/{made.key.id}/revoke"))
    after = await at_once(*(it.get(RUNS) for it in each))

    assert {401} == {answer.status for answer in after}
    assert ["revoked"] == [key.status for key in await servers[0].keys.list() if key.name == "a"]
    assert 1 == len(await servers[1].audit.list(verb="key.revoke"))


async def test_many_decisions_at_once_on_two_servers_are_one(servers: list[outlive.Engine]) -> None:
    """One of many decisions at once on two servers counts, all callers get that one, and it alone is in the audit log.
    [S38 S50]"""
    run = await servers[0].start(two_servers_wait, "x", id="asks")
    await asked(run)
    keys = [await servers[0].keys.create(f"key-{number}", scope="operator") for number in range(AT_ONCE)]
    apps = [Api(engine, auth="keys") for engine in servers]
    each = [Caller(apps[number % 2], key=key.secret, address=FAR) for number, key in enumerate(keys)]
    verbs = ["approve", "reject"] * (AT_ONCE // 2)

    answers = await at_once(
        *(it.post(f"{RUNS}/asks/approvals/refund/{verb}") for it, verb in zip(each, verbs, strict=True))
    )

    assert [200] * AT_ONCE == [answer.status for answer in answers]
    said = {(answer.data["by"], answer.data["approved"]) for answer in answers}
    assert 1 == len(said)
    assert 1 == sum(answer.data["is_first"] for answer in answers)
    [(by, approved)] = said
    assert f"{by} {approved}" == await run.result()
    deeds = [entry for verb in ("approve", "reject") for entry in await servers[0].audit.list(verb=verb)]
    assert [by] == [entry.actor for entry in deeds]


@pytest.mark.parametrize("what", ["runs", "batches", "fork", "bulk"])
async def test_a_request_that_is_sent_to_both_servers_is_done_once(servers: list[outlive.Engine], what: str) -> None:
    """With the same `Idempotency-Key`, at the same moment: the same answer, one run, one row in the audit log. [S50]"""
    await servers[0].start(two_servers_wait, "x", id="origin")
    await servers[0].start(two_servers_wait, "x", id="other", tags={"t": "1"})
    key = await servers[0].keys.create("a", scope="admin")
    before = int(await servers[0].count())
    path, body = {
        "runs": (RUNS, {"workflow": "two_servers_wait", "arguments": ["x"]}),
        "batches": (f"{API}/batches", {"workflow": "two_servers_wait", "rows": ["x"]}),
        "fork": (f"{RUNS}/origin/fork", {}),
        "bulk": (f"{API}/bulk/cancel", {"tags": {"t": "1"}}),
    }[what]

    headers = {"idempotency-key": "k"}
    answers = await at_once(*(it.post(path, body, headers=headers) for it in callers(servers, key.secret)))

    assert {201 if what != "bulk" else 200} == {answer.status for answer in answers}, answers
    assert 1 == len({answer.body for answer in answers})
    assert before + (what != "bulk") == len(await servers[0].list(roots_only=True, limit=100))
    verbs = {"runs": "start", "batches": "start", "fork": "fork", "bulk": "cancel"}
    assert 1 == len(await servers[1].audit.list(verb=verbs[what]))


async def test_flows_that_are_published_at_once_are_revisions_one_after_the_other(
    servers: list[outlive.Engine],
) -> None:
    """None is lost, and no two have the same number. [S50]"""
    key = await servers[0].keys.create("a", scope="admin")
    each = callers(servers, key.secret)
    answers = await at_once(
        *(it.post(f"{API}/flows", {"document": DOCUMENT % number}) for number, it in enumerate(each, start=1))
    )
    history = (await each[0].get(f"{API}/flows/two-servers/history")).data["items"]

    done = [answer for answer in answers if answer.status < 300]
    assert {200, 201, 409} >= {answer.status for answer in answers}, [answer.body for answer in answers]
    assert done
    assert len(done) == len(history)
    assert len(done) == len({entry["number"] for entry in history})


async def test_a_link_that_is_used_on_both_servers_at_once_decides_once(servers: list[outlive.Engine]) -> None:
    """A link that is used on both servers at the same moment decides once. [S11 S50]"""
    run = await servers[0].start(two_servers_wait, "x", id="asks")
    await asked(run)
    made = await servers[0].approvals.links.create("asks", "refund", approved=True, by="ann")

    async def click(engine: outlive.Engine) -> bool:
        try:
            await engine.approvals.links.use(made.token)
        except OutliveError:
            return False
        return True

    clicked = await asyncio.gather(*(click(servers[number % 2]) for number in range(AT_ONCE)))

    assert 1 == sum(clicked)
    assert "ann True" == await run.result()


async def test_a_key_that_is_revoked_while_a_body_arrives_changes_nothing() -> None:
    """A body may take half a minute, and a program may hold many requests open for later. [S3 S50]"""
    async with outlive.Engine("memory:", worker=False) as engine:
        made = await engine.keys.create("a", scope="operator")
        api = Api(engine, auth="keys", limits=ApiLimits(check_again_seconds=0.0))

        async def late(scope: Any, receive: Any, send: Any) -> None:
            async def receive_late() -> Any:
                await engine.keys.revoke(made.key.id)
                return await receive()

            await api(scope, receive_late, send)

        sent = await Caller(late, key=made.secret, address=FAR).post(RUNS, {"workflow": "x", "arguments": []})
        started = await engine.count()

    assert 401 == sent.status, sent.body
    assert 0 == started
