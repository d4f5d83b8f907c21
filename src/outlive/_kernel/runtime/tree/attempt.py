"""One attempt of a step while it runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from msgspec import structs

from outlive._kernel.define.in_step import StepContext, Verbs
from outlive._kernel.journal.readable import READABLE
from outlive._kernel.journal.value import TAGGED
from outlive._kernel.model import Run
from outlive._kernel.model.published import REMOVED
from outlive._kernel.replay.command import RunStep, StepSpec
from outlive._kernel.runtime.gate.ticket import Ticket
from outlive._kernel.runtime.tree.emitter import Emitter
from outlive._kernel.store.contract import Transaction
from outlive.errors import PayloadTooLargeError

Save = Callable[["Attempt", bytes], None]
Publish = Callable[["Attempt", dict[str, Any]], None]
OpenEmitter = Callable[["Attempt"], Emitter]

_OPENING = threading.Lock()
"""Held while an emitter is opened: two threads of a step may emit their first items at once."""


def idempotency_key(run: Run, call: str) -> str:
    """See `StepContext`. The nonce keeps a run apart from the one it replaced under the same id."""
    return f"{run.id}:{call}:{run.nonce:016x}"


class Attempt:
    """A running step: its command, the task that runs it, and what the step may know of itself."""

    __slots__ = (
        "_loop",
        "_now",
        "_open_emitter",
        "_progress_bytes_max",
        "_publish",
        "_run",
        "_save",
        "beat_at",
        "began_at",
        "command",
        "emitter",
        "engine",
        "epoch",
        "given",
        "has_begun",
        "has_left_effect",
        "headers",
        "heartbeat_at",
        "is_publishing",
        "is_saving",
        "is_timed_out",
        "is_wanted",
        "late",
        "on_late",
        "progress",
        "reported",
        "task",
        "ticket",
        "transaction",
        "unpublished",
    )

    def __init__(
        self,
        command: RunStep,
        *,
        run: Run,
        epoch: int,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], int],
        save: Save,
        publish: Publish,
        progress_bytes_max: int,
        headers: dict[str, str],
        open_emitter: OpenEmitter | None = None,
        engine: Verbs | None = None,
    ) -> None:
        self.command = command
        self.task: asyncio.Task[None] | None = None
        self.ticket: Ticket | None = None
        """From the gate, if there is one before the step."""
        self.transaction: Transaction | None = None
        """The transaction in the store's database, until it is committed with the outcome of the attempt."""
        self.given: dict[str, Any] = {}
        """Resources that its function gets by keyword."""
        self.began_at = 0
        """When it began; 0 before."""
        self.beat_at = 0
        """When its function was called, gave a heartbeat or emitted something, whatever was last, if it must give signs
        of life; 0 before it is called."""
        self.heartbeat_at = 0
        """When its function last called `heartbeat`; 0 if it never did."""
        self.reported: bytes | None = None
        """The progress that it reported last."""
        self.has_begun = False
        """Whether its function was called, or may have been; false while it waits for room or a thread."""
        self.is_wanted = True
        """Whether the run waits for its outcome."""
        self.has_left_effect = False
        """Whether it has left an effect that could be neither stored nor undone."""
        self.is_timed_out = False
        """Whether its time is over; a thread cannot be stopped, but its function can ask."""
        self.late: tuple[Any, BaseException | None] | None = None
        """The result or the exception of its function, if that came after its time was over."""
        self.on_late: Callable[[Any, BaseException | None], None] | None = None
        """Called with what its function returns or raises on a thread after it was given up."""
        self.progress: bytes | None = None
        """Progress that is not in the journal yet; the latest wins."""
        self.is_saving = False
        """Whether an earlier progress is being written to the journal."""
        self.unpublished: dict[str, Any] = {}
        """Fields that it published and that are not in the journal yet."""
        self.is_publishing = False
        """Whether earlier fields are being written to the journal."""
        self.headers = headers
        """The headers of its run."""
        self.emitter: Emitter | None = None
        """The emitter with the items of this attempt; None until it emits one."""
        self._open_emitter = open_emitter
        self._run = run
        self.epoch = epoch
        self.engine = engine
        """See `StepSource`."""
        self._loop = loop
        self._now = now
        self._save = save
        self._publish = publish
        self._progress_bytes_max = progress_bytes_max

    def cancel(self) -> None:
        """The run does not wait for it any more. Cooperative: it may run on, and its outcome is ignored."""
        self.is_wanted = False
        if self.emitter is not None:
            self.emitter.close()
        if self.task is not None:
            self.task.cancel()

    def of_undo(self, undo: StepSpec) -> Attempt:
        """The attempt of an undo that is called inside this one. It has a key of its own, and its progress is not
        recorded."""
        return Attempt(
            structs.replace(
                self.command, call=f"{self.command.call}.undo", step=undo, options=undo.options, progress=None
            ),
            run=self._run,
            epoch=self.epoch,
            loop=self._loop,
            now=self._now,
            save=_ignore,
            publish=_ignore,
            progress_bytes_max=self._progress_bytes_max,
            headers=self.headers,
            engine=self.engine,
        )

    @property
    def has_progressed(self) -> bool:
        """Whether its function has reported progress that it did not begin with."""
        return self.reported is not None and self.reported != self.command.progress

    @property
    def nonce(self) -> int:
        """The nonce of its tree."""
        return self._run.nonce

    @property
    def idempotency_key(self) -> str:
        """See `StepContext`."""
        return idempotency_key(self._run, self.command.call)

    # -- What the step may know of itself (`outlive.current_step()`) -----------------------------------------

    def context(self) -> StepContext:
        """See `StepSource`."""
        saved = self.command.progress
        return StepContext(
            run_id=self._run.id,
            workflow=self._run.workflow,
            name=self.command.step.name,
            attempt=self.command.attempt,
            epoch=self.epoch,
            idempotency_key=self.idempotency_key,
            last_progress=None if saved is None else TAGGED.decode(saved, "saved progress"),
            headers=dict(self.headers),
            _source=self,
        )

    @property
    def is_cancelled(self) -> bool:
        """See `StepContext`."""
        return not self.is_wanted or self.is_timed_out

    def now_at(self) -> int:
        """See `StepSource`."""
        return self._now()

    def beat(self) -> None:
        """The step gives a sign of life; from any thread."""
        if self.command.options.heartbeat_seconds is not None:
            self.beat_at = self._now()

    def heartbeat(self, progress: Any) -> None:
        """See `StepContext`."""
        self.beat()
        self.heartbeat_at = self._now()
        if progress is not None and self.is_wanted:
            what = f"the progress of step {self.command.call}"
            data = TAGGED.encode(progress, what)
            if len(data) > self._progress_bytes_max:
                raise PayloadTooLargeError(what, len(data), self._progress_bytes_max)
            self.reported = data
            self._loop.call_soon_threadsafe(self._save, self, data)

    def publish(self, fields: dict[str, Any]) -> None:
        """See `outlive.publish`."""
        if fields and self.is_wanted:
            what = f"what step {self.command.call} publishes"
            data = READABLE.encode({name: value for name, value in fields.items() if value is not REMOVED}, what)
            if len(data) > self._progress_bytes_max:
                raise PayloadTooLargeError(what, len(data), self._progress_bytes_max)
            removed = [name for name, value in fields.items() if value is REMOVED]
            # A copy, as a reader will see it: the step may change its values later.
            copy = {**READABLE.decode(data, what), **dict.fromkeys(removed, REMOVED)}
            self._loop.call_soon_threadsafe(self._publish, self, copy)

    def emit(self, stream: str, value: Any) -> Future[None] | None:
        """See `StepSource`."""
        what = f"an item of stream {stream!r}"
        data = READABLE.encode(value, what)
        if len(data) >= self._progress_bytes_max:
            raise PayloadTooLargeError(what, len(data), self._progress_bytes_max)
        return self.emit_encoded(stream, data)

    def emit_encoded(self, stream: str, data: bytes) -> Future[None] | None:
        """Emit an item that is JSON already; see `emit`."""
        self.beat()
        if self.is_cancelled or self._open_emitter is None:
            return None
        emitter = self.emitter
        if emitter is None:
            with _OPENING:
                emitter = self.emitter = self.emitter or self._open_emitter(self)
        return emitter.add(stream, data)


def _ignore(attempt: Attempt, report: Any) -> None:
    """Nothing of an undo is recorded before it ends."""
