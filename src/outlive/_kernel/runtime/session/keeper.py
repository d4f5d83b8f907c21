"""Keeps the worker's lease, on a thread and a connection of its own.

The event loop may stall (a sync call in an async step, a long replay); the lease must not depend on it. Every third of
the lease the keeper renews it. If it cannot prove a renewal within the lease less a margin, counted from when the last
successful renewal was *sent*, it fences the worker: others may own its runs by now. The margin is for the time between
looking at the clock and acting on it. Safety does not depend on it (the journal's compare-and-swap ensures that); it
only keeps two workers from doing the same work for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive._kernel.store.contract import Beat
from outlive.errors import StoreUnavailableError
from outlive.errors.store import StoreMovedError, StoreWentBackError
from outlive.telemetry import Counters, log

BEATS_PER_LEASE = 3
MARGIN_SHARE = 0.15
PAUSE_SECONDS_MAX = 3600.0
"""A lease without end is renewed too, and no system accepts an endless timeout."""


class LeaseKeeper:
    """Renews one lease until it is stopped or lost."""

    def __init__(
        self,
        beat: Beat,
        *,
        clock: Clock,
        counters: Counters,
        lease: LeaseDeadline,
        lease_seconds: float,
        asked_at: float,
        fence: Callable[[str], None],
    ) -> None:
        self._beat = beat
        self._clock = clock
        self._counters = counters
        self._lease_seconds = lease_seconds
        self._fence = fence
        self._loop = asyncio.get_running_loop()
        self._stop: Callable[[], None] | None = None
        self._is_over = False
        """Whether the session has ended: an answer that is still under way is ignored."""
        self._refusal = ""
        """Why the last renewal failed; empty if it did not."""
        self._lease = lease
        self._lease.until = self._trusted_from(asked_at)

    def start(self) -> None:
        """Begin to renew."""
        self._stop = self._clock.pulse(self._beats(), name="outlive-keeper")

    def stop(self) -> None:
        """Renew no more."""
        self._is_over = True
        if self._stop is not None:
            self._stop()

    def end_session(self, reason: str) -> None:
        """Treat the lease as lost: fence the worker, and let the lease run out. Any thread may call this; only the
        first call counts."""
        if self._is_over:
            return
        self.stop()
        self._lease.until = 0.0
        self._report_lost(reason)

    def is_trusted(self) -> bool:
        """Whether the lease is certainly still held."""
        return self._clock.monotonic() < self._lease.until

    @property
    def seconds_left(self) -> float:
        """How long the lease is certain from now on; negative if it is not."""
        return self._lease.until - self._clock.monotonic()

    def beat_once(self) -> str:
        """Renew the lease; empty, or why it must be treated as lost."""
        if not self.is_trusted():
            return f"it was not renewed in time{self._refusal and f': {self._refusal}'}"
        sent_at = self._clock.monotonic()
        try:
            is_ours = self._beat.renew(lease_seconds=self._lease_seconds)
        except StoreMovedError as error:
            return str(error)
        except StoreWentBackError as error:
            self._counters.store_changes += 1
            return str(error)
        except StoreUnavailableError as error:
            self._refusal = str(error)
            return "" if self.is_trusted() else f"the lease could not be renewed in time: {error}"
        self._counters.measures.lease_renewal_seconds.add((self._clock.monotonic() - sent_at) * MICROSECONDS)
        if not is_ours:
            return "another worker has ended this session"
        if not self.is_trusted():
            return "the lease was renewed too late"
        self._refusal = ""
        self._lease.until = self._trusted_from(sent_at)
        if self._is_over:
            self._lease.until = 0.0  # The session was ended while the renewal was under way.
        return ""

    def _trusted_from(self, sent_at: float) -> float:
        return sent_at + self._lease_seconds * (1 - MARGIN_SHARE)

    def _beats(self) -> Generator[float, None, None]:
        """The loop: how long to wait before each renewal. A thread drives it, or a simulation."""
        pause = min(self._lease_seconds / BEATS_PER_LEASE, PAUSE_SECONDS_MAX)
        lost = ""
        try:
            while not lost:
                # Not beyond the time for which the lease is certain: a keeper that cannot renew must fence in time.
                yield max(0.0, min(pause, self._lease.until - self._clock.monotonic()))
                lost = self.beat_once()
        except Exception as error:
            log.exception("the keeper failed")
            lost = f"the keeper failed: {error!r}"
        finally:
            self._beat.close()
        if lost and not self._is_over:
            self._report_lost(lost)

    def _report_lost(self, reason: str) -> None:
        self._counters.leases_lost += 1
        log.error("this worker has lost its lease (%s); it discards its runs", reason)
        with suppress(RuntimeError):  # The event loop is closed: the process is about to end.
            self._loop.call_soon_threadsafe(self._fence, reason)
