"""The runs that schedules start, and how open ones are ended for the next one."""

from __future__ import annotations

from outlive._features.schedules.in_code import arguments_of
from outlive._features.schedules.schedule import TAG, TICK, StoredSchedule
from outlive._kernel.client.access import Access
from outlive._kernel.client.birth import birth, timeout_from
from outlive._kernel.client.closing import closing_change, trace_ends
from outlive._kernel.client.starting import read_tree
from outlive._kernel.journal.event import RunCreated
from outlive._kernel.journal.packing import Packer, tree_mark
from outlive._kernel.model import RunStatus
from outlive._kernel.model.instant import instant_text
from outlive._kernel.store.contract import Change, Outcome

TERMINATE_TRIES_MAX = 100


def start_of(
    name: str, stored: StoredSchedule, tick: int, *, run_id: str, packer: Packer, nonce: int, at: int
) -> Change:
    """The change that creates the run of a tick."""
    target, schedule = stored.target, stored.schedule
    data = arguments_of(schedule, target, tick)
    payload, blob = packer.pack(data, f"the arguments of {target.workflow}", of=tree_mark(nonce))
    seconds = target.timeout_seconds
    event = RunCreated(
        at=at,
        workflow=target.workflow,
        version=target.version,
        input=payload,
        nonce=nonce,
        **timeout_from(at, seconds),
        tags={**schedule.tags, TAG: name},
        headers={TAG: name, TICK: instant_text(tick)},
        queue=target.queue,
        queue_key=schedule.key,
        lead=target.lead,
        frees_slot=target.frees_slot,
        spends_names=True,
    )
    return birth(run_id, event, [blob] if blob else [])


async def terminate(access: Access, run_id: str, *, reason: str) -> bool:
    """End a run with its tree at once, without letting its code clean up; False if it moves on too fast for that.

    It is written by compare-and-swap at the end of its journal: the worker that owns it finds its next seq taken, and
    commits nothing more.
    """
    store = access.store
    for _ in range(TERMINATE_TRIES_MAX):
        run = await store.find_run(run_id)
        if run is None or run.status.is_terminal or run.status is RunStatus.DAMAGED:
            return True
        rows, tree = await read_tree(store, run)
        if 0 not in tree or tree[0].status.is_terminal:
            continue
        change = closing_change(tree, rows, reason=reason, at=store.now())
        if (await store.commit([change]))[0][0] is Outcome.COMMITTED:
            trace_ends(access.hooks.tracer, change, rows)
            if access.worker is not None:
                access.worker.discard_tree(run.journal)
            return True
    return False
