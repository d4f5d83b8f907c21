"""A process that sends an event and is killed: `python -m tests.events.program DATABASE before|after`.

The kill comes right before the transaction with the runs of the event, or right behind it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outlive._kernel.store.contract import Change, Store
from tests.engine.support import Place
from tests.events.test_events import Parcel


class KillingStore:
    """A store whose process does not survive its first commit."""

    def __init__(self, inner: Store, moment: str) -> None:
        self._inner, self._moment = inner, moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(self, changes: Sequence[Change]) -> Any:
        """Write it or not, and die."""
        if self._moment == "after":
            await self._inner.commit(changes)
        os.kill(os.getpid(), signal.SIGKILL)


async def main(path: Path, moment: str) -> None:
    """Send an event."""
    wrap: Any = lambda store: KillingStore(store, moment)  # noqa: E731
    async with Place(path).engine(wrap=wrap, worker=False) as engine:
        await engine.events.send("parcel.packed", Parcel("p-1"), id="evt-1")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
