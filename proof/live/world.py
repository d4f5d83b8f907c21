"""The world outside: customers, people who decide, importers, readers that stay open, and an operator.

What it notes is what the application has promised: an order that was answered with 202 is accepted, a decision that was
answered counts. What each of them does follows from the seed and the number of the order, not from the time.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import msgspec

import outlive
from outlive._kernel.values.run import Run
from proof.live.evidence import Burst, Decision, End, Evidence, Order, Timing
from proof.live.fleet import Fleet
from proof.live.http import Answer, ask, events, opened
from proof.live.trial import KEEP_SECONDS, Trial
from proof.live.watch import port_of

CUSTOMERS = 12
BURST_SECONDS, BURST_ORDERS = 25.0, 30
"""A greedy customer orders so many things at once, so often."""
CREDIT_SHARE, CANCEL_SHARE, FOLLOW_SHARE, GIVE_UP_SHARE = 0.15, 0.08, 0.25, 0.05
CREDIT_CENTS = 100_000
NO_SHARE, BOTH_SHARE = 0.25, 0.3
"""Of decisions: those that say no, and those that two people make at once, and differently."""
IMPORT_SECONDS, IMPORT_ROWS = 15.0, 60
LETTER_SECONDS = 6.0
DASHBOARDS = 3
OVERVIEW_SECONDS = 5.0
"""A dashboard asks for its first page so often."""
PING_SECONDS, PROBE_SECONDS = 1.0, 3.0
PINGED = {"web": "/ping", "worker": "/health/live", "agents": "/health/live"}
"""What is asked of each process of the application, by its kind."""
SETTLED_SECONDS = 8.0
"""A time is taken only from a process that has been up for so long, and while nothing was struck for so long."""
AGAIN_SECONDS = 0.3
LOOK_SECONDS = 15.0
OPEN_READERS_MAX = 20


class World:
    """Everything outside."""

    def __init__(self, trial: Trial, fleet: Fleet, evidence: Evidence) -> None:
        self._trial, self._fleet, self._evidence = trial, fleet, evidence
        self._tasks: set[asyncio.Task[None]] = set()
        self._readers = 0
        self.is_over = False
        """Whether nothing new is begun."""
        self.struck_at: defaultdict[str, float] = defaultdict(float)
        """When something was last done to a kind of process, or to the server."""

    # -- Life ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Everybody begins."""
        self._do(self._customers())
        self._do(self._greedy_customer())
        self._do(self._people())
        self._do(self._importers())
        self._do(self._letter_writers())
        self._do(self._operator())
        for role in self._fleet.roles:
            if role.partition("-")[0] in PINGED:
                self._do(self._pinger(role))
        self._do(self._prober())
        for number in range(DASHBOARDS):
            self._do(self._dashboard(number))
            self._do(self._overview(number))

    def end(self) -> None:
        """Readers leave, and so does everybody else."""
        for task in self._tasks:
            task.cancel()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._evidence.broken.append(f"{type(error).__name__}: {error}")

    async def _until_over(self, seconds: float) -> bool:
        """Let time pass; whether it goes on."""
        await asyncio.sleep(seconds)
        return not self.is_over

    # -- Customers -------------------------------------------------------------------------------------------

    async def _customers(self) -> None:
        chance = random.Random(f"{self._trial.seed}/pace")
        number = 0
        while await self._until_over(chance.expovariate(self._trial.orders_per_second)):
            number += 1
            self._do(self._buy(f"{self._trial.seed}-{number}"))

    async def _greedy_customer(self) -> None:
        """Bursts of orders; another customer orders behind each."""
        burst = 0
        while await self._until_over(BURST_SECONDS):
            burst += 1
            name = f"{self._trial.seed}-burst-{burst}"
            numbers = [f"{name}-{number}" for number in range(BURST_ORDERS)]
            placed = await asyncio.gather(*[self._place(number, customer="greedy") for number in numbers])
            self._evidence.bursts.append(Burst(numbers=numbers, neighbour=f"{name}-neighbour"))
            self._do(self._buy(f"{name}-neighbour"))
            for order in placed:
                self._do(self._go_on(order))

    async def _buy(self, number: str) -> None:
        """One customer with one order, from the order to its end."""
        await self._go_on(await self._place(number))

    async def _place(self, number: str, *, customer: str = "") -> Order:
        """Order something. Who goes away before the answer is read may have ordered it all the same."""
        chance = random.Random(number)
        customer = customer or f"customer-{chance.randrange(CUSTOMERS)}"
        cents = chance.randrange(100, 9_000) + (CREDIT_CENTS if chance.random() < CREDIT_SHARE else 0)
        order = Order(number=number, customer=customer, cents=cents, asked_at=time.time())
        self._evidence.orders[number] = order
        body = {"customer": customer, "item": f"item-{chance.randrange(40)}", "cents": cents}
        path = f"/invoices/{number}"
        if chance.random() < GIVE_UP_SHARE:
            with suppress(OSError):
                async with opened(self._port(number), "PUT", path, body):
                    """Gone."""
            return order
        await self._insist("PUT", path, body)
        order.accepted_at = time.time()
        return order

    async def _go_on(self, order: Order) -> None:
        """What a customer does whose order was accepted: reads how it goes, or cancels it."""
        if order.accepted_at is None:
            return
        chance = random.Random(f"{order.number}/then")
        wants_less, follows, waits = chance.random() < CANCEL_SHARE, chance.random() < FOLLOW_SHARE, chance.random()
        if follows and self._readers < OPEN_READERS_MAX:
            self._do(self._read_progress(order.number))
        if wants_less:
            await asyncio.sleep(waits * 6)
            order.cancelled_at = time.time()
            await self._insist("DELETE", f"/invoices/{order.number}", fine=(202, 404, 409))

    async def _read_progress(self, number: str) -> None:
        """A customer who watches an order in a page."""
        shown = await self._read_on(f"/invoices/{number}/progress")
        if shown:
            self._evidence.stages_read[number] = shown[-1].get("stage", "")

    async def _read_letter(self, number: str) -> None:
        """A customer who reads a letter as it is written."""
        words = await self._read_on(f"/letters/{number}/text")
        if words is not None:
            self._evidence.letters_read[number] = "".join(words)

    async def _read_on(self, path: str) -> list[Any] | None:
        """A browser: it reads to the end, and connects again when the connection breaks. All that it was sent; None if
        it did not come to the end."""
        self._readers += 1
        position, shown = "", list[Any]()
        try:
            for attempt in range(200):
                try:
                    known = position
                    async for position, kind, data in events(self._port(f"{path}{attempt}"), path, after=known):  # noqa: B007 (the next attempt goes on behind it)
                        if kind == "end":
                            self._evidence.readers_ended += 1
                            return shown
                        shown.append(msgspec.json.decode(data))
                except OSError:
                    pass
                self._evidence.readers_cut += 1
                await asyncio.sleep(AGAIN_SECONDS * 3)
        finally:
            self._readers -= 1
        return None

    # -- Others ----------------------------------------------------------------------------------------------

    async def _people(self) -> None:
        """Finance. It goes on to the end, so that nothing waits for it."""
        chance = random.Random(f"{self._trial.seed}/people")
        decided: set[tuple[str, str]] = set()
        while True:
            await asyncio.sleep(1.0)
            try:
                asked = await ask(self._port(chance.random()), "GET", "/approvals")
            except OSError:
                continue
            for entry in asked.body if asked.status == 200 else ():
                if (request := (entry["run"], entry["request"])) not in decided:
                    decided.add(request)
                    self._do(self._decide(entry))

    async def _decide(self, entry: dict[str, Any]) -> None:
        chance = random.Random(f"{self._trial.seed}/{entry['run']}")
        await asyncio.sleep(chance.random() * 4)
        is_yes = chance.random() >= NO_SHARE
        voices = [("ann", is_yes)] + ([("bob", not is_yes)] if chance.random() < BOTH_SHARE else [])
        await asyncio.gather(*[self._say(entry, by, approved=approved) for by, approved in voices])

    async def _say(self, entry: dict[str, Any], by: str, *, approved: bool) -> None:
        body = {"request": entry["request"], "by": by, "approved": approved}
        path = f"/approvals/{entry['run']}/{entry['name']}"
        answer = await self._insist("POST", path, body, fine=(200, 404, 409))
        if answer.status == 200:
            said = answer.body
            self._evidence.decisions.append(
                Decision(run=entry["run"], request=entry["request"], approved=said["approved"], by=said["by"])
            )

    async def _importers(self) -> None:
        chance = random.Random(f"{self._trial.seed}/imports")
        number = 0
        while await self._until_over(IMPORT_SECONDS):
            number += 1
            cents = [chance.randrange(-50, 1_000) for _ in range(IMPORT_ROWS)]
            name = f"{self._trial.seed}-{number}"
            await self._insist("PUT", f"/imports/{name}", cents)
            self._evidence.imports[name] = cents

    async def _letter_writers(self) -> None:
        number = 0
        while await self._until_over(LETTER_SECONDS):
            number += 1
            name = f"{self._trial.seed}-{number}"
            await self._insist("PUT", f"/letters/{name}")
            self._evidence.letters.append(name)
            if self._readers < OPEN_READERS_MAX:
                self._do(self._read_letter(name))

    async def _dashboard(self, number: int) -> None:
        """A dashboard that stays open, for ever."""
        while True:
            with suppress(OSError):
                async for _ in events(self._port(number), "/outlive/api/v1/runs/follow"):
                    self._evidence.dashboard_events += 1
            await asyncio.sleep(AGAIN_SECONDS * 3)

    async def _overview(self, number: int) -> None:
        """The first page of that dashboard."""
        while True:
            with suppress(OSError):
                answer = await ask(self._port(number), "GET", "/outlive/api/v1/overview")
                self._evidence.overviews += answer.status == 200
            await asyncio.sleep(OVERVIEW_SECONDS)

    # -- The operator, who also looks at how long things take ------------------------------------------------

    async def _operator(self) -> None:
        """Notes how runs have ended, and deletes those that ended long ago."""
        async with outlive.Engine(self._trial.store, worker=False) as engine:
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                with suppress(outlive.errors.OutliveError, OSError):
                    await note_ends(engine, self._evidence)
                    deleted = await engine.purge(older_than=KEEP_SECONDS, status=("succeeded", "failed", "cancelled"))
                    self._evidence.deleted += deleted.deleted

    async def _pinger(self, role: str) -> None:
        """Asks one process for something small, once a second."""
        kind = role.partition("-")[0]
        up_since, ports, loop = 0.0, dict[int, int | None](), asyncio.get_running_loop()
        while True:
            await asyncio.sleep(PING_SECONDS)
            member, asked_at = self._fleet.members[role], time.time()
            pid, since = member.process.pid, member.since
            if ports.get(pid) is None:
                ports = {pid: await loop.run_in_executor(None, port_of, pid)}  # The list of sockets may be long.
            if (port := ports[pid]) is None:
                continue
            try:
                async with asyncio.timeout(30):
                    is_fine = (await ask(port, "GET", PINGED[kind])).status == 200
            except OSError:
                is_fine = False
            if is_fine:
                up_since = since
            is_up = up_since == self._fleet.members[role].since  # It has answered since it was started.
            if is_up and self._is_quiet(role, since=asked_at, without=(kind,)):
                self._evidence.pings.append(Timing(role, asked_at, time.time() - asked_at, is_fine, pid))

    async def _prober(self) -> None:
        """Starts a small run, a settlement that nothing waits for, and waits for its result."""
        number = 0
        async with outlive.Engine(self._trial.store, worker=False) as engine:
            while await self._until_over(PROBE_SECONDS):
                number += 1
                asked_at = time.time()
                settlement = {"number": f"probe-{number}", "charge": "none", "cents": 1}
                event = f"probe-{self._trial.seed}-{number}"
                with suppress(outlive.errors.OutliveError, OSError):
                    sent = await engine.events.send("payment.settled", settlement, id=event, source="probe")
                    if not sent.runs:
                        continue
                    self._evidence.probed.append(event)
                    await engine.get(sent.runs[0].run_id).result(timeout=60)
                    if self._is_quiet("worker-1", since=asked_at, without=("worker", "server")):
                        self._evidence.probes.append(Timing("probe", asked_at, time.time() - asked_at, True))

    def _is_quiet(self, role: str, *, since: float, without: Sequence[str]) -> bool:
        """Whether a time that was taken since then says something about the application and not about a fault."""
        struck_at = max(self.struck_at[kind] for kind in without)
        return self._fleet.is_up(role, for_seconds=SETTLED_SECONDS) and since - struck_at > SETTLED_SECONDS

    # -- How they ask ----------------------------------------------------------------------------------------

    def _port(self, salt: object) -> int:
        ports = self._trial.ports.webs
        return ports[random.Random(f"{salt}").randrange(len(ports))]

    async def _insist(self, method: str, path: str, body: Any = None, *, fine: tuple[int, ...] = (202,)) -> Answer:
        """Ask until there is an answer that says something: a client that means it."""
        for attempt in range(10_000):
            try:
                answer = await ask(self._port(f"{path}{attempt}"), method, path, body)
            except OSError:
                self._evidence.repeated += 1
            else:
                if answer.status in fine:
                    return answer
                if answer.status != 503:
                    self._evidence.odd_answers.append(f"{method} {path}: {answer.status} {msgspec.to_builtins(answer)}")
            await asyncio.sleep(AGAIN_SECONDS * min(attempt + 1, 5))
        raise AssertionError("out of patience")


async def note_ends(engine: outlive.Engine, evidence: Evidence) -> None:
    """How every run has ended that has not been noted yet."""
    cursor = None
    while True:
        page = await engine.list(status=("succeeded", "failed", "cancelled", "timed_out"), limit=500, after=cursor)
        for run in page:
            if run.id not in evidence.ends and run.parent_id is None:
                evidence.ends[run.id] = await end_of(engine, run)
        cursor = page.next
        if cursor is None:
            return


async def end_of(engine: outlive.Engine, run: Run) -> End:
    """How a run has ended, as its callers see it."""
    result, reason = None, ""
    if run.workflow in ("checkout", "write_letter"):
        try:
            result = await engine.get(run.id).result()
        except (outlive.errors.RunCancelledError, outlive.errors.RunTimedOutError) as error:
            reason = str(error)
        except outlive.errors.RunFailedError as error:
            reason = error.failure.type.rpartition(".")[2]
    return End(workflow=run.workflow, status=run.status, result=msgspec.to_builtins(result), reason=reason)
