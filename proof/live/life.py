"""A trial from its first process to its evidence."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg

import outlive
from outlive_conformance.servers.postgres import PostgresServer
from proof.live.evidence import Evidence, Invoice
from proof.live.fleet import Fleet
from proof.live.http import ask
from proof.live.releases import make_releases
from proof.live.storm import KINDS, Storm
from proof.live.trial import CLOSE_SECONDS, Trial
from proof.live.watch import SIZE, Sample, StoreSize, look_at, sockets_to
from proof.live.world import World, note_ends

START_SECONDS_MAX = 60.0
DRAIN_SECONDS_MAX = 150.0
DATABASE = "invoices"
LOOK_SECONDS, SAMPLE_SECONDS, SIZE_SECONDS = 0.2, 2.0, 5.0
ALL_FAULTS_SECONDS = 240.0
"""A trial that is this long has every fault; a shorter one what it has time for."""
NEVER_ENDS = "close_books"
"""The workflow that begins again all the time."""
OPEN = ("pending", "running", "waiting", "parked", "paused")
EXPECTED = ("timeout graceful shutdown exceeded", "StoreUnavailableError")
"""What uvicorn logs of a reader that is open when it is asked to stop, and of an engine that finds no store."""
LOGGED_BY = ("web", "worker", "agents")
"""Whose logs may have no traceback; the simple servers outside lose their clients all the time."""


async def live(trial: Trial, server: PostgresServer, thread: Executor, tell: Callable[[str], None]) -> Evidence:
    """Run the application while the world goes on around it, let it finish, and collect everything."""
    evidence = Evidence(close_seconds=CLOSE_SECONDS)
    fleet = Fleet(trial, make_releases(trial.folder))
    world = World(trial, fleet, evidence)
    storm = Storm(trial, fleet, server, world, evidence, thread=thread, tell=tell)
    try:
        await _migrate(trial)
        for role in fleet.roles:
            fleet.start(role, 1)
        looking = asyncio.create_task(_look_after(fleet, server, evidence))
        await _until_up(trial)
        tell("everything is up")
        evidence.began_at = time.time()
        if trial.seconds >= ALL_FAULTS_SECONDS:
            evidence.wanted_faults = frozenset(KINDS)
        world.begin()
        await storm.rage()
        evidence.ended_at = time.time()
        tell("nothing new is begun")
        world.is_over = True
        await storm.calm_down()
        await _drain(trial, evidence)
        world.end()
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        await asyncio.get_running_loop().run_in_executor(None, fleet.stop)
        evidence.ended_at = time.time()
        await collect(trial, fleet, evidence)
    finally:
        fleet.end()
    return evidence


async def _migrate(trial: Trial) -> None:
    """Create Outlive's tables and those of the application, as a deploy does."""
    async with outlive.Engine(trial.store, worker=False):
        pass
    variables = trial.variables() | {"PYTHONPATH": str(trial.folder / "release-1"), "PATH": ""}
    command = [sys.executable, "-m", "invoices.tables"]
    process = await asyncio.create_subprocess_exec(*command, env=variables)
    assert await process.wait() == 0, "the tables of the application cannot be created"


async def _until_up(trial: Trial) -> None:
    async with asyncio.timeout(START_SECONDS_MAX), outlive.Engine(trial.store, worker=False) as engine:
        for port in trial.ports.webs:
            while True:
                with suppress(OSError):
                    if (await ask(port, "GET", "/ping")).status == 200:
                        break
                await asyncio.sleep(0.1)
        while {"checkout", "write_letter"} - {it.name for it in await engine.workflows.list()}:  # noqa: ASYNC110 (workers of other processes write them)
            await asyncio.sleep(0.1)


async def _look_after(fleet: Fleet, server: PostgresServer, evidence: Evidence) -> None:
    """Supervise, and note what everything uses."""
    sampled_at = sized_at = 0.0
    loop = asyncio.get_running_loop()
    while True:
        fleet.look()
        now = time.time()
        if now - sampled_at >= SAMPLE_SECONDS:
            sampled_at = now
            processes = {role: member.process.pid for role, member in fleet.members.items()}
            evidence.samples += await loop.run_in_executor(None, _sample, processes, server.port)
        if now - sized_at >= SIZE_SECONDS:
            sized_at = now
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
                evidence.sizes.append(await _size(server))
        await asyncio.sleep(LOOK_SECONDS)


def _sample(processes: dict[str, int], port: int) -> list[Sample]:
    """What each process uses. The list of all sockets of the machine may be long."""
    sockets = sockets_to(port)
    found = [look_at(role, pid, sockets=sockets) for role, pid in processes.items()]
    return [sample for sample in found if sample is not None]


async def _size(server: PostgresServer) -> StoreSize:
    connection = await asyncpg.connect(server.url(DATABASE), timeout=5)
    try:
        row = await connection.fetchrow(SIZE)
    finally:
        await connection.close(timeout=5)
    assert row is not None
    size, runs, connections = row
    return StoreSize(time.time(), int(size) / 2**20, runs, connections)


async def _drain(trial: Trial, evidence: Evidence) -> None:
    """Wait until all has ended that was begun; what is left is noted with what it waits for."""
    deadline = time.monotonic() + DRAIN_SECONDS_MAX
    async with outlive.Engine(trial.store, worker=False) as engine:
        while True:
            with suppress(outlive.errors.OutliveError):
                page = await engine.list(status=OPEN[:4], limit=1000)
                left = [run for run in page if run.workflow != NEVER_ENDS]
                if not left:
                    break
                if time.monotonic() > deadline:
                    evidence.still_open = {run.id: await engine.get(run.id).why() for run in left[:20]}
                    break
            await asyncio.sleep(1.0)


async def collect(trial: Trial, fleet: Fleet, evidence: Evidence) -> None:
    """Read the store, the tables of the application, and the ledgers."""
    async with outlive.Engine(trial.store, worker=False) as engine:
        await note_ends(engine, evidence)
    connection = await asyncpg.connect(trial.store.partition("?")[0])
    for row in await connection.fetch("SELECT number, cents, status, charge, at FROM invoices"):
        number, cents, status, charge, at = row
        evidence.invoices.append(Invoice(number, cents, status, charge))
        evidence.checkout_began_at[number] = at.timestamp()
    for row in await connection.fetch("SELECT number, sum(taken) AS taken FROM stock GROUP BY number"):
        evidence.stock[row["number"]] = row["taken"]
    for row in await connection.fetch("SELECT event, number, count(*) AS times FROM bookings GROUP BY event, number"):
        evidence.bookings[row["event"], row["number"]] = row["times"]
    evidence.ticks = [row["at"].timestamp() for row in await connection.fetch("SELECT at FROM closings")]
    evidence.imported = [tuple(row) for row in await connection.fetch("SELECT file, line, cents FROM imported")]
    await connection.close()
    evidence.bank, evidence.mails = _lines(trial.bank_ledger), _lines(trial.mailer_ledger)
    evidence.problems = _fsck(trial)
    evidence.lost, evidence.stop_seconds = fleet.lost, fleet.stop_seconds
    evidence.began_without_store = fleet.began_without_store
    for role in fleet.roles:
        if role.startswith(LOGGED_BY):
            log = (trial.folder / f"{role}.log").read_text("utf-8", "replace")
            evidence.tracebacks += [f"{role}: {each}" for each in surprises_in(log) if not is_expected(each)]


def _lines(ledger: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]


def surprises_in(log: str) -> list[str]:
    """The exceptions of a log that are not part of a message: the further lines of a message are indented."""
    lines = iter(log.splitlines())
    heads = (line for line in lines if line.startswith("Traceback (most recent call last):"))
    return [next((line for line in lines if line and not line.startswith(" ")), "cut off") for _ in heads]


def is_expected(exception: str) -> bool:
    """Whether an exception in a log is an ordinary thing when processes and the server are killed."""
    return any(part in exception for part in EXPECTED)


def _fsck(trial: Trial) -> list[str]:
    """What the command finds that people use."""
    command = [sys.executable, "-m", "outlive.cli", "fsck", "--store", trial.store]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"outlive fsck ended with {done.returncode}:", done.stdout, done.stderr]


def conduct(trial_of: Callable[[PostgresServer], Trial], tell: Callable[[str], None]) -> tuple[Trial, Evidence]:
    """A trial on a server of its own; the server lives on one thread, which ends after it."""
    server = PostgresServer(settings={"max_wal_size": "128MB", "shared_buffers": "32MB", "autovacuum_naptime": "10s"})
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(server.start).result()
            server.create_database(DATABASE)
            trial = trial_of(server)
            return trial, asyncio.run(live(trial, server, thread, tell))
        finally:
            thread.submit(server.remove).result()
