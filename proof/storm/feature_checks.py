"""What must hold for one feature each: steps called once, transactions, sagas, batches, approvals, generations.

Like the other checks they share no code with the engine beyond reading events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from outlive._kernel.journal.event import (
    ApprovalDecided,
    ApprovalRequested,
    AskAnswered,
    AskReceived,
    PromiseMade,
    SignalReceived,
    StepIntended,
)
from outlive._kernel.model import RunStatus, child_id
from outlive._kernel.model.approval import Decision
from outlive._kernel.model.promise import promise_signal
from outlive._kernel.store.contract import ItemResult
from outlive.testing.completion import Completion, living_id, nonce_of
from proof.storm.effects import Effect
from proof.storm.evidence import Evidence
from proof.storm.op import EMITTED, Op
from proof.storm.plan import CHUNK_ITEMS, Job, of_root, stream_ops, walk
from proof.storm.reading import (
    all_completions,
    chains,
    generation_of,
    number_in,
    number_of,
    signals_in,
    started_jobs,
    tried_jobs,
    value_in,
)

ONCE = "storm.once"
WRITES = ("storm.write", "storm.write_item")


def once_steps_were_called_once(it: Evidence) -> Iterator[str]:
    """A step that may be called once was begun at most once for each attempt, and never before its intent."""
    intents = {
        (f"{child_id(living_id(root_id), event.run)}:{event.call}:{nonce_of(events)}", event.attempt)
        for root_id, events in it.journals.items()
        for event in events
        if isinstance(event, StepIntended)
    }
    begun = Counter((line.key, line.attempt) for line in it.effects if line.mark == "begin" and line.step == ONCE)
    for (key, attempt), times in begun.items():
        if times > 1:
            yield f"{key}: attempt {attempt} was begun {times} times"
        if (key, attempt) not in intents:
            yield f"{key}: attempt {attempt} was begun and its journal has no intent of it"
    for completion in all_completions(it):
        if completion.is_interrupted and (completion.key, completion.attempt) not in intents:
            yield f"{completion.key}: attempt {completion.attempt} was interrupted and not intended"


def written_rows_are_there_once(it: Evidence) -> Iterator[str]:
    """What a step wrote in a transaction is there exactly once if the step completed, and not at all if it did not."""
    steps = _steps_by_key(it)
    wanted: Counter[tuple[str, int | None]] = Counter(
        (done.key, number_in(done.result))
        for done in all_completions(it)
        if done.is_success and steps.get(done.key) in WRITES
    )
    found: Counter[tuple[str, int | None]] = Counter((key, value) for key, _, value in it.ledger)
    for row in wanted.keys() | found.keys():
        if wanted[row] != found[row]:
            yield f"{row[0]} completed {wanted[row]} times with {row[1]}, and its row is there {found[row]} times"


def sagas_are_whole(it: Evidence) -> Iterator[str]:
    """A saga keeps all of its bookings or none, as planned, and nothing was undone twice or without being booked."""
    places = {line.key: line.place for line in it.effects}
    steps = _steps_by_key(it)
    done: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for completion in all_completions(it):
        if completion.is_success:
            done[steps.get(completion.key, "")][number_of(completion.run_id), places.get(completion.key, 0)] += 1
    started = {each.number for each in started_jobs(it)}
    for planned in tried_jobs(it):
        certain = set(_certain(planned)) if planned.number in started else set()
        for op in walk(planned.program.ops):
            if op.kind == "saga":
                parts = [(planned.number, part.place) for part in op.parts]
                booked = [done["storm.book"][part] for part in parts]
                undone = [done["storm.unbook"][part] for part in parts]
                if not _is_whole(op, booked, undone, is_certain=op in certain):
                    yield f"job {planned.number}, saga {op.place} fails={op.fails}: booked {booked}, undone {undone}"


def _is_whole(op: Op, booked: list[int], undone: list[int], *, is_certain: bool) -> bool:
    all_booked, none = [1] * len(booked), [0] * len(booked)
    if max(booked) > 1:
        return False
    if is_certain and (booked != all_booked or undone != (booked if op.fails else none)):
        return False
    return undone == booked or (undone == none and booked == all_booked and not op.fails)


def batches_are_complete(it: Evidence) -> Iterator[str]:
    """Every item of a batch has the one outcome that is planned, and the batch counts them right."""
    for planned in started_jobs(it):
        if not planned.batch:
            continue
        run = it.runs.get(planned.id)
        if run is None or run.status is not planned.status:
            yield f"{planned.id} should be {planned.status.value}: {run}"
        elif planned.status is RunStatus.SUCCEEDED:
            failed = sum(op.kind == "item" and op.fails for op in planned.program.ops)
            total = len(planned.program.ops)
            tally = {"total": total, "succeeded": total - failed, "failed": failed}
            if value_in(run.result) != tally:
                yield f"{planned.id} should have ended with {tally}: {run}"
        for number, chunk in enumerate(planned.chunks):
            yield from _compare_items(it.items.get(chunk, []), planned, number)


def _compare_items(items: list[ItemResult], planned: Job, number: int) -> Iterator[str]:
    """The outcomes of one chunk. One that was cancelled may have fewer, and failures where items were cut off."""
    is_cancelled = planned.status is RunStatus.CANCELLED
    chunk, first = planned.chunks[number], number * CHUNK_ITEMS
    ops = dict(enumerate(planned.program.ops[first : first + CHUNK_ITEMS], start=first))
    found = [item.index for item in items]
    if len(set(found)) != len(found) or not set(found) <= set(ops) or (set(found) != set(ops) and not is_cancelled):
        yield f"{chunk} has outcomes for {found} and should have them for {list(ops)}"
        return
    for item in items:
        op = ops[item.index]
        value = None if op.kind == "item" and op.fails else op.value
        if number_in(item.result) != value and not (is_cancelled and item.failure is not None):
            yield f"{chunk}: item {item.index} has the outcome {item} and should have {value}"


def decisions_were_the_first(it: Evidence) -> Iterator[str]:
    """Each approval has one decision, that is what all clients were answered, and it is what the run went on with."""
    noted = {
        (done.run_id, line.place): number_in(done.result)
        for done, line in _with_effects(it)
        if line.step == "storm.note" and done.is_success
    }
    answered = defaultdict(list)
    for ack in it.acks:
        if ack.op == "decided":
            answered[ack.number, ack.key].append(ack)
    for planned in tried_jobs(it):
        events = it.journals.get(planned.id, [])
        calls = {event.call: event.name for event in events if isinstance(event, ApprovalRequested)}
        decisions = defaultdict(list)
        for event in events:
            if isinstance(event, ApprovalDecided) and event.approval in calls:
                decided = msgspec.json.decode(bytes(event.payload.v or b""), type=Decision)
                decisions[calls[event.approval]].append(decided)
        for name in planned.approvals:
            acks = answered[planned.number, name]
            if len(decisions[name]) != 1:
                if acks or decisions[name]:
                    yield f"{planned.id}: {name} has {len(decisions[name])} decisions"
                continue
            (decision,) = decisions[name]
            status = "approved" if decision.approved else "rejected"
            yield from (
                f"{planned.id}: {name} was {status} by {decision.by}, and a client was answered {ack}"
                for ack in acks
                if (ack.by, ack.status) != (decision.by, status)
            )
            if sum(ack.is_first for ack in acks) > 1:
                yield f"{planned.id}: several clients heard that they decided {name} first"
            place = int(name.rpartition("-")[2])
            if noted.get((planned.id, place), int(decision.approved)) != int(decision.approved):
                yield f"{planned.id}: {name} was {status}, and the run went on with something else"


def generations_follow_each_other(it: Evidence) -> Iterator[str]:
    """No generation of a run is missing, all but the last went on, and each began with the signals left by the last."""
    of_run = chains(it)
    for planned in tried_jobs(it):
        for run_id, count in planned.lineages.items():
            if roots := of_run.get(run_id, []):
                taken = planned.relay.each if planned.relay is not None else 0
                is_complete = planned.status is not RunStatus.CANCELLED
                yield from _check_lineage(it, run_id, roots, count if is_complete else None, taken)


def _check_lineage(it: Evidence, run_id: str, roots: list[str], count: int | None, taken: int) -> Iterator[str]:
    """The generations of one run, each of which takes so many signals."""
    named = [*(f"{run_id}~gen{number}" for number in range(1, len(roots))), run_id]
    if roots != named or [generation_of(it, root) for root in roots] != list(range(len(roots))):
        yield f"{run_id} has the generations {roots}"
        return
    if count is not None and len(roots) != count + 1:
        yield f"{run_id} has {len(roots)} generations and should have {count + 1}"
    for before, after in pairwise(roots):
        run = it.runs.get(before)
        if run is None or run.status is not RunStatus.CONTINUED:
            yield f"{before} has a next generation: {run}"
        left = [number_in(event.payload) for event in signals_in(it, before)[taken:]]
        inherited = [number_in(event.payload) for event in signals_in(it, after) if not event.key]
        if left != inherited:
            yield f"{before} left the signals {left}, and {after} began with {inherited}"


def what_was_published_is_shown(it: Evidence) -> Iterator[str]:
    """What a run and its steps published last is what its row shows."""
    for planned in started_jobs(it):
        run = it.runs.get(planned.id)
        wanted: dict[str, int] = {}
        for op in of_root(planned.program.ops):
            if op.kind == "publish":
                wanted |= {f"said-{op.place}": op.value, f"shown-{op.place}": op.value}
        if not wanted or planned.batch or run is None or run.status not in (RunStatus.SUCCEEDED, RunStatus.FAILED):
            continue
        shown = value_in(run.published) or {}
        for name, value in wanted.items():
            if shown.get(name) != value:
                yield f"{planned.id} published {name}={value} and shows {shown.get(name)}"


def every_ask_got_its_answer(it: Evidence) -> Iterator[str]:
    """Each ask became one event and got one answer, the planned one, and that is what all clients were answered."""
    for planned in started_jobs(it):
        events = it.journals.get(planned.id, [])
        for name, value in planned.asks.items():
            received = [event.key for event in events if isinstance(event, AskReceived) and event.name == name]
            answered = [event for event in events if isinstance(event, AskAnswered) and event.key in received]
            if (len(received), len(answered)) != (1, 1):
                yield f"{planned.id}: {name} was received {len(received)} times and answered {len(answered)} times"
            acks = [ack.value for ack in it.acks if (ack.op, ack.number, ack.key) == ("answered", planned.number, name)]
            if not acks or set(acks) != {value * 2}:
                yield f"{planned.id}: {name} asked {value}, and clients were answered {acks}"


def promises_were_settled_once(it: Evidence) -> Iterator[str]:
    """Each promise was made once and settled once, by the first who did, and the others heard that they were late."""
    for planned in started_jobs(it):
        if not planned.promises:
            continue
        events = it.journals.get(planned.id, [])
        made = [promise_signal(0, event.call) for event in events if isinstance(event, PromiseMade)]
        settled = [event.name for event in events if isinstance(event, SignalReceived) and event.name != "go"]
        if len(made) != len(planned.promises) or sorted(made) != sorted(settled):
            yield f"{planned.id} was to make {len(planned.promises)} promises, made {made}, and {settled} were settled"
        for name, value in planned.promises.items():
            acks = [ack for ack in it.acks if (ack.op, ack.number, ack.key) == ("settled", planned.number, name)]
            first = [ack.value for ack in acks if ack.is_first]
            if not acks or first not in ([], [value]):  # The answer to the first may have been lost with a client.
                yield f"{planned.id}: {name} is settled with {value}, and clients were answered that {first} were first"


def streams_are_in_order(it: Evidence) -> Iterator[str]:
    """A stream has what the workflow emitted, once, and then all that the last attempt of the step emitted."""
    for planned in started_jobs(it):
        for op in stream_ops(planned):
            items = it.streams.get((planned.id, f"stream-{op.place}"), [])
            own = [value for call, _, _, value in items if not call]
            last = max(((epoch, attempt) for call, epoch, attempt, _ in items if call), default=(0, 0))
            of_step = [value for call, epoch, attempt, value in items if call and (epoch, attempt) == last]
            if own != list(range(EMITTED)) or of_step != list(range(op.value)):
                yield f"{planned.id}: stream {op.place} has {own} and {of_step}, and should have {op.value} items"


FEATURE_CHECKS: list[Callable[[Evidence], Iterator[str]]] = [
    once_steps_were_called_once,
    written_rows_are_there_once,
    sagas_are_whole,
    batches_are_complete,
    decisions_were_the_first,
    generations_follow_each_other,
    what_was_published_is_shown,
    every_ask_got_its_answer,
    promises_were_settled_once,
    streams_are_in_order,
]


def _steps_by_key(it: Evidence) -> dict[str, str]:
    return {line.key: line.step for line in it.effects}


def _with_effects(it: Evidence) -> Iterator[tuple[Completion, Effect]]:
    lines = {line.key: line for line in it.effects}
    for done in all_completions(it):
        if done.key in lines:
            yield done, lines[done.key]


def _certain(planned: Job) -> Iterator[Op]:
    """The operations that certainly come to their end."""
    if planned.status in (RunStatus.SUCCEEDED, RunStatus.FAILED):
        yield from _outside_races(planned.program.ops)


def _outside_races(ops: Sequence[Op]) -> Iterator[Op]:
    for op in ops:
        yield op
        if op.kind != "race":
            yield from _outside_races(op.parts)
