"""The users: they start runs, signal, ask, cancel and approve, through any process that is up, until that is answered.
Those who settle promises, read streams, retry, fork and pause have files of their own.

What was acknowledged is written down; at the end it must be there (I4). A user whose process dies, or who gets an
error, asks again elsewhere with the same id or key, as the guides tell users to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from outlive._kernel.define.workflow import Workflow
from outlive._kernel.model import Run
from outlive._kernel.values.run import ENDED
from outlive.errors import (
    AskFailedError,
    EngineClosedError,
    RunCancelledError,
    RunFailedError,
    RunFinishedError,
    RunNotFoundError,
    RunParkedError,
    RunTimedOutError,
    StoreUnavailableError,
)
from outlive.errors.run import ApprovalClosedError, ApprovalNotFoundError, AskRefusedError
from proof.simulation.forks import Forkers
from proof.simulation.keepers import Keepers
from proof.simulation.ledger import Ledger
from proof.simulation.loop import SimulatedLoop
from proof.simulation.machines.play import PLAYED, shown_end
from proof.simulation.machines.trip import Trip
from proof.simulation.pauses import Pausers
from proof.simulation.play import QUEUED, play, rare
from proof.simulation.process import Process, SimulatedEngine
from proof.simulation.program import Case, Question, Signal
from proof.simulation.promises import Settlers
from proof.simulation.purges import Purgers
from proof.simulation.request import NotYetError, UserRequest, Verb
from proof.simulation.retries import Repairers
from proof.simulation.schedules import Schedulers
from proof.simulation.streams import Readers
from proof.simulation.world import World

RETRY_SECONDS = 1.0


@dataclass(slots=True)
class Answers:
    """What users were answered about one run."""

    signals: list[tuple[str, int | str]] = field(default_factory=list)
    """Accepted, in this order."""
    results: list[str] = field(default_factory=list)
    """What users got who waited for the result."""
    asks: list[tuple[str, int, int | str]] = field(default_factory=list)
    """What was asked, by name and number, and what was answered."""
    is_cancelled: bool = False
    is_too_late: bool = False
    """Whether the cancel came when the run had ended."""


def key_of(signal: Signal) -> str:
    """A signal that is sent twice with this key is received once."""
    return f"{signal.name}/{signal.payload}"


def _what(case: Case) -> tuple[Workflow[..., Any], Any]:
    """What is started, and with what."""
    if case.machine:
        return PLAYED[case.machine], Trip(case.program)
    if case.queue:
        return QUEUED[case.queue], json.dumps(case.program)
    return rare if case.is_rare else play, json.dumps(case.program)


class Users:
    """All users."""

    def __init__(
        self,
        world: World,
        ledger: Ledger,
        processes: Callable[[], list[Process]],
        roots: Callable[[], Iterable[Run]],
    ) -> None:
        self._world = world
        self._processes = processes
        self._random = world.new_random("users")
        self._open: list[UserRequest] = []
        self.answers: dict[str, Answers] = {}
        self.repairers = Repairers(world, ledger, self._later)
        self.settlers = Settlers(world, ledger, self._later, may_go_on=self.repairers.may_go_on)
        self.readers = Readers(world, self._later, may_go_on=self.repairers.may_go_on)
        self.forkers = Forkers(world, self._later)
        self.pausers = Pausers(world, self._later)
        self.schedulers = Schedulers(world, self._later, roots)
        self.purgers = Purgers(world, self._later)
        self.keepers = Keepers(self._later)

    @property
    def is_answered(self) -> bool:
        """Whether every request was done, or refused for good."""
        return not self._open

    @property
    def open_requests(self) -> list[str]:
        """What users still wait for."""
        return [request.what for request in self._open]

    def open(self, case: Case) -> None:
        """Begin with a run."""
        self.answers[case.id] = Answers()
        if case.is_signalled:
            # The signal is what creates it; the answer to it is the answer to the start.
            first = case.signals[0]
            request = UserRequest(
                f"signal {first.name} and start {case.id}", self._start_by(case, first), lambda: self._started(case)
            )
            self._later(case.start_seconds, request)
            return
        for number in range(case.starters):
            # All but the first are people who press the button twice.
            then = (lambda: self._started(case)) if number == 0 else (lambda: None)
            spread = number * self._random.random()
            self._later(case.start_seconds + spread, UserRequest(f"start {case.id}", self._start(case), then))

    def _start(self, case: Case) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            workflow, argument = _what(case)
            slots = case.slots if case.slots > 1 else None
            seconds = case.timeout_seconds
            await engine.start(workflow, argument, id=case.id, timeout=seconds, key=case.key or None, slots=slots)

        return verb

    def _start_by(self, case: Case, signal: Signal) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            await engine.signal(case.id, signal.name, signal.payload, key=key_of(signal), start=_what(case))
            self.answers[case.id].signals.append((signal.name, signal.payload))

        return verb

    def _started(self, case: Case) -> None:
        for others in (self.repairers, self.settlers, self.readers, self.forkers, self.pausers):
            others.open(case)
        for number in range(case.waiters):
            self._later(number * 5.0, UserRequest(f"result of {case.id}", self._wait(case)))
        for name in {signal.name: None for signal in case.signals}:
            self._send([signal for signal in case.signals if signal.name == name], case)
        if case.cancel_seconds is not None:
            self._later(case.cancel_seconds, UserRequest(f"cancel {case.id}", self._cancel(case)))
        for approval in case.approvals:
            self._later(self._random.random() * 10, UserRequest(f"approve {approval}", self._approve(case, approval)))
        for question in case.asks:
            for copy in range(question.copies):
                seconds = question.after_seconds + copy * self._random.random()
                what = f"ask {question.name} {question.number}"
                self._later(seconds, UserRequest(what, self._put(case, question)))

    def _put(self, case: Case, question: Question) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            name, number = question.name, question.number
            answer: int | str
            try:
                answer = await engine.ask(case.id, name, number, key=str(number), reply=int)
            except AskRefusedError:
                answer = "refused"
            except AskFailedError as error:
                answer = str(error.__cause__)
            self.answers[case.id].asks.append((name, number, answer))

        return verb

    def _send(self, signals: list[Signal], case: Case) -> None:
        if not signals:
            return
        first, *rest = signals
        for copy in range(first.copies):
            then = (lambda: self._send(rest, case)) if copy == 0 else (lambda: None)
            request = UserRequest(
                f"signal {first.name} {first.payload}", self._signal(case, first, is_first=copy == 0), then
            )
            self._later(first.after_seconds + copy * self._random.random(), request)

    def _signal(self, case: Case, signal: Signal, *, is_first: bool) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            try:
                await engine.signal(case.id, signal.name, signal.payload, key=key_of(signal))
            except RunFinishedError:
                if self.repairers.may_go_on(case):
                    raise NotYetError from None
                return
            if is_first:
                self.answers[case.id].signals.append((signal.name, signal.payload))

        return verb

    def _cancel(self, case: Case) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            answers = self.answers[case.id]
            try:
                await engine.cancel(case.id, reason="a user wants it")
                answers.is_cancelled = True
            except RunFinishedError:
                answers.is_too_late = True
                self._world.sometimes["cancel came after the end"] += 1

        return verb

    def _wait(self, case: Case) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            try:
                handle = engine.get(case.id)
                heard = shown_end(await handle.result()) if case.machine else await handle.result()
            except (RunCancelledError, RunTimedOutError, RunFailedError) as error:
                heard = type(error).__name__
            self.answers[case.id].results.append(heard)

        return verb

    def _approve(self, case: Case, name: str) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            try:
                await engine.approvals.approve(case.id, name, by="ann")
            except ApprovalNotFoundError:
                # The run has not asked yet, or never will.
                status = await engine.get(case.id).status()
                if status not in ENDED or self.repairers.may_go_on(case):
                    raise
            except (ApprovalClosedError, RunFinishedError):
                # It went another way meanwhile.
                if self.repairers.may_go_on(case):
                    raise NotYetError from None

        return verb

    # -- Asking until it is done -----------------------------------------------------------------------------

    def _later(self, seconds: float, request: UserRequest) -> None:
        self._open.append(request)
        self._world.after(seconds, self._try, request)

    def _try(self, request: UserRequest) -> None:
        up = [process for process in self._processes() if process.is_up]
        if not up:
            self._world.after(RETRY_SECONDS, self._try, request)
            return
        process = self._random.choice(up)
        request.at = process.loop
        loop = process.loop
        loop.call_soon(lambda: loop.kept.append(loop.create_task(self._ask(request, process), name=request.what)))

    async def _ask(self, request: UserRequest, process: Process) -> None:
        assert process.engine is not None
        try:
            await request.verb(process.engine)
        except (StoreUnavailableError, EngineClosedError, ApprovalNotFoundError, RunParkedError, NotYetError) as error:
            self._world.note(process.name, "%s: %s", request.what, type(error).__name__)
            request.at = None
            self._world.after(RETRY_SECONDS, self._try, request)
        except RunNotFoundError as error:
            self._world.complain(f"{request.what}: {error}, and its start was acknowledged")
        except Exception as error:
            self._world.complain(f"{request.what}: a user got {error!r}")
        else:
            self._world.note(process.name, "%s: acknowledged", request.what)
            self._open.remove(request)
            request.then()

    def died(self, loop: SimulatedLoop) -> None:
        """A process is gone: its users ask elsewhere."""
        for request in self._open:
            if request.at is loop:
                request.at = None
                self._world.after(RETRY_SECONDS, self._try, request)
