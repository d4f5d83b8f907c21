"""How a claimed tree comes into memory: its journal is replayed.

A tree that cannot be rebuilt, or may not, is parked with the reason, from its row alone: what is wrong with one run
does not touch another. One that newer code has moved is released, for workers that have that code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from itertools import chain, islice

from outlive._kernel.journal.codec import NO_ROWS, Row, next_digest, open_rows
from outlive._kernel.journal.event import AnyEvent, RunClaimed, RunReleased, SnapshotTaken, StepIntended
from outlive._kernel.journal.fold import Fold
from outlive._kernel.journal.history import blobs_of
from outlive._kernel.model import Run
from outlive._kernel.replay.command import CancelStep, Command, Emit, Park, RunStep
from outlive._kernel.replay.feeding import feed_again
from outlive._kernel.runtime.tree.claim_data import payloads_of
from outlive._kernel.runtime.tree.events import is_new, resumed_by
from outlive._kernel.runtime.tree.holding import cancels_root
from outlive._kernel.runtime.tree.interrupted import interrupted_before
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.runtime.tree.phase import TreePhase
from outlive._kernel.runtime.tree.skipping import Skip, SkipRefused, skips_of
from outlive._kernel.store.contract import Claim, InboxMessage, MessageKind
from outlive.errors import OutliveError
from outlive.errors.base import message_of
from outlive.telemetry import log, run_fields

FOR_PARKED = (MessageKind.RESUME, MessageKind.SKIP, MessageKind.PAUSE)
"""The messages of a person to a run that is parked, or is to be."""
ROWS_LOOKED_AT_MAX = 500
"""Rows that are searched for blobs at once."""


class Replay:
    """The replay of one claimed tree. It stops after each event, so that it can be done in slices.

    A tree that cannot be replayed is parked with the reason why that cannot or may not be done. Steps that requests in
    its inbox are about are skipped. A run that is cancelled as well goes on to its end, whether or not the requests fit
    and can be read.
    """

    def __init__(
        self,
        live: LiveTree,
        claim: Claim,
        rows: list[Row],
        inbox: list[InboxMessage],
        *,
        blobs_max: int,
        reason_to_park: Callable[[Claim, list[Row], list[InboxMessage]], str],
        worker: str,
        is_bounded: bool = False,
    ) -> None:
        self.live, self.claim, self.rows, self.inbox = live, claim, rows, inbox
        self.since_at = live.clock.now()
        self.lacking: set[str] = set()
        """The blobs that the next events need and that are not in memory: read them before the next slice."""
        self.skipped = 0
        """How many steps were skipped."""
        self._blobs_max = blobs_max
        self._reason_to_park = reason_to_park
        self._worker, self._is_bounded = worker, is_bounded
        self._events: list[AnyEvent] = []
        self._fed = 0
        self._steps = self._rebuild()

    @property
    def done(self) -> int:
        """How many events were replayed. Reading one and feeding it are half of that each."""
        return (len(self._events) + self._fed) // 2

    def advance(self, is_over: Callable[[], bool]) -> bool:
        """Go on until the slice is over, blobs are lacking, or the end; whether it is at its end."""
        assert asyncio.current_task() is None, "executions are fed from plain callbacks only"
        self.lacking = set()
        return all(not (self.lacking or is_over()) for _ in self._steps)

    def _rebuild(self) -> Iterator[None]:
        live, run, inbox = self.live, self.claim.run, self.inbox
        skip_requests = [message for message in inbox if message.kind is MessageKind.SKIP]
        skips: list[Skip] = []
        lacks = ""
        emitted: list[Emit] = []
        try:
            # Asked before anything of the journal is parsed. See `resume_policy`.
            reason = self._reason_to_park(self.claim, self.rows, inbox)
            if not reason:
                digest = NO_ROWS
                for row, event in zip(self.rows, open_rows(self.rows, nonce=run.nonce, run_id=run.id), strict=True):
                    digest = next_digest(NO_ROWS if isinstance(event, SnapshotTaken) else digest, row[2])
                    self._events.append(event)
                    yield
                live.digest = digest
                park = yield from self._feed(emitted)
                live.enter(TreePhase.MOVING)
                self._listen(park, is_skipped=bool(skip_requests))
                reason, lacks = (park.reason, park.lacks) if park is not None else ("", "")
            if not reason:
                for command in emitted:
                    live.emit(command)
                asked = live.execution.outstanding()
                try:
                    skips = skips_of(skip_requests, asked, root_id=live.id, unpack=live.payloads.unpack)
                except (OutliveError, SkipRefused):
                    if not cancels_root(inbox):
                        raise
                if self._is_bounded:
                    live.moved_at = moved_at(self._events)
                _skip(live, skips, skip_requests)
                live.follow_all(_left_of(live, asked, skips) if skips else asked)
        except (OutliveError, SkipRefused) as error:
            reason = message_of(error)
        except Exception as error:  # Anything else is a bug, or the user's code: it stops this run only.
            log.exception("run %s could not be replayed", run.id, extra=run_fields(run.id, run.workflow))
            reason = f"it could not be replayed: {type(error).__qualname__}: {error}"
        if live.phase is TreePhase.REPLAYING:
            live.enter(TreePhase.MOVING)
        if lacks:
            _decline(live, run, self._events, lacks, reason, self._worker)
        elif reason:
            live.reset_to(run)
            live.park(reason)
        else:
            self.skipped = len(skips)
        self._events, self.rows = [], []

    def _feed(self, emitted: list[Emit]) -> Generator[None, None, Park | None]:
        """Feed the whole journal; None, or why the code cannot go on with it."""
        # A fold of its own: until the last event is fed, the tree shows the row that was claimed.
        live = self.live
        execution, fold = live.execution, Fold(live.id)
        yield from execution.looking_ahead(self._events)
        if not is_new(self._events):
            # The hooks for what is in the journal were called when it happened; for a new run none was.
            execution.on_stage = None
        for event in self._events:
            if b'"blob"' in self.rows[self._fed][3] and self._find_lacking():
                yield
            self._fed += 1
            fold.apply(event)
            for command in feed_again(execution, event):
                if isinstance(command, Park):
                    return command
                if type(command) is Emit:
                    emitted.append(command)
                elif type(command) is CancelStep:
                    live.interrupted += interrupted_before(command, live)
            yield
        live.fold = fold
        return None

    def _find_lacking(self) -> bool:
        """Whether the next event needs blobs that are not in memory. If so, note these blobs and those
        of the events behind it, up to the limit, and discard the blobs that the run has read."""
        live, next_rows = self.live, islice(self.rows, self._fed, self._fed + ROWS_LOOKED_AT_MAX)
        if blobs_of(self.rows[self._fed : self._fed + 1]) <= live.payloads.blobs.keys():
            return False
        live.payloads.keep_only(chain(live.execution.unread(), payloads_of(self.inbox)))
        for row in next_rows:
            more = self.lacking | blobs_of([row]) - live.payloads.blobs.keys()
            if self.lacking and len(more) > self._blobs_max:
                break
            self.lacking = more
        return True

    def _listen(self, park: Park | None, *, is_skipped: bool) -> None:
        live = self.live
        for frame in live.execution.frames.values():
            live.listen(frame.spec)
        if (
            live.observers is not None
            and park is None
            and (who := resumed_by(self._events, has_skip_request=is_skipped))
        ):
            live.observers.resumed(by=who)


def consume_requests(live: LiveTree, inbox: list[InboxMessage]) -> None:
    """A person's request to resume is good for one claim, whether the run can go on now or is parked again."""
    if live.phase is TreePhase.LEAVING and not live.is_declined:
        live.open_draft().change.consumed += [message.id for message in inbox if message.kind in FOR_PARKED]


def _skip(live: LiveTree, skips: list[Skip], requests: list[InboxMessage]) -> None:
    """Give steps in flight the outcomes that a person asked for, before anything else happens: the requests are about
    the steps that are in flight now, not about later steps."""
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
    live.reset_to(run)
    live.decline(why, moved_at=moved_at(events))


def moved_at(events: list[AnyEvent]) -> int:
    """When a tree last moved. All workers that cannot go on with it find one instant, so that each of them can see that
    nothing has moved since."""
    return next(event.at for event in reversed(events) if not isinstance(event, _NO_MOVES))


_NO_MOVES = (RunClaimed, RunReleased, StepIntended)
"""The events of a worker that takes a tree, does nothing and releases it."""
