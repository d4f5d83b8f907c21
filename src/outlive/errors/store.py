"""Stores, leases, journals and values that cannot be used, written or read."""

from __future__ import annotations

import reprlib

from outlive.errors.advice import Advice
from outlive.errors.base import (
    ConflictError,
    DamagedError,
    LimitError,
    OutliveError,
)


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


class SchemaTooOldError(StoreError):
    """The database was not migrated to this release, and the caller asked that nothing is written."""

    def __init__(self, place: str, found: int, known: int) -> None:
        self.place, self.found, self.known = place, found, known
        super().__init__(
            f"{place} has schema {found} and this release needs {known}; nothing was changed: run `outlive migrate`, "
            f"or start an engine of this release on it, which does the same"
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


class StoreMovedError(StoreUnavailableError):
    """The file of the store was deleted, moved or replaced while it was open; nothing was acknowledged."""

    def __init__(self, place: str, *, has_other_library: bool = False) -> None:
        self.has_other_library = has_other_library
        cause = (
            "; a second SQLite library in a process can delete the -wal file when it closes the store, and this has "
            "loaded Python's sqlite3 (SQLAlchemy, Django and pandas do): open the store with apsw, or elsewhere"
        )
        super().__init__(
            place,
            "the file, or the -wal file beside it, was deleted, moved or replaced while this process uses it, and what "
            f"it writes now would be lost; put the same file back, or stop this process and start it again"
            f"{cause if has_other_library else ''}",
        )


class StoreWentBackError(StoreError):
    """The store went back to an earlier state: another server took its place, or a backup was restored."""

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(
            f"{place} is not the store that it was: {reason}; what it acknowledged before may be missing, so this "
            f"process discards what it has of it in memory"
        )


class CommitUnknownError(StoreUnavailableError):
    """The store failed around a commit: it may have happened or not. Re-read before anyone moves."""

    def __init__(self, place: str, reason: str, *, run_id: str = "") -> None:
        super().__init__(place, reason)
        self.run_id = run_id
        """The run that the write was about; empty if it was about several, or about something else."""


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


class LeaseUrlError(OutliveError, ValueError):
    """A setting for leases that names no kind we have."""

    def __init__(self, lease: object, reason: str) -> None:
        self.lease, self.reason = lease, reason
        super().__init__(f'lease={lease!r}: {reason}; use "store", "none" or "etcd://host:2379,host:2379"')


class UnserialisableError(OutliveError, TypeError):
    """A value would not come back from the journal as it went in."""

    def __init__(self, what: str, path: str, type_name: str, reason: str) -> None:
        self.what, self.path, self.type_name, self.reason = what, path, type_name, reason
        super().__init__(f"{what} cannot be stored: at {path}, {type_name}: {reason}")


class PayloadTooLargeError(LimitError, ValueError):
    """A value is larger than the limit on payloads."""

    def __init__(self, what: str, size_bytes: int, limit_bytes: int) -> None:
        self.what, self.size_bytes, self.limit_bytes = what, size_bytes, limit_bytes
        super().__init__(
            f"{what} has {size_bytes:,} bytes and the limit payload_bytes_max is {limit_bytes:,}; store it elsewhere "
            f"and pass a reference, or raise the limit: Engine(..., limits=Limits(payload_bytes_max=...))"
        )


class StreamFullError(LimitError):
    """A run has emitted as much as it may."""

    def __init__(self, run_id: str, stream: str, *, streams_max: int, items_max: int, bytes_max: int) -> None:
        self.run_id, self.stream = run_id, stream
        self.streams_max, self.items_max, self.bytes_max = streams_max, items_max, bytes_max
        super().__init__(
            f"stream {stream!r} of run {run_id} has no room for what it emits: the limits of all streams of a run are "
            f"streams_max {streams_max:,}, stream_items_max {items_max:,} and stream_bytes_max {bytes_max:,}; emit "
            f"fewer items, go on with outlive.continue_as_new, or raise the limit: Engine(..., limits=Limits(...))"
        )


class HistoryTooLongError(LimitError):
    """A run's journal has reached its limit; the run is parked."""

    def __init__(self, run_id: str, events: int, limit: int) -> None:
        self.run_id, self.events, self.limit = run_id, events, limit
        self._advice = (Advice("resume", {"run_id": run_id}, "lets it go on"),)
        super().__init__(
            f"run {run_id} has {events:,} events and the limit history_events_max is {limit:,}; let runs "
            f"go on with outlive.continue_as_new before that, and for this one raise the limit, then resume it"
        )


class UnreadableError(OutliveError):
    """A recorded value cannot be read as the type the code now asks for."""

    def __init__(
        self,
        what: str,
        type_name: str,
        reason: str,
        *,
        advice: str = "change the annotation back, or send what it asks for",
    ) -> None:
        self.what, self.type_name, self.reason = what, type_name, reason
        super().__init__(f"{what} cannot be read as {type_name}: {reason}; {advice}")


class CorruptJournalError(DamagedError):
    """A journal row is not what was written."""

    def __init__(self, run_id: str, seq: int, reason: str) -> None:
        self.run_id, self.seq, self.reason = run_id, seq, reason
        self._advice = (Advice("resume", {"run_id": run_id}, "lets it go on"),)
        super().__init__(
            f"journal of run {run_id} is damaged at event {seq}: {reason}; restore it from a backup, then resume it"
        )


class FormatTooNewError(DamagedError):
    """A journal row was written by a later release than this one."""

    def __init__(self, run_id: str, seq: int, reason: str) -> None:
        self.run_id, self.seq, self.reason = run_id, seq, reason
        super().__init__(f"event {seq} of run {run_id} was written by a later Outlive ({reason}); upgrade this worker")


class HistoryFormatError(DamagedError):
    """A file is not an exported history, or was changed since it was written."""

    def __init__(self, source: str, line: int, reason: str) -> None:
        self.source, self.line, self.reason = source, line, reason
        super().__init__(f"{source}:{line}: {reason}; export the history again")


class ArchiveError(OutliveError):
    """Runs could not be archived; so none of them was deleted."""

    def __init__(self, place: str, reason: str) -> None:
        self.place, self.reason = place, reason
        super().__init__(f"no archive can be written to {place} ({reason}); nothing is deleted until that is repaired")


class InvalidCheckpointError(OutliveError, ValueError):
    """A checkpoint that no store can keep."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        self.field, self.value, self.reason = field, value, reason
        # Shortened: it may be of any size, and hold anything.
        super().__init__(f"{field}={reprlib.repr(value)} cannot be part of a checkpoint: {reason}")


class DuplicateCheckpointError(ConflictError):
    """The run has a checkpoint with this sequence number already; nothing was written."""

    def __init__(self, run_id: str, sequence: int) -> None:
        self.run_id, self.sequence = run_id, sequence
        super().__init__(
            f"run {run_id!r} has a checkpoint {sequence} already; another process writes for this run, or it was not "
            f"loaded before going on: load_run({run_id!r}) and take the next number"
        )


class CorruptCheckpointError(DamagedError):
    """A checkpoint is not what was written."""

    def __init__(self, run_id: str, sequence: int, reason: str) -> None:
        self.run_id, self.sequence, self.reason = run_id, sequence, reason
        super().__init__(
            f"checkpoint {sequence} of run {run_id!r} is damaged: {reason}; restore it from a backup, or begin again "
            f"after clear({run_id!r})"
        )
