"""Workflows and the changes that are deployed while runs of them are under way.

Every changed workflow has the name and version of its original. `CORPUS` says of each pair where the journal of the
original contradicts the changed code first, or that it never does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outlive import Retry, start, wait_for_signal
from outlive._kernel.journal.event import AnyEvent
from outlive.types import Workflow
from tests.replay.define import signal, step, workflow


@step()
async def a(n: int) -> int:
    """A step."""
    return n + 1


@step()
async def b(n: int) -> int:
    """Another step."""
    return n + 2


@step()
async def c(n: int) -> int:
    """A third one."""
    return n + 3


@step(name="a")
async def a_gives_text(n: int) -> str:
    """Step a with another type of result."""
    return str(n)


@step(name="a")
async def a_gives_float(n: int) -> float:
    """Step a with a wider type of result."""
    return n / 2


@step(name="a")
async def a_takes_more(n: int, unit: str = "kg") -> int:
    """Step a with a new argument that has a default."""
    return len(unit) + n


@step(name="a", retry=Retry(attempts=9))
async def a_tries_harder(n: int) -> int:
    """Step a with another policy."""
    return n + 1


@step()
async def flaky(n: int) -> int:
    """A step that fails for good."""
    raise ValueError(n)


@workflow(name="sub")
async def sub(n: int) -> int:
    """A child."""
    return await a(n) + await b(n)


@workflow(name="sub")
async def sub_longer(n: int) -> int:
    """The child with a step more."""
    return await a(n) + await b(n) + await c(n)


@workflow(name="sub")
async def sub_shorter(n: int) -> int:
    """The child with a step less."""
    return await a(n)


@workflow(name="sub")
async def sub_fails(n: int) -> int:
    """The child fails after the same steps."""
    raise ValueError(await a(n) + await b(n))


@workflow(name="sub")
async def sub_other_result(n: int) -> int:
    """The child makes another result of the same steps."""
    return await a(n) * await b(n)


@workflow(name="sub")
async def sub_text(n: int) -> str:
    """The child with another type of result."""
    return f"{await a(n) + await b(n)}"


@workflow(name="a")
async def sub_named_a(n: int) -> int:
    """A child with the name of a step."""
    return n


# -- In sequence ----------------------------------------------------------------------------------------------


@workflow(name="sequence")
async def sequence(n: int) -> int:
    """Three steps, one after the other."""
    x = await a(n)
    y = await b(x)
    return await c(y)


@workflow(name="sequence")
async def sequence_reordered(n: int) -> int:
    """The first two steps have changed places."""
    x = await b(n)
    y = await a(x)
    return await c(y)


@workflow(name="sequence")
async def sequence_inserted_first(n: int) -> int:
    """A step more at the beginning."""
    await c(0)
    return await sequence.fn(n)


@workflow(name="sequence")
async def sequence_inserted_between(n: int) -> int:
    """A step more in the middle."""
    x = await a(n)
    await c(0)
    return await c(await b(x))


@workflow(name="sequence")
async def sequence_inserted_last(n: int) -> int:
    """A step more at the end."""
    return await a(await sequence.fn(n))


@workflow(name="sequence")
async def sequence_deleted_first(n: int) -> int:
    """Without the first step."""
    return await c(await b(n + 1))


@workflow(name="sequence")
async def sequence_deleted_last(n: int) -> int:
    """Without the last step."""
    return await b(await a(n))


@workflow(name="sequence")
async def sequence_renamed(n: int) -> int:
    """Another step in the middle."""
    return await c(await c(await a(n)))


@workflow(name="sequence")
async def sequence_other_argument(n: int) -> int:
    """The second step is given something else."""
    x = await a(n)
    return await c(await b(x + 1))


@workflow(name="sequence")
async def sequence_other_keyword(n: int) -> int:
    """The second step is given the same by name."""
    x = await a(n)
    return await c(await b(n=x))


@workflow(name="sequence")
async def sequence_text(n: int) -> str:
    """The first step gives text now."""
    return await a_gives_text(n)


@workflow(name="sequence")
async def sequence_in_parallel(n: int) -> int:
    """The first two steps at once."""
    both = await asyncio.gather(a(n), b(n))
    return await c(both[0])


@workflow(name="sequence")
async def sequence_in_task(n: int) -> int:
    """The first step in a task of its own."""
    x = await asyncio.create_task(a(n))
    return await c(await b(x))


@workflow(name="sequence")
async def sequence_to_child(n: int) -> int:
    """The first step has become a child of the same name."""
    x = await sub_named_a(n)
    return await c(await b(x))


@workflow(name="sequence")
async def sequence_sleeps(n: int) -> int:
    """A nap before the last step."""
    y = await b(await a(n))
    await asyncio.sleep(1)
    return await c(y)


@workflow(name="sequence")
async def sequence_raises(n: int) -> int:
    """Gives up after the second step."""
    await b(await a(n))
    raise ValueError("changed my mind")


@workflow(name="sequence")
async def sequence_awaits_late(n: int) -> int:
    """The first step is started in a task and awaited later: it is another task's call now."""
    task = asyncio.create_task(a(n))
    await b(n)
    return await c(await task)


@workflow(name="sequence")
async def sequence_more_parameters(n: int, unit: str) -> int:
    """The workflow wants an argument that the journal does not have."""
    return await sequence.fn(n + len(unit))


@workflow(name="sequence")
async def sequence_no_parameters() -> int:
    """The workflow does not take the argument that the journal has."""
    return await sequence.fn(0)


@workflow(name="sequence")
async def sequence_text_parameter(n: str) -> int:
    """The workflow wants another type of argument."""
    return await sequence.fn(int(n))


@workflow(name="sequence")
async def sequence_default_parameter(n: int, unit: str = "kg") -> int:
    """The workflow has a new argument with a default."""
    return await sequence.fn(n) + len(unit) - 2


@workflow(name="sequence")
async def sequence_refactored(n: int) -> int:
    """The same calls through a helper and a loop."""
    x = await through(n)
    for last in [c]:
        x = await last(x)
    return x


async def through(n: int) -> int:
    """The first two steps."""
    return await b(await a(n))


@workflow(name="sequence")
async def sequence_other_result(n: int) -> int:
    """The same calls, another result."""
    return 100 * await sequence.fn(n)


@workflow(name="sequence")
async def sequence_wider_type(n: int) -> int:
    """The first step gives a float now, and an int is one."""
    return await c(await b(int(await a_gives_float(n))))


@workflow(name="sequence")
async def sequence_tries_harder(n: int) -> int:
    """The first step has another policy."""
    return await c(await b(await a_tries_harder(n)))


@workflow(name="sequence")
async def sequence_new_default(n: int) -> int:
    """The first step has a new argument with a default."""
    return await c(await b(await a_takes_more(n)))


# -- Loops and branches ---------------------------------------------------------------------------------------


@workflow(name="loop")
async def loop(n: int) -> int:
    """n steps, then another one."""
    total = 0
    for i in range(n):
        total += await a(i)
    return await b(total)


@workflow(name="loop")
async def loop_longer(n: int) -> int:
    """One turn more."""
    return await loop.fn(n + 1)


@workflow(name="loop")
async def loop_shorter(n: int) -> int:
    """One turn less."""
    return await loop.fn(n - 1)


@workflow(name="loop")
async def loop_backwards(n: int) -> int:
    """The other way round."""
    return await b(sum([await a(i) for i in reversed(range(n))]))


@workflow(name="loop")
async def loop_unrolled(n: int) -> int:
    """The first turn before the loop."""
    total = await a(0)
    for i in range(1, n):
        total += await a(i)
    return await b(total)


@workflow(name="branch")
async def branch(n: int) -> int:
    """One way or the other."""
    x = await a(n)
    return await b(x) if x > 1 else await c(x)


@workflow(name="branch")
async def branch_other_condition(n: int) -> int:
    """The other way for the same value."""
    x = await a(n)
    return await b(x) if x > 100 else await c(x)


@workflow(name="branch")
async def branch_same_way(n: int) -> int:
    """Another condition that goes the same way."""
    x = await a(n)
    return await b(x) if x >= 2 else await c(x)


@workflow(name="caught")
async def caught(n: int) -> int:
    """A failure that is handled."""
    try:
        return await flaky(n)
    except ValueError:
        return await a(n)


@workflow(name="caught")
async def caught_no_more(n: int) -> int:
    """The failure is no longer handled."""
    return await flaky(n)


@workflow(name="caught")
async def caught_otherwise(n: int) -> int:
    """The failure is handled in another way."""
    try:
        return await flaky(n)
    except ValueError:
        return await b(n)


# -- Side by side ---------------------------------------------------------------------------------------------


@workflow(name="parallel")
async def parallel(n: int) -> int:
    """Three steps at once, then one."""
    return await c(sum(await asyncio.gather(a(n), b(n), a(n + 1))))


@workflow(name="parallel")
async def parallel_swapped(n: int) -> int:
    """Two branches have changed places."""
    return await c(sum(await asyncio.gather(b(n), a(n), a(n + 1))))


@workflow(name="parallel")
async def parallel_swapped_arguments(n: int) -> int:
    """Two branches with the same step have changed places."""
    return await c(sum(await asyncio.gather(a(n + 1), b(n), a(n))))


@workflow(name="parallel")
async def parallel_more(n: int) -> int:
    """A branch more."""
    return await c(sum(await asyncio.gather(a(n), b(n), a(n + 1), c(n))))


@workflow(name="parallel")
async def parallel_less(n: int) -> int:
    """A branch less."""
    return await c(sum(await asyncio.gather(a(n), b(n))) + n + 2)


@workflow(name="parallel")
async def parallel_in_sequence(n: int) -> int:
    """One after the other."""
    return await c(await a(n) + await b(n) + await a(n + 1))


@workflow(name="parallel")
async def parallel_group(n: int) -> int:
    """The same branches in a group."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(a(n)), group.create_task(b(n)), group.create_task(a(n + 1))]
    return await c(sum(task.result() for task in tasks))


@workflow(name="race")
async def race(n: int) -> int:
    """The winner is followed by a step."""
    tasks = [asyncio.create_task(a(n)), asyncio.create_task(asyncio.sleep(5, 0))]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return await b(len(done))


@workflow(name="race")
async def race_for_all(n: int) -> int:
    """No task is cancelled any more."""
    done, _ = await asyncio.wait([asyncio.create_task(a(n)), asyncio.create_task(asyncio.sleep(5, 0))])
    return await b(len(done))


# -- Time and signals -----------------------------------------------------------------------------------------


@workflow(name="timed")
async def timed(n: int) -> int:
    """A nap, a step, a signal with a timeout, a step."""
    await asyncio.sleep(10)
    x = await a(n)
    try:
        async with asyncio.timeout(60):
            x += await wait_for_signal("go", int)
    except TimeoutError:
        return await c(x)
    return await b(x)


@workflow(name="timed")
async def timed_without_nap(n: int) -> int:
    """The nap is gone."""
    x = await a(n)
    async with asyncio.timeout(60):
        x += await wait_for_signal("go", int)
    return await b(x)


@workflow(name="timed")
async def timed_two_naps(n: int) -> int:
    """Another nap."""
    await asyncio.sleep(10)
    await asyncio.sleep(10)
    return await a(n)


@workflow(name="timed")
async def timed_longer_nap(n: int) -> int:
    """A longer nap: how long it was is a fact."""
    await asyncio.sleep(20)
    x = await a(n)
    async with asyncio.timeout(90):
        x += await wait_for_signal("go", int)
    return await b(x)


@workflow(name="timed")
async def timed_nap_in_task(n: int) -> int:
    """The nap in a task of its own."""
    await asyncio.create_task(asyncio.sleep(10))
    return await a(n)


@workflow(name="timed")
async def timed_other_signal(n: int) -> int:
    """Waits for another name."""
    await asyncio.sleep(10)
    x = await a(n)
    async with asyncio.timeout(60):
        x += await wait_for_signal("come", int)
    return await b(x)


@workflow(name="timed")
async def timed_text_signal(n: int) -> int:
    """Waits for another type."""
    await asyncio.sleep(10)
    x = await a(n)
    async with asyncio.timeout(60):
        x += int(await wait_for_signal("go", str))
    return await b(x)


@workflow(name="timed")
async def timed_without_signal(n: int) -> int:
    """Does not wait for the signal, which then does nothing."""
    await asyncio.sleep(10)
    x = await a(n)
    return await b(x + 5)


# -- Children and other trees ---------------------------------------------------------------------------------


@workflow(name="family")
async def family(n: int) -> int:
    """A child, and two at once."""
    x = await sub(n)
    y, z = await asyncio.gather(sub(1), sub(2))
    return await c(x + y + z)


@workflow(name="family")
async def family_to_step(n: int) -> int:
    """The first child has become a step of the same name."""
    x = await sub_step(n)
    return await c(x)


@step(name="sub")
async def sub_step(n: int) -> int:
    """A step with the name of a child."""
    return n


@workflow(name="family")
async def family_other_argument(n: int) -> int:
    """The first child is given something else."""
    return await c(await sub(n + 1))


@workflow(name="family")
async def family_swapped(n: int) -> int:
    """The second pair has changed places."""
    x = await sub(n)
    y, z = await asyncio.gather(sub(2), sub(1))
    return await c(x + y + z)


@workflow(name="family")
async def family_started_in_other_order(n: int) -> int:
    """The same scopes, but the second task starts its child first."""
    x = await sub(n)

    async def late() -> int:
        await asyncio.sleep(0)
        return await sub(1)

    y, z = await asyncio.gather(late(), sub(2))
    return await c(x + y + z)


@workflow(name="family")
async def family_inlined(n: int) -> int:
    """The first child is called as a plain function."""
    x = await sub.fn(n)
    return await c(x)


@workflow(name="apart")
async def apart(n: int) -> int:
    """Starts another tree."""
    other = await start(sub, n, detached=True, id="one")
    return await a(len(other.id))


@workflow(name="apart")
async def apart_other_id(n: int) -> int:
    """Starts it under another id."""
    other = await start(sub, n, detached=True, id="two")
    return await a(len(other.id))


@workflow(name="apart")
async def apart_other_argument(n: int) -> int:
    """Starts it with another argument."""
    other = await start(sub, n + 1, detached=True, id="one")
    return await a(len(other.id))


@workflow(name="apart")
async def apart_waits(n: int) -> int:
    """Waits for its end."""
    other = await start(sub, n, detached=True, id="one")
    return await a(await other.result())


@workflow(name="apart")
async def apart_no_more(n: int) -> int:
    """Starts nothing."""
    return await a(n)


@workflow(name="apart")
async def apart_as_child(n: int) -> int:
    """Starts a child instead."""
    return await sub(n)


# -- The corpus -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A change, and what the journal of the original has to say about it."""

    original: Workflow[..., Any]
    changed: Workflow[..., Any]
    journal: str = ""
    """What the diff says of the journal; empty: the change is compatible."""
    code: str = ""
    """What the diff says of the code."""
    at: int = -1
    """The event at which the contradiction is."""
    child: Workflow[..., Any] = sub
    """The child that is deployed with the change."""
    argument: int = 1
    inject: Mapping[int, Sequence[AnyEvent]] = field(default_factory=dict)
    outcomes: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __str__(self) -> str:
        name = self.changed.fn.__name__
        return name if self.child is sub else f"{name}-{self.child.fn.__name__}"


GO = {3: [signal("go", 5)]}

CORPUS = [
    Mutant(sequence, sequence_reordered, "step a succeeded", "waits for step b", 1),
    Mutant(sequence, sequence_inserted_first, "step a succeeded", "waits for step c", 1),
    Mutant(sequence, sequence_inserted_between, "step b succeeded", "waits for step c", 2),
    Mutant(sequence, sequence_inserted_last, "run 0 ended as succeeded", "waits for step a#2", 4),
    Mutant(sequence, sequence_deleted_first, "step a succeeded", "waits for step b", 1),
    Mutant(sequence, sequence_deleted_last, "step c succeeded", "has ended", 3),
    Mutant(sequence, sequence_renamed, "step b succeeded", "waits for step c", 2),
    Mutant(sequence, sequence_other_argument, "b with the arguments of that time", "b with other arguments", 2),
    Mutant(sequence, sequence_other_keyword, "b with the arguments of that time", "b with other arguments", 2),
    Mutant(sequence, sequence_text, "result of step a", "cannot be read as str", 1),
    Mutant(sequence, sequence_in_parallel, "step a succeeded", "waits for step 1/a, step 2/b", 1),
    Mutant(sequence, sequence_in_task, "step a succeeded", "waits for step 1/a", 1),
    Mutant(sequence, sequence_to_child, "step a succeeded", "waits for child run a", 1),
    Mutant(sequence, sequence_sleeps, "step c succeeded", "waits for timer @timer", 3),
    Mutant(sequence, sequence_raises, "step c succeeded", "has ended", 3),
    Mutant(sequence, sequence_awaits_late, "step a succeeded", "waits for step b, step 1/a", 1),
    Mutant(sequence, sequence_more_parameters, "arguments", "missing a required argument: 'unit'", 0),
    Mutant(sequence, sequence_no_parameters, "arguments", "too many positional arguments", 0),
    Mutant(sequence, sequence_text_parameter, "an argument of sequence", "cannot be read as str", 0),
    Mutant(sequence, sequence_default_parameter),
    Mutant(sequence, sequence_refactored),
    Mutant(sequence, sequence_other_result),
    Mutant(sequence, sequence_wider_type),
    Mutant(sequence, sequence_tries_harder),
    Mutant(sequence, sequence_new_default),
    Mutant(loop, loop_longer, "step b succeeded", "waits for step a#4", 4, argument=3),
    Mutant(loop, loop_shorter, "step a#3 succeeded", "waits for step b", 3, argument=3),
    Mutant(loop, loop_backwards, "a with the arguments of that time", "a with other arguments", 1, argument=3),
    Mutant(loop, loop_unrolled, argument=3),
    Mutant(branch, branch_other_condition, "step b succeeded", "waits for step c", 2),
    Mutant(branch, branch_same_way),
    Mutant(caught, caught_no_more, "step a succeeded", "has ended", 2),
    Mutant(caught, caught_otherwise, "step a succeeded", "waits for step b", 2),
    Mutant(parallel, parallel_swapped, "step 1/a succeeded", "waits for step 1/b, step 2/a, step 3/a", 1),
    Mutant(parallel, parallel_swapped_arguments, "1/a with the arguments of that time", "other arguments", 1),
    Mutant(parallel, parallel_more, "step c succeeded", "waits for step 4/c", 4),
    Mutant(parallel, parallel_less, "step 3/a succeeded", "waits for step c", 3),
    Mutant(parallel, parallel_in_sequence, "step 1/a succeeded", "waits for step a", 1),
    Mutant(parallel, parallel_group),
    Mutant(race, race_for_all, "step b succeeded", "waits for timer 2/@timer", 2),
    Mutant(timed, timed_without_nap, "timer @timer fired", "waits for step a", 1, inject=GO),
    Mutant(timed, timed_two_naps, "step a succeeded", "waits for timer @timer#2", 2, inject=GO),
    Mutant(timed, timed_longer_nap, inject=GO),
    Mutant(timed, timed_nap_in_task, "timer @timer fired", "waits for timer 1/@timer", 1, inject=GO),
    Mutant(timed, timed_other_signal, "step b succeeded", "timer @timer#2, signal come", 4, inject=GO),
    Mutant(timed, timed_text_signal, "signal 'go'", "cannot be read as str", 3, inject=GO),
    Mutant(family, family_to_step, "child run sub (sub) was started", "waits for step sub", 1),
    Mutant(family, family_other_argument, "sub with the arguments of that time", "other arguments", 1),
    Mutant(family, family_swapped, "1/sub with the arguments of that time", "other arguments", 5),
    Mutant(family, family_started_in_other_order, "child run 2 is sub (1/sub)", "asks for sub as child run 3", 5),
    Mutant(family, family_inlined, "child run sub (sub) was started", "waits for step a", 1),
    Mutant(family, family, "run 1 ended as succeeded", "step c", 4, child=sub_longer),
    Mutant(family, family, "step b succeeded", "child run sub", 3, child=sub_shorter),
    Mutant(family, family, "run 1 ended as succeeded", "run 1 ends as failed", 4, child=sub_fails),
    Mutant(family, family, "result of workflow sub", "cannot be read as str", 4, child=sub_text),
    Mutant(family, family, child=sub_other_result),
    Mutant(apart, apart_other_id, "sub with the arguments of that time", "other arguments", 1),
    Mutant(apart, apart_other_argument, "sub with the arguments of that time", "other arguments", 1),
    Mutant(apart, apart_waits, "step a succeeded", "waits for the end of one", 2),
    Mutant(apart, apart_no_more, "detached run one was started", "waits for step a", 1),
    Mutant(apart, apart_as_child, "detached run one was started", "waits for child run sub", 1),
]

UNUSED_SIGNAL = Mutant(timed, timed_without_signal, inject=GO)
"""A signal that the code does not take is not a contradiction: the same steps follow, and it stays in the buffer."""
