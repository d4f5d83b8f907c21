"""The client process of a trial.

    python -m proof.storm.client URL ACKS SEED OPEN_MAX [--drain] [--work=SECONDS]

It starts one job after the other, sends and decides what the plan says, waits for results, and writes down every
answer it gets. It may be killed at any moment; the next client reads what the last one knew and goes on from there.
What was asked and not answered is asked again: the ids of runs and the keys of signals make that safe, which is part of
what is tried here. With `--drain` it starts nothing new and ends when everything has; with `--work` it has a worker of
its own, whose lease is so long.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import outlive
from outlive import errors
from outlive.errors.run import ApprovalNotFoundError, RunNotParkedError, RunNotRetriableError
from outlive.errors.store import DuplicateCheckpointError
from outlive.testing.child_process import log_to_stderr, until_asked_to_stop
from outlive.testing.line_file import read
from outlive.types import WorkerOptions
from proof.storm import steps
from proof.storm.acks import Ack, AckLog
from proof.storm.insistence import entered, insist
from proof.storm.plan import Job, SignalPlan, job
from proof.storm.program import program, relay
from proof.storm.tally import keep_tally

BATCH_CONCURRENCY = 5
SIGNAL_SECONDS = 0.03
ASKED_SECONDS = 0.05
PAUSED_SECONDS = 0.1

BATCHES: dict[str, Any] = {"runs": program, "writes": steps.write_item, "steps": steps.handle_item}
"""What runs the items of a batch."""


class Client:
    """Drives jobs; knows what earlier clients were answered."""

    def __init__(
        self, engine: outlive.Engine, log: AckLog, seed: int, known: list[Ack], other: outlive.Engine | None = None
    ) -> None:
        self._engine, self._log, self._seed = engine, log, seed
        self._other = other or engine
        """A second client, which decides against the first."""
        self._answered = {(ack.number, ack.op, ack.key) for ack in known}
        tried = {ack.number for ack in known if ack.op == "trying"}
        self._open = sorted(tried - {ack.number for ack in known if ack.op == "ended"})
        self._next = max(tried, default=0) + 1

    async def run(self, *, open_max: int, is_draining: bool) -> None:
        """Go on with the open jobs, then with new ones for ever; draining, end with the open ones."""
        slots = asyncio.Semaphore(open_max)
        numbers = iter(self._open) if is_draining else itertools.chain(self._open, itertools.count(self._next))
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                await slots.acquire()
                task = group.create_task(self._drive(job(self._seed, number)))
                task.add_done_callback(lambda _: slots.release())

    async def _drive(self, it: Job) -> None:
        if not self._was_answered(it, "started"):
            await self._start(it)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_signals(it))
            group.create_task(self._cancel(it))
            group.create_task(self._pause(it))
            for name in it.approvals:
                group.create_task(self._decide(it, name))
            for name, body in it.asks.items():
                group.create_task(self._ask(it, name, body))
            for name, value in it.promises.items():
                group.create_task(self._settle(it, name, value))
        if it.is_repaired and not self._was_answered(it, "retried"):
            await self._repair(it)
        status, result = await self._outcome(it)
        for run_id in it.forks:
            await self._fork(it, run_id)
        self._log.write("ended", it.number, status=status, value=result)

    async def _start(self, it: Job) -> None:
        self._log.write("trying", it.number)
        for _ in range(it.starts):
            await insist(lambda: self._start_once(it))
        self._log.write("started", it.number)

    async def _start_once(self, it: Job) -> None:
        if it.batch:
            rows: Any = it.rows if it.batch == "runs" else it.program.ops
            await self._engine.start_batch(BATCHES[it.batch], rows, concurrency=BATCH_CONCURRENCY, id=it.id)
        elif it.relay is not None:
            await self._engine.start(relay, it.relay, id=it.id)
        else:
            await self._engine.start(program, it.program, id=it.id, timeout=it.timeout_seconds)

    async def _send_signals(self, it: Job) -> None:
        for signal in it.signals:
            if not self._was_answered(it, "signalled", signal.key):
                await asyncio.sleep(SIGNAL_SECONDS)
                if await self._send(it, signal):
                    self._log.write("signalled", it.number, key=signal.key, value=signal.value)

    async def _send(self, it: Job, signal: SignalPlan) -> bool:
        """Send a signal as often as planned; whether the engine took it."""
        is_accepted = False
        for _ in range(signal.times):
            try:
                await insist(lambda: self._engine.signal(it.id, "go", signal.value, key=signal.key))
                is_accepted = True
            except errors.RunFinishedError:
                # An earlier sending did it: the run cannot end without its signals. The checks see if that is so.
                continue
        return is_accepted

    async def _decide(self, it: Job, name: str) -> None:
        """Two clients decide at once, and differently: one of them is first, and both hear which."""
        if self._was_answered(it, "decided", name):
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._answer(it, name, self._engine.approvals.approve, by=f"ann-{os.getpid()}"))
            group.create_task(self._answer(it, name, self._other.approvals.reject, by=f"bob-{os.getpid()}"))

    async def _answer(
        self, it: Job, name: str, decide: Callable[..., Awaitable[outlive.types.Approval[Any]]], *, by: str
    ) -> None:
        answer: outlive.types.Approval[Any] | None = None
        while answer is None:
            try:
                answer = await insist(lambda: decide(it.id, name, by=by))
            except ApprovalNotFoundError:
                await asyncio.sleep(ASKED_SECONDS)  # The run has not come so far.
        status = "approved" if answer.approved else "rejected"
        self._log.write("decided", it.number, key=name, status=status, by=answer.by, is_first=answer.is_first)

    async def _ask(self, it: Job, name: str, body: int) -> None:
        """Two clients ask the same at once: there is one answer, and both get it."""
        if self._was_answered(it, "answered", name):
            return
        async with asyncio.TaskGroup() as group:
            for engine in (self._engine, self._other):
                group.create_task(self._ask_once(engine, it, name, body))

    async def _ask_once(self, engine: outlive.Engine, it: Job, name: str, body: int) -> None:
        answer = await insist(lambda: engine.ask(it.id, name, body, key=name))
        self._log.write("answered", it.number, key=name, value=answer)

    async def _settle(self, it: Job, name: str, value: int) -> None:
        """Settle a promise, and then again with another value from another client: that one must not count."""
        promise = ""
        while not promise:
            await asyncio.sleep(ASKED_SECONDS)  # The run may not have come so far.
            promise = (await insist(self._engine.get(it.id).published)).get(name, "")
        if not self._was_answered(it, "settled", name):
            await self._settle_once(self._engine, it, name, promise, value)
        await self._settle_once(self._other, it, name, promise, value + 1)

    async def _settle_once(self, engine: outlive.Engine, it: Job, name: str, promise: str, value: int) -> None:
        try:
            is_first = await insist(lambda: engine.promises.resolve(promise, value))
        except errors.RunFinishedError:
            is_first = False  # It cannot end before the promise is settled. The checks see if that is so.
        self._log.write("settled", it.number, key=name, value=value, is_first=is_first)

    async def _pause(self, it: Job) -> None:
        """Pause a run, and let it go on a moment later. A client that dies in between leaves that to the next one."""
        if it.pause_seconds is None or self._was_answered(it, "resumed"):
            return
        await asyncio.sleep(it.pause_seconds)
        try:
            await insist(lambda: self._engine.pause(it.id, by="storm"))
            await asyncio.sleep(PAUSED_SECONDS)
            await insist(lambda: self._engine.resume(it.id))
        except (errors.RunFinishedError, RunNotParkedError):
            pass  # It has ended before, or it was resumed by a call that got no answer.
        self._log.write("resumed", it.number)

    async def _repair(self, it: Job) -> None:
        """Wait until a run has failed, repair what it needs, and let it go on at what failed."""
        try:
            await insist(lambda: self._engine.get(it.id).result())
        except errors.RunFailedError:
            repair = outlive.checkpoints.Checkpoint(it.number, "repaired")
            # A call that got no answer may have done either.
            with suppress(DuplicateCheckpointError):
                await insist(lambda: self._engine.checkpoints.append(f"repair-{it.number}", repair))
            with suppress(RunNotRetriableError):
                await insist(lambda: self._engine.retry(it.id, reason="repaired"))
        self._log.write("retried", it.number)

    async def _fork(self, it: Job, run_id: str) -> None:
        """Start a run with the history of one that has ended, and wait until it has ended too."""
        if self._was_answered(it, "forked"):
            return
        with suppress(errors.RunExistsError):  # A call that got no answer has done it.
            await insist(lambda: self._engine.fork(it.id, id=run_id))
        value = await insist(lambda: self._engine.get(run_id).result())
        self._log.write("forked", it.number, value=value)

    async def _cancel(self, it: Job) -> None:
        if it.cancel_seconds is None or self._was_answered(it, "cancelled"):
            return
        await asyncio.sleep(it.cancel_seconds)
        try:
            await insist(lambda: self._engine.cancel(it.id, reason="planned"))
        except errors.RunFinishedError:
            return
        self._log.write("cancelled", it.number)

    async def _outcome(self, it: Job) -> tuple[str, int | None]:
        try:
            if it.batch:
                return "succeeded", await insist(lambda: self._total_of_batch(it))
            return "succeeded", await insist(lambda: self._engine.get(it.id).result())
        except errors.RunCancelledError:
            return "cancelled", None
        except errors.RunTimedOutError:
            return "timed_out", None
        except errors.RunFailedError:
            return "failed", None

    async def _total_of_batch(self, it: Job) -> int:
        """What the items add up to. Those that fail must be those that fail by plan."""
        results: list[Any] = await self._engine.batches.get(it.id).results()
        for op, result in zip(it.program.ops, results, strict=True):
            assert isinstance(result, ValueError) if op.kind == "item" and op.fails else isinstance(result, int), result
        return sum(result for result in results if isinstance(result, int))

    def _was_answered(self, it: Job, op: str, key: str = "") -> bool:
        return (it.number, op, key) in self._answered


async def main(
    url: str, acks: Path, seed: int, open_max: int, *, is_draining: bool, lease_seconds: float | None
) -> None:
    """Be a client until asked to stop, killed, or, draining, done."""
    known = read(acks, Ack)
    worker = lease_seconds is not None and WorkerOptions(lease_seconds=lease_seconds)
    async with entered(url, worker=worker) as engine, entered(url, worker=False) as other:
        client = Client(engine, AckLog(acks), seed, known, other)
        driving = asyncio.create_task(client.run(open_max=open_max, is_draining=is_draining))
        asking = asyncio.create_task(until_asked_to_stop())
        telling = asyncio.create_task(keep_tally(engine.counters))
        await asyncio.wait([driving, asking], return_when=asyncio.FIRST_COMPLETED)
        if driving.done():
            driving.result()
        telling.cancel()
        driving.cancel()
        await asyncio.wait([driving])


if __name__ == "__main__":
    log_to_stderr()
    _, _url, _acks, _seed, _open_max, *_rest = sys.argv
    asyncio.run(
        main(
            _url,
            Path(_acks),
            int(_seed),
            int(_open_max),
            is_draining="--drain" in _rest,
            lease_seconds=next((float(each.partition("=")[2]) for each in _rest if each.startswith("--work=")), None),
        )
    )
