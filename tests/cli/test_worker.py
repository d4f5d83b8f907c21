"""`outlive worker` with real processes and real signals: it stops as it was asked to, and loses nothing."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import outlive
from outlive.engine.url import shown
from outlive.events import RunReleased, StepSucceeded
from tests.cli import shop
from tests.cli.conftest import Command, Ledger
from tests.engine.inside import journal_of, store_of
from tests.interrupts import ignored_interrupts

Begin = Callable[..., Command]
APP = str(Path(shop.__file__))
SIGNALS = (signal.SIGTERM, signal.SIGINT)
ASKED = "claims nothing more"
STOP_SECONDS_MAX = 5.0
"""What docs/guides/deploying.md promises: how much longer than its grace a worker takes to stop."""
SLACK_SECONDS = 5.0
"""For a machine that has other things to do than this test."""


async def start(url: str, run: str = "a") -> None:
    """Start an order from another process than the workers'."""
    async with outlive.Engine(url, worker=False) as client:
        await client.start(shop.order, run, id=run)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda it: it.name)
async def test_a_worker_that_is_asked_to_stop_lets_its_step_end(
    number: signal.Signals, url: str, command: Begin, ledger: Ledger
) -> None:
    """The step that runs ends and is in the journal; no worker runs it again, and the next worker goes on behind it."""
    await start(url)
    first = command("worker", APP, "--store", url, "--grace-seconds", "60")
    first.ready()
    ledger.hears("begin a-1")
    first.signal(number)
    first.says(ASKED)
    ledger.open_gate()

    assert 0 == first.ends()
    assert ["begin a-1", "end a-1"] == ledger.said()
    async with outlive.Engine(url, worker=False) as client:
        history = await journal_of(client, "a")
        assert [StepSucceeded, RunReleased] == [type(event) for event in history[-2:]]
        command("worker", APP, "--store", url).ready()
        assert "a-1 a-2" == await client.get("a").result(timeout=20)
    assert ["begin a-1", "end a-1", "begin a-2", "end a-2"] == ledger.said()


async def test_a_step_that_takes_longer_than_the_grace_goes_on_elsewhere(
    url: str, command: Begin, ledger: Ledger
) -> None:
    """The worker leaves with 0 when the grace is over, and another one has the run within a second."""
    await start(url)
    first = command("worker", APP, "--store", url, "--grace-seconds", "0.3")
    first.ready()
    ledger.hears("begin a-1")
    second = command("worker", APP, "--store", url)
    second.ready()
    asked_at = time.time()
    first.signal(signal.SIGTERM)
    again_at = ledger.hears("begin a-1", times=2)

    assert 0 == first.ends()
    assert 0.3 <= again_at - asked_at < 0.3 + 1.0 + SLACK_SECONDS
    assert second.process.pid == ledger.lines()[-1][1]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda it: it.name)
async def test_a_second_signal_ends_the_worker_at_once(
    number: signal.Signals, url: str, command: Begin, ledger: Ledger
) -> None:
    """It does not wait for its steps, says so with its exit code, and its neighbour goes on long before its lease."""
    await start(url)
    first = command("worker", APP, "--store", url, "--grace-seconds", "600", "--lease-seconds", "600")
    first.ready()
    ledger.hears("begin a-1")
    second = command("worker", APP, "--store", url)
    second.ready()
    first.signal(signal.SIGTERM)
    first.says(ASKED)
    first.signal(number)

    assert 128 + number == first.ends()
    ledger.hears("begin a-1", times=2)
    assert second.process.pid == ledger.lines()[-1][1]


async def test_a_stalled_worker_still_obeys_the_second_signal(url: str, command: Begin, ledger: Ledger) -> None:
    """A step that blocks the event loop does not keep an operator from ending the process."""
    async with outlive.Engine(url, worker=False) as client:
        await client.start(shop.stall, id="s")
    worker = command("worker", APP, "--store", url)
    worker.ready()
    ledger.hears("begin block")
    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)

    assert worker.ends() in {128 + signal.SIGTERM, 128 + signal.SIGINT}, "whichever came second"


async def test_a_stalled_worker_ends_with_its_own_code(url: str, command: Begin, ledger: Ledger) -> None:
    """A supervisor starts another one; the log says why."""
    async with outlive.Engine(url, worker=False) as client:
        await client.start(shop.stall, id="s")
    worker = command("worker", APP, "--store", url, "--lease-seconds", "1")
    worker.ready()
    ledger.hears("begin block")

    assert 70 == worker.ends()
    assert "this process ends, and other workers go on with its runs" in worker.log


async def test_a_fleet_survives_a_run_that_never_gives_way(url: str, command: Begin, ledger: Ledger) -> None:
    """Two workers end, so that their supervisors start them again. The third one parks the run before it moves it."""
    fleet = [command("worker", APP, "--store", url, "--lease-seconds", "1") for _ in range(3)]
    for worker in fleet:
        worker.ready()
    async with outlive.Engine(url, worker=False) as client:
        bad = await client.start(shop.spin, id="bad")
        with pytest.raises(outlive.errors.RunParkedError) as parked:
            await bad.result(timeout=40)
        good = await client.start(shop.order, "a", id="a")
        ledger.open_gate()

        assert await good.result(timeout=20)
    assert ledger.said().count("begin spin") == 2
    assert sorted(
        (worker.process.poll() is None, worker.process.poll()) for worker in fleet if worker.process.poll()
    ) == ([(False, 70)] * 2)
    reason = str(parked.value)
    assert "it has blocked the event loop of 2 workers" in reason
    assert "in spin (shop.py:" in reason


async def test_no_exception_of_a_run_ends_its_worker(url: str, command: Begin, ledger: Ledger) -> None:
    """Not one that ends programs either, and not in a task that a step has begun: the run fails, and others go on."""
    worker = command("worker", APP, "--store", url)
    worker.ready()
    async with outlive.Engine(url, worker=False) as client:
        for how, name in (("step", "KeyboardInterrupt"), ("body", "KeyboardInterrupt"), ("task", "SystemExit")):
            with pytest.raises(outlive.errors.RunFailedError, match=name):
                await (await client.start(shop.fall, how, id=how)).result(timeout=20)
        ledger.open_gate()
        assert "a-1 a-2" == await (await client.start(shop.order, "a", id="a")).result(timeout=20)

    assert "raised SystemExit, which ends a program; this one goes on" in worker.log
    assert {worker.process.pid} == {process for _, process, _ in ledger.lines()}
    worker.signal(signal.SIGTERM)
    assert 0 == worker.ends()


async def test_a_run_that_stops_its_workers_cleanly_is_parked(
    url: str, command: Begin, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them gives its runs back, and says with 0 that all is well: a supervisor starts the next one."""
    monkeypatch.setenv("OUTLIVE_LIMITS_ATTEMPTS_MAX", "2")
    async with outlive.Engine(url, worker=False) as client:
        bad = await client.start(shop.poison, id="bad")
        for _ in range(3):
            worker = command("worker", APP, "--store", url, "--grace-seconds", "0")
            assert 0 == worker.ends(), worker.log
        last = command("worker", APP, "--store", url, "--grace-seconds", "0")
        with pytest.raises(outlive.errors.RunParkedError, match="3 workers were interrupted while they ran it"):
            await bad.result(timeout=20)

    assert ["begin terminate"] * 3 == ledger.said()
    assert last.process.poll() is None


async def test_a_stalled_worker_lives_on_with_no_exit_when_stalled(url: str, command: Begin, ledger: Ledger) -> None:
    """It has ended its session: another worker goes on with its runs."""
    async with outlive.Engine(url, worker=False) as client:
        await client.start(shop.stall, id="s")
    worker = command("worker", APP, "--store", url, "--lease-seconds", "1", "--no-exit-when-stalled")
    worker.ready()
    ledger.hears("begin block")
    worker.says("this worker has lost its lease (the event loop has not turned for")

    assert worker.process.poll() is None
    assert "run s blocks it in block (shop.py:" in worker.log


def test_a_worker_that_an_unexpected_error_ends_is_to_be_started_again(tmp_path: Path, command: Begin) -> None:
    """It has not the code of a wrong command or store, after which a supervisor lets it be."""
    (tmp_path / "broken.py").write_text(
        "import outlive\n"
        "class Broken(outlive.Engine):\n"
        "    async def __aenter__(self):\n"
        "        raise RuntimeError('the cache is not up yet')\n"
        "def engine():\n"
        "    return Broken('sqlite:shop.db')\n"
    )
    worker = command("worker", f"{tmp_path / 'broken.py'}:engine")

    assert 70 == worker.ends()
    assert "RuntimeError: the cache is not up yet" in worker.log
    assert "start it again" in worker.log


async def test_a_thread_that_never_ends_does_not_keep_the_process(url: str, command: Begin, ledger: Ledger) -> None:
    """A worker stops and releases its run although a step has left a thread that never ends."""
    async with outlive.Engine(url, worker=False) as client:
        await client.start(shop.stick, id="s")
        worker = command("worker", APP, "--store", url, "--grace-seconds", "0.1")
        worker.ready()
        ledger.hears("begin thread")
        worker.signal(signal.SIGTERM)

        assert 0 == worker.ends()
        assert "pending" == await client.get("s").status()


async def test_a_worker_waits_for_its_store(tmp_path: Path, command: Begin, ledger: Ledger) -> None:
    """It says what it waits for, and works as soon as the store is there."""
    url = f"sqlite:{tmp_path / 'later' / 'shop.db'}"
    worker = command("worker", APP, "--store", url)
    worker.says("it is tried again in 1 s")
    (tmp_path / "later").mkdir()
    worker.ready()
    await start(url)

    ledger.hears("begin a-1")


@pytest.mark.parametrize("number", SIGNALS, ids=lambda it: it.name)
def test_a_worker_that_waits_for_its_store_can_be_stopped(number: signal.Signals, command: Begin) -> None:
    """There is nothing to release, and nothing went wrong; also with SIGINT if a shell began it with that ignored."""
    with ignored_interrupts():
        worker = command("worker", APP, "--store", "postgresql://stranger@127.0.0.1:1/shop")
    worker.says("it is tried again")
    worker.signal(number)

    assert 0 == worker.ends()


async def test_a_worker_whose_store_is_locked_stops_in_time(tmp_path: Path, command: Begin, ledger: Ledger) -> None:
    """Another process keeps the file; the worker waits a little longer than its grace, and says what follows."""
    url = f"sqlite:{tmp_path / 'shop.db'}"
    await start(url)
    worker = command("worker", APP, "--store", url, "--grace-seconds", "0.1")
    worker.ready()
    ledger.hears("begin a-1")
    lock = apsw.Connection(str(tmp_path / "shop.db"))
    lock.set_busy_timeout(5_000)
    lock.execute("BEGIN IMMEDIATE")
    ledger.open_gate()
    ledger.hears("end a-1")
    asked_at = time.monotonic()
    worker.signal(signal.SIGTERM)

    assert 0 == worker.ends()
    assert time.monotonic() - asked_at < 0.1 + STOP_SECONDS_MAX + SLACK_SECONDS
    assert "its lease will run out" in worker.log
    assert "everything is released" not in worker.log
    lock.close()


async def test_a_named_worker_shows_its_name(url: str, command: Begin) -> None:
    """A worker that is ready prints its name, the number of its workflows and its store, and the store has its name,
    lease and definitions."""
    line = command("worker", APP, "--store", url, "--name", "anvil", "--lease", "none").ready()
    async with outlive.Engine(url, worker=False) as client:
        (worker,) = await store_of(client).list_workers()
        known = {it.name for it in await client.workflows.list() if it.arguments is not None}

    assert "order" in known, "a worker that is ready has described its workflows"
    assert ("anvil", "none") == (worker.name, worker.lease)
    assert "order@1" in worker.definitions
    assert "ready: worker anvil (process " in line
    assert f"runs 6 workflows on {shown(url)}" in line
