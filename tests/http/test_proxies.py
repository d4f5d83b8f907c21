"""Proxies in front of a server say from where a request comes, if the operator lists them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from outlive.errors import ConfigurationError
from outlive.http import Api
from outlive.http.proxies import Proxies
from outlive.testing import TestEngine
from tests.http import shop
from tests.http.caller import Caller

PROXY, CLIENT, OTHER = "10.0.0.5", "198.51.100.7", "203.0.113.9"


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine() as engine:
        yield engine


@pytest.mark.parametrize(
    ("peer", "forwarded", "sender"),
    [
        (PROXY, CLIENT, CLIENT),
        (PROXY, f"{OTHER}, {CLIENT}", CLIENT),
        (PROXY, f"{OTHER},{CLIENT} , 10.0.0.6", CLIENT),
        (PROXY, f"{CLIENT}:4711", CLIENT),
        (PROXY, "[2001:db8::1]:443", "2001:db8::1"),
        (PROXY, "2001:DB8:0::1", "2001:db8::1"),
        ("::ffff:10.0.0.5", CLIENT, CLIENT),
        (PROXY, "", PROXY),
        (PROXY, "unknown", PROXY),
        (PROXY, f"{CLIENT}, unknown", PROXY),
        (PROXY, "10.0.0.6", "10.0.0.6"),
        (CLIENT, OTHER, CLIENT),
        ("", CLIENT, ""),
    ],
)
def test_the_last_address_that_is_not_a_listed_proxy_is_the_sender(peer: str, forwarded: str, sender: str) -> None:
    """The last address that is not that of a listed proxy is the sender: those before it are what the sender wrote.
    [S7]"""
    assert Proxies(["10.0.0.0/29"]).sender(peer, forwarded) == sender
    assert Proxies([]).sender(peer, forwarded) == peer


def test_what_is_not_an_address_is_refused_as_a_proxy() -> None:
    """A name, or a network with bits of a host, is an error of the configuration that shows it."""
    for proxy in ("proxy.example.com", "10.0.0.1/24"):
        with pytest.raises(ConfigurationError, match=f"'{proxy}' is not an address of a proxy"):
            Proxies([proxy])


async def test_each_sender_behind_a_proxy_tries_keys_for_itself(engine: TestEngine) -> None:
    """A stranger behind the same proxy does not use up what others may try. [S5 S7]"""
    caller = Caller(Api(engine, auth="keys", proxies=[PROXY]), key="w" * 40, address=PROXY)

    async def status(sender: str) -> int:
        return (await caller.get("/api/v1/runs", headers={"x-forwarded-for": sender})).status

    assert [await status(f"192.0.2.1, {CLIENT}") for _ in range(25)] == [401] * 20 + [429] * 5
    assert [await status(f"192.0.2.{number}, {CLIENT}") for number in range(3)] == [429] * 3
    assert await status(OTHER) == 401


async def test_the_sender_behind_a_proxy_is_in_the_audit_log(engine: TestEngine) -> None:
    """The sender behind a listed proxy is in the audit log, and a sender elsewhere cannot name another address.
    [S7 S37]"""
    app = Api(engine, auth="keys", proxies=[PROXY])
    key = (await engine.keys.create("ci", scope="operator")).secret
    for number, address in enumerate((PROXY, OTHER)):
        await engine.start(shop.api_patient, id=f"run-{number}")
        path = f"/api/v1/runs/run-{number}/cancel"
        await Caller(app, key=key, address=address).post(path, headers={"x-forwarded-for": CLIENT})

    entries = await engine.audit.list(verb="cancel")
    assert sorted(it.address for it in entries) == [CLIENT, OTHER]


async def test_a_proxy_of_this_machine_makes_no_request_one_of_this_machine(engine: TestEngine) -> None:
    """Nor does an address of this machine that a sender writes. [S1 S7]"""
    caller = Caller(Api(engine, proxies=["127.0.0.1", PROXY]), address="127.0.0.1")

    assert (await caller.get("/api/v1/runs", headers={"x-forwarded-for": "127.0.0.1"})).status == 401
    far = Caller(Api(engine, proxies=[PROXY]), address=PROXY)
    assert (await far.get("/api/v1/runs", headers={"x-forwarded-for": "127.0.0.1"})).status == 401
