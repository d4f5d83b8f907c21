"""The client of a storm over queues: it sees that guests wait in every line, and at the end that all of them leave.

python -m proof.storm.limits.client URL ACKS SEED OPEN_MAX [--drain]
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

import outlive
from outlive.testing.child_process import log_to_stderr, until_asked_to_stop
from proof.storm.acks import AckLog
from proof.storm.insistence import entered, insist
from proof.storm.limits.guests import KEYS, QUEUES, guest, run_id, slots_of

LOOK_SECONDS = 0.1
IN_LINE = 8
"""Guests that wait in a line, at least."""


async def fill(engine: outlive.Engine, acks: AckLog) -> None:
    """Start guests for ever, so that no line is ever empty."""
    following = dict.fromkeys(QUEUES, 0)
    while True:
        for name in QUEUES:
            wanted = IN_LINE * (len(KEYS) if name == "keys" else 1)
            waiting = (await insist(partial(engine.queues.stats, QUEUES[name]))).in_line
            for _ in range(wanted - int(waiting)):
                await insist(partial(start, engine, name, following[name]))
                following[name] += 1
        if following["one"] == IN_LINE:
            acks.write("started", 0)
        await asyncio.sleep(LOOK_SECONDS)


async def start(engine: outlive.Engine, queue: str, number: int) -> None:
    """Let a guest get in line."""
    key = KEYS[number % len(KEYS)] if queue == "keys" else None
    id = run_id(queue, number)
    await engine.start(guest, number, id=id, queue=QUEUES[queue], key=key, slots=slots_of(id))


async def drain(engine: outlive.Engine) -> None:
    """Wait until all guests have left."""
    while True:
        if not await insist(partial(engine.count, status=["pending", "running", "waiting"])):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def main(url: str, acks: Path, *, is_draining: bool) -> None:
    """Be a client until asked to stop, killed, or, draining, done."""
    async with entered(url, worker=False) as engine:
        driving = asyncio.create_task(drain(engine) if is_draining else fill(engine, AckLog(acks)))
        asking = asyncio.create_task(until_asked_to_stop())
        await asyncio.wait([driving, asking], return_when=asyncio.FIRST_COMPLETED)
        if driving.done():
            driving.result()
        driving.cancel()
        await asyncio.wait([driving])


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), is_draining="--drain" in sys.argv))
