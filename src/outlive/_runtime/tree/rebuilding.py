"""How a claimed tree comes into memory: its journal is replayed.

A tree that cannot be rebuilt, or may not, is parked with the reason, from its row alone: what is wrong with one run
does not touch another. One that newer code has moved is released, for workers that have that code.
"""

from __future__ import annotations

from collections.abc import Callable

from outlive._journal.codec import Row, open_journal
from outlive._journal.event import AnyEvent, RunClaimed, RunReleased
from outlive._model import Run
from outlive._replay.command import CancelStep, Command, Emit, Park, RunStep
from outlive._replay.feeding import feed_again
from outlive._runtime.tree.events import is_new, resumed_by
from outlive._runtime.tree.holding import cancels_root
from outlive._runtime.tree.interrupted import interrupted_before
from outlive._runtime.tree.live import LiveTree
from outlive._runtime.tree.phase import TreePhase
from outlive._runtime.tree.skipping import Skip, SkipRefused, skips_of
from outlive._store.contract import Inbound, MessageKind
from outlive.errors import OutliveError
from outlive.telemetry import log, run_fields

FOR_PARKED = (MessageKind.RESUME, MessageKind.SKIP, MessageKind.PAUSE)
"""The messages of a person to a run that is parked, or is to be."""


def rebuild(
    live: LiveTree,
    run: Run,
    rows: list[Row],
    mail: list[Inbound],
    *,
    reason_to_park: Callable[[], str],
    worker: str,
) -> int:
    """Replay a claimed tree, or park it with the reason why that cannot or may not be done.

    Steps that requests in its mail are about are skipped; returns how many. A run that is cancelled as well goes on to
    its end, whether the requests fit and can be read or not. `worker` is the name of this one.
    """
    skip_requests = [message for message in mail if message.kind is MessageKind.SKIP]
    skips: list[Skip] = []
    lacks = ""
    events: list[AnyEvent] = []
    try:
        # Asked before anything of the journal is parsed. See `resume_policy`.
        reason = reason_to_park()
        if not reason:
            events = open_journal(rows, nonce=run.nonce, run_id=run.id)
            park = _replay(live, events, is_skipped=bool(skip_requests))
            reason, lacks = (park.reason, park.lacks) if park is not None else ("", "")
        if not reason:
            asked = live.execution.outstanding()
            try:
                skips = skips_of(skip_requests, asked, root_id=live.id, unpack=live.payloads.unpack)
            except (OutliveError, SkipRefused):
                if not cancels_root(mail):
                    raise
            _skip(live, skips, skip_requests)
            live.follow_all(_left_of(live, asked, skips) if skips else asked)
    except (OutliveError, SkipRefused) as error:
        reason = str(error)
    except Exception as error:  # Anything else is a bug, or the user's code: it stops this run only.
        log.exception("run %s could not be replayed", run.id, extra=run_fields(run.id, run.workflow))
        reason = f"it could not be replayed: {type(error).__qualname__}: {error}"
    if lacks:
        _decline(live, run, events, lacks, reason, worker)
    elif reason:
        live.reset_to(run)
        live.park(reason)
    return 0 if reason else len(skips)


def consume_requests(live: LiveTree, mail: list[Inbound]) -> None:
    """A person's request to resume is good for one claim, whether the run can go on now or is parked again."""
    if live.phase is TreePhase.LEAVING and not live.is_declined:
        live.open_draft().change.consumed += [message.id for message in mail if message.kind in FOR_PARKED]


def _replay(live: LiveTree, events: list[AnyEvent], *, is_skipped: bool) -> Park | None:
    """Feed the whole journal; None, or why the code cannot go on with it."""
    live.fold.runs.clear()
    live.execution.look_ahead(events)
    if not is_new(events):
        # The hooks for what is in the journal were called when it happened; for a new run none was.
        live.execution.on_stage = None
    park = _feed_all(live, events)
    for frame in live.execution.frames.values():
        live.listen(frame.spec)
    if live.observers is not None and park is None and (who := resumed_by(events, has_skip_request=is_skipped)):
        live.observers.resumed(by=who)
    return park


def _feed_all(live: LiveTree, events: list[AnyEvent]) -> Park | None:
    for event in events:
        live.fold.apply(event)
        for command in feed_again(live.execution, event):
            if isinstance(command, Park):
                return command
            if type(command) is Emit:
                live.emit(command)
            elif type(command) is CancelStep:
                live.interrupted += interrupted_before(command, live)
    return None


def _skip(live: LiveTree, skips: list[Skip], requests: list[Inbound]) -> None:
    """Give steps in flight the outcomes that a person asked for, before anything else happens: the requests are about
    the steps that are in flight now, not about those that follow."""
    for skip in skips:
        if (skip.command.run, skip.command.call) in live.execution.calls:
            live.happen(skip.event(live.pack, at=live.clock.now()))
    if requests:
        live.open_draft().change.consumed += [request.id for request in requests]


def _left_of(live: LiveTree, asked: list[Command], skips: list[Skip]) -> list[Command]:
    """The commands that are left to do. Steps that the run has cancelled since are among them: following one counts it
    as moving, and its cancellation has already counted it out."""
    done = {id(skip.command) for skip in skips}
    still = {id(command) for command in live.execution.outstanding()}
    left = [command for command in asked if id(command) not in done]
    return [command for command in left if type(command) is RunStep or id(command) in still]


def _decline(live: LiveTree, run: Run, events: list[AnyEvent], lacks: str, reason: str, worker: str) -> None:
    """Release a tree that newer code has moved: a worker that has that code goes on with it."""
    why = (
        f"run {run.id} was moved on by code that has the change {lacks!r}; worker {worker} does not know it; "
        f"start a worker with that code"
    )
    log.warning("%s\n%s", why, reason, extra=run_fields(run.id, run.workflow))
    # The same for all workers that decline it, so that each of them can see that nothing has moved since.
    moved_at = next(event.at for event in reversed(events) if not isinstance(event, RunClaimed | RunReleased))
    live.reset_to(run)
    live.decline(why, moved_at=moved_at)
