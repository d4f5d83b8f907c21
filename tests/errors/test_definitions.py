"""What can be a step or a workflow, and what is refused where it is written, with what to write instead."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import outlive
from outlive.errors import DefinitionError
from outlive.errors.program import LocalDefinitionError, UnstorableTypeError
from outlive.testing import TestEngine
from tests.engine.inside import journal_of
from tests.engine.support import in_time


@dataclass
class Card:
    number: str


@dataclass
class Cash:
    cents: int


class TaggedCard(msgspec.Struct, tag=True):
    number: str


class TaggedCash(msgspec.Struct, tag=True):
    cents: int


@dataclass
class Purse:
    holds: list[Card | Cash]


async def takes_either(payment: Card | Cash) -> None:
    """Untagged."""


async def takes_either_or_none(payment: Card | Cash | None = None) -> None:
    """Untagged."""


async def takes_many(payments: list[Card | Cash]) -> None:
    """Untagged."""


async def takes_purse(purse: Purse) -> None:
    """Untagged, and deep inside."""


async def gives_either() -> Card | Cash:
    """Untagged."""
    return Cash(1)


@pytest.mark.parametrize("fn", [takes_either, takes_either_or_none, takes_many, takes_purse, gives_either])
@pytest.mark.parametrize("define", [outlive.step, outlive.workflow])
def test_a_union_of_dataclasses_is_refused_where_it_is_written(define: Any, fn: Callable[..., Any]) -> None:
    """JSON could not tell them apart; the message names the function and shows the way."""
    with pytest.raises(UnstorableTypeError, match=rf"(?s){fn.__name__}.*tag=True") as caught:
        define(fn)
    assert isinstance(caught.value, DefinitionError)
    assert isinstance(caught.value, TypeError)


@outlive.step
async def definitions_swap(payment: TaggedCard | TaggedCash, change: Cash | None = None) -> TaggedCard | TaggedCash:
    return TaggedCash(change.cents) if isinstance(payment, TaggedCard) and change is not None else TaggedCard("1")


@outlive.workflow
async def definitions_pay() -> list[TaggedCard | TaggedCash]:
    return [await definitions_swap(TaggedCard("7"), Cash(5)), await definitions_swap(TaggedCash(1))]


async def test_tagged_structs_and_an_optional_dataclass_come_back_as_themselves() -> None:
    """Tagged structs, which the refusal of a union recommends, come back as their own classes."""
    async with TestEngine() as engine:
        run = await engine.start(definitions_pay)

        assert [TaggedCash(5), TaggedCard("1")] == await in_time(run.result())


# -- Methods and decorators --------------------------------------------------------------------------------------------


def logged(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as one should be."""

    @functools.wraps(fn)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await fn(*args, **kwargs)

    return wrapper


def careless(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that forgets the name of what it decorates."""

    async def wrapper(*args: Any) -> Any:
        return await fn(*args)

    return wrapper


def hiding(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that hides that the function is async."""

    @functools.wraps(fn)
    def wrapper(*args: Any) -> Any:
        return fn(*args)

    return wrapper


async def plain(n: int) -> int:
    """A function of a module."""
    return n


@outlive.step
@logged
async def definitions_logged(n: int) -> int:
    return n + 1


class Tools:
    """Steps that live in a class."""

    @staticmethod
    @outlive.step
    async def inner(n: int) -> int:
        return n + 10

    @outlive.step
    @staticmethod
    async def outer(n: int) -> int:
        return n + 100


class Service:
    """Something with a method."""

    async def charge(self, n: int) -> int:
        return n + 1000


definitions_bound = outlive.step(name="definitions_bound")(Service().charge)


async def marked(n: int) -> int:
    """A function with attributes that are called as ours."""
    return n + 10_000


OURS = ["name", "options", *(name for name in vars(definitions_bound) if not name.startswith("__"))]
vars(marked).update(dict.fromkeys(OURS, "mine"))
definitions_marked = outlive.step(marked)


async def marked_flow(n: int) -> int:
    """The same for a workflow."""
    return n + await definitions_marked(n)


marked_flow.spec = marked_flow.signals = marked_flow.bind = "mine"  # type: ignore[attr-defined]
definitions_marked_flow = outlive.workflow(marked_flow)


@outlive.workflow
async def definitions_calls(n: int) -> list[int]:
    return [
        await definitions_logged(n),
        await Tools.inner(n),
        await Tools().outer(n),  # type: ignore[call-arg]
        await definitions_bound(n),
        await definitions_marked.options(timeout=5)(n),
    ]


async def test_steps_over_decorators_on_static_methods_and_with_attributes_are_steps() -> None:
    """Each is called as a step, and its result is in the journal."""
    async with TestEngine() as engine:
        run = await engine.start(definitions_calls, 1)
        flow = await engine.start(definitions_marked_flow.bind(1))

        assert [2, 11, 101, 1001, 10_001] == await in_time(run.result())
        assert 10_002 == await in_time(flow.result())
        assert 5 == len([event for event in await journal_of(run) if type(event).__name__ == "StepSucceeded"])


def test_a_method_is_refused_as_a_workflow() -> None:
    """A method is refused as a workflow, because no journal could hold its object, with what to write instead."""
    with pytest.raises(DefinitionError, match=r"Service.charge at .*is a method.*at the top level.*@staticmethod"):
        outlive.workflow(Service.charge)


@pytest.mark.parametrize("define", [outlive.step, outlive.workflow])
def test_a_class_method_is_refused(define: Any) -> None:
    """It has a class as its first argument."""
    with pytest.raises(DefinitionError, match=r"is a method|give a function"):
        define(classmethod(plain))  # type: ignore[arg-type]


@pytest.mark.parametrize("define", [outlive.step, outlive.workflow])
def test_a_decorator_that_hides_the_function_is_refused(define: Any) -> None:
    """The message says what the decorator must do."""
    with pytest.raises(LocalDefinitionError, match=r"functools\.wraps"):
        define(careless(plain))
    with pytest.raises(DefinitionError, match=r"plain at .*async def.*return await"):
        define(hiding(plain))
    with pytest.raises(DefinitionError, match="has no name"):
        define(functools.partial(plain, 1))
