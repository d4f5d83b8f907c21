"""The demo as a story: orders come in, customers confirm, a worker is killed, another one goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import outlive
from outlive.demo.fleet import Fleet, Member
from outlive.demo.killing import kill_while_it_charges
from outlive.demo.ledger import Case, Ledger, audit, take_overs
from outlive.demo.orders import Order, Receipt, checkout
from outlive.demo.screen import Screen
from outlive.demo.world import Line, Witness
from outlive.engine.view import view_of

PRICES = {"tea": 450, "coffee": 890, "honey": 720, "bread": 380, "cheese": 1_240, "jam": 540, "olives": 610}
CONFIRM_SECONDS = 2.5
"""All customers have confirmed after this time."""
LOOK_SECONDS = 0.005
SHOW_SECONDS = 0.1
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Scene:
    """Where the demo plays, and how large it is."""

    folder: Path
    orders: int
    workers: int

    @property
    def url(self) -> str:
        """The store that all processes share."""
        return f"sqlite:{self.folder / 'demo.db'}"


@dataclass(frozen=True)
class Death:
    """A worker that was killed, and what it was doing."""

    worker: Member
    at: float
    charging: list[Line]


def basket(number: int) -> Order:
    """The order with this number; every fifth meets a carrier whose line is busy twice."""
    names = list(PRICES)
    items = {name: PRICES[name] for name in (names[number % 7], names[(number + 3) % 7])}
    return Order(f"order-{number}", items, busy_calls=2 if number % 5 == 0 else 0)


def promised(order: Order) -> Receipt:
    """The receipt that the customer must get."""
    return Receipt(order.id, order.cents, customer_of(order), f"parcel-{order.id}")


def customer_of(order: Order) -> str:
    """The customer of an order."""
    return f"customer-{order.id.removeprefix('order-')}"


@asynccontextmanager
async def staged(scene: Scene, screen: Screen) -> AsyncIterator[Story]:
    """A story that can be played; its workers are gone afterwards, also after an error."""
    scene.folder.mkdir(parents=True, exist_ok=True)
    for old in (*scene.folder.glob("demo.db*"), *scene.folder.glob("world.jsonl")):
        old.unlink()
    screen.say(f"Starting {scene.workers} workers on one SQLite file, {scene.folder / 'demo.db'}")
    with Fleet(scene.url, scene.folder, size=scene.workers) as fleet:
        await fleet.ready()
        names = " and ".join(f"{it.name} (pid {it.pid})" for it in fleet.members)
        screen.say(f"Workers {names} are ready; here come {scene.orders} orders.")
        async with outlive.Engine(scene.url, worker=False) as engine:
            yield Story(scene, screen, fleet, engine)


class Story:
    """One performance."""

    def __init__(self, scene: Scene, screen: Screen, fleet: Fleet, engine: outlive.Engine) -> None:
        self.scene, self.fleet, self.engine = scene, fleet, engine
        self._screen = screen
        self._orders = [basket(number) for number in range(1, scene.orders + 1)]
        self.witness = Witness(scene.folder / "world.jsonl")
        self._confirmed = self._finished = 0
        self._death: Death | None = None

    async def play(self) -> Ledger:
        """Everything at once: customers, the killer, and customers that wait for their receipts."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            show = group.create_task(self._keep_showing())
            receipts = [group.create_task(self._order(order)) for order in self._orders]
            customers = group.create_task(self._confirm_all())
            kill = group.create_task(self._kill_in_the_middle_of_a_charge())
            await asyncio.wait([*receipts, customers])
            kill.cancel()
            show.cancel()
        self.witness.look()
        self._show()
        self._screen.close()
        cases = [await self._case(order, task.result()) for order, task in zip(self._orders, receipts, strict=True)]
        return self._conclude(cases, seconds=time.monotonic() - began)

    async def _order(self, order: Order) -> Receipt | str:
        """Order, and wait for the receipt."""
        run = await self.engine.start(checkout, order, id=order.id)
        try:
            return await run.result(timeout=PATIENCE_SECONDS)
        except outlive.errors.OutliveError as error:
            return str(error)
        finally:
            self._finished += 1

    async def _confirm_all(self) -> None:
        """One customer after the other confirms; every fourth, to be sure, twice."""
        for number, order in enumerate(self._orders):
            await asyncio.sleep(CONFIRM_SECONDS / len(self._orders))
            for _ in range(2 if number % 4 == 0 else 1):
                await self.engine.signal(order.id, "confirmed", customer_of(order), key=f"confirm-{order.id}")
            self._confirmed += 1

    async def _kill_in_the_middle_of_a_charge(self) -> None:
        """Wait until the shop is busy, then kill a worker that is provably charging a customer."""
        while self._death is None:
            await asyncio.sleep(LOOK_SECONDS)
            self.witness.look()
            charged = len({it.key for it in self.witness.lines if it.what == "charge" and it.mark == "end"})
            under_way = self.witness.under_way("charge")
            if under_way and charged >= len(self._orders) // 4:
                self._try_to_kill(under_way[-1].pid)

    def _try_to_kill(self, pid: int) -> None:
        worker = self.fleet.find(pid)
        assert worker is not None, f"process {pid} charges a customer and is none of ours"
        charging = kill_while_it_charges(worker, self.witness)
        if charging:
            assert worker.killed_at is not None
            self._death = Death(worker, worker.killed_at, charging)
            self._screen.say(f"kill -9 {pid}: worker {worker.name} dies while it charges {_listed(charging)}.")

    async def _keep_showing(self) -> None:
        while True:
            self.witness.look()
            self.fleet.check()
            self._show()
            await asyncio.sleep(SHOW_SECONDS)

    def _show(self) -> None:
        charged = len({it.order for it in self.witness.lines if it.what == "charge" and it.mark == "end"})
        orders = len(self._orders)
        bars = [
            ("confirmed", self._confirmed, orders),
            ("charged", charged, orders),
            ("finished", self._finished, orders),
        ]
        self._screen.show(bars, [self._note(member) for member in self.fleet.members])

    def _note(self, member: Member) -> str:
        steps = sum(it.pid == member.pid and it.mark == "end" for it in self.witness.lines)
        state = "working" if member.killed_at is None else "killed"
        return f"worker {member.name}   {state:<8} {steps:>4} steps done"

    async def _case(self, order: Order, got: Receipt | str) -> Case:
        events = await view_of(self.engine).journal(order.id)
        lines = [line for line in self.witness.lines if line.order == order.id]
        return Case(order, promised(order), got, events, lines)

    def _conclude(self, cases: list[Case], *, seconds: float) -> Ledger:
        ledger = audit(cases)
        death = self._death
        if death is None:
            ledger.complaints.append("no worker was killed: the demo proved nothing")
            return ledger
        ledger.interrupted = [line.order for line in death.charging]
        ledger.epilogue = [
            f"Worker {death.worker.name} was killed with -9 while it charged {_listed(death.charging)}.",
            f"Runs that were taken over from it: {take_overs(cases)}. {recovery_of(self._waits(death))}",
            f"All of it took {seconds:.1f} s.",
        ]
        return ledger

    def _waits(self, death: Death) -> list[float]:
        """How many seconds each order that was being charged waited for another worker."""
        waits = []
        for line in death.charging:
            later = (
                it.at for it in self.witness.lines if it.key == line.key and it.pid != line.pid and it.at > death.at
            )
            if (first := min(later, default=None)) is not None:
                waits.append(first - death.at)
        return waits


def recovery_of(waits: list[float]) -> str:
    """A sentence about how many seconds the interrupted charges waited."""
    if not waits:
        return "None of the interrupted charges was taken up again."
    if len(waits) == 1:
        return f"Recovery: the interrupted charge went on after {waits[0]:.2f} s."
    return (
        f"Recovery: the first interrupted charge went on after {min(waits):.2f} s, the last of {len(waits)} "
        f"after {max(waits):.2f} s."
    )


def _listed(lines: list[Line]) -> str:
    """Some orders by name, the others by number."""
    names = [line.order for line in lines]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
