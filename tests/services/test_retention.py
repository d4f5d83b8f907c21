"""Retention: what goes, when it goes, and what stays because something needs it."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import outlive
from outlive._features.moving.tree_copy import TreeCopy, read_copy
from outlive._features.retention import purging
from outlive._features.retention.archive import Archive
from outlive._features.retention.pruner import RETENTION_CELL
from outlive._kernel.model import Run
from outlive._kernel.store.contract import Store
from outlive.errors import ConfigurationError, InvalidArgumentError, OutliveError, RunNotFoundError, StoreError
from outlive.errors.program import MissingExtraError
from outlive.errors.store import ArchiveError
from outlive.testing import TestEngine
from outlive.testing.fsck import check_store
from tests.engine.inside import row_of, store_of

DAY = timedelta(days=1)
KEEP = outlive.retention.Keep(succeeded=7 * DAY, failed=90 * DAY)


@outlive.workflow
async def kept_order(name: str) -> str:
    """Ends at once, as its argument says."""
    if name == "bad":
        raise ValueError(name)
    return name


@outlive.workflow
async def kept_waiting(name: str) -> str:
    """Ends when it is let go."""
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def kept_starter(run_id: str) -> str:
    """Starts a run of its own and goes on without it."""
    await outlive.start(kept_order, run_id, id=run_id, detached=True)
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def kept_parent(run_id: str) -> str:
    """Ends before the run that it has started."""
    await outlive.start(kept_waiting, run_id, id=run_id, detached=True)
    return run_id


@outlive.workflow
async def kept_rounds(left: int) -> int:
    """Goes on as new a few times."""
    if left:
        outlive.continue_as_new(left - 1)
    return left


@outlive.workflow
async def kept_large(name: str) -> str:
    """Has a result that is stored as a blob."""
    return name * 50_000


@outlive.step
async def kept_item(number: int) -> str:
    """An item of a batch; its result is a blob."""
    return f"{number}" * 50_000


@outlive.step
async def kept_gate() -> None:
    """Never ends by itself."""
    await asyncio.Event().wait()


async def is_there(engine: outlive.Engine, *run_ids: str) -> list[bool]:
    """Which of these runs are in the store."""
    found = {run.id for run in await engine.list(limit=1_000)}
    return [run_id in found for run_id in run_ids]


async def collect(engine: TestEngine, *, days: int) -> None:
    """Let days pass, with time for a round of the collector in each."""
    for _ in range(days):
        await engine.skip(DAY)
        for _ in range(4):
            await engine.skip(timedelta(seconds=1))


async def test_runs_go_when_they_were_kept_long_enough() -> None:
    """Each by how it ended; an hour before that they are there, and what was not spoken of stays for ever. [FE-P3]"""
    rules = [KEEP, outlive.retention.Keep(kept_waiting, cancelled=30 * DAY)]
    async with TestEngine(retention=rules) as engine:
        await (await engine.start(kept_order, "good", id="good")).result()
        with pytest.raises(outlive.errors.RunFailedError):
            await (await engine.start(kept_order, "bad", id="bad")).result()
        await engine.signal((await engine.start(kept_waiting, "", id="other")).id, "go", "x")
        await engine.cancel((await engine.start(kept_waiting, "", id="cancelled")).id)
        await engine.get("other").result()

        await engine.skip(timedelta(days=6, hours=23))
        assert await is_there(engine, "good", "bad", "other", "cancelled") == [True, True, True, True]
        await engine.skip(timedelta(hours=2))
        assert await is_there(engine, "good", "bad", "other", "cancelled") == [False, True, True, True]
        await engine.skip(30 * DAY)
        assert await is_there(engine, "good", "bad", "other", "cancelled") == [False, True, True, False]
        await engine.skip(60 * DAY)
        assert await is_there(engine, "good", "bad", "other", "cancelled") == [False, False, True, False]
        assert engine.counters.runs_deleted == 3
        with pytest.raises(RunNotFoundError):
            await engine.get("good").result()


async def test_id_means_the_same_run_until_it_is_deleted() -> None:
    """A start that is repeated within the span attaches; after that it starts another run."""
    async with TestEngine(retention=[KEEP]) as engine:
        first = await row_of(await engine.start(kept_order, "a", id="order-7"))
        await engine.skip(6 * DAY)
        assert (await row_of(await engine.start(kept_order, "b", id="order-7"))).nonce == first.nonce
        await engine.skip(2 * DAY)
        assert await (await engine.start(kept_order, "b", id="order-7")).result() == "b"


async def test_start_whose_run_is_deleted_at_that_moment_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The id was taken when it was tried, and is free when it is looked at."""
    async with TestEngine(worker=False) as engine:
        store = store_of(engine)
        run = await engine.start(kept_order, "a", id="order-7")
        await engine.cancel(run.id)
        await engine.skip(DAY)
        find_run = store.find_run

        async def find_deleted(run_id: str) -> Run | None:
            monkeypatch.undo()
            await engine.purge(id_prefix=run_id)
            return await find_run(run_id)

        monkeypatch.setattr(store, "find_run", find_deleted, raising=False)
        await engine.start(kept_order, "b", id="order-7")
        assert (await run.status()) == "pending"


async def test_earlier_generations_go_and_the_run_stays() -> None:
    """They have ended long ago, also while the run itself is open."""
    async with TestEngine(retention=[outlive.retention.Keep(continued=DAY)]) as engine:
        await (await engine.start(kept_rounds, 3, id="rounds")).result()
        await engine.skip(2 * DAY)
        assert [run.id for run in await engine.list()] == ["rounds"]


async def test_parked_and_open_runs_stay() -> None:
    """However old they are."""
    async with TestEngine(retention=[KEEP]) as engine:
        await engine.start(kept_waiting, "", id="open")
        await engine.start(kept_waiting, "", id="parked")
        await engine.pause("parked")
        await engine.skip(1_000 * DAY)
        assert await is_there(engine, "open", "parked") == [True, True]


async def test_run_stays_while_the_run_that_started_it_is_open() -> None:
    """It goes when that has ended."""
    async with TestEngine(retention=[KEEP]) as engine:
        await engine.start(kept_starter, "started", id="starter")
        await engine.get("started").result()
        await engine.skip(20 * DAY)
        assert await is_there(engine, "starter", "started") == [True, True]
        await engine.signal("starter", "go", "")
        await engine.get("starter").result()
        await engine.skip(DAY)
        assert await is_there(engine, "starter", "started") == [True, False]


async def test_run_stays_while_a_run_that_it_started_is_open() -> None:
    """That one reports its end to it."""
    async with TestEngine(retention=[KEEP]) as engine:
        await (await engine.start(kept_parent, "started", id="parent")).result()
        await engine.skip(20 * DAY)
        assert await is_there(engine, "parent", "started") == [True, True]
        await engine.signal("started", "go", "")
        await engine.get("started").result()
        await engine.skip(DAY)
        assert await is_there(engine, "parent", "started") == [False, True]


async def test_batch_goes_as_a_whole() -> None:
    """Its results can be read until then; the rows of parts that have not begun stay, and go with it."""
    async with TestEngine(retention=[outlive.retention.Keep("outlive.batch", succeeded=7 * DAY)]) as engine:
        batch = await engine.start_batch(kept_item, range(3), concurrency=2, id="batch")
        await batch.result()
        await engine.skip(6 * DAY)
        assert await batch.results() == [f"{number}" * 50_000 for number in range(3)]
        await engine.skip(2 * DAY)
        assert await engine.list() == []
        await collect(engine, days=6)
        assert engine.counters.blobs_deleted == 4


async def test_rows_of_a_batch_that_waits_are_kept() -> None:
    """No journal refers to them yet, but by name inside of the arguments of the batch."""
    async with TestEngine(retention=[KEEP]) as engine:
        await engine.pause(workflow="outlive.batch")
        batch = await engine.start_batch(kept_item, range(2), concurrency=2, id="batch")
        await collect(engine, days=5)
        await engine.resume(workflow="outlive.batch")
        await batch.result()
        assert len(await batch.results()) == 2


async def test_blobs_go_after_the_last_run_that_refers_to_them() -> None:
    """One content, two runs: it stays until the second has gone, and a day more. [S31]"""
    async with TestEngine(retention=[outlive.retention.Keep(kept_large, succeeded=DAY)]) as engine:
        await (await engine.start(kept_large, "a", id="first")).result()
        await engine.skip(timedelta(hours=20))
        await (await engine.start(kept_large, "a", id="second")).result()
        await engine.skip(timedelta(hours=5))
        assert await is_there(engine, "first", "second") == [False, True]
        assert await engine.get("second").result() == "a" * 50_000
        await collect(engine, days=5)
        assert engine.counters.blobs_deleted == 1


async def test_archive_is_written_first_and_can_be_imported(tmp_path: Path) -> None:
    """Everything of the run is in it: its children, its blobs, its history."""
    keep = outlive.retention.Keep(succeeded=DAY, archive=tmp_path / "archive")
    async with TestEngine(retention=[keep]) as engine:
        await (await engine.start(kept_large, "a", id="large", tags={"shop": "north"})).result()
        await (await engine.start(kept_order, "b", id="order")).result()
        before = await engine.export("large")
        await engine.skip(2 * DAY)
        assert await engine.list() == []
        assert (engine.counters.runs_archived, engine.counters.archive_failures) == (2, 0)
    (file,) = (tmp_path / "archive").iterdir()
    trees = list(outlive.retention.read_archive(file))
    assert len(trees) == 2
    assert before in trees
    async with TestEngine() as other:
        for tree in trees:
            await other.import_run(tree)
        assert await other.get("large").result() == "a" * 50_000
        assert [run.id for run in await other.list(tags={"shop": "north"})] == ["large"]
        assert await other.get("order").result() == "b"


async def test_nothing_is_deleted_that_cannot_be_archived(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged and counted, other rules go on, and when the place is there again it is done."""
    place = tmp_path / "archive"
    place.write_text("a file, and no folder")
    rules = [outlive.retention.Keep(kept_order, succeeded=DAY, archive=place), outlive.retention.Keep(succeeded=DAY)]
    async with TestEngine(retention=rules) as engine:
        await (await engine.start(kept_order, "a", id="order")).result()
        await (await engine.start(kept_large, "a", id="large")).result()
        await engine.skip(2 * DAY)
        assert await is_there(engine, "order", "large") == [True, False]
        assert engine.counters.archive_failures >= 1
        assert "nothing is deleted until that is repaired" in caplog.text
        with pytest.raises(ArchiveError):
            await engine.purge(workflow="kept_order", archive=place)
        place.unlink()
        await engine.skip(DAY)
        assert await is_there(engine, "order") == [False]


async def test_killed_between_archive_and_deletion_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next worker goes on when the turn is over, and archives what is left once more."""
    url, keep = f"sqlite:{tmp_path / 'kept.db'}", outlive.retention.Keep(succeeded=DAY, archive=tmp_path / "archive")
    engine = TestEngine(url, retention=[keep])
    await engine.__aenter__()
    await (await engine.start(kept_order, "a", id="order")).result()
    reached = asyncio.Event()

    async def hang(*args: Any, **options: Any) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(type(store_of(engine)), "delete_trees", hang, raising=False)
    skipping = asyncio.create_task(engine.skip(2 * DAY))
    await reached.wait()
    skipping.cancel()
    engine.abandon()
    monkeypatch.undo()
    async with TestEngine(url, clock=engine.clock, retention=[keep]) as second:
        assert await is_there(second, "order") == [True]
        await second.skip(timedelta(minutes=10))
        assert await is_there(second, "order") == [False]
    assert len(list((tmp_path / "archive").glob("runs-*"))) == 2


async def test_many_workers_delete_each_run_once(tmp_path: Path) -> None:
    """They take turns; the store is whole before, during and after."""
    place, limits = f"sqlite:{tmp_path / 'kept.db'}", outlive.limits.Limits(deletes_per_second_max=50)
    async with TestEngine(place, retention=[KEEP], limits=limits) as engine:
        await asyncio.gather(*[engine.start(kept_order, "a", id=f"run-{number}") for number in range(120)])
        await engine.skip(8 * DAY)
        assert 0 < int(await engine.count()) < 120
        async with TestEngine(place, clock=engine.clock, retention=[KEEP], limits=limits) as second:
            while await engine.count():
                await engine.skip(timedelta(seconds=1))
                assert await check_store(store_of(engine)) == []
            assert engine.counters.runs_deleted + second.counters.runs_deleted == 120


async def test_retention_goes_on_with_an_unreadable_cell() -> None:
    """Retention whose cell cannot be read begins its walks again."""
    async with TestEngine(retention=[KEEP]) as engine:
        await store_of(engine).change_cell(RETENTION_CELL, lambda data, now: (b"?", None))
        await (await engine.start(kept_order, "a", id="order")).result()
        await engine.skip(8 * DAY)
        assert await engine.list() == []


async def test_purge_says_what_it_would_do_and_does_it(tmp_path: Path) -> None:
    """A preview with counts and ages, then the same for good; what an open run needs stays and is counted. [S31]"""
    async with TestEngine() as engine:
        await engine.start(kept_starter, "needed", id="starter")
        for name in ("a", "b", "c"):
            await (await engine.start(kept_order, name, id=name)).result()
        began = engine.now()
        await engine.skip(DAY)
        await (await engine.start(kept_order, "late", id="late")).result()

        preview = await engine.purge(workflow="kept_order", dry_run=True)
        assert (preview.found, preview.deleted, preview.counts) == (4, 0, {"kept_order succeeded": 4})
        assert preview.oldest is not None
        assert preview.newest is not None
        assert preview.oldest <= preview.newest <= began
        assert (await engine.purge(workflow="kept_order", limit=1)).deleted <= 1
        done = await engine.purge(workflow="kept_order", archive=tmp_path)
        assert (done.kept, len(done.files)) == (1, 1)
        assert await is_there(engine, "a", "b", "c", "needed", "late") == [False, False, False, True, True]
        await engine.skip(timedelta(seconds=1))
        assert (await engine.purge(workflow="kept_order", older_than=0, id_prefix="la")).deleted == 1


async def test_purge_refuses_what_it_cannot_mean() -> None:
    """No filter at all, open runs, and what is not a span."""
    async with TestEngine() as engine:
        with pytest.raises(InvalidArgumentError, match="say by a filter"):
            await engine.purge()
        with pytest.raises(InvalidArgumentError, match="only runs that ended go"):
            await engine.purge(status="running")
        with pytest.raises(InvalidArgumentError):
            await engine.purge(workflow="kept_order", older_than=-1)
        with pytest.raises(InvalidArgumentError):
            await engine.purge(workflow="kept_order", limit=0)


def test_rules_are_checked_when_an_engine_is_made() -> None:
    """Spans within which callers may still ask again, rules that say nothing, and two for the same."""
    with pytest.raises(InvalidArgumentError, match="an hour or more"):
        outlive.retention.Keep("order", succeeded=timedelta(minutes=5))
    with pytest.raises(InvalidArgumentError, match="say how long"):
        outlive.retention.Keep("order")
    with pytest.raises(InvalidArgumentError):
        outlive.retention.Keep("order", failed=DAY, archive="")
    with pytest.raises(ConfigurationError, match="two Keeps"):
        outlive.Engine("memory:", retention=[KEEP, KEEP])
    with pytest.raises(InvalidArgumentError):
        outlive.Engine("memory:", retention=KEEP)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError):
        outlive.Engine("memory:", retention=[7])  # type: ignore[list-item]
    assert outlive.retention.Keep(kept_order, failed=DAY).workflow == "kept_order"
    assert {status.value: span // 86_400_000_000 for status, span in KEEP.spans.items()} == {
        "succeeded": 7,
        "failed": 90,
        "timed_out": 90,
        "cancelled": 90,
        "continued": 7,
    }


async def test_tree_that_cannot_be_read_stays_and_the_others_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and met again in the next walk."""

    async def read_all_but_one(store: Store, journal: int) -> TreeCopy | None:
        run = await store.find_run("damaged")
        if run is not None and run.journal == journal:
            raise OutliveError("it is damaged")
        return await read_copy(store, journal)

    monkeypatch.setattr(purging, "read_copy", read_all_but_one)
    async with TestEngine(retention=[outlive.retention.Keep(succeeded=DAY, archive=tmp_path)]) as engine:
        for name in ("good", "damaged"):
            await (await engine.start(kept_order, name, id=name)).result()
        await engine.skip(2 * DAY)
        assert await is_there(engine, "good", "damaged") == [False, True]
        assert "run damaged is not deleted, because it cannot be archived" in caplog.text


async def test_tree_that_the_database_refuses_to_delete_does_not_keep_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are deleted one by one."""
    async with TestEngine() as engine:
        runs = [await row_of(await engine.start(kept_order, name, id=name)) for name in ("a", "b")]
        await engine.skip(DAY)
        store = store_of(engine)

        class Refusing:
            async def delete_trees(self, journals: list[int], **options: Any) -> list[int]:
                if runs[0].journal in journals:
                    raise StoreError("a row is damaged")
                return await store.delete_trees(journals, **options)

        purger = purging.Purger(Refusing(), ids=engine.clock)  # type: ignore[arg-type]
        gone, _ = await purger.delete(runs, ended_before=store.now(), archive=None)
        assert gone == {runs[1].journal}
        assert "could not be deleted: a row is damaged" in caplog.text


async def test_name_of_an_archive_is_on_the_disk_before_its_runs_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is synced when the whole file has its name: a power cut afterwards leaves the archive."""
    seen: list[tuple[Path, list[str]]] = []
    monkeypatch.setattr(
        "outlive._features.retention.archive.fsync_folder",
        lambda place: seen.append((place, [it.name for it in place.iterdir()])),
    )
    name = await Archive(tmp_path / "runs").write(["one\n"], at=0, mark="mark")

    assert seen == [(tmp_path / "runs", [Path(name).name])]


async def test_archive_at_a_url_is_written_with_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is an extra; a file that is not whole afterwards is none."""
    with pytest.raises(MissingExtraError, match="fsspec"):
        Archive("s3://bucket/runs")
    files = FakeFiles()
    monkeypatch.setitem(sys.modules, "fsspec", SimpleNamespace(core=SimpleNamespace(url_to_fs=files.find)))
    archive = Archive("s3://bucket/runs")
    trees = ['{"outlive":"history"} one\n', '{"outlive":"history"} two\n']
    name = await archive.write(trees, at=0, mark="mark")
    assert name == "s3://bucket/runs/runs-19700101T000000-mark.jsonl.gz"
    assert list(outlive.retention.read_archive(name)) == trees
    files.loses = 1
    with pytest.raises(ArchiveError, match="bytes instead of"):
        await archive.write(["one\n"], at=0, mark="cut")


class FakeFiles:
    """As much of an fsspec file system as an archive needs."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.loses = 0

    def find(self, url: str) -> tuple[FakeFiles, str]:
        """The file system of a URL, and the path in it."""
        return self, url.removeprefix("s3://")

    def makedirs(self, path: str, *, exist_ok: bool) -> None:
        """There are no folders."""

    def pipe_file(self, path: str, data: bytes) -> None:
        """Write a file."""
        self.data[path] = data[: len(data) - self.loses]

    def size(self, path: str) -> int:
        """Of a file."""
        return len(self.data[path])

    def cat_file(self, path: str) -> bytes:
        """Read a file."""
        return self.data[path]
