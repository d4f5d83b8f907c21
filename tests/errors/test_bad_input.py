"""Bad input: refused where it comes from, in words that say what to do; what cannot be refused is parked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import outlive
from outlive.errors import ArgumentTypeError, ConfigurationError, DefinitionError, UnserialisableError
from outlive.errors.program import DuplicateDefinitionError, LocalDefinitionError, UnknownWorkflowError
from outlive.limits import Limits
from outlive.types import WorkerOptions
from tests.engine.support import Place, in_time, note, parks, stage

pytestmark = pytest.mark.any_store


@dataclass
class Crate:
    label: str
    content: Any = None
    locks: list[Any] = field(default_factory=list)


@outlive.step
async def take(thing: Any) -> None:
    stage.call(thing)


@outlive.step
async def give() -> Any:
    stage.call("given")
    return {"rows": [1, threading.Lock()]}


@outlive.workflow
async def bad_nothing(thing: Any) -> Any:
    return thing


@outlive.workflow
async def bad_typed(count: int, crate: Crate | None = None) -> int:
    return count


@outlive.workflow
async def bad_step_argument() -> None:
    await take({"good": 1, "bad": [threading.Lock()]})


@outlive.workflow
async def bad_step_result() -> str:
    try:
        await give()
    except UnserialisableError as error:
        return f"{error.path} {error.type_name}"
    return "went on"


@outlive.workflow
async def bad_result() -> Any:
    await note("worked")
    return {"deep": [{"lock": threading.Lock()}]}


# -- Values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thing", "path", "type_name"),
    [
        (threading.Lock(), "$", "lock"),
        ({"a": [1, {2: threading.Lock()}]}, "$.a[1][2]", "lock"),
        ([Crate("x")], "$[0]", "Crate"),
        ({"s": "\ud800"}, "$.s", "str"),
    ],
)
async def test_an_argument_that_cannot_be_stored_is_named(
    engine: outlive.Engine, thing: Any, path: str, type_name: str
) -> None:
    """The error has the argument, the path into it and the type; nothing was started."""
    with pytest.raises(UnserialisableError, match="argument 1 of bad_nothing cannot be stored") as caught:
        await engine.start(bad_nothing, thing, id="run-1")

    assert (path, type_name) == (caught.value.path, caught.value.type_name)
    assert [] == await engine.list()


async def test_an_argument_of_another_type_is_refused(engine: outlive.Engine) -> None:
    """A start refuses an argument that would come back with another type or has no stored form."""
    wrong: Any = "seven"
    with pytest.raises(UnserialisableError, match="argument 1 of bad_typed"):
        await engine.start(bad_typed, wrong)
    with pytest.raises(UnserialisableError, match=r"at \$\.locks\[0\], lock"):
        await engine.start(bad_typed, 1, Crate("x", locks=[threading.Lock()]))


async def test_arguments_that_do_not_fit_the_signature_are_refused(engine: outlive.Engine) -> None:
    """A start with too many, missing or unknown arguments raises the TypeError that a plain call would raise.
    [FE-A5]
    """
    with pytest.raises(TypeError, match="too many positional"):
        await engine.start(bad_nothing, 1, 2)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError, match="missing a required argument"):
        await engine.start(bad_nothing)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError, match="unexpected keyword"):
        bad_nothing.bind(1, other=2)  # type: ignore[call-arg]


async def test_an_argument_of_a_step_that_cannot_be_stored_fails_the_call(engine: outlive.Engine) -> None:
    """The step never runs."""
    run = await engine.start(bad_step_argument)

    with pytest.raises(outlive.errors.RunFailedError, match=r"argument 1 of take cannot be stored: at \$\.bad\[0\]"):
        await in_time(run.result())
    assert [] == stage.calls


async def test_a_result_of_a_step_that_cannot_be_stored_fails_the_step(engine: outlive.Engine) -> None:
    """Its workflow gets the error with path and type, after one attempt."""
    run = await engine.start(bad_step_result)

    assert "$.rows[1] lock" == await in_time(run.result())
    assert ["given"] == stage.calls


async def test_a_result_of_a_run_that_cannot_be_stored_parks_it(engine: outlive.Engine) -> None:
    """The work of the run is not lost: code that returns something else can end it."""
    run = await engine.start(bad_result)

    reason = await parks(run)
    assert "result of workflow bad_result cannot be stored: at $.deep[0].lock, lock" in reason
    assert ["worked"] == stage.calls


# -- Definitions -------------------------------------------------------------------------------------------------------


async def some_function() -> None:
    """A function."""


async def another_function() -> None:
    """Another one."""


def sync_function() -> None:
    """Not a workflow."""


@pytest.mark.parametrize("kind", ["step", "workflow"])
def test_two_functions_cannot_have_one_name(kind: str) -> None:
    """The error says where both are; the same function again is not a second one."""
    define = getattr(outlive, kind)
    define(name=f"bad_double_{kind}")(some_function)
    define(name=f"bad_double_{kind}")(some_function)

    with pytest.raises(DuplicateDefinitionError) as caught:
        define(name=f"bad_double_{kind}")(another_function)
    assert str(caught.value).count("test_bad_input.py:") == 2
    assert f'@outlive.{kind}(name="...")' in str(caught.value)


@pytest.mark.parametrize("kind", ["step", "workflow"])
def test_a_local_function_cannot_be_defined(kind: str) -> None:
    """A lambda or a function inside a function is refused, because a restarted process could not find it by name."""

    async def local() -> None:
        """Local."""

    for wrong in (local, lambda: None):
        with pytest.raises(LocalDefinitionError, match="define it at the top level of a module"):
            getattr(outlive, kind)(wrong)


@pytest.mark.parametrize(
    ("define", "match"),
    [
        (lambda: outlive.workflow(sync_function), "must be an async function"),  # type: ignore[arg-type]
        (lambda: outlive.workflow(version=0)(some_function), "version=0"),
        (lambda: outlive.workflow(name="no spaces, please")(some_function), "use letters, digits"),
        (lambda: outlive.step(name="1st")(some_function), "name='1st' cannot work"),
        (lambda: outlive.step(timeout=-1)(some_function), "timeout=-1"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(define: Any, match: str) -> None:
    """When the module is imported, not when the workflow is needed."""
    with pytest.raises(DefinitionError, match=match):
        define()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: WorkerOptions(lease_seconds=0.5), "lease_seconds=0.5 .*too short"),
        (lambda: outlive.Engine("memory:", poll_seconds=0), "poll_seconds"),
        (lambda: WorkerOptions(grace_seconds=-1), "grace_seconds"),
    ],
)
def test_an_engine_that_cannot_work_is_refused(make: Callable[[], object], match: str) -> None:
    """Before it does anything."""
    with pytest.raises(ConfigurationError, match=match):
        make()


async def test_only_workflows_are_started(engine: outlive.Engine) -> None:
    """A plain function is refused in words; a step is a run of its own. A text names a flow or, in a message, a
    workflow."""
    with pytest.raises(TypeError, match="is not a workflow"):
        await engine.signal("run-1", "go", start=(some_function, 1))
    with pytest.raises(UnknownWorkflowError, match="bad_unknown"):
        await engine.signal("run-1", "go", start=("bad_unknown", {}))
    with pytest.raises(TypeError, match="is not a workflow"):
        await engine.start(some_function, 1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"engine\.start: arguments=1"):
        await engine.start("bad_nothing", 1)  # type: ignore[call-overload]
    with pytest.raises(ArgumentTypeError, match="give the arguments of bad_nothing as one value"):
        await engine.start("bad_nothing", {}, {})  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="give all of them there"):
        await engine.start(bad_nothing.bind(1), 2)


# -- What a workflow may not await -------------------------------------------------------------------------------------


class Garbage:
    def __await__(self) -> Any:
        yield 42


async def not_durable(kind: str) -> None:
    """Await something that no journal can bring back."""
    loop = asyncio.get_running_loop()
    match kind:
        case "thread":
            await asyncio.to_thread(print)
        case "executor":
            await loop.run_in_executor(None, print)
        case "socket":
            await asyncio.open_connection("127.0.0.1", 1)
        case "process":
            await asyncio.create_subprocess_exec("true")
        case "future":
            await stage.values["future"]
        case "garbage":
            await Garbage()
        case "event":
            await asyncio.Event().wait()
        case _:
            while True:  # noqa: ASYNC110
                await asyncio.sleep(0)


@outlive.workflow
async def bad_await(kind: str) -> None:
    await note("before")
    await not_durable(kind)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("thread", "do this in a step"),
        ("executor", "do this in a step"),
        ("socket", "do this in a step"),
        ("process", "do this in a step"),
        ("future", "do this in a step"),
        ("garbage", "do this in a step"),
        ("event", "no journal event can bring"),
        ("spin", "turns_per_event_max"),
    ],
)
async def test_awaiting_what_is_not_durable_parks_the_run(place: Place, kind: str, expected: str) -> None:
    """It is not failed, so corrected code can go on with it; and the others do not notice."""
    async with place.engine(limits=Limits(turns_per_event_max=1_000)) as engine:
        stage.values["future"] = asyncio.get_running_loop().create_future()
        run = await engine.start(bad_await, kind)
        other = await engine.start(bad_nothing, 7)

        assert expected in await parks(run)
        assert 7 == await in_time(other.result())
        assert await run.status() == "parked"
    assert ["before"] == stage.calls
