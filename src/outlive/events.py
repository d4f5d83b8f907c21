"""The kinds of events in which `history()` shows a run, each with the fields that `data` has for it.

    from outlive.events import StepSucceeded

    for event in await run.history():
        if event.type == StepSucceeded.__name__:
            print(event.at, event.data["call"], event.data["took"], event.data["result"])

`history()` and `follow()` give objects of `types.Event`, from an engine and from a connection alike. In their `data`
an instant is a datetime, a span a timedelta, a worker its name and a run its id; a value of a program is plain JSON.
Over HTTP and on the command line instants are RFC 3339 and spans ISO 8601. What a journal keeps for the engine only is
not in them.

In a workflow, `await outlive.events.send("order.created", data)` sends an event, which starts runs of workflows that
have a trigger for it.

Kinds and fields are added, and none changes its meaning: journals can be read for ever.
"""

from outlive._kernel.define.talking import send
from outlive._kernel.journal.event import (
    ApprovalClosed,
    ApprovalDecided,
    ApprovalEscalated,
    ApprovalRequested,
    AskAnswered,
    AskReceived,
    AttemptFailed,
    CancelRequested,
    DetachedCancelled,
    DetachedEnded,
    DetachedStarted,
    MessageSetAside,
    PatchTaken,
    PromiseMade,
    RunCancelled,
    RunChanged,
    RunClaimed,
    RunContinued,
    RunCreated,
    RunFailed,
    RunForked,
    RunParked,
    RunPublished,
    RunReleased,
    RunResumed,
    RunRetried,
    RunSucceeded,
    RunSuspended,
    RunTagged,
    RunTimedOut,
    SignalReceived,
    SnapshotTaken,
    StateLeft,
    StepDelayed,
    StepEndedLate,
    StepFailed,
    StepIntended,
    StepProgressed,
    StepSucceeded,
    TimerFired,
)

__all__ = [
    "ApprovalClosed",
    "ApprovalDecided",
    "ApprovalEscalated",
    "ApprovalRequested",
    "AskAnswered",
    "AskReceived",
    "AttemptFailed",
    "CancelRequested",
    "DetachedCancelled",
    "DetachedEnded",
    "DetachedStarted",
    "MessageSetAside",
    "PatchTaken",
    "PromiseMade",
    "RunCancelled",
    "RunChanged",
    "RunClaimed",
    "RunContinued",
    "RunCreated",
    "RunFailed",
    "RunForked",
    "RunParked",
    "RunPublished",
    "RunReleased",
    "RunResumed",
    "RunRetried",
    "RunSucceeded",
    "RunSuspended",
    "RunTagged",
    "RunTimedOut",
    "SignalReceived",
    "SnapshotTaken",
    "StateLeft",
    "StepDelayed",
    "StepEndedLate",
    "StepFailed",
    "StepIntended",
    "StepProgressed",
    "StepSucceeded",
    "TimerFired",
    "send",
]
