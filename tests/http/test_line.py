"""A line for work that takes long: senders take turns, and none of them waits for all the work of another one."""

from __future__ import annotations

import asyncio

import pytest

from outlive.http.line import AT_ONCE, Line
from outlive.http.problem import Problem

NEVER = 60.0
WAITING_MAX = 20


class Work:
    """Work that has begun and does not end before it may."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def __call__(self) -> str:
        """Do it."""
        self.has_begun.set()
        await self.may_end.wait()
        return "done"


async def seven() -> int:
    """Work that ends at once."""
    return 7


@pytest.fixture
def line() -> Line:
    """A line."""
    return Line("the work", waiting_max=WAITING_MAX, seconds=NEVER)


async def test_the_work_of_one_sender_does_not_hold_up_that_of_others(line: Line) -> None:
    """One of each sender is done at once, and few of all. [S35 S51]"""
    first, second, other = Work(), Work(), Work()
    of_ann = [asyncio.ensure_future(line.do("ann", work)) for work in (first, second)]
    of_bob = asyncio.ensure_future(line.do("bob", other))
    await first.has_begun.wait()
    await other.has_begun.wait()
    of_eve = asyncio.ensure_future(line.do("eve", seven))
    other.may_end.set()

    assert ("done", 7) == (await of_bob, await of_eve)
    assert not second.has_begun.is_set()
    first.may_end.set()
    second.may_end.set()
    assert ["done", "done"] == await asyncio.gather(*of_ann)


async def test_senders_take_turns(line: Line) -> None:
    """A sender that comes last waits for one work of each other sender, however much they have. [S35 S51]"""
    done: list[str] = []

    async def note(sender: str) -> None:
        done.append(sender)

    senders = ["ann"] * 5 + ["bob"] * 5 + ["eve"]
    # All of them are in the line before the first work begins.
    blockers = [Work() for _ in range(AT_ONCE)]
    busy = [asyncio.ensure_future(line.do(f"busy {each}", work)) for each, work in enumerate(blockers)]
    await blockers[-1].has_begun.wait()
    waiting = [asyncio.ensure_future(line.do(sender, lambda sender=sender: note(sender))) for sender in senders]  # type: ignore[misc]
    await asyncio.sleep(0)
    for work in blockers:
        work.may_end.set()
    await asyncio.gather(*busy, *waiting)

    assert sorted(senders) == sorted(done)
    assert {"ann", "bob", "eve"} == set(done[:3])


async def test_so_much_work_may_wait(line: Line) -> None:
    """More is refused at once; what its caller no longer waits for leaves its place. [S35]"""
    works = [Work() for _ in range(AT_ONCE)]
    under_way = [asyncio.ensure_future(line.do(f"sender {number}", work)) for number, work in enumerate(works)]
    waiting = [asyncio.ensure_future(line.do(f"another {each}", seven)) for each in range(WAITING_MAX)]
    await works[-1].has_begun.wait()
    with pytest.raises(Problem, match="the work was not done: there is too much to do before it"):
        await line.do("one more", seven)
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    for work in works:
        work.may_end.set()

    assert await line.do("one more", seven) == 7
    await asyncio.gather(*under_way)


async def test_the_line_is_shared_by_senders(line: Line) -> None:
    """One that wants as much at once as may wait leaves half of the line to others. [S33 S35 S51]"""
    work = Work()
    noisy = [asyncio.ensure_future(line.do("noisy", work)) for _ in range(WAITING_MAX)]
    await work.has_begun.wait()

    assert await line.do("quiet", seven) == 7
    work.may_end.set()
    answers = await asyncio.gather(*noisy, return_exceptions=True)
    assert sum(answer == "done" for answer in answers) == 1 + WAITING_MAX // 2


async def test_work_whose_caller_has_gone_keeps_its_place() -> None:
    """A sender that gives up at once and comes again has one work under way and not many. [S35]"""
    line, first, second = Line("the work", waiting_max=WAITING_MAX, seconds=0.01), Work(), Work()
    for work in (first, second):
        with pytest.raises(Problem, match=r"it was not done within 0\.01 s"):
            await line.do("ann", work)

    assert first.has_begun.is_set()
    assert not second.has_begun.is_set()
    first.may_end.set()


async def test_error_of_the_work_reaches_its_caller(line: Line) -> None:
    """The caller gets the error of its work, and the next work is done. [S35]"""

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await line.do("ann", fail)

    assert await line.do("ann", seven) == 7
