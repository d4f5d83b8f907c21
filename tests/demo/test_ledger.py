"""The demo's ledger is right about a right order and sees everything that can be wrong with one."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Failure, Payload
from outlive.demo.ledger import Case, audit, take_overs
from outlive.demo.orders import Order
from outlive.demo.story import promised
from outlive.demo.world import Line
from outlive.events import AttemptFailed, RunClaimed, RunCreated, RunSucceeded, SignalReceived, StepSucceeded

NONCE = 7
PAYLOAD = Payload(v=msgspec.Raw(b"null"))
ORDER = Order("order-1", {"tea": 450, "jam": 540}, busy_calls=1)
CALLS = [(0, "1/reserve"), (0, "2/reserve"), (0, "charge"), (1, "call_carrier"), (1, "hand_over")]


def events() -> list[AnyEvent]:
    """The journal of one order whose worker was killed while it charged."""
    done = [StepSucceeded(at=3, run=run, call=call, result=PAYLOAD, attempt=1 + busy(call)) for run, call in CALLS]
    return [
        RunCreated(at=0, workflow="checkout", version=1, input=PAYLOAD, nonce=NONCE),
        RunClaimed(at=1, worker="a", epoch=1),
        *done[:2],
        SignalReceived(at=2, name="confirmed", payload=PAYLOAD, key="confirm-order-1"),
        RunClaimed(at=2, worker="b", epoch=2, interrupted=True),
        done[2],
        RunCreated(at=3, run=1, workflow="delivery", version=1, input=PAYLOAD),
        AttemptFailed(
            at=3, run=1, call="call_carrier", failure=Failure("builtins.ConnectionError"), attempt=1, retry_at=4
        ),
        *done[3:],
        RunSucceeded(at=5, run=1, result=PAYLOAD),
        RunSucceeded(at=5, result=PAYLOAD),
    ]


def lines() -> list[Line]:
    """What the world saw of it: the charge was begun twice, with one key."""
    expected = [line("begin", "charge", 0, epoch=1, pid=1)]
    for run, call in CALLS:
        epoch = 1 if "reserve" in call else 2
        if busy(call):
            expected += [line("begin", call, run, epoch=epoch), line("failed", call, run, epoch=epoch)]
        attempt = 1 + busy(call)
        expected += [line(mark, call, run, epoch=epoch, attempt=attempt) for mark in ("begin", "end")]
    return expected


def busy(call: str) -> int:
    return 1 if call == "call_carrier" else 0


def line(mark: str, call: str, run: int, *, epoch: int, attempt: int = 1, pid: int = 2) -> Line:
    what = call.rpartition("/")[2]
    run_id = "order-1" if run == 0 else f"order-1~{run}"
    return Line(
        at=1.0,
        pid=pid,
        mark=mark,
        what=what,
        order="order-1",
        key=f"{run_id}:{call}:{NONCE:016x}",
        epoch=epoch,
        attempt=attempt,
        cents=ORDER.cents if what == "charge" else 0,
    )


RIGHT = Case(ORDER, promised(ORDER), promised(ORDER), events(), lines())


def without(kind: type[AnyEvent]) -> Case:
    return replace(RIGHT, events=[event for event in RIGHT.events if not isinstance(event, kind)])


WRONG: dict[str, Callable[[], Case]] = {
    "a wrong total": lambda: replace(RIGHT, got=replace(RIGHT.wanted, cents=1)),
    "no receipt": lambda: replace(RIGHT, got="the run failed"),
    "charged with two keys": lambda: replace(
        RIGHT, lines=[*RIGHT.lines, msgspec.structs.replace(RIGHT.lines[6], mark="end", key="another")]
    ),
    "never charged": lambda: replace(RIGHT, lines=[it for it in RIGHT.lines if it.what != "charge"]),
    "a finished step began again": lambda: replace(RIGHT, lines=[*RIGHT.lines, line("begin", "1/reserve", 0, epoch=2)]),
    "one attempt began twice": lambda: replace(RIGHT, lines=[*RIGHT.lines, RIGHT.lines[-2]]),
    "a step that the world never saw": lambda: replace(
        RIGHT, lines=[it for it in RIGHT.lines if it.what != "hand_over"]
    ),
    "a lost signal": lambda: without(SignalReceived),
    "a signal taken twice": lambda: replace(RIGHT, events=[*RIGHT.events, RIGHT.events[4]]),
    "a forgotten retry": lambda: without(AttemptFailed),
    "a lost delivery": lambda: replace(RIGHT, events=[it for it in RIGHT.events if it.run == 0]),
}


def test_a_right_order_has_a_right_ledger() -> None:
    """A charge that was interrupted and begun again with the same key is right: the bank took the money once."""
    ledger = audit([RIGHT])

    assert ledger.is_right, str(ledger)
    assert 1 == take_overs([RIGHT])
    assert "Nothing was lost and nothing was done twice." in str(ledger)


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_order_is_seen(what: str) -> None:
    """Whatever is wrong with one order makes the whole ledger wrong."""
    ledger = audit([RIGHT, WRONG[what]()])

    assert not ledger.is_right
    assert "WRONG" in str(ledger)


def test_a_complaint_alone_makes_the_ledger_wrong() -> None:
    """A demo in which no process was killed proves nothing, however right its orders are."""
    ledger = audit([RIGHT])
    ledger.complaints.append("no worker was killed")

    assert not ledger.is_right
