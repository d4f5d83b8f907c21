"""Policies that users state: how to retry, and how much is too much."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from outlive._kernel.model import given
from outlive.errors import ArgumentTypeError, ConfigurationError

FACTOR_MAX = 1_000
_GROWTH_MAX = 64
"""The retry from which on a delay grows no further: numbers would overflow, and the cap has long decided."""

Growth = Literal["exponential", "linear", "fixed", "fibonacci"]
Delay: TypeAlias = Callable[[Any, int], given.Span | None]


@dataclass(frozen=True, slots=True)
class Retry:
    """When a failed attempt of a step is tried again, and after how long.

    The n-th retry comes `first * factor**(n-1)` seconds after the failure, at most `cap`, moved by up to
    `jitter` of itself either way. An exception that has a `retry_after` (seconds, or a timedelta) names its delay
    itself. Attempts, the time of the first one and the time of the next one are in the journal: a crash neither resets
    the budget nor skips the wait.
    """

    attempts: int | None = 3
    """How often the step is called at most; None for no end."""
    first: float = 1.0
    factor: float = 2.0
    cap: float = 60.0
    jitter: float = 0.1
    on: tuple[type[BaseException], ...] = (Exception,)
    """Which exceptions are worth another attempt."""
    not_on: tuple[type[BaseException], ...] = ()
    """The exceptions among them that are not."""
    when: Callable[[Any], bool] | None = None
    """Asked with an exception that is in `on`: whether it is worth another attempt."""
    delay: Growth | Delay = "exponential"
    """How the delay grows: "exponential"; "linear" is `first * n`; "fixed" is always `first`; "fibonacci" is `first`
    times 1, 1, 2, 3, 5 and so on. Or a function of the exception and the number of its attempt, which returns seconds,
    a timedelta, or None for the usual delay."""
    elapsed_max: float | None = None
    """No attempt is planned for later than this many seconds after the first one began; None for no limit."""

    def __post_init__(self) -> None:
        ends = self.attempts is not None
        given.keep(
            self,
            attempts=given.whole("Retry", "attempts", self.attempts, or_none="for no end") if ends else None,
            first=given.seconds("Retry", "first", self.first, or_zero=True),
            factor=given.number("Retry", "factor", self.factor, least=1, most=FACTOR_MAX, like=2),
            cap=given.seconds("Retry", "cap", self.cap, or_zero=True),
            jitter=given.number("Retry", "jitter", self.jitter, least=0, most=1, like=0.1),
            on=given.exceptions("Retry", "on", self.on),
            not_on=given.exceptions("Retry", "not_on", self.not_on),
            when=None if self.when is None else _plain_function("when", self.when, like="is_transient"),
            delay=_checked_delay(self.delay),
            elapsed_max=given.some_seconds("Retry", "elapsed_max", self.elapsed_max),
        )


def is_last(retry: Retry, attempt: int) -> bool:
    """Whether no other attempt may follow attempt number `attempt`."""
    return retry.attempts is not None and attempt >= retry.attempts


def delay_seconds(retry: Retry, attempt: int, spread: float) -> float:
    """How long to wait after failed attempt number `attempt`; `spread` in [-1, 1] picks within the jitter."""
    if retry.delay == "fixed":
        grown = retry.first
    elif retry.delay == "linear":
        grown = retry.first * attempt
    elif retry.delay == "fibonacci":
        grown = retry.first * _fibonacci(min(attempt, _GROWTH_MAX))
    else:
        grown = retry.first * retry.factor ** min(attempt - 1, _GROWTH_MAX)
    return max(0.0, min(retry.cap, grown) * (1 + retry.jitter * spread))


def _fibonacci(place: int) -> int:
    """The number at this place of 1, 1, 2, 3, 5 and so on."""
    number, following = 1, 1
    for _ in range(place - 1):
        number, following = following, number + following
    return number


def named_seconds(retry: Retry, named: object, spread: float) -> float:
    """How long to wait if the delay is named, by `delay` or by the exception: not less than that, and at most
    `jitter` of it longer.

    Raises:
        InvalidArgumentError: it is not a span of time.
    """
    return given.seconds("Retry", "delay", named, or_zero=True) * (1 + retry.jitter * abs(spread))


def check_retry(where: str, retry: object) -> Retry | None:
    """Give it back if it says how to retry, or is None."""
    if retry is None:
        return None
    return given.instance(where, "retry", retry, Retry, like="outlive.Retry(attempts=3)")


def _checked_delay(delay: object) -> Any:
    if callable(delay):
        return _plain_function("delay", delay, like="retry_after")
    if isinstance(delay, int | float | timedelta):
        wanted = f"for the same delay every time give first={delay!r}, delay='fixed'"
        raise ArgumentTypeError("Retry", "delay", delay, wanted)
    return given.one_of("Retry", "delay", delay, get_args(Growth))


def _plain_function(name: str, value: object, *, like: str) -> Any:
    function = given.function("Retry", name, value, like=like)
    if inspect.iscoroutinefunction(function):
        wanted = f"it is asked between two attempts and cannot wait; give a plain function, for example {name}={like}"
        raise ArgumentTypeError("Retry", name, value, wanted)
    return function


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
    history_events_advised_max: int = 10_000
    """Events of one tree from which on `why`, the log and the dashboard advise a fresh journal."""
    inbox_messages_max: int = 10_000
    """Messages that wait for one tree of runs."""
    streams_max: int = 100
    """Streams of one run."""
    stream_items_max: int = 1_000_000
    """Items that a run emits, in all its streams together; its next generation counts from 0."""
    stream_bytes_max: int = 256 * 1024 * 1024
    """Bytes of these items, as they are stored."""
    transaction_seconds_max: int = 30
    """How long the transaction of a step may be open; on SQLite never longer than 4, as all writers wait for it."""
    deletes_per_second_max: int = 1_000
    """Runs that retention deletes in a second, by all workers of a store together."""
    turns_per_event_max: int = 1_000_000
    """Turns of a run's loop between two events."""
    attempts_max: int = 10
    """Take-overs of an interrupted run without progress before it is quarantined."""
    stalls_max: int = 2
    """Workers whose event loop a run may block for as long as a lease, without progress, before it is quarantined."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            given.keep(self, **{limit.name: given.whole("Limits", limit.name, getattr(self, limit.name))})
        if self.payload_inline_bytes_max > self.payload_bytes_max:
            raise ConfigurationError(
                "Limits: payload_inline_bytes_max must not exceed payload_bytes_max; raise that too"
            )
