"""`outlive.remote_step`: a step whose code is in another program, in any language.

A call of it in a workflow starts a run of its own in the queue of the step, the task, and waits for its end. Programs
outside claim tasks over HTTP, with a lease (`_features/tasks/verbs.py`). So a workflow that waits for a task is
suspended like
any other, and everything that is said of queues and of runs is true for tasks. Attempts, delays and timeouts are what
the workflow itself does, durably: a failed attempt is a task that has failed, and the next one is another task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, TypeVar, overload

import msgspec
from msgspec.structs import replace

from outlive._kernel.define.in_run import random, uuid4
from outlive._kernel.define.registry import REGISTRY
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.event import DetachedEnded
from outlive._kernel.journal.failure import OWN_ERRORS, class_name, exception_of
from outlive._kernel.journal.form import FormType, form_type
from outlive._kernel.journal.value import TAGGED, type_name
from outlive._kernel.model import Failure, Payload, Retry, RunStatus, given
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.policy import NO_RETRY, check_retry, delay_seconds, is_last, named_seconds
from outlive._kernel.model.queue import DEFAULT, queue_name
from outlive._kernel.model.remote import OF_REMOTE, VERSION, RemoteTerms, queue_and_step, use_of
from outlive._kernel.replay.ask import cancel_detached, current_execution, end_of, read_or_park, start_detached
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.replay.ending import result_of
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE, Scope
from outlive.errors import ConfigurationError, StepFailedError, StepTimeoutError
from outlive.errors.program import NotInRunError

I = TypeVar("I")  # noqa: E741 (what a step is given)
T = TypeVar("T")

WHERE = "outlive.remote_step"


class RemoteOptions(msgspec.Struct, frozen=True):
    """How a call is made."""

    retry: Retry | None = None
    timeout_seconds: float | None = None
    raises: tuple[type[BaseException], ...] = ()
    call: str = ""
    """The name of the call in the journal, if it is not that of the step: the delays between its attempts then stand
    in a scope of their own, beside calls of others."""


class RemoteStep(Generic[I, T]):
    """A step that programs outside take; call it in a workflow with `await`."""

    def __init__(self, spec: WorkflowSpec, output: FormType | None, terms: RemoteTerms, options: RemoteOptions) -> None:
        self._spec, self._output, self._terms, self._options = spec, output, terms, options

    @property
    def name(self) -> str:
        """The name by which workers ask for it."""
        return self._spec.name.removeprefix(OF_REMOTE)

    @property
    def queue(self) -> str:
        """The name of the queue that its tasks wait in."""
        return str(self._spec.queue or DEFAULT)

    def options(self, *, retry: Retry | None = None, timeout: given.Span | None = None) -> RemoteStep[I, T]:
        """A copy of the step with another `retry` or `timeout`, for one call."""
        where, changed = f"remote step {self.name}", self._options
        if retry is not None:
            changed = replace(changed, retry=check_retry(where, retry))
        if timeout is not None:
            changed = replace(changed, timeout_seconds=given.seconds(where, "timeout", timeout))
        return RemoteStep(self._spec, self._output, self._terms, changed)

    def __call__(self, value: I) -> Coroutine[Any, Any, T]:
        """Put a task into the queue and wait, durably, for its output."""
        execution = current_execution()
        if execution is None:
            raise NotInRunError(f"remote step {self.name}", "a workflow: its code is in another program")
        return self._call(execution, value)

    async def _call(self, execution: Execution, value: I) -> T:
        place, call = SCOPE.get(), self._options.call
        retry = self._options.retry or place.frame.spec.retry or execution.retry or NO_RETRY
        first_at, attempt = execution.loop.now_at, 1
        while True:
            apart = place.named(f"{call}.{attempt}") if call else place
            with _standing_in(apart):
                ended = await self._attempt(execution, value, place)
                if ended is not None and ended.status is not RunStatus.FAILED:
                    return await self._read(execution, result_of(ended))
                failure = None if ended is None else ended.failure
                error = self._error(failure, attempt)
                seconds = _delay(retry, attempt, error, failure)
                elapsed = (execution.loop.now_at - first_at) / MICROSECONDS
                if seconds is None or (retry.elapsed_max is not None and elapsed + seconds > retry.elapsed_max):
                    raise error
                await asyncio.sleep(seconds)
            attempt += 1

    async def _read(self, execution: Execution, stored: Payload) -> T:
        codec, what = self._output or TAGGED, f"output of remote step {self.name}"
        output: T = await read_or_park(execution, lambda: codec.decode(execution.unpack_foreign(stored), what))
        return output

    async def _attempt(self, execution: Execution, value: I, place: Scope) -> DetachedEnded | None:
        """How one task ended; None if its time was up. The call itself stands in `place`."""
        seconds, call = self._options.timeout_seconds, self._options.call or self.name
        run_id = f"{self._spec.name}-{uuid4().hex}"
        try:
            async with asyncio.timeout(seconds) if seconds is not None else nullcontext():
                with _standing_in(place):
                    # A fork has the id that its origin gave.
                    run_id = await start_detached(
                        execution, self._spec, (value, self._terms), {}, run_id=run_id, name=call
                    )
                return await end_of(execution, run_id, started=self._spec.name)
        except TimeoutError:
            cancel_detached(execution, run_id)
            return None
        except asyncio.CancelledError:
            cancel_detached(execution, run_id)
            raise

    def _error(self, failure: Failure | None, attempt: int) -> BaseException:
        if failure is None:
            assert self._options.timeout_seconds is not None
            return StepTimeoutError(self.name, self._options.timeout_seconds)
        registered = (*self._options.raises, *OWN_ERRORS)
        if failure.class_name not in map(class_name, registered):
            # A TypeError, or an exit, of another program is not one of this program.
            return StepFailedError(
                failure.message,
                step=self.name,
                type_name=failure.type,
                attributes=dict(failure.attributes),
                traceback_text=failure.traceback,
                attempts=attempt,
            )
        return exception_of(failure, registered=registered, step=self.name, attempts=attempt)

    def __repr__(self) -> str:
        return f"<remote step {self.name} of queue {self.queue}>"


@contextmanager
def _standing_in(place: Scope) -> Iterator[None]:
    """Calls inside stand in this scope."""
    before = SCOPE.set(place)
    try:
        yield
    finally:
        SCOPE.reset(before)


def tasks_of(step: RemoteStep[Any, Any]) -> WorkflowSpec:
    """The workflow of the tasks of a remote step."""
    return step._spec


def _delay(retry: Retry, attempt: int, error: BaseException, failure: Failure | None) -> float | None:
    """After how many seconds the next attempt is made; None if there is none."""
    said = {} if failure is None else failure.attributes
    if is_last(retry, attempt) or said.get("retryable") is False:
        return None
    if not isinstance(error, retry.on) or isinstance(error, retry.not_on):
        return None
    if retry.when is not None and not retry.when(error):
        return None
    spread = 2 * random() - 1
    named = retry.delay(error, attempt) if callable(retry.delay) else said.get("retry_after")
    return delay_seconds(retry, attempt, spread) if named is None else named_seconds(retry, named, spread)


@overload
def remote_step(
    name: str,
    *,
    input: type[I],
    output: type[T],
    queue: str,
    retry: Retry | None = None,
    timeout: given.Span | None = None,
    raises: tuple[type[BaseException], ...] = (),
) -> RemoteStep[I, T]: ...
@overload
def remote_step(
    name: str,
    *,
    input: Any = Any,
    output: Any = Any,
    queue: str,
    retry: Retry | None = None,
    timeout: given.Span | None = None,
    raises: tuple[type[BaseException], ...] = (),
) -> RemoteStep[Any, Any]: ...
def remote_step(
    name: str,
    *,
    input: Any = Any,
    output: Any = Any,
    queue: str,
    retry: Retry | None = None,
    timeout: given.Span | None = None,
    raises: tuple[type[BaseException], ...] = (),
) -> RemoteStep[Any, Any]:
    """A step whose code is in another program: a worker in any language takes it over HTTP.

    Args:
        name: what workers ask for.
        input: the type of its one argument; workers get it as JSON.
        output: the type of what it gives; what a worker sends is checked against its JSON Schema when it is sent.
        queue: the name of the queue where its tasks wait for a worker; `engine.queues.set` gives it limits.
        retry: as that of a step; without one that of the workflow counts, then that of the engine.
        timeout: seconds from when the task is put into the queue until it has ended, for each attempt.
        raises: exception classes that reach the workflow as themselves when a worker names them as `module.Class`.

    Raises:
        ConfigurationError: nothing describes the output as JSON.
        InvalidArgumentError: an option cannot work.
    """
    step = given.label(WHERE, name, like="resize")
    where = f"remote step {step}"
    form = None if output is Any else _form_of(where, given.kind(where, "output", output))
    terms = RemoteTerms() if form is None else RemoteTerms(type_name(output), msgspec.Raw(form.schema_json))
    named = "" if queue == DEFAULT else queue_name(where, "queue", queue)
    options = RemoteOptions(
        retry=check_retry(where, retry),
        timeout_seconds=given.some_seconds(where, "timeout", timeout),
        raises=given.exceptions(where, "raises", raises),
    )
    fn = _function_of(given.kind(where, "input", input))
    spec = WorkflowSpec(name=OF_REMOTE + step, version=VERSION, fn=fn, signature=Signature(fn, where), queue=named)
    REGISTRY.add_remote(use_of(named, step), spec, terms)
    return RemoteStep(spec, form, terms, options)


def remote_step_in(use: str, *, call: str, retry: Retry | None, timeout_seconds: float | None) -> RemoteStep[Any, Any]:
    """The remote step that a document calls by its queue and name, `gpu/resize`; it takes and gives plain data.

    Attempts and timeouts are those of the document, whatever code says: workers with and without that code have to go
    on in the same way. If this process declares the step, outputs are checked against its schema.
    """
    queue, step = queue_and_step(use)
    where = f"remote step {step}"
    named = "" if queue == DEFAULT else queue_name(where, "queue", queue)
    signature = Signature(_task, where)
    spec = WorkflowSpec(name=OF_REMOTE + step, version=VERSION, fn=_task, signature=signature, queue=named)
    declared = REGISTRY.find_remote(use)
    terms = RemoteTerms() if declared is None else RemoteTerms(schema=declared.terms.schema)
    return RemoteStep(spec, None, terms, RemoteOptions(retry=retry, timeout_seconds=timeout_seconds, call=call))


def _function_of(kind: Any) -> Callable[..., Any]:
    """The signature of a task, as a function; it is never called."""

    async def task(value: Any, terms: RemoteTerms) -> Any:
        raise AssertionError("the code of a remote step is in another program")

    task.__annotations__ = {"value": kind, "terms": RemoteTerms, "return": Any}
    return task


_task = _function_of(Any)


def _form_of(where: str, kind: Any) -> FormType:
    try:
        return form_type(kind)
    except ConfigurationError as error:
        reason = error.__cause__ or error
        raise ConfigurationError(
            f"{where}: output={type_name(kind)} cannot be described as JSON: {reason}; use a dataclass, a msgspec "
            f"struct, a pydantic model or plain types, or leave it out"
        ) from error
