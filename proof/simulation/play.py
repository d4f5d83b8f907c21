"""The workflow that plays a program, and its steps, whose effects the ledger records."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from outlive import flow
from outlive._features.approvals.in_workflow import wait_for_approval
from outlive._features.promises.in_workflow import promise
from outlive._kernel.define.asks import asks
from outlive._kernel.define.decide import continue_as_new, emit
from outlive._kernel.define.in_run import random, start, wait_for_signal
from outlive._kernel.define.in_step import CURRENT_STEP, current_step
from outlive._kernel.define.map import map as map_items
from outlive._kernel.define.registry import Registry
from outlive._kernel.define.saga import saga
from outlive._kernel.define.step import step
from outlive._kernel.define.talking import get
from outlive._kernel.define.workflow import Workflow, workflow
from outlive._kernel.model import Retry
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive.errors import StepFailedError, StepInterruptedError, StepTimeoutError
from proof.simulation.clock import running_loop
from proof.simulation.ledger import Ledger
from proof.simulation.machines.play import add_machines
from proof.simulation.queues import QUEUES


class Broken(Exception):
    """What the programs raise on purpose."""


async def effect(millis: int) -> None:
    """Do something to the world that takes this long."""
    attempt = CURRENT_STEP.get()
    loop = running_loop()
    assert isinstance(attempt, Attempt)
    assert isinstance(loop.ledger, Ledger)
    loop.ledger.begin(loop, attempt)
    try:
        await asyncio.sleep(millis / 1000)
    except asyncio.CancelledError:
        loop.ledger.stop(loop, attempt)
        raise
    loop.ledger.end(loop, attempt)


@step(name="simulated.work")
async def work(tag: str, millis: int, fails: int) -> list[Any]:
    """Fail so many times, then say at which attempt it succeeded."""
    await effect(millis)
    attempt = current_step().attempt
    if attempt <= fails:
        raise Broken(f"attempt {attempt} of {tag}")
    return [tag, attempt]


@step(name="simulated.once", once=True)
async def once(tag: str, millis: int) -> str:
    """Something that may be begun only once."""
    await effect(millis)
    return tag


@step(name="simulated.unbook")
async def unbook(tag: str) -> None:
    """Undo a booking."""
    await effect(5)
    _ledger().undone.setdefault(tag, current_step().epoch)


def _ledger() -> Ledger:
    """Where the steps of this process say what they do."""
    ledger = running_loop().ledger
    assert isinstance(ledger, Ledger)
    return ledger


@step(name="simulated.book", undo=unbook)
async def book(tag: str, millis: int) -> str:
    """Something that can be undone."""
    await effect(millis)
    return tag


@step(name="simulated.item")
async def item(order: list[Any]) -> str:
    """One item of a map."""
    await effect(order[1])
    return str(order[0])


@step(name="simulated.echo")
async def echo(number: float) -> float:
    """What it is given."""
    await effect(1)
    return number


@step(name="simulated.progress")
async def advance(tag: str, count: int, millis: int) -> int:
    """Come further bit by bit, and say so."""
    me = current_step()
    done = me.last_progress or 0
    await effect(1)
    while done < count:
        await asyncio.sleep(millis / count / 1000)
        done += 1
        me.heartbeat(done)
    return int(done)


@step(name="simulated.post")
async def post(name: str, promise_id: str) -> None:
    """Send the id of a promise to those who may settle it."""
    await effect(1)
    _ledger().posted(name, promise_id)


@step(name="simulated.speak")
async def speak(name: str, tag: str, count: int, millis: int, fails: int) -> int:
    """Emit some items, bit by bit; fail so many times, each time in the middle of it."""
    await effect(1)
    for number in range(count):
        await asyncio.sleep(millis / count / 1000)
        if current_step().attempt <= fails and number == spoken_before_failing(count):
            raise Broken(f"attempt {current_step().attempt} of {tag}")
        await emit(name, [tag, number])
    return count


def spoken_before_failing(count: int) -> int:
    """How many items an attempt emits that fails by plan."""
    return count // 2


@step(name="simulated.fragile")
async def fragile(tag: str, millis: int) -> str:
    """Fail until a user has repaired it."""
    await effect(millis)
    if tag not in _ledger().repaired:
        raise Broken(tag)
    return tag


@step(name="simulated.say")
async def say(text: str) -> str:
    """What it is given."""
    await effect(20)
    return text


@step(name="simulated.poison")
async def poison(tag: str) -> str:
    """Kill the worker, until the world is healed."""
    loop = running_loop()
    assert isinstance(loop.ledger, Ledger)
    if loop.ledger.is_poisonous:
        loop.fuse = 0
    await effect(10)
    return tag


async def _play(program: list[Any]) -> list[Any]:
    return [await _do(order) for order in program]


async def _do(order: list[Any]) -> Any:
    match order:
        case ["work", tag, millis, fails, budget, first]:
            retry = Retry(attempts=budget, first=first / 1000)
            try:
                return await work.options(retry=retry)(tag, millis, fails)
            except StepFailedError as error:
                return ["failed", error.attempts]
        case ["sleep", millis]:
            await asyncio.sleep(millis / 1000)
            return "slept"
        case ["gather", programs]:
            return list(await asyncio.gather(*(_play(program) for program in programs)))
        case ["race", tag, millis, limit]:
            return await _race(tag, millis, limit)
        case ["await", name, count]:
            return [await wait_for_signal(name, int) for _ in range(count)]
        case ["asked", name, count, millis]:
            return await _answer(name, count, millis)
        case ["await_or", name, millis]:
            try:
                async with asyncio.timeout(millis / 1000):
                    return await wait_for_signal(name, int)
            except TimeoutError:
                return "timeout"
        case ["child", program]:
            return json.loads(await play(json.dumps(program)))
        case ["child", program, "flow"]:
            return json.loads(await document({"program": json.dumps(program)}))
        case ["detached", run_id, program, waits]:
            child = await start(play, json.dumps(program), detached=True, id=run_id)
            # Every other one is waited for as if another program had started it: by a watch in the store.
            other = get(run_id, str) if int(run_id.rpartition(".")[2].removesuffix("d")) % 2 else child
            return json.loads(await other.result()) if waits else "started"
        case _:
            return await _do_more(order)


async def _answer(name: str, count: int, millis: int) -> list[int]:
    """Answer some asks, each with ten times its number."""
    seen: list[int] = []
    async for ask in asks(name, int, validate=_even):
        await asyncio.sleep(millis / 1000)
        seen.append(ask.body)
        ask.reply(ask.body * 10)
        if len(seen) == count:
            break
    return sorted(seen)


def _even(number: int) -> None:
    """Refuse an odd number."""
    if number % 2:
        raise ValueError("odd")


async def _do_more(order: list[Any]) -> Any:
    match order:
        case ["once", tag, millis]:
            try:
                return await once(tag, millis)
            except StepInterruptedError:
                return "interrupted"
        case ["saga", tag, count, millis, breaks]:
            with suppress(Broken):
                async with saga():
                    booked = [await book(f"{tag}/{number}", millis) for number in range(count)]
                    if breaks:
                        raise Broken
                    return booked
            return "undone"
        case ["map", tag, count, concurrency, millis]:
            orders: list[list[Any]] = [[f"{tag}/{number}", millis] for number in range(count)]
            return await map_items(item, orders, concurrency=concurrency)
        case ["timeout", millis, program]:
            try:
                async with asyncio.timeout(millis / 1000):
                    return await _play(program)
            except TimeoutError:
                return "late"
        case ["dice", _]:
            number = random()
            return "same" if await echo(number) == number else "other"
        case ["progress", tag, count, millis]:
            return await advance(tag, count, millis)
        case ["limit", tag, millis, limit, budget]:
            retry = Retry(attempts=budget, first=0.1)
            try:
                return (await work.options(timeout=limit / 1000, retry=retry)(tag, millis, 0))[0]
            except StepFailedError:
                return "too slow"
            except StepTimeoutError:
                return "too slow"
        case ["approve", name]:
            return (await wait_for_approval(name)).by
        case ["poison", tag]:
            return await poison(tag)
        case ["promise", name, millis]:
            return await _promised(name, millis)
        case ["stream", name, tag, own, count, millis, fails]:
            return await _spoken(name, tag, own, count, millis, fails)
        case ["fragile", tag, millis]:
            return await fragile(tag, millis)
        case ["continue", program]:
            return continue_as_new(json.dumps(program))
        case _:
            raise AssertionError(f"no such order: {order}")


async def _promised(name: str, millis: int) -> Any:
    """Wait for what a program outside settles a promise with."""
    made = promise(int)
    await post(name, made.id)
    try:
        async with asyncio.timeout(millis / 1000 if millis else None):
            return await made
    except TimeoutError:
        return "timeout"
    except ValueError as error:
        return f"failed {error}"


async def _spoken(name: str, tag: str, own: int, count: int, millis: int, fails: int) -> list[int]:
    """Emit items while a step does that too."""
    retry = Retry(attempts=fails + 1, first=0.05)
    speaking = asyncio.create_task(speak.options(retry=retry)(name, tag, count, millis, fails))
    for number in range(own):
        await emit(name, [tag, number])
        await asyncio.sleep(millis / own / 1000)
    return [own, await speaking]


async def _race(tag: str, millis: int, limit: int) -> str:
    runner = asyncio.create_task(work(tag, millis, 0))
    sleeper = asyncio.create_task(asyncio.sleep(limit / 1000))
    done, rest = await asyncio.wait([runner, sleeper], return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    return "work" if runner in done else "sleep"


@workflow(name="simulated.play", strict_arguments=True)
async def play(program: str) -> str:
    """Do what the program says; what each order gave."""
    return json.dumps(await _play(json.loads(program)))


@workflow(name="simulated.brief", strict_arguments=True)
async def brief(text: str) -> str:
    """What a step makes of a text that lies in a blob."""
    return await say(text)


document = flow.parse("""
name: simulated-flow
steps:
  nap: { use: sleep, with: { seconds: 50ms } }
  echo: { use: simulated.play, with: { program: "[]" } }
  play: { use: simulated.play, with: { program: "${{ input.program }}" } }
  both: { use: noop, with: { given: "${{ steps.play }}" }, after: [nap, echo] }
output: "${{ steps.both.given }}"
""")
"""A flow around a program: a timer and two children side by side."""


@workflow(name="simulated.rare", strict_arguments=True)
async def rare(program: str) -> str:
    """The same, on the workers that have it."""
    return json.dumps(await _play(json.loads(program)))


@workflow(name="simulated.one.play", strict_arguments=True, queue=QUEUES["simulated.one"])
async def play_one(program: str) -> str:
    """The same, one run at a time."""
    return json.dumps(await _play(json.loads(program)))


@workflow(name="simulated.two.play", strict_arguments=True, queue=QUEUES["simulated.two"])
async def play_two(program: str) -> str:
    """The same, two runs at a time, and others while they wait."""
    return json.dumps(await _play(json.loads(program)))


@workflow(name="simulated.keyed.play", strict_arguments=True, queue=QUEUES["simulated.keyed"])
async def play_keyed(program: str) -> str:
    """The same, one run of each key at a time."""
    return json.dumps(await _play(json.loads(program)))


@workflow(name="simulated.mine.play", strict_arguments=True, queue=QUEUES["simulated.mine"])
async def play_mine(program: str) -> str:
    """The same, one run in each worker at a time."""
    return json.dumps(await _play(json.loads(program)))


@workflow(name="simulated.rated.play", strict_arguments=True, queue=QUEUES["simulated.rated"])
async def play_rated(program: str) -> str:
    """The same, not more often than once a second."""
    return json.dumps(await _play(json.loads(program)))


@workflow(name="simulated.windowed.play", strict_arguments=True, queue=QUEUES["simulated.windowed"])
async def play_windowed(program: str) -> str:
    """The same, not more often than twice in any three seconds."""
    return json.dumps(await _play(json.loads(program)))


@workflow(name="simulated.heavy.play", strict_arguments=True, queue=QUEUES["simulated.heavy"])
async def play_heavy(program: str) -> str:
    """The same, of which some take more slots than others."""
    return json.dumps(await _play(json.loads(program)))


_PLAYS = (play_one, play_two, play_keyed, play_mine, play_rated, play_windowed, play_heavy)
QUEUED = dict(zip(QUEUES, _PLAYS, strict=True))
"""The workflow of each queue."""


def registry(*, has_rare: bool) -> Registry:
    """What a worker can run."""
    made = Registry()
    workflows: list[Workflow[..., Any]] = [play, brief, document, *QUEUED.values(), *([rare] if has_rare else [])]
    for it in workflows:
        made.add_workflow(it.spec)
    add_machines(made)
    for known in (work, once, unbook, book, item, echo, advance, poison, post, speak, fragile, say):
        made.add_step(known.spec)
    return made
