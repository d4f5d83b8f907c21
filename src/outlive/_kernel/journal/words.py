"""Events in plain words: one sentence of what happened, for people who read a history."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from outlive._kernel.journal import event as journal
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.fold import reason_of_end
from outlive._kernel.model import Failure, RunStatus
from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive._kernel.model.promise import PROMISE

_SHORT_MICROSECONDS = 10_000
_CAPITAL = re.compile(r"([A-Z])")


def in_words(event: AnyEvent) -> str:
    """An event in one sentence: `step charge succeeded in 0.25 s`."""
    words = _WORDS.get(type(event))
    # The name of a kind is a sentence too: RunSucceeded.
    return _CAPITAL.sub(r" \1", type(event).__name__).strip().lower() if words is None else words(event)


def _failure(failure: Failure | None) -> str:
    return "" if failure is None else f"{failure.error}: {failure.message}" if failure.message else failure.error


def _attempt(event: journal.StepSucceeded | journal.StepFailed) -> str:
    return f" at attempt {event.attempt}" if event.attempt > 1 else ""


def _took(event: journal.StepSucceeded | journal.StepFailed | journal.AttemptFailed) -> str:
    if not event.took:
        return ""
    short = event.took < _SHORT_MICROSECONDS
    return f" in {event.took / 1000:.2g} ms" if short else f" in {event.took / MICROSECONDS:.3g} s"


def _until(at: int) -> str:
    return instant_of(at).isoformat(timespec="seconds")


def _waits(event: journal.RunSuspended) -> str:
    named = [f"{wait.kind.value} {wait.name}" if wait.name[:1] != "@" else wait.kind.value for wait in event.waits]
    return f"the run waits for {', '.join(dict.fromkeys(named)) or 'a message'}"


def _created(event: journal.RunCreated) -> str:
    what = "the run" if event.run == 0 else "a child run"
    return f"{what} of {event.workflow}, version {event.version}, began"


def _step_succeeded(event: journal.StepSucceeded) -> str:
    if event.skipped:
        return f"step {event.call} was skipped, and a person gave its result"
    return f"step {event.call} succeeded{_attempt(event)}{_took(event)}"


def _changed(event: journal.RunChanged) -> str:
    said = []
    if event.tags is not None:
        tags = ", ".join(f"{name}={value}" for name, value in event.tags.items()) or "none"
        said.append(f"its tags are now {tags}")
    if event.moves_deadline:
        until = "" if event.timeout_at is None else _until(event.timeout_at)
        said.append(f"its deadline is now {until}" if until else "it has no deadline now")
    return f"a person changed the run: {' and '.join(said)}{event.reason and f' ({event.reason})'}"


def _attempt_failed(event: journal.AttemptFailed) -> str:
    what = f"attempt {event.attempt} of step {event.call} failed{_took(event)}: {_failure(event.failure)}"
    return f"{what}; the next one comes at {_until(event.retry_at)}"


def _reason(event: journal.RunCancelled | journal.RunTimedOut) -> str:
    reason = reason_of_end(event)
    return f": {reason}" if reason else ""


def _detached_ended(event: journal.DetachedEnded) -> str:
    how = event.status.value.replace("_", " ")
    why = f": {_failure(event.failure)}" if event.status is RunStatus.FAILED and event.failure is not None else ""
    return f"run {event.run_id} ended: {how}{why}"


_WORDS: dict[type, Callable[[Any], str]] = {
    journal.RunCreated: _created,
    journal.RunClaimed: lambda it: (
        f"worker {it.worker} took the run" + (" over, whose worker was lost" if it.interrupted else "")
    ),
    journal.RunSuspended: _waits,
    journal.RunReleased: lambda it: (
        f"its worker released the run{' in the middle of a step' * it.interrupted}{it.reason and f': {it.reason}'}"
    ),
    journal.RunParked: lambda it: f"the run was parked: {it.reason}",
    journal.RunResumed: lambda _: "a person let the run go on",
    journal.RunRetried: lambda _: "a person let the run go on after its end",
    journal.RunForked: lambda it: f"up to here this is the history of run {it.origin}",
    journal.StepSucceeded: _step_succeeded,
    journal.StepFailed: lambda it: f"step {it.call} failed{_attempt(it)}{_took(it)}: {_failure(it.failure)}",
    journal.AttemptFailed: _attempt_failed,
    journal.StepDelayed: lambda it: f"step {it.call} has to wait for {it.by} until {_until(it.until_at)}",
    journal.StepProgressed: lambda it: f"step {it.call} saved how far it came",
    journal.StepIntended: lambda it: (
        f"step {it.call} is about to begin, and will be called once" if it.attempt else f"step {it.call} was not begun"
    ),
    journal.StepEndedLate: lambda it: f"step {it.call} ended after the run had given it up",
    journal.TimerFired: lambda _: "a timer fired",
    journal.SignalReceived: lambda it: (
        "a promise was settled" if it.name.startswith(f"{PROMISE}/") else f"signal {it.name} arrived"
    ),
    journal.AskReceived: lambda it: f"ask {it.name} arrived",
    journal.AskAnswered: lambda it: f"ask {it.name} was {'answered' if it.failure is None else 'refused'}",
    journal.CancelRequested: lambda it: f"the run was asked to stop{it.reason and f': {it.reason}'}",
    journal.DetachedStarted: lambda it: f"the run started run {it.run_id}",
    journal.DetachedEnded: _detached_ended,
    journal.DetachedCancelled: lambda it: f"the run asked run {it.run_id} to stop",
    journal.ApprovalRequested: lambda it: f"the run asked for approval {it.name}",
    journal.ApprovalEscalated: lambda _: "others were asked for the approval too",
    journal.ApprovalDecided: lambda _: "a person decided",
    journal.ApprovalClosed: lambda _: "the run no longer waits for the approval",
    journal.MessageSetAside: lambda it: f"message {it.name} could not be read and was set aside: {it.reason}",
    journal.PromiseMade: lambda _: "the run made a promise, which a program outside settles",
    journal.RunPublished: lambda _: "the run published something",
    journal.RunChanged: _changed,
    journal.RunTagged: lambda it: (
        "the tags of the run are now " + (", ".join(f"{name}={value}" for name, value in it.tags.items()) or "none")
    ),
    journal.PatchTaken: lambda it: f"the run took the new way at {it.call.rpartition('/')[2]}",
    journal.StateLeft: lambda it: f"the machine left a state: {it.call}",
    journal.SnapshotTaken: lambda it: f"a snapshot took the place of {it.events:,} events",
    journal.RunSucceeded: lambda _: "the run succeeded",
    journal.RunFailed: lambda it: f"the run failed: {_failure(it.failure)}",
    journal.RunCancelled: lambda it: f"the run was cancelled{_reason(it)}",
    journal.RunTimedOut: lambda it: f"the run did not end in time{_reason(it)}",
    journal.RunContinued: lambda it: f"the run went on as a new generation of {it.workflow}",
}
