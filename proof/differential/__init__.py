"""Differential testing of stores: random operations, played on stores and on a small oracle that knows the contract.

The oracle (`oracle`, and `shelf` for cells and checkpoints) is plain Python without any index, batch or fast way,
written from `_kernel.store.contract`. A script of operations (`words`) is made from a seed (`script`) and is plain
data. What an operation means as things stand is decided once (`plan`), and then played on each store (`player`) and
on the oracle (`prophet`). If a store answers otherwise than the oracle (`comparable` says what is compared), the script
is made as short as possible and printed. To try a store of your own:

    from proof.differential import find_difference

    @asynccontextmanager
    async def open_mine(clock):
        store = MyStore("...an empty place...", clock=clock)
        await store.open()
        yield store
        await store.close()

    difference = await find_difference({"mine": open_mine}, seed="1", operations=200)
    if difference:
        raise difference

From a checkout of Outlive, `make differential OPS=1000000` plays that many operations on all stores that it has.
"""

from proof.differential.episode import (
    OPERATIONS_PER_EPISODE,
    Difference,
    Episode,
    OpenStore,
    find_difference,
    replay,
)
from proof.differential.places import STORES

__all__ = [
    "OPERATIONS_PER_EPISODE",
    "STORES",
    "Difference",
    "Episode",
    "OpenStore",
    "find_difference",
    "replay",
]
