"""Many episodes: `python -m proof.differential --ops 1000000`."""

from __future__ import annotations

import argparse
import asyncio
import sys

from proof.differential import OPERATIONS_PER_EPISODE, STORES, find_difference


def main() -> int:
    """Play until the operations are used up or a difference is found."""
    parser = argparse.ArgumentParser(prog="proof.differential", description=__doc__)
    parser.add_argument("--ops", type=int, default=20_000, help="operations to play on every store")
    parser.add_argument("--seed", default="0", help="the seed of the first episode is this, a colon and 0")
    parser.add_argument("--store", action="append", choices=list(STORES), help="only these stores")
    options = parser.parse_args()
    stores = {name: STORES[name] for name in options.store or STORES}
    episodes = -(-options.ops // OPERATIONS_PER_EPISODE)
    for number in range(episodes):
        difference = asyncio.run(find_difference(stores, f"{options.seed}:{number}", OPERATIONS_PER_EPISODE))
        if difference is not None:
            print(difference)
            return 1
        if (number + 1) % 100 == 0 or number + 1 == episodes:
            played = (number + 1) * OPERATIONS_PER_EPISODE
            print(f"{played} operations on {', '.join(stores)}: no difference", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
