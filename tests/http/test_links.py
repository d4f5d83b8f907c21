"""Links to decide: opening one does nothing, using one decides once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive._features.approvals.deciding import Decider
from outlive.errors.run import ApprovalNotFoundError
from outlive.http import Api
from outlive.testing import TestEngine
from outlive.types import NewLink
from tests.engine.inside import store_of
from tests.http import shop
from tests.http.caller import Caller

FAR = "192.0.2.7"


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine with two runs that ask."""
    async with TestEngine() as engine:
        for number in range(2):
            await engine.start(shop.api_refund, id=f"run-{number}")
        await engine.settle()
        yield engine


async def link_for(engine: TestEngine, run_id: str = "run-0", *, approved: bool = True) -> NewLink:
    """A link for Ann."""
    return await engine.approvals.links.create(run_id, "refund", approved=approved, by="ann")


async def test_opening_a_link_does_nothing(engine: TestEngine) -> None:
    """However often: programs that read mail open it. It says what its button does. [S11]"""
    made = await link_for(engine)
    stranger = Caller(Api(engine, auth="keys"), address=FAR)
    pages = [await stranger.get(made.path) for _ in range(100)]

    assert {page.status for page in pages} == {200}
    assert b"Approve: Refund 5 EUR?" in pages[0].body
    assert b"You decide as ann" in pages[0].body
    assert b"<script" not in pages[0].body
    assert (await stranger.send("HEAD", made.path)).status == 200
    assert [entry.status for entry in await engine.get("run-0").approvals()] == ["pending"]


async def test_a_link_decides_once_and_as_the_person_it_is_for(engine: TestEngine) -> None:
    """For its own run and in its own way only; a second use is refused. [S11 S38]"""
    made, other = await link_for(engine, approved=False), await link_for(engine, "run-1")
    stranger = Caller(Api(engine, auth="keys"), address=FAR)
    headers = {"origin": "http://localhost", "content-type": "application/x-www-form-urlencoded", "content-length": "0"}
    answer = await stranger.post(made.path, headers=headers)

    assert (answer.status, answer.data["approved"], answer.data["by"]) == (200, False, "ann")
    assert await engine.get("run-0").result() is False
    for used in (await stranger.post(made.path), await stranger.get(made.path)):
        assert (used.status, used.code) == (404, "link_refused")
    assert [entry.status for entry in await engine.get("run-1").approvals()] == ["pending"]
    (entry,) = await engine.audit.list(verb="reject")
    assert (entry.actor, entry.target, entry.via) == ("ann", "run-0", "link")
    assert (await engine.approvals.links.use(other.token, comment="fine")).approved


async def test_a_person_who_presses_the_button_sees_a_page(engine: TestEngine) -> None:
    """A browser gets a page for a decision and for a used link, and a program gets JSON from the same address. [S11]"""
    made = await link_for(engine)
    stranger = Caller(Api(engine, auth="keys"), address=FAR)
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8", "origin": "http://localhost"}
    decided = await stranger.post(made.path, headers=browser | {"content-length": "0"})
    again = await stranger.get(made.path, headers=browser)

    assert (decided.status, decided.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"<h1>Approved: Refund 5 EUR?</h1>" in decided.body
    assert (again.status, again.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert b"ask for another one" in again.body
    assert (await stranger.get(made.path)).code == "link_refused"
    assert (await stranger.get("/api/v1/runs/run-0", headers=browser)).code == "unauthenticated"


async def test_a_link_is_refused_without_saying_why(engine: TestEngine) -> None:
    """Unknown, of another id, expired, decided by another person: the same answer. [S11 S12]"""
    made, other, short = (
        await link_for(engine),
        await link_for(engine, "run-1"),
        await engine.approvals.links.create("run-1", "refund", approved=True, by="ann", expires=timedelta(minutes=1)),
    )
    _, own_id, _ = made.token.split("_", 2)
    _, other_id, secret = other.token.split("_", 2)
    key = (await engine.keys.create("ci")).secret
    await engine.skip(minutes=1)
    await engine.approvals.reject("run-0", "refund", by="bob")
    stranger = Caller(Api(engine, auth="keys"), address=FAR)
    wrong = ["x", f"old_{own_id}_{secret}", f"old_{'a' * 16}_{secret}", key, short.token, made.token]
    answers = [await stranger.post(f"/decide/{token}") for token in wrong]

    assert {answer.status for answer in answers} == {404}
    assert len({answer.body for answer in answers}) == 1
    assert [entry.status for entry in await engine.get("run-1").approvals()] == ["pending"]
    held = await store_of(engine).read_cell(f"outlive.link/{other_id}")
    assert held is not None
    assert secret.encode() not in held
    assert secret not in repr(other)


async def test_a_link_is_not_for_a_run_that_takes_the_id_later(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it asks for the same: neither shown nor decided, also if it comes while the link is used. [S11 S12]"""
    made = await link_for(engine)

    async def replace_run() -> None:
        await engine.start(shop.api_refund, id="run-0", on_conflict="replace")
        await engine.settle()

    decide = Decider.decide

    async def decide_late(self: Decider, *args: Any, **options: Any) -> Any:
        await replace_run()
        return await decide(self, *args, **options)

    monkeypatch.setattr(Decider, "decide", decide_late)
    stranger = Caller(Api(engine, auth="keys"), address=FAR)
    answers = [await stranger.post(made.path), await stranger.get(made.path), await stranger.post(made.path)]

    assert [(404, "link_refused")] * 3 == [(answer.status, answer.code) for answer in answers]
    assert [entry.status for entry in await engine.get("run-0").approvals()] == ["pending"]


async def test_two_clicks_at_once_are_one_decision(engine: TestEngine) -> None:
    """Both go to the store; one decides."""
    made = await link_for(engine)
    outcomes = await asyncio.gather(*(engine.approvals.links.use(made.token) for _ in range(2)), return_exceptions=True)

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Approval", "LinkRefusedError"]
    assert len(await engine.audit.list(verb="approve")) == 1


async def test_a_link_is_made_for_what_a_run_waits_for(engine: TestEngine) -> None:
    """By an administrator over HTTP, with a row in the log; not for something else."""
    with pytest.raises(ApprovalNotFoundError):
        await engine.approvals.links.create("run-0", "nothing", approved=True, by="ann")
    key = await engine.keys.create("desk", scope="admin")
    desk = Caller(Api(engine, auth="keys"), key=key.secret)
    made = await desk.post("/api/v1/runs/run-0/approvals/refund/links", {"approved": True, "by": "ann"})

    assert made.status == 201
    assert [it.reason for it in await engine.audit.list(verb="link.create")] == ["approve refund, for ann"]
    assert (await Caller(Api(engine, auth="keys")).post(made.data["path"])).status == 200
    assert (await desk.post("/api/v1/runs/run-0/approvals/refund/links", {"approved": True, "by": "ann"})).status == 404


async def test_a_page_of_a_link_escapes_its_data() -> None:
    """The page of a link escapes the title and the name that it shows. [S14]"""
    async with TestEngine() as engine:
        await engine.start(hostile_refund, id="run-0")
        await engine.settle()
        made = await engine.approvals.links.create("run-0", "refund", approved=True, by="<b>ann</b>")
        page = await Caller(Api(engine)).get(made.path)

    assert b"<img" not in page.body
    assert b"<b>" not in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]


@outlive.workflow
async def hostile_refund() -> bool:
    """Asks with a title that is markup."""
    return bool(await outlive.wait_for_approval("refund", title="</title><img src=x onerror=alert(1)>{verb}"))
