"""States that cannot work are refused where they are written, and not by the first run that comes there."""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import pytest

import outlive
from outlive.errors import ConfigurationError, DefinitionError, RunFailedError
from outlive.errors.program import MachineError
from outlive.machine import All
from tests.engine.support import in_time, parks, stage

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """A beginning and an end."""

    BEGIN = "begin"
    END = "end"


class Other(enum.Enum):
    """Of another machine, with a state of the same name."""

    BEGIN = "begin"


class Text(enum.StrEnum):
    """Members that are equal to strings."""

    A = "a"
    B = "b"


def machine(name: str = "plain") -> outlive.Machine[Any, None]:
    """A machine without states."""
    return outlive.Machine(f"mistakes.{name}", S, start=S.BEGIN, exits=[S.END])


async def go_on() -> S:
    """To the end."""
    return S.END


async def go_astray() -> Literal[Other.BEGIN]:
    """To a state of another machine."""
    return Other.BEGIN


def go_plainly() -> S:
    """Without waiting."""
    return S.END


async def want_two(data: None, more: int) -> S:
    """The machine gives it one argument."""
    return S.END


async def keep(item: int) -> int:
    """As it is."""
    return item


async def give(data: None, cursor: int | None) -> AsyncGenerator[tuple[int, int], None]:
    """One item."""
    yield 1, 1


@outlive.step
async def mistakes_two(data: None, more: int) -> None:
    """The machine gives it one argument."""


STRANGER = r"<Other.BEGIN: 'begin'> is not a state of S"

MISTAKES: dict[str, tuple[Any, str]] = {
    "a timer to a stranger": (lambda it: it.timer(S.BEGIN, 1, then=Other.BEGIN), STRANGER),
    "a timer to a string": (lambda it: it.timer(S.BEGIN, 1, then="END"), "'END' is not a state of S"),
    "a string": (lambda it: it.timer("BEGIN", 1, then=S.END), "'BEGIN' is not a state of S"),
    "a step": (lambda it: it.state(S.BEGIN)(mistakes_two), "mistakes_two is a step already; give its plain function"),
    "a partial": (
        lambda it: it.state(S.BEGIN)(partial(go_on)),
        r"functools\.partial\(.*\) is not a function; write",
    ),
    "a partial router": (lambda it: it.router(S.BEGIN)(partial(go_plainly)), r"is not a function; write `def`"),
    "a partial branch": (
        lambda it: it.split(S.BEGIN, {"a": partial(go_on)}, join=All(then=S.END)),
        r"mistakes\.plain\.BEGIN\.a: functools\.partial\(.*\) is not a function",
    ),
    "a step that loads": (
        lambda it: it.batch(S.BEGIN, load=mistakes_two, process=keep, finish=go_on),
        r"mistakes\.plain\.BEGIN\.load: mistakes_two is a step already",
    ),
    "a timer that wants more": (lambda it: it.timer(S.BEGIN, want_two, then=S.END), "wants more than the 1"),
    "to a stranger": (lambda it: it.state(S.BEGIN, to=[S.END, Other.BEGIN])(go_on), STRANGER),
    "an annotation": (lambda it: it.state(S.BEGIN)(go_astray), STRANGER),
    "no parentheses": (lambda it: it.state(go_on), r"function go_on at .*> is not a state of S"),
    "a join to a stranger": (lambda it: it.split(S.BEGIN, [go_on], join=All(then=Other.BEGIN)), STRANGER),
    "a join that is a class": (
        lambda it: it.split(S.BEGIN, [go_on], join=All),
        r"join=<class .*outlive.machine.All\(then=",
    ),
    "a nameless branch": (lambda it: it.split(S.BEGIN, [lambda: 1], join=All(then=S.END)), "has no name; give a dict"),
    "a branch that wants more": (
        lambda it: it.split(S.BEGIN, [mistakes_two], join=All(then=S.END)),
        "branch mistakes_two must take one argument, the data",
    ),
    "an async router": (lambda it: it.router(S.BEGIN)(go_on), "router go_on must be a plain function: write `def`"),
    "a plain workflow": (lambda it: it.workflow(S.BEGIN)(go_plainly), "must be async: write `async def go_plainly`"),
    "a number for a retry": (lambda it: it.state(S.BEGIN, retry=3)(go_on), r"retry=3 .*outlive.Retry\(attempts"),
    "an item that wants more": (
        lambda it: it.batch(S.BEGIN, load=go_on, process=want_two, finish=go_on),
        "its process mistakes.plain.BEGIN.item must take one argument, an item",
    ),
    "a process without an item": (
        lambda it: it.stream(S.BEGIN, source=give, process=go_on, flush=go_on, then=S.END),
        "go_on must take one argument, an item",
    ),
    "a stream to a stranger": (
        lambda it: it.stream(S.BEGIN, source=give, process=keep, flush=go_on, then=Other.BEGIN),
        STRANGER,
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_state_that_cannot_work_is_refused_where_it_is_written(mistake: str) -> None:
    """In words that say what to write."""
    define, answer = MISTAKES[mistake]
    with pytest.raises(DefinitionError, match=answer):
        define(machine())


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        ("5", "waits '5' seconds"),
        (timedelta(seconds=-1), r"waits datetime\.timedelta\(.*\) seconds"),
        (float("nan"), "waits nan seconds"),
        (datetime(2026, 1, 1), "waits until 2026-01-01 00:00:00, which has no time zone"),  # noqa: DTZ001
        (go_on, "has an async function for its delay; write `def`"),
    ],
)
def test_a_timer_waits_for_a_time(delay: Any, message: str) -> None:
    """Everything else is a mistake."""
    made = machine("timer")
    made.timer(S.BEGIN, delay, then=S.END)
    with pytest.raises(MachineError, match=f"timer BEGIN {message}"):
        made.validate()


@pytest.mark.parametrize("tolerate", [-1, "al", None, 0.5])
def test_a_stream_tolerates_a_number_of_items(tolerate: Any) -> None:
    """Or all of them."""
    made = machine("tolerant")
    with pytest.raises(DefinitionError, match=f'BEGIN of .*tolerate={tolerate!r} .*from 0 on.* or "all"'):
        made.stream(S.BEGIN, source=give, process=keep, flush=go_on, then=S.END, tolerate=tolerate)


def test_a_string_that_equals_a_state_is_refused() -> None:
    """A string that equals a member of a StrEnum is refused as a state, and one exit in place of a list is refused."""
    states: Any = Text
    with pytest.raises(MachineError, match="'a' is not a state of Text; 'b' is not a state of Text"):
        outlive.Machine("mistakes.text", states, start="a", exits=["b"])
    with pytest.raises(MachineError, match=r"exits=<S\.END: 'end'> must be a list or a set of states"):
        outlive.Machine("mistakes.one", S, start=S.BEGIN, exits=S.END)  # type: ignore[call-overload]


def test_a_diagram_of_an_unknown_form_is_refused() -> None:
    """A diagram of a form other than "mermaid" and "svg" is refused."""
    with pytest.raises(ConfigurationError, match=r"mistakes.plain.diagram\('png'\): give \"mermaid\" or \"svg\""):
        machine().diagram("png")  # type: ignore[arg-type]


# -- What only a run can see -------------------------------------------------------------------------------------------

waiting = machine("waiting")
waiting.timer(S.BEGIN, lambda data: stage.values["delay"], then=S.END)


@pytest.mark.parametrize("delay", [None, "soon", float("nan"), datetime(2026, 1, 1)])  # noqa: DTZ001
async def test_a_timer_whose_function_gives_no_time_parks_the_run(engine: outlive.Engine, delay: Any) -> None:
    """Code that is repaired can go on."""
    stage.values["delay"] = delay
    run = await engine.start(waiting)
    message = "return seconds, a timedelta or an aware datetime"
    assert f"state BEGIN of machine mistakes.waiting returned {delay!r}; {message}" in await parks(run)
    stage.values["delay"] = datetime(2020, 1, 1, tzinfo=UTC)
    await engine.resume(run.id)
    assert (await in_time(run.result())).state is S.END


counting = outlive.Machine("mistakes.counting", S, data=list[int], start=S.BEGIN, exits=[S.END])


@counting.router(S.BEGIN)
def count(data: list[int]) -> Any:
    """Wants to put other data in its place, or not."""
    return (S.END, [1]) if stage.values["wants"] else S.END


async def test_a_router_that_returns_data_parks_the_run(engine: outlive.Engine) -> None:
    """It would be lost without a word: nothing of a router is in the journal."""
    stage.values["wants"] = True
    run = await engine.start(counting, [])
    message = "state BEGIN of machine mistakes.counting returned (<S.END: 'end'>, [1]); return a state of S"
    assert (await parks(run)).endswith(message)
    stage.values["wants"] = False
    await engine.resume(run.id)
    assert (await in_time(run.result())).data == []


async def load() -> Any:
    """Whatever the test says."""
    return stage.values["items"]


async def finish() -> S:
    """The end of the batch."""
    return S.END


batch = machine("batch")
batch.batch(S.BEGIN, load=load, process=keep, finish=finish)


@pytest.mark.parametrize("items", [None, 7, "ab", {"a": 1}])
async def test_a_batch_of_something_else_than_items_fails(engine: outlive.Engine, items: Any) -> None:
    """Before it is in the journal."""
    stage.values["items"] = items
    with pytest.raises(
        RunFailedError, match=f"state BEGIN of machine mistakes.batch returned {items!r} from its load; return"
    ):
        await in_time((await engine.start(batch)).result())
