"""The findings of a doctor: versions, the configuration, the place of the store, and the runs in it that stand still.

Looking writes nothing: a store is opened only if its schema is that of this release, and on a server everything is read
in a transaction that can only read.
"""

from __future__ import annotations

import asyncio
import importlib.util
import platform
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive._kernel.model.run import OPEN
from outlive._kernel.model.under_way import cell_of, report_in, span_shown, step_of, steps_shown
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import WorkerInfo
from outlive._kernel.store.diagnosis import Finding, Level, problem, warning, well
from outlive.config.settings import Settings
from outlive.engine.configured import read_configuration
from outlive.engine.engine import Engine
from outlive.engine.namespace import in_namespace
from outlive.engine.url import is_server
from outlive.errors import InvalidSettingsError, OutliveError
from outlive.errors.store import StoreUrlError

PYTHON_MIN = (3, 11)
AHEAD_SECONDS_MAX = 5
LATE_SECONDS = 60
"""After how long a schedule that is due, or a run in line that no limit keeps, is late."""
SILENT_SECONDS = 600
"""After how long a step that runs, or its last heartbeat, is worth a look: most of them take seconds."""
LOOKED_AT_MAX = 500
NAMES_SHOWN_MAX = 5
ETCD_SECONDS = 5.0
"""How long etcd may take to answer."""
DOES_NOT_HINDER = {"autovacuum", "disk", "transaction ids"}
"""Findings that a person has to see to, and that keep no one from reading a store."""

_ADVICE = {
    "parked": "outlive runs list --stuck says why; resume them, skip a step or cancel them",
    "interrupted": "start a worker that has their workflows; another one takes them over",
    "damaged": "outlive fsck --repair writes their rows again from the journals",
    "undefined": "start a worker that defines these workflows in these versions",
    "untaken": "start a worker with --queues and the names of their queues, or without --queues",
}


async def diagnose(url: str | None, *, namespace: str | None = None) -> list[Finding]:
    """Everything that a doctor has to say about this machine, the configuration and a store; store and namespace are
    those of the configuration unless they are given."""
    found = [*_versions()]
    settings, of_settings = _configuration()
    found += of_settings
    if settings is not None and settings["worker.lease"].startswith(("etcd:", "etcds:")):
        found.append(await asyncio.to_thread(_etcd, settings["worker.lease"]))
    redact = None if settings is None else tuple(settings["redact"])
    if url is None and settings is not None:
        url, namespace = settings["store"], namespace or settings["namespace"]
    if url is None:
        if settings is not None:
            advice = 'give --store URL, set OUTLIVE_STORE, or write store = "..." into outlive.toml'
            found.append(problem("store", "none is named", advice))
        return found
    found += [each async for each in _store(in_namespace(url, namespace), redact=redact)]
    return found


def _versions() -> Iterator[Finding]:
    said = f"{platform.python_version()} on {platform.system()}"
    if sys.version_info < PYTHON_MIN:
        yield problem("python", said, f"use Python {'.'.join(map(str, PYTHON_MIN))} or later")
    else:
        yield well("python", said)
    yield well("outlive", version("outlive"))


def _configuration() -> tuple[Settings | None, list[Finding]]:
    try:
        settings = read_configuration()
    except InvalidSettingsError as error:
        return None, [problem("configuration", str(each), "correct it there") for each in error.problems]
    given = f"{len(settings.given)} {'setting' if len(settings.given) == 1 else 'settings'}"
    return settings, [well("configuration", f"{settings.file or 'no file'}, {given} given")]


def _etcd(url: str) -> Finding:
    from outlive._kernel.lease.etcd import Gateway, count_keys, parse_address

    try:
        gateway = Gateway(parse_address(url), monotonic=SystemClock().monotonic)
        try:
            count = count_keys(gateway, seconds=ETCD_SECONDS)
        finally:
            gateway.close()
    except OutliveError as error:
        advice = "start etcd, or correct worker.lease: workers that cannot renew their leases let go of their runs"
        return problem("leases", str(error), advice)
    have = "worker has" if count == 1 else "workers have"
    return well("leases", f"{gateway.address} answers, {count} {have} a key there")


async def _store(url: str, *, redact: tuple[str, ...] | None) -> AsyncIterator[Finding]:
    scheme, _, rest = url.partition(":")
    clock = SystemClock()
    if scheme == "memory":
        yield well("store", "in memory: it ends with its process, and there is nothing to see from outside")
        return
    if is_server(url):
        if importlib.util.find_spec("asyncpg") is None:
            yield problem("asyncpg", "it is not installed", "pip install 'outlive[postgres]'")
            return
        from outlive._kernel.store.postgres import diagnosis as of_postgres

        yield of_postgres.diagnose_driver()
        found = await of_postgres.diagnose_server(url, now=clock.now)
    else:
        try:
            engine = Engine(url, worker=False)
        except StoreUrlError as error:
            yield problem("store", str(error), "correct the store URL")
            return
        del engine
        from outlive._kernel.store.sqlite import diagnosis as of_sqlite

        yield of_sqlite.diagnose_driver()
        found = list(of_sqlite.diagnose_file(rest))
    for each in found:
        yield each
    if not _can_be_opened(url, found):
        yield warning("runs", "not looked at, because the store is not ready", "see above")
        return
    try:
        async with Engine(_as_it_is(url), worker=False, redact=redact or ()) as engine, _reading(engine):
            async for each in _inside(engine, shows_values=redact is not None):
                yield each
    except OutliveError as error:
        yield problem("runs", f"they could not be looked at: {error}", "outlive fsck says more about the store")


def _can_be_opened(url: str, found: list[Finding]) -> bool:
    """Whether an engine would write nothing when it opens the store; the last finding is about its schema."""
    does_not_hinder = DOES_NOT_HINDER | ({"durability"} if is_server(url) else set())
    hinders = [each for each in found if each.level is Level.PROBLEM and each.check not in does_not_hinder]
    if found[-1].level is not Level.OK or hinders:
        return False
    if is_server(url):
        return True
    is_wal = all(each.level is Level.OK for each in found if each.check == "durability")
    return is_wal and Path(f"{url.partition(':')[2]}-workers").expanduser().exists()


def _as_it_is(url: str) -> str:
    """The URL of the store for a reader: it also opens a server that may lose what it has confirmed."""
    if not is_server(url):
        return url
    return f"{url}{'&' if '?' in url else '?'}allow_unsafe=true"


def _reading(engine: Engine) -> AbstractAsyncContextManager[Any]:
    store = engine._store
    moment = getattr(store, "one_moment", None)
    return nullcontext() if moment is None else moment(makes_requested=False)


# -- What stands still in a store ----------------------------------------------------------------------------------


async def _inside(engine: Engine, *, shows_values: bool) -> AsyncIterator[Finding]:
    store = engine._store
    workers = await store.list_workers()
    live = [worker for worker in workers if worker.is_live]
    gone = [worker for worker in workers if not worker.is_live and worker.runs]
    open_runs = await engine.count(status=OPEN)
    if live or not int(open_runs):
        yield well("workers", f"{len(live)} alive, {open_runs} open runs")
    else:
        advice = "start one that has their workflows: outlive worker APP"
        yield problem("workers", f"none is alive, and there are {open_runs} open runs", advice)
    if gone:
        own = "is gone and still owns" if len(gone) == 1 else "are gone and still own"
        said = f"{len(gone)} {own} {sum(worker.runs for worker in gone):,} runs"
        yield warning("workers", said, "workers that have their workflows take these over; see outlive workers list")
    yield await _time(engine)
    async for each in _standing(engine):
        yield each
    async for each in _steps(engine, live, shows_values=shows_values):
        yield each
    async for each in _queues(engine, has_workers=bool(live)):
        yield each
    yield await _schedules(engine)


async def _time(engine: Engine) -> Finding:
    newest = await engine.list(limit=1)
    now = instant_of(engine._store.now())
    ahead = max(((run.created_at - now).total_seconds() for run in newest), default=0.0)
    if ahead > AHEAD_SECONDS_MAX:
        said = f"the newest run was started {ahead:,.0f} s from now: a clock has gone back"
        return problem("time", said, "let this machine ask a time server; timers and leases wait until then")
    return well("time", "no run was started in the future")


async def _standing(engine: Engine) -> AsyncIterator[Finding]:
    found = await engine.list_stuck(limit=LOOKED_AT_MAX)
    if not found:
        yield well("runs", "every run moves, waits for something, or has ended")
        return
    more = " or more" if len(found) == LOOKED_AT_MAX else ""
    for kind, count in Counter(it.kind for it in found).items():
        examples = [it for it in found if it.kind is kind]
        names = list(dict.fromkeys(it.run.definition for it in examples))
        shown = ", ".join(names[:NAMES_SHOWN_MAX]) + (", ..." if len(names) > NAMES_SHOWN_MAX else "")
        said = f"{count:,}{more} {kind} ({shown}): {' '.join(examples[0].reason.split())[:200]}"
        yield (problem if kind == "damaged" else warning)("runs", said, _ADVICE[kind])


async def _steps(engine: Engine, live: list[WorkerInfo], *, shows_values: bool) -> AsyncIterator[Finding]:
    """Steps that have lasted for long, as their workers say in their cells. Without what people may not see, and
    without any values where the configuration cannot be read: it says what that is."""
    cells = [await engine._store.read_cell(cell_of(worker.id)) for worker in live[:LOOKED_AT_MAX]]
    notes = [note for data in cells for note in report_in(data).steps]
    silent_since_at = engine._store.now() - SILENT_SECONDS * MICROSECONDS
    silent = [note for note in notes if max(note.since_at, note.heartbeat_at) <= silent_since_at]
    silent.sort(key=lambda note: note.since_at)
    span = span_shown(SILENT_SECONDS)
    if not silent:
        have = "that has" if len(notes) == 1 else "that have"
        yield well(
            "steps", f"{len(notes):,} {have} lasted for some seconds, and none without a sign of life for {span}"
        )
        return
    for note in silent[:NAMES_SHOWN_MAX]:
        steps = await engine.steps(note.root, arguments=shows_values)
        of = step_of(note, session="")
        step = next((it for it in steps if (it.run_id, it.call) == (of.run_id, of.call)), None)
        if step is None:
            continue  # It has ended meanwhile.
        if not shows_values:
            step = msgspec.structs.replace(step, last_failure="", progress=None)
        said = f"run {step.run_id} is in {steps_shown([step], instant_of(engine._store.now()))}"
        advice = (
            f"outlive runs show {step.run_id} says more, and outlive runs cancel ends it; give such steps a timeout "
            "or a heartbeat_timeout"
        )
        yield warning("steps", said, advice)
    if len(silent) > NAMES_SHOWN_MAX:
        said = f"{len(silent) - NAMES_SHOWN_MAX:,} more have shown no sign of life for {span}"
        yield warning("steps", said, "outlive runs why says in which step a run is")


async def _queues(engine: Engine, *, has_workers: bool) -> AsyncIterator[Finding]:
    late = 0
    queues = await engine.queues.list()
    for queue in queues:
        seconds = 0.0 if queue.waiting is None else queue.waiting.total_seconds()
        if seconds <= LATE_SECONDS:
            continue
        late += 1
        said = f"{queue.name}: {queue.in_line} runs in line, the first for {seconds:,.0f} s"
        if queue.paused:
            yield warning("queues", f"{said}; {queue.paused}", f"outlive queues resume {queue.name}")
        elif int(queue.running):
            advice = (
                f"outlive runs list --queue {queue.name} shows what has its slots; raise its limits, or add workers"
            )
            yield warning("queues", f"{said}, {queue.running} under way", advice)
        else:
            why = "none of them is under way" if has_workers else "no worker is alive"
            yield warning("queues", f"{said}; {why}", "start a worker that takes from it and has its workflows")
    if not late:
        yield well("queues", f"{len(queues)}, and none is behind")


async def _schedules(engine: Engine) -> Finding:
    due = await engine._store.find_due_schedules(limit=LOOKED_AT_MAX)
    late = [
        row for row in due.rows if row.next_at is not None and due.now_at - row.next_at > LATE_SECONDS * MICROSECONDS
    ]
    if not late:
        return well("schedules", "none is behind")
    behind = max(due.now_at - (row.next_at or 0) for row in late) / MICROSECONDS
    names = ", ".join(row.name for row in late[:3])
    said = f"{len(late)} are behind by up to {behind:,.0f} s ({names})"
    return warning("schedules", said, "start a worker with schedules=True: it catches up as each schedule says")
