"""The shop that a person looks at after the demo: what it counts, and what a kill on its page does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from outlive.demo.open_shop import NotAlive, OpenShop
from outlive.demo.world import Line, Witness
from outlive.testing.line_file import append


class Worker:
    """A worker process that runs nowhere."""

    def __init__(self, name: str, pid: int) -> None:
        self.name, self.pid = name, pid
        self.exit_code: int | None = None
        self.killed_at: float | None = None
        self.is_frozen = False

    def freeze(self) -> None:
        """As of a process."""
        self.is_frozen = True

    def thaw(self) -> None:
        """As of a process."""
        self.is_frozen = False

    def kill(self) -> None:
        """As of a process."""
        self.exit_code, self.killed_at = -9, 10.0


class World:
    """What two workers have done, and the shop that shows it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.a, self.b = Worker("A", 1), Worker("B", 2)
        story: Any = SimpleNamespace(
            engine=None,
            fleet=SimpleNamespace(members=[self.a, self.b]),
            witness=Witness(file),
            scene=SimpleNamespace(orders=3),
        )
        self.shop = OpenShop(story)

    def charge(self, mark: str, order: str, *, by: Worker, key: str = "", at: float = 0.0) -> None:
        """Something about a charge has happened."""
        line = Line(at=at, pid=by.pid, mark=mark, what="charge", order=order, key=key or order, epoch=0, attempt=1)
        append(self._file, line)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Nothing has been done yet."""
    return World(tmp_path / "world.jsonl")


def test_a_charge_that_was_begun_again_counts_once(world: World) -> None:
    """A charge that was begun again under its key counts once; two keys for one order count as charged twice."""
    world.charge("begin", "order-1", by=world.a)
    world.charge("begin", "order-1", by=world.b)
    world.charge("end", "order-1", by=world.b)
    for key in ("one", "two"):
        world.charge("begin", "order-2", by=world.a, key=key)
        world.charge("end", "order-2", by=world.a, key=key)

    seen = world.shop.look()

    assert (3, 2, 1, 1) == (seen.orders, seen.charged, seen.begun_again, seen.charged_twice)


async def test_a_kill_hits_a_charge_and_the_page_says_who_went_on(world: World) -> None:
    """It names the worker that has begun the charge again, and after how long."""
    world.charge("begin", "order-1", by=world.a, at=9.0)

    await world.shop.kill("A")
    assert ["order-1"] == [it.order for it in world.shop.look().kills[0].charges]
    world.charge("begin", "order-1", by=world.b, at=10.5)

    (kill,) = world.shop.look().kills
    assert ("A", 1, 10.0) == (kill.worker, kill.pid, kill.at)
    assert [("order-1", "B", 0.5)] == [(it.order, it.went_on_in, it.seconds) for it in kill.charges]
    assert [False, True] == [it.is_alive for it in world.shop.look().workers]


async def test_a_worker_that_is_gone_cannot_be_killed(world: World) -> None:
    """A worker that is gone, and one that never was, cannot be killed."""
    world.a.kill()

    for name in ("A", "Z"):
        with pytest.raises(NotAlive):
            await world.shop.kill(name)
