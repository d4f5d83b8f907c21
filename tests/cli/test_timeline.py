"""A journal as a timeline: spans, attempts, children, waits and the gap of a crash; and how they are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from outlive._kernel.client.timeline import Line, LineKind, LineState, Timeline
from outlive._kernel.journal import event as journal
from outlive._kernel.model import Failure, Payload, RunStatus, Wait, WaitKind
from outlive._kernel.values.event import event_of
from outlive._kernel.values.failure import failure_of
from outlive.cli.drawing import drawn
from outlive.types import Event
from tests.golden.make_timelines import expected_of, said
from tests.golden.make_timelines import shown as shown_of
from tests.golden.test_golden import FILES

SECOND = 1_000_000
T0 = 1_700_000_000 * SECOND
BAD = Failure(type="shop.CardDeclined", message="no money")


def at(seconds: float, **fields: Any) -> dict[str, Any]:
    """The fields of an event some seconds after the beginning."""
    return {"at": T0 + int(seconds * SECOND), **fields}


def value(content: object) -> Payload:
    """A payload as a redacted history has it."""
    return Payload(v=msgspec.Raw(msgspec.json.encode(content)))


STORY: list[journal.AnyEvent] = [
    journal.RunCreated(**at(0, workflow="order", version=1, input=value([7]), worker="anvil")),
    journal.RunCreated(**at(0.1, run=1, parent=0, call="ship", workflow="ship", version=2, input=value([]))),
    journal.StepSucceeded(**at(0.4, run=1, call="pick", result=value(1), took=200_000)),
    journal.AttemptFailed(**at(0.5, call="charge", failure=BAD, attempt=1, retry_at=T0 + SECOND, took=100_000)),
    journal.RunSucceeded(**at(0.6, run=1, result=value(None))),
    journal.StepSucceeded(**at(1.2, call="charge", result=value("paid"), attempt=2, took=200_000)),
    journal.RunPublished(**at(1.3, payload=value({"stage": "paid"}))),
    journal.RunSuspended(**at(1.4, waits=(Wait(kind=WaitKind.SIGNAL, name="go"),))),
    journal.RunClaimed(**at(3_601.4, worker="brush", epoch=2)),
    journal.SignalReceived(**at(3_601.5, name="go", payload=value("x"))),
    journal.DetachedStarted(**at(3_601.6, call="bill", run_id="bill-7")),
    journal.ApprovalRequested(**at(3_601.7, call="refund", name="refund", payload=value({}))),
    journal.ApprovalDecided(**at(3_602, approval="refund", payload=value({"approved": True, "by": "ann"}))),
    journal.DetachedEnded(**at(3_603, run_id="bill-7", status=RunStatus.SUCCEEDED)),
    journal.RunClaimed(**at(3_613, worker="chisel", epoch=3, interrupted=True)),
    journal.StepFailed(**at(3_614, call="send", failure=BAD, took=SECOND // 2)),
    journal.RunFailed(**at(3_614.1, failure=BAD)),
]


def shown(story: list[journal.AnyEvent]) -> list[Event]:
    """Events as people see them."""
    return [event_of(seq, event, "order-1") for seq, event in enumerate(story)]


def lines_of(story: list[journal.AnyEvent]) -> dict[str, Line]:
    """Lines by their names."""
    return {line.name: line for line in Timeline(shown(story)).lines()}


def test_journal_becomes_spans() -> None:
    """Steps with attempts, waits, other runs and approvals have a beginning and an end."""
    lines = lines_of(STORY)

    charge = lines["charge"]
    assert (charge.kind, charge.state, len(charge.attempts)) == (LineKind.STEP, LineState.DONE, 2)
    assert (charge.began_at, charge.ended_at) == (T0 + 400_000, T0 + 1_200_000)
    assert [each.failure for each in charge.attempts] == [failure_of(BAD), None]
    wait = lines["waits for signal 'go'"]
    assert (wait.ended_at or 0) - wait.began_at == 3_600 * SECOND
    assert (lines["run bill-7"].kind, lines["run bill-7"].note) == (LineKind.OTHER, "succeeded")
    assert lines["approval 'refund'"].note == "approved by ann"
    assert 'published {"stage":"paid"}' in lines
    assert (lines["send"].state, lines["send"].failure) == (LineState.FAILED, failure_of(BAD))


def test_step_began_with_its_first_attempt_and_not_with_its_first_event() -> None:
    """A step that said how far it came has events while it runs; its outcome says for how long it ran."""
    story: list[journal.AnyEvent] = [
        journal.RunCreated(**at(0, workflow="order", version=1, input=value([]), worker="anvil")),
        journal.StepProgressed(**at(5, call="pack", progress=value(1))),
        journal.StepSucceeded(**at(9, call="pack", result=value(1), took=8 * SECOND)),
    ]

    assert lines_of(story)["pack"].began_at == T0 + SECOND


def test_gap_of_a_crash_says_which_worker_was_lost_and_which_took_over() -> None:
    """From the last sign of the one to the claim of the other."""
    gap = lines_of(STORY)["worker brush was lost; worker chisel took over"]

    assert gap.kind is LineKind.LOST
    assert (gap.began_at, gap.ended_at) == (T0 + 3_603 * SECOND, T0 + 3_613 * SECOND)


def test_lines_of_a_child_stand_below_its_own_line() -> None:
    """One deeper, and before later lines of its parent."""
    lines = Timeline(shown(STORY)).lines()
    names = [line.name for line in lines]

    child = names.index("ship, version 2")
    assert names[child + 1] == "pick"
    assert (lines[child].depth, lines[child + 1].depth, lines[child].note) == (0, 1, "succeeded")
    assert names.index("charge") > child


def test_a_step_without_an_end_is_open_until_its_run_ends() -> None:
    """A step that waits for its next attempt, and a wait, are open in the timeline, and stopped when their run ends."""
    opened: list[journal.AnyEvent] = [STORY[0], STORY[3], journal.RunSuspended(**at(0.6, waits=()))]
    assert [line.state for line in Timeline(shown(opened)).lines()][1:] == [LineState.OPEN, LineState.OPEN]

    ended = Timeline(shown([*opened, journal.RunCancelled(**at(2, reason="rain"))])).lines()
    assert [line.state for line in ended][1:] == [LineState.STOPPED, LineState.DONE, LineState.STOPPED]


def test_step_that_is_called_again_after_a_retry_has_a_line_of_its_own() -> None:
    """The first line ends where the step failed; progress that comes late adds no line."""
    story: list[journal.AnyEvent] = [
        STORY[0],
        journal.StepFailed(**at(1, call="charge", failure=BAD, took=100_000)),
        journal.StepProgressed(**at(1.1, call="charge", progress=value({"sent": 7}))),
        journal.RunRetried(**at(60)),
        journal.StepSucceeded(**at(61, call="charge", result=value("paid"), took=500_000)),
    ]
    first, second = [line for line in Timeline(shown(story)).lines() if line.kind is LineKind.STEP]

    assert (first.name, first.state, first.ended_at, first.failure) == (
        "charge",
        LineState.FAILED,
        T0 + SECOND,
        failure_of(BAD),
    )
    assert first.note == 'came to {"sent":7}'
    assert (second.name, second.state, second.failure) == ("charge", LineState.DONE, None)
    assert (second.began_at, second.ended_at) == (T0 + 60 * SECOND + SECOND // 2, T0 + 61 * SECOND)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_history_has_the_rows_that_the_dashboard_has(path: Path) -> None:
    """The bars, gaps and end too; `tests/e2e/test_timeline.py` compares the dashboard with this file."""
    assert said(Timeline(shown_of(path))) == expected_of(path)


def test_step_that_was_delayed_began_after_the_delay() -> None:
    """An outcome that does not say how long it took counts from there, and not from the first event of the step."""
    story: list[journal.AnyEvent] = [
        STORY[0],
        journal.StepDelayed(**at(1, call="ring", until_at=T0 + 60 * SECOND, by="rate limit bell")),
        journal.StepSucceeded(**at(61, call="ring", result=value(1))),
    ]

    (attempt,) = lines_of(story)["ring"].attempts
    assert (attempt.began_at, attempt.ended_at) == (T0 + 60 * SECOND, T0 + 61 * SECOND)


def test_timeline_is_drawn_on_a_scale_that_shows_short_steps_beside_long_waits() -> None:
    """A step of 200 ms is seen beside a wait of an hour; attempts that failed are x."""
    timeline = Timeline(shown(STORY))
    text = drawn(timeline.lines(), began_at=T0, now_at=timeline.last_at, width=40)
    by_name = {line.split("  ")[-1].strip(): line for line in text}

    charge = next(line for name, line in by_name.items() if name.startswith("step charge"))
    assert "xx" in charge
    assert "==" in charge
    assert ".." in charge
    assert "~~~" in by_name["waits for signal 'go'"]
    assert "!!!" in by_name["worker brush was lost; worker chisel took over"]
    assert by_name["step send: shop.CardDeclined: no money"].split()[:2] == ["+1", "h"]
    assert drawn([], began_at=T0, now_at=T0, width=40) == []


def asked(seconds: float) -> journal.AnyEvent:
    """A request of an approval."""
    return journal.ApprovalRequested(**at(seconds, call="refund", name="refund", payload=value({})))


def test_approval_that_is_closed_says_that_it_is_no_longer_waited_for() -> None:
    """Its line ends there, stopped and without a decision."""
    story = [STORY[0], asked(1), journal.ApprovalClosed(**at(2, call="close", approval="refund"))]
    line = lines_of(story)["approval 'refund'"]

    assert (line.state, line.ended_at, line.note) == (LineState.STOPPED, T0 + 2 * SECOND, "no longer waited for")


@pytest.mark.parametrize("before", [[], [asked(1), journal.ApprovalClosed(**at(2, call="close", approval="refund"))]])
def test_decision_about_a_request_that_is_not_open_is_a_mark(before: list[journal.AnyEvent]) -> None:
    """A decision that came too late, or without its request, changes no line of an approval."""
    decided = journal.ApprovalDecided(**at(9, approval="refund", payload=value({"approved": True, "by": "ann"})))
    *earlier, last = Timeline(shown([STORY[0], *before, decided])).lines()

    assert (last.kind, last.began_at, last.note) == (LineKind.MARK, T0 + 9 * SECOND, "")
    assert "ann" not in str([line.note for line in earlier])


def test_timer_that_ends_the_wait_of_the_run_has_no_line_of_its_own() -> None:
    """The line of that wait ends there; a timer that the run did not sleep for is a mark."""
    slept: list[journal.AnyEvent] = [
        STORY[0],
        journal.RunSuspended(
            **at(1, waits=(Wait(kind=WaitKind.TIMER, name="nap"), Wait(kind=WaitKind.SIGNAL, name="go")))
        ),
        journal.TimerFired(**at(5, call="nap")),
    ]
    _, wait = Timeline(shown(slept)).lines()
    *_, mark = Timeline(shown([*slept, journal.TimerFired(**at(6, call="go"))])).lines()

    assert (wait.kind, wait.ended_at) == (LineKind.WAIT, T0 + 5 * SECOND)
    assert (mark.kind, mark.began_at) == (LineKind.MARK, T0 + 6 * SECOND)


def test_time_without_a_worker_says_why_there_was_none() -> None:
    """A worker that let go of the run, with its reason if it had one, or a run that was parked."""
    released: list[journal.AnyEvent] = [
        STORY[0],
        journal.RunReleased(**at(1)),
        journal.RunReleased(**at(2, reason="it moved", moved_at=T0)),
        journal.RunParked(**at(3, reason="no such step")),
    ]

    assert [(line.kind, line.name) for line in Timeline(shown(released)).lines()[1:]] == [
        (LineKind.WAIT, "released by its worker"),
        (LineKind.WAIT, "released by its worker: it moved"),
        (LineKind.WAIT, "parked: no such step"),
    ]


def test_claim_is_a_mark_if_the_worker_is_another_one() -> None:
    """A worker that goes on with its own run changes nothing that people want to see."""
    claims: list[journal.AnyEvent] = [
        STORY[0],
        journal.RunClaimed(**at(1, worker="anvil", epoch=2)),
        journal.RunClaimed(**at(2, worker="brush", epoch=3)),
    ]

    assert [line.began_at for line in Timeline(shown(claims)).lines()] == [T0, T0 + 2 * SECOND]


def test_retry_of_the_root_opens_the_run_and_takes_back_its_steps() -> None:
    """A step that it takes back says so; a retry that goes on with a child alone leaves the end of the root."""
    ended: list[journal.AnyEvent] = [
        STORY[0],
        journal.StepFailed(**at(1, call="charge", failure=BAD, took=SECOND // 2)),
        journal.RunPublished(**at(1.5, payload=value({}))),
        journal.RunFailed(**at(2, failure=BAD)),
    ]
    retried = Timeline(shown([*ended, journal.RunRetried(**at(9, undone=(1, 2)))]))
    step, published, _, retry = retried.lines()[1:]

    assert (retried.end, retry.kind, retry.began_at) == ("", LineKind.MARK, T0 + 9 * SECOND)
    assert (step.state, step.note) == (LineState.STOPPED, "taken back by a retry")
    assert (published.state, published.note) == (LineState.DONE, "")
    assert Timeline(shown([*ended, journal.RunRetried(**at(9, run=1))])).end == "failed"


def test_step_says_in_its_note_what_happened_to_it() -> None:
    """That it had to wait, and that a person has skipped it; a step that returned after all has no note."""
    delayed = journal.StepDelayed(**at(1, call="ring", until_at=T0 + 2 * SECOND, by="rate limit bell"))
    skipped = journal.StepSucceeded(**at(3, call="ring", result=value(1), skipped=True))
    returned = journal.StepSucceeded(**at(3, call="ring", result=value(1)))

    assert lines_of([STORY[0], delayed])["ring"].note == "had to wait for rate limit bell"
    line = lines_of([STORY[0], delayed, skipped])["ring"]
    assert (line.state, line.note) == (LineState.STOPPED, "skipped by a person, who gave its result")
    assert lines_of([STORY[0], delayed, returned])["ring"].note == ""


def test_attempt_that_failed_is_the_failure_of_its_step_until_the_next_one_ends() -> None:
    """A reader sees why a step is tried again."""
    failed = STORY[3]

    assert lines_of([STORY[0], failed])["charge"].failure == failure_of(BAD)


def test_intent_that_is_taken_back_stops_the_line_of_its_step() -> None:
    """The attempt was not begun."""
    intended = journal.StepIntended(**at(1, call="pay"))
    withdrawn = journal.StepIntended(**at(2, call="pay", attempt=0))

    assert lines_of([STORY[0], intended])["pay"].state is LineState.OPEN
    line = lines_of([STORY[0], intended, withdrawn])["pay"]
    assert (line.state, line.ended_at) == (LineState.STOPPED, T0 + 2 * SECOND)


def test_attempt_after_a_take_over_began_with_the_new_worker() -> None:
    """Unless its event says how long it took: before the claim there was no worker to make it."""
    story: list[journal.AnyEvent] = [
        STORY[0],
        journal.StepProgressed(**at(1, call="pack", progress=value(1))),
        journal.RunClaimed(**at(10, worker="brush", epoch=2, interrupted=True)),
        journal.StepSucceeded(**at(12, call="pack", result=value(1))),
    ]

    (attempt,) = lines_of(story)["pack"].attempts
    assert (attempt.began_at, attempt.ended_at) == (T0 + 10 * SECOND, T0 + 12 * SECOND)


@pytest.mark.parametrize(
    "event",
    [
        journal.SignalReceived(**at(5, name="go", payload=value("x"))),
        journal.RunResumed(**at(5)),
        journal.RunPublished(**at(5, payload=value({"stage": "paid"}))),
    ],
    ids=lambda event: type(event).__name__,
)
def test_event_that_took_no_time_is_a_mark_with_its_words(event: journal.AnyEvent) -> None:
    """A mark begins and ends with its event, and says it in words."""
    history = shown([STORY[0], event])
    mark = Timeline(history).lines()[-1]

    assert (mark.kind, mark.name, mark.state) == (LineKind.MARK, history[-1].words, LineState.DONE)
    assert mark.began_at == mark.ended_at == T0 + 5 * SECOND


def test_event_of_a_later_release_is_a_mark() -> None:
    """A type of event that this release does not know is shown too."""
    known = event_of(1, journal.RunResumed(**at(5)), "order-1")
    later = msgspec.structs.replace(known, type="RunBlessed")

    assert Timeline([*shown([STORY[0]]), later]).lines()[-1].began_at == T0 + 5 * SECOND
