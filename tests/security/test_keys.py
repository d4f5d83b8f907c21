"""`engine.keys`: made once, kept as a hash, revoked at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outlive._features.security.keys import KEY_CELLS, USE_SECONDS
from outlive.errors import InvalidArgumentError
from outlive.errors.key import KeyNotFoundError
from outlive.testing import TestEngine
from tests.engine.inside import find_key, store_of


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine on time of its own."""
    async with TestEngine() as engine:
        yield engine


async def test_a_key_is_found_by_its_secret_and_by_nothing_else(engine: TestEngine) -> None:
    """Its record has a hash; a secret that is cut, longer, of another id or no text of this kind finds nothing. [S3]"""
    made = await engine.keys.create("ci", scope="operator", workflows=["order", "order", "bill"])
    other = await engine.keys.create("other")

    key = await find_key(engine, made.secret)
    assert key is not None
    assert (key.name, key.scope, key.workflows) == ("ci", "operator", ("bill", "order"))
    prefix, key_id, secret = made.secret.split("_", 2)
    assert (prefix, key_id, len(secret)) == ("olv", key.id, 43)
    held = await store_of(engine).read_cell(f"outlive.key/{key.id}")
    assert held is not None
    assert secret.encode() not in held
    assert secret not in repr(made)
    swapped = f"olv_{other.key.id}_{secret}"
    unknown = f"olv_{'a' * 16}_{secret}"
    for wrong in (
        "",
        "nothing",
        secret,
        made.secret[:-1],
        made.secret + "x",
        swapped,
        unknown,
        "olv_\0_x",
        "x" * 10_000,
    ):
        assert await find_key(engine, wrong) is None, wrong


async def test_a_revoked_key_is_refused_from_then_on(engine: TestEngine) -> None:
    """There is nothing to wait for: each request reads the key. Twice is fine."""
    made = await engine.keys.create("ci")
    kept = await engine.keys.create("kept")
    first = await engine.keys.revoke(made.key.id, reason="lost")

    assert await find_key(engine, made.secret) is None
    assert await find_key(engine, kept.secret) is not None
    assert (await engine.keys.revoke(made.key.id)).revoked_at == first.revoked_at
    assert {key.name: key.status for key in await engine.keys.list()} == {"ci": "revoked", "kept": "active"}
    with pytest.raises(KeyNotFoundError, match="there is no key nothing"):
        await engine.keys.revoke("nothing")
    assert len(await engine.keys.list()) == 2


async def test_a_key_expires(engine: TestEngine) -> None:
    """By the clock of the store. [S3]"""
    made = await engine.keys.create("short", expires=timedelta(hours=1))
    assert await find_key(engine, made.secret) is not None
    await engine.skip(timedelta(hours=1))

    assert await find_key(engine, made.secret) is None
    assert [key.status for key in await engine.keys.list()] == ["expired"]
    with pytest.raises(InvalidArgumentError, match="it is in the past"):
        await engine.keys.create("late", expires=datetime(2000, 1, 1, tzinfo=UTC))


async def test_a_revoked_key_with_an_expiry_ahead_is_refused(engine: TestEngine) -> None:
    """It is revoked, though it has not expired, and stays so when it has expired too. [S3]"""
    made = await engine.keys.create("ci", expires=timedelta(hours=1))
    await engine.keys.revoke(made.key.id)

    assert await find_key(engine, made.secret) is None
    await engine.skip(timedelta(hours=2))
    assert await find_key(engine, made.secret) is None
    assert [key.status for key in await engine.keys.list()] == ["revoked"]


async def test_a_use_that_is_noted_late_does_not_undo_a_revocation(engine: TestEngine) -> None:
    """A request reads the key, a person revokes it, and then the request notes its use. [S3]"""
    made = await engine.keys.create("ci")
    store = store_of(engine)
    change_cell = store.change_cell

    async def revoke_before_the_note(name: str, *rest: Any, **options: Any) -> Any:
        store.change_cell = change_cell  # type: ignore[method-assign]
        await engine.keys.revoke(made.key.id)
        return await store.change_cell(name, *rest, **options)

    store.change_cell = revoke_before_the_note  # type: ignore[method-assign]
    await find_key(engine, made.secret)

    (key,) = await engine.keys.list()
    assert (key.status, key.last_used_at is not None) == ("revoked", True)
    assert await find_key(engine, made.secret) is None


async def test_a_use_that_is_noted_late_does_not_repair_a_key_that_is_damaged(engine: TestEngine) -> None:
    """A use that is noted late does not write a damaged key again, so the key lets nothing in. [S3]"""
    made = await engine.keys.create("ci")
    store = store_of(engine)
    change_cell = store.change_cell

    def damage(held: bytes | None, at: int) -> tuple[bytes, bool]:
        return b"{", True

    async def damage_before_the_note(name: str, *rest: Any, **options: Any) -> Any:
        store.change_cell = change_cell  # type: ignore[method-assign]
        await change_cell(name, damage)
        return await store.change_cell(name, *rest, **options)

    store.change_cell = damage_before_the_note  # type: ignore[method-assign]
    await find_key(engine, made.secret)

    assert await store.read_cell(KEY_CELLS + made.key.id) == b"{"
    assert await find_key(engine, made.secret) is None


async def test_the_last_use_of_a_key_is_known_to_the_minute(engine: TestEngine) -> None:
    """Not every request writes."""
    made = await engine.keys.create("ci")
    assert made.key.last_used_at is None
    await find_key(engine, made.secret)
    (first,) = await engine.keys.list()
    await engine.skip(timedelta(seconds=USE_SECONDS - 1))
    await find_key(engine, made.secret)
    assert (await engine.keys.list())[0].last_used_at == first.last_used_at is not None
    await engine.skip(timedelta(seconds=1))
    await find_key(engine, made.secret)

    last = (await engine.keys.list())[0].last_used_at
    assert last is not None
    assert first.last_used_at is not None
    assert last - first.last_used_at == timedelta(seconds=USE_SECONDS)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"scope": "root"}, "scope"),
        ({"workflows": []}, "name at least one"),
        ({"name": ""}, "name"),
        ({"expires": -1}, "expires"),
    ],
)
async def test_a_key_that_makes_no_sense_is_refused(engine: TestEngine, wrong: dict[str, object], said: str) -> None:
    """With what to do."""
    with pytest.raises(InvalidArgumentError, match=said):
        await engine.keys.create(**{"name": "ci", **wrong})  # type: ignore[arg-type]


async def test_a_damaged_key_lets_no_request_in(engine: TestEngine, caplog: pytest.LogCaptureFixture) -> None:
    """It fails closed, and says so. [S43]"""
    made = await engine.keys.create("ci")
    await store_of(engine).change_cell(f"outlive.key/{made.key.id}", lambda *_: (b"{", None))

    assert await find_key(engine, made.secret) is None
    assert await engine.keys.list() == []
    assert "lets no request in" in caplog.text
