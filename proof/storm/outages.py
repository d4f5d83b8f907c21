"""When the store is away: its server is killed now and then, and once it is away for long.

How often the server is killed is part of the trial, when comes from its seed. While it is away workers and clients are
killed and started all the same: a process must be able to begin without its store. Some outages are longer than a
lease, and some servers are killed again the moment they are back. A store without a server is away while a connection
holds the write lock of its file.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator

import apsw

from proof.storm.places import Place, database_at
from proof.storm.trial import Trial

AWAY_SECONDS = (0.0, 1.0)
LONG_SECONDS = (2.2, 3.0)
LONG_SHARE = 0.1
AGAIN_SHARE = 0.15


class Outages:
    """The bad luck of one store."""

    def __init__(self, trial: Trial, place: Place, tell: Callable[[str], None]) -> None:
        self._url = trial.url
        self._server = place.server
        self._random = random.Random(f"server/{trial.seed}")
        self._left = trial.server_kills if place.server is not None else 0
        self._due = self._plan(trial.kills / max(1, trial.server_kills))
        self._next = next(self._due)
        self._tell = tell
        self._back_at: float | None = None
        self._lock: apsw.Connection | None = None
        self.is_long = False
        """Whether the long outage lasts."""
        self.kills: list[float] = []
        """When the server was killed, the long outage aside."""

    def look(self, kills: int) -> None:
        """Do what is due after so many kills of other processes."""
        if self._back_at is not None and time.monotonic() >= self._back_at:
            self.revive()
            if self._left and self._random.random() < AGAIN_SHARE:
                self._kill()
        if self._back_at is None and self._left and kills >= self._next:
            self._kill()
            self._next = next(self._due)

    def finish(self) -> None:
        """Kill as often as was planned, if that is not so yet."""
        while self._left:
            time.sleep(self._away_seconds())
            self.revive()
            self._kill()

    def begin_long(self, seconds: float) -> bool:
        """Take the store away for so long; False if that does not work at this moment."""
        if self._back_at is not None:
            return False
        if self._server is not None:
            self._server.kill()
        else:
            lock = database_at(self._url)
            try:
                lock.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                lock.close()
                return False
            self._lock = lock
        self._back_at = time.monotonic() + seconds
        self.is_long = True
        self._tell(f"the store is away for {seconds:g} s")
        return True

    def revive(self) -> None:
        """Bring the store back if it is away."""
        if self._back_at is None:
            return
        if self._lock is not None:
            self._lock.execute("ROLLBACK")
            self._lock.close()
            self._lock = None
        if self._server is not None:
            self._server.start()
        self._back_at = None
        self.is_long = False
        self._tell("the store is back")

    def _kill(self) -> None:
        assert self._server is not None
        self._server.kill()
        self.kills.append(time.time())
        self._left -= 1
        self._back_at = time.monotonic() + self._away_seconds()
        self._tell(f"server kill {len(self.kills)}")

    def _away_seconds(self) -> float:
        return self._random.uniform(*(LONG_SECONDS if self._random.random() < LONG_SHARE else AWAY_SECONDS))

    def _plan(self, pause: float) -> Iterator[int]:
        """After how many kills of others the server's turn comes: about once in `pause`."""
        for n in itertools.count():
            yield math.ceil((n + self._random.random()) * pause)
