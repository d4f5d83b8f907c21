"""`outlive.connect`: the verbs of an engine over HTTP, against a real server on this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

import outlive
from outlive.errors import (
    ArgumentTypeError,
    AskFailedError,
    InvalidArgumentError,
    ResultTimeoutError,
    RunCancelledError,
    RunExistsError,
    RunFailedError,
    RunFinishedError,
    RunNotFoundError,
    ServerError,
    WrongArgumentsError,
)
from outlive.errors.flow import FlowNotFoundError, StaleFlowError
from outlive.errors.outside import UnreachableError
from outlive.errors.program import UnknownWorkflowError
from outlive.errors.run import InvalidRunIdError, TaskEndedError
from outlive.flow import FlowError, FlowInputError
from outlive.http import FixedKeys, Principal
from outlive.http.server import new_server, serve
from outlive.remote import Remote
from outlive.remote.connection import Connection
from outlive.remote.refusal import raise_refusal
from outlive.remote.transport import Answer
from outlive.remote.values import query_of

KEY = "a-key-that-has-thirty-two-characters-or-more"


@dataclass
class Parcel:
    """What the workflow gives back."""

    to: str
    grams: int


@outlive.step
async def weigh_parcel(to: str) -> Parcel:
    """Puts it on the scales."""
    return Parcel(to, 120)


@outlive.workflow
async def send_parcel(to: str) -> Parcel:
    """Weighs a parcel, after a signal."""
    await outlive.wait_for_signal("weigh")
    return await weigh_parcel(to)


@outlive.workflow
async def tell_numbers() -> int:
    """Emits a few, and says how many."""
    for number in range(3):
        outlive.emit("numbers", number)
    outlive.publish(count=3)
    return 3


@outlive.workflow
async def break_parcel() -> None:
    """Fails."""
    raise ValueError("it is broken")


@outlive.workflow
async def answer_once() -> str:
    """Answers one ask, and refuses another."""
    async for ask in outlive.asks("price", int):
        if ask.body >= 0:
            ask.reply(ask.body + 1)
            break
        ask.fail(ValueError("no such price"))
    return "asked"


@asynccontextmanager
async def served(engine: outlive.Engine, **options: Any) -> AsyncIterator[str]:
    """The address of a server of this engine."""
    server = new_server(engine.asgi(**options), port=0)
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(server, ready=address.set_result))
    try:
        yield await address
    finally:
        server.should_exit = True
        await serving


@pytest.fixture
async def remote() -> AsyncIterator[Remote]:
    """A connection to an engine with a worker."""
    async with outlive.Engine("memory:") as engine, served(engine) as url, outlive.connect(url) as remote:
        yield remote


async def test_a_person_is_named_where_no_key_is_needed(remote: Remote) -> None:
    """`by` is in what people read, as on an engine."""
    await remote.pause(workflow="send_parcel", by="ann", reason="stocktaking")
    run = await remote.start(send_parcel, "bob", id="parcel-by")

    assert "paused by ann: stocktaking" in await run.why()


async def test_a_run_is_started_signalled_and_gives_its_own_type(remote: Remote) -> None:
    """By the function of the workflow, where this program has it."""
    run = await remote.start(send_parcel, "ann", id="parcel-1")
    with pytest.raises(ResultTimeoutError, match="waits for signal 'weigh'"):
        await run.result(timeout=0)
    await run.signal("weigh")

    assert await run.result(timeout=30) == Parcel("ann", 120)
    assert (await run.status()) == "succeeded"
    assert await remote.get("parcel-1").result() == {"to": "ann", "grams": 120}
    assert [event.type for event in await run.history()][-1] == "RunSucceeded"


async def test_a_program_waits_for_a_status_and_for_a_published_value(remote: Remote) -> None:
    """A connection waits for a status and for a published value, and raises the errors of an engine."""
    run = await remote.start(tell_numbers, id="numbers-7")
    assert (await run.until("succeeded", timeout="30s")).has_ended
    assert await run.published("count", timeout=30) == 3
    with pytest.raises(RunFinishedError, match="has not published 'weight'"):
        await run.published("weight", timeout=30)
    parcel = await remote.start(send_parcel, "ann", id="parcel-7")
    assert (await parcel.until("waiting", timeout=30)).waits[0].name == "weigh"
    with pytest.raises(ResultTimeoutError, match="has not come to succeeded"):
        await parcel.until("succeeded", timeout=0.05)
    await parcel.cancel()
    with pytest.raises(RunFinishedError, match="will not be succeeded any more"):
        await parcel.until("succeeded", timeout=30)


async def test_connection_knows_its_event_loop_while_it_is_open(remote: Remote) -> None:
    """Code on threads sends its verbs there."""
    assert remote.loop is asyncio.get_running_loop()
    async with outlive.connect("http://127.0.0.1:1") as other:
        assert other.loop is asyncio.get_running_loop()
    assert other.loop is None


async def test_filters_are_parameters_of_the_address() -> None:
    """Tags are one parameter each; what was not given is not there."""
    asked_at = datetime(2026, 11, 18, tzinfo=UTC)
    filters = {"tags": {"team": "a", "stage": "packing"}, "status": "failed", "since": asked_at, "roots_only": True}

    assert query_of(filters) == {
        "tag": ["team=a", "stage=packing"],
        "status": ["failed"],
        "since": "2026-11-18T00:00:00+00:00",
        "roots_only": "true",
    }
    assert query_of({"workflow": "order"}) == query_of({"workflow": "order", "tags": {}}) == {"workflow": "order"}


async def test_claim_that_wants_to_wait_for_nothing_asks_once(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is not asked to wait either."""
    asked: list[Any] = []
    honest = Connection.operate

    async def operate(connection: Connection, name: str, **options: Any) -> Any:
        asked.append(options["body"]["wait"])
        return await honest(connection, name, **options)

    monkeypatch.setattr(Connection, "operate", operate)
    assert await remote.tasks.claim("gpu", ["resize"]) is None
    assert asked == [0]


async def test_a_run_is_started_by_name_found_and_counted(remote: Remote) -> None:
    """By programs that do not have the code."""
    first = await remote.start("send_parcel", {"to": "bob"}, id="parcel-2", tags={"to": "bob"})
    again = await remote.start("send_parcel", {"to": "bob"}, id="parcel-2")

    assert first.id == again.id == "parcel-2"
    assert [run.id for run in await remote.list(tags={"to": "bob"}, status="waiting")] == ["parcel-2"]
    assert await remote.count(workflow="send_parcel") == 1
    assert {it.name for it in await remote.workflows.list()} >= {"send_parcel", "break_parcel"}
    await first.cancel(reason="not needed")
    with pytest.raises(RunCancelledError, match="not needed"):
        await first.result(timeout=30)


async def test_arguments_that_do_not_fit_are_refused_before_the_run_exists(remote: Remote) -> None:
    """Where the program has the workflow, or the flow: as by an engine, with the same error."""
    flow = outlive.flow.parse(PARCELS)
    with pytest.raises(FlowInputError, match=r"input\.to is missing"):
        await remote.start(flow, {}, id="wrong")
    with pytest.raises(RunNotFoundError):
        await remote.get("wrong").info()


async def test_flow_of_the_library_is_started_with_every_option_of_a_start(remote: Remote) -> None:
    """Its run has the headers, and an id that is taken is refused where that is wanted."""
    await remote.flows.apply(PARCELS)
    options: Any = {"id": "flow-1", "headers": {"tenant": "a"}, "tags": {"to": "ann"}, "timeout": 60, "delay": 3600}
    run = await remote.flows.start("remote-parcels", {"to": "ann"}, **options)
    (first, *_) = await run.history()

    assert (first.data["headers"], (await run.info()).tags) == ({"tenant": "a"}, {"to": "ann"})
    with pytest.raises(RunExistsError):
        await remote.flows.start("remote-parcels", {"to": "bob"}, id="flow-1", on_conflict="reject")


async def test_an_ask_is_answered_or_refused(remote: Remote) -> None:
    """An ask over a connection gets its answer, or AskFailedError with the exception of the workflow."""
    run = await remote.start("answer_once")
    with pytest.raises(AskFailedError, match="no such price") as refused:
        await run.ask("price", -1, timeout=30)
    assert repr(refused.value.__cause__) == "ValueError('no such price')"
    assert await run.ask("price", 6, timeout=30) == 7
    assert await run.result(timeout=30) == "asked"


@outlive.workflow
async def label_parcel(grams: int) -> str:
    """One row of a batch; nothing for what weighs nothing."""
    if not grams:
        raise ValueError("it weighs nothing")
    return f"{grams} g"


@outlive.workflow
async def promise_parcel() -> str:
    """Waits for a promise, and for a person."""
    promise = outlive.promise(str)
    outlive.publish(promise=promise.id)
    try:
        found = await promise
    except outlive.errors.PromiseFailedError as error:
        found = str(error)
    await outlive.wait_for_approval("ship", title=found)
    return found


async def test_a_batch_is_started_and_read(remote: Remote) -> None:
    """By name or by the function; its items have the order of the rows."""
    good = await remote.start_batch(label_parcel, [1, 2, 3], id="labels-1", concurrency=2)
    bad = await remote.start_batch("label_parcel", [1, 0], id="labels-2")

    assert await good.results(timeout=30) == ["1 g", "2 g", "3 g"]
    assert ((await good.info()).succeeded, remote.batches.get("labels-1").id) == (3, "labels-1")
    assert [item.error is None async for item in bad.outcomes(timeout=30)] == [True, False]
    assert [(it.index, str(it.error)) for it in await bad.failures()] == [(1, "ValueError: it weighs nothing")]
    result, error = await bad.results(timeout=30)
    assert (result, type(error), str(error)) == ("1 g", ValueError, "it weighs nothing")
    assert (await bad.status()) == "succeeded"
    assert await bad.result() == {"total": 2, "succeeded": 1, "failed": 1}
    assert (await bad.retry(id="labels-3")).id == "labels-3"
    empty = await remote.start_batch(label_parcel, [])
    assert [item.value async for item in empty.items()] == await empty.results(timeout=30) == []


PARCELS = """
name: remote-parcels
input: {to: {type: string}}
steps: {say: {use: log, must_run: true, with: {message: "${{ input.to }}"}}}
"""
gates: dict[int, asyncio.Event] = {}


@outlive.step
async def pass_numbered_gate(number: int) -> int:
    """Waits until the test opens the gate of this number."""
    if number == 13:
        raise ValueError("unlucky")
    await gates[number].wait()
    return number


async def test_items_of_a_batch_come_as_they_finish() -> None:
    """The last row may be the first; who comes later gets all of them. Who wants all in order waits for the end, and
    a batch that fails says so there."""
    gates.update({number: asyncio.Event() for number in range(3)})
    async with outlive.Engine("memory:") as engine, served(engine) as url, outlive.connect(url) as remote:
        await engine.start_batch(pass_numbered_gate, range(3), id="gates")
        with pytest.raises(ResultTimeoutError):
            await remote.batches.get("gates").results(timeout=0.01)
        gates[2].set()
        seen = []
        async for item in remote.batches.get("gates").items():
            seen.append(item.index)
            if seen == [2]:
                gates[0].set()
            elif seen == [2, 0]:
                gates[1].set()
        assert seen == [2, 0, 1]
        assert [item.result async for item in remote.batches.get("gates").items()] == [0, 1, 2]
        tolerance = outlive.limits.Tolerance(failures=0)
        await engine.start_batch(pass_numbered_gate, [13], id="unlucky", tolerate=tolerance)
        items = remote.batches.get("unlucky").items()
        assert str((await anext(items)).error) == "unlucky"
        with pytest.raises(RunFailedError):
            await anext(items)
        with pytest.raises(RunFailedError):
            await remote.batches.get("unlucky").results()


async def test_promises_are_settled_and_the_inbox_is_seen(remote: Remote) -> None:
    """With a value or an error; the second caller learns that it was not the first."""
    kept, broken = [await remote.start(promise_parcel, id=name) for name in ("kept", "broken")]

    async def promise_of(run: Any) -> str:
        async for shown in run.watch():
            return str(shown["promise"])
        raise AssertionError

    assert await remote.promises.resolve(await promise_of(kept), "yours") is True
    assert await remote.promises.resolve(await promise_of(kept), "mine") is False
    assert await remote.promises.fail(await promise_of(broken), ValueError("sold out")) is True
    assert (await asked_for(kept)) == "ship"
    assert [(it.name, it.title) for it in await remote.approvals.list("kept")] == [("ship", "yours")]
    assert "kept" in [it.run_id for it in await remote.approvals.list(workflow="promise_parcel")]
    await kept.approve("ship")
    assert await kept.result(timeout=30) == "yours"


async def test_a_message_creates_its_run(remote: Remote) -> None:
    """By the function of the workflow, or by its name."""
    assert await remote.ask("new-1", "price", 7, key="k", start=(answer_once,), timeout=30) == 8
    assert await remote.ask("new-1", "price", 7, key="k", start=("answer_once", {}), timeout=30) == 8
    await remote.signal("new-2", "weigh", start=("send_parcel", {"to": "ann"}), headers={"tenant": "a"})
    assert await remote.get("new-2").result(timeout=30) == {"to": "ann", "grams": 120}
    await remote.signal("new-3", "weigh", start=(send_parcel, "bob"))
    assert await remote.get("new-3").result(timeout=30) == {"to": "bob", "grams": 120}
    with pytest.raises(InvalidArgumentError, match="give start="):
        await remote.signal("new-3", "weigh", headers={"tenant": "a"})


async def test_queues_schedules_and_workflows_are_operated(remote: Remote) -> None:
    """With the values that an engine gives; also what is for the whole store."""
    await remote.queues.set("mail", concurrency=7, rate=outlive.limits.TokenBucket(10, burst=50), weights={"acme": 3})
    paced = (await remote.queues.stats("mail")).limits
    assert ([it.tier for it in paced.rate], paced.weights) == ([outlive.limits.TokenBucket(10, 50)], {"acme": 3})
    await remote.queues.set("mail", rate=outlive.limits.SlidingWindow(5, 2))
    assert [it.tier for it in (await remote.queues.stats("mail")).limits.rate] == [outlive.limits.SlidingWindow(5, 2)]
    await remote.queues.set("mail", rate=None, weights=None)
    with pytest.raises(InvalidArgumentError, match="it can be set at run time for concurrency"):
        await remote.queues.set("mail", hold="end")
    await remote.pause(queue="mail", reason="rain")
    info = await remote.queues.stats("mail")
    assert (info.limits.concurrency, info.paused, int(info.running)) == (7, "paused by local: rain", 0)
    await remote.resume(queue="mail")
    await remote.queues.drain("mail")
    assert "mail" in [it.name for it in await remote.queues.list()]

    holidays = [date(2030, 12, 24)]
    daily = outlive.cron("0 6 * * 1-5", tz="Europe/Stockholm", overlap="allow", catch_up=3, exclude=holidays, jitter=5)
    made = await remote.schedules.set("digest", daily, tell_numbers)
    assert (made.workflow, made.is_paused, made.schedule) == ("tell_numbers", False, replace(daily, name="digest"))
    await remote.schedules.pause("digest", reason="rain")
    assert (await remote.schedules.get("digest")).is_paused
    assert (await remote.schedules.trigger("digest", id="digest-now")).id == "digest-now"
    await remote.schedules.delete("digest")
    assert await remote.schedules.list() == []

    await remote.pause(workflow="send_parcel")
    await remote.resume(workflow="send_parcel")
    assert await remote.list_stuck() == []
    assert (await remote.events.send("nothing.hears", {})).runs == []
    assert (await remote.audit.list(verb="queue.set"))[0].target == "mail"
    assert (await remote.keys.create("bob", scope="viewer")).key.name == "bob"
    with pytest.raises(InvalidArgumentError, match="give a run, a workflow, a queue, all, or filters"):
        await remote.pause()


async def test_the_library_of_flows_has_the_verbs_of_an_engine(remote: Remote) -> None:
    """With the values and errors of an engine; a document is checked before it is sent."""
    text = 'name: remote-flow\ninput: {n: integer}\nsteps: {look: {use: noop}}\noutput: "${{ input.n }}"\n'
    first = await remote.flows.apply(text, reason="first")
    assert (first.name, first.revision, first.current and first.current.by) == ("remote-flow", 1, "local")
    run = await remote.flows.start("remote-flow", {"n": 7}, id="flow-1", timeout=timedelta(minutes=1))
    assert await run.result(timeout=30) == 7
    drafted = await remote.flows.save_draft(text.replace("input.n }}", "input.n + 1 }}"))
    assert drafted.draft is not None
    assert (drafted.draft.number, (await remote.flows.get("remote-flow", draft=True)).revision) == (1, 0)
    assert (await remote.flows.discard_draft("remote-flow")).draft is None
    stored = await remote.flows.get("remote-flow")
    assert (stored.text, stored.document.name, stored.hash) == (text, "remote-flow", first.hash)
    assert (await remote.flows.info("remote-flow")).is_enabled
    with pytest.raises(FlowError, match="a step has no field"):
        await remote.flows.apply(text.replace("use:", "uses:"))
    with pytest.raises(FlowInputError, match="does not take this"):
        await remote.flows.start("remote-flow", {"n": "seven"})
    with pytest.raises(FlowNotFoundError, match="has no draft"):
        await remote.flows.publish("remote-flow")
    with pytest.raises(StaleFlowError, match="revision 9 was expected"):
        await remote.flows.delete("remote-flow", expected=9)
    assert (await remote.operate("runs.document", run_id="flow-1")).text == text
    await (await remote.start(tell_numbers, id="no-flow")).result(timeout=30)
    with pytest.raises(FlowNotFoundError, match="no document in the library for run no-flow"):
        await remote.operate("runs.document", run_id="no-flow")


async def asked_for(run: outlive.types.RunHandle[Any]) -> str:
    """The name of the approval that a run asks for."""
    async for event in run.follow():
        if event.type == "ApprovalRequested":
            return str(event.data["name"])
    raise AssertionError("it asks for nothing")


async def test_streams_publications_and_events_are_followed(remote: Remote) -> None:
    """A connection follows the stream, the published values and the events of a run."""
    run = await remote.start(tell_numbers, id="numbers-1")

    assert [number async for number in run.stream("numbers")] == [0, 1, 2]
    assert [shown async for shown in run.watch()][-1] == {"count": 3}
    events = [event async for event in run.follow()]
    assert events == await run.history()
    assert [event async for event in run.follow(after=events[1].seq)] == events[2:]
    with pytest.raises(RunNotFoundError, match="nowhere"):
        await anext(remote.get("nowhere").stream("numbers"))


async def test_errors_are_those_of_an_engine(remote: Remote) -> None:
    """By class, so that a program that handles them works with both."""
    with pytest.raises(RunNotFoundError, match="nowhere"):
        await remote.get("nowhere").why()
    with pytest.raises(UnknownWorkflowError, match="send_parsel"):
        await remote.start("send_parsel", {"to": "ann"})
    with pytest.raises(InvalidArgumentError):
        await remote.start("send_parcel", {"to": 7})
    with pytest.raises(ArgumentTypeError, match=r"give the arguments of send_parcel by name, .* or in a list"):
        await remote.start("send_parcel", "ann")
    with pytest.raises(RunFailedError, match="it is broken"):
        await (await remote.start(break_parcel)).result(timeout=30)


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        (lambda it: it.start(send_parcel), WrongArgumentsError),
        (lambda it: it.start(send_parcel, "ann", "bob"), WrongArgumentsError),
        (lambda it: it.start(send_parcel, "ann", id="a/b"), InvalidRunIdError),
        (lambda it: it.start(send_parcel, "ann", on_conflict="fight"), InvalidArgumentError),
        (lambda it: it.signal("parcel-1", ""), InvalidArgumentError),
        (lambda it: it.get(7).why(), ArgumentTypeError),
        (lambda it: it.list(limit=0), InvalidArgumentError),
        (lambda it: it.promises.fail("promise", "no exception"), ArgumentTypeError),
        (lambda it: it.start_batch(label_parcel, 7), ArgumentTypeError),
        (lambda it: it.start_batch(label_parcel, [1], version=2), InvalidArgumentError),
        (lambda it: it.schedules.set("digest", "daily", tell_numbers), ArgumentTypeError),
        (lambda it: it.events.send("parcel.sent", object()), ArgumentTypeError),
        (lambda it: it.tasks.claim("gpu", "resize"), ArgumentTypeError),
        (lambda it: it.tasks.claim("gpu", ["resize"], wait=-1), InvalidArgumentError),
        (lambda it: it.keys.create("ann", scope="king"), InvalidArgumentError),
    ],
    ids=range(15),
)
async def test_a_connection_raises_the_errors_of_an_engine(
    remote: Remote, verb: Callable[[Any], Any], error: type[Exception]
) -> None:
    """A verb that an engine refuses raises the same class over a connection."""
    with pytest.raises(error):
        await verb(remote)
    async with outlive.Engine("memory:", worker=False) as engine:
        with pytest.raises(error):
            await verb(engine)


async def test_a_message_that_is_too_large_for_a_server_is_refused_at_once(remote: Remote) -> None:
    """A message that is too large for the server gets 413, even if the server has closed the connection before all of
    it was sent."""
    with pytest.raises(ServerError, match="413 too_large"):
        await remote.signal("parcel-1", "weigh", "x" * 12 * 1024 * 1024)


@outlive.workflow(on_event="parcel.lost")
async def search_parcel(data: dict[str, Any]) -> None:
    """Is started by an event."""


async def test_an_event_that_is_sent_twice_says_so(remote: Remote) -> None:
    """An event that is sent twice names the same run, and says that neither run nor delivery is new the second time."""
    await remote.events.add_sink("crm", "http://127.0.0.1:9/", types=["parcel.lost"])

    first, again = [await remote.events.send("parcel.lost", {}, id="e-1") for _ in range(2)]

    # Workflows of other tests may want every event.
    one, same = [next(it for it in sent.runs if it.workflow == "search_parcel") for sent in (first, again)]
    assert (one.is_new, same.is_new, same.run_id) == (True, False, one.run_id)
    assert [it.is_new for it in (*first.deliveries, *again.deliveries)] == [True, False]


async def test_a_key_expires_as_that_of_an_engine(remote: Remote) -> None:
    """After a span of time, or at an instant."""
    day = timedelta(days=1)
    until = datetime.now(UTC) + day

    keys = [(await remote.keys.create("ann", expires=expires)).key for expires in (day, day.total_seconds(), until)]

    ends = [key.expires_at for key in keys]
    assert [end is not None and abs(end - until) < timedelta(minutes=1) for end in ends] == [True] * 3


async def test_sync_code_has_the_same_verbs() -> None:
    """On a thread of its own."""

    def play(url: str) -> object:
        with outlive.connect(url).sync as engine:
            run = engine.start(send_parcel, "eve", id="parcel-3")
            engine.get("parcel-3").signal("weigh")
            engine.queues.set("mail", concurrency=7)
            assert engine.queues.stats("mail").limits.concurrency == 7
            assert engine.start_batch(label_parcel, [1, 2]).results(timeout=30) == ["1 g", "2 g"]
            return run.result(timeout=30)

    async with outlive.Engine("memory:") as engine, served(engine) as url:
        assert await asyncio.to_thread(play, url) == Parcel("eve", 120)


@outlive.workflow
async def pack_parcel(to: str = "dock", *, grams: int = 0) -> Parcel:
    """Says what it was given."""
    return Parcel(to, grams)


async def test_arguments_that_are_bound_by_name_arrive(remote: Remote) -> None:
    """Arguments that are bound by name arrive, also those of a run that a message creates, with the options of an
    engine."""
    line = outlive.Queue("packing")
    call = pack_parcel.bind("ann", grams=7)
    run = await remote.start(call, queue=line, timeout=timedelta(minutes=1), delay=timedelta(milliseconds=1))
    await remote.signal("packed", "now", start=(pack_parcel.bind(grams=8),))

    assert await run.result(timeout=timedelta(seconds=30)) == Parcel("ann", 7)
    assert (await run.info()).queue == "packing"
    assert await remote.get("packed").result(timeout=30) == {"to": "dock", "grams": 8}
    with pytest.raises(TypeError, match=r"start has no such option"):
        await remote.start(pack_parcel, grams=7)  # type: ignore[call-overload]


double_parcel = outlive.remote_step("remote_double", input=int, output=int, queue="remote-sums")


@outlive.workflow
async def double_remotely(number: int) -> int:
    """Waits for a worker elsewhere."""
    return await double_parcel(number)


async def test_the_other_verbs_of_an_engine_work_over_http(remote: Remote) -> None:
    """Tasks, answers, links, sinks, pauses and purges work over a connection as on an engine."""
    doubling = await remote.start(double_remotely, 4, id="doubling")
    task = await remote.tasks.claim("remote-sums", ["remote_double"], wait=30)
    assert task is not None
    assert (await remote.tasks.heartbeat(task.id, task.lease, progress={"done": 1})).is_cancelled is False
    await remote.tasks.complete(task.id, task.lease, 8)
    assert await doubling.result(timeout=30) == 8
    with pytest.raises(TaskEndedError):
        await remote.tasks.fail(task.id, task.lease, "late")

    asked = await remote.start(answer_once, id="asked")
    assert await asked.ask("price", 6, key="k-1", reply=int, timeout=30) == 7
    assert await asked.answer("price", "k-1", timeout=30) == 7
    assert await asked.result(timeout=30) == "asked"

    shipping = await remote.start(ship_parcel, id="shipping")
    assert (await asked_for(shipping)) == "ship"
    link = await remote.approvals.links.create("shipping", "ship", approved=True, by="ann")
    assert (await remote.approvals.links.use(link.path.rpartition("/")[2])).by == "ann"
    assert await shipping.result(timeout=30) == "ann"
    assert [it.name for it in await shipping.approvals()] == ["ship"]
    assert await shipping.dead_letters() == []

    await remote.events.add_sink("crm", "https://example.org/crm", types=["order.*"])
    assert [(it.name, it.types) for it in await remote.events.sinks()] == [("crm", ("order.*",))]
    await remote.events.remove_sink("crm")
    await remote.events.forget("nothing")
    assert (await remote.health()).is_ready

    waiting = await remote.start(send_parcel, "ann", id="held-1")
    assert [it.id for it in await remote.pause(id_prefix="held-")] == ["held-1"]
    async for event in waiting.follow():
        if event.type == "RunParked":
            break
    with pytest.raises(ResultTimeoutError, match="it is paused"):  # A paused run is waited for, as by an engine.
        await waiting.result(timeout=0)
    assert [it.id for it in await remote.resume(id_prefix="held-", status="parked")] == ["held-1"]
    await remote.pause(all=True, reason="a move")
    assert "a move" in await (await remote.start(tell_numbers, id="held-2")).why()
    await remote.resume(all=True)
    assert await remote.get("held-2").result(timeout=30) == 3
    gone = await remote.purge(older_than=timedelta(0), workflow="ship_parcel")
    assert (gone.found, gone.deleted) == (1, 1)
    with pytest.raises(InvalidArgumentError, match="operationId"):
        await remote.operate("fly_parcel")
    with pytest.raises(InvalidArgumentError, match="give run_id=, for /api/v1/runs"):
        await remote.operate("runs.info", id="held-1")


@outlive.workflow
async def ship_parcel() -> str:
    """Asks a person."""
    return (await outlive.wait_for_approval("ship", title="Ship it?")).by


async def test_items_of_a_stream_have_a_type_and_a_position(remote: Remote) -> None:
    """If the reader wants that."""
    run = await remote.start(tell_numbers)

    assert [item async for item in run.stream("numbers", str, positions=True, after=3)] == []
    items = [item async for item in run.stream("numbers", float, positions=True)]
    assert [(item.position, item.value) for item in items] == [(1, 0.0), (2, 1.0), (3, 2.0)]
    assert {type(item.value) for item in items} == {float}
    assert isinstance(items[0], outlive.types.StreamItem)


async def test_a_key_is_shown_and_a_wrong_one_is_refused() -> None:
    """With what to do about it."""
    keys = FixedKeys({KEY: Principal("ann", frozenset({"operator"}))})
    async with outlive.Engine("memory:") as engine, served(engine, auth=keys) as url:
        async with outlive.connect(url, key=KEY) as remote:
            assert await remote.count() == 0
        async with outlive.connect(url, key=KEY[::-1]) as remote:
            with pytest.raises(ServerError, match="401") as refused:
                await remote.count()
    assert str(refused.value).endswith(f"; {refused.value.next}")


def test_the_caller_of_a_server_of_another_kind_gets_one_line() -> None:
    """A page of a proxy, or nothing at all."""
    for body, shown in (
        (b"<html>\n  <h1>Not Found</h1>\r\n</html>", "<html> <h1>Not Found</h1> </html>"),
        (b"", "nothing"),
    ):
        with pytest.raises(ServerError) as refused:
            raise_refusal(Answer(404, body))
        assert str(refused.value) == f"the server answered 404: {shown}; Is this the address of `outlive serve`?"


async def test_a_server_that_is_away_for_a_moment_is_asked_again() -> None:
    """A start is sent again to a server that is away for a moment, and starts one run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with outlive.Engine("memory:") as engine, outlive.connect(f"http://127.0.0.1:{port}") as remote:
        starting = asyncio.create_task(remote.start(send_parcel, "ann"))
        await asyncio.sleep(0)
        server = new_server(engine.asgi(), port=port)
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(server, ready=address.set_result))
        await starting
        assert await remote.count() == 1
        server.should_exit = True
        await serving


async def test_a_server_that_stays_away_is_named() -> None:
    """After the time that the caller gave."""
    async with outlive.connect("http://127.0.0.1:9", timeout=0.1) as remote:
        with pytest.raises(UnreachableError, match=r"http://127\.0\.0\.1:9 gave no answer"):
            await remote.count()


@pytest.mark.parametrize("url", ["runs.example.com", "ftp://a", "http://", "http://a?b=c", 7, "https://user:pass@host"])
def test_an_invalid_address_of_a_server_is_refused(url: str) -> None:
    """An address that cannot be one of a server is refused before anything is sent."""
    with pytest.raises(InvalidArgumentError, match=r"outlive\.connect"):
        outlive.connect(url)
