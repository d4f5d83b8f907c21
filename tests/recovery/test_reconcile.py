"""A worker and its store agree about what is whose: what is not so is healed, in both directions."""

from __future__ import annotations

import pytest

import outlive
from tests.engine.inside import has_reconciled, row_of, sessions_of, store_of, worker_of
from tests.engine.support import Place, hold, in_time, stage, until


@outlive.workflow
async def reconciled(name: str) -> str:
    return await hold(name)


async def begun(engine: outlive.Engine, name: str, *, id: str) -> None:
    """A run in the middle of a step."""
    await engine.start(reconciled, name, id=id)
    await stage.gate(name).reached()


async def until_resting(engine: outlive.Engine) -> None:
    """Return when the claimer has done what it was asked to do."""

    async def is_so() -> bool:
        return has_reconciled(engine)

    await until(is_so)


async def test_a_run_that_is_owned_and_not_in_memory_is_claimed_again(engine: outlive.Engine) -> None:
    """A run that its worker owns and has lost from memory is claimed again, and the other runs are left alone."""
    await begun(engine, "lost", id="run-1")
    await begun(engine, "held", id="run-2")
    run = await row_of(engine, "run-1")
    worker_of(engine).discard_tree(run.journal)
    stage.gate("lost").open()

    sessions_of(engine).reconcile()

    assert "lost" == await in_time(engine.get("run-1").result())
    assert (1, 0) == (engine.counters.runs_reclaimed, engine.counters.runs_disowned)
    assert [2, 1] == [stage.count(name) for name in ("lost", "held")]


async def test_a_run_in_memory_that_another_worker_owns_is_discarded(place: Place) -> None:
    """A run in memory that another worker owns is discarded, and its step is cancelled at once."""
    async with place.engine() as first:
        await begun(first, "held", id="run-1")
        client = place.engine(worker=False)
        async with client:
            await store_of(client).end_session(worker_of(first).id)
        async with place.engine() as second:
            await stage.gate("held").reached()
            assert 0 == stage.count("held cancelled")

            sessions_of(first).reconcile()

            async def is_cancelled() -> bool:
                return 1 == stage.count("held cancelled")

            await until(is_cancelled)
            assert not worker_of(first).trees.moves("run-1")
            assert (1, 0) == (first.counters.runs_disowned, first.counters.conflicts)
            stage.gate("held").open()
            assert "held" == await in_time(second.get("run-1").result())


async def test_a_run_in_memory_that_was_replaced_is_discarded(place: Place) -> None:
    """A run in memory that another run has replaced is discarded, and its step is cancelled."""
    async with place.engine() as first:
        await begun(first, "old", id="run-1")
        async with place.engine(worker=False) as client:
            await client.start(reconciled, "new", id="run-1", on_conflict="replace")
        await stage.gate("new").reached()

        sessions_of(first).reconcile()

        async def is_cancelled() -> bool:
            return 1 == stage.count("old cancelled")

        await until(is_cancelled)
        assert 1 == first.counters.runs_disowned
        stage.gate("new").open()
        assert "new" == await in_time(first.get("run-1").result())


async def test_nothing_is_done_where_all_agree(engine: outlive.Engine) -> None:
    """However often it is looked at."""
    await begun(engine, "held", id="run-1")
    for _ in range(3):
        sessions_of(engine).reconcile()
        await until_resting(engine)
    stage.gate("held").open()

    assert "held" == await in_time(engine.get("run-1").result())
    assert (0, 0) == (engine.counters.runs_reclaimed, engine.counters.runs_disowned)
    assert ["held"] == stage.calls


async def test_a_worker_compares_itself_with_the_store_without_a_request(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that has lost a run from memory finds that out by itself and claims the run again."""
    monkeypatch.setattr("outlive._kernel.runtime.session.claimer.RECONCILE_SECONDS", 0.0)
    async with place.engine() as engine:
        await begun(engine, "lost", id="run-1")
        run = await row_of(engine, "run-1")
        worker_of(engine).discard_tree(run.journal)
        stage.gate("lost").open()

        assert "lost" == await in_time(engine.get("run-1").result())
