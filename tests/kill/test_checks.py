"""Each check of a trial holds on healthy evidence and complains about doctored evidence."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from outlive._journal.event import (
    AnyEvent,
    AttemptFailed,
    CancelRequested,
    RunCancelled,
    SignalReceived,
    StepSucceeded,
)
from outlive._model import Payload, Run, RunStatus
from outlive.testing.fsck import Problem
from outlive.testing.kill import checks
from outlive.testing.kill.checks import CHECKS
from outlive.testing.kill.evidence import Evidence, collect
from outlive.testing.kill.plan import job
from outlive.testing.kill.report import report
from outlive.testing.kill.supervisor import Kill, Trial

Doctor = Callable[[Evidence], None]


def a_process_dies(it: Evidence) -> None:
    it.lost.append("process 7 ended with code 1")


def a_log_has_a_traceback(it: Evidence) -> None:
    it.tracebacks.append("worker-1.log: AssertionError: planted (1 times)")


def a_run_is_parked(it: Evidence) -> None:
    change_run(it, some_success(it), status=RunStatus.PARKED, reason="planted")


def a_result_is_wrong(it: Evidence) -> None:
    run = some_success(it)
    change_run(it, run, result=Payload(v=msgspec.Raw(b"%d" % ((checks.number_in(run.result) or 0) + 1))))


def a_run_is_gone(it: Evidence) -> None:
    del it.runs[some_success(it).id]


def a_detached_run_is_gone(it: Evidence) -> None:
    del it.runs[next(run_id for run_id in it.runs if run_id.startswith("orphan"))]


def a_run_is_invented(it: Evidence) -> None:
    it.runs["job-999999"] = some_success(it)


def a_client_was_told_otherwise(it: Evidence) -> None:
    at = next(n for n, ack in enumerate(it.acks) if ack.status == "succeeded")
    it.acks[at] = msgspec.structs.replace(it.acks[at], value=(it.acks[at].value or 0) + 1)


def a_completed_step_begins_again(it: Evidence) -> None:
    begin = next(line for line in it.effects if line.mark == "begin" and line.step == "kill.work")
    it.effects.append(msgspec.structs.replace(begin, epoch=begin.epoch + 1, pid=7))


def an_attempt_begins_twice(it: Evidence) -> None:
    it.effects.append(next(line for line in it.effects if line.mark == "begin"))


def a_step_never_ended(it: Evidence) -> None:
    it.effects.remove(next(line for line in it.effects if line.mark == "end" and line.step == "kill.work"))


def a_key_is_used_for_two_calls(it: Evidence) -> None:
    begin = next(line for line in it.effects if line.mark == "begin" and line.step == "kill.work")
    it.effects.append(msgspec.structs.replace(begin, place=begin.place + 1_000, epoch=begin.epoch - 1))


def a_call_has_two_keys(it: Evidence) -> None:
    begin = next(line for line in it.effects if line.mark == "begin")
    it.effects.append(msgspec.structs.replace(begin, key="another"))


def a_signal_is_lost(it: Evidence) -> None:
    drop_events(it, SignalReceived)


def a_signal_is_consumed_twice(it: Evidence) -> None:
    events = journal_with(it, SignalReceived)
    at = index_of(events, SignalReceived)
    events.insert(at, events[at])


def a_signal_is_made_up(it: Evidence) -> None:
    events = journal_with(it, SignalReceived)
    at = index_of(events, SignalReceived)
    events.insert(at, msgspec.structs.replace(events[at], key="go-1-77"))


def signals_change_places(it: Evidence) -> None:
    for events in it.journals.values():
        at = [n for n, event in enumerate(events) if isinstance(event, SignalReceived)]
        if len(at) > 1:
            events[at[0]], events[at[1]] = events[at[1]], events[at[0]]
            return
    raise AssertionError("no run of the trial has two signals")


def a_retry_is_forgotten(it: Evidence) -> None:
    for events in it.journals.values():
        for event in events:
            if isinstance(event, AttemptFailed) and event.call.endswith("kill.flaky"):
                events.remove(event)
                return
    raise AssertionError("no run of the trial has a flaky step")


def a_cancel_is_lost(it: Evidence) -> None:
    drop_events(it, CancelRequested)
    drop_events(it, RunCancelled)


def a_cancelled_run_leaves_a_mess(it: Evidence) -> None:
    for run_id, events in it.journals.items():
        it.journals[run_id] = [e for e in events if not (isinstance(e, StepSucceeded) and e.call == "kill.tidy")]


def the_store_has_a_problem(it: Evidence) -> None:
    it.problems.append(Problem("job-1", "planted", 3))


def next_to_nothing_is_done(it: Evidence) -> None:
    it.kills += [Kill(0.0, 7, "in a step")] * 1_000


DOCTORED: list[tuple[Doctor, str]] = [
    (a_process_dies, "nobody_died_by_itself"),
    (a_log_has_a_traceback, "nothing_surprised_a_process"),
    (a_run_is_parked, "every_run_ended"),
    (a_result_is_wrong, "accepted_runs_ended_as_planned"),
    (a_run_is_gone, "accepted_runs_ended_as_planned"),
    (a_detached_run_is_gone, "accepted_runs_ended_as_planned"),
    (a_run_is_invented, "nothing_was_invented"),
    (a_client_was_told_otherwise, "clients_saw_the_truth"),
    (a_completed_step_begins_again, "completed_steps_never_ran_again"),
    (an_attempt_begins_twice, "completed_steps_never_ran_again"),
    (a_step_never_ended, "completed_steps_really_ran"),
    (a_key_is_used_for_two_calls, "idempotency_keys_are_distinct"),
    (a_call_has_two_keys, "idempotency_keys_are_distinct"),
    (a_signal_is_lost, "signals_arrived_once"),
    (a_signal_is_consumed_twice, "signals_arrived_once"),
    (a_signal_is_made_up, "signals_arrived_once"),
    (signals_change_places, "signals_arrived_once"),
    (a_retry_is_forgotten, "retries_were_as_planned"),
    (a_cancel_is_lost, "cancelled_runs_cleaned_up"),
    (a_cancelled_run_leaves_a_mess, "cancelled_runs_cleaned_up"),
    (the_store_has_a_problem, "the_store_is_whole"),
    (next_to_nothing_is_done, "enough_was_done"),
]


def test_a_healthy_trial_passes(trial: Trial, evidence: Evidence) -> None:
    """Without any kill, and without a doctor, nobody complains."""
    lines, is_right = report(trial, evidence)

    assert is_right, "\n".join(lines)


@pytest.mark.parametrize(("doctor", "check"), DOCTORED)
def test_a_doctored_trial_fails(trial: Trial, evidence: Evidence, doctor: Doctor, check: str) -> None:
    """The check that is meant to see it does, and so the trial fails."""
    doctor(evidence)

    assert list(getattr(checks, check)(evidence))
    assert not report(trial, evidence)[1]


def test_every_check_is_shown_to_fail() -> None:
    """A check that nothing can fail protects nothing."""
    assert {check.__name__ for check in CHECKS} == {check for _, check in DOCTORED}


def test_tracebacks_are_found_in_logs(tmp_path: Path, trial: Trial) -> None:
    """Whatever a process wrote about an exception is counted, also when a kill cut it off."""
    trace = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n'
    (tmp_path / "worker-0.log").write_text(f"started\n{trace}KeyError: 7\n{trace}KeyError: 7\n{trace}", "utf-8")
    evidence = Evidence(seed=trial.seed)

    asyncio.run(collect(replace(trial, folder=tmp_path), evidence))

    assert ["worker-0.log: KeyError: 7 (2 times)", "worker-0.log: cut off by a kill (1 times)"] == evidence.tracebacks


def test_a_job_is_the_same_in_every_process() -> None:
    """Client and checks agree on a job without talking to each other."""
    assert job(4, 17) == job(4, 17)
    assert replace(job(4, 17), number=0) != replace(job(5, 17), number=0)


def some_success(it: Evidence) -> Run:
    return next(run for run in it.runs.values() if run.id.startswith("job") and run.status is RunStatus.SUCCEEDED)


def change_run(it: Evidence, run: Run, **changes: object) -> None:
    it.runs[run.id] = msgspec.structs.replace(run, **changes)


def journal_with(it: Evidence, kind: type[AnyEvent]) -> list[AnyEvent]:
    return next(events for events in it.journals.values() if any(isinstance(event, kind) for event in events))


def index_of(events: list[AnyEvent], kind: type[AnyEvent]) -> int:
    return next(n for n, event in enumerate(events) if isinstance(event, kind))


def drop_events(it: Evidence, kind: type[AnyEvent]) -> None:
    events = journal_with(it, kind)
    del events[index_of(events, kind)]
