"""The breaker as a state machine: when it opens, how it tries, and whose outcomes count."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive._kernel.model.breaker import (
    BreakerRefusal,
    BreakerState,
    Permit,
    Phase,
    ask_breaker,
    record_call,
    renew_trial,
    settled,
    withdraw_permit,
)
from outlive.errors import ConfigurationError
from outlive.limits import Breaker

SECOND = 1_000_000
AT = 1_700_000_000 * SECOND
LAPSE = 30 * SECOND
BANK = Breaker("bank", failures=3, reset=10)


class Caller:
    """Asks a breaker, by a clock in its hand."""

    def __init__(self, breaker: Breaker = BANK) -> None:
        self.breaker = breaker
        self.state = BreakerState()
        self.now_at = AT
        self.asked = 0

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now_at += round(seconds * SECOND)

    def ask(self, *, lapse: int | None = LAPSE) -> Permit | BreakerRefusal:
        """Want to call."""
        self.asked += 1
        self.state, answer = ask_breaker(
            self.breaker, self.state, permit_id=f"permit-{self.asked}", now_at=self.now_at, lapse=lapse
        )
        return answer

    def permit(self) -> Permit:
        """A permit; it must be given."""
        permit = self.ask()
        assert isinstance(permit, Permit)
        return permit

    def record(self, permit: Permit, *, is_good: bool) -> None:
        """Say how it went."""
        self.state = record_call(self.breaker, self.state, permit, is_good=is_good, now_at=self.now_at)

    def fail(self, times: int = 1) -> None:
        """Call and fail."""
        for _ in range(times):
            self.record(self.permit(), is_good=False)

    def phase(self) -> Phase:
        """What it is now."""
        return settled(self.breaker, self.state, now_at=self.now_at).phase


def test_failures_in_a_row_open_a_breaker() -> None:
    """A breaker opens after as many failures in a row as it allows, and not after one fewer. [FE-R5]"""
    caller = Caller()
    caller.fail(2)
    assert Phase.CLOSED is caller.phase()

    caller.fail()

    assert Phase.OPEN is caller.phase()
    assert BreakerRefusal(AT + 10 * SECOND) == caller.ask()


def test_a_success_between_failures_begins_the_count_again() -> None:
    """In a row means in a row."""
    caller = Caller()
    caller.fail(2)
    caller.record(caller.permit(), is_good=True)
    caller.fail(2)

    assert Phase.CLOSED is caller.phase()


def test_breaker_lets_one_trial_through_after_its_reset_time() -> None:
    """A breaker lets one trial through after its reset time, and refuses other callers until that has ended."""
    caller = Caller()
    caller.fail(3)
    caller.wait(9.9)
    assert isinstance(caller.ask(), BreakerRefusal)

    caller.wait(0.1)
    trial = caller.permit()

    assert trial.is_trial
    assert BreakerRefusal(caller.now_at + SECOND) == caller.ask()


def test_a_good_trial_closes_a_breaker() -> None:
    """A good trial closes a breaker, and every caller may call again."""
    caller = Caller()
    caller.fail(3)
    caller.wait(10)
    caller.record(caller.permit(), is_good=True)

    assert Phase.CLOSED is caller.phase()
    assert [False, False] == [caller.permit().is_trial for _ in range(2)]


def test_a_bad_trial_opens_it_again() -> None:
    """One is enough, and the whole reset time begins again."""
    caller = Caller()
    caller.fail(3)
    caller.wait(10)
    caller.fail()

    assert BreakerRefusal(caller.now_at + 10 * SECOND) == caller.ask()


def test_several_trials_may_be_under_way() -> None:
    """A breaker with two trials lets two callers through at a time."""
    caller = Caller(Breaker("bank", failures=1, reset=10, trials=2))
    caller.fail()
    caller.wait(10)

    assert [True, True] == [caller.permit().is_trial for _ in range(2)]
    assert isinstance(caller.ask(), BreakerRefusal)


def test_a_late_outcome_of_an_old_epoch_is_ignored() -> None:
    """A call from before it opened neither closes it nor spoils the trial."""
    caller = Caller()
    early, earlier = caller.permit(), caller.permit()
    caller.fail(3)
    caller.record(early, is_good=True)
    assert Phase.OPEN is caller.phase()

    caller.wait(10)
    trial = caller.permit()
    caller.record(earlier, is_good=False)
    assert Phase.HALF_OPEN is caller.phase()

    caller.record(trial, is_good=True)
    assert Phase.CLOSED is caller.phase()


def test_an_outcome_from_before_it_opened_does_not_count_after_it_closed() -> None:
    """The breaker was open in between: that failure is known already."""
    caller = Caller(Breaker("bank", failures=1, reset=10))
    early = caller.permit()
    caller.fail()
    caller.wait(10)
    caller.record(caller.permit(), is_good=True)

    caller.record(early, is_good=False)

    assert Phase.CLOSED is caller.phase()


def test_a_trial_that_is_never_heard_of_has_failed_at_its_deadline() -> None:
    """The process died: the breaker is open from the deadline on, and tries again after its reset time."""
    caller = Caller()
    caller.fail(3)
    caller.wait(10)
    lost = caller.permit()

    caller.wait(30)
    assert Phase.OPEN is caller.phase()
    assert BreakerRefusal(caller.now_at + 10 * SECOND) == caller.ask()

    caller.wait(10)
    assert caller.permit().is_trial
    caller.record(lost, is_good=True)
    assert Phase.HALF_OPEN is caller.phase()


def test_a_trial_that_says_it_is_under_way_has_not_failed() -> None:
    """However long it takes."""
    caller = Caller()
    caller.fail(3)
    caller.wait(10)
    trial = caller.permit()
    for _ in range(10):
        caller.wait(20)
        caller.state = renew_trial(caller.breaker, caller.state, trial, now_at=caller.now_at, lapse=LAPSE)

    caller.record(trial, is_good=True)

    assert Phase.CLOSED is caller.phase()


def test_a_trial_that_is_withdrawn_leaves_its_place_to_another() -> None:
    """It was not called after all."""
    caller = Caller()
    caller.fail(3)
    caller.wait(10)
    trial = caller.permit()

    caller.state = withdraw_permit(caller.breaker, caller.state, trial.id, now_at=caller.now_at)

    assert caller.permit().is_trial


def test_asking_twice_for_one_trial_is_asking_once() -> None:
    """A caller that does not know whether the trial was given may ask again."""
    caller = Caller()
    caller.fail(3)
    caller.wait(10)
    trial = caller.permit()

    _, again = ask_breaker(caller.breaker, caller.state, permit_id=trial.id, now_at=caller.now_at, lapse=LAPSE)

    assert trial == again


def test_refused_callers_come_back_one_after_the_other() -> None:
    """The callers that a breaker refuses come back one after the other, the last one after twice the reset time."""
    caller = Caller()
    caller.fail(3)
    seen = []
    for _ in range(1000):
        answer = caller.ask()
        assert isinstance(answer, BreakerRefusal)
        seen.append(answer.at - AT)

    assert [10.0, 10.05, 10.1] == [at / SECOND for at in seen[:3]]
    assert 20 * SECOND == max(seen)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 3),
    st.lists(st.tuples(st.sampled_from(["ask", "good", "bad", "withdraw", "wait"]), st.integers(0, 30)), max_size=80),
)
def test_an_open_breaker_lets_no_attempt_through_and_a_trying_one_few(
    failures: int, trials: int, script: list[tuple[str, int]]
) -> None:
    """Whatever happens in whatever order: the rules above, said from outside, by one who only counts."""
    caller = Caller(Breaker("any", failures=failures, reset=10, trials=trials))
    under_way: list[tuple[Permit, int]] = []
    in_a_row = 0
    for what, number in script:
        phase, epoch = caller.phase(), settled(caller.breaker, caller.state, now_at=caller.now_at).epoch
        if what == "wait":
            caller.wait(number)
        elif what == "ask":
            answer = caller.ask()
            assert isinstance(answer, BreakerRefusal) or phase is not Phase.OPEN
            assert isinstance(answer, Permit) or phase is not Phase.CLOSED
            if isinstance(answer, Permit):
                assert answer.is_trial == (phase is Phase.HALF_OPEN)
                under_way.append((answer, caller.now_at))
            else:
                assert answer.at > caller.now_at
        elif under_way:
            permit, _ = under_way.pop(number % len(under_way))
            before = settled(caller.breaker, caller.state, now_at=caller.now_at)
            if what == "withdraw":
                caller.state = withdraw_permit(caller.breaker, caller.state, permit.id, now_at=caller.now_at)
                assert caller.phase() is before.phase
                continue
            caller.record(permit, is_good=what == "good")
            if permit.epoch != epoch:
                assert caller.state == before
                continue
            in_a_row = 0 if what == "good" or phase is not Phase.CLOSED else in_a_row + 1
            if what == "good":
                assert Phase.CLOSED is caller.phase()
            elif phase is Phase.HALF_OPEN or in_a_row == failures:
                assert Phase.OPEN is caller.phase()
                in_a_row = 0
            else:
                assert Phase.CLOSED is caller.phase()
        live_trials = [
            permit
            for permit, began_at in under_way
            if permit.epoch == settled(caller.breaker, caller.state, now_at=caller.now_at).epoch and permit.is_trial
        ]
        assert len(live_trials) <= trials


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 201},
        {"name": "bank", "failures": 0},
        {"name": "bank", "trials": 0},
        {"name": "bank", "reset": 0},
        {"name": "bank", "reset": math.inf},
        {"name": "bank", "failures": 1.5},
        {"name": "bank", "on": ValueError},
        {"name": "bank", "on": ("ValueError",)},
        {"name": "bank", "when_open": "hope"},
    ],
    ids=[
        "no name",
        "too long a name",
        "no failure",
        "no trial",
        "no reset time",
        "open for ever",
        "half a failure",
        "no tuple",
        "no exception",
        "an unknown option",
    ],
)
def test_an_invalid_breaker_is_refused(wrong: dict[str, object]) -> None:
    """A breaker that cannot work is refused when it is made."""
    with pytest.raises(ConfigurationError):
        Breaker(**wrong)  # type: ignore[arg-type]


def test_a_reset_time_may_be_a_timedelta() -> None:
    """Seconds are for short ones."""
    assert 300 == Breaker("bank", reset=timedelta(minutes=5)).reset
