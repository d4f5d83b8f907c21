"""Starts the next worker process when a file changes, or when the last one has ended.

a file changes ──> the next process imports ──> it fails:    its error is shown, the last process goes on working
                                            └─> it succeeds: the last process stops, the next one works
the process ends by itself ──> the next process starts, which takes its runs over
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from outlive.dev.message import Loaded, Refused
from outlive.dev.process import WorkerProcess
from outlive.dev.watch import LOOK_SECONDS, Watch

SOON_SECONDS = 2.0
"""A process that ends sooner than this after its start would end again and again."""
PAUSE_SECONDS = 2.0
"""How long the next one waits then, unless a file changes."""
WORKFLOWS_MAX = 8
"""How many workflows are named."""
NAMES_MAX = 3
"""How many changed files are named."""


class Supervisor:
    """Keeps one worker process, with the newest code that can be imported."""

    def __init__(
        self,
        arguments: Sequence[str],
        watch: Watch,
        *,
        say: Callable[[str], None],
        on_load: Callable[[Loaded], None],
    ) -> None:
        self._arguments, self._watch, self._say, self._on_load = arguments, watch, say, on_load
        self._current: WorkerProcess | None = None
        self._has_shown_example = False

    async def run(self) -> None:
        """Keep it until cancelled."""
        try:
            await self._replace("")
            while True:
                await self._replace(await self._reason())
        finally:
            if self._current is not None:
                await self._current.stop()

    async def _reason(self) -> str:
        """Wait until there is a reason for another process; which one."""
        began = asyncio.get_running_loop().time()
        while True:
            if (changed := await self._changed()) is not None:
                return changed
            if self._current is not None and self._current.ended.done():
                ended, self._current = self._current, None
                self._say(f"worker process {ended.pid} {ended.how_it_ended()}; its runs go on in the next one")
                if asyncio.get_running_loop().time() - began >= SOON_SECONDS:
                    return ""
                return await self._changed_within(PAUSE_SECONDS)

    async def _changed(self) -> str | None:
        """Look once, after a moment; what has changed, or None."""
        await asyncio.sleep(LOOK_SECONDS)
        changed = set(self._watch.changed())
        if not changed:
            return None
        # An editor may write several files, or one in several parts.
        while more := await self._settling():
            changed |= more
        return _listed(sorted(changed))

    async def _settling(self) -> set[str]:
        await asyncio.sleep(LOOK_SECONDS / 2)
        return set(self._watch.changed())

    async def _changed_within(self, seconds: float) -> str:
        for _ in range(int(seconds / LOOK_SECONDS)):
            if (changed := await self._changed()) is not None:
                return changed
        return ""

    async def _replace(self, changed: str) -> None:
        """Start the next process, and let it work instead of the last one if it can."""
        following = await WorkerProcess.start(self._arguments)
        try:
            found = await following.load()
            self._watch.add(found.files)
            if isinstance(found, Refused):
                self._refuse(found)
                return
            self._on_load(found)
            if self._current is not None:
                await self._current.stop()
            self._current = following
        finally:
            if self._current is not following:
                await following.stop()
        ready = await following.work(self._watch.add)
        if ready is None:
            return  # It has ended; `_reason` says how.
        because = f"{changed} changed; " if changed else ""
        for note in ready.notes:
            self._say(note)
        self._say(f"{because}worker process {following.pid} runs {_workflows(found)}")
        if found.example and not self._has_shown_example:
            self._has_shown_example = True
            self._say(f"start a run from another terminal: {found.example}")

    def _refuse(self, found: Refused) -> None:
        self._say(found.error)
        if self._current is None:
            self._say("no worker runs; save a change to try again")
        else:
            self._say(
                f"worker process {self._current.pid} goes on with the code from before that; save a change to try again"
            )


def _workflows(found: Loaded) -> str:
    names = found.workflows
    more = f" and {len(names) - WORKFLOWS_MAX} more" if len(names) > WORKFLOWS_MAX else ""
    return (", ".join(names[:WORKFLOWS_MAX]) or "no workflow yet") + more


def _listed(files: list[str]) -> str:
    """Some files by name, as a person sees them from here, and how many more."""
    here = f"{Path.cwd().resolve()}{os.sep}"
    names = [file.removeprefix(here) for file in files]
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return ", ".join(names[:NAMES_MAX]) + more
