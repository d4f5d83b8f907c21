"""Workers: who lives, who owns what, and who takes over.

A worker lives while its lease has not run out by the store's clock and, if it holds a lock (`lock`), while the kernel says
that it still does.
"""

from __future__ import annotations

from heapq import merge
from itertools import chain

from outlive._journal.codec import salt_of, seal
from outlive._journal.event import RunClaimed
from outlive._journal.fold import Fold
from outlive._model import Run
from outlive._store.contract import Claim, Claims, WorkerInfo
from outlive._store.sqlite.batch import Batch, Change
from outlive._store.sqlite.connection import Session
from outlive._store.sqlite.lock import WorkerLocks
from outlive._store.sqlite.rows import (
    Lease,
    WorkerRow,
    decode_leases,
    decode_pairs,
    decode_runs,
    decode_streams,
    decode_workers,
    to_json,
)
from outlive._store.sqlite.thread import WriteVerb

SESSIONS_KEPT_MICROSECONDS = 24 * 3600 * 1_000_000
"""A session that expired is kept for so long: its worker may only be asleep, and come back."""


class Workers:
    """The verbs that know the locks."""

    def __init__(self, locks: WorkerLocks) -> None:
        self._locks = locks
        self.claim = WriteVerb(self._claim_all)
        self.register = WriteVerb(self._register_all)
        self.retire = WriteVerb(self._retire_all)
        self.hand_over = WriteVerb(self._hand_over)
