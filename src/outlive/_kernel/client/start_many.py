"""`start_many`: many runs, each of its own tree, that are created in one commit.

Every start is prepared first, so that one mistake among a thousand starts nothing. Then one commit creates all of them.
The ids that are taken then are settled one by one, as `start` does it: the other runs are there already.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple, Required, TypeAlias, get_args

from msgspec.structs import replace

from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import begun, check_starts, own_tags
from outlive._kernel.client.birth import birth
from outlive._kernel.client.definitions import Definitions, checked_input
from outlive._kernel.client.message_start import NamedStart, is_named
from outlive._kernel.client.start_options import OnConflict, OwnStartOptions, StartOptions, start_arguments
from outlive._kernel.client.starting import Starter, refuse_other
from outlive._kernel.client.starts import start_call, wrong_answer
from outlive._kernel.client.turns import Turns
from outlive._kernel.define.middleware import Hook, around
from outlive._kernel.define.workflow import Bound, bound
from outlive._kernel.journal.described import Described
from outlive._kernel.journal.event import RunCreated
from outlive._kernel.model import check_run_id, given
from outlive._kernel.model.payload import Blob
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Action, Change, Outcome
from outlive._tasks import own_task
from outlive.errors import ArgumentTypeError, InvalidArgumentError, OutliveError, RunExistsError
from outlive.errors.program import of_item
from outlive.errors.run import StartsRefusedError

WHERE = "engine.start_many"
STARTS_MAX = PAGE_SIZE_MAX
"""Runs that one call may start."""
BYTES_MAX = 64 * 1024 * 1024
"""The limit for the arguments of all of them together: they go into one transaction."""

WorkflowCall: TypeAlias = Bound[Any] | tuple[Any, ...]
"""A workflow with its arguments: `order.bind(7)`, `(order, 7)`, or `("order", {"id": 7})` by its name."""


DescribedStarts: TypeAlias = dict[NamedStart, tuple[int, Described]]
"""The workflows that starts by name have asked for, so that each is looked up once."""


class OneStart(StartOptions, total=False):
    """One of many starts that has options of its own: `{"start": (order, 7), "id": "order-7"}`."""

    start: Required[WorkflowCall]


class GivenStart(NamedTuple):
    """One start as it was given."""

    call: WorkflowCall
    options: dict[str, Any]
    """Its own options, and those of all starts that it does not have."""


class Prepared(NamedTuple):
    """One start that can be carried out."""

    run_id: str
    event: RunCreated
    blobs: list[Blob]
    on_conflict: OnConflict
    bound: Bound[Any] | None
    """The workflow, if its code is here: middleware is around its start."""
    audit: Action | None = None
    """The entry of its start in the audit log, with what was said of its arguments."""


def wanted_starts(starts: Iterable[WorkflowCall | OneStart], options: Mapping[str, Any]) -> list[GivenStart]:
    """The starts, each with its options.

    Raises:
        InvalidArgumentError: there are too many, or two with one id. ArgumentTypeError: one is not a start.
    """
    found: list[GivenStart] = []
    if options.get("id") is not None:
        raise InvalidArgumentError(WHERE, "id", options["id"], "each run has an id of its own: give it in its start")
    for each in given.many(WHERE, "starts", starts):
        if len(found) == STARTS_MAX:
            wanted = f"it starts at most {STARTS_MAX:,} runs; call it again for the others, or use start_batch"
            raise InvalidArgumentError(WHERE, "starts", f"more than {STARTS_MAX:,}", wanted)
        found.append(_wanted(each, options, len(found)))
    ids: dict[str, int] = {}
    for index, each in enumerate(found):
        run_id = each.options.get("id")
        if run_id is not None and (first := ids.setdefault(run_id, index)) != index:
            error = InvalidArgumentError(WHERE, "id", run_id, f"starts[{first}] has it already: one id is one run")
            raise of_item(error, index)
    return found


def _wanted(each: object, options: Mapping[str, Any], index: int) -> GivenStart:
    own: dict[str, Any] = dict(each) if isinstance(each, Mapping) else {"start": each}
    call = own.pop("start", None)
    try:
        for name in OwnStartOptions.__annotations__.keys() - StartOptions.__annotations__.keys():
            if (value := own.pop(name, options.get(name))) is not None:
                raise InvalidArgumentError(WHERE, name, value, "leave it out: only engine.start takes it, for one run")
        if not isinstance(call, Bound):
            call = _tuple(call)
    except OutliveError as error:
        raise of_item(error, index) from None
    return GivenStart(call, {name: it for name, it in (*options.items(), *own.items()) if it is not None})


def _tuple(call: object) -> tuple[Any, ...]:
    if isinstance(call, tuple) and call and not (is_named(call) and len(call) > len(NamedStart._fields)):
        return call
    wanted = (
        'give order.bind(7), (order, 7), or ("order", {"id": 7}) by its name; with options of its own it is '
        '{"start": (order, 7), "id": "order-7"}'
    )
    raise ArgumentTypeError(WHERE, "start", call, wanted)


class ManyStarts:
    """Starts many runs for one client."""

    def __init__(
        self, access: Access, *, turns: Turns, starter: Starter, definitions: Definitions, new_id: Any
    ) -> None:
        self._access, self._turns, self._starter = access, turns, starter
        self._definitions, self._new_id = definitions, new_id

    async def start(self, starts: Iterable[WorkflowCall | OneStart], options: Mapping[str, Any]) -> list[str]:
        """Start these runs; their ids. See `Engine.start_many`."""
        prepared, described = list[Prepared](), DescribedStarts()
        size = 0
        for index, wanted in enumerate(wanted_starts(starts, options)):
            await self._turns.take()
            try:
                one = await self.prepare(wanted, described)
            except OutliveError as error:
                raise of_item(error, index) from None
            size += sum(len(blob.data) for blob in one.blobs) + len(one.event.input.v or one.event.input.data)
            if size > BYTES_MAX:
                most = f"the arguments of all are at most {BYTES_MAX:,} bytes together; call it several times"
                raise of_item(InvalidArgumentError(WHERE, "start", wanted.call, most), index)
            deed = begun("start", one.run_id)
            prepared.append(one if deed is None else one._replace(audit=deed.action))
        if not prepared:
            return []
        ids = [one.run_id for one in prepared]
        async with self._access.admission.start(*ids), self.through_middleware(prepared) as allowed:
            await self._create(allowed)
        return ids

    async def prepare(self, wanted: GivenStart, described: DescribedStarts) -> Prepared:
        """Check one start, and make its first event."""
        call, workflow = wanted.call, wanted.call.workflow if isinstance(wanted.call, Bound) else wanted.call[0]
        options = start_arguments(workflow, dict(wanted.options), by_name=True)
        on_conflict = options.pop("on_conflict", "attach")
        given.one_of(WHERE, "on_conflict", on_conflict, get_args(OnConflict))
        seconds = given.some_seconds(WHERE, "timeout", options.get("timeout"))
        tags, headers, choice = (options.get(name) for name in ("tags", "headers", "choice"))
        run_id = self._new_id() if options.get("id") is None else check_run_id(options["id"])
        if isinstance(call, tuple) and is_named(call):
            named = NamedStart(*call)
            kind = named._replace(arguments=None)
            if kind not in described:
                described[kind] = await self._definitions.find(named.workflow, named.version)
            version, found = described[kind]
            data = await checked_input(named.workflow, found, named.arguments, where=WHERE)
            event, blobs = await self._starter.created_described(
                WHERE, named.workflow, version, found, data, timeout=seconds, tags=tags, headers=headers, choice=choice
            )
            return Prepared(run_id, event, blobs, on_conflict, None)
        own = call if isinstance(call, Bound) else bound(call[0], call[1:])
        spec = own.workflow.spec
        place = None
        if choice is not None or spec.queue:
            place = await self._starter.place(WHERE, choice, spec.queue)
        labels, said = own_tags(WHERE, spec.name, tags), given.headers(WHERE, headers)
        event, blobs = self._starter.created(own, timeout=seconds, tags=labels, headers=said, place=place)
        return Prepared(run_id, event, blobs, on_conflict, own)

    async def next_life(self, start: Prepared) -> Change:
        """The change that begins a run under its id again. See `Starter.next_life`."""
        return await self._starter.next_life(start.run_id, start.event, start.blobs)

    @asynccontextmanager
    async def through_middleware(
        self, prepared: list[Prepared], *, of: str = "starts", places: Sequence[int] | None = None
    ) -> AsyncIterator[list[Prepared]]:
        """The starts with the headers that middleware gives them. The middleware of each of them is around the commit
        of all: what one of them raises starts nothing. Its error says where the start is: `starts[3]`."""
        named = [partial(of_item, index=index, of=of) for index in (places or range(len(prepared)))]
        # The quota is one of the hooks, and was asked about all of them at once.
        hooks = [
            it for it in self._access.hooks.on_start if getattr(it, "__self__", None) is not self._access.admission
        ]
        if not hooks:
            yield prepared
            return
        allowed, inside = list(prepared), _Inside(len(prepared))
        tasks = [
            own_task(_hooked(hooks, one, index, allowed, inside, named[index]), name="outlive-start")
            for index, one in enumerate(prepared)
        ]
        try:
            await inside.all_have_come(tasks)
            try:
                yield allowed
            except StartsRefusedError as error:
                inside.created.set_result(error.refused)
                await asyncio.gather(*tasks, return_exceptions=True)
                raise
            except Exception as error:  # The middleware of each hears of it.
                inside.created.set_exception(error)
                await asyncio.gather(*tasks, return_exceptions=True)
                raise
            inside.created.set_result({})
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _create(self, prepared: Sequence[Prepared]) -> None:
        """Create the runs in one commit, and settle what becomes of ids that are taken.

        Raises:
            StartsRefusedError: some were taken, and the runs that have them will not do.
        """
        for one in prepared:
            check_starts(one.run_id, one.event.workflow, one.event.tags)
        births = [birth(one.run_id, one.event, one.blobs, one.audit) for one in prepared]
        outcomes = await self._access.timed_store.commit(births)
        self._access.ring()
        taken = [index for index, (outcome, _) in enumerate(outcomes) if outcome is not Outcome.COMMITTED]
        if not taken:
            return
        runs = await self._access.store.find_runs([prepared[index].run_id for index in taken])
        refused: dict[int, OutliveError] = {}
        for index in taken:
            run_id, event, blobs, on_conflict, *_ = prepared[index]
            run = runs.get(run_id)
            try:
                if run is not None and on_conflict == "attach":
                    refuse_other(run, event)
                else:
                    await self._starter.on_taken(run_id, event, blobs, on_conflict)
            except RunExistsError as error:
                refused[index] = error
        if refused:
            raise StartsRefusedError([one.run_id for one in prepared], refused)


class _Inside:
    """Where the middleware of each start waits for the one commit."""

    def __init__(self, count: int) -> None:
        self._missing = set(range(count))
        loop = asyncio.get_running_loop()
        self._complete: asyncio.Future[None] = loop.create_future()
        self.created: asyncio.Future[Mapping[int, OutliveError]] = loop.create_future()
        """Set when the runs are created; it has the errors of runs that were not."""

    async def come(self, index: int) -> None:
        """Wait until all runs are created. Raises the error of this one."""
        self._missing.discard(index)
        if not self._missing and not self._complete.done():
            self._complete.set_result(None)
        refused = await asyncio.shield(self.created)
        if index in refused:
            raise refused[index]

    async def all_have_come(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for all of them. Raises what the middleware of one has raised instead."""
        await asyncio.wait([*tasks, self._complete], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()


async def _hooked(
    hooks: Sequence[Hook],
    one: Prepared,
    index: int,
    allowed: list[Prepared],
    inside: _Inside,
    named: Callable[[OutliveError], OutliveError],
) -> None:
    """Call the middleware around one of the starts."""
    if one.bound is None:  # Middleware is around workflows whose code is here.
        await inside.come(index)
        return
    call, has_come = start_call(one.bound, one.run_id, one.event.headers), False

    async def create() -> str:
        nonlocal has_come
        has_come = True
        headers = given.headers(WHERE, call.headers)
        allowed[index] = one._replace(event=replace(one.event, headers=headers))
        await inside.come(index)
        return one.run_id

    try:
        found = await around(hooks, call, create)()
    except OutliveError as error:
        raise (error if has_come else named(error)) from None
    if found != one.run_id or not has_come:
        raise wrong_answer(call, found)
