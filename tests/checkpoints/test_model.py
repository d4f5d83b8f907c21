"""Random lives of checkpoints on every store, against a dictionary that knows the rules."""

from __future__ import annotations

from random import Random

import pytest

from outlive._kernel.journal.packing import Packer
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive.checkpoints import Checkpoint, CheckpointKind, CheckpointStore
from outlive.errors.store import DuplicateCheckpointError
from outlive.limits import Limits
from tests.engine.support import Place

OPERATIONS = 300
RUN_IDS = ("run-1", "run-10", "Run-1")
SEQUENCES = (0, 1, 2, 9, 10, 2**31, 2**63 - 1)
OUTPUTS = (None, b"", b"\x00", b"x" * 3_000)


def front_of(store: Store) -> CheckpointStore:
    """One program's view of it."""
    return CheckpointStore(lambda: store, packer=Packer(Limits()), nonce=SystemClock().nonce)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_store_does_what_the_rules_say(place: Place, seed: int) -> None:
    """Two programs append, load and clear at random, and one of them opens its store again now and then."""
    chance = Random(seed)
    model: dict[str, dict[int, Checkpoint]] = {run_id: {} for run_id in RUN_IDS}
    stores = [place.store(), place.store()]
    for store in stores:
        await store.open()
    counts = {"appended": 0, "refused": 0, "cleared": 0}

    for _ in range(OPERATIONS):
        run_id, front = chance.choice(RUN_IDS), front_of(chance.choice(stores))
        match chance.choices(["append", "load", "clear", "reopen"], [60, 30, 4, 2])[0]:
            case "append":
                kind = chance.choice(list(CheckpointKind))
                version = chance.randrange(3)
                row = Checkpoint(chance.choice(SEQUENCES), "S", "", kind, chance.choice(OUTPUTS), version)
                if row.sequence in model[run_id]:
                    counts["refused"] += 1
                    with pytest.raises(DuplicateCheckpointError):
                        await front.append(run_id, row)
                else:
                    counts["appended"] += 1
                    await front.append(run_id, row)
                    model[run_id][row.sequence] = row
            case "clear":
                counts["cleared"] += len(model[run_id])
                await front.clear(run_id)
                model[run_id] = {}
            case "reopen":
                await stores[0].close()
                stores[0] = place.store()
                await stores[0].open()
            case _:
                assert await front.load_run(run_id) == [row for _, row in sorted(model[run_id].items())]

    for run_id in RUN_IDS:
        assert await front_of(stores[1]).load_run(run_id) == [row for _, row in sorted(model[run_id].items())]
    assert min(counts.values()) > 5, counts
    for store in stores:
        await store.close()
