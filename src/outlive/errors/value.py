"""Values and journals that cannot be written or read."""

from __future__ import annotations

from outlive.errors.base import OutliveError


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


class HistoryFormatError(OutliveError):
    """A file is no exported history, or not the one that was written."""

    def __init__(self, source: str, line: int, reason: str) -> None:
        self.source, self.line, self.reason = source, line, reason
        super().__init__(f"{source}:{line}: {reason}; export the history again")
