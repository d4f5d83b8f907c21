"""Splits: branches side by side, each a step of its own, joined by a rule.

A branch that has succeeded is in the journal and never runs again; a crash re-runs only the unfinished ones. What the
join does not wait for is cancelled. A branch with an undo that is cancelled all the same is waited for and undone: a
saga of its own stands around the split.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from outlive._features.machines.asking import ask, park, readable
from outlive._features.machines.building import Function, StateBuilder, check_function
from outlive._features.machines.joins import Join, join_problems, settles_for, wanted
from outlive._features.machines.kinds import Kind, record_left
from outlive._features.machines.snapshots import MachineSnapshots
from outlive._features.machines.wire import Pieces, StateResult
from outlive._kernel.define.resources import count_taken
from outlive._kernel.define.saga import saga
from outlive._kernel.define.step import Step
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.value import ValueCodec
from outlive._kernel.model import Retry, given
from outlive._kernel.replay.command import StepSpec
from outlive._tasks import cancel_all
from outlive.errors import DefinitionError, UnserialisableError
from outlive.errors.program import SplitFailedError

Branch = Step[..., Any] | Workflow[..., Any] | Function


class SplitState(Kind):
    """Branches side by side."""

    word = "split"

    def __init__(
        self,
        builder: StateBuilder,
        branches: Sequence[Branch] | Mapping[str, Branch],
        *,
        join: Join,
        merge: Function | None,
        retry: Retry | None,
        timeout: float | None,
        concurrency: int | None,
    ) -> None:
        name = builder.name
        super().__init__(name, frozenset() if join.then is None else frozenset({join.then.name}))
        self._machine, self._state = builder.machine, builder.state
        self._answer = builder.answer(to=None if join.then is None else [join.then])
        self._join = join
        self._merge = merge
        self._merge_takes = 0 if merge is None else count_taken(f"merge of {name}", merge, 2)
        self._timeout = timeout
        self._concurrency = concurrency
        named = branches if isinstance(branches, Mapping) else _named(name, branches)
        self._branches = {
            key: _as_branch(builder, f"{name}.{given.label(name, key, like='wrap')}", it, retry)
            for key, it in named.items()
        }
        self._has_undo = any(isinstance(it, StepSpec) and it.options.undo is not None for it in self._branches.values())
        self._count = len(branches)

    async def leave(self, data: msgspec.Raw, snapshots: MachineSnapshots) -> StateResult:
        """See `Kind`."""
        async with saga() if self._has_undo else contextlib.nullcontext():
            results = await _Split(self, data).run()
        value = await readable(self._answer.data, data, f"data of {self.name}")
        if self._merge is not None:
            returned = self._merge(*(value, results)[: self._merge_takes])
            value = value if returned is None else returned
        try:
            result = self._answer.read(value, self._join.then)
        except UnserialisableError as error:
            await park(error)
        return record_left(self.name, result)

    def problems(self) -> list[str]:
        """See `Kind`."""
        wrong = join_problems(self._join, self._count, self._timeout)
        if len(self._branches) < self._count:
            wrong.append("has two branches of one name; give a dict of branches by name")
        return wrong


class _Split:
    """One split under way."""

    def __init__(self, state: SplitState, data: msgspec.Raw) -> None:
        self._state = state
        self._data = data
        self._results: dict[str, Any] = {}
        self._errors: dict[str, BaseException] = {}
        concurrency = state._concurrency or max(1, len(state._branches))
        self._room = asyncio.Semaphore(concurrency)

    async def run(self) -> dict[str, Any]:
        """The results of the branches, in their order; an exception for a failed branch, nothing for one that was
        cancelled."""
        branches = self._state._branches
        tasks = [asyncio.create_task(self._branch(name, branch)) for name, branch in branches.items()]
        is_late = False
        try:
            async with asyncio.timeout(self._state._timeout):
                await self._until_decided(tasks)
        except TimeoutError:
            is_late = True
        finally:
            await cancel_all(tasks)
        join, succeeded = self._state._join, len(self._results)
        if succeeded < wanted(join, len(branches)) and not settles_for(join, succeeded):
            raise self._failed(is_late=is_late)
        return {name: it[name] for name in branches for it in (self._results, self._errors) if name in it}

    async def _until_decided(self, tasks: list[asyncio.Task[None]]) -> None:
        join, pending = self._state._join, set(tasks)
        while pending:
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            missing = wanted(join, len(tasks)) - len(self._results)
            if missing <= 0 or (missing > len(pending) and not settles_for(join, len(self._results) + len(pending))):
                return

    async def _branch(self, name: str, branch: StepSpec | Workflow[..., Any]) -> None:
        async with self._room:
            try:
                self._results[name] = await self._call(branch)
            except Exception as error:  # An error that the branch raises is its outcome.
                self._errors[name] = error

    async def _call(self, branch: StepSpec | Workflow[..., Any]) -> Any:
        if isinstance(branch, StepSpec):
            return await ask(branch, self._data)
        return await branch(await readable(self._state._answer.data, self._data, f"data of {self._state.name}"))

    def _failed(self, *, is_late: bool) -> SplitFailedError:
        state = self._state
        error = SplitFailedError(
            state._machine,
            state._state,
            join=str(state._join),
            succeeded=list(self._results),
            errors=self._errors,
            is_late=is_late,
        )
        error.__cause__ = next(iter(self._errors.values()), None)
        return error


def _named(name: str, branches: Sequence[Branch]) -> dict[str, Branch]:
    return {it.name if isinstance(it, Step | Workflow) else _name_of(name, it): it for it in branches}


def _name_of(state: str, branch: Function) -> str:
    name = getattr(branch, "__name__", "<nameless>")
    if not name.isidentifier():
        raise DefinitionError(f"{state}: branch {branch!r} has no name; give a dict of branches by name")
    return name


def _as_branch(builder: StateBuilder, name: str, branch: Branch, retry: Retry | None) -> StepSpec | Workflow[..., Any]:
    if isinstance(branch, Step | Workflow) and not branch.spec.signature.takes_one:
        raise DefinitionError(f"{name}: branch {branch.name} must take one argument, the data")
    if isinstance(branch, Workflow):
        return branch
    if isinstance(branch, Step):
        signature = branch.spec.signature
        spec = msgspec.structs.replace(branch.spec, options=branch.call_options)
        return msgspec.structs.replace(spec, signature=Pieces(signature.decode, signature.result))
    return builder.step(branch, name=name, result=result_codec(name, branch), retry=retry)


def result_codec(name: str, fn: Function) -> ValueCodec:
    """How the result of a function is stored, by its annotation."""
    check_function(name, fn)
    return Signature(fn, fn.__name__).result
