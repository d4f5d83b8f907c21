"""What must have come of it, when all faults are over and everything had time to end.

* Everything has ended; results are those of the oracle; the store is whole (`outlive.testing.fsck`).
* What users were answered is so: runs that were started are there, accepted signals reached the run, once (I4, I21).
* The code replays every journal to the same end, and no step was begun before it was durable that it is wanted (I9).
* Every outcome in a journal is that of a step that really ended (I14).
* What a saga booked before it broke was undone, newest first (I27).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from outlive._kernel.journal.event import (
    AnyEvent,
    AskAnswered,
    AskReceived,
    CancelRequested,
    DetachedStarted,
    RunRetried,
    SignalReceived,
    SnapshotTaken,
    StepFailed,
    StepSucceeded,
)
from outlive._kernel.journal.packing import Packer
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Limits, Payload, Run, RunStatus
from outlive._kernel.replay.command import Command, RunStep
from outlive.testing.fsck import check_store
from outlive.testing.rerun import Contradiction, Rerun
from proof.simulation.book import Book
from proof.simulation.ledger import Ledger
from proof.simulation.machines.judge import MachineJudge
from proof.simulation.oracle import is_right
from proof.simulation.play import registry
from proof.simulation.program import Case, Program, each_order
from proof.simulation.server import Server, at_once
from proof.simulation.users import Users
from proof.simulation.world import World


class Judge:
    """Looks at everything once more, from outside."""

    def __init__(self, world: World, server: Server, ledger: Ledger, users: Users) -> None:
        self._world = world
        self._server = server
        self._ledger = ledger
        self._users = users
        self._packer = Packer(Limits())
        self._blobs: Mapping[str, bytes] = server.state.blobs
        """Where the payloads lie that are looked at."""
        self._registry = registry(has_rare=True)
        self._machines = MachineJudge(world, ledger.effects, self._value)
        self._booked: list[tuple[str, int]] = []
        """What sagas booked, in the order of the journals, with the epoch."""
        self._returned_at: dict[int, int] = {}
        """By nonce: the event with which a workflow returned; from then on it is only wound up."""

    @property
    def is_over(self) -> bool:
        """Whether every run has ended and every user has an answer."""
        are_over = all(row.next_at is None for row in self._server.state.schedules.values())
        is_over = not self._server.state.active and self._users.is_answered and are_over
        return is_over and self._server.retention.is_over

    def judge(self, cases: list[Case]) -> None:
        """Complain about everything that is not as it must be."""
        complain, state = self._world.complain, self._server.state
        if not self.is_over:
            for tree in self._server.state.active.values():
                complain(f"run {tree.root.id} has not ended: {tree.root}")
            for row in self._server.state.schedules.values():
                if row.next_at is not None:
                    complain(f"schedule {row.name} is not over")
            if not self._server.retention.is_over:
                complain("runs are left, or blobs of them, that retention should have deleted")
            if not self._users.is_answered:
                complain(f"never answered: {', '.join(self._users.open_requests)}")
            return
        for problem in at_once(check_store(self._server.store)):
            complain(f"fsck: {problem}")
        for book in self._server.books.values():
            # Of a run that was deleted the blobs may be gone too, and of rows that a snapshot has put away.
            has_lost = book.journal not in state.trees or any(isinstance(it, SnapshotTaken) for it in book.events)
            self._blobs = {**self._server.retention.blobs, **state.blobs} if has_lost else state.blobs
            self._read(book)
            self._replay(book)
        self._blobs = {**self._server.retention.blobs, **state.blobs}
        for case in cases:
            self._judge_case(case)
        self._users.schedulers.judge(self._known_runs().values())
        self._server.retention.judge(self._users.keepers.started, self._server.deletions.gone, self._value)

    def _known_runs(self) -> dict[str, Run]:
        """All runs, also those that were deleted."""
        return {**self._server.deletions.gone, **self._server.state.runs}

    def _unpack(self, payload: Payload) -> Stored:
        if payload.blob:
            self._world.sometimes["payload in a blob"] += 1
        return self._packer.unpack(payload, self._blobs)

    def _value(self, payload: Payload) -> Any:
        return msgspec.json.decode(bytes(self._unpack(payload)))

    # -- Journals --------------------------------------------------------------------------------------------

    def _read(self, book: Book) -> None:
        epoch, keys = 0, Counter[tuple[str, str]]()
        for event in book.events[book.copied :]:
            epoch = getattr(event, "epoch", epoch)
            if isinstance(event, StepSucceeded):
                self._read_success(book, event, epoch)
            elif isinstance(event, StepFailed) and event.failure.type.endswith("StepInterruptedError"):
                self._world.sometimes["once step interrupted"] += 1
            elif isinstance(event, SignalReceived) and event.key:
                keys[event.name, event.key] += 1
            elif isinstance(event, DetachedStarted) and event.run_id not in self._known_runs():
                self._world.complain(f"run {event.run_id} was started by {book.root_id} and is not there")
        for (name, key), count in keys.items():
            if count > 1:
                self._world.complain(f"run {book.root_id} got signal {name} {key} {count} times")

    def _read_success(self, book: Book, event: StepSucceeded, epoch: int) -> None:
        name = event.call.rpartition("/")[2].partition("#")[0]
        if name.startswith("outlive."):
            return  # Of a run that retries or forks another one, for a process without its code.
        entry = self._ledger.entries.get((book.nonce, event.run, event.call))
        if entry is None or not entry.ended:
            self._world.complain(f"step {event.call} of {book.root_id} has a result, and it never ended")
        if name == "simulated.book":
            self._booked.append((self._value(event.result), epoch))

    def _replay(self, book: Book) -> None:
        """Also what snapshots have put away: each of them is where a worker may have begun."""
        asked_at: dict[tuple[int, str], int] = {}
        begins = [0, *(seq for seq, event in enumerate(book.events) if seq and isinstance(event, SnapshotTaken))]
        retries = [seq for seq, event in enumerate(book.events) if isinstance(event, RunRetried) and not event.run]
        # Who replays a run that was retried does not see its earlier life: that is replayed by itself.
        lives = [(0, seq) for seq in retries]
        for begin, end in [*lives, *zip(begins, [*begins[1:], None], strict=True)]:
            rerun = _Rerun(book.root_id, resolve=self._registry.workflow, unpack=self._unpack)
            try:
                rerun.feed_all(book.events[begin:end])
            except Contradiction as error:
                self._world.complain(f"the code cannot replay run {book.root_id} from event {begin} on: {error}")
                return
            asked_at |= {call: begin + place for call, place in rerun.asked_at.items() if call not in asked_at}
            if rerun.returned_at is not None:
                self._returned_at[book.nonce] = begin + rerun.returned_at
        for (nonce, run, call), entry in self._ledger.entries.items():
            if nonce != book.nonce:
                continue
            asked = asked_at.get((run, call))
            for durable in entry.durable:
                if asked is None or durable <= asked:
                    self._world.complain(
                        f"step {call} of {book.root_id} was begun when {durable} events were durable, and it is asked "
                        f"for by event {asked}"
                    )

    # -- Runs ------------------------------------------------------------------------------------------------

    def _judge_case(self, case: Case) -> None:
        runs, world = self._server.state.runs, self._world
        run = runs.get(case.id)
        if run is None:
            world.complain(f"run {case.id} was acknowledged and is not there")
            return
        answers = self._users.answers[case.id]
        self._judge_answers(case, run, answers.results)
        if case.machine:
            self._machines.judge(case, run, self._server.books[run.journal])
            self._judge_signals(case)
            if answers.is_cancelled and run.status is not RunStatus.CANCELLED:
                self._check_cancel_unheard(case)
            return
        if run.status is RunStatus.CANCELLED and case.cancel_seconds is not None:
            world.sometimes["cancel came before the end"] += 1
        elif run.status is RunStatus.TIMED_OUT and case.timeout_seconds is not None:
            world.sometimes["run timed out"] += 1
        else:
            if answers.is_cancelled:
                world.sometimes["cancel accepted, and the run had ended"] += 1
                self._check_cancel_unheard(case)
            self._judge_end(run, case.program)
        known = self._known_runs()
        for run_id, program in case.detached.items():
            if run_id in known:
                self._judge_end(known[run_id], program)
        for fork in case.forks:
            self._judge_end(runs[fork.id], case.program)
        self._judge_signals(case)
        self._judge_asks(case, run)
        self._judge_talk(case, run)
        for order in each_order(case.program):
            if order[0] == "saga":
                self._judge_saga(order)

    def _judge_answers(self, case: Case, run: Run, results: list[str]) -> None:
        """A user who waited for the end got what is in the store."""
        ends = {
            RunStatus.CANCELLED: "RunCancelledError",
            RunStatus.TIMED_OUT: "RunTimedOutError",
            RunStatus.FAILED: "RunFailedError",
        }
        given = "" if run.result is None else self._machines.shown_end(run) if case.machine else self._value(run.result)
        end = ends.get(run.status) or given
        for result in results:
            self._world.sometimes["user got the end"] += 1
            if case.is_repaired and result == "RunFailedError":
                self._world.sometimes["user got an end that was taken back"] += 1
            elif result != end:
                self._world.complain(f"a user was answered that {run.id} gave {result}, and the store has {end}")

    def _check_cancel_unheard(self, case: Case) -> None:
        tree = self._server.state.trees[self._server.state.runs[case.id].journal]
        book = self._server.books[tree.journal]
        cancels = [seq for seq, event in enumerate(book.events) if isinstance(event, CancelRequested)]
        heard = [seq for seq in cancels if seq not in book.undone]
        if not heard:
            return
        if self._returned_at.get(book.nonce, heard[0]) < heard[0]:
            # It had returned, and a saga that it left keeps what it booked: there is nothing left to cancel.
            self._world.sometimes["cancel while a run was wound up"] += 1
        else:
            self._world.complain(f"run {case.id} heard of its cancellation, and ended otherwise")

    def _judge_end(self, run: Run, program: Program) -> None:
        if run.status is not RunStatus.SUCCEEDED or run.result is None:
            self._world.complain(f"run {run.id} ended as {run.status.value}: {run.failure or run.reason}")
            return
        result = json.loads(self._value(run.result))
        if not is_right(program, result):
            self._world.complain(f"run {run.id} gave {result}, and its program is {program}")

    def _judge_signals(self, case: Case) -> None:
        """What was accepted is a fact of some generation, or lies in the inbox of a tree that has ended."""
        books = [book for book in self._server.books.values() if book.root_id == case.id]
        found = {
            (event.name, _hashable(self._value(event.payload))) for book in books for event in _signals(book.events)
        }
        for tree in self._server.state.trees.values():
            for message in tree.inbox.values():
                if message.payload is not None and message.name:
                    found.add((message.name, _hashable(self._value(message.payload))))
        for name, payload in self._users.answers[case.id].signals:
            if (name, payload) not in found:
                self._world.complain(f"signal {name} {payload} to {case.id} was accepted, and is lost")

    def _judge_asks(self, case: Case, run: Run) -> None:
        """Every ask has one answer, however often users asked; one that was refused by the end has none."""
        by_ask: dict[tuple[str, int], set[int | str]] = {}
        for name, number, answer in self._users.answers[case.id].asks:
            by_ask.setdefault((name, number), set()).add(answer)
        for (name, number), answers in by_ask.items():
            right: int | str = "odd" if number % 2 else number * 10
            may_be_refused = run.status is not RunStatus.SUCCEEDED or number % 2
            if answers not in ({right}, {"refused"} if may_be_refused else set()):
                self._world.complain(f"ask {name} {number} of {case.id} was answered with {answers}")
            seen = "ask refused by the end" if answers == {"refused"} else "ask answered"
            self._world.sometimes["ask refused by a validator" if answers == {"odd"} else seen] += 1
        books = [book for book in self._server.books.values() if book.root_id == case.id]
        for book in books:
            # The next generation inherits what is open.
            received = Counter((it.name, self._value(it.payload)) for it in book.events if isinstance(it, AskReceived))
            for (name, number), count in received.items():
                if count > 1:
                    self._world.complain(f"ask {name} {number} came to {case.id} {count} times, and all had one key")
        answered = [(it.name, it.key) for book in books for it in book.events if isinstance(it, AskAnswered)]
        for name, key in {each for each in answered if answered.count(each) > 1}:
            self._world.complain(f"ask {name} {key} of {case.id} was answered twice")

    def _judge_talk(self, case: Case, run: Run) -> None:
        """What others were answered, who settle its promises and read its streams."""
        books = [book for book in self._server.books.values() if book.root_id == case.id]
        is_success = run.status is RunStatus.SUCCEEDED and run.result is not None
        result = json.loads(self._value(run.result)) if is_success and run.result is not None else None
        self._users.settlers.judge(case, result, books)
        self._users.readers.judge(case, run, self._server, self._unpack, books)

    def _judge_saga(self, order: list[Any]) -> None:
        _, tag, count, _, breaks = order
        booked = [(name, epoch) for name, epoch in self._booked if name.startswith(f"{tag}/")]
        undone = [(name, epoch) for name, epoch in self._ledger.undone.items() if name.startswith(f"{tag}/")]
        back = [name for name, _ in reversed(booked)]
        allowed = [back] if breaks or len(booked) < count else [[], back]
        if [name for name, _ in undone] not in allowed:
            self._world.complain(f"saga {tag} booked {booked} and undid {undone}")
        if undone:
            self._world.sometimes["saga rolled back"] += 1
            if undone[-1][1] > booked[0][1]:
                self._world.sometimes["saga rolled back by another worker"] += 1


class _Rerun(Rerun):
    """Also tells which event made the code ask for each step, and with which one the workflow returned."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked_at: dict[tuple[int, str], int] = {}
        self.returned_at: int | None = None

    def _take(self, seq: int, commands: list[Command]) -> None:
        super()._take(seq, commands)
        root = self._execution.frames.get(0)
        if root is not None and not root.is_closing:
            self.returned_at = None  # It was retried, if it had returned.
        elif self.returned_at is None and root is not None:
            self.returned_at = seq
        for command in commands:
            if isinstance(command, RunStep):
                self.asked_at.setdefault((command.run, command.call), seq)


def _signals(events: list[AnyEvent]) -> list[SignalReceived]:
    return [event for event in events if isinstance(event, SignalReceived)]


def _hashable(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
