"""Runs the tests inside a flow's document: on a `TestEngine`, with steps mocked by name, and time that skips.

What is not mocked (`outlive._features.flows.run.mocking`) runs as it does in production.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from outlive._features.flows.document.model import Case, Document, seconds_of
from outlive._features.flows.flow import FlowWorkflow
from outlive._features.flows.run.mocking import with_mocks
from outlive._kernel.client.handle import RunHandle
from outlive._kernel.define.registry import REGISTRY
from outlive._kernel.journal.event import StepSucceeded
from outlive._kernel.model.instant import microseconds_of
from outlive._kernel.model.worker import WorkerOptions
from outlive.errors import OutliveError, RunFailedError, RunTimedOutError, StandstillError
from outlive.testing.engine import TestEngine
from outlive.testing.skip_clock import SkipClock

TURNS_MAX = 10_000
"""How often time skips in one test: a flow that polls without end must not hang it."""


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one test went."""

    name: str
    problems: tuple[str, ...] = ()
    """The differences from the expectation, a sentence each; empty if the case passed."""
    expected: Any = UNSET
    output: Any = UNSET
    """The output of the run; unset if it failed."""
    error: str = ""
    """The error with which the run failed."""
    error_type: str = ""

    @property
    def passed(self) -> bool:
        """Whether everything is as expected."""
        return not self.problems


async def run_case(document: Document, case: Case, *, beside: Sequence[Document] = ()) -> CaseResult:
    """Run one test of a document; it may call the flows of the documents `beside` it."""
    try:
        flow = FlowWorkflow(with_mocks(document, case.mocks))
        flow.check()
        return await _run(flow, case, [FlowWorkflow(replace(each, tests=[], triggers=[])) for each in beside])
    except OutliveError as error:
        return CaseResult(name=case.name, problems=(str(error),))


async def _run(flow: FlowWorkflow, case: Case, beside: Sequence[FlowWorkflow]) -> CaseResult:
    start_at = None if case.now is None else microseconds_of(datetime.fromisoformat(case.now))
    clock = SkipClock() if start_at is None else SkipClock(start_at=start_at)
    registry = REGISTRY.with_own_flows()
    flows = [*beside, flow]
    registry.set_flows([each.spec for each in flows], {each.name: each.version for each in flows})
    async with TestEngine(clock=clock, _registry=registry, worker=WorkerOptions(flows=False)) as engine:
        began_at = engine.now()
        run = await engine.start(flow.bind(case.input, vars=case.vars or None, overrides=case.overrides or None))
        world = World(engine, run, case, began_at)
        output: Any = UNSET
        error = error_type = ""
        try:
            await world.play()
            output = await run.result(timeout=0)
        except RunFailedError as failed:
            error, error_type = failed.failure.message, failed.failure.error
        except (RunTimedOutError, StandstillError) as failed:
            error, error_type = str(failed), type(failed).__name__
        results = await _results(engine, run)
    problems = [*_compared(case, output, error, error_type), *_compared_steps(case, results), *world.unused()]
    expected = case.output if case.output is not UNSET else UNSET
    return CaseResult(
        name=case.name,
        problems=tuple(problems),
        expected=expected,
        output=output,
        error=error,
        error_type=error_type,
    )


class World:
    """The world around the run: the signals and decisions of the test, each at its time."""

    def __init__(self, engine: TestEngine, run: RunHandle[Any], case: Case, began_at: datetime) -> None:
        self._engine, self._run, self._began_at = engine, run, began_at
        self._signals = sorted(case.signals, key=lambda signal: _after(signal.after))
        self._decisions = dict(case.approvals)

    async def play(self) -> None:
        """Let time pass until the run has ended, or nothing moves any more."""
        for _ in range(TURNS_MAX):
            await self._engine.settle()
            if await self._act():
                continue
            if await self._has_ended():
                return
            before = self._engine.now()
            seconds = self._until_next()
            if seconds is None:
                await self._engine.finish(skips_max=1)
            else:
                await self._engine.skip(seconds=seconds)
            if self._engine.now() == before and not await self._act():
                if await self._has_ended():
                    return
                raise StandstillError(f"the run waits for what the test does not give: {await self._run.why()}")
        raise StandstillError(f"the run has not ended after {TURNS_MAX} waits: {await self._run.why()}")

    async def _has_ended(self) -> bool:
        return (await self._run.info()).has_ended

    def _elapsed(self) -> float:
        return (self._engine.now() - self._began_at).total_seconds()

    def _until_next(self) -> float | None:
        """How long until the next signal or decision that has a time of its own; None if there is none ahead."""
        spans = [*(each.after for each in self._signals), *(each.after for each in self._decisions.values())]
        times = [_after(span) - self._elapsed() for span in spans]
        return min((left for left in times if left > 0), default=None)

    async def _act(self) -> bool:
        """Do what is due now; whether there was anything."""
        if await self._has_ended():
            return False
        acted = False
        while self._signals and _after(self._signals[0].after) <= self._elapsed():
            signal = self._signals.pop(0)
            await self._run.signal(signal.name, signal.value)
            acted = True
        for entry in await self._engine.approvals.list(self._run.id) if self._decisions else ():
            decision = self._decisions.get(entry.name)
            if decision is None or _after(decision.after) > self._elapsed():
                continue
            del self._decisions[entry.name]
            form = None if decision.form is UNSET else decision.form
            verb = self._run.approve if decision.approved else self._run.reject
            await verb(entry.name, by=decision.by, form=form, comment=decision.comment)
            acted = True
        return acted

    def unused(self) -> list[str]:
        """The parts of the test for which the run never asked."""
        return [
            *(f"approval {name} was never asked for" for name in self._decisions),
            *(f"signal {signal.name} was never sent: the run ended before" for signal in self._signals),
        ]


def _after(span: float | str | None) -> float:
    return 0.0 if span is None else seconds_of(span)


async def _results(engine: TestEngine, run: RunHandle[Any]) -> dict[str, Any]:
    """The results of the steps, by their names."""
    return {
        event.data["call"]: event.data["result"]
        for event in await engine.history(run.id)
        if event.type == StepSucceeded.__name__ and event.run_id == run.id
    }


def _compared(case: Case, output: Any, error: str, error_type: str) -> list[str]:
    if case.error is not UNSET:
        if not error_type:
            return [f"it was to fail, and it succeeded with {shown(output)}"]
        found = []
        if case.error.type is not None and case.error.type not in (error_type, error_type.rpartition(".")[2]):
            found.append(f"it failed with {error_type}: {error}; expected {case.error.type}")
        if case.error.message is not None and case.error.message not in error:
            found.append(f"it failed with the message {error!r}, which does not hold {case.error.message!r}")
        return found
    if error_type:
        return [f"it failed: {error_type}: {error}"]
    if case.output is not UNSET and not same(output, case.output):
        return [f"its output is {shown(output)}; expected {shown(case.output)}"]
    return []


def _compared_steps(case: Case, results: Mapping[str, Any]) -> list[str]:
    return [
        f"step {id} gave {shown(results.get(id))}; expected {shown(expected)}"
        for id, expected in case.steps.items()
        if not same(results.get(id), expected)
    ]


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; 1 and 1.0 are, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def shown(value: Any) -> str:
    """A value as JSON, cut where it gets long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 300 else f"{text[:300]}..."
