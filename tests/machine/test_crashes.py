"""Machines of every kind of state, killed and recovered at every commit."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import outlive
from outlive.machine import All, More, Pending
from outlive.testing import crash_everywhere
from outlive.testing.crash import CrashReport, Survivor
from tests.engine.support import stage


class S(enum.Enum):
    """One of each kind."""

    TAKE = "take"
    CHOOSE = "choose"
    WALK = "walk"
    PACK = "pack"
    REST = "rest"
    ASK = "ask"
    LOOK = "look"
    COUNT = "count"
    BREAK = "break"
    DONE = "done"


@dataclass
class Data:
    """What happened."""

    fails: bool = False
    log: list[str] = field(default_factory=list)


every = outlive.Machine("crashes.every", S, data=Data, start=S.TAKE, exits=[S.DONE])


def release(data: Data) -> None:
    """Takes TAKE back; a crash may have come between the effect and its journal."""
    stage.values.setdefault("held", set()).discard("it")


@every.state(S.TAKE, undo=release)
async def take(data: Data) -> S:
    """An effect."""
    stage.values.setdefault("held", set()).add("it")
    data.log.append("took")
    return S.CHOOSE


@every.router(S.CHOOSE)
def choose(data: Data) -> S:
    """No event."""
    return S.WALK


@every.stepped(S.WALK)
async def walk(data: Data, cursor: int | None) -> More[int] | S:
    """Three steps."""
    here = (cursor or 0) + 1
    data.log.append(f"walked {here}")
    return More(here) if here < 3 else S.PACK


async def wrap(data: Data) -> str:
    """One branch."""
    return "wrapped"


def label(data: Data) -> str:
    """Another one, on a thread."""
    return "labelled"


def merge(data: Data, results: dict[str, Any]) -> None:
    """By name, so the order in which they ended does not matter."""
    data.log += results.values()


every.split(S.PACK, [wrap, label], join=All(then=S.REST), merge=merge, timeout=600)
every.timer(S.REST, 3600, then=S.ASK)


@outlive.step
async def crashes_ask(text: str) -> str:
    """A step of workflow code."""
    return f"{text}?"


@every.workflow(S.ASK)
async def ask(data: Data) -> S:
    """Steps and a signal."""
    data.log.append(await crashes_ask("well"))
    data.log.append(await outlive.wait_for_signal("answer", str))
    return S.LOOK


@every.poll(S.LOOK)
async def look(data: Data) -> Pending | S:
    """Twice."""
    data.log.append("looked")
    return Pending(60) if data.log.count("looked") < 2 else S.COUNT


async def load(data: Data) -> list[int]:
    """Items."""
    return [1, 2]


async def process(item: int) -> int:
    """One fails."""
    if item == 2:
        raise ValueError("two")
    return item


async def finish(data: Data, results: list[Any]) -> S:
    """The end of the batch."""
    data.log.append(repr(results))
    return S.BREAK


every.batch(S.COUNT, load=load, process=process, finish=finish)


@every.state(S.BREAK, raises=(ZeroDivisionError,))
async def break_(data: Data) -> S:
    """Fails if it is to."""
    if data.fails:
        raise ZeroDivisionError("planned")
    return S.DONE


LOG = ["took", "walked 1", "walked 2", "walked 3", "wrapped", "labelled", "well?", "yes", "looked", "looked"]


async def survive(*, fails: bool, **options: Any) -> CrashReport:
    """Kill it everywhere; what it holds in the end is what it should hold."""
    wrong: Counter[str] = Counter()

    def check(survivor: Survivor) -> None:
        held = stage.values.pop("held", set())
        wrong["held"] += held != (set() if fails else {"it"})
        wrong["error"] += ("planned" in survivor.error) is not fails

    report = await crash_everywhere(every, Data(fails), signals=[("answer", "yes")], check=check, **options)
    assert +wrong == Counter()
    return report


async def test_a_machine_survives_a_crash_at_every_commit(crash_place: dict[str, Any]) -> None:
    """No completed state runs again, and the end is the same. [CA-X3 CA-X14]"""
    report = await survive(fails=False, **crash_place)

    assert report.points >= crash_place.get("max_points", 30)
    assert report.result.data.log == [*LOG, "[1, ValueError('two')]"]


async def test_a_machine_that_fails_is_rolled_back_through_a_crash_at_every_commit(crash_place: dict[str, Any]) -> None:
    """Nothing is left of it. [CA-X9]"""
    report = await survive(fails=True, **crash_place)

    assert report.points >= crash_place.get("max_points", 30)
    assert "planned" in report.error
