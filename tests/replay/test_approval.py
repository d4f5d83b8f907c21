"""Approvals in the core: a request is a fact, one decision answers it, and every other end takes it back."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from outlive import wait_for_approval, wait_for_signal
from outlive._kernel.model import WaitKind
from outlive._kernel.model.approval import ApprovalRequest, Decision
from outlive.errors import ApprovalExpiredError
from outlive.events import ApprovalClosed, ApprovalDecided, ApprovalEscalated, ApprovalRequested, MessageSetAside
from outlive.types import Approval, ApprovalNotice, Workflow
from tests.replay.define import NONCE, START_AT, Code, cancel, pack, signal, step, unpack, workflow
from tests.replay.driver import live
from tests.replay.life import Life, assert_replays, fed

SEEDS = [None, *range(10)]
DAY = 24 * 3600


@dataclass(frozen=True)
class Refund:
    """A form."""

    cents: int


def decided(
    call: str = "@approval/refund", *, approved: bool = True, form: Any = None, nonce: int = NONCE, run: int = 0
) -> ApprovalDecided:
    """A decision, to be delivered by the driver."""
    raw = msgspec.UNSET if form is None else msgspec.Raw(msgspec.json.encode(form))
    decision = Decision(id="d", nonce=nonce, approved=approved, by="ann", at=START_AT, form=raw)
    return ApprovalDecided(at=START_AT, run=run, approval=call, payload=pack(msgspec.json.encode(decision)))


def garbled() -> ApprovalDecided:
    """Something that is not a decision at all."""
    return ApprovalDecided(at=START_AT, approval="@approval/refund", payload=pack(b'{"approved":"maybe"}'))


def kinds(life: Life) -> list[str]:
    """The facts about approvals in a journal."""
    return [kind.removeprefix("Approval") for kind in life.kinds if kind.startswith("Approval")]


@step()
async def tell(notice: ApprovalNotice) -> None:
    """Tell people."""


@step()
async def tell_nobody(notice: ApprovalNotice) -> None:
    """The mail server is down."""
    raise OSError("no route to host")


@step()
async def work(n: int) -> int:
    """Something to do."""
    return n


@workflow()
async def plain_ask() -> str:
    """Nothing but the wait."""
    answer = await wait_for_approval("refund", form=Refund)
    return f"{answer.by} {answer.approved} {answer.form}"


@workflow()
async def asks_all() -> str:
    """Everything that an approval can have, and work before, beside and after it."""
    await work(1)
    beside = asyncio.create_task(work(2))
    try:
        answer = await wait_for_approval(
            "refund",
            title="Refund?",
            form=Refund,
            assignees=["finance"],
            deadline=5 * DAY,
            remind_every=DAY,
            escalate_after=2.5 * DAY,
            escalate_to=["boss", "finance"],
            notify=tell,
        )
    except ApprovalExpiredError as error:
        return f"{error}"
    finally:
        await work(await beside)
    await asyncio.sleep(1)
    return f"{answer.by} {answer.form}"


@workflow()
async def asks_with_patience() -> str:
    """A timeout of asyncio around it."""
    try:
        async with asyncio.timeout(DAY):
            return (await wait_for_approval("refund")).by
    except TimeoutError:
        return "expired"


@workflow()
async def asks_and_is_failed() -> str:
    """A notice that cannot be sent."""
    answer = await wait_for_approval("refund", notify=tell_nobody, remind_every=DAY)
    return answer.by


@workflow()
async def asks_twice_at_once() -> list[str]:
    """One name, two requests."""

    async def ask() -> str:
        return str((await wait_for_approval("refund", form=Refund)).form)

    return list(await asyncio.gather(ask(), ask()))


def test_a_decision_answers_the_request() -> None:
    """The wait is over with what was decided and filled in."""
    life = live(plain_ask, inject={2: [decided(form={"cents": 5})]})

    assert life.result == "ann True Refund(cents=5)"
    assert kinds(life) == ["Requested", "Decided"]
    assert_replays(life)


def test_a_run_that_waits_for_people_is_not_stuck() -> None:
    """It says whom it waits for, and until when."""
    life = live(plain_ask)

    assert life.status == "waiting"
    assert [(wait.kind, wait.name) for wait in life.books[-1].waits] == [(WaitKind.APPROVAL, "refund")]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_decision_may_come_at_any_time(seed: int | None) -> None:
    """Between reminders and escalation, or too late; killed before every event, the run goes the same way."""
    life = live(asks_all, seed=seed, inject={3 + 2 * (seed or 0): [decided(form={"cents": 5})]}, crash_at=range(100))

    is_late = "Closed" in kinds(life)
    assert life.result == (
        "approval 'refund' was not decided by finance, boss before its deadline" if is_late else "ann Refund(cents=5)"
    )
    assert_replays(life)


def test_reminders_escalation_and_deadline_come_when_they_should() -> None:
    """Assignees are notified at once and every day, others after two and a half days, and after five days no person
    is."""
    life = live(asks_all, crash_at=range(100))

    events = [event.payload for event in life.journal if isinstance(event, ApprovalEscalated)]
    assert life.result == "approval 'refund' was not decided by finance, boss before its deadline"
    assert kinds(life) == ["Requested", "Escalated", "Closed"]
    assert [msgspec.json.decode(unpack(payload)) for payload in events] == [["finance", "boss"]]
    # Requested, four reminders before the deadline, and one escalation.
    assert [name.partition("/watch")[2] for name in life.steps_run if "tell" in name] == [
        ".1/tell",
        ".1/tell#2",
        ".1/tell#3",
        ".2/tell",
        ".1/tell#4",
        ".1/tell#5",
    ]
    assert_replays(life)


def test_a_notice_that_cannot_be_delivered_does_not_end_the_wait() -> None:
    """Its failure is in the journal, the next reminder tries again, and people can still decide."""
    life = live(asks_and_is_failed, inject={8: [decided()]})

    assert life.result == "ann"
    assert life.kinds.count("StepFailed") == 3
    assert_replays(life)


def test_a_timeout_takes_the_request_back() -> None:
    """A decision that comes later is a fact and changes nothing."""

    @workflow()
    async def goes_on() -> str:
        try:
            async with asyncio.timeout(DAY):
                return (await wait_for_approval("refund")).by
        except TimeoutError:
            return str(await wait_for_signal("go"))

    life = live(goes_on, inject={4: [decided(), signal("go", "gone")]})

    assert life.result == "gone"
    assert kinds(life) == ["Requested", "Closed", "Decided"]
    assert [event.approval for event in life.journal if isinstance(event, ApprovalClosed)] == ["@approval/refund"]
    assert_replays(life)


def test_a_cancelled_run_takes_its_request_back() -> None:
    """Before it ends."""
    life = live(plain_ask, inject={2: [cancel()]})

    assert life.status == "cancelled"
    assert life.kinds[-2:] == ["ApprovalClosed", "RunCancelled"]
    assert_replays(life)


def test_a_run_that_times_out_takes_its_request_back() -> None:
    """A run that times out closes its approval before it ends."""
    life = live(plain_ask, timeout=60)

    assert life.kinds[-2:] == ["ApprovalClosed", "RunTimedOut"]
    assert_replays(life)


@workflow()
async def asks_again_at_the_end() -> str:
    """Whatever happens, it asks once more."""
    try:
        return (await wait_for_approval("refund", deadline=DAY)).by
    finally:
        await wait_for_approval("again")


@pytest.mark.parametrize("of", [asks_all, asks_with_patience, asks_again_at_the_end])
def test_a_dropped_run_takes_nothing_back(of: Workflow[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on elsewhere: nothing of its leaving may be seen."""
    recorded: list[Any] = []
    life = live(of, inject={8: [decided(form={"cents": 5})]})
    for length in range(1, len(life.journal)):
        with fed(life.code, life.journal[:length]) as execution:
            monkeypatch.setattr(execution, "record", lambda *fact: recorded.append(fact))
        assert recorded == []


def test_requests_of_one_name_are_distinguished() -> None:
    """Each decision answers its own."""
    first, second = decided("1/@approval/refund", form={"cents": 1}), decided("2/@approval/refund", form={"cents": 2})
    life = live(asks_twice_at_once, inject={3: [second, first]})

    assert life.result == ["Refund(cents=1)", "Refund(cents=2)"]
    assert_replays(life)


def test_a_decision_for_an_earlier_generation_answers_nothing() -> None:
    """A run that goes on as a new one asks with the same call; what was on its way to the old one is not for it."""
    life = live(plain_ask, inject={2: [decided(form={"cents": 5}, nonce=NONCE + 1)]})

    assert life.status == "waiting"
    assert kinds(life) == ["Requested", "Decided"]


@pytest.mark.parametrize("wrong", [decided(form={"euros": 5}), garbled()], ids=["form", "decision"])
def test_a_decision_that_cannot_be_read_is_set_aside_and_people_are_asked_again(wrong: ApprovalDecided) -> None:
    """With a request of its own, so that they can decide once more; every replay does the same."""
    again = decided("@approval/refund#2", form={"cents": 5})
    life = live(plain_ask, inject={2: [wrong], 4: [again]}, crash_at=range(100))

    assert life.result == "ann True Refund(cents=5)"
    assert kinds(life) == ["Requested", "Decided", "Requested", "Decided"]
    (fact,) = [event for event in life.journal if isinstance(event, MessageSetAside)]
    assert (fact.name, fact.approval, fact.message) == ("refund", "@approval/refund", "2")
    assert_replays(life)


def test_an_approval_that_is_asked_again_says_why_and_keeps_its_deadline() -> None:
    """The deadline counts from the first time: a wrong form is not a way to put it off."""
    life = live(asks_all, inject={7: [decided(form={"euros": 5})]})

    assert life.result == "approval 'refund' was not decided by finance, boss before its deadline"
    (closed,) = [event for event in life.journal if isinstance(event, ApprovalClosed)]
    assert closed.at == START_AT + 5 * DAY * 1_000_000
    assert kinds(life) == ["Requested", "Decided", "Requested", "Escalated", "Closed"]
    expected = [wait.detail for books in life.books for wait in books.waits if wait.kind is WaitKind.APPROVAL]
    assert "(asked again, as the decision could not be used: it cannot be read as Refund: " in expected[-1]
    assert_replays(life)


def test_a_decision_that_was_set_aside_stays_so_for_code_that_can_read_it() -> None:
    """People have been asked again, and may have answered."""
    life = live(plain_ask, inject={2: [decided(form={"euros": 5})]})

    @workflow(name="plain_ask")
    async def wider() -> str:
        return str((await wait_for_approval("refund", form=dict[str, int])).form)

    assert live(wider, journal=life.journal).status == "waiting"


def test_people_who_were_asked_stay_asked() -> None:
    """The journal says who was asked; code that would ask others now makes a difference, and asks them no more."""

    def asking(title: str, *people: str) -> Any:
        @workflow(name="asks")
        async def asks() -> Approval[None]:
            return await wait_for_approval("refund", title=title, assignees=people)

        return asks

    journal = live(asking("Refund?", "finance")).journal
    assert live(asking("Refund?", "finance")).status == "waiting"
    with fed(Code(asking("Pay it back?", "finance")), journal) as execution:
        assert not execution.differences
    with fed(Code(asking("Refund?", "legal")), journal) as execution:
        assert not execution.is_parked
        assert [found.call for found in execution.differences.values()] == ["@approval/refund"]
        assert [wait.detail for wait in execution.waits()] == ['("Refund?") by finance']


def test_a_deadline_changes_the_identity_of_no_other_call() -> None:
    """Timers and notices of an approval have names of their own."""

    @workflow()
    async def before_and_after() -> str:
        await asyncio.sleep(1)
        await wait_for_approval("refund", deadline=DAY, notify=tell)
        task = asyncio.create_task(work(1))
        await asyncio.sleep(1)
        return str(await task)

    life = live(before_and_after, inject={4: [decided()]})
    assert [event.call for event in life.journal if hasattr(event, "call") and event.call] == [
        "@timer",
        "@approval/refund",
        "@approval/refund/watch.1/tell",
        "1/work",
        "@timer#2",
    ]
    requested = next(event for event in life.journal if isinstance(event, ApprovalRequested))
    assert requested.name == "refund"


def test_a_title_that_no_journal_can_hold_is_refused() -> None:
    """Before anybody is asked."""

    @workflow()
    async def asks() -> str:
        return (await wait_for_approval("refund", title="\ud800")).by

    life = live(asks)
    assert "surrogate" in life.failure
    assert kinds(life) == []


def test_requests_and_decisions_of_release_0_1_are_read_for_ever() -> None:
    """The requests and decisions that release 0.1 wrote into journals keep their meaning."""
    asked = (
        b'{"title":"Refund?","form":{"type":"integer"},"assignees":["finance"],"deadline_at":5,"remind_every":1,'
        b'"escalate_at":3,"escalate_to":["boss"]}'
    )
    said = b'{"id":"d","nonce":7,"approved":true,"by":"ann","at":4,"comment":"fine","form":{"cents":5}}'
    request = msgspec.json.decode(asked, type=ApprovalRequest)
    decision = msgspec.json.decode(said, type=Decision)

    assert (request.title, request.assignees, request.deadline_at) == ("Refund?", ("finance",), 5)
    assert (request.remind_every, request.escalate_at, request.escalate_to) == (1, 3, ("boss",))
    assert (decision.id, decision.nonce, decision.approved, decision.by) == ("d", 7, True, "ann")
    assert (decision.at, decision.comment) == (4, "fine")
    assert (msgspec.json.encode(request), msgspec.json.encode(decision)) == (asked, said)


@workflow()
async def changes_its_mind() -> str:
    """Asks, and takes it back before anybody could hear of it; then asks again."""
    first = asyncio.create_task(wait_for_approval("refund"))
    await asyncio.sleep(0)
    first.cancel()
    return (await wait_for_approval("refund")).by


def test_a_request_that_is_taken_back_at_once_is_closed() -> None:
    """Both are in the journal, in this order, and a second request is another one."""
    life = live(changes_its_mind, inject={4: [decided("1/@approval/refund"), decided()]}, crash_at=range(100))

    assert life.result == "ann"
    assert sorted(kinds(life)) == ["Closed", "Decided", "Decided", "Requested", "Requested"]
    assert kinds(life).index("Requested") < kinds(life).index("Closed")
    assert_replays(life)


@workflow()
async def races() -> str:
    """A person against a signal: who comes first wins, and the other wait is over."""
    person = asyncio.create_task(wait_for_approval("refund", deadline=DAY))
    message = asyncio.create_task(wait_for_signal("stop"))
    done, rest = await asyncio.wait([person, message], return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    return "approved" if person in done else "stopped"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_race_against_a_person_has_one_winner(seed: int | None) -> None:
    """The loser is taken back; the journal says who was first, in every replay."""
    events = [decided("1/@approval/refund"), signal("stop")]
    life = live(races, inject={2: events if seed is None or seed % 2 else events[::-1]}, seed=seed)

    is_approved = seed is None or bool(seed % 2)
    assert life.result == ("approved" if is_approved else "stopped")
    assert kinds(life)[:2] == (["Requested", "Decided"] if is_approved else ["Requested", "Closed"])
    assert_replays(life)


@workflow()
async def goes_on_after_it() -> str:
    """Everything beside the wait must end with it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1.5 * DAY):
            await wait_for_approval(
                "refund", deadline=5 * DAY, remind_every=DAY, escalate_after=3, escalate_to=["boss"], notify=tell
            )
    return str(await wait_for_signal("go"))


@pytest.mark.parametrize("is_decided", [True, False])
def test_nothing_of_an_approval_is_left_when_the_wait_is_over(*, is_decided: bool) -> None:
    """Neither a timer that would wake the run, nor a notice to anybody."""
    life = live(goes_on_after_it, inject={3: [decided()]} if is_decided else {})

    assert [wait.name for wait in life.books[-1].waits] == ["go"]
    end = life.kinds.index("ApprovalDecided" if is_decided else "ApprovalClosed")
    assert life.kinds[end + 1 :] == []
