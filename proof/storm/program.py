"""The workflows of a storm: an interpreter of little programs, a run of several generations, and a flow.

A program is data: a list of operations, some with parts. Each adds a known number, so the result of a program is
known before it runs, whatever happens to the workers meanwhile. The operations are the things people write: steps of
all kinds, gathers, races, timers, signals, children, sagas, approvals.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import outlive
from outlive import flow
from proof.storm import steps
from proof.storm.op import EMITTED, Booked, Op, Program, Relay

EXPIRE_SECONDS = 0.1
PATIENCE_SECONDS = 0.05
MAP_CONCURRENCY = 2


@outlive.workflow(name="storm.program", strict_arguments=True)
async def program(plan: Program) -> int:
    """Perform the operations in order; the result is the sum of what they add."""
    try:
        total = 0
        for op in plan.ops:
            total += await perform(op)
        match plan.ending:
            case "raise":
                raise ValueError(f"planned: {total}")
            case "wait":
                await outlive.wait_for_signal("never")
            case "repair":
                await steps.need_repair(-plan.number, plan.number)
            case _:
                pass
        return total
    except asyncio.CancelledError:
        await steps.tidy(-plan.ops[0].place)
        raise


@outlive.workflow(name="storm.relay", strict_arguments=True)
async def relay(plan: Relay) -> int:
    """Take some signals, then go on as the next generation; the last one returns the sum of all signals."""
    try:
        total = plan.total
        for _ in range(plan.each):
            total += await outlive.wait_for_signal("go", int)
        await steps.work(plan.place, 1)
        if plan.generations:
            successor = replace(plan, generations=plan.generations - 1, place=plan.place + 1, total=total)
            outlive.continue_as_new(successor)
        if plan.ending == "wait":
            await outlive.wait_for_signal("never")
        return total
    except asyncio.CancelledError:
        await steps.tidy(-plan.place)
        raise


document = flow.parse("""
name: storm-flow
steps:
  mark: { use: storm.work, with: { place: "${{ input.place }}", value: 1 } }
  nap: { use: sleep, with: { seconds: 20ms } }
  each:
    use: map
    with: { items: "${{ input.parts }}", concurrency: 2, use: storm.program, with: { plan: { ops: ["${{ item }}"] } } }
  total: { use: noop, with: { sum: "${{ steps.each.results.sum() }}" }, after: [mark, nap] }
output: "${{ steps.total.sum }}"
""")
"""The parts of an operation as a flow: steps, a timer and children side by side."""


async def perform(op: Op) -> int:
    """Do one operation; the number that it adds."""
    match op.kind:
        case "work":
            return await steps.work(op.place, op.value)
        case "thread":
            return await steps.work_on_thread(op.place, op.value)
        case "process":
            return await steps.work_in_process(op.place, op.value)
        case "flaky":
            return await steps.flaky(op.place, op.value, op.fails)
        case "slow":
            return await steps.slow(op.place, op.value)
        case "pieces":
            return await steps.in_pieces(op.place, op.value)
        case "broken":
            return await give_up(op)
        case "once":
            return await take_once(op)
        case "transaction":
            return await steps.write(op.place, op.value, op.fails)
        case "publish":
            outlive.publish(**{f"said-{op.place}": op.value})
            return await steps.show(op.place, op.value)
        case "stream":
            for number in range(EMITTED):
                await outlive.emit(f"stream-{op.place}", number)
            return await steps.emit_all(op.place, op.value)
        case "patched":
            return op.value if outlive.patched(f"change-{op.place % 3}") else -1
        case "nap":
            await asyncio.sleep(op.value / steps.MILLISECONDS)
            return op.value
        case _:
            return await perform_wait(op)


async def perform_wait(op: Op) -> int:
    """The operations that wait for the world or for time."""
    match op.kind:
        case "expire":
            return await expire(op)
        case "lapse":
            return await lapse(op)
        case "signal":
            return await outlive.wait_for_signal("go", int)
        case "patience":
            return await patience()
        case "ask":
            return await answer_one(op)
        case "promise":
            promise = outlive.promise(int)
            outlive.publish(**{op.id: promise.id})
            return await promise
        case "approval":
            answer = await outlive.wait_for_approval(op.id, title="Shall we?", assignees=["ann", "bob"])
            await steps.note(op.place, int(answer.approved))
            return op.value
        case _:
            return await perform_nested(op)


async def perform_nested(op: Op) -> int:
    """The operations that have parts."""
    match op.kind:
        case "gather":
            return sum(await asyncio.gather(*(perform(part) for part in op.parts)))
        case "race":
            return await race(op)
        case "saga":
            return await saga(op)
        case "map":
            found = await outlive.map(
                steps.handle_item,
                op.parts,
                concurrency=MAP_CONCURRENCY,
                tolerate=outlive.limits.Tolerance(failures=op.fails),
            )
            return sum(each for each in found if isinstance(each, int))
        case "map_runs":
            return sum(await outlive.map(program, [Program((part,)) for part in op.parts], concurrency=MAP_CONCURRENCY))
        case "child":
            return await program(Program(op.parts))
        case "flow":
            total: int = await document({"place": op.place, "parts": list(op.parts)})
            return total
        case "detached":
            child = await outlive.start(program, Program(op.parts), detached=True, id=op.id)
            return await child.result()
        case "orphan":
            await outlive.start(program, Program(op.parts), detached=True, id=op.id)
            return op.value
        case "lineage":
            successor = Relay(op.fails, each=0, place=op.place, total=op.value)
            return await (await outlive.start(relay, successor, detached=True, id=op.id)).result()
        case "booking":
            return (await steps.book(op.place, op.value)).value
        case _:
            raise AssertionError(f"no operation is called {op.kind}")


async def give_up(op: Op) -> int:
    """A step that fails for good, and a workflow that takes it well."""
    try:
        await steps.broken(op.place)
    except ValueError:
        return op.value
    return -1


async def take_once(op: Op) -> int:
    """A step that is not called again: whether it was interrupted or not, it adds the same."""
    try:
        return await steps.call_once(op.place, op.value, op.fails)
    except outlive.errors.StepInterruptedError:
        return op.value


async def expire(op: Op) -> int:
    """Wait for what never comes, until a durable timeout."""
    try:
        async with asyncio.timeout(EXPIRE_SECONDS):
            await outlive.wait_for_signal("never")
    except TimeoutError:
        return op.value
    return -1


async def lapse(op: Op) -> int:
    """Ask people for something that is never decided."""
    try:
        await outlive.wait_for_approval(f"undecided-{op.place}", deadline=EXPIRE_SECONDS)
    except outlive.errors.ApprovalExpiredError:
        return op.value
    return -1


async def answer_one(op: Op) -> int:
    """Answer the one ask of this name with twice what it says."""
    async for ask in outlive.asks(op.id, int):
        ask.reply(ask.body * 2)
        return ask.body
    raise AssertionError("asks never end")


async def patience() -> int:
    """A signal against a timeout: whichever is first, the signal is not lost."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await outlive.wait_for_signal("go", int)
    except TimeoutError:
        return await outlive.wait_for_signal("go", int)


async def race(op: Op) -> int:
    """The first of the parts wins; a step is given which, so a replay with another winner contradicts the journal."""
    tasks = [asyncio.create_task(perform(part)) for part in op.parts]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    winner = min(tasks.index(task) for task in done)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await steps.note(op.place, winner)
    return op.value


async def saga(op: Op) -> int:
    """Book the parts: one, then the others side by side, the last of them in a child; by plan all of it is undone."""
    first, *rest, last = op.parts
    try:
        async with outlive.saga():
            booked: Booked = await steps.book(first.place, first.value)
            others = await asyncio.gather(*(perform(part) for part in rest), program(Program((last,))))
            if op.fails:
                await steps.broken(op.place)
            return booked.value + sum(others)
    except ValueError:
        return op.value
