"""Tokens of a run: what a page of a browser holds, and all that it cannot do with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import outlive
from outlive._features.security.run_tokens import TOKEN_CELLS
from outlive.http import Api, ApiLimits
from outlive.http.operation import OPERATIONS
from outlive.http.principal import NO_SCOPE
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.http.caller import Caller, Message

API = "/api/v1"
FOLLOWS = {"runs.follow", "runs.streams", "runs.follow_stream"}


@outlive.workflow(name="run_tokens.chat")
async def chat() -> str:
    """Emits to two streams, and waits."""
    await outlive.emit("words", "hello")
    await outlive.emit("log", "private")
    return str(await outlive.wait_for_signal("go"))


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """With one run that waits."""
    async with TestEngine() as engine:
        await engine.start(chat, id="chat-1")
        await engine.settle()
        yield engine


async def made(engine: TestEngine, *, key: str, **wanted: object) -> str:
    """A token for the run."""
    answer = await Caller(Api(engine, auth="keys"), key=key).post(f"{API}/runs/chat-1/tokens", wanted)
    assert answer.status == 201, answer.body
    return str(answer.data["token"])


async def viewer(engine: TestEngine) -> str:
    """The secret of a key that sees everything."""
    return (await engine.keys.create("page", scope="viewer")).secret


def is_last(messages: list[Message]) -> bool:
    """Whether both items were read."""
    return [it.name for it in messages].count("stream") == 1


async def test_a_token_follows_its_run(engine: TestEngine) -> None:
    """Its streams, and what happens to it."""
    caller = Caller(Api(engine, auth="keys"), key=await made(engine, key=await viewer(engine)))

    (word,) = await caller.follow(f"{API}/runs/chat-1/streams/words", until=is_last)
    first = await caller.follow(f"{API}/runs/chat-1/follow", until=bool)
    streams = await caller.get(f"{API}/runs/chat-1/streams")

    assert (word.name, word.data["value"]) == ("stream", "hello")
    assert first[0].name in ("journal", "run")
    assert [it["name"] for it in streams.data["items"]] == ["log", "words"]


async def test_a_token_can_do_nothing_else(engine: TestEngine) -> None:
    """A token of a run is refused by every operation but three, for its own run too. An operation that is added later
    is refused as well. [S6]"""
    token = await made(engine, key=await viewer(engine))
    caller = Caller(Api(engine, auth="keys"), key=token)
    passed = []
    for it in OPERATIONS.values():
        if it.scope != NO_SCOPE:
            path = it.path.replace("{run_id}", "chat-1").replace("{name}", "words")
            answer = await caller.send(it.method, path, leave_when=bool)
            passed += [it.name] if answer.status != 403 else []

    assert {it.name for it in OPERATIONS.values() if it.for_tokens} == FOLLOWS
    assert set(passed) == FOLLOWS


async def test_a_token_is_for_no_other_run(engine: TestEngine) -> None:
    """There or not: the answer is the same. [S12]"""
    caller = Caller(Api(engine, auth="keys"), key=await made(engine, key=await viewer(engine)))
    await engine.start(chat, id="chat-2")

    there = await caller.get(f"{API}/runs/chat-2/follow")
    gone = await caller.get(f"{API}/runs/chat-3/follow")

    assert (there.status, there.data) == (403, gone.data)


async def test_a_token_of_a_stream_shows_nothing_but_the_stream(engine: TestEngine) -> None:
    """Neither the journal nor another stream. [S6]"""
    token = await made(engine, key=await viewer(engine), stream="words")
    caller = Caller(Api(engine, auth="keys"), key=token)

    (word,) = await caller.follow(f"{API}/runs/chat-1/streams/words", until=is_last)
    others = [f"{API}/runs/chat-1/{it}" for it in ("follow", "follow?stream=words", "streams", "streams/log")]

    assert word.data["value"] == "hello"
    assert [(await caller.get(it)).status for it in others] == [403, 403, 403, 403]


async def test_a_token_expires(engine: TestEngine) -> None:
    """A token that expires ends what is followed with it and opens nothing more. [S3]"""
    token = await made(engine, key=await viewer(engine), expires_seconds=60)
    api = Api(engine, auth="keys", limits=ApiLimits(check_again_seconds=0.0))
    caller, began = Caller(api, key=token), asyncio.Event()

    def note(seen: list[Message]) -> bool:
        began.set()
        return False

    follower = asyncio.create_task(caller.follow(f"{API}/runs/chat-1/follow", until=note))
    await began.wait()

    await engine.skip(seconds=61)
    await engine.signal("chat-1", "go", "on")
    messages = await asyncio.wait_for(follower, 10)

    assert "end" not in [it.name for it in messages]
    assert (await caller.get(f"{API}/runs/chat-1/streams")).status == 401


async def test_a_token_ends_with_the_key_that_it_was_made_with(engine: TestEngine) -> None:
    """The person who revokes a key does not look for its tokens. [S3]"""
    key = await engine.keys.create("page", scope="viewer")
    caller = Caller(Api(engine, auth="keys"), key=await made(engine, key=key.secret))
    await engine.keys.revoke(key.key.id)

    assert (await caller.get(f"{API}/runs/chat-1/streams")).status == 401


async def test_a_token_is_not_for_a_run_that_takes_the_id_later(engine: TestEngine) -> None:
    """It is bound to the run and not to the name. [S12]"""
    caller = Caller(Api(engine, auth="keys"), key=await made(engine, key=await viewer(engine)))

    await engine.start(chat, id="chat-1", on_conflict="replace")
    await engine.settle()

    assert (await caller.get(f"{API}/runs/chat-1/streams")).status == 401


async def test_a_key_makes_tokens_for_runs_that_it_may_see(engine: TestEngine) -> None:
    """A run of others is not there; a worker's key sees none. [S12]"""
    bound = (await engine.keys.create("acme", scope="viewer", tags={"tenant": "acme"})).secret
    worker = (await engine.keys.create("gpu", scope="worker")).secret
    api = Api(engine, auth="keys")

    assert (await Caller(api, key=bound).post(f"{API}/runs/chat-1/tokens", {})).status == 404
    assert (await Caller(api, key=worker).post(f"{API}/runs/chat-1/tokens", {})).status == 403
    assert (await Caller(api, key=bound).post(f"{API}/runs/chat-9/tokens", {})).status == 404


async def test_a_token_is_kept_as_a_hash_and_is_in_the_audit_log(engine: TestEngine) -> None:
    """The log says who had it made for which run, and has no secret. [S3 S37]"""
    token = await made(engine, key=await viewer(engine), stream="words")
    id = token.split("_")[1]
    held = await store_of(engine).read_cell(TOKEN_CELLS + id)
    (entry,) = await engine.audit.list(verb="token.create")

    assert held is not None
    assert token.encode() not in held
    assert token.rpartition("_")[2].encode() not in held
    assert (entry.actor, entry.target, entry.reason) == ("page", "chat-1", "stream words")


@pytest.mark.parametrize("seconds", [0, -1, 3_601])
async def test_a_token_lives_for_an_hour_at_most(engine: TestEngine, seconds: float) -> None:
    """A token for no time or for more than an hour is refused. [S3]"""
    caller = Caller(Api(engine, auth="keys"), key=await viewer(engine))

    assert (await caller.post(f"{API}/runs/chat-1/tokens", {"expires_seconds": seconds})).status == 400


async def test_a_made_up_token_is_refused(engine: TestEngine) -> None:
    """Each try counts as a wrong key. [S5]"""
    token = await made(engine, key=await viewer(engine))
    api = Api(engine, auth="keys")
    wrong = f"{token[:-4]}AAAA"
    tries = [(await Caller(api, key=wrong).get(f"{API}/runs/chat-1/streams")).status for _ in range(22)]

    assert (tries[0], tries[-1]) == (401, 429)
