"""Verbs on another event loop than the engine's: refused with what to write instead, and the engine goes on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import outlive
from outlive.checkpoints import CheckpointStore
from outlive.errors.program import NotDurableError, OtherLoopError
from outlive.types import Batch, RunHandle, WorkerOptions
from tests.engine.support import in_time, note, reaches, stage


@outlive.workflow(name="loops.until_signal")
async def until_signal() -> Any:
    return await outlive.wait_for_signal("go")


@outlive.workflow(name="loops.impatient")
async def impatient(run_id: str) -> str:
    handle: RunHandle[Any] = stage.values["handle"]
    return str(await handle.status())


Verb = Callable[[Any], Any]
PROMISE = f"waits:{'0' * 24}"
ENGINE: dict[str, Verb] = {
    "start": lambda engine: engine.start(until_signal, id="waits"),
    "start_many": lambda engine: engine.start_many([(until_signal,)]),
    "start_batch": lambda engine: engine.start_batch(note, ["a"]),
    "signal": lambda engine: engine.signal("waits", "go"),
    "signal_many": lambda engine: engine.signal_many([("waits", "go")]),
    "approve": lambda engine: engine.approvals.approve("waits", "a", by="me"),
    "reject": lambda engine: engine.approvals.reject("waits", "a", by="me"),
    "approvals": lambda engine: engine.approvals.list("waits"),
    "cancel": lambda engine: engine.cancel("waits"),
    "resume": lambda engine: engine.resume("waits"),
    "skip_step": lambda engine: engine.skip_step("waits"),
    "change": lambda engine: engine.change("waits", tags={"stage": "held"}),
    "count_by": lambda engine: engine.count_by("status"),
    "history": lambda engine: engine.history("waits"),
    "export": lambda engine: engine.export("waits"),
    "list_stuck": lambda engine: engine.list_stuck(),
    "fail": lambda engine: engine.promises.fail(PROMISE, ValueError("planned")),
    "resolve": lambda engine: engine.promises.resolve(PROMISE),
    "pause": lambda engine: engine.pause("waits"),
    "retry": lambda engine: engine.retry("waits"),
    "list": lambda engine: engine.list(),
}
HANDLE: dict[str, Verb] = {
    "until": lambda run: run.until("waiting"),
    "change": lambda run: run.change(tags={"stage": "held"}),
    "signal": lambda run: run.signal("go"),
    "approve": lambda run: run.approve("a", by="me"),
    "reject": lambda run: run.reject("a", by="me"),
    "export": lambda run: run.export("/dev/null"),
}
CHECKPOINTS: dict[str, Verb] = {
    "append": lambda store: store.append("x", outlive.checkpoints.Checkpoint(sequence=1, state="s")),
    "load_run": lambda store: store.load_run("x"),
    "clear": lambda store: store.clear("x"),
}


def verbs_of(cls: type, table: dict[str, Verb], thing: Any) -> list[Any]:
    """A coroutine of every public async verb of a class; one that is not in the table is given ids."""

    def is_verb(member: object) -> bool:
        return inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)

    names = [name for name, _ in inspect.getmembers(cls, is_verb) if not name.startswith("_")]
    assert names
    return [table[name](thing) if name in table else called(getattr(thing, name)) for name in names]


def called(verb: Any) -> Any:
    """A verb with a run id for everything that it must be given."""
    parameters = inspect.signature(verb).parameters.values()
    needed = [each for each in parameters if each.default is each.empty]
    by_name = {each.name: "waits" for each in needed if each.kind is each.KEYWORD_ONLY}
    by_place = [each for each in needed if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return verb(*("waits" for _ in by_place), **by_name)


async def is_refused(verb: Any) -> bool:
    """Whether a verb says where to go instead."""
    try:
        if inspect.isasyncgen(verb):
            await anext(verb)
        else:
            await verb
    except OtherLoopError as error:
        return "engine.sync" in str(error) and "run_coroutine_threadsafe" in str(error)
    return False


async def test_every_verb_is_refused_on_another_loop() -> None:
    """The verbs of an engine, a run, a batch and checkpoints are refused on another event loop, and runs of the owner's
    loop go on."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        run = await engine.start(until_signal, id="waits")
        batch = await engine.start_batch(note, ["a"])
        await in_time(batch.result())

        async def try_all() -> list[str]:
            things: list[tuple[type, dict[str, Verb], Any]] = [
                (outlive.Engine, ENGINE, engine),
                (RunHandle, HANDLE, run),
                (Batch, {}, batch),
                (CheckpointStore, CHECKPOINTS, engine.checkpoints),
            ]
            verbs = [verb for cls, table, thing in things for verb in verbs_of(cls, table, thing)]
            return [str(verb) for verb in verbs if not await is_refused(verb)]

        assert [] == await asyncio.to_thread(asyncio.run, try_all())
        await run.signal("go", "on")
        assert "on" == await in_time(run.result())


async def test_a_verb_is_refused_where_no_loop_runs() -> None:
    """A coroutine that is driven by hand, on a thread without a loop."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:

        def drive() -> None:
            with pytest.raises(OtherLoopError, match="no event loop runs"):
                engine.list().send(None)

        await asyncio.to_thread(drive)


def test_an_engine_whose_loop_was_closed_says_so() -> None:
    """It was entered and never left; it can neither be used nor be left on another loop."""
    engine = outlive.Engine("memory:", worker=WorkerOptions(tune=False))

    async def enter() -> None:
        await engine.__aenter__()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    asyncio.run(enter())
    with pytest.raises(OtherLoopError, match="was closed"):
        asyncio.run(engine.start(until_signal))
    with pytest.raises(OtherLoopError, match="was closed"):
        asyncio.run(engine.__aexit__(None, None, None))


async def test_checkpoints_without_an_engine_belong_to_their_loop_too() -> None:
    """The store under them is bound to it."""
    async with outlive.checkpoints.open_store("memory:") as store:

        async def use() -> bool:
            return await is_refused(store.load_run("x"))

        assert await asyncio.to_thread(asyncio.run, use())
        assert [] == await store.load_run("x")


async def test_a_handle_in_a_workflow_is_not_durable() -> None:
    """A run's own loop is another one too, but there the remedy is a step; the run is parked and not failed."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        stage.values["handle"] = await engine.start(until_signal, id="waits")
        run = await engine.start(impatient, "waits")
        await reaches(run, "parked")
        assert str(NotDurableError("an engine's verb"))[:20] in await run.why()


async def test_the_bridge_for_threads_goes_on_working() -> None:
    """`engine.sync` marshals to the engine's loop."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        run = await asyncio.to_thread(lambda: engine.sync.start(until_signal))
        await asyncio.to_thread(lambda: engine.sync.signal(run.id, "go", 1))
        assert 1 == await asyncio.to_thread(run.result)
