"""Each check of a storm holds on healthy evidence and complains about doctored evidence."""

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from outlive._journal.event import AnyEvent, RunClaimed, RunCreated, StepSucceeded
from outlive._model import Payload
from proof.chaos.checks import STORM_CHECKS
from proof.chaos.evidence import StormEvidence
from proof.chaos.situation import LONG_TRIAL_KILLS
from proof.chaos.trial import Stop
from proof.chaos.zombie import begun_late
from proof.kill.acks import Ack
from proof.kill.effects import Effect
from proof.kill.supervisor import Kill

NULL = Payload(v=msgspec.Raw(b"null"))
NONCE = 7
DEALT = ("client", "all", "one", "freeze", "clean", "outage", "cut", "deaf", "full")
Doctor = Callable[[StormEvidence], None]


def healthy() -> StormEvidence:
    """One run: session `first` did step a and began b, then `second` claimed it at 20 s and did b."""
    events: list[AnyEvent] = [
        RunCreated(at=10_000_000, workflow="w", version=1, input=NULL, nonce=NONCE, worker="first"),
        StepSucceeded(at=12_000_000, call="a", result=NULL),
        RunClaimed(at=20_000_000, worker="second", epoch=2, interrupted=True),
        StepSucceeded(at=22_000_000, call="b", result=NULL),
    ]
    return StormEvidence(
        seed=1,
        journals={"job-1": events},
        effects=[
            Effect(at=9.0, pid=1, mark="ready"),
            mark("begin", "a", at=11, pid=1),
            mark("end", "a", at=12, pid=1),
            mark("begin", "b", at=13, pid=1),
            mark("begin", "b", at=21, pid=2, epoch=2),
            mark("end", "b", at=22, pid=2, epoch=2),
        ],
        stops=[Stop(at=30.0, pid=1, seconds=0.2, code=0), Stop(at=30.0, pid=3, seconds=0.1, code=-15)],
        acks=[Ack(op="ended", number=1, at=25.0, pid=4, status="succeeded")],
        faults=Counter(DEALT),
        server_kills=[1.0],
    )


def mark(what: str, call: str, *, at: float, pid: int, epoch: int = 1) -> Effect:
    """A line of the witness."""
    return Effect(
        at=at,
        pid=pid,
        thread=pid,
        mark=what,
        run="job-1",
        step=call,
        key=f"job-1:{call}:{NONCE:016x}",
        epoch=epoch,
        attempt=1,
    )


def a_zombie_begins_two_steps(it: StormEvidence) -> None:
    it.effects += [mark("begin", call, at=20.5, pid=1) for call in ("c", "d")]


def a_zombie_does_something_before_it_begins_a_step(it: StormEvidence) -> None:
    it.effects += [mark("end", "b", at=20.4, pid=1), mark("begin", "c", at=20.5, pid=1)]


def zombies_use_too_many_excuses(it: StormEvidence) -> None:
    it.effects += [mark("begin", "c", at=20.5, pid=1), mark("begin", "d", at=20.5, pid=9)]


def a_zombie_commits_an_outcome(it: StormEvidence) -> None:
    it.effects += [mark("begin", "c", at=13, pid=1), mark("end", "c", at=21, pid=1)]
    it.journals["job-1"].append(StepSucceeded(at=23_000_000, call="c", result=NULL))


def two_sessions_claim_one_epoch(it: StormEvidence) -> None:
    it.journals["job-1"].append(RunClaimed(at=24_000_000, worker="third", epoch=2))


def a_worker_dies_of_sigterm(it: StormEvidence) -> None:
    it.stops.append(Stop(at=30.0, pid=1, seconds=0.1, code=-15))


def nobody_is_frozen(it: StormEvidence) -> None:
    del it.faults["freeze"]


def nothing_is_done(it: StormEvidence) -> None:
    it.acks.clear()


def a_long_trial_sees_nothing(it: StormEvidence) -> None:
    it.kills += [Kill(0.0, 9, "between steps")] * LONG_TRIAL_KILLS


DOCTORED: list[tuple[Doctor, str]] = [
    (a_zombie_begins_two_steps, "zombies_began_nothing"),
    (a_zombie_does_something_before_it_begins_a_step, "zombies_began_nothing"),
    (zombies_use_too_many_excuses, "zombies_began_nothing"),
    (a_zombie_commits_an_outcome, "zombies_committed_nothing"),
    (two_sessions_claim_one_epoch, "epochs_have_one_owner_each"),
    (a_worker_dies_of_sigterm, "orderly_stops_were_orderly"),
    (nobody_is_frozen, "everything_happened"),
    (a_long_trial_sees_nothing, "everything_happened"),
    (nothing_is_done, "work_went_on"),
]


@pytest.mark.parametrize("check", STORM_CHECKS)
def test_nobody_complains_about_a_healthy_storm(check: Callable[[StormEvidence], object]) -> None:
    """Without a doctor everything holds."""
    assert [] == list(check(healthy()))  # type: ignore[call-overload]


@pytest.mark.parametrize(("doctor", "check"), DOCTORED)
def test_a_doctored_storm_fails(doctor: Doctor, check: str) -> None:
    """The check that is meant to see it does."""
    it = healthy()
    doctor(it)

    (meant,) = [each for each in STORM_CHECKS if each.__name__ == check]
    assert list(meant(it))


def test_every_check_is_shown_to_fail() -> None:
    """A check that nothing can fail protects nothing."""
    assert {check.__name__ for check in STORM_CHECKS} == {check for _, check in DOCTORED}


def test_one_beginning_between_look_and_act_is_counted_and_forgiven() -> None:
    """A thread may be stopped right after it looked at its clock; the next time it has to look."""
    it = healthy()
    it.effects.append(mark("begin", "c", at=20.5, pid=1))

    assert ["job-1:c:0000000000000007"] == [each.line.key for each in begun_late(it)]
    assert not [complaint for check in STORM_CHECKS[:1] for complaint in check(it)]
