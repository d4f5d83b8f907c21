"""Replays runs in processes of their own, side by side.

A run whose code ends its process, or never comes to rest, costs that run only: its chunk is replayed again one by one,
and the run that does it once more is reported.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Self

import msgspec

from outlive.errors import ConfigurationError
from outlive.testing.deploy.verdict import Answer, Finding, Kind, Task, Tree

RUN_SECONDS_MAX = 60.0
"""How long a chunk, and after that one run, may take."""
PROGRAM = "outlive.testing.deploy.child"
CHUNK = 50
"""Trees that are read and replayed together."""

Take = Callable[[list[Tree], list[Finding]], None]
"""Given trees that were replayed, and what was found."""


async def replay_in_processes(
    app: str,
    url: str,
    trees: list[Tree],
    take: Take,
    *,
    processes: int | None = None,
    seconds_max: float = RUN_SECONDS_MAX,
) -> None:
    """Replay all of them with the code of `app`.

    Raises:
        ConfigurationError: a process cannot import the code, or read the runs.
    """
    todo = deque(trees[at : at + CHUNK] for at in range(0, len(trees), CHUNK))
    count = min(len(todo), processes or os.cpu_count() or 1)

    async def work() -> None:
        child: _Child | None = None
        try:
            while todo:
                chunk = todo.popleft()
                child = child or await _Child.start(Task(app, url))
                try:
                    take(chunk, await child.replay(chunk, seconds_max))
                except _LostError as lost:
                    await child.close()
                    child = None
                    if len(chunk) > 1:
                        todo.extend([tree] for tree in chunk)
                    else:
                        take(chunk, [_undecided(chunk[0], str(lost))])
        finally:
            if child is not None:
                await child.close()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


class _LostError(Exception):
    """A process gave no answer."""


class _Child:
    """One process. A thread waits for each of its answers: any event loop will do, and any platform."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, "-m", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @classmethod
    async def start(cls, task: Task) -> Self:
        """A process that has imported the code."""
        child = await asyncio.to_thread(cls)
        try:
            answer = await asyncio.to_thread(child._ask, task)
            if answer.error:
                raise ConfigurationError(answer.error)
        except _LostError as error:
            await child.close()
            raise ConfigurationError(f"a process that imports {task.app} {error} at once") from error
        except BaseException:
            await child.close()
            raise
        return child

    async def replay(self, trees: list[Tree], seconds_max: float) -> list[Finding]:
        """The findings about these trees."""
        try:
            answer = await asyncio.wait_for(asyncio.to_thread(self._ask, trees), seconds_max)
        except TimeoutError:
            raise _LostError(f"did not come to rest in {seconds_max:g} s") from None
        if answer.error:
            raise ConfigurationError(answer.error)
        return answer.findings

    def _ask(self, question: Task | list[Tree]) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(question) + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise _LostError(f"ended with code {self._process.wait()}")
        return msgspec.json.decode(line, type=Answer)

    async def close(self) -> None:
        """End it, at once: it only reads."""
        self._process.kill()
        await asyncio.to_thread(self._process.wait)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # Unread data goes with the process.
                    pipe.close()


def _undecided(tree: Tree, why: str) -> Finding:
    return Finding(run_id=tree.id, kind=Kind.UNDECIDED, definition=tree.definition, what=f"its process {why}")
