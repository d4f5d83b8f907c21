"""What the steps did to the world: every beginning and end, by whom, in which epoch, and whether that was allowed.

The ledger asks the books of the store what was durable at that very instant:

* a step whose outcome was durable before its worker claimed the tree is never begun again (I13);
* an attempt that is in the journal as failed is not made again, none is made before the one before it has failed, and
  none beyond the budget: so the budget survives every crash;
* a step that may be called only once is begun once (I18);
* a worker whose lease has run out begins nothing new (I17);
* no ordinary step begins in a run that has heard of its cancellation (I24);
* no step begins in a run that is parked, nor in a process that knows that the run or its workflow is paused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from outlive._kernel.model import RunStatus
from outlive._kernel.model.policy import NO_RETRY, is_last
from outlive._kernel.replay.command import StepKind
from outlive._kernel.runtime.tree.attempt import Attempt
from proof.simulation.book import Book
from proof.simulation.loop import SimulatedLoop
from proof.simulation.machines.effects import Effects
from proof.simulation.machines.limits import LimitAudit
from proof.simulation.world import World

PAUSE_SECONDS = 0.5
"""So long after its process was answered that a run or its workflow is paused a step may begin: it was on its way."""
Call = tuple[int, int, str]
"""The nonce of a tree, the number of a run in it, and its call."""


@dataclass(slots=True)
class Entry:
    """What was done for one call of a step."""

    begun: list[tuple[int, int, str]] = field(default_factory=list)
    """Epoch, attempt and process of each beginning."""
    ended: int = 0
    durable: list[int] = field(default_factory=list)
    """How many events the journal had at each beginning."""


class Ledger:
    """The world outside, as the steps of all processes see it."""

    def __init__(
        self,
        world: World,
        books: dict[int, Book],
        is_live: Callable[[SimulatedLoop], bool],
        paused_for: Callable[[SimulatedLoop, Book], float],
    ) -> None:
        self._world = world
        self._books = books
        self._is_live = is_live
        self._paused_for = paused_for
        self.entries: dict[Call, Entry] = {}
        self.keys: dict[str, Call] = {}
        self.undone: dict[str, int] = {}
        """What was undone, in the order in which that first ended, and in which epoch."""
        self.promises: dict[str, str] = {}
        """The ids of promises, by their names."""
        self.repaired: set[str] = set()
        """What fails no more."""
        self.effects = Effects(world)
        """What machines did, and took back."""
        self.limits = LimitAudit(world)
        self.is_poisonous = True
        self.begun_in_queue: Callable[[], None] = lambda: None
        """Called when a step of a run in a queue has begun."""
        self._running: Counter[tuple[SimulatedLoop, int]] = Counter()

    def is_stepping(self, loop: SimulatedLoop, book: Book) -> bool:
        """Whether a process runs a step of a tree."""
        return self._running[loop, book.nonce] > 0

    def is_busy(self, loop: SimulatedLoop) -> bool:
        """Whether a process runs any step."""
        return any(count > 0 and at is loop for (at, _), count in self._running.items())

    def begin(self, loop: SimulatedLoop, attempt: Attempt) -> None:
        """A step begins to do something."""
        command = attempt.command
        call = attempt.nonce, command.run, command.call
        entry = self.entries.setdefault(call, Entry())
        run_id = attempt.context().run_id
        self._world.note(
            loop.name, "begin %s %s attempt %s epoch %s", run_id, command.call, command.attempt, attempt.epoch
        )
        book = self._books.get(attempt.nonce)
        what = f"{loop.name} began {command.call} of {run_id} (attempt {command.attempt}, epoch {attempt.epoch})"
        if book is None:
            self._world.complain(f"{what}, and the run is not durable")
            return
        self._check(what, loop, attempt, book, entry)
        if self.keys.setdefault(attempt.idempotency_key, call) != call:
            self._world.complain(f"{what} with the idempotency key of another call")
        entry.begun.append((attempt.epoch, command.attempt, loop.name))
        entry.durable.append(len(book.events))
        self._running[loop, attempt.nonce] += 1
        if book.fold.root.queue:
            self.begun_in_queue()

    def _check(self, what: str, loop: SimulatedLoop, attempt: Attempt, book: Book, entry: Entry) -> None:
        command = attempt.command
        key = command.run, command.call
        complain, sometimes = self._world.complain, self._world.sometimes
        ended_in = book.outcomes.get(key)
        if ended_in is not None and ended_in <= attempt.epoch:
            complain(f"{what}, and its outcome is durable since epoch {ended_in}")
        failed = book.attempts.get(key, {})
        if failed.get(command.attempt, attempt.epoch + 1) <= attempt.epoch:
            complain(f"{what}, and the journal has that attempt as failed")
        # An undo that has used them up parks its run, and a person who resumes the run gives it one more.
        retry = command.options.retry or NO_RETRY
        if is_last(retry, command.attempt - 1) and not command.options.parks:
            complain(f"{what}, and its budget is {retry.attempts}")
        if command.attempt > 1 and command.attempt - 1 not in failed:
            complain(f"{what}, and the attempt before is not in the journal")
        if command.attempt > 1 and failed.get(command.attempt - 1, attempt.epoch) < attempt.epoch:
            sometimes["retry after a take-over"] += 1
        if command.step.kind is StepKind.ONCE and any(epoch > book.retried_in for epoch, _, _ in entry.begun):
            complain(f"{what}, and it may be begun only once")
        is_saga = command.options.undo is not None or command.options.parks
        if book.cancels.get(command.run, attempt.epoch + 1) <= attempt.epoch and not is_saga:
            complain(f"{what}, and the run was cancelled before")
        if book.fold.root.status is RunStatus.PARKED and book.epoch <= attempt.epoch:
            complain(f"{what}, and the run is parked: {book.fold.root.reason}")
        if attempt.epoch == book.epoch and self._paused_for(loop, book) > PAUSE_SECONDS:
            complain(f"{what}, and its process knows that the run is paused")
        # When the clock of the store is set forward, leases end that their holders could not know of.
        if not self._is_live(loop) and not self._world.skew_seconds:
            complain(f"{what}, and its lease has run out")
        if any(epoch < attempt.epoch for epoch, _, _ in entry.begun):
            sometimes["interrupted step begun again"] += 1

    def posted(self, name: str, promise_id: str) -> None:
        """A run sends the id of a promise, which is the same in every process that plays the run."""
        if self.promises.setdefault(name, promise_id) != promise_id:
            self._world.complain(f"promise {name} has the id {promise_id}, and had {self.promises[name]}")

    def end(self, loop: SimulatedLoop, attempt: Attempt) -> None:
        """A step has done it."""
        self.stop(loop, attempt)
        self.entries[attempt.nonce, attempt.command.run, attempt.command.call].ended += 1

    def stop(self, loop: SimulatedLoop, attempt: Attempt) -> None:
        """A step does it no more."""
        self._running[loop, attempt.nonce] -= 1
