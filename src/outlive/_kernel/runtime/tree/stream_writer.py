"""Appends what steps emit, for all trees of a worker: one append under way at a time, and between two a short pause in
which items collect. A step that has ended, or whose buffer is full, is not kept waiting for the pause.

A store that is away is not a failure of any step: the append is kept and tried again, with its marks, so that what was
written and never confirmed is not written twice. Meanwhile buffers fill, and steps wait.

What a workflow emits goes with the changes of its tree. Only what it emits when its run is claimed for the first time
comes this way, because there is no change to go with: it is in the next change of the tree too, and the store takes it
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from outlive._kernel.model import child_id
from outlive._kernel.model.payload import Blob
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.tree.emitter import Emitter, ItemSource
from outlive._kernel.runtime.tree.stream_lines import lines_of
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import Store
from outlive._kernel.store.streams import Appended, StreamAppend, StreamLimits, StreamLine, StreamLines, new_marks
from outlive._tasks import own_task
from outlive.errors import OutliveError, StoreUnavailableError
from outlive.errors.store import StreamFullError
from outlive.telemetry import log

FLUSH_SECONDS = 0.02
"""How long items collect after an append."""
BACKOFF_FIRST_SECONDS = 0.05
BACKOFF_MAX_SECONDS = 5.0
REFUSALS_MAX = 5


@dataclass(eq=False)
class _Pending:
    """The lines that are appended to one stream next."""

    source: ItemSource
    name: str
    lines: list[StreamLine] = field(default_factory=list)
    counts: dict[Emitter, int] = field(default_factory=dict)
    """The items of each attempt."""


class StreamWriter:
    """Writes the streams of one worker."""

    def __init__(self, environment: Environment, store: Store, *, ring: Callable[[str], None]) -> None:
        limits = environment.limits
        self._store = store
        self._nonce = environment.clock.nonce
        self._mark = 0
        """The mark of the last append; the upper half identifies the writer."""
        self._packer = environment.packer
        self._limits = StreamLimits(limits.streams_max, limits.stream_items_max, limits.stream_bytes_max)
        self._ring = ring
        """Called with the id of a root run that has more for its readers."""
        self._loop = asyncio.get_running_loop()
        self._wakeup = Wakeup()
        self._emitters: dict[Emitter, None] = {}
        self._said: list[tuple[ItemSource, list[StreamLines], Callable[[], None]]] = []
        self._blobs: list[Blob] = []
        """The blobs that these lines need."""
        self._task: asyncio.Task[None] | None = None
        self._is_appending = False
        self._is_closed = False

    def open(self, source: ItemSource) -> Emitter:
        """Where an attempt puts its items; from any thread."""
        return Emitter(source, loop=self._loop, wake=self._wake)

    def say(self, source: ItemSource, said: list[StreamLines], done: Callable[[], None], *, blobs: list[Blob]) -> None:
        """Append lines of a workflow, which may need `blobs`; `done` is called when they are durable."""
        self._said.append((source, said, done))
        self._blobs += blobs
        self._begin()

    @property
    def is_resting(self) -> bool:
        """Whether there is nothing to write."""
        return not self._is_appending and not self._emitters and not self._said

    def close(self) -> None:
        """Write nothing more, also not what a thread emits that cannot be stopped."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
        for emitter in self._emitters:
            emitter.close()
        self._emitters.clear()
        self._said.clear()

    def _wake(self, emitter: Emitter) -> None:
        if self._is_closed:
            emitter.close()
            return
        self._emitters[emitter] = None
        if emitter.is_full or emitter.is_flushing:
            self._wakeup.ring()
        self._begin()

    def _begin(self) -> None:
        if self._task is None:
            self._task = own_task(self._run(), name="outlive-streams")

    async def _run(self) -> None:
        try:
            while self._emitters or self._said:
                self._is_appending = True
                try:
                    await self._append_all()
                finally:
                    self._is_appending = False
                if not any(emitter.is_full or emitter.is_flushing for emitter in self._emitters):
                    await self._wakeup.sleep(FLUSH_SECONDS)
        finally:
            self._task = None

    # -- One append ------------------------------------------------------------------------------------------

    async def _append_all(self) -> None:
        blobs, self._blobs = self._blobs, []
        pending = self._collect(blobs)
        said, self._said = self._said, []
        for source, each, _ in said:
            for lines in each:
                own = pending.setdefault((source.journal, lines.run, lines.name), _Pending(source, lines.name))
                own.lines += lines.lines
        self._mark = self._mark + 1 if self._mark else new_marks(self._nonce())
        appends = [
            StreamAppend(
                journal=journal,
                epoch=it.source.epoch,
                mark=self._mark,
                said=StreamLines(run=run, name=name, lines=tuple(it.lines)),
            )
            for (journal, run, name), it in pending.items()
        ]
        answers = await self._append(appends, blobs) if appends else []
        full: set[int] = set()
        for (journal, _, _), answer in zip(pending, answers, strict=True):
            if answer is Appended.FULL:
                full.add(journal)
        for it, answer in zip(pending.values(), answers, strict=True):
            self._answer(it, answer)
        for source, _, done in said:
            if source.journal not in full:  # The next change of the tree has it all the same.
                done()

    def _collect(self, blobs: list[Blob]) -> dict[tuple[int, int, str], _Pending]:
        """Take the items that the attempts have emitted, by stream."""
        pending: dict[tuple[int, int, str], _Pending] = {}
        emitters, self._emitters = self._emitters, {}
        for emitter in emitters:
            source, streams = emitter.source, dict[str, list[bytes]]()
            for name, data in emitter.take():
                streams.setdefault(name, []).append(data)
            for name, items in streams.items():
                own = pending.setdefault((source.journal, source.run, name), _Pending(source, name))
                if own.source.epoch > source.epoch:
                    emitter.close()  # This worker has claimed the tree again since.
                    continue
                if own.source.epoch < source.epoch:
                    for other in own.counts:
                        other.close()
                    own.source, own.lines, own.counts = source, [], {}
                try:
                    own.lines += lines_of(items, source, self._packer, blobs)
                    own.counts[emitter] = len(items)
                except OutliveError as error:  # A payload codec of the user's that raises.
                    emitter.fail(error)
        return {key: it for key, it in pending.items() if it.lines}

    async def _append(self, appends: list[StreamAppend], blobs: list[Blob]) -> list[Appended]:
        pause, refusals = BACKOFF_FIRST_SECONDS, 0
        while True:
            try:
                if blobs:
                    await self._store.put_blobs(blobs)
                return await self._store.append_streams(appends, limits=self._limits)
            except StoreUnavailableError as error:
                if pause == BACKOFF_FIRST_SECONDS:
                    log.warning("%s; items of %d streams wait and will be tried again", error, len(appends))
            except Exception as error:
                refusals += 1
                if refusals == REFUSALS_MAX:
                    log.error("items of %d streams are discarded", len(appends), exc_info=error)
                    return [Appended.LOST] * len(appends)
            await Wakeup().sleep(pause)
            pause = min(BACKOFF_MAX_SECONDS, pause * 2)

    def _answer(self, pending: _Pending, answer: Appended) -> None:
        source = pending.source
        for emitter, count in pending.counts.items():
            if answer is Appended.APPENDED:
                emitter.written(count)
            elif answer is Appended.LOST:
                emitter.close()  # The worker is about to notice that the tree is not its own any more.
            else:
                run_id = child_id(source.root_id, source.run)
                emitter.fail(StreamFullError(run_id, pending.name, **self._limits._asdict()))
        if answer is Appended.APPENDED:
            self._ring(source.root_id)
