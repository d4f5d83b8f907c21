"""The store of the simulation: the memory store, whole at every instant, with an auditor at its door.

It does one verb at a time and answers at once; how long a request travels and what is lost on the way is not its
business. Whatever it writes is checked there and then against what a store and its workers promise:

* what is durable stays as it is, without a gap, and every row is the fold of its journal (I1, I6, I7);
* each claim raises the epoch by one, and only the owner of a tree writes into its journal (I2, I3, I17);
* what was acknowledged is there (I4), which the judge asks at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from outlive._kernel.client.closing import is_at_rest
from outlive._kernel.journal.codec import Row
from outlive._kernel.journal.event import (
    AnyEvent,
    Ending,
    RunClaimed,
    RunForked,
    RunParked,
    RunRetried,
    SnapshotTaken,
    StepSucceeded,
)
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model.pause import EVERYTHING, PAUSED, Pauses
from outlive._kernel.model.run import HELD
from outlive._kernel.store.contract import (
    Change,
    Claims,
    Delivery,
    InboxMessage,
    Message,
    MessageKind,
    Outcome,
    WorkerInfo,
)
from outlive._kernel.store.memory import MemoryStore
from outlive._kernel.store.memory.state import MemoryState
from outlive._kernel.store.schedules import ScheduleChange
from outlive._kernel.store.streams import Appended, StreamAppend
from outlive.testing.crash.journal import title
from proof.simulation.book import Book
from proof.simulation.deletions import DeletionAudit
from proof.simulation.loop import SimulatedLoop
from proof.simulation.plan import Keeping
from proof.simulation.queues import QueueAudit
from proof.simulation.retention import RetentionAudit
from proof.simulation.weather import Fate
from proof.simulation.world import World

NOTICE_SECONDS_MAX = 0.02
_DONE = Outcome.COMMITTED
_PAUSES = (MessageKind.PAUSE, MessageKind.RESUME)


class Server:
    """The one store that all simulated processes share."""

    def __init__(self, world: World, *, rings: bool = True, keeping: Keeping | None = None) -> None:
        self._world = world
        self.state = MemoryState()
        self.store = MemoryStore(clock=world.now, state=self.state)
        self.books: dict[int, Book] = {}
        self.nonces: dict[int, Book] = {}
        self._sessions: dict[str, SimulatedLoop] = {}
        self._held_until: dict[SimulatedLoop, float] = {}
        """When the lease of each process ends, unless it is ended before."""
        self._watchers: list[tuple[SimulatedLoop, Callable[[], None]]] = []
        self._random = world.new_random("store")
        self._rings = rings
        """Whether it tells the workers that something may be due, as PostgreSQL does."""
        self._wanted: dict[SimulatedLoop, set[int]] = {}
        self._unanswered: dict[tuple[SimulatedLoop, int], Fate] = {}
        self._pauses: dict[SimulatedLoop, dict[str, float]] = {}
        """The pauses of workflows that each process knows, and since when."""
        self._held: dict[tuple[SimulatedLoop, int, int], float] = {}
        """Trees that each process knows to be paused, in which epoch, and since when."""
        self.queues = QueueAudit(world, self.roots)
        self.deletions = DeletionAudit(world, self.state)
        self.retention = RetentionAudit(world, self.state, keeping)
        self.looked: Callable[[], None] = lambda: None
        """Called after each write that was looked at."""
        self._read: dict[tuple[SimulatedLoop, int], set[int]] = {}
        """How long the journals were that each process has read."""
        self._done: set[tuple[SimulatedLoop, int, int]] = set()
        """What is durable and was not answered: the process that wrote it must look before it writes it again."""
        self.is_stepping: Callable[[SimulatedLoop, Book], bool] = lambda loop, book: False
        """Whether a process runs a step of a tree, as the ledger knows it."""
        self.cell_changed: Callable[[SimulatedLoop | None, str, bytes | None, Any], None] = lambda *args: None
        """Called with what became of a cell, what was answered, and the process that gets the answer, if any does."""

    # -- Pauses ----------------------------------------------------------------------------------------------

    def heard_message(self, loop: SimulatedLoop, inboxes: Mapping[int, Sequence[InboxMessage]]) -> None:
        """A process was answered which messages wait for its trees: it may have to begin nothing more in some."""
        for journal, inbox in inboxes.items():
            words = [it.kind for it in inbox if it.kind in _PAUSES or (it.kind is MessageKind.CANCEL and not it.run)]
            if words[-1:] == [MessageKind.PAUSE]:
                self._held.setdefault((loop, journal, self.books[journal].epoch), self._world.seconds)
            elif words:
                self._held.pop((loop, journal, self.books[journal].epoch), None)

    def heard_pauses(self, loop: SimulatedLoop, pauses: Pauses) -> None:
        """A process was answered which workflows are paused."""
        known = self._pauses.get(loop, {})
        self._pauses[loop] = {name: known.get(name, self._world.seconds) for name in pauses}

    def forget_pauses(self, loop: SimulatedLoop) -> None:
        """A process stood still: what it was answered may be older than what it does."""
        self._pauses.pop(loop, None)
        self._held = {key: since for key, since in self._held.items() if key[0] is not loop}

    def paused_for(self, loop: SimulatedLoop, book: Book) -> float:
        """For how many seconds a process has known that a run is paused, by itself or with its workflow; 0 if it does
        not know that."""
        known = self._pauses.get(loop, {})
        since = [known[name] for name in (book.fold.root.workflow, EVERYTHING) if name in known]
        since += [self._held[key] for key in [(loop, book.journal, book.epoch)] if key in self._held]
        return self._world.seconds - min(since) if since else 0.0

    def complain(self, what: str) -> None:
        """See `Record`."""
        self._world.complain(what)

    def happened(self, what: str) -> None:
        """See `Record`."""
        self._world.sometimes[what] += 1

    def is_dead(self, worker_id: str) -> bool:
        """Whether the process of a session is no more."""
        loop = self._sessions.get(worker_id)
        return loop is not None and loop.is_dead

    def is_live(self, loop: SimulatedLoop) -> bool:
        """Whether a process holds a lease that has not run out by the store's own clock.

        One that another process has ended counts: its holder learns that with the next beat.
        """
        return self._held_until.get(loop, 0.0) > self._world.seconds

    # -- What the processes ask ------------------------------------------------------------------------------

    def watch(self, loop: SimulatedLoop, ring: Callable[[], None]) -> None:
        """Tell a process when something may be due."""
        self._watchers.append((loop, ring))

    def renew(self, worker_id: str, *, lease_seconds: float) -> bool:
        """Extend a lease."""
        worker = self.state.workers.get(worker_id)
        is_expired = worker is not None and worker.expires_at <= self._world.now()
        is_ours = self.store.extend_lease(worker_id, lease_seconds, renewed=0) is not None
        if is_ours:
            self._held_until[self._sessions[worker_id]] = self._world.seconds + lease_seconds
            if is_expired:
                self.happened("lease renewed after its end")
        return is_ours

    def sent(self, loop: SimulatedLoop, verb: str, args: tuple[Any, ...]) -> None:
        """A request is on its way: what is there to be had now may be gone when it arrives."""
        if verb == "claim_runs":
            now = self._world.now()
            found = self.store._list_claimable(args[1])
            self._wanted[loop] = {journal for wake_at, journal, _ in found if wake_at <= now}
        elif verb == "read_journal" and self._unanswered:
            fate = self._unanswered.pop((loop, args[0]), None)
            if fate is not None:
                self.happened("unknown commit resolved as " + ("done" if fate is Fate.UNANSWERED else "not done"))

    def unanswered(self, loop: SimulatedLoop, verb: str, args: tuple[Any, ...], fate: Fate, done: Any) -> None:
        """The sender will not learn what became of a request; `done` is the answer that was lost, if it was done."""
        self.happened(f"{verb} {fate.value}")
        if verb == "commit":
            for change in args[0]:
                if change.forgets is not None:
                    self.happened(f"snapshot {fate.value}")
                if change.journal:
                    self._unanswered[loop, change.journal] = fate
            # A change that was refused is not there: who looks for it finds nothing, and may try again.
            self._done |= {
                _mark(loop, change)
                for change, (outcome, _) in zip(args[0], done or (), strict=False)
                if outcome is Outcome.COMMITTED
            }

    def do(
        self,
        loop: SimulatedLoop,
        verb: str,
        args: tuple[Any, ...],
        options: dict[str, Any],
        *,
        is_late: bool = False,
        is_heard: bool = True,
    ) -> Any:
        """Do a verb, here and now; a late one was sent before its sender got "outcome unknown".

        `is_heard` is whether the sender will have the answer.
        """
        if verb == "commit":
            if not is_late:
                self._check_looked(loop, args[0])
            return self._commit(loop, args[0])
        revisions = {name: row.revision for name, row in self.state.schedules.items()}
        trees = self.deletions.begin(args[0]) if verb == "delete_trees" else {}
        blobs = dict(self.state.blobs) if verb == "delete_blobs" else {}
        answer = at_once(getattr(self.store.examiner if verb == "list_cells" else self.store, verb)(*args, **options))
        if verb == "read_journal":
            self._read.setdefault((loop, args[0]), set()).add(len(answer))
        elif verb == "change_cell":
            self.cell_changed(loop if is_heard else None, args[0], self.state.cells.get(args[0]), answer)
            self.retention.cell_changed(args[0], self.state.cells.get(args[0]))
        elif verb == "claim_runs":
            self._claimed(loop, args, options, answer)
        elif verb == "delete_trees":
            self.deletions.end(trees, answer, ended_before=options["ended_before"])
            self.retention.trees_deleted([trees[journal] for journal in answer])
        elif verb == "delete_blobs":
            self.retention.blobs_deleted(blobs)
        elif verb == "append_streams":
            self._appended(loop, args[0], answer)
        elif verb == "change_schedules":
            self._check_revisions(loop, revisions, args[0], answer)
            self._catch_up(loop)
            self._ring()
        elif verb == "deliver":
            self._delivered(loop, args[0], answer)
        elif verb == "register_worker":
            self._held_until[loop] = self._world.seconds + options["lease_seconds"]
            self._registered(loop, args[0])
        return answer

    # -- What is looked at -----------------------------------------------------------------------------------

    def _check_looked(self, loop: SimulatedLoop, changes: Sequence[Change]) -> None:
        for change in changes:
            if _mark(loop, change) in self._done:
                self.complain(f"{loop.name} wrote again, without looking, what was durable in journal {change.journal}")

    def _commit(self, loop: SimulatedLoop, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        before = {change.journal: self._owner(change.journal) for change in changes}
        outcomes: list[tuple[Outcome, int]] = at_once(self.store.commit(changes))
        for change, (outcome, journal) in zip(changes, outcomes, strict=True):
            owner, may_be_ended = before[change.journal]
            is_owner = self._sessions.get(owner) is loop
            if outcome is Outcome.CONFLICT:
                self._world.note(loop.name, "conflict in journal %s", change.journal)
                self.happened("writer lost the compare-and-swap")
                if change.journal and not is_owner:
                    self.happened("zombie refused")
                    tree = self.state.trees.get(change.journal)
                    if tree is None:
                        self.happened("zombie found its run deleted")
                    elif change.after < tree.rows[0][0]:
                        self.happened("zombie found its place put away by a snapshot")
            elif change.journal and not is_owner and not may_be_ended and not _may_be_anyones(change, owner):
                who = f"which {owner} owns" if owner else "which no process owns"
                self.complain(f"zombie: {loop.name} wrote into the journal of {self.books[journal].root_id}, {who}")
        self._catch_up(loop, _forgetting(changes, outcomes))
        if any(not change.journal or change.starts or change.messages for change in changes):
            self._ring()
        return outcomes

    def _owner(self, journal: int) -> tuple[str, bool]:
        """Who owns a tree, and whether anybody else may end it."""
        tree = self.state.trees.get(journal)
        return ("", False) if tree is None else (tree.root.owner, is_at_rest(tree.root))

    def _appended(self, loop: SimulatedLoop, appends: Sequence[StreamAppend], answer: Sequence[Appended]) -> None:
        for append, outcome in zip(appends, answer, strict=True):
            book = self.books.get(append.journal)
            is_owner = book is not None and book.epoch == append.epoch
            if outcome is Appended.APPENDED and not is_owner:
                self.complain(f"zombie: {loop.name} appended to stream {append.said.name} in epoch {append.epoch}")
            elif not is_owner:
                self.happened("append to a stream refused")

    def _check_revisions(
        self, loop: SimulatedLoop, known: dict[str, int], changes: Sequence[ScheduleChange], answer: Sequence[Outcome]
    ) -> None:
        """A change of a schedule is made of what is there, or not at all."""
        for change, outcome in zip(changes, answer, strict=True):
            has = known.get(change.name, 0)
            if outcome is not Outcome.COMMITTED:
                self.happened("change of a schedule refused")
                continue
            if has != change.revision:
                self.complain(
                    f"{loop.name} changed revision {has} of schedule {change.name}, and had seen {change.revision}"
                )
            known[change.name] = 0 if change.data is None else change.next_revision

    def _claimed(self, loop: SimulatedLoop, args: tuple[Any, ...], options: dict[str, Any], answer: Claims) -> None:
        worker_id, definitions = args
        # Who holds a slot keeps it; others come out of the line.
        lined = [claim.run for claim in answer.claims if self.books[claim.run.journal].fold.root.slot != HELD]
        got = {claim.run.journal for claim in answer.claims}
        gone = self._wanted.pop(loop, set()) - got
        if any(journal in self.state.active and self._is_other(journal, loop) for journal in gone):
            self.happened("claim race lost")
        for claim in answer.claims:
            book = self.books[claim.run.journal]
            former = self._sessions.get(book.fold.root.owner)
            if former is not None and former is not loop and not former.is_dead:
                self.happened("taken from a worker that lives")
                if self.is_stepping(former, book):
                    self.happened("lease lost while a step ran")
        self._catch_up(loop)
        worker = self.state.workers.get(worker_id)
        is_live = worker is not None and worker.expires_at > self._world.now()
        has_room = is_live and len(answer.claims) < options["limit"]
        declined = options.get("declined", ())
        self.queues.check_claim(worker_id, set(definitions), lined, has_room=has_room, declined=declined)

    def _is_other(self, journal: int, loop: SimulatedLoop) -> bool:
        owner = self.state.trees[journal].root.owner
        return bool(owner) and self._sessions.get(owner) is not loop

    def _delivered(self, loop: SimulatedLoop, messages: Sequence[Message], answer: Sequence[Delivery]) -> None:
        for message, delivery in zip(messages, answer, strict=True):
            self._world.note(loop.name, "%s %s to %s: %s", message.kind.value, message.name, message.run_id, delivery)
            if delivery is Delivery.DUPLICATE:
                self.happened(f"{message.kind.value} sent twice")
            elif message.kind is MessageKind.SIGNAL and delivery is Delivery.ACCEPTED:
                run = self.state.runs[message.run_id]
                is_awaited = not run.waits or any(wait.name == message.name for wait in run.waits)
                if run.status is RunStatus.PENDING or not is_awaited:
                    self.happened("signal before its wait")
        self._catch_up(loop)
        self._ring()

    def _registered(self, loop: SimulatedLoop, worker: WorkerInfo) -> None:
        if any(known is loop for known in self._sessions.values()):
            self.happened("session begun again")
        self._sessions[worker.id] = loop
        self._world.note(loop.name, "session %s", worker.id)

    def roots(self) -> list[Run]:
        """The root runs that are open."""
        return [tree.root for tree in self.state.active.values()]

    def owner_of(self, run: Run) -> SimulatedLoop | None:
        """The process that owns a tree, if it is one that there was."""
        return self._sessions.get(run.owner)

    def _catch_up(self, loop: SimulatedLoop, forgetting: dict[int, list[Row]] | None = None) -> None:
        for journal, tree in list(self.state.trees.items()):
            book = self.books.get(journal)
            if book is None:
                self.deletions.check_new(tree.root)
                book = self.books[journal] = Book(tree, self)
                self.nonces[tree.root.nonce] = book
            elif book.is_current:
                continue
            is_new = not book.events
            for event in book.catch_up((forgetting or {}).get(journal, ())):
                if isinstance(event, RunParked) and event.reason.startswith(PAUSED) and self.is_stepping(loop, book):
                    self.complain(f"{loop.name} paused {tree.root.id} while it ran a step of it")
                self._world.note(loop.name, "%s: %s%s", tree.root.id, title(event), _epoch(event))
            if is_new and book.copied:
                self._check_fork(loop, book)
        self.queues.check()
        self.looked()

    def _check_fork(self, loop: SimulatedLoop, book: Book) -> None:
        """A fork begins with all that its maker has read of the other run, and every result that is in there."""
        (forked,) = [event for event in book.events if isinstance(event, RunForked)][-1:]
        origin = self.books[self.state.runs[forked.origin].journal]
        before = origin.events[: forked.events]
        if origin.generation or any(isinstance(it, SnapshotTaken | RunRetried | RunForked) for it in origin.events):
            return  # It is another journal now, does not begin with its first event, or not all of it stands.
        # Of a run that has ended, all but its end.
        is_ended = any(isinstance(event, Ending) for event in origin.events[forked.events : forked.events + 1])
        if forked.events + is_ended not in self._read.get((loop, origin.journal), ()):
            self.complain(f"fork {book.root_id} has {forked.events} events of {origin.root_id}, and others were read")
        had = {(it.run, it.call) for it in before if isinstance(it, StepSucceeded)}
        has = {(it.run, it.call) for it in book.events[: book.copied] if isinstance(it, StepSucceeded)}
        if had - has:
            self.complain(f"fork {book.root_id} lacks what {origin.root_id} had done: {sorted(had - has)}")
        if had:
            self.happened("fork began with results")

    def _ring(self) -> None:
        if self._rings:
            self._watchers = [(loop, ring) for loop, ring in self._watchers if not loop.is_dead]
            for loop, ring in self._watchers:
                if self._random.random() < 0.8:
                    self._world.after(self._random.random() * NOTICE_SECONDS_MAX, _call_soon, loop, ring)


def _may_be_anyones(change: Change, owner: str) -> bool:
    """Whether a client may write this change: it retries a run that has ended, pauses one that no process owns, or ends
    one of a schedule for the next tick."""
    is_parked = len(change.rows) == len(change.runs) == 1 and change.runs[0].status is RunStatus.PARKED
    is_ended = any(it.status is RunStatus.CANCELLED and it.tags.get("schedule") for it in change.runs if not it.number)
    return change.reopens or (is_parked and not owner) or is_ended


def _epoch(event: AnyEvent) -> str:
    return f" {event.worker} epoch {event.epoch}" if isinstance(event, RunClaimed) else ""


def _call_soon(loop: SimulatedLoop, ring: Callable[[], None]) -> None:
    loop.call_soon(ring)


def _forgetting(changes: Sequence[Change], outcomes: Sequence[tuple[Outcome, int]]) -> dict[int, list[Row]]:
    """The rows that were written into journals which have forgotten some of them by now."""
    done = [(change, journal) for change, (outcome, journal) in zip(changes, outcomes, strict=True) if outcome is _DONE]
    forgetful = {journal for change, journal in done if change.forgets is not None}
    return {journal: [row for change, at in done if at == journal for row in change.rows] for journal in forgetful}


def _mark(loop: SimulatedLoop, change: Change) -> tuple[SimulatedLoop, int, int]:
    seq, _, crc, _ = change.rows[0]
    return loop, seq, crc


def at_once(verb: Coroutine[Any, Any, Any]) -> Any:
    """The memory store never waits for anything."""
    try:
        verb.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the memory store waits for something")
