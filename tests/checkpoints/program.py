"""A program that keeps its own state: `python -m tests.checkpoints.program URL RUN LAST [shared]`.

It loads its run, goes on behind the last checkpoint, and says the number of each that was acknowledged. Before each it
waits for a line, until its standard input is closed. If the run is shared, it stops when another program was first.
"""

from __future__ import annotations

import asyncio
import sys

import outlive
from outlive.checkpoints import Checkpoint, CheckpointKind
from outlive.errors.store import DuplicateCheckpointError
from outlive.testing.child_process import say

BYTES = 40_000
"""So that a kill can come in the middle of a write."""


def row_of(number: int) -> Checkpoint:
    """The row that each program writes as this number."""
    kind = list(CheckpointKind)[number % 3]
    return Checkpoint(number, f"S{number}", "program", kind, bytes([number % 256]) * BYTES, version=number)


async def main(url: str, run_id: str, last: int, *, is_shared: bool) -> None:
    """Go on from where it was."""
    async with outlive.checkpoints.open_store(url) as store:
        rows = await store.load_run(run_id)
        say(f"loaded {len(rows)}")
        for number in range(len(rows), last + 1):
            sys.stdin.readline()
            try:
                await store.append(run_id, row_of(number))
            except DuplicateCheckpointError as error:
                if is_shared:
                    say(f"taken {error.sequence}")
                    return
                # No other program writes: a server has finished what it was sent before the last process was killed.
                assert (await store.load_run(run_id))[number:] == [row_of(number)]
            say(str(number))
        say("done")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), is_shared="shared" in sys.argv))
