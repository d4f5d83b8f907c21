"""The workflows that workers can run, for programs that do not have the code: names, versions, schemas, and the states
of machines.

A worker describes its workflows once, a moment after it has started, in a cell that all processes share. It stays there
when the worker is gone: a run may be started while no worker is up.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import Context
from difflib import get_close_matches
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from outlive._kernel.client.access import Access
from outlive._kernel.client.cell_reader import CellReader
from outlive._kernel.client.placing import own_place
from outlive._kernel.client.slices import mismatch_of
from outlive._kernel.define.determinism import check_running
from outlive._kernel.define.own import RESERVED
from outlive._kernel.define.registry import Registry
from outlive._kernel.define.step_run import STEP_VERSION
from outlive._kernel.define.workflow import SIGNAL_KINDS
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.described import Described, describe, input_of
from outlive._kernel.model import definition_key, given
from outlive._kernel.model.giver import MAY, MAY_ALL, gives_freely, overrides_shown, say
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.state_graph import StateGraph
from outlive._kernel.model.worker_steps import STEPS_CELL, StepShape, steps_in, with_own
from outlive._kernel.replay.command import StepSpec, WorkflowSpec
from outlive._kernel.store.contract import Store
from outlive._kernel.values.workflow import WorkflowInfo
from outlive._tasks import in_callback, own_task
from outlive.errors import ArgumentTypeError, InvalidArgumentError, StoreError
from outlive.errors.program import UnknownWorkflowError

log = logging.getLogger("outlive")

WORKFLOWS_CELL = "@workflows"
DESCRIBE_SECONDS = 1.0
"""How long after its start a worker describes its workflows: not before it has begun with its work."""
AGAIN_SECONDS = 30.0
SIGNALS_SECONDS = 5
"""How long a sender goes by the types of signals that it has read."""
WHERE = "engine.start"

_decode = msgspec.json.Decoder(dict[str, Described]).decode
_encode = msgspec.json.Encoder().encode


class Describer:
    """Describes the workflows of a worker in its store, and a moment later its steps."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store, self._registry = store, registry
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, seconds: float = DESCRIBE_SECONDS) -> None:
        """Describe them in a moment."""
        self._begin_in(seconds, self._run)

    async def hurry(self) -> None:
        """Describe them now; if that fails, later."""
        if self._timer is not None:
            self._timer.cancel()
        await self._run()

    def close(self) -> None:
        """The engine stops."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin_in(self, seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        def begin() -> None:
            self._task = own_task(work(), name="outlive-describe")

        self._timer = asyncio.get_running_loop().call_later(seconds, begin, context=Context())

    async def _run(self) -> None:
        if await self._did(self.describe, "workflows"):
            self._begin_in(DESCRIBE_SECONDS, self._run_steps)
        else:
            self.start(AGAIN_SECONDS)
        self.check()

    async def _run_steps(self) -> None:
        if not await self._did(self.describe_steps, "steps"):
            self._begin_in(AGAIN_SECONDS, self._run_steps)

    async def _did(self, describe: Callable[[], Awaitable[None]], what: str) -> bool:
        try:
            await describe()
        except Exception as error:  # It must not end the worker, which needs none of this.
            level = logging.INFO if isinstance(error, StoreError) else logging.ERROR
            log.log(level, "the %s of this worker are not described yet: %r", what, error)
            return False
        return True

    async def describe(self) -> None:
        """Write the workflows that are new or have changed, if any."""
        own = {
            definition_key(spec.name, spec.version): replace(described_of(spec), graph=_graph_of(spec))
            for spec in (*self._registry.workflows(), *self._registry.steps_by_name())
        }

        def add(held: bytes | None, _: int) -> tuple[bytes, None]:
            known = _read(held)
            merged = {**known, **own}
            return (held if held is not None and merged == known else _encode(merged)), None

        await self._store.change_cell(WORKFLOWS_CELL, add)

    async def describe_steps(self) -> None:
        """Write the steps that are new or have changed, if any."""
        specs = (self._registry.find_step(name) for name in self._registry.own_step_names())
        own = {spec.name: shape_of_step(spec) for spec in specs if spec is not None}
        workers = await self._store.list_workers(with_runs=False)
        live = {name for worker in workers if worker.is_live for name in steps_in(worker.definitions)}
        await self._store.change_cell(STEPS_CELL, lambda held, _: (with_own(held, own, live), None))

    def check(self) -> None:
        """Say in the log what a replay cannot repeat in the source of the workflows, once in this process."""
        for spec in self._registry.workflows():
            file = getattr(getattr(spec.fn, "__code__", None), "co_filename", "")
            if file not in _CHECKED:
                _CHECKED.add(file)
                for finding in check_running(file):
                    log.warning("%s", finding)


_CHECKED: set[str] = set()
"""Files whose workflows were looked at."""


def described_in(registry: Registry) -> dict[str, Described]:
    """The workflows that this process has, by `name@version`."""
    specs = (*registry.workflows(), *registry.steps_by_name())
    return {definition_key(spec.name, spec.version): described_of(spec) for spec in specs}


_DESCRIBED: WeakKeyDictionary[Signature, Described] = WeakKeyDictionary()
"""A description takes a while to make, and every start by name looks at all of them."""


def described_of(spec: WorkflowSpec) -> Described:
    """The arguments and the result of a workflow of this process, as schemas."""
    found = _DESCRIBED.get(spec.signature)
    if found is None:
        queue = own_place(spec).queue
        kinds = SIGNAL_KINDS.get((spec.name, spec.version), {})
        found = describe(spec.signature, spec.fn, timeout_seconds=spec.timeout_seconds, queue=queue, signals=kinds)
        _DESCRIBED[spec.signature] = found
    return found


def shape_of_step(spec: StepSpec) -> StepShape:
    """The arguments and the result of a step of this process, as schemas."""
    described = describe(spec.signature, spec.fn)
    return StepShape(described.arguments, described.result)


def _graph_of(spec: WorkflowSpec) -> StateGraph | None:
    """The states of a machine of this process. Not kept with what it takes: a program may define them step by step."""
    return None if spec.graph is None else spec.graph()


def _read(held: bytes | None) -> dict[str, Described]:
    try:
        return {} if held is None else _decode(held)
    except msgspec.MsgspecError:
        return {}  # Written by a later release, or damaged: workers write it again.


class Definitions:
    """Reads what workers have described."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._cell = CellReader(WORKFLOWS_CELL, _read)
        self._signals: dict[str, dict[str, Any]] = {}
        self._signals_until = 0
        """Until when `_signals` counts as what workers have described, by the clock of the store."""
        self._senders: builtins.list[asyncio.Future[None]] = []
        """Callers that wait for `_signals`, the first one first."""
        self._reading: asyncio.Task[None] | None = None

    async def signals(self) -> dict[str, dict[str, Any]]:
        """The schemas of declared signals by name, for each workflow that has some, by `name@version`, as workers have
        described them. Some seconds old at most: it is asked for with every signal."""
        store = self._access.store
        if self._reading is not None or store.now() >= self._signals_until:
            # A sender that comes later must not overtake one that waits.
            answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._senders.append(answer)
            if self._reading is None:
                self._reading = own_task(self._read_signals(store), name="outlive-signals")
            await answer
        return self._signals

    async def _read_signals(self, store: Store) -> None:
        """Read what senders wait for, and let them go on in order."""
        while self._senders:
            failure: Exception | None = None
            try:
                if (now := store.now()) >= self._signals_until:
                    described = await self._cell.read(store)
                    self._signals = {key: it.signals for key, it in described.items() if it.signals}
                    self._signals_until = now + SIGNALS_SECONDS * MICROSECONDS
            except Exception as error:  # Each sender hears of it.
                failure = error
            senders, self._senders = self._senders, []
            for answer in senders:
                if answer.done():
                    continue  # Its caller has given up.
                if failure is None:
                    answer.set_result(None)
                else:
                    answer.set_exception(failure)
            await in_callback(_pause)  # They go on before this looks who has come meanwhile.
        self._reading = None

    async def list(self) -> list[WorkflowInfo]:
        """Every workflow in every version. See `Workflows.list`."""
        described, live = await self._known(), await self._live()
        # Steps that cannot be started by their names are not described.
        names = sorted({*described, *(key for key in live if _split(key)[1] != STEP_VERSION)}, key=_split)
        return [
            WorkflowInfo(
                name=_split(key)[0],
                version=_split(key)[1],
                arguments=described[key].arguments if key in described else None,
                result=(described[key].result or None) if key in described else None,
                workers=live.get(key, 0),
            )
            for key in names
        ]

    async def graph(self, name: str, version: int) -> StateGraph | None:
        """The states of a machine, of this process or as a worker has described them; None if it is none, or if no
        worker has described it."""
        for spec in self._access.registry.workflows():
            if (spec.name, spec.version) == (name, version):
                return _graph_of(spec)
        held = (await self._cell.read(self._access.store)).get(definition_key(name, version))
        return None if held is None else held.graph

    async def _known(self) -> dict[str, Described]:
        held = await self._cell.read(self._access.store)
        # The definitions of this process need no worker that says so.
        return held | described_in(self._access.registry)

    async def _live(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for worker in await self._access.store.list_workers(with_runs=False):
            for key in worker.definitions:
                if worker.is_live and not key.startswith(RESERVED):
                    found[key] = found.get(key, 0) + 1
        return found

    async def find(self, name: str, version: int | None) -> tuple[int, Described]:
        """The version that is meant, the newest unless given, and what it takes.

        Raises:
            UnknownWorkflowError: no worker has described it.
        """
        name = given.text(WHERE, "workflow", name, like="order")
        if version is not None:
            version = given.whole(WHERE, "version", version, least=STEP_VERSION)
        known = await self._known()
        versions = [number for own, number in map(_split, known) if own == name]
        if not versions or (version is not None and version not in versions):
            names = sorted({own for own, _ in map(_split, known)})
            raise UnknownWorkflowError(name, version, sorted(versions), get_close_matches(name, names, 3))
        chosen = max(versions) if version is None else version
        return chosen, known[definition_key(name, chosen)]


class Workflows:
    """`engine.workflows.list`: what workers can run."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    async def list(self) -> builtins.list[WorkflowInfo]:
        """Every workflow that workers have described, in every version, with the JSON Schemas of its arguments and of
        its result, and how many live workers can run it."""
        return await self._definitions.list()


async def names_in(store: Store) -> list[str]:
    """The names of the workflows that workers have described."""
    return sorted({_split(key)[0] for key in _read(await store.read_cell(WORKFLOWS_CELL))})


def _pause() -> None:
    """Nothing: what is ready before it goes on first."""


def _split(key: str) -> tuple[str, int]:
    name, _, version = key.rpartition("@")
    return name, int(version)


async def checked_input(name: str, described: Described, arguments: object, *, where: str = WHERE) -> bytes:
    """Arguments without the code that takes them, as a journal has them.

    Raises:
        InvalidArgumentError: they do not fit the schema.
    """
    names = list(described.arguments.get("properties", {}))
    wanted = (
        f"give the arguments of {name} by name, for example {{{names[0] if names else 'name'!r}: ...}}, or in a list"
    )
    match arguments:
        case None:
            by_name: dict[str, Any] = {}
        case Mapping():
            by_name = dict(arguments)
        case Sequence() if not isinstance(arguments, str | bytes):
            if len(arguments) > len(names):
                raise InvalidArgumentError(where, "arguments", arguments, f"it takes {len(names)} of them; {wanted}")
            by_name = dict(zip(names, arguments, strict=False))
        case _:
            raise ArgumentTypeError(where, "arguments", arguments, wanted)
    try:
        plain = msgspec.json.decode(msgspec.json.encode(by_name))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ArgumentTypeError(where, "arguments", arguments, f"give plain JSON values: {error}") from None
    freely: dict[str, Any] = {}
    overrides = plain.get("overrides") if described.is_flow else None
    if described.is_flow and gives_freely():
        # The schema has what any start may give. The flow itself will look whether the rest fits.
        freely = {name: plain.pop(name) for name in ("vars", "overrides") if plain.get(name)}
        freely |= {MAY: MAY_ALL} if freely else {}
    mismatch = await mismatch_of(plain, described.arguments)
    if mismatch is not None:
        raise InvalidArgumentError(where, "arguments", arguments, f"{mismatch} ($ are the arguments); {wanted}")
    if overrides:
        say(overrides_shown(overrides))
    return input_of(described, plain | freely)
