"""Random sagas, in random order, with failures, cancels and crashes anywhere: the ledger nets to zero, or holds all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from outlive import Retry, saga
from outlive import map as map_items
from outlive._kernel.journal.event import AnyEvent
from outlive.events import StepSucceeded
from outlive.limits import Tolerance
from tests.replay.define import Code, cancel, step, workflow
from tests.replay.driver import live
from tests.replay.life import Life, assert_replays

Program = list[Any]
QUICK = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NIGHT = settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.none() | st.integers(0, 2**32)
CRASHES = st.sets(st.integers(1, 40), max_size=6)


@step(retry=Retry(attempts=2, first=2))
async def release(name: str) -> None:
    """Take a booking back; the attempts that a program plans to fail do so."""


@step(undo=release, retry=Retry(attempts=3, first=2))
async def book(name: str) -> str:
    """A booking of a name that no other one has."""
    return name


@step()
async def fail() -> None:
    """What a saga fails of."""
    raise ValueError("planned")


@workflow(name="saga_child")
async def child(program: Any, path: str) -> None:
    """The same in a run of its own."""
    await run(program, path)


@workflow(name="saga_program")
async def in_saga(program: Any) -> None:
    """A program in a saga."""
    async with saga():
        await run(program, "p")


CODE = Code(in_saga, child)


async def run(program: Program, path: str) -> None:
    """Run one node; its path is the name of what it books."""
    kind, *parts = program

    def branch(number: int = 0) -> Coroutine[Any, Any, None]:
        return run(parts[number], f"{path}{number}")

    match kind:
        case "book":
            await book(path)
        case "fail":
            await fail()
        case "sleep":
            await asyncio.sleep(parts[0])
        case "sequence":
            for number in range(len(parts)):
                await branch(number)
        case "gather":
            await asyncio.gather(*[branch(number) for number in range(len(parts))])
        case "group":
            async with asyncio.TaskGroup() as group:
                for number in range(len(parts)):
                    group.create_task(branch(number))
        case "nested":
            async with saga():
                await branch()
        case "child":
            await child(parts[0], f"{path}c")
        case "map":
            await map_items(book, [f"{path}m{number}" for number in range(parts[0])], concurrency=2)
        case "tolerant":
            await map_items(child_book, range(parts[0]), concurrency=2, tolerate=Tolerance(ratio=1))
        case "caught":
            with suppress(Exception):
                async with saga():
                    await branch()
        case "timed":
            with suppress(TimeoutError):
                async with asyncio.timeout(parts[1]):
                    await branch()
        case "race":
            tasks = [asyncio.create_task(branch(number)) for number in range(len(parts))]
            done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in rest:
                task.cancel()
            for task in done:
                task.result()
        case _:
            raise AssertionError(kind)


@step()
async def child_book(number: int) -> int:
    """Something that cannot be undone."""
    return number


LEAVES = st.one_of(
    st.just(["book"]),
    st.just(["book"]),
    st.just(["fail"]),
    st.builds(lambda seconds: ["sleep", seconds], st.integers(0, 5)),
    st.builds(lambda count: ["map", count], st.integers(0, 5)),
    st.builds(lambda count: ["tolerant", count], st.integers(0, 3)),
)


def nodes(kinds: list[str]) -> st.SearchStrategy[Program]:
    """Programs of these kinds of nodes."""

    def around(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
        several = st.lists(inner, min_size=1, max_size=4)
        made = {
            "sequence": several.map(lambda parts: ["sequence", *parts]),
            "gather": several.map(lambda parts: ["gather", *parts]),
            "group": several.map(lambda parts: ["group", *parts]),
            "race": several.map(lambda parts: ["race", *parts]),
            "nested": inner.map(lambda part: ["nested", part]),
            "child": inner.map(lambda part: ["child", part]),
            "caught": inner.map(lambda part: ["caught", part]),
            "timed": st.builds(lambda part, seconds: ["timed", part, seconds], inner, st.integers(1, 6)),
        }
        return st.one_of([made[kind] for kind in kinds])

    return st.recursive(LEAVES, around, max_leaves=8)


STRAIGHT = ["sequence", "gather", "group", "child"]
ALL = [*STRAIGHT, "race", "nested", "caught", "timed"]
TROUBLE = st.integers(0, 3)
MESSAGES = st.lists(st.builds(cancel, st.just("by chance"), run=st.sampled_from([0, 1, 2])), max_size=2)


def movements(life: Life) -> list[tuple[str, str]]:
    """What was booked and what was released, in the order of the journal."""
    asked = {(each[1], each[2]): (str(each[3]), each[4]) for each in life.all_asked if each[0] == "step"}
    done = [asked[event.run, event.call] for event in life.journal if isinstance(event, StepSucceeded)]
    return [(name, str(args)) for name, args in done if name in ("book", "release")]


def outcomes(attempts: int) -> dict[str, list[Any]]:
    """So many attempts of every release go wrong before one goes well."""
    return {"release": [*[OSError("no")] * attempts, None]}


@QUICK
@given(program=nodes(ALL), seed=SEEDS, messages=MESSAGES, crashes=CRASHES, trouble=TROUBLE)
@example(["group", ["fail"], ["child", ["sequence", ["book"], ["book"]]]], None, [], {3, 4, 5}, 2)
@example(["timed", ["nested", ["sequence", ["book"], ["sleep", 5]]], 1], None, [], set(), 0)
def test_a_failed_saga_nets_to_zero(
    program: Program, seed: int | None, messages: list[AnyEvent], crashes: set[int], trouble: int
) -> None:
    """Whatever it is made of, and wherever it fails, is cancelled, or loses its worker."""
    check_net(program, seed, messages, crashes, trouble)


@pytest.mark.slow
@NIGHT
@given(program=nodes(ALL), seed=SEEDS, messages=MESSAGES, crashes=CRASHES, trouble=TROUBLE)
def test_a_great_many_failed_sagas_net_to_zero(
    program: Program, seed: int | None, messages: list[AnyEvent], crashes: set[int], trouble: int
) -> None:
    """The first of these tests, for a night."""
    check_net(program, seed, messages, crashes, trouble)


def check_net(program: Program, seed: int | None, messages: list[AnyEvent], crashes: set[int], trouble: int) -> None:
    """Run a saga, and see that it holds nothing unless it succeeded."""
    life = live(in_saga, program, code=CODE, seed=seed, messages=messages, crash_at=crashes, outcomes=outcomes(trouble))
    assert life.status in ("succeeded", "failed", "cancelled"), life.park
    assert life.books[-1].outstanding == ()

    held: set[str] = set()
    for name, what in movements(life):
        if name == "book":
            assert what not in held
            held.add(what)
        else:
            assert what in held, "undone twice, or before it was done"
            held.remove(what)
    if life.status != "succeeded":
        assert not held
    assert_replays(life)


@QUICK
@given(program=nodes([*STRAIGHT, "nested"]), seed=SEEDS, crashes=CRASHES)
def test_a_saga_that_succeeds_holds_everything(program: Program, seed: int | None, crashes: set[int]) -> None:
    """Where nothing is given up, nothing of a saga that is left normally is undone."""
    life = live(in_saga, program, code=CODE, seed=seed, crash_at=crashes)

    if life.status == "succeeded":
        assert [] == [name for name, _ in movements(life) if name == "release"]
        assert len(movements(life)) == count(program, "book")


def count(program: Program, kind: str) -> int:
    """How many bookings a program makes that does not fail."""
    if program[0] == "map":
        return int(program[1])
    inner = sum(count(part, kind) for part in program[1:] if isinstance(part, list))
    return inner + int(program[0] == kind)


@QUICK
@given(program=nodes(STRAIGHT), seed=SEEDS, messages=MESSAGES)
def test_one_saga_is_undone_in_reverse(program: Program, seed: int | None, messages: list[AnyEvent]) -> None:
    """The order is that of the journal, across branches and children."""
    life = live(in_saga, program, code=CODE, seed=seed, messages=messages)

    if life.status != "succeeded":
        booked = [what for name, what in movements(life) if name == "book"]
        assert booked[::-1] == [what for name, what in movements(life) if name == "release"]
