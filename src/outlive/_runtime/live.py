"""A tree of runs that a worker owns: how it comes into memory, from its journal or from nothing.

Once it is there it moves as `motion` says. A tree that cannot be rebuilt, or may not, is parked with the reason, from
its row alone: nothing that is wrong with one run is the trouble of another.
"""

from __future__ import annotations

from collections.abc import Callable

from outlive._journal.codec import Row, open_journal
from outlive._journal.event import AnyEvent, RunClaimed, RunReleased
from outlive._model import Run, RunStatus
from outlive._replay.command import Command, Park, RunStep
from outlive._runtime.fact import is_new, resumed_by
from outlive._runtime.motion import MovingRun
from outlive._runtime.skipping import Skip, SkipRefused, skips_of
from outlive._store.contract import Inbound, MessageKind
from outlive.errors import OutliveError
from outlive.telemetry import log, run_fields

WISHES = (MessageKind.RESUME, MessageKind.SKIP)
"""What a person says to a run that is parked."""


class LiveRun(MovingRun):
    """One tree that this worker owns."""

    __slots__ = ()

    def rebuild(
        self, run: Run, rows: list[Row], *, verdict: Callable[[], str], wishes: list[Inbound], worker: str
    ) -> int:
        """Replay a claimed tree from its journal, or park it with the reason why that cannot or may not be done.

        One that newer code has moved is released instead, for workers that have that code; `worker` is the name of this
        one. Steps that `wishes` are about are skipped; answers how many.
        """
        skips: list[Skip] = []
        lacks = ""
        events: list[AnyEvent] = []
        try:
            # Judged before anything of it is parsed. See `verdict`.
            reason = verdict()
            if not reason:
                events = open_journal(rows, nonce=run.nonce, run_id=run.id)
                park = self._replay(events, wishes)
                reason, lacks = (park.reason, park.lacks) if park is not None else ("", "")
            if not reason:
                asked = self.execution.outstanding()
                skips = skips_of(wishes, asked, root_id=self.id, unpack=self._unpack)
                self._skip(skips, wishes)
                self.follow_all(self._left_of(asked, skips) if skips else asked)
        except (OutliveError, SkipRefused) as error:
            reason = str(error)
        except Exception as error:  # Whatever it is, it is this run's trouble and nobody else's.
            log.exception("run %s could not be replayed", run.id, extra=run_fields(run.id, run.workflow))
            reason = f"it could not be replayed: {type(error).__qualname__}: {error}"
        if lacks:
            self._decline(run, events, lacks, reason, worker)
        elif reason:
            self._reset_to(run)
            self.park(reason)
        return 0 if reason else len(skips)

    def _left_of(self, asked: list[Command], skips: list[Skip]) -> list[Command]:
        """What is left to do of what was asked for. Steps that the run has taken back since are among it: they are
        counted as moving when they are followed, and were counted out when they were taken back."""
        done = {id(skip.command) for skip in skips}
        still = {id(command) for command in self.execution.outstanding()}
        left = [command for command in asked if id(command) not in done]
        return [command for command in left if type(command) is RunStep or id(command) in still]

    def _skip(self, skips: list[Skip], wishes: list[Inbound]) -> None:
        """Answer steps in flight as a person wants, before anything else happens: what comes of that is not in flight
        yet, and nobody has asked to skip it."""
        for skip in skips:
            if self.execution.expects(skip.command.run, skip.command.call):
                self.happen(skip.event(self.pack, at=self.clock.now()))
        if skips:
            self.open_draft().change.consumed += [wish.id for wish in wishes]

    def _replay(self, events: list[AnyEvent], wishes: list[Inbound]) -> Park | None:
        """Feed the whole journal; None, or why the code cannot go on with it."""
        self.fold.runs.clear()
        self.execution.foresee(events)
        if not is_new(events):
            # What the journal has of it was told when it happened. Of a run that is new nobody has heard.
            self.execution.listener = None
        park = self._feed_all(events)
        for frame in self.execution.frames.values():
            self.listen(frame.spec)
        if self.hearing is not None and park is None and (who := resumed_by(events, has_wish=bool(wishes))):
            self.hearing.resumed(by=who)
        return park

    def _feed_all(self, events: list[AnyEvent]) -> Park | None:
        for event in events:
            self.fold.apply(event)
            for command in self.execution.feed(event):
                if isinstance(command, Park):
                    return command
        return None

    def reclaimed(self, run: Run) -> None:
        """Claimed again while it was still in memory."""
        self.seq += 1
        self.execution.events += 1
        self.fold.events += 1
        self.fold.runs[0] = run
        self.is_over = False

    def _decline(self, run: Run, events: list[AnyEvent], lacks: str, reason: str, worker: str) -> None:
        """Release a tree that newer code has moved: a worker that has that code goes on with it."""
        why = (
            f"run {run.id} was moved on by code that has the change {lacks!r}; worker {worker} does not know it; "
            f"start a worker with that code"
        )
        log.warning("%s\n%s", why, reason, extra=run_fields(run.id, run.workflow))
        # The same for all workers that decline it, so that each of them knows that nothing has moved since.
        moved_at = next(event.at for event in reversed(events) if not isinstance(event, RunClaimed | RunReleased))
        self._reset_to(run)
        self.decline(why, moved_at=moved_at)

    @property
    def is_declined(self) -> bool:
        """Whether it was released because newer code has moved it."""
        root = self.fold.root
        return root.status is RunStatus.PENDING and bool(root.reason)

    def _reset_to(self, run: Run) -> None:
        """Forget what a replay has led to: what is said of the tree next is said of its row alone."""
        if self.draft is not None:
            self.seq = self.draft.change.after
            self.draft = None
        self.fold.runs[0] = run

    def spend_resumes(self, mail: list[Inbound]) -> None:
        """A person's wish is spent by this claim, whether the run can go on now or is parked again."""
        if self.is_over and not self.is_declined:
            draft = self.open_draft()
            draft.change.consumed += [message.id for message in mail if message.kind in WISHES]
