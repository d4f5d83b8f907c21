"""Kills the server of the store now and then, and starts it again a little later.

How often is part of the trial, when comes from its seed. While the server is away workers and clients are killed and
started all the same: a process must be able to begin without its store. Some outages are longer than a lease, and some
servers are killed again the moment they are back.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator

from outlive.testing.postgres import PostgresServer

AWAY_SECONDS = (0.0, 1.0)
LONG_SECONDS = (2.2, 3.0)
LONG_SHARE = 0.1
AGAIN_SHARE = 0.15


class Outages:
    """The bad luck of one server. With none, nothing happens."""

    def __init__(
        self, server: PostgresServer | None, *, kills: int, server_kills: int, seed: int, tell: Callable[[str], None]
    ) -> None:
        self._server = server
        self._random = random.Random(f"server/{seed}")
        self._left = server_kills if server is not None else 0
        self._due = self._plan(kills / max(1, server_kills))
        self._next = next(self._due)
        self._tell = tell
        self._back_at: float | None = None
        self.kills: list[float] = []
        """When the server was killed."""

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

    def revive(self) -> None:
        """Start the server again if it is away."""
        if self._back_at is not None:
            assert self._server is not None
            self._server.start()
            self._back_at = None
            self._tell("the server is back")

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
