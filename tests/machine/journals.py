"""Journals of machines that were written elsewhere, put into a place as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import outlive
from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.fold import Fold
from outlive._kernel.store.contract import Change, Outcome
from outlive.events import RunClaimed, RunCreated
from tests.engine.inside import row_of, store_of
from tests.engine.support import Place


async def put_run(place: Place, machine: outlive.Machine[Any, Any], data: Any, events: Sequence[AnyEvent]) -> None:
    """A run `run-1` that has these events behind its creation, in one change, of a worker that is gone."""
    async with place.engine(worker=False) as client:
        run = await row_of(await client.start(machine, data, id="run-1"))
        fold = Fold("run-1")
        fold.runs[0] = run
        prior = (await store_of(client).read_journal(run.journal))[0][2]
        change = Change(journal=run.journal, after=0, prior=prior, rows=[], runs=[])
        claimed = RunClaimed(at=run.created_at, worker="gone", epoch=1)
        found = [event for event in events if not isinstance(event, RunCreated)]
        for seq, event in enumerate([claimed, *found], 1):
            change.rows.append(seal(event, salt=salt_of(run.nonce), seq=seq))
            fold.apply(event)
        change.runs.append(fold.root)
        assert [Outcome.COMMITTED] == [outcome for outcome, _ in await store_of(client).commit([change])]
