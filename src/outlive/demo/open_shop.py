"""The shop after the ledger, for a person who stays: orders come in while they look, and workers can be killed.

A worker that is gone is replaced after some seconds, as a supervisor of services would do it; until then the others
have its runs. It does not matter who killed it: the button of the page, or a person in another terminal.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress

import msgspec

from outlive.demo.fleet import Member, WorkerLost
from outlive.demo.killing import charges_of, kill_while_it_charges
from outlive.demo.orders import checkout
from outlive.demo.story import Death, Story, basket, customer_of
from outlive.demo.world import Line

ORDER_SECONDS = 0.4
"""An order comes in as often as this."""
ORDERS_MAX = 2_000
LOOKED_SECONDS = 4.0
"""Orders come in until the page has not asked for this long."""
REPLACE_SECONDS = 6.0
CHARGE_SECONDS_MAX = 3.0
"""How long a kill waits for the worker to charge a customer."""
LOOK_SECONDS = 0.02
KILLS_SHOWN_MAX = 20


class WorkerState(msgspec.Struct, frozen=True):
    """One worker, as the page shows it."""

    name: str
    pid: int
    is_alive: bool
    charging: list[str]
    """The orders that it charges at this moment."""
    steps: int
    """How many steps it has ended."""


class Interrupted(msgspec.Struct, frozen=True):
    """A charge that a kill has interrupted."""

    order: str
    went_on_in: str = ""
    """The worker that has charged instead; empty as long as there is none."""
    seconds: float = 0.0
    """How long after the kill it began."""


class Kill(msgspec.Struct, frozen=True):
    """A worker that was killed, and what became of its charges."""

    worker: str
    pid: int
    at: float
    charges: list[Interrupted]


class State(msgspec.Struct, frozen=True):
    """Everything that the page shows."""

    workers: list[WorkerState]
    kills: list[Kill]
    """The newest first."""
    orders: int
    charged: int
    delivered: int
    begun_again: int
    """Charges that were interrupted, and begun again with the same idempotency key."""
    charged_twice: int


class NotAlive(Exception):
    """There is no living worker of this name."""


class OpenShop:
    """Goes on with the workers of a story that has been played."""

    def __init__(self, story: Story) -> None:
        self._engine, self._fleet, self._witness = story.engine, story.fleet, story.witness
        self._orders = story.scene.orders
        self._names = {it.pid: it.name for it in self._fleet.members}
        self._gone = {it.pid for it in self._fleet.members if it.exit_code is not None}
        """Workers whose end is known."""
        self._deaths: list[Death] = []
        self._looked_at = 0.0

    async def open(self) -> None:
        """Replace the worker that the story has killed, and wait until it works: a kill needs another one beside it."""
        for member in [it for it in self._fleet.members if it.exit_code is not None]:
            await self._replace(member)

    async def run(self) -> None:
        """Take orders and replace workers until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._take_orders())
            group.create_task(self._replace_workers())

    async def kill(self, name: str) -> None:
        """`kill -9` the worker of this name, in the middle of a charge if it begins one soon.

        Raises:
            NotAlive: there is none.
        """
        self._looked_at = time.monotonic()  # Orders come in, so that there is something to charge.
        deadline = time.monotonic() + CHARGE_SECONDS_MAX
        while True:
            worker = next((it for it in self._fleet.members if it.name == name and it.exit_code is None), None)
            if worker is None:
                raise NotAlive(name)
            charging = kill_while_it_charges(worker, self._witness) if charges_of(worker, self._witness) else []
            if not charging and time.monotonic() >= deadline:
                worker.kill()
            if worker.killed_at is not None:
                self._note_death(worker, charging)
                return
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> State:
        """The state of the shop now; orders come in for some seconds more."""
        self._looked_at = time.monotonic()
        self._witness.look()
        charges = [it for it in self._witness.lines if it.what == "charge"]
        begun = Counter(it.key for it in charges if it.mark == "begin")
        paid = Counter(order for order, _ in {(it.order, it.key) for it in charges if it.mark == "end"})
        return State(
            workers=[self._worker(it) for it in self._fleet.members],
            kills=[self._kill(it) for it in reversed(self._deaths[-KILLS_SHOWN_MAX:])],
            orders=self._orders,
            charged=len(paid),
            delivered=len({it.order for it in self._witness.lines if it.what == "hand_over" and it.mark == "end"}),
            begun_again=sum(times > 1 for times in begun.values()),
            charged_twice=sum(times > 1 for times in paid.values()),
        )

    def _worker(self, member: Member) -> WorkerState:
        is_alive = member.exit_code is None
        steps = sum(it.pid == member.pid and it.mark == "end" for it in self._witness.lines)
        charging = [it.order for it in self._witness.under_way("charge") if it.pid == member.pid] if is_alive else []
        return WorkerState(member.name, member.pid, is_alive, charging, steps)

    def _kill(self, death: Death) -> Kill:
        charges = [self._interrupted(line, death) for line in death.charging]
        return Kill(death.worker.name, death.worker.pid, death.at, charges)

    def _interrupted(self, line: Line, death: Death) -> Interrupted:
        again = (it for it in self._witness.lines if it.key == line.key and it.pid != line.pid and it.at > death.at)
        first = min(again, key=lambda it: it.at, default=None)
        if first is None:
            return Interrupted(line.order)
        return Interrupted(line.order, self._names.get(first.pid, "?"), first.at - death.at)

    def _note_death(self, worker: Member, charging: list[Line]) -> None:
        self._gone.add(worker.pid)
        self._deaths.append(Death(worker, worker.killed_at or time.time(), charging))

    async def _take_orders(self) -> None:
        while True:
            await asyncio.sleep(ORDER_SECONDS)
            if time.monotonic() - self._looked_at < LOOKED_SECONDS and self._orders < ORDERS_MAX:
                self._orders += 1
                order = basket(self._orders)
                await self._engine.start(checkout, order, id=order.id)
                await self._engine.signal(order.id, "confirmed", customer_of(order), key=f"confirm-{order.id}")

    async def _replace_workers(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for member in [it for it in self._fleet.members if it.exit_code is not None]:
                if member.pid not in self._gone:  # A person has killed it from a terminal.
                    self._note_death(member, charges_of(member, self._witness))
                ended_at = next((it.at for it in self._deaths if it.worker is member), 0.0)
                if time.time() - ended_at >= REPLACE_SECONDS:
                    await self._replace(member)

    async def _replace(self, member: Member) -> None:
        following = self._fleet.replace(member)
        self._names[following.pid] = following.name
        with suppress(WorkerLost):  # It is gone already, and is replaced like any other.
            await following.ready()
