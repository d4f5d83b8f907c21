"""`outlive.run_step`: any function as a step, known to the journal by its name."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pytest

import outlive
from outlive import Retry
from outlive._kernel.define.run_step import read_function
from outlive.errors import InvalidArgumentError, StepTimeoutError, UnserialisableError, WrongArgumentsError
from outlive.events import AttemptFailed, StepSucceeded
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.support import events_of, note, stage


@dataclass
class Rate:
    currency: str
    cents: int


async def fetch_rate(currency: str, *, cents: int = 100) -> Rate:
    stage.call(currency)
    return Rate(currency, cents)


def fetch_on_thread(currency: str) -> Rate:
    stage.call(threading.current_thread() is threading.main_thread())
    return Rate(currency, 1)


class Bank:
    """What a workflow may have at hand: it is not part of the journal."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    async def rate(self, currency: str) -> Rate:
        return Rate(currency, self.cents)

    def rate_on_thread(self, currency: str) -> Rate:
        assert threading.current_thread() is not threading.main_thread()
        return Rate(currency, self.cents)

    @classmethod
    async def free(cls, currency: str) -> Rate:
        return Rate(currency, 0)

    @staticmethod
    async def dear(currency: str) -> Rate:
        return Rate(currency, 999)

    async def __call__(self, currency: str) -> Rate:
        return Rate(currency, -self.cents)


bank = Bank(7)
anything: Any = bank


@outlive.workflow
async def with_functions() -> list[Rate]:
    async def nearby(currency: str) -> Rate:
        return Rate(currency, len(rates))

    rates: list[Rate] = []
    rates.append(await outlive.run_step(fetch_rate, "EUR"))
    rates.append(await outlive.run_step(fetch_rate, "SEK", name="rates"))
    rates.append(await outlive.run_step(fetch_on_thread, "THB"))
    rates.append(await outlive.run_step(nearby, "NOK"))
    rates.append(await outlive.run_step(bank.rate, "ISK"))
    rates.append(await outlive.run_step(bank.rate_on_thread, "DKK"))
    rates.append(await outlive.run_step(Bank.free, "CHF"))
    rates.append(await outlive.run_step(Bank.dear, "GBP"))
    rates.append(await outlive.run_step(bank, "USD"))
    rates.append(await outlive.run_step(partial(fetch_rate, cents=5), "PLN"))
    return rates


async def test_any_function_is_a_step() -> None:
    """Its name in the journal is its qualified name, and its result has the type of its annotation."""
    async with TestEngine() as engine:
        run = await engine.start(with_functions)
        rates = await run.result()
        calls = [event.call for event in await events_of(run, StepSucceeded)]
    assert {
        "EUR": 100,
        "SEK": 100,
        "THB": 1,
        "NOK": 3,
        "ISK": 7,
        "DKK": 7,
        "CHF": 0,
        "GBP": 999,
        "USD": -7,
        "PLN": 5,
    } == {rate.currency: rate.cents for rate in rates}
    assert [
        "fetch_rate",
        "rates",
        "fetch_on_thread",
        "with_functions.nearby",
        "Bank.rate",
        "Bank.rate_on_thread",
        "Bank.free",
        "Bank.dear",
        "Bank",
        "fetch_rate#2",
    ] == calls
    assert stage.count(False) == 1, "a plain function runs on a thread"


@outlive.workflow
async def with_lambdas(currency: str) -> list[Any]:
    plain = await outlive.run_step(lambda: [currency, currency.lower()], name="plain")
    rate = await outlive.run_step(lambda: anything.rate_as_list(currency), name="async")
    return [plain, rate]


async def test_a_lambda_needs_only_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lambda with a name is a step, and the coroutine of a lambda that calls an async function is awaited."""

    async def rate_as_list(currency: str) -> list[Any]:
        await asyncio.sleep(0)
        return [currency, outlive.current_step().name]

    monkeypatch.setattr(bank, "rate_as_list", rate_as_list, raising=False)
    async with TestEngine() as engine:
        assert [["EUR", "eur"], ["EUR", "async"]] == await (await engine.start(with_lambdas, "EUR")).result()


@outlive.workflow
async def with_options(kind: str) -> str:
    async def fails() -> str:
        stage.call(outlive.current_step().attempt)
        if outlive.current_step().attempt < 3:
            raise LookupError("not yet")
        return "at last"

    async def raises() -> str:
        raise ReservedError("taken")

    if kind == "retry":
        return await outlive.run_step(fails, retry=Retry(attempts=3, first=10))
    if kind == "default":
        return await outlive.run_step(fails)
    if kind == "timeout":
        try:
            await outlive.run_step(asyncio.Event().wait, name="for-ever", timeout=0.01)
        except StepTimeoutError as error:
            return str(error)
    try:
        return await outlive.run_step(raises, raises=(ReservedError,))
    except ReservedError as error:
        return f"caught {error}"


class ReservedError(Exception):
    """The seat is taken."""


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("retry", "at last"),
        ("default", "at last"),
        ("timeout", "step for-ever did not end within its timeout of 0.01 s"),
        ("raises", "caught taken"),
    ],
)
async def test_the_options_of_a_step_hold(kind: str, result: str) -> None:
    """Retry, also by default, timeout and registered exceptions."""
    async with TestEngine(retry=Retry(attempts=3, first=0) if kind == "default" else None) as engine:
        run = await engine.start(with_options, kind)
        assert result == await run.result()
        failed = await events_of(run, AttemptFailed)
    assert ([10.0, 20.0] if kind == "retry" else [0.0, 0.0] if kind == "default" else []) == [
        (event.retry_at - event.at) / 1_000_000 for event in failed
    ]


@outlive.workflow
async def summing_with_closures(numbers: list[int]) -> int:
    total = 0
    for number in numbers:

        async def add(extra: int, base: int = total) -> int:
            stage.call(extra)
            return base + extra

        total = await outlive.run_step(add, number, retry=Retry(attempts=2))
    await asyncio.sleep(60)
    return await outlive.run_step(lambda: total * 2, name="double")


async def test_a_closure_survives_a_crash_at_every_commit() -> None:
    """A replay makes it again, and calls it only if it has not ended."""
    report = await crash_everywhere(summing_with_closures, [1, 5], max_points=5)
    assert 12 == report.result


async def test_a_closure_is_forgotten_with_its_run() -> None:
    """Nothing of the process keeps it, and so nothing that it has closed over."""
    held: list[weakref.ref[Any]] = []

    async def call_once() -> None:
        async def inner() -> int:
            return 1

        held.append(weakref.ref(inner))
        await outlive.run_step(inner)

    await call_once()
    gc.collect()
    assert [None] == [each() for each in held]


async def test_outside_of_a_run_it_is_a_plain_call() -> None:
    """In a test, and in another step: nothing is journaled, and a plain function is called where it is."""
    assert Rate("EUR", 100) == await outlive.run_step(fetch_rate, "EUR")
    assert 3 == await outlive.run_step(lambda: 3, name="three")
    assert threading.get_ident() == await outlive.run_step(lambda: threading.current_thread().ident, name="ident")
    async with TestEngine() as engine:
        run = await engine.start(with_inner_step)
        assert "inner" == await run.result()
        assert ["calls_run_step"] == [event.call for event in await events_of(run, StepSucceeded)]


@outlive.step
async def calls_run_step() -> str:
    return await outlive.run_step(note.fn, "inner")


@outlive.workflow
async def with_inner_step() -> str:
    return await calls_run_step()


@outlive.resource
async def run_step_bank() -> Bank:
    return Bank(42)


@outlive.workflow
async def with_resource() -> Rate:
    async def ask(currency: str, own: Bank = outlive.use(run_step_bank)) -> Rate:
        return await own.rate(currency)

    return await outlive.run_step(ask, "EUR")


async def test_a_function_may_use_resources() -> None:
    """Not given by the caller, and no part of the call."""
    async with TestEngine() as engine:
        assert Rate("EUR", 42) == await (await engine.start(with_resource)).result()


async def _yields() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("fn", "options", "advice"),
    [
        (lambda: 1, {}, "a lambda has no name"),
        (partial(lambda: 1), {}, "a lambda has no name"),
        (note, {}, "it is a step already; call it: await note"),
        (with_lambdas, {}, "it is a workflow already; call it: await with_lambdas"),
        (Bank, {}, "give a function"),
        ("fetch", {}, "give a function"),
        (_yields, {}, "it yields"),
        (fetch_rate, {"name": "the rates"}, "use letters, digits"),
        (fetch_rate, {"timeout": 0}, "more than 0 seconds"),
        (fetch_rate, {"retry": 3}, "outlive.Retry(attempts=3)"),
        (fetch_rate, {"raises": ValueError}, "a tuple of exception classes"),
    ],
    ids=[
        "lambda",
        "partial of a lambda",
        "step",
        "workflow",
        "class",
        "text",
        "generator",
        "name",
        "timeout",
        "retry",
        "raises",
    ],
)
async def test_a_callable_that_cannot_be_a_step_is_refused(fn: Any, options: dict[str, Any], advice: str) -> None:
    """`run_step` refuses a callable or a name that cannot be a step, also outside a run, with what to write instead."""
    with pytest.raises(InvalidArgumentError) as caught:
        await outlive.run_step(fn, **options)
    assert advice in str(caught.value)


@outlive.workflow
async def with_wrong_arguments(kind: str) -> str:
    wrong: dict[str, Callable[[], Any]] = {
        "many": lambda: outlive.run_step(fetch_rate, "EUR", "SEK"),  # type: ignore[call-arg, arg-type]
        "unstorable": lambda: outlive.run_step(lambda lock: 1, threading.Lock(), name="locked"),
        "unsaid": lambda: outlive.run_step(cast(Any, max)),
    }
    try:
        await wrong[kind]()
    except (WrongArgumentsError, UnserialisableError, InvalidArgumentError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


@pytest.mark.parametrize(
    ("kind", "text"),
    [("many", "WrongArgumentsError"), ("unstorable", "UnserialisableError"), ("unsaid", "call it in a function")],
)
async def test_arguments_that_do_not_fit_are_refused(kind: str, text: str) -> None:
    """`run_step` refuses too many arguments, an argument without a stored form, and a builtin without a signature."""
    async with TestEngine() as engine:
        assert text in await (await engine.start(with_wrong_arguments, kind)).result()


def test_a_function_is_read_once_for_each_name() -> None:
    """A loop that calls it does not read it again; as a step of another name it has that name."""
    first = read_function(fetch_rate, "rate")

    assert read_function(fetch_rate, "rate") is first
    assert [first.name, read_function(fetch_rate, "again").name] == ["rate", "again"]
