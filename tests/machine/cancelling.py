"""Machines that lack one state, the one in which the tests of cancelling cancel them."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import outlive
from outlive._kernel.journal.event import AnyEvent
from tests.engine.support import events_of, in_time, stage


class S(enum.Enum):
    """What is booked first, a router, the state that is cancelled, and what must not follow."""

    BOOK = "book"
    CHOOSE = "choose"
    WORK = "work"
    AFTER = "after"
    DONE = "done"


@dataclass
class Data:
    """What the machines here carry."""

    seen: list[Any] = field(default_factory=list)


async def work(where: str) -> None:
    """Something long, which notes that it was cancelled."""
    stage.call(where)
    try:
        await stage.gate(where).pass_through()
    except asyncio.CancelledError:
        stage.call(f"{where} cancelled")
        raise


def release(data: Data) -> None:
    """The undo of BOOK."""
    stage.call("undo BOOK")


async def book(data: Data) -> S:
    """What a roll-back takes back."""
    stage.call("BOOK")
    return S.CHOOSE


def choose(data: Data) -> S:
    """A router in front."""
    return S.WORK


async def after(data: Data) -> S:
    """What never runs in a machine that was cancelled before."""
    stage.call("AFTER")
    return S.DONE


def machine(name: str, **options: Any) -> outlive.Machine[S, Data]:
    """A machine that lacks the state which is cancelled."""
    made = outlive.Machine(f"cancel.{name}", S, data=Data, start=S.BOOK, exits=[S.DONE], **options)
    made.state(S.BOOK, undo=release)(book)
    made.router(S.CHOOSE)(choose)
    made.state(S.AFTER)(after)
    return made


async def cancel(run: outlive.types.RunHandle[Any]) -> None:
    """Ask it to stop, and see that it ends as it should."""
    await run.cancel(reason="enough")
    await is_cancelled(run)


async def is_cancelled(run: outlive.types.RunHandle[Any]) -> None:
    """It has ended as cancelled, and nothing came behind the state it was in."""
    with pytest.raises(outlive.errors.RunCancelledError, match="enough"):
        await in_time(run.result())
    assert await run.status() == "cancelled"
    assert 0 == stage.count("AFTER")


def has(run: outlive.types.RunHandle[Any], kind: type[AnyEvent], wanted: int) -> Callable[[], Awaitable[bool]]:
    """Whether a journal has so many events of a kind, for `until`."""

    async def has_them() -> bool:
        return len(await events_of(run, kind)) == wanted

    return has_them


def are_told(*names: str) -> Callable[[], Awaitable[bool]]:
    """Whether these were cancelled, for `until`."""

    async def are_they() -> bool:
        return all(stage.count(f"{name} cancelled") == 1 for name in names)

    return are_they
