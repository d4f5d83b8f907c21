"""What users hold is the same from an engine, from a connection, from the HTTP API and from a command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import msgspec
from click.testing import CliRunner

import outlive
from outlive.cli import main
from outlive.http import Api
from outlive.testing import TestEngine
from outlive.types import NewLink
from tests.cli.serving import served
from tests.http.caller import Caller

API = "/api/v1"


class Form(msgspec.Struct):
    """What a person fills in."""

    cents: int


@outlive.workflow(on_event="values.asked")
async def values_refund(order: str) -> str:
    """Asks people twice."""
    first = await outlive.wait_for_approval("refund", title=f"Refund {order}?", form=Form, assignees=["finance"])
    await outlive.wait_for_approval("send", title="Send it?")
    return first.by


@outlive.workflow
async def values_bill(cents: int) -> str:
    """A row of a batch; a customer who owes nothing gets no bill."""
    if not cents:
        raise ValueError("nothing to pay")
    return f"{cents} cents"


MAIL = outlive.Queue(
    "values-mail",
    concurrency=1,
    rate=[
        outlive.limits.TokenBucket(10, 20),
        outlive.limits.FixedWindow(500, 3600),
        outlive.limits.SlidingWindow(9, 2),
    ],
    priorities=True,
    weights={"ann": 2},
)


@outlive.workflow(queue=MAIL)
async def values_mail(to: str) -> None:
    """Holds its slot while it waits."""
    await outlive.wait_for_signal("go", Form)


FLOW = """
name: values-flow
steps: {say: {use: log, must_run: true, with: {message: "true"}}}
"""
MORNING = outlive.cron(
    "0 6 * * 1-5",
    tz="Europe/Stockholm",
    args={"order": "o-2"},
    start=datetime(2030, 1, 1, tzinfo=UTC),
    exclude=[date(2030, 12, 24)],
    jitter=30,
    catch_up="none",
    tags={"team": "a"},
)


@asynccontextmanager
async def store_with_one_of_each() -> AsyncIterator[TestEngine]:
    """An engine with one of each thing."""
    async with TestEngine() as engine:
        await engine.start(values_refund, "o-1", id="refund-1")
        await engine.settle()
        await engine.approvals.approve("refund-1", "refund", by="ann", form={"cents": 5}, comment="fine")
        await engine.settle()
        for number, key in enumerate(("ann", "bob", "bob")):
            await engine.start(values_mail, key, id=f"mail-{number}", key=key)
        await engine.settle()
        await engine.schedules.set("morning", MORNING, values_refund)
        await (await engine.start_batch(values_bill, [5, 0], id="bills")).result()
        await engine.signal("mail-0", "go", {"cents": "five"})
        await engine.signal("mail-0", "read later", {"cents": "six"}, key="evt-6")
        await engine.settle()
        await engine.keys.create(
            "shop", scope="operator", workflows=["values_refund", "values_mail"], tags={"team": "a"}
        )
        await engine.keys.create("machine", scope="worker", queues=["values-mail"], expires=3600)
        await engine.flows.apply(FLOW, by="ann", reason="first")
        await engine.flows.save_draft(FLOW.replace("true", "false"))
        await engine.events.add_sink("crm", "https://crm.example/hooks", types=["values.*"], secret="crm_key")
        yield engine


class Way(NamedTuple):
    """The ways to one thing."""

    ask: Callable[[Any], Awaitable[Any]]
    """By a verb that engines and connections have."""
    path: str
    """Where the API has it: alone, or in `items`; empty if only together with other things."""
    command: str = ""
    """What prints it; empty if no command does."""
    key: str = ""
    """Where the command prints it; empty if it prints nothing else."""


WAYS = {
    "run": Way(lambda it: it.info("refund-1"), "/runs/refund-1", "runs show refund-1", "run"),
    "runs": Way(lambda it: it.list(roots_only=True), "/runs?roots_only=true", "runs list", "runs"),
    "open approvals": Way(lambda it: it.approvals.list(), "/approvals", "approvals list", "approvals"),
    "approvals of a run": Way(
        lambda it: it.approvals.list("refund-1"),
        "/runs/refund-1/approvals",
        "approvals list --run refund-1",
        "approvals",
    ),
    "count": Way(
        lambda it: it.count(queue="values-mail", status="waiting"),
        "/runs/count?queue=values-mail&status=waiting",
        "runs count --queue values-mail --status waiting",
        "waiting",
    ),
    "queue": Way(lambda it: it.queues.stats("values-mail"), "/queues/values-mail", "queues resume values-mail"),
    "queues": Way(lambda it: it.queues.list(), "/queues", "queues list"),
    "workers": Way(lambda it: it.workers.list(), "/workers", "workers list"),
    "schedule": Way(lambda it: it.schedules.get("morning"), "/schedules/morning", "schedules resume morning"),
    "keys": Way(lambda it: it.keys.list(), "/keys", "keys list"),
    "audit": Way(lambda it: it.audit.list(), "/audit", "audit list"),
    "audit check": Way(lambda it: it.audit.verify(), "/audit/verify", "audit verify"),
    "triggers": Way(lambda it: it.events.triggers(), "/triggers", "events triggers"),
    "workflows": Way(lambda it: it.workflows.list(), "/workflows", "workflows list"),
    "batches": Way(lambda it: it.batches.list(), "/batches", "batches list", "batches"),
    "batch": Way(lambda it: it.batches.get("bills").info(), "/batches/bills"),
    "inbox": Way(lambda it: it.inbox.list("mail-0"), "/runs/mail-0/inbox"),
    "dead letters": Way(lambda it: it.dead_letters.list("mail-0"), "/runs/mail-0/dead-letters"),
    "failed items": Way(lambda it: it.batches.get("bills").failures(), "", "batches show bills", "failed"),
    "flow": Way(lambda it: it.flows.info("values-flow"), "/flows/values-flow"),
    "flows": Way(lambda it: it.flows.list(), "/flows", "flows list"),
    "revisions": Way(
        lambda it: it.flows.history("values-flow"), "/flows/values-flow/history", "flows history values-flow"
    ),
    "history": Way(
        lambda it: it.history("refund-1"), "/runs/refund-1/history", "runs show refund-1 --history", "history"
    ),
    "history of a batch": Way(lambda it: it.history("bills"), "/runs/bills/history"),
    "sinks": Way(lambda it: it.events.sinks(), "/sinks"),
    "schedules": Way(lambda it: it.schedules.list(), "/schedules", "schedules list"),
}


async def test_a_value_is_the_same_wherever_it_is_asked_for() -> None:
    """The value of an engine is that which a connection decodes; its JSON is that of the API and of the command."""
    async with store_with_one_of_each() as engine, served(engine) as url, outlive.connect(url) as remote:
        for name, way in WAYS.items():
            own = await way.ask(engine)
            plain = msgspec.json.decode(msgspec.json.encode(own))
            found = (await Caller(Api(engine)).get(API + way.path)).data if way.path else plain
            answer = found["items"] if isinstance(found, dict) and isinstance(own, list) else found
            printed = await asyncio.to_thread(_printed, way, url) if way.command else plain

            assert own, f"{name}: there is none"
            assert own == await way.ask(remote), name
            assert plain == answer, name
            assert plain == printed, name
            for each in own if isinstance(own, list) else [own]:
                assert repr(each).startswith("<"), name
                assert "\n" not in repr(each), name


async def test_a_decision_is_the_same_wherever_it_is_made() -> None:
    """So is a link to decide, but for its secret."""
    async with store_with_one_of_each() as engine, served(engine) as url, outlive.connect(url) as remote:
        link = await remote.approvals.links.create("refund-1", "send", approved=True, by="local")
        assert _without_secret(link) == _without_secret(
            await engine.approvals.links.create("refund-1", "send", approved=True, by="local")
        )
        decided = await remote.approvals.links.use(link.token, comment="go")
        (_, asked) = await engine.approvals.list("refund-1")

        assert decided == asked.decision == await remote.approvals.approve("refund-1", "send", by="local")
        assert not (await engine.approvals.reject("refund-1", "send", by="ann")).is_first


def _without_secret(link: NewLink) -> NewLink:
    return msgspec.structs.replace(link, path="")


def _printed(way: Way, url: str) -> Any:
    result = CliRunner().invoke(main, [*way.command.split(), "--server", url, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    return found[way.key] if way.key else found
