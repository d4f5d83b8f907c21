"""The application in examples/invoices: its workflows while time skips, its own tables on a real server."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import outlive
from outlive._kernel.define.registry import REGISTRY
from outlive.testing import TestEngine
from outlive_conformance.servers.postgres import PostgresServer
from tests.integrations.invoices import EXAMPLES, invoices_running

LAMP = {"customer": "ann", "item": "lamp", "cents": 4200}
PALACE = LAMP | {"item": "palace", "cents": 100_000}


@pytest.fixture(scope="module", autouse=True)
def own_names() -> Iterator[None]:
    """The application is alone in its process when people run it; here other tests have steps of the same names."""
    with REGISTRY.apart():
        yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "invoices"]:
        del sys.modules[name]


class Outside:
    """The bank and the mailer, as a test wants them to be."""

    def __init__(self, engine: TestEngine, tables: asyncpg.Connection[Any]) -> None:
        self.engine, self._tables = engine, tables
        self.given_back: list[str] = []
        self.mails: list[tuple[str, str]] = []

    async def place(self, number: str, order: dict[str, Any]) -> outlive.types.RunHandle[Any]:
        """Order something, as the web application does."""
        from invoices.checkout import checkout
        from invoices.models import Order

        return await self.engine.start(checkout, number, Order(**order), id=f"invoice-{number}", key=order["customer"])

    async def settle(self, number: str, event: str) -> list[str]:
        """The bank's word that a payment is settled; what the runs that it started said."""
        settlement = {"number": number, "charge": f"ch-{number}", "cents": 4200}
        sent = await self.engine.events.send("payment.settled", settlement, id=event, source="bank")
        return [await self.engine.get(run.run_id).result() for run in sent.runs]

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What is in the tables of the application."""
        return [tuple(row) for row in await self._tables.fetch(query)]


@pytest.fixture
async def outside(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Outside]:
    """The application on an engine whose bank and mailer are here."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import invoices.workflows  # noqa: F401  # What a worker imports: all triggers and schedules are known then.
    from invoices.models import DeclinedError
    from invoices.services import charge, give_back, mail
    from invoices.tables import migrate

    async def take(number: str, customer: str, cents: int) -> str:
        if customer == "poor":
            raise DeclinedError("no money")
        return f"ch-{number}"

    async def note(number: str) -> None:
        world.given_back.append(number)

    async def post(to: str, kind: str, number: str, text: str) -> None:
        world.mails.append((kind, number))

    await migrate(postgres_url)
    tables = await asyncpg.connect(postgres_url.partition("?")[0])
    schedules = "books" in request.node.name  # Elsewhere three days would be thousands of closings.
    engine = TestEngine(postgres_url, schedules=schedules, steps={charge: take, give_back: note, mail: post})
    world = Outside(engine, tables)
    async with engine:
        yield world
    await tables.close()


STATE = "SELECT status, (SELECT sum(taken) FROM stock WHERE stock.number = invoices.number) FROM invoices"


async def test_an_order_is_charged_settled_and_has_its_receipt(outside: Outside) -> None:
    """The word of the bank may come before the checkout waits for it, and twice."""
    run = await outside.place("i-1", LAMP)
    said = [await outside.settle("i-1", "evt-1") for _ in range(2)]
    receipt = await run.result()

    assert said == [["passed on"]] * 2
    assert (receipt.number, receipt.charge, receipt.credit_by) == ("i-1", "ch-i-1", None)
    assert await outside.rows(STATE) == [("paid", 1)]
    assert await outside.rows("SELECT event, number FROM bookings") == [("evt-1", "i-1")]
    assert (outside.mails, outside.given_back) == ([("receipt", "i-1")], [])


async def test_a_customer_without_money_gets_nothing(outside: Outside) -> None:
    """Everything is undone; the bank is asked to give back what it may have taken all the same."""
    run = await outside.place("i-1", LAMP | {"customer": "poor"})
    with pytest.raises(outlive.errors.RunFailedError, match="no money"):
        await run.result()

    assert await outside.rows(STATE) == [("void", 0)]
    assert (outside.mails, outside.given_back) == ([], ["i-1"])


async def test_a_person_decides_about_a_large_order(outside: Outside) -> None:
    """A no ends it before the bank is asked; a yes has the name of who gave it."""
    refused, granted = [await outside.place(number, PALACE) for number in ("i-1", "i-2")]
    await outside.engine.settle()
    await outside.engine.approvals.reject(refused.id, "credit", by="bob")
    await outside.engine.approvals.approve(granted.id, "credit", by="eve", form={"note": "known for years"})
    await outside.settle("i-2", "evt-2")
    with pytest.raises(outlive.errors.RunFailedError, match="bob says no to i-1"):
        await refused.result()

    assert (await granted.result()).credit_by == "eve"
    assert sorted(await outside.rows(STATE)) == [("paid", 1), ("void", 0)]
    assert outside.given_back == []


async def test_a_payment_that_is_never_settled_is_given_back(outside: Outside) -> None:
    """After three days; the word of the bank that comes then is booked, and too late."""
    run = await outside.place("i-1", LAMP)
    with pytest.raises(outlive.errors.RunFailedError):
        await run.result()
    said = await outside.settle("i-1", "evt-1")

    assert said == ["late"]
    assert await outside.rows(STATE) == [("void", 0)]
    assert outside.given_back == ["i-1"]


async def test_a_cancel_before_the_payment_undoes_the_checkout(outside: Outside) -> None:
    """The invoice is void, the stock is back, and the bank gives back."""
    run = await outside.place("i-1", LAMP)
    await outside.engine.settle()
    await run.cancel(reason="changed my mind")
    with pytest.raises(outlive.errors.RunCancelledError):
        await run.result()

    assert await outside.rows(STATE) == [("void", 0)]
    assert outside.given_back == ["i-1"]


async def test_a_failing_line_of_an_import_leaves_the_others(outside: Outside) -> None:
    """Each line is durable on its own."""
    from invoices.models import Row
    from invoices.workflows import import_row, imports

    rows = [Row("old", line, cents) for line, cents in enumerate([5, -1, 7])]
    batch = await outside.engine.start_batch(import_row, rows, id="import-old", queue=imports)

    assert await batch.result() == {"total": 3, "succeeded": 2, "failed": 1}
    assert sorted(await outside.rows("SELECT line, cents FROM imported")) == [(0, 5), (2, 7)]


async def test_the_books_are_closed_once_for_each_tick(outside: Outside) -> None:
    """The books are closed once for each tick, even for ticks that passed while no worker was there."""
    await outside.engine.skip(minutes=5)
    await outside.engine.finish(skips_max=1)

    ticks = [at for (at,) in await outside.rows("SELECT at FROM closings ORDER BY at")]
    assert len(ticks) >= 5
    assert {(later - tick).total_seconds() for tick, later in itertools.pairwise(ticks)} == {60.0}


@pytest.mark.parametrize(("decision", "said"), [("approve", "i-1: sent "), ("reject", "i-1: ")])
async def test_the_agent_asks_before_it_sends_a_letter(
    monkeypatch: pytest.MonkeyPatch, decision: str, said: str
) -> None:
    """Its answer is written to a stream, word by word."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from invoices import agent

    asked: list[str] = []

    def ask(url: str, body: dict[str, Any]) -> dict[str, Any]:
        asked.append(url.rpartition("/")[2])
        return {"state": "in order"}

    monkeypatch.setattr(agent, "ask", ask)
    async with TestEngine() as engine:
        run = await engine.start(agent.write_letter, "i-1", id="letter-i-1")
        await engine.settle()
        await getattr(engine.approvals, decision)(run.id, "send_letter", by="eve")
        output = await run.result()
        words = [word async for word in run.stream("tokens", str)]

    assert output.startswith(said)
    assert "".join(words) == output
    assert asked == (["look", "mails"] if decision == "approve" else ["look"])


@pytest.mark.slow
def test_processes_of_the_application_work_together(postgres_server: PostgresServer, postgres_database: str) -> None:
    """A customer orders a lamp from the processes of the README, a killed worker comes back, and SIGTERM stops
    everything."""
    customer = [sys.executable, "-m", "invoices.customer"]
    with invoices_running(postgres_server.store_url(postgres_database)) as running:
        os.kill(running.pids["worker 1"], signal.SIGKILL)
        successor = running.next_line()
        bought = subprocess.run(customer, cwd=EXAMPLES, env=running.environment, capture_output=True, text=True)

    assert bought.stdout.splitlines()[-2:-1] == ["done"]
    assert len(running.pids) == 6
    assert successor.startswith("worker 1 is process ")
    assert running.process.returncode == 0
    assert not [pid for pid in running.pids.values() if Path(f"/proc/{pid}").exists()]
