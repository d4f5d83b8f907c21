"""The steps of `test_process_steps`, and the workflows that call them.

In a file of their own: every process of a step imports it, and that of the tests takes three times as long.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import outlive
from outlive import Retry
from outlive.errors.step import ProcessDiedError


@dataclass
class Picture:
    pixels: bytes
    width: int


class Unsharp(Exception):
    def __init__(self, where: str) -> None:
        super().__init__(f"unsharp at {where}")
        self.where = where


@outlive.step(process=True)
def double_picture(picture: Picture) -> Picture:
    return Picture(picture.pixels * 2, picture.width * 2)


@outlive.step(process=True)
def tell_process() -> dict[str, object]:
    me = outlive.current_step()
    return {
        "pid": os.getpid(),
        "run": me.run_id,
        "name": me.name,
        "attempt": me.attempt,
        "epoch": me.epoch,
        "key": me.idempotency_key,
        "progress": me.last_progress,
        "cancelled": me.is_cancelled,
        "headers": me.headers,
    }


@outlive.step(process=True, raises=(Unsharp,))
def look_sharply(where: str) -> None:
    raise Unsharp(where) from ValueError("blurred")


@outlive.step(process=True, retry=Retry(attempts=3, first=0, jitter=0, on=(Unsharp,)))
def look_sharply_again() -> str:
    attempt = outlive.current_step().attempt
    if attempt == 1:
        raise Unsharp("first")
    if attempt == 2:
        raise KeyError("not worth it")
    return "sharp"


@outlive.step(process=True, retry=Retry(attempts=2, first=0, jitter=0))
def dies_in_process_at_first(file: str, how: int) -> str:
    if outlive.current_step().attempt == 1:
        Path(file).write_text("began")
        os.kill(os.getpid(), how)
    return "second"


@outlive.step(process=True)
def dies_in_process(how: int) -> None:
    os.kill(os.getpid(), how)


@outlive.step(process=True)
def dies_with_a_fork_in_process(file: str) -> None:
    """Killed by the system; what it has forked has its end of every pipe, and lives on."""
    if (fork := os.fork()) == 0:
        while True:
            signal.pause()
    Path(f"{file}.new").write_text(str(fork))
    Path(f"{file}.new").rename(file)
    os.kill(os.getpid(), signal.SIGKILL)


@outlive.step(process=True)
def talks_nonsense_in_process() -> None:
    """Writes into the sockets that it finds open."""
    for number in range(3, 64):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, b"\0\0\0\5hello")
    while True:
        signal.pause()


@outlive.step(process=True)
def run_on_in_process(file: str) -> None:
    """Run, and start a process, until both are ended."""
    other = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    Path(f"{file}.new").write_text(f"{os.getpid()} {other.pid}")
    Path(f"{file}.new").rename(file)
    other.wait()


@outlive.step(process=True, retry=Retry(attempts=2, first=0, jitter=0))
def count_on_in_process(file: str) -> object:
    me = outlive.current_step()
    if me.attempt == 2:
        return me.last_progress
    me.heartbeat({"rows": 7})
    while not Path(file).exists():
        pass
    raise ConnectionError


@outlive.step(process=True)
def publish_in_process() -> bool:
    outlive.publish(stage="packing", rows=7, gone=1)
    outlive.publish(gone=outlive.types.REMOVED)
    for number in range(200):
        outlive.emit("numbers", {"number": number})
    return abs((outlive.now() - datetime.now(UTC)).total_seconds()) < 60


@outlive.workflow
async def publishing_process() -> bool:
    return await publish_in_process()


@outlive.step(process=True)
def give_from_process(what: str) -> object:
    return object() if what == "an object" else what


@outlive.workflow
async def doubling_picture(picture: Picture) -> Picture:
    return await double_picture(picture)


@outlive.step(process=True)
def interrupts_itself_in_process() -> str:
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        return "interrupted"
    return "not interrupted"


@outlive.workflow
async def interrupting_process() -> str:
    return await interrupts_itself_in_process()


@outlive.workflow
async def asking_process() -> list[dict[str, object]]:
    return [await tell_process(), await tell_process()]


@outlive.workflow
async def looking_sharply() -> list[str]:
    seen = []
    try:
        await look_sharply("left")
    except Unsharp as error:
        seen.append(f"{error} {error.where} {error.__cause__!r}")
    try:
        await look_sharply_again()
    except KeyError as error:
        seen.append(repr(error))
    return seen


@outlive.workflow
async def dying_in_process_once(file: str, how: int) -> str:
    return await dies_in_process_at_first(file, how)


async def how_it_died(step: Awaitable[None]) -> str:
    """The error that the workflow gets about the process of a step."""
    try:
        await step
    except ProcessDiedError as error:
        return f"{error.step} {error.reason}"
    return "it went on"


@outlive.workflow
async def dying_with_a_fork(file: str) -> str:
    return await how_it_died(dies_with_a_fork_in_process(file))


@outlive.workflow
async def talking_nonsense() -> str:
    return await how_it_died(talks_nonsense_in_process())


@outlive.workflow
async def dying_in_process(how: int) -> str:
    return await how_it_died(dies_in_process(how))


@outlive.workflow
async def running_on_in_process(file: str, seconds: float) -> str:
    try:
        await run_on_in_process.options(timeout=seconds)(file)
    except TimeoutError as error:
        return type(error).__name__
    return "went on"


@outlive.workflow
async def counting_on_in_process(file: str) -> object:
    return await count_on_in_process(file)


@outlive.workflow
async def giving_from_process(what: str) -> object:
    try:
        return await give_from_process(what)
    except TypeError as error:
        return type(error).__name__


@outlive.workflow
async def many_processes(count: int) -> int:
    return len({answer["pid"] for answer in await asyncio.gather(*(tell_process() for _ in range(count)))})
