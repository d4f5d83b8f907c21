"""One event of every kind by hand, and events of every kind by chance."""

from __future__ import annotations

import typing
from typing import Any, get_args

import msgspec
from hypothesis import strategies as st

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Failure, Payload, RunStatus, Wait, WaitKind
from outlive._kernel.model.under_way import Interrupted
from outlive.events import (
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
from tests.journal.values import TEXT

KINDS: tuple[type[Any], ...] = get_args(AnyEvent)
AT = 1_700_000_000_000_001
NONCE = 0x0123_4567_89AB_CDEF


def json_payload(text: bytes) -> Payload:
    """A payload that is readable JSON."""
    return Payload(v=msgspec.Raw(text))


FAILURE = Failure(
    type="shop.errors.OutOfStock",
    message="3 x shoes",
    args=["3 x shoes", {"$": ["tuple", [1, 2]]}],
    attributes={"item": "shoes", "left": 3, "until": {"$": ["datetime", "2024-01-01T00:00:00+00:00"]}},
    cause=Failure(type="KeyError", message="'shoes'", args=["shoes"]),
    notes=("first", "second é"),
    traceback="Traceback (most recent call last):\n  ...\nshop.errors.OutOfStock: 3 x shoes\n",
)

SAMPLES: dict[str, AnyEvent] = {
    type(event).__name__: event
    for event in (
        RunCreated(
            at=AT,
            workflow="order",
            version=2,
            input=json_payload(b'[{"id":7},"x"]'),
            nonce=NONCE,
            call="2/order",
            parent=1,
            digest=0xFFFF_FFFF,
            timeout_at=AT + 60_000_000,
            tags={"shop": "north", "größe": "ü"},
            worker="worker-1",
            notify="other-run",
        ),
        RunClaimed(at=AT, worker="worker-2", epoch=3, interrupted=True),
        RunSuspended(
            at=AT,
            waits=(
                Wait(kind=WaitKind.TIMER, name="@timer#2", until_at=AT + 5),
                Wait(kind=WaitKind.SIGNAL, name="paid", run=1),
                Wait(kind=WaitKind.RETRY, name="charge", until_at=AT + 9),
                Wait(kind=WaitKind.CHILD, name="other-run"),
            ),
            wake_at=AT + 5,
        ),
        RunReleased(at=AT),
        RunParked(at=AT, reason="the code of order@2 no longer matches the journal at event 3\n  - journal: ..."),
        RunResumed(at=AT),
        RunRetried(
            at=AT, undone=(3, 7, 8), since=7, rested=60_000_000, next_number=2, timeout_at=AT + 9, reason="repaired"
        ),
        RunForked(
            at=AT,
            origin="order-7",
            events=9,
            seed=2**63 - 1,
            rested=5,
            timeout_at=AT + 9,
            reason="what if it were safe",
        ),
        StepSucceeded(at=AT, run=1, call="1.2/charge#3", result=json_payload(b"null"), digest=12345, attempt=2),
        StepFailed(at=AT, call="charge", failure=FAILURE, digest=0, attempt=5),
        AttemptFailed(at=AT, call="charge", failure=FAILURE, attempt=1, retry_at=AT + 1_000_000, digest=1),
        StepDelayed(
            at=AT,
            run=1,
            call="charge",
            until_at=AT + 60_000_000,
            by="rate limit bank (10 a second, 10 at once)",
            has_turn=True,
            digest=1,
        ),
        StepProgressed(at=AT, call="import", progress=Payload(data="eJwrSSwuUUhJLAESALXdBGc=", via=("zlib", "aes"))),
        StepIntended(at=AT, run=1, call="send", attempt=2, digest=7),
        StepEndedLate(at=AT, run=1, call="send", attempt=2, result=json_payload(b'"sent"')),
        TimerFired(at=AT, run=2, call="@timer"),
        AskReceived(at=AT, run=1, name="add", payload=json_payload(b'{"count":3}'), key="evt-1", checked=True),
        AskAnswered(at=AT, run=1, call="@answer/add#2", name="add", key="evt-1", payload=json_payload(b"3"), digest=7),
        ApprovalRequested(
            at=AT,
            run=1,
            call="2/@approval/refund",
            name="refund",
            payload=json_payload(b'{"title":"Refund?","assignees":["finance"],"deadline_at":1700000060000001}'),
            digest=0xFFFF_FFFF,
        ),
        ApprovalEscalated(
            at=AT,
            run=1,
            call="2/@approval/refund/watch/@escalation",
            approval="2/@approval/refund",
            payload=json_payload(b'["finance","boss"]'),
            digest=7,
        ),
        ApprovalDecided(
            at=AT,
            run=1,
            approval="2/@approval/refund",
            payload=json_payload(b'{"id":"d-1","nonce":5,"approved":true,"by":"ann","at":1700000000000001}'),
        ),
        ApprovalClosed(at=AT, run=1, call="2/@approval/refund/watch/@closing", approval="2/@approval/refund"),
        SignalReceived(at=AT, name="paid", payload=json_payload(b'{"cents":5}'), key="evt_123"),
        MessageSetAside(
            at=AT,
            run=1,
            call="@set_aside/7",
            name="refund",
            message="7",
            reason="it cannot be read as Refund: it is odd",
            approval="2/@approval/refund",
        ),
        PromiseMade(at=AT, run=1, call="2/@promise", payload=json_payload(b'{"type":"int"}'), digest=7),
        CancelRequested(at=AT, run=4, reason="no need"),
        DetachedStarted(at=AT, call="audit", run_id="audit-1", digest=9),
        DetachedEnded(at=AT, run_id="audit-1", status=RunStatus.FAILED, result=None, failure=FAILURE),
        RunSucceeded(at=AT, result=Payload(blob="ab" * 32, via=("zlib",), size=70_000)),
        RunFailed(at=AT, run=3, failure=FAILURE),
        RunCancelled(at=AT, reason="its parent has ended"),
        RunTimedOut(at=AT),
        DetachedCancelled(at=AT, run=1, call="@cancel/audit-1", run_id="audit-1"),
        RunPublished(at=AT, run=2, payload=json_payload(b'{"stage":"packing"}'), call="@publish#2", digest=77),
        PatchTaken(at=AT, run=1, call="@patch/two-letters"),
        RunChanged(at=AT, tags={"held": "yes"}, moves_deadline=True, timeout_at=AT + 60, reason="too slow"),
        RunTagged(at=AT, run=1, call="@tags#2", tags={"stage": "packing"}),
        RunContinued(at=AT, workflow="order", version=3),
        SnapshotTaken(
            at=AT,
            created=RunCreated(at=AT - 1, workflow="order", version=3, input=json_payload(b"[1]"), nonce=2**64 - 1),
            events=5_000,
            worker="worker-1",
            epoch=3,
            payload=Payload(blob="cd" * 32, via=("zlib",), size=70_000),
            attempts=1,
            wake_at=AT,
            published=json_payload(b'{"stage":"packing"}'),
            signals=(SignalReceived(at=AT, name="paid", payload=json_payload(b'{"cents":5}')),),
        ),
        StateLeft(
            at=AT, run=1, call="@state/order.PACK#2", payload=json_payload(b'{"to":"DONE","data":{"n":1}}'), digest=5
        ),
    )
}

# -- By chance ------------------------------------------------------------------------------------------------

INTS = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INTS | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=4
)
PAYLOADS = st.one_of(
    JSON.map(lambda value: json_payload(msgspec.json.encode(value))),
    st.builds(Payload, data=TEXT, via=st.lists(TEXT, max_size=2).map(tuple)),
    st.builds(Payload, blob=TEXT, size=INTS, via=st.lists(TEXT, max_size=2).map(tuple)),
)
FAILURES: st.SearchStrategy[Failure] = st.deferred(
    lambda: st.builds(
        Failure,
        type=TEXT,
        message=TEXT,
        args=st.none() | st.lists(JSON, max_size=2),
        attributes=st.dictionaries(TEXT, JSON, max_size=2),
        cause=st.none() | FAILURES,
        notes=st.lists(TEXT, max_size=2).map(tuple),
        traceback=TEXT,
    )
)
INTERRUPTED = st.builds(
    Interrupted, call=TEXT, run=INTS, attempt=INTS, attempts_max=st.none() | INTS, since_at=INTS, worker=TEXT
)
WAITS = st.builds(Wait, kind=st.sampled_from(WaitKind), name=TEXT, until_at=st.none() | INTS, run=INTS)

BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    int: INTS,
    str: TEXT,
    bool: st.booleans(),
    Payload: PAYLOADS,
    Failure: FAILURES,
    RunStatus: st.sampled_from(RunStatus),
    tuple[int, ...]: st.lists(INTS, max_size=3).map(tuple),
    tuple[str, ...]: st.lists(TEXT, max_size=3).map(tuple),
    tuple[Interrupted, ...]: st.lists(INTERRUPTED, max_size=3).map(tuple),
    tuple[Wait, ...]: st.lists(WAITS, max_size=3).map(tuple),
    dict[str, str]: st.dictionaries(TEXT, TEXT, max_size=3),
    type(None): st.none(),
}


def strategy_for(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type; a new type of field must be entered above."""
    if annotation in BY_TYPE:
        return BY_TYPE[annotation]
    if annotation is RunCreated:
        return events_of(RunCreated)
    if annotation == tuple[SignalReceived, ...]:
        return st.lists(events_of(SignalReceived), max_size=2).map(tuple)
    if annotation == tuple[AskReceived, ...]:
        return st.lists(events_of(AskReceived), max_size=1).map(tuple)
    if annotation == tuple[MessageSetAside, ...]:
        return st.lists(events_of(MessageSetAside), max_size=1).map(tuple)
    return st.one_of(*(strategy_for(part) for part in get_args(annotation)))


def events_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Events of one kind, with all of its fields."""
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{name: strategy_for(hints[name]) for name in kind.__struct_fields__})


EVENTS: st.SearchStrategy[AnyEvent] = st.one_of(*(events_of(kind) for kind in KINDS))
