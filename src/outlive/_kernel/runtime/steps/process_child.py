"""The program of a process of process steps: it runs one job after the other, until the other end of the pipe is
closed.

Jobs come as bytes and go back as bytes: the name of a step and its encoded arguments, then its encoded result or what
it raised, as data. Nothing is ever unpickled but what `multiprocessing` itself needs to begin.

The process must not outlive its parent, not even one that was killed. A thread reads the pipe and ends the process when
the pipe ends; and where the kernel offers it, the kernel kills the process, because that thread cannot run while the
step is busy in C code. The process leads a session of its own: the parent handles Ctrl-C, and what the step has started
ends with the process.
"""

from __future__ import annotations

import contextvars
import importlib
import sys
import threading
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec

from outlive._kernel.define.in_step import CURRENT_STEP, StepContext
from outlive._kernel.define.registry import REGISTRY
from outlive._kernel.define.step import UnstorableResultError
from outlive._kernel.journal.failure import class_name
from outlive._kernel.journal.readable import READABLE
from outlive._kernel.journal.value import TAGGED
from outlive._kernel.model import Failure
from outlive._kernel.model.published import REMOVED
from outlive._kernel.replay.command import StepSpec
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.runtime.failures import describe, is_final
from outlive._platform import end_with_group, stand_alone
from outlive.errors import DefinitionError, OutliveError, PayloadTooLargeError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

ARE_YOU_THERE = b""
"""In place of a job: the answer is `Ready`."""


class ChildJob(msgspec.Struct, frozen=True):
    """One attempt of a step, and what it may know of itself."""

    step: str
    module: str
    call: str
    arguments: bytes
    run_id: str
    workflow: str
    attempt: int
    epoch: int
    idempotency_key: str
    progress: bytes | None
    progress_bytes_max: int
    must_beat: bool = False
    """Whether heartbeats without progress are sent too."""
    headers: dict[str, str] = {}
    known_as: str = ""
    """The name under which the module has registered it, if that is another one."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The process has begun and takes jobs."""


class Progressed(msgspec.Struct, frozen=True, tag=True):
    """The step gave this to `heartbeat`."""

    progress: bytes


class ChildBeat(msgspec.Struct, frozen=True, tag=True):
    """The step called `heartbeat` without progress."""


class Published(msgspec.Struct, frozen=True, tag=True):
    """The step gave this to `outlive.publish`."""

    fields: bytes
    removed: tuple[str, ...] = ()


class Emitted(msgspec.Struct, frozen=True, tag=True):
    """The step gave this to `outlive.emit`."""

    stream: str
    data: bytes


class Returned(msgspec.Struct, frozen=True, tag=True):
    """The step returned."""

    result: bytes


class Raised(msgspec.Struct, frozen=True, tag=True):
    """The step raised."""

    failure: Failure
    classes: list[str]
    is_final: bool
    is_unstorable: bool = False
    """It returned, and what it returned cannot be stored."""


ChildReport = Progressed | ChildBeat | Published
"""Any message that a step sends before it ends."""
ChildMessage = Ready | ChildReport | Emitted | Returned | Raised

encode = msgspec.msgpack.Encoder().encode
decode_message = msgspec.msgpack.Decoder(ChildMessage).decode
_decode_job = msgspec.msgpack.Decoder(ChildJob).decode


def serve(connection: Connection, parent_id: int) -> None:
    """Do jobs until the pipe ends; called in the new process."""
    stand_alone(parent_id)
    jobs: SimpleQueue[bytes] = SimpleQueue()
    wire = Wire(connection)
    SystemClock().spawn(partial(_listen, connection, jobs, wire), name="outlive-jobs")
    wire.send(Ready())
    while True:
        job = _decode_job(jobs.get())
        outcome = _work(job, wire)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # Closed, or replaced by something of the user's.
                stream.flush()
        wire.send(outcome)
        del job, outcome


class Wire:
    """Sends to the parent, from any thread of a step."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: ChildMessage) -> None:
        """Send a message to the parent."""
        data = encode(message)
        with self._lock, suppress(OSError):  # The parent is gone, and this process is about to be.
            self._connection.send_bytes(data)


class JobStep:
    """The step behind `outlive.current_step()` in a process of its own."""

    def __init__(self, job: ChildJob, wire: Wire) -> None:
        self._job, self._wire = job, wire
        self.is_over = False
        self.engine = None
        """No engine runs in this process."""
        self.is_cancelled = False
        """Always false: the process of a cancelled step is killed."""

    def context(self) -> StepContext:
        """See `StepSource`."""
        job = self._job
        return StepContext(
            run_id=job.run_id,
            workflow=job.workflow,
            name=job.step,
            attempt=job.attempt,
            epoch=job.epoch,
            idempotency_key=job.idempotency_key,
            last_progress=None if job.progress is None else TAGGED.decode(job.progress, "saved progress"),
            headers=dict(job.headers),
            _source=self,
        )

    def now_at(self) -> int:
        """See `StepSource`; in a process of its own that is the machine's time."""
        return SystemClock().now()

    def heartbeat(self, progress: Any) -> None:
        """See `StepContext`."""
        if self.is_over:
            return
        if progress is None:
            if self._job.must_beat:
                self._wire.send(ChildBeat())
        else:
            self._wire.send(Progressed(self._encode(progress, f"the progress of step {self._job.call}")))

    def publish(self, fields: dict[str, Any]) -> None:
        """See `outlive.publish`."""
        if fields and not self.is_over:
            kept = {name: value for name, value in fields.items() if value is not REMOVED}
            removed = tuple(name for name, value in fields.items() if value is REMOVED)
            what = f"what step {self._job.call} publishes"
            self._wire.send(Published(self._check_size(READABLE.encode(kept, what), what), removed))

    def emit(self, stream: str, value: Any) -> None:
        """See `StepSource`. The pipe is full when the parent's buffer is, and then sending waits."""
        if not self.is_over:
            what = f"an item of stream {stream!r}"
            self._wire.send(Emitted(stream, self._check_size(READABLE.encode(value, what), what)))

    def _encode(self, value: Any, what: str) -> bytes:
        return self._check_size(TAGGED.encode(value, what), what)

    def _check_size(self, data: bytes, what: str) -> bytes:
        if len(data) > self._job.progress_bytes_max:
            raise PayloadTooLargeError(what, len(data), self._job.progress_bytes_max)
        return data


def _work(job: ChildJob, wire: Wire) -> Returned | Raised:
    source = JobStep(job, wire)
    try:
        step = _find(job)
        args, kwargs = step.signature.decode(job.arguments)
        context = contextvars.Context()
        context.run(CURRENT_STEP.set, source)
        value = context.run(partial(step.fn, *args, **kwargs))
        try:
            return Returned(step.signature.result.encode(value, f"result of step {job.call}"))
        except OutliveError as error:
            return _raised(error, is_unstorable=True)
    except UnstorableResultError as error:
        return _raised(error.cause, is_unstorable=True)
    except BaseException as error:  # Whatever a step raises is its outcome; the process lives on.
        return _raised(error)
    finally:
        source.is_over = True


def _raised(error: BaseException, *, is_unstorable: bool = False) -> Raised:
    classes = [_as_parent_says(class_name(cls)) for cls in type(error).__mro__]
    return Raised(_renamed(describe(error)), classes, is_final(error), is_unstorable)


def _find(job: ChildJob) -> StepSpec:
    name = job.known_as or job.step
    step = REGISTRY.find_step(name)
    if step is None and job.module != "__main__":
        importlib.import_module(job.module)
        step = REGISTRY.find_step(name)
    if step is None:
        raise DefinitionError(
            f"step {name} of module {job.module} is not there in a process of its own; process=True needs a step "
            f"that is defined when its module is imported, and a module that is a file (not a notebook)"
        )
    return step


def _renamed(failure: Failure) -> Failure:
    cause = None if failure.cause is None else _renamed(failure.cause)
    return msgspec.structs.replace(failure, type=_as_parent_says(failure.type), cause=cause)


def _as_parent_says(name: str) -> str:
    """The script that the parent runs has another name here."""
    return name.replace("__mp_main__.", "__main__.", 1) if name.startswith("__mp_main__.") else name


# -- The pipe ----------------------------------------------------------------------------------------------------------


def _listen(connection: Connection, jobs: SimpleQueue[bytes], wire: Wire) -> None:
    try:
        while True:
            job = connection.recv_bytes()
            if job == ARE_YOU_THERE:
                wire.send(Ready())
            else:
                jobs.put(job)
    except (EOFError, OSError):
        end_with_group()  # At once: the parent has gone, and its jobs with it.
