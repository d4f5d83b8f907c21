"""Recovery goes on past a run that it cannot load, and a run that kills workers is judged before it is read."""

from __future__ import annotations

import pytest

import outlive
from outlive._kernel.store.contract import WorkerInfo
from outlive.limits import Limits
from tests.engine.inside import crash, store_of
from tests.engine.support import Place, hold, in_time, note, parks, stage
from tests.store_failures.test_bad_stores import damage


@outlive.workflow
async def damaged(name: str) -> str:
    await note(f"{name} before")
    return await hold(name)


async def lose_three(place: Place) -> None:
    """Three runs in the middle of a step, of a worker that is gone; the journal of one is damaged since."""
    place.is_damaged = True
    first = await place.engine().__aenter__()
    for name in ("good", "bad", "fine"):
        await first.start(damaged, name, id=name)
        await stage.gate(name).reached()
    await crash(first)
    for name in ("good", "bad", "fine"):
        stage.gate(name).open()
    stage.calls.clear()


@pytest.mark.parametrize("kind", ["body", "gap"])
async def test_orphans_go_on_past_one_that_cannot_be_loaded(place: Place, kind: str) -> None:
    """It is parked with what is wrong with it, and nothing of it is called; the others come to their end."""
    await lose_three(place)
    damage(place, "bad", kind)

    async with place.engine() as second:
        for name in ("good", "fine"):
            assert name == await in_time(second.get(name).result())
        assert "journal of run bad is damaged" in await parks(second.get("bad"))
        assert 3 == second.counters.orphans_claimed
        assert ["bad"] == [report.run.id for report in await second.list_stuck()]
    assert 0 == stage.count("bad")


async def test_a_run_that_kills_workers_is_quarantined_before_it_is_read(place: Place) -> None:
    """Each claim counts when it is made. One that is over the limit does not even look at the journal."""
    await lose_three(place)
    damage(place, "bad", "body")

    async with place.engine(worker=False) as client:
        for number in (1, 2):
            # A worker that claims it and dies before reading a row: the claim has counted.
            await claim_and_die(client, f"victim-{number}")
            assert number == (await client.get("bad").info()).attempts
    async with place.engine(limits=Limits(attempts_max=2)) as second:
        assert "quarantined: 3 workers" in await parks(second.get("bad"))
        assert "quarantined: 3 workers" in await parks(second.get("good"))
        await second.cancel("bad")
        assert await second.get("bad").status() == "cancelled"
        await second.resume("good")
        assert "good" == await in_time(second.get("good").result())


async def claim_and_die(client: outlive.Engine, worker_id: str) -> None:
    """A worker that claims all there is and is gone."""
    store = store_of(client)
    info = WorkerInfo(id=worker_id, name=worker_id, definitions=(), started_at=store.now(), expires_at=0)
    await store.register_worker(info, lease_seconds=1_000)
    claims = await store.claim_runs(worker_id, [f"{damaged.name}@1"], limit=10)
    assert {"good", "bad", "fine"} == {claim.run.id for claim in claims.claims if claim.interrupted}
    await store.end_session(worker_id)
