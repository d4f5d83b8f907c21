"""Each check of a trial holds on healthy evidence and complains about doctored evidence."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Payload, Run, RunStatus
from outlive.events import (
    ApprovalDecided,
    AskAnswered,
    AskReceived,
    AttemptFailed,
    CancelRequested,
    PromiseMade,
    RunCancelled,
    SignalReceived,
    StepIntended,
    StepSucceeded,
)
from outlive.testing.fsck import Problem
from proof.storm.checks import CHECKS
from proof.storm.effects import Effect
from proof.storm.evidence import Evidence, collect
from proof.storm.plan import job, walk
from proof.storm.reading import number_in
from proof.storm.report import report
from proof.storm.trial import Kill, Trial
from tests.storm import test_zombies

JOBS = 45
Doctor = Callable[[Evidence], None]


def a_process_dies(it: Evidence) -> None:
    it.lost.append("process 7 ended with code 1")


def a_log_has_a_traceback(it: Evidence) -> None:
    it.tracebacks.append("worker-1.log: AssertionError: planted (1 times)")


def a_run_is_parked(it: Evidence) -> None:
    change_run(it, some_success(it), status=RunStatus.PARKED, reason="planted")


def a_result_is_wrong(it: Evidence) -> None:
    run = some_success(it)
    change_run(it, run, result=Payload(v=msgspec.Raw(b"%d" % ((number_in(run.result) or 0) + 1))))


def a_run_is_gone(it: Evidence) -> None:
    del it.runs[some_success(it).id]


def a_detached_run_is_gone(it: Evidence) -> None:
    del it.runs[next(run_id for run_id in it.runs if run_id.startswith("orphan"))]


def a_fork_is_gone(it: Evidence) -> None:
    del it.runs[next(run_id for run_id in it.runs if run_id.endswith("-fork"))]


def a_run_is_invented(it: Evidence) -> None:
    it.runs["job-999999"] = some_success(it)


def a_client_was_told_otherwise(it: Evidence) -> None:
    at = next(n for n, ack in enumerate(it.acks) if ack.status == "succeeded")
    it.acks[at] = msgspec.structs.replace(it.acks[at], value=(it.acks[at].value or 0) + 1)


def a_completed_step_begins_again(it: Evidence) -> None:
    begin = next(line for line in it.effects if line.mark == "begin" and line.step == "storm.work")
    it.effects.append(msgspec.structs.replace(begin, epoch=begin.epoch + 1, pid=7))


def a_fork_calls_a_step(it: Evidence) -> None:
    it.effects.append(msgspec.structs.replace(begun(it, "storm.work"), run="job-1-fork", key="another"))


def an_attempt_begins_twice(it: Evidence) -> None:
    trees = {line.key.rpartition(":")[2] for line in it.effects if line.step.startswith("storm.write")}
    begins = (line for line in it.effects if line.mark == "begin")
    it.effects.append(next(line for line in begins if line.key.rpartition(":")[2] not in trees))


def a_step_never_ended(it: Evidence) -> None:
    it.effects.remove(next(line for line in it.effects if line.mark == "end" and line.step == "storm.work"))


def a_key_is_used_for_two_calls(it: Evidence) -> None:
    begin = next(line for line in it.effects if line.mark == "begin" and line.step == "storm.work")
    it.effects.append(msgspec.structs.replace(begin, place=begin.place + 1_000, epoch=begin.epoch - 1))


def a_call_has_two_keys(it: Evidence) -> None:
    begin = next(line for line in it.effects if line.mark == "begin")
    it.effects.append(msgspec.structs.replace(begin, key="another"))


def a_signal_is_lost(it: Evidence) -> None:
    events, at = sent_signal(it)
    del events[at]


def a_signal_is_consumed_twice(it: Evidence) -> None:
    events, at = sent_signal(it)
    events.insert(at, events[at])


def a_signal_is_made_up(it: Evidence) -> None:
    events, at = sent_signal(it)
    events.insert(at, msgspec.structs.replace(events[at], key="go-1-77"))


def signals_change_places(it: Evidence) -> None:
    for events in it.journals.values():
        at = [n for n, event in enumerate(events) if isinstance(event, SignalReceived) and event.key.startswith("go-")]
        if len(at) > 1:
            events[at[0]], events[at[1]] = events[at[1]], events[at[0]]
            return
    raise AssertionError("no run of the trial has two signals")


def a_retry_is_forgotten(it: Evidence) -> None:
    for events in it.journals.values():
        ended = {
            (event.run, event.call) for event in events if isinstance(event, StepSucceeded)
        }  # Not cancelled before.
        for event in events:
            if isinstance(event, AttemptFailed) and "storm.flaky" in event.call and (event.run, event.call) in ended:
                events.remove(event)
                return
    raise AssertionError("no run of the trial has a flaky step that succeeded in the end")


def a_cancel_is_lost(it: Evidence) -> None:
    for run_id, events in it.journals.items():
        it.journals[run_id] = [event for event in events if not isinstance(event, CancelRequested | RunCancelled)]


def a_cancelled_run_leaves_a_mess(it: Evidence) -> None:
    for run_id, events in it.journals.items():
        it.journals[run_id] = [e for e in events if not (isinstance(e, StepSucceeded) and e.call == "storm.tidy")]


def a_once_step_is_called_twice(it: Evidence) -> None:
    begin = begun(it, "storm.once")
    it.effects.append(msgspec.structs.replace(begin, epoch=begin.epoch - 1))


def a_once_step_is_called_without_intent(it: Evidence) -> None:
    for events in it.journals.values():
        events[:] = [event for event in events if not isinstance(event, StepIntended)]


def a_written_row_is_gone(it: Evidence) -> None:
    it.ledger.pop()


def a_row_is_written_twice(it: Evidence) -> None:
    it.ledger.append(it.ledger[0])


def a_failed_step_leaves_a_row(it: Evidence) -> None:
    it.ledger.append(("job-1:storm.write:0", 1, 7))


def a_booking_is_not_undone(it: Evidence) -> None:
    drop_step(it, "storm.unbook")


def a_booking_is_undone_twice(it: Evidence) -> None:
    events, at = find_step(it, "storm.unbook")
    events.insert(at, events[at])


def a_good_saga_loses_a_booking(it: Evidence) -> None:
    good = {
        part.place
        for number in range(1, JOBS + 1)
        for op in walk(job(it.seed, number).program.ops)
        if op.kind == "saga" and not op.fails
        for part in op.parts
    }
    line = next(line for line in it.effects if line.step == "storm.book" and line.place in good)
    for events in it.journals.values():
        events[:] = [event for event in events if f":{getattr(event, 'call', None)}:" not in line.key]


def an_item_has_no_outcome(it: Evidence) -> None:
    next(iter(it.items.values())).pop()


def an_item_has_another_outcome(it: Evidence) -> None:
    items = next(iter(it.items.values()))
    at = next(n for n, item in enumerate(items) if item.result is not None)
    items[at] = msgspec.structs.replace(items[at], result=Payload(v=msgspec.Raw(b"-5")))


def a_batch_counts_wrong(it: Evidence) -> None:
    run = next(run for run in it.runs.values() if run.workflow == "outlive.batch")
    change_run(it, run, result=Payload(v=msgspec.Raw(b'{"total":1,"succeeded":1,"failed":0}')))


def a_decision_is_lost(it: Evidence) -> None:
    drop_events(it, ApprovalDecided)


def a_second_decision_counts(it: Evidence) -> None:
    double_event(it, ApprovalDecided)


def a_client_was_told_another_decision(it: Evidence) -> None:
    at = next(n for n, ack in enumerate(it.acks) if ack.op == "decided")
    it.acks[at] = msgspec.structs.replace(it.acks[at], by="carl")


def two_clients_were_first(it: Evidence) -> None:
    it.acks.append(next(ack for ack in it.acks if ack.is_first))


def a_run_goes_on_with_another_decision(it: Evidence) -> None:
    name = next(ack for ack in it.acks if ack.op == "decided")
    events = it.journals[f"job-{name.number}"]
    place = int(name.key.rpartition("-")[2])
    key = next(
        line.key
        for line in it.effects
        if (line.step, line.place) == ("storm.note", place) and line.run == f"job-{name.number}"
    )
    at = next(n for n, e in enumerate(events) if isinstance(e, StepSucceeded) and f":{e.call}:" in key)
    events[at] = msgspec.structs.replace(events[at], result=Payload(v=msgspec.Raw(b"7")))


def a_generation_is_gone(it: Evidence) -> None:
    del it.journals[next(run_id for run_id in it.journals if run_id.endswith("~gen1"))]


def a_generation_did_not_go_on(it: Evidence) -> None:
    change_run(it, next(run for run in it.runs.values() if run.id.endswith("~gen1")), status=RunStatus.SUCCEEDED)


def a_signal_is_lost_between_generations(it: Evidence) -> None:
    received, events = next(
        (event, events)
        for run_id, events in it.journals.items()
        for event in events
        if "~gen" in run_id and isinstance(event, SignalReceived)
    )
    events.append(msgspec.structs.replace(received, key="go-1-9"))


def what_was_published_is_gone(it: Evidence) -> None:
    for run in list(it.runs.values()):
        change_run(it, run, published=None)


def an_ask_is_lost(it: Evidence) -> None:
    drop_events(it, AskReceived)


def an_ask_comes_twice(it: Evidence) -> None:
    double_event(it, AskReceived)


def an_answer_is_lost(it: Evidence) -> None:
    drop_events(it, AskAnswered)


def an_ask_is_answered_twice(it: Evidence) -> None:
    double_event(it, AskAnswered)


def a_client_got_no_answer(it: Evidence) -> None:
    it.acks = [ack for ack in it.acks if ack.op != "answered"]


def a_client_got_another_answer(it: Evidence) -> None:
    at = next(n for n, ack in enumerate(it.acks) if ack.op == "answered")
    it.acks[at] = msgspec.structs.replace(it.acks[at], value=(it.acks[at].value or 0) + 1)


def a_settlement_is_lost(it: Evidence) -> None:
    events, at = settlement(it)
    del events[at]


def a_promise_is_settled_twice(it: Evidence) -> None:
    events, at = settlement(it)
    events.append(events[at])


def a_promise_is_made_twice(it: Evidence) -> None:
    double_event(it, PromiseMade)


def two_clients_settled_a_promise(it: Evidence) -> None:
    it.acks = [msgspec.structs.replace(ack, is_first=True) if ack.op == "settled" else ack for ack in it.acks]


def an_item_of_a_stream_is_gone(it: Evidence) -> None:
    next(iter(it.streams.values())).pop()


def an_item_of_a_stream_comes_twice(it: Evidence) -> None:
    items = next(iter(it.streams.values()))
    items.insert(0, items[0])


def items_of_a_stream_change_places(it: Evidence) -> None:
    items = next(iter(it.streams.values()))
    items[0], items[1] = items[1], items[0]


def a_stream_is_gone(it: Evidence) -> None:
    it.streams.popitem()


def the_store_has_a_problem(it: Evidence) -> None:
    it.problems.append(Problem("job-1", "planted", 3))


def next_to_nothing_is_done(it: Evidence) -> None:
    it.kills += [Kill(0.0, 7, "in a step")] * 1_000


DOCTORED: list[tuple[Doctor, str]] = [
    (a_process_dies, "no_process_died_by_itself"),
    (a_log_has_a_traceback, "nothing_surprised_a_process"),
    (a_run_is_parked, "every_run_ended"),
    (a_result_is_wrong, "accepted_runs_ended_as_planned"),
    (a_run_is_gone, "accepted_runs_ended_as_planned"),
    (a_detached_run_is_gone, "accepted_runs_ended_as_planned"),
    (a_fork_is_gone, "accepted_runs_ended_as_planned"),
    (a_run_is_invented, "nothing_was_invented"),
    (a_client_was_told_otherwise, "clients_saw_the_truth"),
    (a_completed_step_begins_again, "completed_steps_never_ran_again"),
    (a_fork_calls_a_step, "completed_steps_never_ran_again"),
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
    (a_once_step_is_called_twice, "once_steps_were_called_once"),
    (a_once_step_is_called_without_intent, "once_steps_were_called_once"),
    (a_written_row_is_gone, "written_rows_are_there_once"),
    (a_row_is_written_twice, "written_rows_are_there_once"),
    (a_failed_step_leaves_a_row, "written_rows_are_there_once"),
    (a_booking_is_not_undone, "sagas_are_whole"),
    (a_booking_is_undone_twice, "sagas_are_whole"),
    (a_good_saga_loses_a_booking, "sagas_are_whole"),
    (an_item_has_no_outcome, "batches_are_complete"),
    (an_item_has_another_outcome, "batches_are_complete"),
    (a_batch_counts_wrong, "batches_are_complete"),
    (a_decision_is_lost, "decisions_were_the_first"),
    (a_second_decision_counts, "decisions_were_the_first"),
    (a_client_was_told_another_decision, "decisions_were_the_first"),
    (two_clients_were_first, "decisions_were_the_first"),
    (a_run_goes_on_with_another_decision, "decisions_were_the_first"),
    (a_generation_is_gone, "generations_follow_each_other"),
    (a_generation_did_not_go_on, "generations_follow_each_other"),
    (a_signal_is_lost_between_generations, "generations_follow_each_other"),
    (what_was_published_is_gone, "what_was_published_is_shown"),
    (an_ask_is_lost, "every_ask_got_its_answer"),
    (an_ask_comes_twice, "every_ask_got_its_answer"),
    (an_answer_is_lost, "every_ask_got_its_answer"),
    (an_ask_is_answered_twice, "every_ask_got_its_answer"),
    (a_client_got_no_answer, "every_ask_got_its_answer"),
    (a_client_got_another_answer, "every_ask_got_its_answer"),
    (a_settlement_is_lost, "promises_were_settled_once"),
    (a_promise_is_settled_twice, "promises_were_settled_once"),
    (a_promise_is_made_twice, "promises_were_settled_once"),
    (two_clients_settled_a_promise, "promises_were_settled_once"),
    (an_item_of_a_stream_is_gone, "streams_are_in_order"),
    (an_item_of_a_stream_comes_twice, "streams_are_in_order"),
    (items_of_a_stream_change_places, "streams_are_in_order"),
    (a_stream_is_gone, "streams_are_in_order"),
    (the_store_has_a_problem, "the_store_is_whole"),
    (next_to_nothing_is_done, "enough_was_done"),
]


def test_a_healthy_trial_passes(evidence: Evidence) -> None:
    """Without any kill, and without a doctor, no check complains."""
    lines, is_right = report(evidence)

    assert is_right, "\n".join(lines)


@pytest.mark.parametrize(("doctor", "check"), DOCTORED)
def test_doctored_evidence_is_seen(evidence: Evidence, doctor: Doctor, check: str) -> None:
    """By the check that is meant to see it."""
    doctor(evidence)

    (meant,) = [each for each in CHECKS if each.__name__ == check]
    assert list(meant(evidence))


@pytest.mark.parametrize("doctor", [DOCTORED[0][0], DOCTORED[-1][0]])
def test_a_trial_fails_if_one_check_complains(evidence: Evidence, doctor: Doctor) -> None:
    """Whichever check that is, the first or the last one."""
    doctor(evidence)

    assert not report(evidence)[1]


def test_every_check_is_shown_to_fail() -> None:
    """A check that nothing can fail protects nothing."""
    assert {check.__name__ for check in CHECKS} == {check for _, check in DOCTORED + test_zombies.DOCTORED}


def test_tracebacks_are_found_in_logs(tmp_path: Path, trial: Trial) -> None:
    """Whatever a process wrote about an exception is counted, also when a kill cut it off; not the last words of a
    process that Python was starting for a worker that was killed, and not the message that a run has failed."""
    trace = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n'
    orphan = trace.replace("in f", "in spawn_main") + "EOFError: Ran out of input\n"
    failed = "".join(f"| {line}\n" for line in f"{trace}ValueError: planned".splitlines())
    log = f"started\n{trace}KeyError: 7\nrun job-1 failed:\n{failed}{orphan}{trace}KeyError: 7\n{trace}"
    (tmp_path / "worker-0.log").write_text(log, "utf-8")
    evidence = Evidence(replace(trial, folder=tmp_path))

    asyncio.run(collect(evidence))

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


def sent_signal(it: Evidence) -> tuple[list[AnyEvent], int]:
    """A signal from outside, in the journal of a run that was not cancelled."""
    for run_id, events in it.journals.items():
        for at, event in enumerate(events):
            if (
                isinstance(event, SignalReceived)
                and event.key.startswith("go-")
                and it.runs[run_id].status is RunStatus.SUCCEEDED
            ):
                return events, at
    raise AssertionError("no run of the trial has a signal")


def settlement(it: Evidence) -> tuple[list[AnyEvent], int]:
    events = journal_with(it, PromiseMade)
    return events, next(n for n, e in enumerate(events) if isinstance(e, SignalReceived) and e.name != "go")


def begun(it: Evidence, step: str) -> Effect:
    return next(line for line in it.effects if line.mark == "begin" and line.step == step)


def find_step(it: Evidence, step: str) -> tuple[list[AnyEvent], int]:
    for events in it.journals.values():
        for at, event in enumerate(events):
            if isinstance(event, StepSucceeded) and event.call.partition("#")[0].endswith(step):
                return events, at
    raise AssertionError(f"no run of the trial has completed a step {step}")


def drop_step(it: Evidence, step: str) -> None:
    events, at = find_step(it, step)
    del events[at]


def index_of(events: list[AnyEvent], kind: type[AnyEvent]) -> int:
    return next(n for n, event in enumerate(events) if isinstance(event, kind))


def drop_events(it: Evidence, kind: type[AnyEvent]) -> None:
    events = journal_with(it, kind)
    del events[index_of(events, kind)]


def double_event(it: Evidence, kind: type[AnyEvent]) -> None:
    events = journal_with(it, kind)
    events.append(events[index_of(events, kind)])
