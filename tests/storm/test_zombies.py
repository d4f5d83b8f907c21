"""The checks of what a storm leaves behind hold on healthy evidence and complain about doctored evidence."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Payload
from outlive.events import RunClaimed, RunCreated, StepSucceeded
from proof.storm.acks import Ack
from proof.storm.checks import CHECKS
from proof.storm.effects import Effect
from proof.storm.evidence import Evidence
from proof.storm.fault import CHAOS
from proof.storm.situation import LONG_TRIAL_KILLS
from proof.storm.trial import Kill, Stop, Trial
from proof.storm.zombie import begun_late

NULL = Payload(v=msgspec.Raw(b"null"))
NONCE = 7
DEALT = ("client", "all", "one", "freeze", "clean", "outage", "cut", "deaf", "full")
Doctor = Callable[[Evidence], None]


def healthy() -> Evidence:
    """One run: session `first` did step a and began b, then `second` claimed it at 20 s and did b."""
    events: list[AnyEvent] = [
        RunCreated(at=10_000_000, workflow="w", version=1, input=NULL, nonce=NONCE, worker="first"),
        StepSucceeded(at=12_000_000, call="a", result=NULL),
        RunClaimed(at=20_000_000, worker="second", epoch=2, interrupted=True),
        StepSucceeded(at=22_000_000, call="b", result=NULL),
    ]
    return Evidence(
        Trial(folder=Path(), url="", store="postgres", seed=1, kills=9, workers=3, mix=CHAOS, server_kills=1),
        dealt=frozenset(DEALT),
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


def a_zombie_begins_two_steps(it: Evidence) -> None:
    it.effects += [mark("begin", call, at=20.5, pid=1) for call in ("c", "d")]


def a_zombie_does_something_before_it_begins_a_step(it: Evidence) -> None:
    it.effects += [mark("end", "b", at=20.4, pid=1), mark("begin", "c", at=20.5, pid=1)]


def zombies_use_too_many_excuses(it: Evidence) -> None:
    it.effects += [mark("begin", "c", at=20.5, pid=1), mark("begin", "d", at=20.5, pid=9)]


def a_zombie_commits_an_outcome(it: Evidence) -> None:
    it.effects += [mark("begin", "c", at=13, pid=1), mark("end", "c", at=21, pid=1)]
    it.journals["job-1"].append(StepSucceeded(at=23_000_000, call="c", result=NULL))


def two_sessions_claim_one_epoch(it: Evidence) -> None:
    it.journals["job-1"].append(RunClaimed(at=24_000_000, worker="third", epoch=2))


def a_worker_dies_of_sigterm(it: Evidence) -> None:
    it.stops.append(Stop(at=30.0, pid=1, seconds=0.1, code=-15))


def nobody_is_frozen(it: Evidence) -> None:
    del it.faults["freeze"]


def nothing_is_done(it: Evidence) -> None:
    it.acks.clear()


def a_long_trial_sees_nothing(it: Evidence) -> None:
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
    (nothing_is_done, "enough_was_done"),
]


MEANT = {check.__name__: check for check in CHECKS if check.__name__ in {name for _, name in DOCTORED}}


@pytest.mark.parametrize("check", MEANT)
def test_no_check_complains_about_a_healthy_storm(check: str) -> None:
    """Without a doctor everything holds."""
    assert [] == list(MEANT[check](healthy()))


@pytest.mark.parametrize(("doctor", "check"), DOCTORED)
def test_a_doctored_storm_fails(doctor: Doctor, check: str) -> None:
    """The check that is meant to see it does."""
    it = healthy()
    doctor(it)

    assert list(MEANT[check](it))


def test_one_beginning_between_look_and_act_is_counted_and_forgiven() -> None:
    """A thread may be stopped right after it looked at its clock; the next time it has to look."""
    it = healthy()
    it.effects.append(mark("begin", "c", at=20.5, pid=1))

    assert ["job-1:c:0000000000000007"] == [each.line.key for each in begun_late(it)]
    assert not list(MEANT["zombies_began_nothing"](it))
