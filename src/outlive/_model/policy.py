"""Policies that users state: how to retry, and how much is too much."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields

from outlive.errors import ConfigurationError

SECONDS_MAX = 100 * 366 * 24 * 3600
"""The longest span of time: more is a mistake, and does not fit into an instant."""


def is_whole(number: object, *, least: int) -> bool:
    """Whether it can be kept as a whole number, and is large enough; users need not obey types."""
    return isinstance(number, int) and number >= least


def are_exceptions(classes: object) -> bool:
    """Whether these can be caught, and gone through one by one."""
    return isinstance(classes, tuple) and all(isinstance(it, type) and issubclass(it, BaseException) for it in classes)


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
        if self.attempts < 1:
            raise ConfigurationError(f"Retry(attempts={self.attempts}): a step has at least 1 attempt")
        if self.first < 0 or self.cap < 0 or self.factor < 1:
            raise ConfigurationError("Retry: first and cap must be >= 0 and factor >= 1")
        if not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"Retry(jitter={self.jitter}): jitter is a share between 0 and 1")
        if not are_exceptions(self.on):
            raise ConfigurationError(f"Retry(on={self.on!r}): on is a tuple of exception classes")

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
    """How long the transaction of a step may be open; on SQLite never longer than 4, because everybody waits for it."""
    turns_per_event_max: int = 1_000_000
    """Turns of a run's loop between two events."""
    attempts_max: int = 10
    """Take-overs of an interrupted run without progress before it is quarantined."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise ConfigurationError(f"Limits({limit.name}={getattr(self, limit.name)}): must be at least 1")
        if self.payload_inline_bytes_max > self.payload_bytes_max:
            raise ConfigurationError("Limits: payload_inline_bytes_max must not exceed payload_bytes_max")
