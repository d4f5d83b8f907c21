"""What no journal can replay is refused, and the run is parked: failing it would lose it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import math
import signal as os_signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from outlive import start
from outlive._kernel.replay.feeding import feed
from outlive._kernel.replay.loop import RunLoop
from outlive.errors.program import NotDurableError
from outlive.events import StepSucceeded, TimerFired
from tests.interrupts import keyboard, press_ctrl_c
from tests.replay.define import START_AT, Code, created, plain, step, workflow
from tests.replay.driver import live
from tests.replay.life import fed

USED: frozenset[str] = frozenset(
    {
        "call_soon",
        "call_later",
        "call_at",
        "time",
        "create_future",
        "create_task",
        "get_debug",
        "get_task_factory",
        "is_running",
        "is_closed",
    }
)
"""What a workflow may use of its loop."""
HANDLERS = frozenset({"call_exception_handler", "default_exception_handler", "get_exception_handler"})

REFUSED = sorted(
    name
    for name, member in inspect.getmembers(asyncio.AbstractEventLoop, inspect.isfunction)
    if not name.startswith("_") and name not in USED | HANDLERS
)


@step()
async def work(n: int) -> int:
    """Something durable."""
    return n


def test_the_list_is_that_of_asyncio() -> None:
    """The names come from the abstract loop of this Python, so a new one is refused without anybody's help."""
    assert len(REFUSED) > 40
    assert {"run_in_executor", "sock_connect", "subprocess_exec", "add_signal_handler", "run_forever"} <= set(REFUSED)


@workflow()
async def asks_loop(name: str) -> str:
    """Calls a method of its loop."""
    result = getattr(asyncio.get_running_loop(), name)()
    return str(await result if inspect.isawaitable(result) else result)


@pytest.mark.parametrize("name", REFUSED)
def test_a_method_of_the_loop_that_needs_the_world_is_refused(name: str) -> None:
    """The run is parked, and its reason says that a step is the place for this."""
    life = live(asks_loop, name)

    assert life.status == "parked"
    assert life.park is not None
    assert f"loop.{name}() is not durable" in life.park
    assert "do this in a step" in life.park
    assert "asks_loop@1 stopped at event 0" in life.park


def test_every_method_of_the_run_loop_is_used_or_refused() -> None:
    """Every method of the abstract event loop is either used by the loop of a run or refused as not durable."""
    loop = Code(asks_loop).execution().loop

    for name in USED | {"call_exception_handler"}:
        assert name in vars(RunLoop), name
    for name in REFUSED:
        with pytest.raises(NotDurableError, match="is not durable and cannot be used in a workflow; do this in a step"):
            getattr(loop, name)()


Use = Callable[[], Awaitable[Any]]

USES: dict[str, Use] = {
    "to_thread": lambda: asyncio.to_thread(print, "never"),
    "run_in_executor": lambda: asyncio.get_running_loop().run_in_executor(None, print),
    "open_connection": lambda: asyncio.open_connection("localhost", 1),
    "start_server": lambda: asyncio.start_server(print, "localhost", 0),
    "open_unix_connection": lambda: asyncio.open_unix_connection("/nowhere"),
    "create_subprocess_exec": lambda: asyncio.create_subprocess_exec("true"),
    "create_subprocess_shell": lambda: asyncio.create_subprocess_shell("true"),
    "getaddrinfo": lambda: asyncio.get_running_loop().getaddrinfo("localhost", 80),
    "sock_recv": lambda: asyncio.get_running_loop().sock_recv(None, 1),  # type: ignore[arg-type]
}


@workflow()
async def uses(name: str) -> None:
    """Does something that belongs into a step."""
    await USES[name]()


@workflow()
async def uses_in_group(name: str) -> None:
    """The same in a branch: the group wraps the error."""
    async with asyncio.TaskGroup() as group:
        group.create_task(work(1))
        group.create_task(uses.fn(name))


@workflow()
async def uses_in_gather(name: str) -> None:
    """The same in a gather."""
    await asyncio.gather(uses.fn(name), work(1))


@pytest.mark.parametrize("of", [uses, uses_in_group, uses_in_gather], ids=lambda of: of.name)
@pytest.mark.parametrize("name", USES)
def test_asyncio_calls_that_touch_the_world_are_refused(of: Any, name: str) -> None:
    """An asyncio call that touches the world parks the run, wherever in the workflow it stands."""
    life = live(of, name)

    assert life.status == "parked"
    assert life.park is not None
    assert "is not durable" in life.park
    assert life.books[-1].outstanding == ()


@workflow()
async def uses_signal_handler() -> None:
    """Signals of the process belong to the process."""
    asyncio.get_running_loop().add_signal_handler(os_signal.SIGUSR1, print)


def test_signal_handlers_are_refused() -> None:
    """A workflow cannot take a signal away from its process."""
    assert live(uses_signal_handler).status == "parked"


@workflow()
async def recovers() -> str:
    """Catches the error and does it properly."""
    try:
        await asyncio.to_thread(print)
    except NotDurableError:
        return f"in a step: {await work(5)}"
    return "in a thread"


def test_a_workflow_may_handle_the_refusal() -> None:
    """It is an exception like others: it happens in every replay."""
    assert live(recovers, crash_at=range(10)).result == "in a step: 5"


# -- Objects of other loops -----------------------------------------------------------------------------------

FOREIGN: dict[str, Any] = {}


@workflow()
async def awaits_foreign(name: str) -> Any:
    """Awaits something that is not of its loop."""
    return await FOREIGN[name]


@workflow()
async def awaits_foreign_in_group(name: str) -> Any:
    """The same, in a branch."""
    async with asyncio.TaskGroup() as group:
        group.create_task(awaits_foreign.fn(name))


class Odd:
    """Something awaitable that no asyncio loop understands."""

    def __await__(self) -> Any:
        yield "what is this?"


class WithLock:
    """A lock of the whole process, as a module might have it."""

    def __await__(self) -> Any:
        return self._take().__await__()

    async def _take(self) -> None:
        await FOREIGN["the lock"].acquire()


@pytest.mark.parametrize("of", [awaits_foreign, awaits_foreign_in_group], ids=lambda of: of.name)
@pytest.mark.parametrize("name", ["future", "odd", "lock"])
async def test_awaiting_an_object_of_another_loop_parks_the_run(of: Any, name: str) -> None:
    """Whether such an object is ready depends on the process and not on the journal."""
    lock = asyncio.Lock()
    await lock.acquire()
    waiter = asyncio.create_task(lock.acquire())
    await asyncio.sleep(0)
    FOREIGN.update({"future": asyncio.get_running_loop().create_future(), "odd": Odd(), "lock": WithLock()})
    FOREIGN["the lock"] = lock

    life = live(of, name)
    waiter.cancel()

    assert life.status == "parked"
    assert life.park is not None
    assert "another event loop" in life.park


def run_it() -> None:
    """As a library does that hides its event loop."""
    asyncio.run(work.fn(1))


def run_it_in_a_runner() -> None:
    """The same with a runner, which may be used again."""
    with asyncio.Runner() as runner:
        runner.run(work.fn(1))


def run_it_in_a_new_loop() -> None:
    """The same by hand."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(work.fn(1))
    finally:
        loop.close()


LOOPS = {"run": run_it, "Runner": run_it_in_a_runner, "new_event_loop": run_it_in_a_new_loop}


@workflow()
async def runs_a_loop(name: str) -> None:
    """Runs a loop in its loop."""
    LOOPS[name]()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_in_the_loop_is_refused(name: str) -> None:
    """asyncio refuses it too; the run is parked with what to do, and not failed."""
    life = live(runs_a_loop, name)
    gc.collect()  # What was never awaited is reported here, and not in a later test.

    assert life.status == "parked"
    assert life.park is not None
    assert "running another event loop" in life.park
    assert "do this in a step" in life.park


@workflow()
async def step_with_loop_trouble() -> int:
    """A step that has trouble with loops."""
    return await work(1)


def test_loop_error_of_a_step_is_an_error_of_the_step() -> None:
    """An error of a step that speaks of another event loop fails the run like any other error, and does not park it."""
    error = RuntimeError("Task <x> got Future <y> attached to a different loop")

    assert live(step_with_loop_trouble, outcomes={"work": [error]}).failure == f"RuntimeError: {error}"


# -- Waiting for nothing --------------------------------------------------------------------------------------


@workflow()
async def waits_for_nobody() -> None:
    """An event that no task sets."""
    await work(1)
    await asyncio.Event().wait()  # stuck here


@workflow()
async def waits_in_child() -> None:
    """A child that waits for an event that no task sets."""
    await waits_for_nobody()


@workflow()
async def waits_in_branches() -> None:
    """Two branches that wait for each other."""
    a, b = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        await a.wait()
        b.set()

    async def second() -> None:
        await b.wait()
        a.set()

    await asyncio.gather(first(), second(), work(1))  # stuck here


@workflow()
async def leaves_what_waits() -> str:
    """Returns, and a task that it left behind neither stops nor goes on."""

    async def never_ends() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.Event().wait()  # stuck here

    asyncio.create_task(never_ends())  # noqa: RUF006
    await work(1)
    return "done"


@pytest.mark.parametrize(
    "of", [waits_for_nobody, waits_in_child, waits_in_branches, leaves_what_waits], ids=lambda of: of.name
)
def test_a_workflow_that_nothing_can_move_is_parked_with_its_line(of: Any) -> None:
    """Nothing is silently stuck: the reason names the file and the line that waits."""
    life = live(of, code=Code(of, waits_for_nobody))

    assert life.status == "parked"
    assert life.park is not None
    stuck = waits_for_nobody if of is waits_in_child else of
    assert f"waits at {__file__}:{_line_of('# stuck here', after=stuck.fn)} in" in life.park


def _line_of(mark: str, *, after: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(after)
    return first + next(number for number, text in enumerate(lines) if mark in text)


def test_a_workflow_that_a_message_can_move_is_not_stuck() -> None:
    """A signal, the end of a detached run, or a timer in the far future may still come."""
    assert live(waits_for_detached).status == "waiting"
    with fed(Code(sleeps_for_ever), [created(sleeps_for_ever)]) as execution:
        assert not execution.is_parked
        (wait,) = execution.waits()
        assert wait.until_at is not None


@workflow()
async def waits_for_detached() -> str:
    """Waits for the end of another tree."""
    other = await start(sleeps_for_ever, detached=True, id="other")
    return await other.result()


@workflow()
async def sleeps_for_ever() -> str:
    """Sleeps until it is cancelled."""
    await asyncio.sleep(math.inf)
    return "woke up"


@workflow()
async def times_out_never() -> str:
    """A timeout that is infinite, and one that is far beyond all calendars."""
    async with asyncio.timeout(math.inf), asyncio.timeout(1e15):
        return f"{await work(3)}"


def test_an_infinite_timeout_is_a_timeout() -> None:
    """asyncio allows it, so does a workflow."""
    assert live(times_out_never).result == "3"


# -- Spinning -------------------------------------------------------------------------------------------------


@workflow()
async def spins() -> None:
    """Keeps itself busy for ever."""
    while True:  # noqa: ASYNC110
        await asyncio.sleep(0)


@workflow()
async def spins_in_branch() -> None:
    """One branch is busy, another one waits for a step."""
    await asyncio.gather(spins.fn(), work(1))


@pytest.mark.parametrize("of", [spins, spins_in_branch], ids=lambda of: of.name)
def test_a_workflow_that_spins_is_parked(of: Any) -> None:
    """It stops after `turns_max` turns, and asks for nothing."""
    life = live(of, turns_max=500)

    assert life.status == "parked"
    assert life.park is not None
    assert "took 500 turns of its loop without waiting for anything durable" in life.park
    assert life.asked == [[("park", life.park)]]


@workflow()
async def long_but_finite() -> int:
    """Many turns for one event, and then a step."""
    for _ in range(300):
        await asyncio.sleep(0)
    return await work(1)


def test_the_turns_are_counted_for_each_event() -> None:
    """A long way between two events is not a run-away."""
    assert live(long_but_finite, turns_max=500).result == 1


# -- as_completed ---------------------------------------------------------------------------------------------


@workflow()
async def as_completed_of_coroutines() -> list[int]:
    """Hands bare coroutines to as_completed, which puts them into a set."""
    return [await result for result in asyncio.as_completed([work(n) for n in range(8)])]


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_as_completed_of_coroutines_is_refused() -> None:
    """`asyncio.as_completed` of bare coroutines parks the run with the advice to give it tasks."""
    life = live(as_completed_of_coroutines)
    gc.collect()  # What was never awaited is reported here, and not in a later test.

    assert life.status == "parked"
    assert life.park is not None
    assert "give it tasks" in life.park


# -- Callbacks and the process --------------------------------------------------------------------------------


@workflow()
async def breaks_in_callback(kind: str) -> str:
    """A callback of the loop raises."""
    errors = {"error": ValueError("oh"), "cancel": asyncio.CancelledError(), "exit": SystemExit(3)}
    error = errors.get(kind, KeyboardInterrupt())

    def fails() -> None:
        raise error

    asyncio.get_running_loop().call_soon(fails)
    return f"{await work(2)}"


@pytest.mark.parametrize("kind", ["error", "cancel", "exit", "interrupt"])
def test_a_callback_that_raises_hurts_no_run(kind: str) -> None:
    """Neither the run nor the worker: as in asyncio, it is logged."""
    assert live(breaks_in_callback, kind).result == "2"


@workflow()
async def exits() -> None:
    """Wants the process to exit."""
    await work(1)
    raise SystemExit(3)


@workflow()
async def interrupts() -> None:
    """Raises what Ctrl-C raises."""
    await work(1)
    raise KeyboardInterrupt("no signal")


def test_a_workflow_that_exits_fails() -> None:
    """It ends its run, not its worker."""
    assert live(exits).failure == "SystemExit: 3"
    assert live(interrupts).failure == "KeyboardInterrupt: no signal"


@workflow()
async def interrupted() -> int:
    """A person presses Ctrl-C while this runs."""
    await work(1)
    if FOREIGN.pop("interrupt", False):
        press_ctrl_c()
    return await work(2)


def test_a_person_who_stops_the_process_ends_no_run() -> None:
    """The worker gets the interrupt; the run has asked for nothing, and a replay goes on as if nothing had been."""
    journal = live(interrupted).journal
    FOREIGN["interrupt"] = True
    with fed(Code(interrupted), journal[:1]) as execution:
        with keyboard(), pytest.raises(KeyboardInterrupt):
            feed(execution, journal[1])
        assert execution.outstanding() == []
        assert feed(execution, StepSucceeded(at=START_AT, call="nothing", result=plain(1)))[0].reason  # type: ignore[union-attr]
    with fed(Code(interrupted), journal[:2]) as execution:
        assert [command.call for command in execution.outstanding()] == ["work#2"]  # type: ignore[union-attr]


def test_an_event_that_is_not_waited_for_parks() -> None:
    """A timer that the code did not make contradicts it."""
    with fed(Code(interrupted), [created(interrupted)]) as execution:
        (park,) = feed(execution, TimerFired(at=START_AT, call="@timer"))

    assert "timer @timer fired" in park.reason  # type: ignore[union-attr]
