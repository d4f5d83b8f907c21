"""What must hold after a trial. Each check is a function from the evidence to its complaints; none means that it holds.

The checks share no code with the engine beyond reading events, and each of them is shown to fail by a test that
doctors the evidence (`tests/storm/test_checks.py`, `test_zombies.py`). Those that are about one feature each stand in
`feature_checks`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from outlive._kernel.journal.event import (
    AttemptFailed,
    CancelRequested,
    RunCancelled,
    RunClaimed,
    RunCreated,
    StepFailed,
    StepSucceeded,
)
from outlive._kernel.model import Run, RunStatus, child_id
from outlive.testing.completion import completions, living_id, nonce_of
from proof.storm import feature_checks
from proof.storm.evidence import Evidence
from proof.storm.fault import CHAOS
from proof.storm.plan import KINDS, job, walk
from proof.storm.reading import all_completions, number_in, number_of, signals_of_chains, tried_jobs
from proof.storm.situation import LONG_TRIAL_KILLS, faults, situations
from proof.storm.zombie import begun_late, begun_without_a_look

LONG_TRIAL_RUNS = 200
FREEZES_PER_EXCUSE = 40
"""The gap between look and act is a ten-thousandth of a second, some 50 times a second: to be frozen in it is rare."""


def no_process_died_by_itself(it: Evidence) -> Iterator[str]:
    """Every process ended because it was killed or asked to stop."""
    yield from it.lost


def nothing_surprised_a_process(it: Evidence) -> Iterator[str]:
    """No log has a traceback: whatever a kill leaves behind is an ordinary thing to the others."""
    yield from it.tracebacks


def every_run_ended(it: Evidence) -> Iterator[str]:
    """No run is stuck, parked or otherwise open."""
    yield from it.stuck
    for run in it.runs.values():
        if not run.status.is_terminal:
            yield f"{run.id} is {run.status.value} {run.reason}"


def accepted_runs_ended_as_planned(it: Evidence) -> Iterator[str]:
    """Each start that was acknowledged led to exactly the end that the plan predicts, and so did its detached runs."""
    ended = {ack.number for ack in it.acks if ack.op == "ended"}
    for number in sorted({ack.number for ack in it.acks if ack.op == "started"}):
        planned = job(it.seed, number)
        if not planned.batch:
            yield from _compare(it.runs.get(planned.id), planned.id, planned.status, planned.total)
        for run_id, total in planned.detached.items():
            yield from _compare(it.runs.get(run_id), run_id, RunStatus.SUCCEEDED, total)
        for run_id in planned.forks if number in ended else ():
            yield from _compare(it.runs.get(run_id), run_id, RunStatus.SUCCEEDED, planned.total)


def _compare(run: Run | None, run_id: str, status: RunStatus, total: int) -> Iterator[str]:
    if run is None:
        yield f"{run_id} was accepted and is gone"
    elif run.status is not status:
        yield f"{run_id} is {run.status.value} and should be {status.value}: {run.reason or run.failure or ''}"
    elif status is RunStatus.SUCCEEDED and number_in(run.result) != total:
        yield f"{run_id} has the result {number_in(run.result)} and should have {total}"
    elif status is RunStatus.FAILED and (run.failure is None or run.failure.message != f"planned: {total}"):
        yield f"{run_id} failed with {run.failure} and should have with 'planned: {total}'"


def nothing_was_invented(it: Evidence) -> Iterator[str]:
    """Every run was asked for by a client or by a run."""
    asked: set[str] = set()
    for planned in tried_jobs(it):
        asked |= {planned.id, *planned.detached, *planned.generations, *planned.chunks, *planned.forks}
    for run_id in it.runs.keys() - asked:
        yield f"{run_id} exists and was not asked for"


def clients_saw_the_truth(it: Evidence) -> Iterator[str]:
    """What a client was answered about an end is what the store says for ever after."""
    for ack in it.acks:
        if ack.op == "ended":
            planned = job(it.seed, ack.number)
            run = it.runs.get(planned.id)
            value = None if run is None else number_in(run.result)
            if planned.batch and planned.status is RunStatus.SUCCEEDED:
                value = planned.total
            if run is None or run.status.value != ack.status or value != ack.value:
                yield f"job {ack.number}: a client saw {ack.status} {ack.value}, the store has {run}"


def completed_steps_never_ran_again(it: Evidence) -> Iterator[str]:
    """No claim after a step's completion began that step, and no attempt was begun twice."""
    done = {completion.key: completion for completion in all_completions(it)}
    begun: set[tuple[str, int, int]] = set()
    for line in it.effects:
        if line.mark != "begin":
            continue
        if "-fork" in line.run:
            yield f"{line.key} was begun by a fork of a run that had completed all its steps"
        completion = done.get(line.key)
        if completion is not None and line.epoch > completion.epoch:
            yield f"{line.key} was completed in epoch {completion.epoch} and begun in epoch {line.epoch} by {line.pid}"
        attempt = (line.key, line.epoch, line.attempt)
        # A store that goes away in the middle of a transaction takes with it what the step wrote: that one may be
        # called again at once, as if it had never begun.
        if attempt in begun and line.step not in feature_checks.WRITES:
            yield f"{line.key}: attempt {line.attempt} was begun twice in epoch {line.epoch}"
        begun.add(attempt)


def completed_steps_really_ran(it: Evidence) -> Iterator[str]:
    """Each outcome in a journal is that of an attempt which really came to its end, under the claim that wrote it."""
    seen = {(line.key, line.epoch, line.attempt, line.mark == "end") for line in it.effects if line.mark != "begin"}
    for completion in all_completions(it):
        if completion.is_interrupted:
            continue
        if (completion.key, completion.epoch, completion.attempt, completion.is_success) not in seen:
            yield f"{completion.key} has an outcome, and its attempt {completion.attempt} never ended in that epoch"


def idempotency_keys_are_distinct(it: Evidence) -> Iterator[str]:
    """One call has one key in all its attempts, and no other call has it."""
    calls_of: defaultdict[str, set[tuple[str, str, int]]] = defaultdict(set)
    keys_of: defaultdict[tuple[str, str, int], set[str]] = defaultdict(set)
    for line in it.effects:
        if line.mark == "begin":
            call = (line.run, line.step, line.place)
            calls_of[line.key].add(call)
            keys_of[call].add(line.key)
    yield from (f"key {key} was given to {sorted(calls)}" for key, calls in calls_of.items() if len(calls) > 1)
    yield from (f"call {call} was given {sorted(keys)}" for call, keys in keys_of.items() if len(keys) > 1)


def signals_arrived_once(it: Evidence) -> Iterator[str]:
    """Acknowledged signals are in their run's journal with their value, each once, in order, and none was made up."""
    received: Counter[tuple[str, str, int | None]] = Counter()
    for run_id, taken in signals_of_chains(it).items():
        received.update((run_id, event.key, number_in(event.payload)) for event in taken)
        places = [int(event.key.rpartition("-")[2]) for event in taken]
        if places != list(range(len(places))):
            yield f"{run_id}: signals were sent one after the other and received in the order {places}"
    planned = {(each.id, signal.key, signal.value) for each in tried_jobs(it) for signal in each.signals}
    # A run that was cancelled may have ended before it read all of its messages.
    acked = {
        (sent_to.id, ack.key, ack.value)
        for ack in it.acks
        if ack.op == "signalled" and (sent_to := job(it.seed, ack.number)).status is not RunStatus.CANCELLED
    }
    lost = (signal for signal in acked - received.keys() if signal[0] in it.journals)
    yield from (f"signal {signal} was acknowledged and is lost" for signal in sorted(lost))
    yield from (f"signal {signal} was consumed {count} times" for signal, count in received.items() if count > 1)
    yield from (f"signal {signal} was never sent" for signal in received.keys() - planned)


def retries_were_as_planned(it: Evidence) -> Iterator[str]:
    """A step that fails by plan failed exactly so often, however often its worker was killed meanwhile."""
    places = {line.key: line.place for line in it.effects if line.step == "storm.flaky"}
    for root_id, events in it.journals.items():
        failures = Counter(
            (child_id(living_id(root_id), e.run), e.call) for e in events if isinstance(e, AttemptFailed)
        )
        planned_at = _planned_failures(it, root_id)
        for done in completions(root_id, events):
            if done.key not in places:
                continue
            failed, planned = failures[done.run_id, done.call], planned_at[places[done.key]]
            if failed != planned or done.attempt != planned + 1:
                yield f"{done.key} failed {failed} times and ended in attempt {done.attempt}; planned: {planned} times"


def cancelled_runs_cleaned_up(it: Evidence) -> Iterator[str]:
    """An acknowledged cancel became a fact, and a run that had begun to work cleaned up before it ended."""
    for number in {ack.number for ack in it.acks if ack.op == "cancelled"}:
        run_id = job(it.seed, number).id
        events = it.journals.get(run_id)
        if events is None:
            continue
        facts = (CancelRequested, RunCancelled)  # A parked run is ended by the client that cancels it.
        at = next((n for n, event in enumerate(events) if isinstance(event, facts)), None)
        if at is None:
            yield f"{run_id}: the cancel was acknowledged and is lost"
            continue
        had_begun = any(isinstance(event, StepSucceeded) and not event.run for event in events[:at])
        if had_begun and not any(
            isinstance(event, StepSucceeded) and event.call == "storm.tidy" for event in events[at:]
        ):
            yield f"{run_id} was cancelled and did not clean up"


def the_store_is_whole(it: Evidence) -> Iterator[str]:
    """Journals have no gap, checksums hold, and every run row is the fold of its journal."""
    yield from (str(problem) for problem in it.problems)


def zombies_began_nothing(it: Evidence) -> Iterator[str]:
    """A worker whose run was claimed by another began nothing of it once it had looked at its clock."""
    for each in begun_without_a_look(it):
        line, claim = each.line, each.claim
        yield (
            f"session {claim.worker} (process {line.pid}) began {line.key} in epoch {line.epoch}, "
            f"{line.at - claim.until:.3f} s after {claim.until_worker} had claimed the run"
        )

    found, excused = len(begun_late(it)), max(1, len(it.freezes) // FREEZES_PER_EXCUSE)
    if found > excused:
        yield f"{found} steps were begun after their run was claimed by another; {excused} may be, by bad luck"


def zombies_committed_nothing(it: Evidence) -> Iterator[str]:
    """Every outcome and every failed attempt in a journal was brought about by the claim that it stands behind."""
    seen = {(line.key, line.epoch, line.attempt) for line in it.effects if line.mark in ("begin", "end", "failed")}
    for root_id, events in it.journals.items():
        nonce, epoch = nonce_of(events), 0
        for event in events:
            match event:
                case RunCreated(run=0):
                    epoch = 1 if event.worker else 0
                case RunClaimed():
                    epoch = event.epoch
                case StepSucceeded() | StepFailed() | AttemptFailed():
                    if isinstance(event, StepFailed) and event.failure.type.endswith("StepInterruptedError"):
                        continue  # Written by the next owner, which cannot know.
                    key = f"{child_id(living_id(root_id), event.run)}:{event.call}:{nonce}"
                    if (key, epoch, event.attempt) not in seen:
                        yield f"{key}: attempt {event.attempt} has an outcome of epoch {epoch}, and never ran in it"
                case _:
                    continue


def epochs_have_one_owner_each(it: Evidence) -> Iterator[str]:
    """Each claim raises the epoch of its run by one."""
    for root_id, events in it.journals.items():
        first = events[0] if events else None
        last = 1 if isinstance(first, RunCreated) and first.worker else 0
        for event in events:
            if isinstance(event, RunClaimed):
                if event.epoch != last + 1:
                    yield f"{root_id}: {event.worker} claimed epoch {event.epoch} after epoch {last}"
                last = event.epoch


def orderly_stops_were_orderly(it: Evidence) -> Iterator[str]:
    """A worker that was asked to stop when it was at work did so by itself, and said that all was well."""
    ready = {line.pid for line in it.effects if line.mark == "ready"}
    for stop in it.stops:
        if stop.code and stop.pid in ready:
            yield f"process {stop.pid} was sent SIGTERM and ended with code {stop.code} after {stop.seconds:.1f} s"


def everything_happened(it: Evidence) -> Iterator[str]:
    """What was dealt was done and, in a long chaos trial, everything came about that could have gone wrong."""
    if it.trial.minutes is None:
        yield from (f"this was never done: {what}" for what, times in faults(it).items() if not times)
    if it.trial.mix is CHAOS and len(it.kills) >= LONG_TRIAL_KILLS:
        yield from (f"this never came about: {what}" for what, times in situations(it).items() if not times)


def enough_was_done(it: Evidence) -> Iterator[str]:
    """The system worked meanwhile: enough runs ended and, in a long trial, operations of every kind were in them."""
    ended = {ack.number for ack in it.acks if ack.op == "ended"}
    wanted = it.trial.mix.runs_per_kill_min
    if len(ended) < wanted * len(it.kills):
        yield f"{len(ended)} runs ended during {len(it.kills)} kills; at least {wanted:g} per kill should"
    if not ended:
        yield "no run ended at all"
    if len(ended) >= LONG_TRIAL_RUNS:
        done = {kind for number in ended for kind in job(it.seed, number).kinds}
        yield from (f"no run with the operation {kind} ended" for kind in sorted(KINDS - done))


CHECKS: list[Callable[[Evidence], Iterator[str]]] = [
    no_process_died_by_itself,
    nothing_surprised_a_process,
    every_run_ended,
    accepted_runs_ended_as_planned,
    nothing_was_invented,
    clients_saw_the_truth,
    completed_steps_never_ran_again,
    completed_steps_really_ran,
    idempotency_keys_are_distinct,
    signals_arrived_once,
    retries_were_as_planned,
    cancelled_runs_cleaned_up,
    *feature_checks.FEATURE_CHECKS,
    the_store_is_whole,
    zombies_began_nothing,
    zombies_committed_nothing,
    epochs_have_one_owner_each,
    orderly_stops_were_orderly,
    everything_happened,
    enough_was_done,
]


def _planned_failures(it: Evidence, root_id: str) -> dict[int, int]:
    """How often the flaky operations of a root's program fail, by place."""
    planned = job(it.seed, number_of(root_id))
    return {op.place: op.fails for op in walk(planned.program.ops) if op.kind == "flaky"}
