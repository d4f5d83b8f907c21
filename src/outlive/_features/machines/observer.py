"""`outlive.machine.Observer`: who hears what becomes of the runs of a machine.

The rules
---------
*A hook speaks of facts.* It is called when what it is about is in the journal and not before; what was thrown away
because another worker was first is never reported. A replay reports nothing: those facts were reported when they
happened, by the process in which they did. So each is reported at most once in a process, and those of one run in their
order. What a process that dies has not reported yet is lost.

*A hook harms no run.* It runs on the event loop of the engine, an async one as a task of its own. One that raises is
logged and counted. No run waits for a hook: those of a run line up behind one that takes its time, up to a limit, after
which they are dropped and counted; one that takes longer than `hook_timeout` is cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable

from outlive._kernel.values.fact import (
    AttemptFact,
    CircuitFact,
    EndFact,
    Fact,
    FailureFact,
    ReasonFact,
    ResumeFact,
    RetryFact,
    TransitionFact,
    UndoFact,
)

Heard = Awaitable[None] | None


class Observer:
    """Base of observers: override the hooks that you want, each as a plain or as an async method.

    See `machine.observe`. A hook must be quick if it is a plain method: the engine waits for it.
    """

    hook_timeout: float = 10.0
    """Seconds that an async hook may take before it is cancelled."""

    def state_entered(self, fact: Fact) -> Heard:
        """The run is in `fact.state` now: a router and an exit are states too."""

    def transition_written(self, fact: TransitionFact) -> Heard:
        """A state was left: data and next state are in the journal. Routers leave nothing there."""

    def attempt_started(self, fact: AttemptFact) -> Heard:
        """An attempt of a step begins; also one that a crash has interrupted and that begins again."""

    def attempt_succeeded(self, fact: AttemptFact) -> Heard:
        """A step returned: a handler, a poll, a step of a cursor, a window, an item, a branch."""

    def attempt_failed(self, fact: FailureFact) -> Heard:
        """An attempt failed; `retry` follows if there will be another one."""

    def retry(self, fact: RetryFact) -> Heard:
        """Another attempt will be made, of a step or of an undo."""

    def circuit_open(self, fact: CircuitFact) -> Heard:
        """An attempt was not made, as the breaker of its step is open."""

    def resumed(self, fact: ResumeFact) -> Heard:
        """The run goes on here: a person let it, or its worker was lost or has stopped."""

    def timed_out(self, fact: Fact) -> Heard:
        """The time of the run is over; it is rolled back, and then ends."""

    def cancelled(self, fact: ReasonFact) -> Heard:
        """The run is asked to stop; it is rolled back, and then ends."""

    def undo_begun(self, fact: UndoFact) -> Heard:
        """An attempt of an undo begins."""

    def undo_done(self, fact: UndoFact) -> Heard:
        """Something is undone."""

    def undo_failed(self, fact: UndoFact) -> Heard:
        """An attempt of an undo failed; either `retry` follows or `parked`."""

    def unknown_state(self, fact: ReasonFact) -> Heard:
        """The journal says that the run is in a state which the code does not have; `parked` follows."""

    def parked(self, fact: ReasonFact) -> Heard:
        """The run stopped, with a reason that a person can act on."""

    def ended(self, fact: EndFact) -> Heard:
        """The run has ended."""


HOOKS = tuple(name for name, it in vars(Observer).items() if callable(it) and not name.startswith("_"))
"""The names of all hooks."""


def hooks_of(observer: Observer) -> list[str]:
    """The hooks that an observer has of its own: the others need not be called."""
    return [hook for hook in HOOKS if getattr(type(observer), hook) is not getattr(Observer, hook)]
