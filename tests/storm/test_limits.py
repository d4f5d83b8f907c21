"""The audit of a storm over queues notices what it must, and blames no one for what a lost worker goes on doing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Payload
from outlive.events import RunClaimed, RunCreated, RunSucceeded
from proof.storm.__main__ import main
from proof.storm.effects import Effect
from proof.storm.evidence import Evidence
from proof.storm.fault import LIMITS
from proof.storm.limits.checks import (
    figures,
    limits_held,
    limits_were_reached,
    no_queue_stood_still,
    windows_held,
)
from proof.storm.trial import Freeze, Kill, Trial

NULL = Payload(v=msgspec.Raw(b"null"))
Doctor = Callable[[Evidence], None]


def journal(nonce: int, *claimed: float, ended: float) -> list[AnyEvent]:
    """Of a guest that got in line at 0 s, and was claimed by one worker after the other."""
    return [
        RunCreated(at=0, workflow="w", version=1, input=NULL, nonce=nonce),
        *(
            RunClaimed(at=round(at * 1e6), worker=f"session-{epoch}", epoch=epoch)
            for epoch, at in enumerate(claimed, start=1)
        ),
        RunSucceeded(at=round(ended * 1e6), result=NULL),
    ]


def mark(what: str, run: str, nonce: int, *, at: float, pid: int, epoch: int = 1) -> Effect:
    """A line of the witness."""
    key = f"{run}:visit:{nonce:016x}"
    return Effect(at=at, pid=pid, thread=pid, mark=what, run=run, step="visit", key=key, epoch=epoch, attempt=1)


def healthy() -> Evidence:
    """Two guests, one after the other, by two workers."""
    return Evidence(
        Trial(folder=Path(), url="", store="sqlite", seed=1, kills=2, workers=2, mix=LIMITS),
        journals={"one-0": journal(1, 1, ended=3), "one-1": journal(2, 3.1, ended=5)},
        effects=[
            *(Effect(at=0.5, pid=pid, mark="ready") for pid in (1, 2)),
            mark("begin", "one-0", 1, at=1.2, pid=1),
            mark("end", "one-0", 1, at=2.9, pid=1),
            mark("begin", "one-1", 2, at=3.2, pid=2),
            mark("end", "one-1", 2, at=4.9, pid=2),
        ],
    )


def taken_over(it: Evidence) -> None:
    """The first worker freezes in the visit; the second takes the guest over, and the next one after it."""
    it.freezes.append(Freeze(at=1.5, until=4.5, pid=1))
    it.journals = {"one-0": journal(1, 1, 3.4, ended=3.8), "one-1": journal(2, 4, ended=5)}
    it.effects[2:] = [
        mark("begin", "one-0", 1, at=1.2, pid=1),
        mark("begin", "one-0", 1, at=3.5, pid=2, epoch=2),
        mark("end", "one-0", 1, at=3.7, pid=2, epoch=2),
        mark("begin", "one-1", 2, at=4.1, pid=2),
        mark("end", "one-0", 1, at=4.6, pid=1),
        mark("end", "one-1", 2, at=4.9, pid=2),
    ]


def killed(it: Evidence) -> None:
    """The first worker is killed in the visit, and the guest is not visited again before the next one is."""
    it.kills.append(Kill(at=2.0, pid=1, phase="in a step"))
    it.journals["one-0"] = journal(1, 1, 2.1, ended=3)
    del it.effects[3]


def test_guests_one_after_the_other_break_no_limit() -> None:
    """Guests that come one after the other break no limit, and the figures say so."""
    it = healthy()

    assert [*limits_held(it), *no_queue_stood_still(it)] == []
    assert "  one         0 guests, 1 at once of 1 allowed" in list(figures(it))
    assert any("seven allows 7, and never had more than 0" in line for line in limits_were_reached(it))


@pytest.mark.parametrize("doctor", [taken_over, killed])
def test_lost_workers_are_not_counted(doctor: Doctor) -> None:
    """The audit does not count the runs that a lost worker goes on with."""
    it = healthy()
    doctor(it)

    assert [*limits_held(it), *no_queue_stood_still(it)] == []


def test_crowd_is_noticed() -> None:
    """One slot too many, for a tenth of a second; with live owners."""
    it = healthy()
    it.effects[3] = mark("end", "one-0", 1, at=3.3, pid=1)

    assert list(limits_held(it)) == ["one allows 1, and at 3.200 there were one-0, one-1"]


def test_heavy_guests_are_counted_by_their_slots() -> None:
    """Guests 0, 1 and 2 take one, two and three slots of five."""
    it = healthy()
    it.journals = {f"heavy-{n}": journal(n + 1, 1, ended=3) for n in range(3)}
    it.effects[2:] = [mark("begin", f"heavy-{n}", n + 1, at=1.2 + n / 10, pid=1) for n in range(2)]
    assert list(limits_held(it)) == []

    it.effects.append(mark("begin", "heavy-2", 3, at=1.5, pid=2))

    assert list(limits_held(it)) == ["heavy allows 5, and at 1.500 there were heavy-0, heavy-1, heavy-2"]


@pytest.mark.parametrize(("number", "is_noticed"), [(1, True), (2, False)])
def test_a_slot_is_free_only_for_guests_that_fit(number: int, *, is_noticed: bool) -> None:
    """Three of five slots are taken while a guest of two or of three slots is in line."""
    it = healthy()
    it.journals = {"heavy-5": journal(1, 0.1, ended=9), f"heavy-{number}": journal(2, 8, ended=9)}

    assert list(no_queue_stood_still(it)) == (["heavy had a free slot at 0.000 for 7.50 s"] if is_noticed else [])


def test_one_guest_too_many_in_a_period_is_noticed() -> None:
    """Six in less than two seconds, by the claims; whenever the seconds of the clock begin."""
    it = healthy()
    at = [0.5, 1.9, 2.0, 2.1, 2.2, 2.5, 3.9]
    it.journals = {f"window-{n}": journal(n + 1, begun, ended=9) for n, begun in enumerate(at)}
    assert list(windows_held(it)) == []
    assert not any("window" in line for line in limits_were_reached(it))

    it.journals["window-6"] = journal(7, 3.899, ended=9)

    assert list(windows_held(it)) == ["window allows 5 in any 2 s, and 6 left it in 1.999000 s"]


def test_worker_that_lost_its_lease_is_counted_until_its_run_is_claimed() -> None:
    """A claim too early is not an excuse for a slot too many."""
    it = healthy()
    taken_over(it)
    it.effects[5] = mark("begin", "one-1", 2, at=3.3, pid=2)

    assert list(limits_held(it)) == ["one allows 1, and at 3.300 there were one-0, one-1"]


@pytest.mark.parametrize("is_down", [False, True])
def test_free_slot_is_noticed_unless_no_worker_is_at_work(*, is_down: bool) -> None:
    """A slot that is free for longer than a lease, while another guest is in line."""
    it = healthy()
    it.journals["one-1"] = journal(2, 7, ended=8)
    if is_down:
        it.kills += [Kill(at=4.0, pid=1, phase=""), Kill(at=4.0, pid=2, phase="")]

    complaints = list(no_queue_stood_still(it))
    assert complaints == ([] if is_down else ["one had a free slot at 3.000 for 4.00 s"])


def test_slot_of_a_lost_worker_is_noticed() -> None:
    """Its guest must be taken over before long."""
    it = healthy()
    taken_over(it)
    it.journals = {"one-0": journal(1, 1, 6, ended=7), "one-1": journal(2, 7.1, ended=8)}

    assert list(no_queue_stood_still(it)) == ["one-0 was with a lost worker at 1.500 for 4.50 s"]


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_short_storm_over_queues(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Limits 1, 7 and one for each key hold while workers are killed and frozen."""
    code = main(["limits", "--store", store, "--kills", "8", "--seed", "3", "--dir", str(tmp_path), "--quiet"])

    printed = capsys.readouterr().out
    assert 0 == code, printed
    assert "7 at once of 7 allowed" in printed
