"""Namespaces: tenants on one store that cannot see each other, and their quotas."""

from __future__ import annotations

from pathlib import Path

import pytest

import outlive
from outlive.engine.namespace import in_namespace, list_namespaces
from outlive.errors import InvalidArgumentError, RunNotFoundError
from outlive.errors.run import QuotaExceededError
from outlive.errors.store import StoreUrlError
from outlive.testing import TestEngine


@outlive.workflow
async def held_in_namespace() -> str:
    """Waits for its tenant."""
    said: str = await outlive.wait_for_signal("go", str)
    return said


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("sqlite:orders.db", "sqlite:orders.acme.db"),
        ("sqlite:/var/lib/orders", "sqlite:/var/lib/orders.acme"),
        ("postgresql://a@b/c", "postgresql://a@b/c?schema=outlive__acme"),
        ("postgresql:///c?sslmode=require&schema=shop", "postgresql:///c?sslmode=require&schema=shop__acme"),
        ("memory:", "memory:"),
    ],
)
def test_a_namespace_is_a_store_of_its_own_where_the_url_points(url: str, found: str) -> None:
    """A schema beside the schema, a file beside the file."""
    assert in_namespace(url, "acme") == found
    assert in_namespace(url, None) == url


@pytest.mark.parametrize("name", ["", "Acme", "a__b", "a_b", "-a", "a-", "../etc", "a" * 31, "1a", "a.b", 7])
def test_a_name_that_could_mean_another_place_is_refused(name: str) -> None:
    """Two names are never one place. [S21 S33]"""
    with pytest.raises(InvalidArgumentError, match="namespace"):
        in_namespace("sqlite:orders.db", name)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:",
        "sqlite:/",
        "sqlite:..",
        "sqlite:///x.db",
        "sqlite::memory:",
        "postgresql://[::1/x",
        "nonsense",
        None,
        Path("sqlite:x.db"),
    ],
)
def test_a_url_that_names_no_store_has_no_namespace_either(url: str) -> None:
    """The error is the same as without a namespace."""
    for namespace in (None, "acme"):
        with pytest.raises(StoreUrlError):
            outlive.Engine(url, namespace=namespace)


async def see_each_other(url: str) -> None:
    """Two tenants use the same id; neither finds, lists or signals what is the other's."""
    async with (
        outlive.Engine(url, worker=False, namespace="acme") as acme,
        outlive.Engine(url, worker=False, namespace="globex") as globex,
        outlive.Engine(url, worker=False) as own,
    ):
        await acme.start(held_in_namespace, id="order-1", tags={"of": "acme"})
        await globex.start(held_in_namespace, id="order-1", tags={"of": "globex"})

        assert [run.tags["of"] for run in await acme.list()] == ["acme"]
        assert [run.tags["of"] for run in await globex.list()] == ["globex"]
        assert await own.list() == []
        with pytest.raises(RunNotFoundError):
            await own.signal("order-1", "go", "on")
        assert {"acme", "globex"} <= set(await list_namespaces(url))


async def test_tenants_of_one_file_do_not_see_each_other(tmp_path: Path) -> None:
    """Not by id, not in lists. [S33]"""
    await see_each_other(f"sqlite:{tmp_path / 'shop.db'}")


@pytest.mark.every_store
async def test_tenants_of_one_database_do_not_see_each_other(postgres_url: str) -> None:
    """Each has a schema of its own. [S33]"""
    await see_each_other(postgres_url)


async def test_a_quota_refuses_starts_beyond_it_and_finds_runs_that_are_there() -> None:
    """A quota of open runs refuses a new start, finds an existing run, and lets the next start through when one has
    ended. [S34]"""
    async with TestEngine(namespace="acme") as engine:
        await engine.quotas.set(open_runs=2)
        first = await engine.start(held_in_namespace, id="order-1")
        await engine.start(held_in_namespace, id="order-2")

        with pytest.raises(QuotaExceededError, match="'acme' has used up its quota of open runs"):
            await engine.start(held_in_namespace, id="order-3")
        assert (await engine.start(held_in_namespace, id="order-1")).id == "order-1"
        assert (await engine.quotas.usage()).open_runs == 2

        await first.signal("go", "on")
        await first.result()
        await engine.skip(seconds=2)
        assert (await engine.start(held_in_namespace, id="order-3")).id == "order-3"


async def test_a_quota_of_starts_begins_again_with_time() -> None:
    """Starts of more than a minute ago do not count."""
    async with TestEngine(namespace="acme") as engine:
        await engine.quotas.set(starts_per_minute=3)
        for _ in range(3):
            await engine.start(held_in_namespace)
        with pytest.raises(QuotaExceededError, match="starts per minute"):
            await engine.start(held_in_namespace)

        await engine.skip(seconds=61)
        await engine.start(held_in_namespace)
