"""Flows in the store: published, started by name, run by workers that never saw a file, and taken back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._features.flows.library.records import DOCUMENT_CELLS, HISTORY_CELLS, INDEX_CELL
from outlive._features.moving.moving import move_store
from outlive.errors import InvalidArgumentError, RunNotFoundError
from outlive.errors.flow import FlowDamagedError, FlowDisabledError, FlowInUseError, FlowNotFoundError, StaleFlowError
from outlive.errors.store import HistoryFormatError
from outlive.flow import FlowError, FlowInputError
from outlive.testing import TestEngine
from tests.engine.inside import find_flow, store_of
from tests.engine.support import Place, in_time, until, waits

GREETING = """\
# What we say to people.
name: greeting
input: { who: { type: string } }
steps:
  say: { use: noop, with: { text: "Hello, ${{ input.who }}!" } }
output: "${{ steps.say.text }}"
"""
POLITE = GREETING.replace("Hello", "Good day")
WAITING = """\
name: lib-waiting
steps:
  ready: { use: wait_for_signal, with: { name: go } }
  say: { use: noop, after: [ready], with: { text: ONE } }
output: "${{ steps.say.text }}"
"""


@outlive.step(name="lib.only_there")
async def only_there(number: int) -> int:
    """A step that some workers have."""
    return number + 1


@outlive.workflow
async def lib_plain(number: int) -> int:
    """What is not a flow."""
    return await only_there(number)


@pytest.mark.every_store
async def test_stored_flow_is_run_by_workers_without_a_file(place: Place) -> None:
    """Applied and started by programs without a worker; a worker that was there before runs it. [FB-S11]"""
    async with place.engine(worker=False) as people, place.engine():
        info = await people.flows.apply(GREETING, by="ann", reason="first words")
        assert (1, 12, True) == (info.revision, len(info.hash), info.is_enabled)
        with pytest.raises(FlowNotFoundError, match="nothing before revision 1 to roll back to"):
            await people.flows.rollback("greeting")
        run = await people.flows.start("greeting", {"who": "Ann"}, id="greet-1")
        assert "Hello, Ann!" == await in_time(run.result())

        again = await people.flows.apply(GREETING + "# A comment more.\n", by="bob")
        assert again == info
        assert (await people.flows.get("greeting")).text.endswith("# A comment more.\n")

        await people.flows.apply(POLITE, by="bob", reason="more polite", expected=1)
        later = await people.flows.start("greeting", {"who": "Ann"})
        old = await people.flows.start("greeting", {"who": "Bob"}, revision=1)
        assert ["Good day, Ann!", "Hello, Bob!"] == [await in_time(each.result()) for each in (later, old)]

        with pytest.raises(StaleFlowError, match="is at revision 2 by bob, and revision 1 was expected"):
            await people.flows.apply(GREETING, expected=1)
        back = await people.flows.rollback("greeting", by="ann")
        assert (3, info.hash) == (back.revision, back.hash)
        said = [(each.number, each.by, each.reason) for each in await people.flows.history("greeting")]
        assert [
            (3, "ann", "rolled back to revision 1"),
            (2, "bob", "more polite"),
            (1, "ann", "first words"),
        ] == said


@pytest.mark.every_store
async def test_run_keeps_its_document(place: Place) -> None:
    """It goes on with the one it was started with, in a process that begins after that was replaced. [FB-R1]"""
    async with place.engine() as engine:
        await engine.flows.apply(WAITING)
        run = await engine.flows.start("lib-waiting", id="kept")
        await waits(run)
        await engine.flows.apply(WAITING.replace("ONE", "TWO"))

    async with place.engine() as engine:
        await engine.signal("kept", "go")
        assert "ONE" == await in_time(engine.get("kept").result())
        new = await engine.flows.start("lib-waiting")
        await new.signal("go")
        assert "TWO" == await in_time(new.result())


async def test_input_is_checked_before_the_run_exists() -> None:
    """By the program that starts it, without the code of its steps."""
    async with TestEngine(worker=False) as engine:
        await engine.flows.apply(GREETING)
        with pytest.raises(FlowInputError, match="who"):
            await engine.flows.start("greeting", {}, id="none")
        with pytest.raises(RunNotFoundError):
            await engine.get("none").info()
        with pytest.raises(FlowNotFoundError, match=r"did you mean greeting\?"):
            await engine.flows.start("greetings", {"who": "Ann"})
        by_name: Any = "greeting"
        with pytest.raises(InvalidArgumentError, match="give it with the workflow itself"):
            await engine.start(by_name, {"who": "Ann"}, connection=object())
        run = await engine.flows.start("greeting", {"who": "Ann"}, id="short")
        assert "greeting" == (await run.info()).workflow


async def test_a_document_with_problems_is_not_stored() -> None:
    """A document with problems is refused with all of them and is not stored."""
    async with TestEngine(worker=False) as engine:
        with pytest.raises(FlowError, match="stepps"):
            await engine.flows.apply(GREETING.replace("steps:", "stepps:"))
        with pytest.raises(InvalidArgumentError, match=r"pathlib\.Path"):
            await engine.flows.apply(7)  # type: ignore[arg-type]
        assert [] == await engine.flows.list()


@pytest.mark.any_store
async def test_missing_step_is_named_with_its_worker(place: Place) -> None:
    """The worker that lacks it takes no run, and one that has it does."""
    text = "name: lib-lacking\nsteps: { one: { use: lib.nowhere, with: { number: 1 } } }\noutput: '${{ steps.one }}'\n"
    async with place.engine(name="bare") as engine:
        await engine.flows.apply(text)
        run = await engine.flows.start("lib-lacking")

        async def is_said() -> bool:
            return "worker bare lacks lib.nowhere" in await run.why()

        await until(is_said)
        assert "no live worker has all steps of flow lib-lacking" in await run.why()
        [found] = await engine.list_stuck()
        assert "lacks lib.nowhere" in found.reason
        await engine.flows.apply(text.replace("nowhere", "only_there"))
        assert 2 == await in_time((await engine.flows.start("lib-lacking")).result())


async def test_an_exported_run_carries_its_document() -> None:
    """It goes on where the flow was never published, and where another document has its name; nothing starts it."""
    async with TestEngine() as engine:
        await engine.flows.apply(WAITING)
        await engine.flows.start("lib-waiting", id="one")
        await engine.settle()
        text = await engine.export("one")
    assert '"document":{"name":"lib-waiting"' in text
    async with TestEngine() as other:
        run = await other.import_run(text)
        assert [] == await other.flows.list()
        with pytest.raises(FlowNotFoundError):
            await other.flows.start("lib-waiting")
        await run.signal("go")
        assert "ONE" == await run.result()

        again = await other.import_run(text, id="again")
        await other.flows.apply(WAITING.replace("ONE", "TWO"))
        await again.signal("go")
        assert "ONE" == await again.result()
        await other.flows.delete("lib-waiting")
        last = await other.import_run(text, id="last")
        await last.signal("go")
        assert "ONE" == await last.result()


async def test_a_file_whose_document_was_changed_is_refused() -> None:
    """An exported run whose document was changed is refused, and the import leaves no run behind."""
    async with TestEngine() as engine:
        await engine.flows.apply(WAITING)
        await engine.flows.start("lib-waiting", id="one")
        await engine.settle()
        text = await engine.export("one")
    async with TestEngine() as other:
        for wrong in (
            text.replace("wait_for_signal", "[]"),
            text.replace('{"name":"lib-waiting"', '{"name":"another"'),
        ):
            with pytest.raises(HistoryFormatError, match="document of flow"):
                await other.import_run(wrong)
        assert 0 == await other.count()


async def test_batch_needs_no_code_where_it_is_started() -> None:
    """Its items wait for a worker that has the steps."""
    text = "name: lib-items\nsteps: { one: { use: lib.elsewhere, with: { number: 1 } } }\n"
    async with TestEngine(worker=False) as engine:
        await engine.flows.apply(text)
        batch = await engine.start_batch(await find_flow(engine, "lib-items"), [{}, {}], id="items")
        assert "outlive.batch" == (await batch.run.info()).workflow


async def test_disabled_flow_starts_nothing() -> None:
    """Until it is enabled; a run under way goes on."""
    async with TestEngine() as engine:
        await engine.flows.apply(WAITING)
        run = await engine.flows.start("lib-waiting")
        await engine.settle()
        info = await engine.flows.disable("lib-waiting", by="ann", reason="the bank is closed")

        assert (False, "disabled by ann: the bank is closed") == (info.is_enabled, info.why_disabled)
        with pytest.raises(FlowDisabledError, match="is disabled by ann: the bank is closed; it starts"):
            await engine.flows.start("lib-waiting")
        with pytest.raises(FlowDisabledError):
            await find_flow(engine, "lib-waiting")
        await run.signal("go")
        assert "ONE" == await run.result()
        assert (await engine.flows.enable("lib-waiting")).is_enabled
        await engine.flows.start("lib-waiting")


async def test_draft_is_published_when_its_base_is_current() -> None:
    """A draft may be broken while it is written; publishing checks it, and that no revision came between. [FB-S9]"""
    async with TestEngine() as engine:
        flows = engine.flows
        await flows.save_draft(GREETING.replace("use: noop", "use: noop, after: [say]"), by="ann")
        with pytest.raises(FlowNotFoundError, match="has no published revision"):
            await engine.flows.start("greeting", {"who": "Ann"})
        with pytest.raises(FlowError, match="say"):
            await flows.publish("greeting")

        draft = (await flows.save_draft(GREETING, by="ann", reason="better", expected=1)).draft
        assert draft is not None
        assert (2, 0, "ann") == (draft.number, draft.base, draft.by)
        assert GREETING == (await flows.get("greeting", draft=True)).text
        published = await flows.publish("greeting")
        assert (1, None) == (published.revision, published.draft)
        assert ["better"] == [each.reason for each in await flows.history("greeting")]

        await flows.save_draft(POLITE, by="ann")
        await flows.apply(POLITE.replace("day", "evening"), by="bob")
        with pytest.raises(StaleFlowError, match="is at revision 2 by bob, and revision 1 was expected"):
            await flows.publish("greeting")
        assert 3 == (await flows.publish("greeting", expected=2)).revision
        with pytest.raises(FlowNotFoundError, match="flow greeting has no draft"):
            await flows.publish("greeting")
        await flows.save_draft(GREETING)
        assert (await flows.discard_draft("greeting")).draft is None


async def test_deletion_respects_open_runs() -> None:
    """Refused while one is open; forced, it goes on to its end; its ended runs go with it if wanted. [FB-S10]"""
    async with TestEngine() as engine:
        await engine.flows.apply(WAITING)
        run = await engine.flows.start("lib-waiting", id="open-1")
        await engine.settle()
        with pytest.raises(FlowInUseError, match=r"has open runs \(open-1\)"):
            await engine.flows.delete("lib-waiting")

        await engine.flows.delete("lib-waiting", force=True, by="ann", reason="gone")
        with pytest.raises(FlowNotFoundError):
            await engine.flows.start("lib-waiting")
        assert [] == await engine.flows.list()
        await run.signal("go")
        assert "ONE" == await run.result()

        assert 2 == (await engine.flows.apply(WAITING)).revision
        await engine.skip(seconds=1)
        await engine.flows.delete("lib-waiting", runs=True)
        with pytest.raises(RunNotFoundError):
            await run.info()


@pytest.mark.any_store
async def test_damaged_document_costs_its_own_runs_only(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """The worker says so once, and runs the other flows. To apply the document again repairs it."""
    async with place.engine(worker=False) as people:
        store = store_of(people)
        bad = await people.flows.apply(WAITING)
        run = await people.flows.start("lib-waiting")
        await store.change_cell(DOCUMENT_CELLS + bad.hash, lambda held, _: (b"\0", None))
        await people.flows.apply(GREETING)
        await store.change_cell(HISTORY_CELLS + "greeting", lambda held, _: (b"\0", None))
        async with place.engine() as engine:
            assert "Hello, Ann!" == await in_time((await engine.flows.start("greeting", {"who": "Ann"})).result())
            assert "its runs wait" in caplog.text
            with pytest.raises(FlowDamagedError):
                await people.flows.start("lib-waiting")

            assert bad.hash == (await engine.flows.apply(WAITING)).hash
            await run.signal("go")
            assert "ONE" == await in_time(run.result())


@pytest.mark.any_store
async def test_damaged_index_stops_no_worker(place: Place) -> None:
    """It starts, runs what is not a flow, and the flows again when the index was written again."""
    async with place.engine(worker=False) as people:
        store = store_of(people)
        await people.flows.apply(GREETING)
        good = await store.read_cell(INDEX_CELL)
        await store.change_cell(INDEX_CELL, lambda held, _: (b"[]", None))
        async with place.engine() as engine:
            assert 3 == await in_time((await engine.start(lib_plain, 2)).result())
            with pytest.raises(FlowDamagedError, match="the index of flows cannot be read"):
                await engine.flows.list()
            await store.change_cell(INDEX_CELL, lambda held, _: (good or b"", None))
            await engine.flows.disable("greeting")
            await engine.flows.enable("greeting")
            assert "Hello, Ann!" == await in_time((await engine.flows.start("greeting", {"who": "Ann"})).result())


async def test_flow_calls_another_flow_of_the_library() -> None:
    """A flow that calls another one with `use: flow` gets the revision that is published at the call."""
    outer = "name: lib-outer\nsteps:\n  inner: { use: flow, with: { name: greeting, input: { who: Ann } } }\n"
    outer += "output: '${{ steps.inner }}'\n"
    async with TestEngine() as engine:
        await engine.flows.apply(outer)
        await engine.flows.apply(GREETING)
        assert "Hello, Ann!" == await (await engine.flows.start("lib-outer")).result()
        await engine.flows.apply(POLITE)
        assert "Good day, Ann!" == await (await engine.flows.start("lib-outer")).result()


async def test_documents_move_with_their_store(tmp_path: Path) -> None:
    """With drafts, history and runs; a library that is there keeps what it has."""
    from outlive._kernel.runtime.clock import SystemClock
    from outlive.engine.url import store_for

    old, new = f"sqlite:{tmp_path / 'old.db'}", f"sqlite:{tmp_path / 'new.db'}"
    async with outlive.Engine(old, worker=False) as engine:
        await engine.flows.apply(GREETING)
        await engine.flows.apply(POLITE)
        await engine.flows.start("greeting", {"who": "Ann"}, id="moved")
    async with outlive.Engine(new, worker=False) as engine:
        await engine.flows.apply(WAITING)
    stores = [store_for(url, clock=SystemClock().now) for url in (old, new)]
    for store in stores:
        await store.open()
    await move_store(*stores, to="new", said=lambda line: None)
    for store in stores:
        await store.close()

    async with outlive.Engine(new) as engine:
        assert "Good day, Ann!" == await in_time(engine.get("moved").result())
        assert ["greeting", "lib-waiting"] == [info.name for info in await engine.flows.list()]
        assert [2, 1] == [each.number for each in await engine.flows.history("greeting")]


async def test_sync_code_has_the_same_verbs() -> None:
    """From another thread."""
    async with TestEngine(worker=False) as engine:
        info = await asyncio.to_thread(lambda: engine.sync.flows.apply(GREETING, by="ann"))
        assert [info] == await asyncio.to_thread(engine.sync.flows.list)


async def test_index_of_nothing_costs_one_read() -> None:
    """A worker without flows reads one cell when it starts, and writes nothing."""
    async with TestEngine() as engine:
        assert await store_of(engine).read_cell(INDEX_CELL) is None
