"""Every verb, decorator and option refuses what cannot work, in words, before anything is written."""

from __future__ import annotations

import asyncio
import enum
import inspect
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.model import RunStatus
from outlive.errors import InvalidArgumentError, OutliveError
from outlive.errors.run import InvalidRunIdError
from outlive.limits import Breaker, FixedWindow, Limits, RateLimit, SlidingWindow, TokenBucket, Tolerance
from outlive.testing import TestEngine
from outlive.types import Recovery, WorkerOptions
from tests.engine.support import Place, in_time

NAN, INFINITE = float("nan"), float("inf")
NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001

TEXT = [5, None, b"paid", ["paid"], object(), "", "a\0b", "\ud800", "x" * 20_000]
"""What is not text."""
OPTIONAL_TEXT = [bad for bad in TEXT if bad is not None]
SOME_TEXT = [bad for bad in OPTIONAL_TEXT if bad != ""]
SECONDS = ["soon", True, NAN, INFINITE, -1, 0, 1e12, [5], timedelta(0)]
WHOLE = ["5", True, 1.5, NAN, 0, -1, [1]]
FLAG = ["no", 1, None]
TAGS = [["a"], "a", {"a": 5}, {5: "a"}, {"a": None}, {"a": "b\0"}, {"\ud800": "a"}, {"": "a"}]
RUN_ID = [5, "", "a b", "a/b", "\0", "\ud800", "x" * 129, b"run-1", ["run-1"]]
CLASSES = ["x", ValueError, (ValueError, "x"), 5, [5]]
OBJECT = [3, "x", {"attempts": 3}, ["x"]]
TYPES = [["paid"], "paid", {5: int}, {"paid": "Payment"}, {"": int}, {"paid": 5}]

Bad = Sequence[Any]


async def plain() -> None:
    """A function of a module."""


def gives(given: object) -> int:
    """A plain function of one argument."""
    return 1


@outlive.step
async def door_step(thing: int) -> int:
    return thing


@outlive.workflow
async def door_workflow(thing: int = 1) -> int:
    return thing


class Light(enum.Enum):
    ON = "on"
    OFF = "off"


class Dial(enum.StrEnum):
    PAID = "paid"


class Reason(str, enum.Enum):  # noqa: UP042
    LATE = "late"


# -- Verbs -------------------------------------------------------------------------------------------------------------

VERBS: dict[str, tuple[Callable[[Any, Any], Any], Bad]] = {
    "start id": (lambda e, bad: e.start(door_workflow, id=bad), RUN_ID),
    "start timeout": (lambda e, bad: e.start(door_workflow, timeout=bad), SECONDS),
    "start tags": (lambda e, bad: e.start(door_workflow, tags=bad), TAGS),
    "start on_conflict": (lambda e, bad: e.start(door_workflow, on_conflict=bad), ["x", 5, None, ["attach"]]),
    "start workflow": (lambda e, bad: e.start(bad), [plain, None]),
    "get run_id": (lambda e, bad: e.get(bad), TEXT),
    "get_batch batch_id": (lambda e, bad: e.batches.get(bad), TEXT),
    "start_batch work": (lambda e, bad: e.start_batch(bad, [1]), [plain, 5, None]),
    "start_batch rows": (lambda e, bad: e.start_batch(door_step, bad), [5, None, "abc"]),
    "start_batch concurrency": (lambda e, bad: e.start_batch(door_step, [1], concurrency=bad), WHOLE),
    "start_batch id": (lambda e, bad: e.start_batch(door_step, [1], id=bad), RUN_ID),
    "start_batch tags": (lambda e, bad: e.start_batch(door_step, [1], tags=bad), TAGS),
    "start_batch tolerate": (lambda e, bad: e.start_batch(door_step, [1], tolerate=bad), OBJECT),
    "signal run_id": (lambda e, bad: e.signal(bad, "paid"), TEXT),
    "signal name": (lambda e, bad: e.signal("r", bad), TEXT),
    "signal key": (lambda e, bad: e.signal("r", "paid", key=bad), OPTIONAL_TEXT),
    "signal start": (lambda e, bad: e.signal("r", "paid", start=bad), [door_workflow, "x", ()]),
    "approve run_id": (lambda e, bad: e.approvals.approve(bad, "ok", by="ann"), TEXT),
    "approve name": (lambda e, bad: e.approvals.approve("r", bad, by="ann"), TEXT),
    "approve by": (lambda e, bad: e.approvals.approve("r", "ok", by=bad), TEXT),
    "approve comment": (lambda e, bad: e.approvals.approve("r", "ok", by="ann", comment=bad), SOME_TEXT),
    "approve request": (lambda e, bad: e.approvals.approve("r", "ok", by="ann", request=bad), OPTIONAL_TEXT),
    "reject by": (lambda e, bad: e.approvals.reject("r", "ok", by=bad), TEXT),
    "approvals run_id": (lambda e, bad: e.approvals.list(bad), OPTIONAL_TEXT),
    "approvals assignee": (lambda e, bad: e.approvals.list(assignee=bad), OPTIONAL_TEXT),
    "approvals limit": (lambda e, bad: e.approvals.list(limit=bad), WHOLE),
    "approvals after": (lambda e, bad: e.approvals.list(after=bad), ["run-1", 5]),
    "approvals waiting_for": (lambda e, bad: e.approvals.list(waiting_for=bad), ["paid"]),
    "cancel run_id": (lambda e, bad: e.cancel(bad), TEXT),
    "cancel reason": (lambda e, bad: e.cancel("r", reason=bad), [None, *SOME_TEXT]),
    "resume run_id": (lambda e, bad: e.resume(bad), TEXT),
    "skip_step run_id": (lambda e, bad: e.skip_step(bad), TEXT),
    "skip_step call": (lambda e, bad: e.skip_step("r", bad), OPTIONAL_TEXT),
    "history run_id": (lambda e, bad: e.history(bad), TEXT),
    "export run_id": (lambda e, bad: e.export(bad), TEXT),
    "list_stuck limit": (lambda e, bad: e.list_stuck(limit=bad), WHOLE),
    "list status": (lambda e, bad: e.list(status=bad), ["x", 5, ["x"], [], ("failed", 5), {"failed": 1}]),
    "list workflow": (lambda e, bad: e.list(workflow=bad), OPTIONAL_TEXT),
    "list tags": (lambda e, bad: e.list(tags=bad), TAGS),
    "list roots_only": (lambda e, bad: e.list(roots_only=bad), FLAG),
    "list limit": (lambda e, bad: e.list(limit=bad), WHOLE),
    "list after": (lambda e, bad: e.list(after=bad), ["run-1", "å", "WzFd", 5, ""]),
    "list order": (lambda e, bad: e.list(order=bad), ["name", 5, None]),
    "list id_prefix": (lambda e, bad: e.list(id_prefix=bad), SOME_TEXT),
    "list since": (lambda e, bad: e.list(since=bad), ["2030", 5, NAIVE]),
    "list until": (lambda e, bad: e.list(until=bad), ["2030", 5, NAIVE]),
    "list waiting_for": (lambda e, bad: e.list(waiting_for=bad), OPTIONAL_TEXT),
    "list error": (lambda e, bad: e.list(error=bad), [ValueError, *OPTIONAL_TEXT]),
    "count status": (lambda e, bad: e.count(status=bad), ["x", 5, []]),
    "count limit": (lambda e, bad: e.count(limit=bad), WHOLE),
    "result timeout": (
        lambda e, bad: e.get("r").result(timeout=bad),
        [bad for bad in SECONDS if bad not in (0, timedelta(0))],
    ),
    "handle signal name": (lambda e, bad: e.get("r").signal(bad), TEXT),
    "handle cancel reason": (lambda e, bad: e.get("r").cancel(reason=bad), [None, *SOME_TEXT]),
    "handle approve by": (lambda e, bad: e.get("r").approve("ok", by=bad), TEXT),
    "batch cancel reason": (lambda e, bad: e.batches.get("r").cancel(reason=bad), [None, *SOME_TEXT]),
    "batch result timeout": (lambda e, bad: e.batches.get("r").result(timeout=bad), ["soon", True, NAN, -1]),
}


async def called(call: Callable[[Any], Any], value: Any) -> None:
    """Call something that may have to be awaited."""
    done = call(value)
    if inspect.isawaitable(done):
        await in_time(done)


async def refusals(call: Callable[[Any], Any], bad: Bad, name: str) -> None:
    """Each of the bad values is refused with an error that says what was given to what, and what to give."""
    for value in bad:
        with pytest.raises((TypeError, ValueError)) as caught:
            await called(call, value)
        error = caught.value
        assert isinstance(error, OutliveError), f"{value!r} was refused by {error!r}"
        assert "give" in str(error) or "use" in str(error), str(error)
        if isinstance(error, InvalidArgumentError):
            assert name in error.name.split("."), f"{value!r}: {error}"
            assert len(str(error)) < 500


@pytest.fixture
async def memory() -> Any:
    """A running engine in memory."""
    async with TestEngine() as engine:
        yield engine


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_refuses_what_cannot_work(memory: Any, verb: str) -> None:
    """Before it writes anything: the store can still be listed, and is empty."""
    call, bad = VERBS[verb]

    await refusals(lambda value: call(memory, value), bad, verb.rsplit(maxsplit=1)[-1])

    assert [] == await memory.list()


@pytest.mark.parametrize("verb", ["signal name", "start tags", "cancel reason", "list workflow"])
async def test_all_stores_refuse_the_same_values(place: Place, verb: str) -> None:
    """A value that one store could keep and another could not is refused by every store."""
    call, bad = VERBS[verb]
    async with place.engine() as engine:
        await refusals(lambda value: call(engine, value), bad, verb.rsplit(maxsplit=1)[-1])

        assert [] == await engine.list()


def test_sync_verbs_are_the_same_verbs() -> None:
    """`engine.sync` refuses the same in the same words."""
    with outlive.Engine("memory:").sync as engine:
        wrong: Any
        for wrong in (5, "", "\0"):
            with pytest.raises(InvalidArgumentError, match=r"engine\.signal: name="):
                engine.signal("r", wrong)
        with pytest.raises(InvalidArgumentError, match=r"engine\.start: timeout='soon'"):
            engine.start(door_workflow, timeout="soon")


# -- Inside a workflow -------------------------------------------------------------------------------------------------

INSIDE: dict[str, tuple[Callable[[Any], Any], Bad]] = {
    "wait_for_signal name": (outlive.wait_for_signal, TEXT),
    "wait_for_signal kind": (lambda bad: outlive.wait_for_signal("paid", bad), ["Payment", 5, {"a": int}]),
    "wait_for_approval name": (outlive.wait_for_approval, [*TEXT, "a b"]),
    "wait_for_approval title": (lambda bad: outlive.wait_for_approval("ok", title=bad), [None, *SOME_TEXT]),
    "wait_for_approval assignees": (lambda bad: outlive.wait_for_approval("ok", assignees=bad), ["ann", 5, [5], [""]]),
    "wait_for_approval deadline": (lambda bad: outlive.wait_for_approval("ok", deadline=bad), [NAIVE, *SECONDS]),
    "wait_for_approval form": (lambda bad: outlive.wait_for_approval("ok", form=bad), ["Form", 5]),
    "wait_for_approval notify": (lambda bad: outlive.wait_for_approval("ok", notify=bad), [plain, "x", 5]),
    "start id": (lambda bad: outlive.start(door_workflow, detached=True, id=bad), RUN_ID),
    "start tags": (lambda bad: outlive.start(door_workflow, detached=True, tags=bad), TAGS),
    "start timeout": (lambda bad: outlive.start(door_workflow, timeout=bad), SECONDS),
    "start detached": (lambda bad: outlive.start(door_workflow, detached=bad), FLAG),
    "start workflow": (outlive.start, [plain, "x", None]),
    "patched name": (outlive.patched, TEXT),
    "continue_as_new workflow": (lambda bad: outlive.continue_as_new(workflow=bad), [plain, "x"]),
    "map work": (lambda bad: outlive.map(bad, [1]), [plain, "x", None]),
    "map items": (lambda bad: outlive.map(door_step, bad), [5, None, "abc"]),
    "map concurrency": (lambda bad: outlive.map(door_step, [1], concurrency=bad), WHOLE),
    "map tolerate": (lambda bad: outlive.map(door_step, [1], tolerate=bad), OBJECT),
    "saga undo_timeout": (lambda bad: outlive.saga(undo_timeout=bad), SECONDS),
    "sleep_until when": (outlive.sleep_until, [NAIVE, 5, "tomorrow", None]),
    "options timeout": (lambda bad: door_step.options(timeout=bad), SECONDS),
    "options retry": (lambda bad: door_step.options(retry=bad), OBJECT),
    "options undo": (lambda bad: door_step.options(undo=bad), [plain, "x", 5]),
}  # fmt: skip


@outlive.workflow
async def misuses(case: str) -> str:
    """Ends well when everything was refused."""
    call, bad = INSIDE[case]
    await refusals(call, bad, case.rsplit(maxsplit=1)[-1])
    return "refused"


@pytest.mark.parametrize("case", INSIDE)
async def test_a_workflow_is_refused_what_cannot_work(memory: Any, case: str) -> None:
    """The call raises in the workflow, and leaves nothing in its journal that could not be read."""
    run = await memory.start(misuses, case)

    assert "refused" == await in_time(run.result())
    assert 1 == len(await memory.list())


# -- Definitions and options -------------------------------------------------------------------------------------------


async def streams() -> Any:
    """An async generator."""
    yield 1


def yields() -> Any:
    """A generator."""
    yield 1


class Thing:
    """Not a function."""


def lights(**options: Any) -> Any:
    """A machine."""
    return outlive.Machine(
        **{"name": "door.lights", "states": Light, "start": Light.ON, "exits": {Light.OFF}, **options}
    )


def split(**options: Any) -> Any:
    """A state with branches."""
    lights().split(Light.ON, **{"branches": [gives], "join": outlive.machine.All(then=Light.OFF), **options})


def batch(**options: Any) -> Any:
    """A state with items."""
    lights().batch(Light.ON, load=gives, process=gives, finish=gives, **options)


def stream(**options: Any) -> Any:
    """A state with windows."""
    lights().stream(Light.ON, source=streams, process=gives, flush=gives, then=Light.OFF, **options)


LIMIT = RateLimit("door", TokenBucket(1))
NAME = [*OPTIONAL_TEXT, "1st", "a b", "a/b"]

DEFINITIONS: dict[str, tuple[Callable[[Any], Any], Bad]] = {
    "step fn": (outlive.step, [streams, yields, Thing, 5, "x"]),
    "step name": (lambda bad: outlive.step(name=bad)(plain), NAME),
    "step retry": (lambda bad: outlive.step(retry=bad)(plain), OBJECT),
    "step timeout": (lambda bad: outlive.step(timeout=bad)(plain), SECONDS),
    "step raises": (lambda bad: outlive.step(raises=bad)(plain), CLASSES),
    "step undo": (lambda bad: outlive.step(undo=bad)(plain), ["x", 5, Thing, streams]),
    "step once": (lambda bad: outlive.step(once=bad)(plain), FLAG),
    "step process": (lambda bad: outlive.step(process=bad)(plain), FLAG),
    "step transaction": (lambda bad: outlive.step(transaction=bad)(plain), FLAG),
    "step breaker": (lambda bad: outlive.step(breaker=bad)(plain), OBJECT),
    "step limit": (lambda bad: outlive.step(limit=bad)(plain), [*OBJECT, TokenBucket(1)]),
    "step cost": (lambda bad: outlive.step(limit=LIMIT, cost=bad)(plain), ["1", 1.5, True, -1]),
    "workflow fn": (outlive.workflow, [streams, yields, Thing, 5, "x", gives]),
    "workflow name": (lambda bad: outlive.workflow(name=bad)(plain), NAME),
    "workflow version": (lambda bad: outlive.workflow(version=bad)(plain), WHOLE),
    "workflow timeout": (lambda bad: outlive.workflow(timeout=bad)(plain), SECONDS),
    "workflow signals": (lambda bad: outlive.workflow(signals=bad)(plain), TYPES),
    "workflow approvals": (lambda bad: outlive.workflow(approvals=bad)(plain), TYPES),
    "workflow raises": (lambda bad: outlive.workflow(raises=bad)(plain), CLASSES),
    "workflow resumable": (lambda bad: outlive.workflow(resumable=bad)(plain), FLAG),
    "workflow strict_arguments": (lambda bad: outlive.workflow(strict_arguments=bad)(plain), FLAG),
    "Machine strict_arguments": (lambda bad: lights(strict_arguments=bad), FLAG),
    "Machine name": (lambda bad: lights(name=bad), [None, *NAME]),
    "Machine version": (lambda bad: lights(version=bad), WHOLE),
    "Machine timeout": (lambda bad: lights(timeout=bad), SECONDS),
    "Machine undo_timeout": (lambda bad: lights(undo_timeout=bad), SECONDS),
    "Machine snapshot_after": (lambda bad: lights(snapshot_after=bad), WHOLE),
    "Machine signals": (lambda bad: lights(signals=bad), TYPES),
    "Machine approvals": (lambda bad: lights(approvals=bad), TYPES),
    "Machine raises": (lambda bad: lights(raises=bad), CLASSES),
    "Machine resumable": (lambda bad: lights(resumable=bad), FLAG),
    "Machine data": (lambda bad: lights(data=bad), ["OrderData", 5, {"a": int}]),
    "state retry": (lambda bad: lights().state(Light.ON, retry=bad)(gives), OBJECT),
    "state timeout": (lambda bad: lights().state(Light.ON, timeout=bad)(gives), SECONDS),
    "state raises": (lambda bad: lights().state(Light.ON, raises=bad)(gives), CLASSES),
    "state once": (lambda bad: lights().state(Light.ON, once=bad)(gives), FLAG),
    "state transaction": (lambda bad: lights().state(Light.ON, transaction=bad)(gives), FLAG),
    "poll retry": (lambda bad: lights().poll(Light.ON, retry=bad)(gives), OBJECT),
    "stepped timeout": (lambda bad: lights().stepped(Light.ON, timeout=bad)(gives), SECONDS),
    "split timeout": (lambda bad: split(timeout=bad), SECONDS),
    "split concurrency": (lambda bad: split(concurrency=bad), WHOLE),
    "split branches": (lambda bad: split(branches=bad), [5, "abc", None]),
    "batch concurrency": (lambda bad: batch(concurrency=bad), WHOLE),
    "batch item_timeout": (lambda bad: batch(item_timeout=bad), SECONDS),
    "stream items": (lambda bad: stream(items=bad), WHOLE),
    "stream seconds": (lambda bad: stream(seconds=bad), SECONDS),
    "stream tolerate": (lambda bad: stream(tolerate=bad), ["some", True, -1, 1.5]),
    "resource name": (lambda bad: lights().resource(bad, gives), [5, "", "a b", None]),
    "Quorum count": (outlive.machine.Quorum, WHOLE),
    "Percentage share": (outlive.machine.Percentage, ["1", True, NAN, INFINITE]),
    "Pending delay": (outlive.machine.Pending, ["soon", True, NAN, INFINITE, -1]),
    "Retry attempts": (lambda bad: Retry(attempts=bad), WHOLE),
    "Retry first": (lambda bad: Retry(first=bad), ["soon", True, NAN, INFINITE, -1]),
    "Retry factor": (lambda bad: Retry(factor=bad), ["2", True, NAN, INFINITE, 0.5]),
    "Retry cap": (lambda bad: Retry(cap=bad), ["soon", True, NAN, INFINITE, -1]),
    "Retry jitter": (lambda bad: Retry(jitter=bad), ["0.1", True, NAN, 1.5, -1]),
    "Retry on": (lambda bad: Retry(on=bad), CLASSES),
    **{
        f"Limits {name}": (lambda bad, name=name: Limits(**{name: bad}), WHOLE)  # type: ignore[misc]
        for name in Limits.__dataclass_fields__
    },
    "Recovery enabled": (lambda bad: Recovery(enabled=bad), FLAG),
    "Recovery auto_resume": (lambda bad: Recovery(auto_resume=bad), FLAG),
    "Recovery orphans_at_start_max": (lambda bad: Recovery(orphans_at_start_max=bad), WHOLE),
    "Recovery orphans_per_check_max": (lambda bad: Recovery(orphans_per_check_max=bad), WHOLE),
    "Recovery check_seconds": (lambda bad: Recovery(check_seconds=bad), SECONDS),
    "Recovery stale_after": (lambda bad: Recovery(stale_after=bad), ["soon", True, NAN, INFINITE, -1]),
    "Recovery resume_age_max": (lambda bad: Recovery(resume_age_max=bad), SECONDS),
    "Tolerance failures": (lambda bad: Tolerance(failures=bad), ["5", True, 1.5, NAN, -1]),
    "Tolerance ratio": (lambda bad: Tolerance(ratio=bad), ["1", True, NAN, 2, -1]),
    "Breaker name": (Breaker, TEXT),
    "Breaker failures": (lambda bad: Breaker("b", failures=bad), WHOLE),
    "Breaker reset": (lambda bad: Breaker("b", reset=bad), SECONDS),
    "Breaker trials": (lambda bad: Breaker("b", trials=bad), WHOLE),
    "Breaker on": (lambda bad: Breaker("b", on=bad), CLASSES),
    "Breaker shared": (lambda bad: Breaker("b", shared=bad), FLAG),
    "Breaker when_open": (lambda bad: Breaker("b", when_open=bad), ["x", 5, None]),
    "RateLimit name": (lambda bad: RateLimit(bad, TokenBucket(1)), TEXT),
    "RateLimit tiers": (lambda bad: RateLimit("r", bad), [5, "x", None, 100.0]),
    "RateLimit shared": (lambda bad: RateLimit("r", TokenBucket(1), shared=bad), FLAG),
    "RateLimit when_full": (lambda bad: RateLimit("r", TokenBucket(1), when_full=bad), ["x", 5, None]),
    "TokenBucket rate": (TokenBucket, ["soon", True, NAN, INFINITE, 0, -1]),
    "TokenBucket burst": (lambda bad: TokenBucket(1, burst=bad), ["5", True, 1.5, -1]),
    "FixedWindow limit": (lambda bad: FixedWindow(bad, 60), WHOLE),
    "FixedWindow seconds": (lambda bad: FixedWindow(1, bad), SECONDS),
    "SlidingWindow limit": (lambda bad: SlidingWindow(bad, 60), WHOLE),
    "SlidingWindow seconds": (lambda bad: SlidingWindow(1, bad), SECONDS),
    "Engine url": (outlive.Engine, [5, None, "orders.db", "mysql://x"]),
    "Engine worker": (lambda bad: outlive.Engine("memory:", worker=bad), FLAG),
    "WorkerOptions name": (lambda bad: WorkerOptions(name=bad), [*OPTIONAL_TEXT, "  "]),
    "Engine lease": (lambda bad: outlive.Engine("memory:", worker=WorkerOptions(lease=bad)), [5, "x", None]),
    "WorkerOptions lease_seconds": (lambda bad: WorkerOptions(lease_seconds=bad), [*SECONDS, 0.5]),
    "Engine poll_seconds": (lambda bad: outlive.Engine("memory:", poll_seconds=bad), SECONDS),
    "WorkerOptions grace_seconds": (lambda bad: WorkerOptions(grace_seconds=bad), ["soon", True, NAN, INFINITE, -1]),
    "Engine limits": (lambda bad: outlive.Engine("memory:", limits=bad), [*OBJECT, Limits]),
    "Engine recovery": (lambda bad: outlive.Engine("memory:", recovery=bad), [*OBJECT, Recovery]),
    "Engine codecs": (lambda bad: outlive.Engine("memory:", codecs=bad), [5, "zlib", ["zlib"]]),
    "Engine redact": (lambda bad: outlive.Engine("memory:", redact=bad), [5, "password", [5], [""]]),
    "WorkerOptions tune": (lambda bad: WorkerOptions(tune=bad), FLAG),
    "WorkerOptions exit_when_stalled": (lambda bad: WorkerOptions(exit_when_stalled=bad), ["no", 1]),
}  # fmt: skip


@pytest.mark.parametrize("case", DEFINITIONS)
async def test_a_definition_or_an_option_that_cannot_work_is_refused(case: str) -> None:
    """Where it is written, and not when a run comes by."""
    call, bad = DEFINITIONS[case]

    await refusals(call, bad, case.rsplit(maxsplit=1)[-1])


# -- What is accepted --------------------------------------------------------------------------------------------------


@outlive.workflow
async def door_listens() -> list[Any]:
    return [await outlive.wait_for_signal(Dial.PAID), await outlive.wait_for_signal(Reason.LATE)]


async def test_a_member_of_an_enum_stands_for_its_text(memory: Any) -> None:
    """In names, ids, tags and reasons alike."""
    run = await memory.start(door_listens, id=Dial.PAID, tags={Dial.PAID: Reason.LATE})
    await run.signal("paid", 1)
    await run.signal(Reason.LATE, 2, key=Dial.PAID)

    assert [1, 2] == await in_time(run.result())
    assert "paid" == run.id
    assert {"paid": "late"} == (await run.info()).tags
    assert [run.id] == [
        each.id for each in await memory.list(tags={Dial.PAID: Reason.LATE}, status=RunStatus.SUCCEEDED)
    ]


@outlive.workflow
async def door_sleeps() -> None:
    await asyncio.sleep(3600)


async def test_a_span_may_be_a_timedelta(memory: Any) -> None:
    """Wherever seconds are wanted."""
    run = await memory.start(door_sleeps, timeout=timedelta(minutes=1))

    with pytest.raises(outlive.errors.RunTimedOutError):
        await in_time(run.result(timeout=timedelta(hours=2)))
    assert 60 == door_step.options(timeout=timedelta(minutes=1)).call_options.timeout_seconds


async def test_a_handle_in_place_of_an_id_is_refused(memory: Any) -> None:
    """A handle in place of a run id is refused with the advice to give its id."""
    run = await memory.start(door_workflow, id="run-1")

    with pytest.raises(InvalidArgumentError, match=r"engine\.signal: run_id=<run run-1> cannot work: .*run\.id"):
        await memory.signal(run, "paid")
    with pytest.raises(InvalidRunIdError, match=r"'a b' cannot be a run id: .*for example"):
        await memory.start(door_workflow, id="a b")
