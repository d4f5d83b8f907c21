"""Policies that users state: how to retry, and how much is too much."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields

from outlive._model import given
from outlive.errors import ConfigurationError

FACTOR_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Retry:
    """When a failed attempt of a step is tried again, and after how long.

    The n-th retry comes `first * factor**(n-1)` seconds after the failure, at most `cap`, moved by up to
    `jitter` of itself either way. Attempts and the time of the next one are in the journal: a crash neither
    resets the budget nor skips the wait.
    """

    attempts: int = 3
    first: float = 1.0
    factor: float = 2.0
    cap: float = 60.0
    jitter: float = 0.1
    on: tuple[type[BaseException], ...] = (Exception,)
    """Which exceptions are worth another attempt."""

    def __post_init__(self) -> None:
        given.keep(
            self,
            attempts=given.whole("Retry", "attempts", self.attempts),
            first=given.seconds("Retry", "first", self.first, or_zero=True),
            factor=given.number("Retry", "factor", self.factor, least=1, most=FACTOR_MAX, like=2),
            cap=given.seconds("Retry", "cap", self.cap, or_zero=True),
            jitter=given.number("Retry", "jitter", self.jitter, least=0, most=1, like=0.1),
            on=given.exceptions("Retry", "on", self.on),
        )

    def delay_seconds(self, attempt: int, spread: float) -> float:
        """How long to wait after failed attempt number `attempt`; `spread` in [-1, 1] picks within the jitter."""
        # A factor to the power of thousands of attempts overflows; by then the cap has long decided.
        base = min(self.cap, self.first * self.factor ** min(attempt - 1, 64))
        return max(0.0, base * (1 + self.jitter * spread))


NO_RETRY = Retry(attempts=1)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of everything one engine takes. Each limit has a name, and the error that enforces it says it."""

    runs_active_max: int = 1_200
    """Runs in motion at once in this worker; more wait in the store. A tenth of it is never filled with orphans."""
    runs_cached_max: int = 1_000
    """Suspended runs kept in memory so that waking them needs no replay."""
    steps_running_max: int = 1_200
    """Steps running at once in this worker."""
    threads_max: int = 32
    """Threads for sync steps."""
    processes_max: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Processes for steps with `process=True`."""
    claim_batch_max: int = 500
    """Runs taken by one claim."""
    commit_batch_max: int = 2_000
    """Changes of runs in one transaction."""
    payload_inline_bytes_max: int = 32 * 1024
    """Larger payloads become blobs."""
    payload_bytes_max: int = 64 * 1024 * 1024
    history_events_max: int = 1_000_000
    inbox_messages_max: int = 10_000
    """Messages that wait for one tree of runs."""
    transaction_seconds_max: int = 30
    """How long the transaction of a step may be open; on SQLite never longer than 4, as all writers wait for it."""
    turns_per_event_max: int = 1_000_000
    """Turns of a run's loop between two events."""
    attempts_max: int = 10
    """Take-overs of an interrupted run without progress before it is quarantined."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            given.keep(self, **{limit.name: given.whole("Limits", limit.name, getattr(self, limit.name))})
        if self.payload_inline_bytes_max > self.payload_bytes_max:
            raise ConfigurationError(
                "Limits: payload_inline_bytes_max must not exceed payload_bytes_max; raise that too"
            )
