"""Every error that Outlive raises, in one place.

One root, `OutliveError`, and three endings that never stand in for one another (style rule 11):

* our bug: an `assert`, or `InternalError`; please report it;
* the world refused: an `OutliveError` with the facts as attributes and a message that says what to do next;
* the workflow or a step failed: a value in the journal. It reaches Python code again as the step's own
  exception or as `StepFailed`, and reaches the waiting client as `RunFailed`.

Control signals (`RunDropped`) derive from `BaseException`, so that `except Exception` in user code cannot
swallow them, and do not end in `Error`.
"""

from __future__ import annotations

from typing import Any


class OutliveError(Exception):
    """Root of everything that Outlive raises on purpose."""


class InternalError(OutliveError):
    """A bug in Outlive itself; please report it with the traceback."""


# -- Definitions ---------------------------------------------------------------------------------------------


class DefinitionError(OutliveError):
    """A workflow or step cannot be defined like this."""


class DuplicateDefinitionError(DefinitionError):
    """Two functions claim one name."""

    def __init__(self, kind: str, name: str, first: str, second: str) -> None:
        self.kind, self.name, self.first, self.second = kind, name, first, second
        super().__init__(
            f"{kind} {name!r} is defined twice: at {first} and at {second}; give one of them another name: "
            f'@outlive.{kind}(name="...")'
        )


class LocalDefinitionError(DefinitionError):
    """A lambda or a nested function cannot be found again after a restart."""

    def __init__(self, kind: str, qualname: str, where: str) -> None:
        self.kind, self.qualname, self.where = kind, qualname, where
        super().__init__(
            f"{qualname} at {where} cannot be a {kind}: a restarted process finds a {kind} by its name, and a "
            f"lambda or a function inside a function has none; define it at the top level of a module"
        )


class WorkflowNotFoundError(OutliveError):
    """No workflow of this name and version is defined in this process."""

    def __init__(self, name: str, version: int | None, known: list[str]) -> None:
        self.name, self.version, self.known = name, version, known
        wanted = name if version is None else f"{name}@{version}"
        super().__init__(
            f"no workflow {wanted} is defined here; import the module that defines it before the engine starts "
            f"(defined: {', '.join(sorted(known)) or 'none'})"
        )


# -- Values --------------------------------------------------------------------------------------------------


class UnserialisableError(OutliveError, TypeError):
    """A value would not come back from the journal as it went in."""

    def __init__(self, what: str, path: str, type_name: str, reason: str) -> None:
        self.what, self.path, self.type_name, self.reason = what, path, type_name, reason
        super().__init__(f"{what} cannot be stored: at {path}, {type_name}: {reason}")


class PayloadTooLargeError(OutliveError, ValueError):
    """A value is larger than the limit on payloads."""

    def __init__(self, what: str, size_bytes: int, limit_bytes: int) -> None:
        self.what, self.size_bytes, self.limit_bytes = what, size_bytes, limit_bytes
        super().__init__(
            f"{what} has {size_bytes:,} bytes and the limit payload_bytes_max is {limit_bytes:,}; store it elsewhere "
            f"and pass a reference, or raise the limit: Engine(..., limits=Limits(payload_bytes_max=...))"
        )


class HistoryTooLongError(OutliveError):
    """A run's journal has reached its limit; the run is parked."""

    def __init__(self, run_id: str, events: int, limit: int) -> None:
        self.run_id, self.events, self.limit = run_id, events, limit
        super().__init__(
            f"run {run_id} has {events:,} events and the limit history_events_max is {limit:,}; split the work into "
            f'child runs, or raise the limit and call engine.resume("{run_id}")'
        )


class UnreadableError(OutliveError):
    """A recorded value cannot be read as the type the code now asks for."""

    def __init__(self, what: str, type_name: str, reason: str) -> None:
        self.what, self.type_name, self.reason = what, type_name, reason
        super().__init__(
            f"{what} cannot be read as {type_name}: {reason}; change the annotation back, or send what it asks for"
        )


class CorruptJournalError(OutliveError):
    """A journal row is not what was written."""

    def __init__(self, run_id: str, seq: int, reason: str) -> None:
        self.run_id, self.seq, self.reason = run_id, seq, reason
        super().__init__(
            f"journal of run {run_id} is damaged at event {seq}: {reason}; restore it from a backup, then call "
            f'engine.resume("{run_id}")'
        )


class FormatTooNewError(OutliveError):
    """A journal row was written by a later release than this one."""

    def __init__(self, run_id: str, seq: int, reason: str) -> None:
        self.run_id, self.seq, self.reason = run_id, seq, reason
        super().__init__(f"event {seq} of run {run_id} was written by a later Outlive ({reason}); upgrade this worker")


# -- Runs ----------------------------------------------------------------------------------------------------


class RunNotFoundError(OutliveError, LookupError):
    """No run has this id."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"no run has id {run_id!r}; start it first, or send the signal with start=(workflow, args...)")


class RunExistsError(OutliveError):
    """A run with this id was started before: the start said on_conflict="reject", or it is a run of something else."""

    def __init__(self, run_id: str, status: str) -> None:
        self.run_id, self.status = run_id, status
        super().__init__(
            f'run {run_id!r} exists already ({status}); use another id, or on_conflict="attach" to get that run'
        )


class RunFinishedError(OutliveError):
    """The run has ended; it can take no more messages."""

    def __init__(self, run_id: str, status: str) -> None:
        self.run_id, self.status = run_id, status
        super().__init__(f"run {run_id!r} has ended ({status}) and takes no more messages; start a new run")


class RunNotParkedError(OutliveError):
    """Only a parked run can be resumed."""

    def __init__(self, run_id: str, status: str) -> None:
        self.run_id, self.status = run_id, status
        super().__init__(f"run {run_id!r} is {status}, not parked; there is nothing to resume")


class InvalidRunIdError(OutliveError, ValueError):
    """A run id must be usable in a URL and a file name."""

    def __init__(self, run_id: object) -> None:
        self.run_id = run_id
        super().__init__(
            f"{run_id!r} cannot be a run id: use 1 to 128 letters, digits, '_', '.', ':' or '-', and begin with "
            f"a letter or a digit"
        )


class SignalTypeError(OutliveError, TypeError):
    """The workflow declares another type for this signal."""

    def __init__(self, workflow: str, signal: str, type_name: str, reason: str) -> None:
        self.workflow, self.signal, self.type_name, self.reason = workflow, signal, type_name, reason
        super().__init__(f"signal {signal!r} of workflow {workflow} takes {type_name}: {reason}")


class InboxFullError(OutliveError):
    """Too many messages wait for this run already."""

    def __init__(self, run_id: str, limit: int) -> None:
        self.run_id, self.limit = run_id, limit
        super().__init__(
            f"{limit:,} messages wait for run {run_id!r} already (inbox_messages_max); try again when it has taken some"
        )


class RunFailed(OutliveError):
    """The run ended without a result; says why, with the journaled failure."""

    def __init__(self, run_id: str, message: str, failure: Any = None) -> None:
        self.run_id, self.failure = run_id, failure
        super().__init__(f"run {run_id} {message}")


class RunCancelled(RunFailed):
    """The run was cancelled."""


class RunTimedOut(RunFailed):
    """The run did not end within its timeout."""


class ResultTimeoutError(OutliveError, TimeoutError):
    """The run had not ended when the caller's patience had."""

    def __init__(self, run_id: str, seconds: float, why: str) -> None:
        self.run_id, self.seconds, self.why = run_id, seconds, why
        super().__init__(f"run {run_id} has not ended within {seconds:g} s ({why}); ask again later")


# -- Inside a workflow ---------------------------------------------------------------------------------------


class StepFailed(OutliveError):
    """A step failed for good; its own exception class is not registered with the step.

    Carries what the journal has: `type_name`, `message`, `attributes`, `traceback_text`, `attempts`.
    """

    def __init__(
        self,
        message: str,
        *,
        step: str = "",
        type_name: str = "",
        attributes: dict[str, Any] | None = None,
        traceback_text: str = "",
        attempts: int = 1,
    ) -> None:
        self.step, self.type_name, self.message = step, type_name, message
        self.attributes = attributes or {}
        self.traceback_text, self.attempts = traceback_text, attempts
        super().__init__(f"{step}: {type_name}: {message}" if step else message)


class StepTimeoutError(OutliveError, TimeoutError):
    """One attempt of a step ran longer than the step allows."""

    def __init__(self, step: str, seconds: float) -> None:
        self.step, self.seconds = step, seconds
        super().__init__(f"step {step} did not end within its timeout of {seconds:g} s")


class NotDurableError(OutliveError, RuntimeError):
    """A workflow asked its loop for something that no journal can replay."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} is not durable and cannot be used in a workflow; do this in a step (@outlive.step) "
            f"and await the step"
        )


class NotInRunError(OutliveError, RuntimeError):
    """This name means something only inside a running workflow or step."""

    def __init__(self, name: str, place: str) -> None:
        self.name, self.place = name, place
        super().__init__(f"outlive.{name}() was called outside {place}; it means something only there")


class DivergenceError(OutliveError):
    """The code asks for something that the journal contradicts; the run is parked, never failed."""

    def __init__(self, *, definition: str, seq: int, journal: str, code: str) -> None:
        self.definition, self.seq, self.journal, self.code = definition, seq, journal, code
        super().__init__(
            f"the code of {definition} no longer matches the journal at event {seq}\n"
            f"  - journal: {journal}\n"
            f"  + code:    {code}\n"
            f"deploy the code that wrote this journal, or give the new code another version, then resume the run"
        )


class StuckError(OutliveError):
    """The workflow waits for something that no event can ever bring."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"the workflow waits at {where} for something that no journal event can bring (an Event that "
            f"nobody sets, a future of another loop, ...); wait for a step, a timer or a signal instead"
        )


class RunawayError(OutliveError):
    """The workflow spins without waiting for anything durable."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        super().__init__(
            f"the workflow took {turns:,} turns of its loop without waiting for anything durable "
            f"(turns_per_event_max); put the busy work into a step"
        )


class RunDropped(BaseException):
    """A dropped run's `finally` block asked for something; nothing of it may happen."""


# -- Stores --------------------------------------------------------------------------------------------------


class StoreError(OutliveError):
    """The store cannot do this."""


class StoreUrlError(StoreError, ValueError):
    """A store URL that names no store we have."""

    def __init__(self, url: object, reason: str) -> None:
        self.url, self.reason = url, reason
        super().__init__(
            f'{url!r} is not a store URL: {reason}; use "memory:", "sqlite:orders.db", "sqlite:/var/lib/orders.db" or "postgresql://user@host/orders"'
        )


class NotADatabaseError(StoreError):
    """The place exists and is not an Outlive database."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            f"{path} is not an Outlive database ({reason}); it was left as it is: name another file or schema"
        )


class SchemaTooNewError(StoreError):
    """The database was migrated by a later release."""

    def __init__(self, place: str, found: int, known: int) -> None:
        self.place, self.found, self.known = place, found, known
        super().__init__(
            f"{place} has schema {found} and this release knows up to {known}; nothing was changed: upgrade outlive"
        )


class UnfitServerError(StoreError):
    """The database server cannot keep what a store promises; nothing was written."""

    def __init__(self, place: str, reason: str, remedy: str) -> None:
        self.place, self.reason, self.remedy = place, reason, remedy
        super().__init__(f"{place} cannot be a store: {reason}; {remedy}")


class StoreUnavailableError(StoreError):
    """The store refuses for now (disk full, read-only, locked, unreachable); the engine keeps trying."""

    def __init__(self, place: str, reason: str) -> None:
        self.place, self.reason = place, reason
        super().__init__(f"{place} is unavailable: {reason}")


class CommitUnknownError(StoreUnavailableError):
    """The store failed around a commit: it may have happened or not. Re-read before anyone moves."""


class TransactionOverError(StoreError):
    """The transaction of a step ended before the step did; nothing that it wrote stays."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the transaction of this step is over: {reason}")


class TransactionRefusedError(StoreError):
    """A statement that a step may not run in its transaction."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"a step's transaction refuses {what}; the journal's commit ends it, and Outlive's own tables are Outlive's"
        )


class ConfigurationError(OutliveError, ValueError):
    """A setting that cannot work."""


class MissingExtraError(ConfigurationError, ImportError):
    """A part of Outlive needs a package that is not installed."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        self.what, self.package, self.extra = what, package, extra
        super().__init__(f"{what} needs the package {package}; run: pip install 'outlive[{extra}]'")


class EngineClosedError(OutliveError, RuntimeError):
    """The engine is not running."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} needs a running engine; use it inside `async with outlive.Engine(...) as engine:`")
