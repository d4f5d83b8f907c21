"""Renewing a session in two places: its lease in etcd with every beat, its lease in the store now and then.

The store's lease is the backstop: if etcd is lost for good it still ends sessions. It is long, so it costs a write
every third of it, and it is asked as soon as etcd does not answer. Both ways it also says whether another process has
ended the session, which etcd alone would not know. The store may take long to answer, and the lease in etcd must not
wait for it: it has a thread of its own. If it stays away, the beat fails in time for the worker to let go before the
backstop has run out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from outlive._kernel.lease.etcd.gateway import Gateway
from outlive._kernel.lease.etcd.keys import keep_alive
from outlive._kernel.store.contract import Beat
from outlive.errors import StoreUnavailableError

LEASE_SHARE = 1 / 4
"""How much of a lease one renewal in etcd may take."""
STORE_SHARE = 1 / 12
"""How much of a lease a beat waits for the store's answer; what comes later is heard by the next beat."""
BACKSTOP_SECONDS_MIN = 60.0
BACKSTOP_LEASES = 6
DUE_SHARE, OVERDUE_SHARE = 1 / 3, 2 / 3
"""How much of the backstop may pass until the store is asked, and until its silence counts."""


def backstop_of(lease_seconds: float) -> float:
    """How long the store keeps a session that etcd keeps for `lease_seconds`."""
    return max(BACKSTOP_SECONDS_MIN, lease_seconds * BACKSTOP_LEASES)


class EtcdBeat:
    """Renews one session. See `Beat`."""

    def __init__(
        self, gateway: Gateway, store_beat: Beat, lease: int | None, *, monotonic: Callable[[], float]
    ) -> None:
        self._gateway = gateway
        self._store_beat = store_beat
        self._lease = lease
        self._monotonic = monotonic
        self._stored_at = monotonic()
        self._thread: ThreadPoolExecutor | None = None
        self._asked: tuple[float, Future[bool]] | None = None
        self._trouble = "no answer"

    def renew(self, *, lease_seconds: float) -> bool:
        """See `Beat`."""
        if self._lease is None:
            return False
        backstop = backstop_of(lease_seconds)
        if self._age() > backstop * DUE_SHARE:
            self._ask_store(backstop)
        try:
            is_alive = keep_alive(self._gateway, self._lease, seconds=lease_seconds * LEASE_SHARE)
        except StoreUnavailableError:
            self._ask_store(backstop)
            if not self._hear_store(lease_seconds * STORE_SHARE):
                return False
            raise
        if not is_alive or not self._hear_store(lease_seconds * STORE_SHARE):
            return False
        if self._age() > backstop * OVERDUE_SHARE:
            raise StoreUnavailableError("the store", f"it was not reached for {self._age():.0f} s ({self._trouble})")
        return True

    def close(self) -> None:
        """See `Beat`. Does not wait: what hangs ends by itself."""
        self._gateway.close()
        thread, self._thread = self._thread, None
        if thread is None:
            self._store_beat.close()
        else:
            thread.submit(self._store_beat.close)
            thread.shutdown(wait=False)

    def _age(self) -> float:
        return self._monotonic() - self._stored_at

    def _ask_store(self, backstop: float) -> None:
        if self._asked is None:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "outlive-etcd-backstop")
            self._asked = self._monotonic(), self._thread.submit(self._store_beat.renew, lease_seconds=backstop)

    def _hear_store(self, seconds: float) -> bool:
        """Whether the session stands, as far as the store has answered by now."""
        if self._asked is None:
            return True
        asked_at, answer = self._asked
        try:
            is_ours = answer.result(seconds)
        except TimeoutError:
            return True
        except StoreUnavailableError as error:
            self._trouble = str(error)
        else:
            if not is_ours:
                return False
            self._stored_at = asked_at
        self._asked = None
        return True
