"""The history of a run up to some event, as the beginning of another one.

The code of the new run is fed with each event that is copied, so what is written is known to replay. Facts of a worker
(claims, releases, parkings) are left out, and so are attempts of steps that had not ended there: the new run makes its
own. Children keep their place in the history and get the numbers that the code gives them now.

A history may be edited: with other arguments of the run, and with other results of steps. From the first edit on an
event is copied only if the code still asks for it with the same arguments, as in a retry (`taking_back`): what the edit
changes is done again. No decision of a person is copied from there on, and people are asked what the code asks now:
what they approved is another run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from outlive._kernel.journal import event as journal
from outlive._kernel.journal.event import AnyEvent, Ending
from outlive._kernel.journal.value import decode_untyped
from outlive._kernel.model import Payload
from outlive._kernel.model.approval import ApprovalRequest
from outlive._kernel.model.wait import DEADLINE
from outlive._kernel.replay.call import ChildCall, RecordCall, StepCall
from outlive._kernel.replay.command import Park
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.feeding import feed
from outlive._kernel.replay.frame import step_of
from outlive._kernel.replay.lookahead import Rest, begun_at, first_number, rests_in, undone_in
from outlive._kernel.replay.serving import call_to_origin
from outlive._kernel.replay.taking_back import is_asked_for

_OF_WORKERS = (journal.RunClaimed, journal.RunSuspended, journal.RunReleased, journal.RunParked, journal.RunResumed)
_OF_ATTEMPTS = (journal.AttemptFailed, journal.StepDelayed, journal.StepIntended, journal.StepProgressed)
_OUTCOMES = (journal.StepSucceeded, journal.StepFailed)
NAMES_SHOWN_MAX = 8
_PEOPLE = msgspec.json.Decoder(tuple[str, ...])


class CannotFork(Exception):
    """Why a history cannot be copied, for a person."""


class Numbered(Sequence[tuple[int, AnyEvent]]):
    """The events of a journal that were not taken back, each with its number."""

    def __init__(self, events: Sequence[AnyEvent]) -> None:
        undone = undone_in(events)
        numbered = enumerate(events, first_number(events))
        self._numbered = [(number, event) for number, event in numbered if number not in undone]

    def __len__(self) -> int:
        return len(self._numbered)

    def __getitem__(self, place: Any) -> Any:
        return self._numbered[place]

    def find(self, at: str | int | None) -> int:
        """The number of the first event that is not copied.

        Raises:
            CannotFork: there is no such event.
        """
        first, last = self._numbered[0][0], self._numbered[-1][0]
        if at is None:
            return last + (not isinstance(self._numbered[-1][1], Ending))
        if isinstance(at, int):
            if not first < at <= last + 1:
                raise CannotFork(f"its history has events {first} to {last}, and event {first} is always copied")
            return at
        for number, event in self._numbered:
            if is_called(event, at):
                return number
        calls: list[str] = [getattr(event, "call", "") for _, event in self._numbered]
        names = list(dict.fromkeys(step_of(call) for call in calls if call))
        more = ", ..." if len(names) > NAMES_SHOWN_MAX else ""
        known = f"it has {', '.join(names[:NAMES_SHOWN_MAX])}{more}" if names else "it has no calls"
        raise CannotFork(f"its history has no call {at!r}; {known}")


def is_called(event: AnyEvent, name: str) -> bool:
    """Whether an event is about a call of this name, or of this identity."""
    call: str = getattr(event, "call", "")
    return bool(call) and name in (call, step_of(call))


class Copier:
    """Copies one history."""

    def __init__(
        self,
        execution: Execution,
        *,
        pack: Callable[[AnyEvent], AnyEvent],
        results: Mapping[str, Any],
        pack_result: Callable[[bytes, str], Payload],
        is_other_code: bool = False,
    ) -> None:
        """`execution` is that of the new run. `pack` packs the values of an event for the new tree, and `pack_result`
        the result of a step; `results` are the edits, by the name or the call of a step. `is_other_code`: the new run
        has another version than its origin."""
        self._execution = execution
        # A call with other arguments than in the origin is another call: its outcome is not copied.
        execution.compares_arguments = True
        self._pack = pack
        self._results = results
        self._pack_result = pack_result
        self._is_other_code = is_other_code
        self._unused = dict.fromkeys(results)
        self._numbers = {0: 0}
        self._rests: dict[int, Rest] = {}
        self._places: dict[str, str] = {}
        """Where messages are in the new journal, by where they were."""
        self.events: list[AnyEvent] = []

    def copy(self, first: AnyEvent, numbered: Numbered, *, until: int, is_edited: bool) -> Generator[None, None, None]:
        """Copy the events before `until`, with `first` in the place of the first one. It yields at each event.

        Raises:
            CannotFork: the code contradicts the history, or an edit has no place in it.
        """
        before = [(number, _left_to_origin(event)) for number, event in numbered[1:] if number < until]
        ended = {(event.run, event.call) for _, event in before if isinstance(event, _OUTCOMES)}
        if isinstance(first, journal.RunCreated):
            # The claim that began it is not copied, and the code of the copy is to see the same time.
            first = replace(first, begun_at=_begun_at([event for _, event in numbered]))
        self._rests = rests_in([event for _, event in numbered], numbered)
        self._execution.look_ahead([first, *(event for _, event in before)])
        self._take(first)
        for number, event in before:
            yield
            if isinstance(event, journal.StepEndedLate):
                continue  # It answers nothing, and was not an attempt of the copy.
            if isinstance(event, _OF_WORKERS) or _wanted_its_end(event):
                is_edited |= _wanted_its_end(event)
                continue
            if isinstance(event, _OF_ATTEMPTS) and (event.run, event.call) not in ended:
                continue
            if is_edited and isinstance(event, journal.ApprovalDecided):
                continue  # People decided about another run than this one: they are asked again.
            moved = self._moved(self._rested(number, event))
            if moved is None or (is_edited and not is_asked_for(self._execution, moved)) or self._is_of_code(moved):
                is_edited = True
                continue
            edited = self._edited(moved)
            if isinstance(moved, journal.ApprovalRequested | journal.ApprovalEscalated):
                is_edited |= self._is_other_code and not self._asks_the_same(moved)
                edited = self._asked(moved) if is_edited else moved
            is_edited |= edited is not moved
            self._places[str(number)] = str(len(self.events))
            self._take(edited)
        self._answer_open()
        if self._unused:
            raise CannotFork(
                f"up to there its history has no step {next(iter(self._unused))!r} whose result could be set"
            )
        waits = self._execution.end_waits
        if waiting := [run_id for run_id, wait in waits.items() if wait.command.started]:
            raise CannotFork(f"it waited there for run {waiting[0]}, which it had started and which had not ended")

    def go_on(self, forked: journal.RunForked) -> None:
        """End the copy: from here on the run has a life of its own."""
        self._take(forked)

    def _take(self, event: AnyEvent) -> None:
        self.events.append(event)
        for command in feed(self._execution, event):
            if isinstance(command, Park):
                raise CannotFork(command.reason)

    def _moved(self, event: AnyEvent) -> AnyEvent | None:
        """An event as the new journal has it; None if its run is not there."""
        if isinstance(event, journal.RunChanged):
            event = replace(event, moves_deadline=False)  # The copy has deadlines of its own.
        if isinstance(event, journal.RunCreated):
            parent = self._numbers.get(event.parent)
            call = None if parent is None else self._execution.calls.get((parent, event.call))
            if parent is None or not isinstance(call, ChildCall) or call.frame is not None:
                return None
            self._numbers[event.run] = call.command.run
            event = replace(event, parent=parent)
        number = self._numbers.get(event.run)
        if number is None:
            return None
        changes: dict[str, Any] = {"run": number}
        if isinstance(event, journal.SignalReceived):
            changes["key"] = ""  # The key of a message to another run.
        elif isinstance(event, journal.MessageSetAside):
            changes["message"] = self._places.get(event.message, event.message)
        elif isinstance(event, journal.RunRetried):
            changes |= {"undone": (), "since": 0, "next_number": 0, "approvals": None}
        return self._pack(replace(event, **changes))

    def _rested(self, number: int, event: AnyEvent) -> AnyEvent:
        """An event that brought the tree back, with the time that it rested until a claim, which is not copied."""
        if not isinstance(event, journal.RunRetried | journal.RunForked):
            return event
        rest = self._rests.get(number)
        event = replace(event, rests=False, timeout=None)
        if rest is None:
            return event
        longer = max(0, rest.claimed_at - event.at)
        return replace(
            event,
            at=event.at + longer,
            rested=event.rested + longer if rest.puts_off else 0,
            timeout_at=None if event.timeout_at is None else event.timeout_at + longer,
        )

    def _is_of_code(self, event: AnyEvent) -> bool:
        """Whether an event is the result of a step that no person may set, in a copy for other code: in the origin a
        person could, or the step did something else. It is called again."""
        if not self._is_other_code or not isinstance(event, journal.StepSucceeded):
            return False
        call = self._execution.calls.get((event.run, event.call))
        return isinstance(call, StepCall) and bool(call.command.step.options.unsettable)

    # -- Edits -----------------------------------------------------------------------------------------------

    def _edited(self, event: AnyEvent) -> AnyEvent:
        if not isinstance(event, _OUTCOMES):
            return event
        call = self._execution.calls.get((event.run, event.call))
        answer = self._answer(call, at=event.at) if isinstance(call, StepCall) else None
        return event if answer is None else answer

    def _answer(self, call: StepCall, *, at: int) -> journal.StepSucceeded | None:
        """The result that a step is to have had, if there is one."""
        command = call.command
        key = next((key for key in (command.call, step_of(command.call)) if key in self._results), None)
        if key is None:
            return None
        self._unused.pop(key, None)
        if command.step.options.unsettable:
            raise CannotFork(f"the result of step {command.call} cannot be set: {command.step.options.unsettable}")
        codec, what = command.step.signature.result, f"the result set for step {command.call}"
        value = self._results[key]
        if isinstance(value, msgspec.Raw):  # It comes from a program that does not know the type.
            value = decode_untyped(codec, value, what)
        data = codec.encode(value, what)
        result = self._pack_result(data, f"result of step {command.call}")
        return journal.StepSucceeded(
            at=at, run=command.run, call=command.call, result=result, digest=command.digest, skipped=True
        )

    def _asks_the_same(self, event: journal.ApprovalRequested | journal.ApprovalEscalated) -> bool:
        """Whether other code asks people what they were asked in the origin."""
        call = self._execution.calls.get((event.run, event.call))
        asked = bytes(self._execution.unpack(event.payload))
        return not isinstance(call, RecordCall) or call.command.data in (None, asked)

    def _asked(self, event: journal.ApprovalRequested | journal.ApprovalEscalated) -> AnyEvent:
        """The request with the title, form and people that the code of the new run gives."""
        call = self._execution.calls.get((event.run, event.call))
        if not isinstance(call, RecordCall) or call.command.data is None:
            return event
        data = call.command.data
        asked = isinstance(event, journal.ApprovalRequested)
        people = msgspec.json.decode(data, type=ApprovalRequest).assignees if asked else _PEOPLE.decode(data)
        payload = self._pack_result(data, f"{type(event).__name__} {event.call}")
        return replace(call.command.fact, at=event.at, payload=payload, assignees=people)

    def _answer_open(self) -> None:
        """Set the results of steps that the code asks for where the copy ends."""
        while True:
            open_calls = [call for call in self._execution.calls.values() if isinstance(call, StepCall)]
            answers = (self._answer(call, at=self.events[-1].at) for call in open_calls)
            answer = next((each for each in answers if each is not None), None)
            if answer is None:
                return
            self._take(answer)


def _begun_at(events: Sequence[AnyEvent]) -> int:
    """When a worker began a run; 0 if none has."""
    first = events[0]
    has_begun = bool(getattr(first, "worker", "")) or any(isinstance(event, journal.RunClaimed) for event in events)
    return begun_at(events) or (first.at if has_begun else 0)


def _left_to_origin(event: AnyEvent) -> AnyEvent:
    """An event with a mark, if it is about an ask: the sender waits for the run that it asked."""
    if isinstance(event, journal.AskReceived):
        return replace(event, forks=event.forks + 1)
    if isinstance(event, journal.AskAnswered):
        return replace(event, forks=event.forks + 1, call=call_to_origin(event.call))
    return event


def _wanted_its_end(event: AnyEvent) -> bool:
    """Whether an event wanted the whole run to end: its copy is to go on."""
    if event.run:
        return False
    return isinstance(event, journal.CancelRequested) or (
        isinstance(event, journal.TimerFired) and event.call == DEADLINE
    )
