"""Finding runs: filters, pages in both directions, and counts that stop in time."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive._features.fsck.checker import check_store
from outlive._kernel.client.finding import Order
from outlive.events import RunTagged
from outlive.testing import TestEngine, crash_everywhere
from outlive.testing.crash.everywhere import POINTS_MAX
from outlive.types import Count, Page
from tests.engine.inside import journal_of, store_of
from tests.engine.support import until, waits


class CardDeclined(Exception):
    """Not known to the workflow."""


@outlive.step(retry=outlive.Retry(attempts=1))
async def charge_to_find(kind: str) -> None:
    if kind == "declined":
        raise CardDeclined("no")


@outlive.workflow
async def order_to_find(kind: str) -> str:
    await charge_to_find(kind)
    if kind == "waits":
        await outlive.wait_for_signal("paid")
    if kind == "asks":
        await outlive.wait_for_approval("refund")
    if kind == "sleeps":
        await asyncio.sleep(24 * 3600)
    return kind


async def ids(engine: Any, **filters: Any) -> list[str]:
    """The ids of the first page."""
    return [run.id for run in await engine.list(**filters)]


@pytest.mark.every_store
async def test_runs_are_found_by_each_filter_and_by_all(engine: Any) -> None:
    """The call of the guide, on every store. [FE-O5]"""
    for kind in ("done", "declined", "waits", "asks", "sleeps"):
        run = await engine.start(order_to_find, kind, id=f"order-{kind}", tags={"tenant": "a"})
        await (
            waits(run) if kind in ("waits", "asks", "sleeps") else asyncio.wait([asyncio.ensure_future(run.result())])
        )

    assert await ids(engine, status=("failed", "succeeded")) == ["order-declined", "order-done"]
    assert await ids(engine, error="CardDeclined") == ["order-declined"]
    assert await ids(engine, waiting_for="paid") == ["order-waits"]
    assert await ids(engine, waiting_for="refund", id_prefix="order-", tags={"tenant": "a"}) == ["order-asks"]
    assert await ids(engine, waiting_for="@timer") == ["order-sleeps"]
    since = (await engine.get("order-declined").info()).created_at
    wanted = {"workflow": "order_to_find", "status": ("failed", "parked"), "tags": {"tenant": "a"}, "since": since}
    assert await ids(engine, **wanted, until=since + timedelta(hours=1), error="CardDeclined") == ["order-declined"]
    assert await ids(engine, until=since, order="created_at") == ["order-done"]
    assert await ids(engine, ids=["order-waits", "order-done", "other"]) == ["order-waits", "order-done"]
    assert await ids(engine, ids="order-asks", version=1) == ["order-asks"]
    assert await ids(engine, workflow="order_to_find", version=2) == []
    ended = (await engine.get("order-done").info()).finished_at
    assert await ids(engine, finished_until=ended) == []
    assert await ids(engine, finished_since=ended) == ["order-declined", "order-done"]
    assert await ids(engine, finished_since=ended, finished_until=since, status="succeeded") == ["order-done"]
    assert await engine.count(workflow="order_to_find") == 5
    assert await engine.count(status="waiting", tags={"tenant": "a"}) == 3


@outlive.workflow(queue="mill")
async def parent_to_find() -> str:
    """A run of a queue, with a child that is in none."""
    return await order_to_find("done")


async def test_runs_are_found_by_their_queue_and_children_are_left_out(engine: Any) -> None:
    """A child is in no queue; runs that the engine makes for itself are shown to callers who ask for them."""
    assert await (await engine.start(parent_to_find, id="parent")).result() == "done"
    operation = await engine.bulk.start("cancel", id="bulk", workflow="nothing_of_this_name")
    await operation.result()

    assert await ids(engine, queue="mill") == ["parent"]
    assert await ids(engine, queue="default") == ["parent~1"]
    assert await ids(engine, roots_only=True) == ["parent"]
    assert await ids(engine, parent_id="parent") == ["parent~1"]
    assert await ids(engine, parent_id="parent~1") == []
    assert {"parent", "parent~1"} < set(await ids(engine, internal=True))


async def test_pages_go_on_and_back() -> None:
    """By cursors that know their side; each page is a list. [FB-C4]"""
    async with TestEngine() as engine:
        for number in range(7):
            await engine.start(order_to_find, "done", id=f"run-{number}")
        orders: tuple[tuple[Order, range], ...] = (("created_at", range(7)), ("-created_at", range(6, -1, -1)))
        for order, runs in orders:
            made = [f"run-{number}" for number in runs]
            pages = [await engine.list(order=order, limit=3)]
            while (after := pages[-1].next) is not None:
                pages.append(await engine.list(order=order, limit=3, after=after))
            assert [[run.id for run in page] for page in pages] == [made[:3], made[3:6], made[6:]]
            assert pages[0].previous is None
            page, back = pages[-1], [pages[-1]]
            while (before := page.previous) is not None:
                page = await engine.list(order=order, limit=3, after=before)
                back.append(page)
            assert back == pages[::-1]
            assert page.next is not None
            assert isinstance(page, list)
            assert isinstance(page, Page)


async def test_a_run_that_comes_meanwhile_is_on_a_page_of_its_own() -> None:
    """A cursor is a place and no number: nothing repeats, and nothing is passed over."""
    async with TestEngine() as engine:
        for number in range(4):
            await engine.start(order_to_find, "done", id=f"run-{number}")
        first = await engine.list(limit=2)
        await engine.start(order_to_find, "done", id="run-new")
        second = await engine.list(limit=2, after=first.next)
        assert [run.id for run in second] == ["run-1", "run-0"]
        again = await engine.list(limit=2, after=second.previous)
        assert [run.id for run in again] == ["run-3", "run-2"]
        newest = await engine.list(limit=2, after=again.previous)
        assert ([run.id for run in newest], newest.previous) == (["run-new"], None)


async def test_a_cursor_of_another_order_is_refused() -> None:
    """It would give other runs than the page that it came from promised."""
    async with TestEngine() as engine:
        for number in range(2):
            await engine.start(order_to_find, "done", id=f"run-{number}")
        page = await engine.list(limit=1)
        with pytest.raises(ValueError, match="give the same order"):
            await engine.list(limit=1, order="created_at", after=page.next)


async def test_a_filter_that_does_not_exist_is_named() -> None:
    """With the name that was meant."""
    async with TestEngine() as engine:
        with pytest.raises(TypeError, match="no filter 'stauts'; did you mean 'status'"):
            await engine.list(stauts="failed")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="no filter 'x'; it knows status, tags"):
            await engine.count(x=1)  # type: ignore[call-arg]


async def test_an_empty_or_endless_list_of_ids_is_refused() -> None:
    """No ids are not all runs, and a list holds a bounded number."""
    async with TestEngine() as engine:
        for wrong in ([], [f"run-{number}" for number in range(1_001)]):
            with pytest.raises(ValueError, match="give 1 to 1,000 ids, or leave it out for all runs"):
                await engine.list(ids=wrong)


async def test_runs_are_counted_in_groups(engine: Any) -> None:
    """By status, workflow or queue, with the filters of a list; the verb, each group with its limit."""
    await (await engine.start(parent_to_find, id="parent")).result()
    for number in range(3):
        await waits(await engine.start(order_to_find, "waits", id=f"run-{number}", tags={"tenant": "a"}))

    counts = await engine.count_by("status")
    assert (counts, list(counts)) == ({"waiting": 3, "succeeded": 2}, ["waiting", "succeeded"])
    assert await engine.count_by("workflow", roots_only=True) == {"order_to_find": 3, "parent_to_find": 1}
    assert await engine.count_by("queue", roots_only=True) == {"default": 3, "mill": 1}
    assert await engine.count_by("status", tags={"tenant": "a"}, status=("failed", "waiting")) == {"waiting": 3}
    counts = await engine.count_by("status", limit=2, status="waiting")
    assert (str(counts["waiting"]), counts["waiting"].at_least) == ("2+", True)
    assert await engine.count_by("status", status="damaged") == {}
    with pytest.raises(ValueError, match="by='version' cannot work: give one of status, workflow, queue"):
        await engine.count_by("version")


async def test_a_count_stops_at_its_limit_and_says_so() -> None:
    """An answer that is cheap, and true."""
    async with TestEngine() as engine:
        for number in range(3):
            await engine.start(order_to_find, "done", id=f"run-{number}")
        exact, stopped = await engine.count(limit=3), await engine.count(limit=2)

    assert (exact == 3, exact.at_least, str(exact), repr(exact)) == (True, False, "3", "<Count 3>")
    assert (stopped == 2, stopped.at_least, str(stopped), repr(stopped)) == (True, True, "2+", "<Count 2+>")
    assert str(Count(10_000, at_least=True)) == "10,000+"


def test_sync_code_gets_pages_and_counts() -> None:
    """The sync engine lists pages with their cursors and counts runs."""
    with TestEngine().sync as engine:
        for number in range(2):
            engine.start(order_to_find, "done", id=f"run-{number}").result()
        page = engine.list(limit=1)
        assert [run.id for run in engine.list(limit=1, after=page.next)] == ["run-0"]
        assert engine.count(status="succeeded") == 2


@pytest.mark.every_store
async def test_many_ids_that_begin_alike_are_in_order_of_creation(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs found by a prefix come newest first, even when they are more than the store sorts."""
    for room in ("sqlite", "postgres"):
        monkeypatch.setattr(f"outlive._kernel.store.{room}.read.SIZE_MAX", 3)
    for number in (9, 1, 5, 2, 7):
        await (await engine.start(order_to_find, "done", id=f"many-{number}")).result()
    await (await engine.start(order_to_find, "done", id="few-1")).result()

    assert await ids(engine, id_prefix="many-", limit=3) == ["many-7", "many-2", "many-5"]
    assert await ids(engine, id_prefix="few-", workflow="order_to_find") == ["few-1"]
    assert await engine.count(id_prefix="many-") == 5


# -- Tags that change --------------------------------------------------------------------------------------------------


@outlive.workflow
async def tagging_child() -> dict[str, str]:
    outlive.set_tags(of="child")
    return outlive.current_run().tags


@outlive.workflow
async def tagging(rounds: int) -> list[dict[str, str]]:
    outlive.set_tags(stage=f"first-{rounds}", team=None)
    seen = [outlive.current_run().tags, await tagging_child()]
    outlive.set_tags(stage=f"first-{rounds}")
    await outlive.wait_for_signal("go")
    outlive.set_tags(stage="second")
    if rounds:
        outlive.continue_as_new(rounds - 1)
    return [*seen, outlive.current_run().tags]


@pytest.mark.every_store
async def test_a_workflow_sets_its_tags(engine: Any) -> None:
    """The row has them, children keep theirs, and the next generation begins with them; fsck agrees."""
    run = await engine.start(tagging, 1, id="run-1", tags={"team": "a", "tenant": "b"})
    await waits(run)
    assert await ids(engine, tags={"stage": "first-1", "tenant": "b"}) == ["run-1"]
    assert await ids(engine, tags={"team": "a"}) == []
    assert await ids(engine, tags={"of": "child"}) == ["run-1~1"]
    await run.signal("go")

    async def has_gone_on() -> bool:
        return await ids(engine, tags={"stage": "first-0"}) == ["run-1"]

    await until(has_gone_on)
    assert await ids(engine, tags={"stage": "second", "tenant": "b"}) == ["run-1~gen1"]
    await run.signal("go")
    first = {"tenant": "b", "stage": "first-0"}
    assert await run.result() == [first, {"of": "child"}, {"tenant": "b", "stage": "second"}]
    assert await ids(engine, tags={"stage": "second"}, order="created_at") == ["run-1~gen1", "run-1"]
    tagged = [event for event in await journal_of(run) if isinstance(event, RunTagged)]
    assert [event.run for event in tagged] == [0, 1, 0], "what is set already is not a fact"
    assert [] == await check_store(store_of(engine))


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_tags_survive_every_crash(points: int) -> None:
    """Killed at each commit, the run has the tags that its code gave it."""
    report = await crash_everywhere(tagging_child, max_points=points)
    assert report.result == {"of": "child"}


@outlive.workflow
async def tagging_badly(name: str, value: Any) -> None:
    outlive.set_tags(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("", "a"), ("a", 5), ("a\0", "b"), ("a", ["b"]), ("x" * 201, None)])
async def test_invalid_tag_is_refused(name: str, value: Any) -> None:
    """A workflow that sets a tag with a wrong name or value fails with an error about tags."""
    async with TestEngine() as engine:
        run = await engine.start(tagging_badly, name, value)
        with pytest.raises(outlive.errors.RunFailedError, match="tags"):
            await run.result()


@outlive.workflow
async def tagging_much() -> None:
    outlive.set_tags(**{f"tag-{number}": "x" for number in range(60)})
    outlive.set_tags(**{f"other-{number}": "x" for number in range(60)})


async def test_too_many_tags_are_refused() -> None:
    """The tags that the run has already count too."""
    async with TestEngine() as engine:
        with pytest.raises(outlive.errors.RunFailedError, match="at most 100 tags, and this would make 120"):
            await (await engine.start(tagging_much)).result()


async def test_tags_are_set_in_a_workflow_only() -> None:
    """Elsewhere there is no run that could have them."""
    with pytest.raises(outlive.errors.OutliveError, match="set_tags"):
        outlive.set_tags(a="b")


# -- Open approvals ----------------------------------------------------------------------------------------------------


@outlive.workflow
async def asking_child_to_find() -> bool:
    return bool(await outlive.wait_for_approval("audit", assignees=["bob"]))


@outlive.workflow
async def asking_people(number: int) -> list[bool]:
    mine = outlive.wait_for_approval("refund", title=f"Refund {number}?", assignees=["finance"], deadline=3600)
    first, second = await asyncio.gather(mine, asking_child_to_find())
    return [bool(first), second]


@pytest.mark.every_store
async def test_open_approvals_of_all_runs_are_listed(engine: Any) -> None:
    """By the person who is asked, in pages; what is decided is not there any more, even before a worker has seen it."""
    runs = [await engine.start(asking_people, each, id=f"run-{each}", tags={"n": str(each)}) for each in range(3)]
    for run in runs:
        await waits(run)

    inbox = await engine.approvals.list(assignee="finance")
    assert [(it.run_id, it.name, it.title, it.assignees) for it in inbox] == [
        (f"run-{number}", "refund", f"Refund {number}?", ("finance",)) for number in range(3)
    ]
    assert {it.status for it in inbox} == {"pending"}
    assert all(timedelta(minutes=59) < it.deadline - it.requested_at <= timedelta(hours=1) for it in inbox)
    assert all(timedelta(0) <= it.age < timedelta(hours=1) for it in inbox)
    assert [it.run_id for it in await engine.approvals.list(assignee="bob")] == ["run-0~1", "run-1~1", "run-2~1"]
    assert [it.run_id for it in await engine.approvals.list(tags={"n": "1"})] == ["run-1"]
    assert len(await engine.approvals.list()) == 6
    page = await engine.approvals.list(assignee="finance", limit=2)
    assert [it.run_id for it in await engine.approvals.list(assignee="finance", limit=2, after=page.next)] == ["run-2"]

    await engine.approvals.approve("run-1", "refund", by="ann")
    await engine.cancel("run-2")
    with pytest.raises(outlive.errors.RunCancelledError):
        await runs[2].result()
    assert [it.run_id for it in await engine.approvals.list(assignee="finance")] == ["run-0"]
    assert [it.status for it in await engine.approvals.list("run-1")] == ["approved", "pending"]
    with pytest.raises(ValueError, match="either run_id or assignee"):
        await engine.approvals.list("run-1", assignee="ann")
    assert [] == await check_store(store_of(engine))


@outlive.step
async def busy_beside_asking() -> None:
    await asyncio.Event().wait()


@outlive.workflow
async def asking_while_busy() -> None:
    await asyncio.gather(outlive.wait_for_approval("go"), busy_beside_asking())


async def test_a_run_that_is_busy_is_in_the_inbox_too() -> None:
    """The approval of a running run is listed from its request on, and not only when the run waits for nothing else."""
    async with TestEngine() as engine:
        await engine.start(asking_while_busy, id="run-1")

        async def is_listed() -> bool:
            return [it.name for it in await engine.approvals.list()] == ["go"]

        await until(is_listed)
        assert (await engine.get("run-1").status()) == "running"
