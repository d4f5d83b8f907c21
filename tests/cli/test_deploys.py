"""A shop is redeployed with orders in flight: a model changes, a mark is set, rolled back, and deployed again.

Three releases of one module, as files; workers are processes that run one of them. Release 2 adds a field to the order
and puts its fields in another order. Release 3 insures an order before it is charged, behind a mark.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.events import RunParked
from tests.cli.conftest import Command, Ledger
from tests.engine.inside import journal_of

Begin = Callable[..., Command]

RELEASE = """
import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import outlive

FOLDER = Path(os.environ.get("SHOP", "."))


@dataclass
class Order:
{fields}


async def act(what: str, order: Order) -> None:
    with (FOLDER / "ledger").open("a") as file:
        file.write(f"{{what}} {{order.sku}} 0 0\\n")
    while order.sku.endswith(what) and not (FOLDER / f"{{what}}-gate").exists():
        await asyncio.sleep(0.02)


@outlive.step(name="deploys.reserve")
async def reserve(order: Order) -> Order:
    await act("reserve", order)
    return order


@outlive.step(name="deploys.insure")
async def insure(order: Order) -> str:
    await act("insure", order)
    return "insured"


@outlive.step(name="deploys.charge")
async def charge(order: Order) -> int:
    await act("charge", order)
    return order.count * 100


@outlive.workflow(name="deploys.checkout")
async def checkout(order: Order) -> list[object]:
    reserved = await reserve(order)
    await outlive.wait_for_signal("paid", str)
    cover = {cover}
    cents = await charge(reserved)
    await asyncio.sleep(1.2)
    return [order.sku, cover, cents]
"""
SHORT = "    sku: str\n    count: int"
LONG = '    gift: bool = False\n    count: int = 1\n    sku: str = ""'
OLD_WAY = '"not insured"'
NEW_WAY = 'await insure(order) if outlive.patched("insurance") else "not insured"'


@pytest.fixture
def releases(tmp_path: Path) -> dict[int, str]:
    """The three releases of the shop; their files."""
    files = {}
    for number, fields, cover in ((1, SHORT, OLD_WAY), (2, LONG, OLD_WAY), (3, LONG, NEW_WAY)):
        folder = tmp_path / f"release{number}"
        folder.mkdir()
        (folder / "shop.py").write_text(RELEASE.format(fields=fields, cover=cover))
        files[number] = str(folder / "shop.py")
    return files


def load(file: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A release as a client of it has it."""
    spec = importlib.util.spec_from_file_location("deploys_shop", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "deploys_shop", module)  # Its dataclass is looked up there.
    spec.loader.exec_module(module)
    return module


def stop(worker: Command) -> None:
    """Take a worker away, as a deploy does."""
    worker.signal(signal.SIGTERM)
    assert worker.ends() == 0


async def ends(client: outlive.Engine, sku: str, cover: str) -> None:
    """Wait for the end of an order."""
    assert await client.get(sku).result(timeout=20) == [sku, cover, 200]


async def assert_all_is_right(client: outlive.Engine, ledger: Ledger) -> None:
    """All six orders have ended, none was ever parked, and each was charged once."""
    runs = await client.list()
    assert [run.status for run in runs] == ["succeeded"] * 6
    for run in runs:
        assert not any(isinstance(event, RunParked) for event in await journal_of(client, run.id))
    charged = Counter(what for what in ledger.said() if what.startswith("charge"))
    assert charged == {f"charge {run.id}": 1 for run in runs}


async def test_a_shop_is_redeployed_and_rolled_back_with_orders_in_flight(
    url: str, command: Begin, ledger: Ledger, releases: dict[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every order ends right, nothing is parked, no order is charged twice, and the log says what happened."""
    shop = load(releases[1], monkeypatch)

    def deploy(number: int) -> Command:
        worker = command(
            "worker", releases[number], "--store", url, "--grace-seconds", "0", "--name", f"release-{number}"
        )
        worker.ready()
        return worker

    async with outlive.Engine(url, worker=False) as client:

        async def place(sku: str) -> None:
            await client.start(shop.checkout, shop.Order(sku, 2), id=sku)

        async def pay(sku: str) -> None:
            await client.signal(sku, "paid", "yes")

        # Release 1: an order in a step, one that waits to be paid, one that waits for a timer.
        worker = deploy(1)
        for sku in ("at-reserve", "at-signal", "at-timer"):
            await place(sku)
        await pay("at-timer")
        ledger.hears("reserve at-reserve")
        ledger.hears("reserve at-signal")
        ledger.hears("charge at-timer")

        # Release 2 has another model.
        stop(worker)
        second = deploy(2)
        ledger.hears("reserve at-reserve", times=2)
        (tmp_path / "reserve-gate").touch()
        await ends(client, "at-timer", "not insured")

        # Release 3 has the mark. For a while both are there, and either of them may take an order.
        third = deploy(3)
        await pay("at-signal")
        ledger.hears("charge at-signal")
        stop(second)
        for sku in ("in-insure", "insured"):
            await place(sku)
            await pay(sku)
        ledger.hears("insure in-insure")
        ledger.hears("charge insured")

        # Rolled back: what release 3 has moved past its mark waits for it, and everything else goes on.
        stop(third)
        second = deploy(2)
        lacking = "was moved on by code that has the change 'insurance'; worker release-2 does not know it"
        second.says(f"run in-insure {lacking}")
        second.says(f"run insured {lacking}")
        await pay("at-reserve")
        await place("meanwhile")
        await pay("meanwhile")
        await ends(client, "meanwhile", "not insured")
        await ends(client, "at-reserve", "not insured")
        assert lacking in await client.get("in-insure").why()
        assert await client.get("in-insure").status() == "pending"
        assert second.log.count(f"run in-insure {lacking}") == 1

        # Release 3 again, while the last worker of release 2 is still there.
        (tmp_path / "insure-gate").touch()
        deploy(3)
        await ends(client, "in-insure", "insured")
        await ends(client, "insured", "insured")
        await client.get("at-signal").result(timeout=20)
        await assert_all_is_right(client, ledger)
