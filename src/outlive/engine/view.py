"""The views of runs for programs that show them to people, and have neither their code nor their types.

Everything here is plain JSON and hides what the engine redacts. Nothing of a user's is decoded into a class: a payload
that cannot be read here, because a codec or its key is missing, says so in its place.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, Unpack

import msgspec

from outlive._features.batches.batch import Reader
from outlive._features.batches.starting import BatchStarter
from outlive._features.batches.workflows import Plan, chunk_id
from outlive._features.retention.purging import Purging
from outlive._features.security.run_tokens import RunTokens
from outlive._kernel.client.beside import Beside, at_once
from outlive._kernel.client.dead_letters import read_dead_letters
from outlive._kernel.client.finding import Filters, Order, Page
from outlive._kernel.client.following import JournalEntry
from outlive._kernel.client.news import News, NewsReader, Position
from outlive._kernel.client.request_plans import RequestPlans
from outlive._kernel.client.shown import stored_size
from outlive._kernel.client.streams import StreamItem
from outlive._kernel.client.unread import read_unread
from outlive._kernel.journal.event import AnyEvent, RunForked
from outlive._kernel.journal.readable import is_public, public_value
from outlive._kernel.model import Failure, Payload, Run, RunFilter
from outlive._kernel.model.bounds import Bounds
from outlive._kernel.model.why import Why
from outlive._kernel.store.contract import PAGE_SIZE_MAX, ItemResult
from outlive._kernel.values.dead_letter import DeadLetter
from outlive._kernel.values.inbox import UnreadMessage
from outlive._kernel.values.run import Run as ShownRun
from outlive._kernel.values.run import run_of
from outlive.errors import ResultTimeoutError, RunParkedError, UnreadableError, UnserialisableError

if TYPE_CHECKING:
    from outlive._features.flows.graphs import FlowGraph, MachineGraph
    from outlive._features.flows.verbs import Flows
    from outlive._kernel.client.client import Client
    from outlive._kernel.model.state_graph import StateGraph

T = TypeVar("T")
V = TypeVar("V")
TREE_RUNS_MAX = 10_000
"""How many runs of one tree are listed."""


class ItemsShown(NamedTuple):
    """A page of the items of a batch: the place of each, its result as JSON, its failure."""

    items: list[tuple[int, Any, Failure | None]]
    has_more: bool


class HasVerbs(Protocol):
    """An engine, which has a client."""

    @property
    def _verbs(self) -> Client: ...


def view_of(engine: HasVerbs) -> View:
    """The view of an engine, for its own server, commands and tests: rows of the store are in it."""
    return View(engine._verbs)


class View:
    """Looks at runs, through the client of an engine."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._access = client.access

    def now(self) -> int:
        """The time of the store."""
        return self._access.store.now()

    def new_id(self) -> str:
        """An id that no other thing has."""
        return self._client.new_id()

    @property
    def plans(self) -> RequestPlans:
        """The plans of requests for many runs."""
        return RequestPlans(lambda: self._access.store)

    @property
    def run_tokens(self) -> RunTokens:
        """Tokens with which a page of a browser follows one run."""
        return RunTokens(self._access)

    def verbs_of(self, feature: Callable[[Client], V]) -> V:
        """The verbs of a feature, for its operations."""
        return self._client.verbs_of(feature)

    # -- Rows ------------------------------------------------------------------------------------------------

    async def row(self, run_id: str) -> Run:
        """The row of a run, without what is redacted.

        Raises:
            RunNotFoundError: there is none.
        """
        return await self._client.shown.run(await self._client.info(run_id))

    async def rows_of(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """The rows of these runs, as they are stored; unknown ids are left out."""
        return await self._client.access.store.find_runs(run_ids)

    async def run(self, run_id: str) -> ShownRun:
        """A run as people see it.

        Raises:
            RunNotFoundError: there is none.
        """
        return run_of(await self.row(run_id))

    async def why(self, run_id: str, *, bounds: Bounds) -> Why:
        """The wait of a run, or how it ended, in one sentence, for a caller with these bounds."""
        return await self._client.why(run_id, bounds=bounds)

    async def rows(self, *, order: Order, limit: int, after: str | None, **filters: Unpack[Filters]) -> Page[Run]:
        """A page of rows, without what is redacted. See `Engine.list`."""
        page = await self._client.list(order=order, limit=limit, after=after, **filters)
        return Page(await self._client.shown.runs(page), next=page.next, previous=page.previous)

    async def runs(self, *, order: Order, limit: int, after: str | None, **filters: Unpack[Filters]) -> Page[ShownRun]:
        """A page of runs as people see them. See `Engine.list`."""
        page = await self.rows(order=order, limit=limit, after=after, **filters)
        return Page([run_of(row, with_traceback=False) for row in page], next=page.next, previous=page.previous)

    async def tree(self, run_id: str) -> list[ShownRun]:
        """The runs of the tree that a run belongs to, the root first, then as they were created."""
        run = await self._client.info(run_id)
        found: list[Run] = []
        place: tuple[int, str] | None = None
        wanted = RunFilter(root_id=run.root_id)
        while len(found) < TREE_RUNS_MAX:
            page = await self._access.store.list_runs(wanted, limit=PAGE_SIZE_MAX, oldest_first=True, after=place)
            found += page
            if len(page) < PAGE_SIZE_MAX:
                break
            place = page[-1].created_at, page[-1].id
        rows = await self._client.shown.runs(sorted(found, key=lambda it: it.number)[:TREE_RUNS_MAX])
        return [run_of(row, with_traceback=False) for row in rows]

    # -- The journal -----------------------------------------------------------------------------------------

    async def journal(self, run_id: str) -> list[AnyEvent]:
        """The journal of the tree that a run belongs to as it is stored, with nothing hidden: for checks of ours."""
        return await self._client.journal(run_id)

    async def event(self, run: Run, position: int) -> JournalEntry | None:
        """The event at a position in the journal of a run's tree, with its payloads as JSON; None if there is none."""
        return await self._client.journals.event(run, position)

    def portions(self, run: Run, *, after: int, limit: int | None = None) -> AsyncGenerator[list[JournalEntry], None]:
        """At most `limit` events of the journal of a run's tree behind an event, in portions; payloads are JSON."""
        return self._client.journals.portions(run, after, limit=limit)

    async def graph(self, run_id: str, beside: Beside = at_once) -> FlowGraph | MachineGraph | None:
        """The steps of a flow, or the states of a machine, with where a run is in them.

        None if its workflow is a function, and if neither the library nor a worker has described it.

        Raises:
            RunNotFoundError: there is none.
        """
        from outlive._features.flows.graphs import graph_of_run

        run = await self.row(run_id)
        return await graph_of_run(self._client, run, lambda: self.portions(run, after=-1), beside)

    def flows(self, beside: Beside) -> Flows:
        """The library of flows, where what takes long is done so."""
        from outlive._features.flows.verbs import Flows

        return Flows(self._client, beside)

    async def state_graph(self, workflow: str, version: int) -> StateGraph | None:
        """The states of a machine; None if it is none, or if no worker has described it."""
        return await self._client.definitions.graph(workflow, version)

    async def origin_of(self, run_id: str) -> str | None:
        """The run that this one was forked from; None if it was not."""
        async for portion in self.portions(await self.row(run_id), after=-1):
            for entry in portion:
                if isinstance(entry.event, RunForked):
                    return entry.event.origin
        return None

    async def delete(self, run: Run) -> bool:
        """Delete a root run that has ended, with its tree, for good; False if an open run needs it."""
        return await self._client.verbs_of(Purging).purge_one(run)

    def unread(self, run_id: str, *, limit: int, bytes_max: int) -> AsyncIterator[UnreadMessage]:
        """Messages that a run has not read. See `read_unread`."""
        return read_unread(self._access, run_id, limit=limit, bytes_max=bytes_max)

    def dead_letters(self, run_id: str, *, bytes_max: int) -> AsyncIterator[DeadLetter]:
        """Messages that a run could not read. See `read_dead_letters`."""
        return read_dead_letters(self._access, run_id, bytes_max=bytes_max)

    # -- Following -------------------------------------------------------------------------------------------

    def follow(self, run_id: str, position: Position, *, look_seconds: float) -> AsyncGenerator[News, None]:
        """The news of a run behind a position, until it has ended. See `NewsReader`."""
        client = self._client
        reader = NewsReader(self._access, followers=client.followers, shown=client.shown, journals=client.journals)
        return reader.news(run_id, position, look_seconds=look_seconds)

    async def has_more(self, run: Run, seq: int) -> bool:
        """Whether the journal of a run goes on behind this event."""
        return bool(await self._access.store.read_journal(run.journal, after=seq, limit=1))

    def stream(self, run_id: str, name: str, *, after: int) -> AsyncGenerator[StreamItem[Any], None]:
        """The items of a stream, without what is redacted. See `RunHandle.stream`."""
        return self._client.streams.items(run_id, name, after=after, kind=Any, redacted=True)

    async def streams(self, run_id: str) -> dict[str, int]:
        """The streams of a run by name, each with how many items it has."""
        return await self._access.store.list_streams(run_id)

    async def rest(self, run_id: str, seconds: float) -> None:
        """Wait until a run may have something for its readers, or so long."""
        with self._client.followers.following(run_id) as bell:
            await bell.wait(seconds)
        self._client.followers.check_open()

    # -- Its end, and what it shows --------------------------------------------------------------------------

    async def ended(self, run_id: str, seconds: float) -> Run | None:
        """A run that has ended, waited for so long; None if it has not, or is parked.

        Raises:
            RunNotFoundError: there is none. RunDamagedError: its row cannot be read.
        """
        try:
            return await self._client.shown.run(await self._client.ended(run_id, seconds))
        except (ResultTimeoutError, RunParkedError):
            return None

    async def json(self, payload: Payload | None) -> Any:
        """The payload as `plain` gives it, or as unread JSON if it is shown as it is stored: it may be large."""
        if payload is not None and not self.hides:
            with suppress(UnreadableError):
                data = await self._access.unpack(payload)
                if is_public(data):
                    return msgspec.Raw(data)
        return await self.plain(payload)

    async def plain(self, payload: Payload | None) -> Any:
        """The public form of the value of a payload, without what is redacted."""
        if payload is None:
            return None
        blobs = await self._access.blobs([payload])
        try:
            value = msgspec.json.decode(self._access.packer.unpack(payload, blobs))
        except UnreadableError as error:
            return f"[unreadable: {error.reason}]"
        return self._client.shown.plain(value)

    # -- Batches ---------------------------------------------------------------------------------------------

    async def plan_of(self, batch_id: str) -> tuple[Run, Plan]:
        """The run that looks after a batch, and what the batch is to do.

        Raises:
            RunNotFoundError: there is none. RunExistsError: the run is none of a batch.
        """
        run = await self.row(batch_id)
        return run, await Reader(self._client).plan_of(run)

    async def items(self, batch_id: str, *, after: int, limit: int, bytes_max: int) -> ItemsShown:
        """At most `limit` items of a batch that have ended, behind a place, whose results have at most `bytes_max`, or
        one that has more."""
        _, plan = await self.plan_of(batch_id)
        found = await Reader(self._client).page(batch_id, plan, after=after, limit=limit)
        page = _within(found, bytes_max)
        failed_in = {it.index: plan.chunk_of(it.index) for it in page if it.failure is not None}
        secrets = {
            chunk: await self._client.shown.secrets_of(chunk_id(batch_id, chunk)) for chunk in set(failed_in.values())
        }
        items = [await self._item(it, secrets.get(failed_in.get(it.index, 0))) for it in page]
        return ItemsShown(items, has_more=len(page) < len(found) or len(found) == limit)

    async def items_as_they_finish(
        self, batch_id: str, *, after: int
    ) -> AsyncGenerator[tuple[tuple[int, Any, Failure | None], int], None]:
        """The stored items of a batch as they finish, each with the place up to which all have come with it.

        Raises:
            RunParkedError: nothing more comes before the run that it names is resumed.
        """
        reader = Reader(self._client)
        _, plan = await self.plan_of(batch_id)
        async for item, seen_to in reader.as_they_finish(batch_id, reader.read_stored, after=after):
            secrets: set[str] | None = set()
            if item.failure is not None:
                secrets = await self._client.shown.secrets_of(chunk_id(batch_id, plan.chunk_of(item.index)))
            yield await self._item(item, secrets), seen_to

    async def _item(self, it: ItemResult, secrets: set[str] | None) -> tuple[int, Any, Failure | None]:
        """An item as people may see it, with the secrets of the run that had it."""
        failure = None if it.failure is None else self._client.shown.failure(it.failure, secrets)
        return it.index, await self.plain(it.result), failure

    @property
    def batches(self) -> BatchStarter:
        """Starts batches of workflows by name."""
        return BatchStarter(self._client)

    # -- Values ----------------------------------------------------------------------------------------------

    def shown(self, plain: Any) -> Any:
        """A JSON value without what is redacted."""
        return self._client.shown.hide(plain)

    def plain_of(self, value: Any) -> Any:
        """The public form of a value that hides nothing; of one that has none, its text."""
        try:
            return public_value(value, "a value")
        except UnserialisableError:
            return msgspec.to_builtins(value, enc_hook=str, str_keys=True)

    def field(self, name: str, value: Any) -> Any:
        """The public form of a value of a run's, without what is redacted, in a field of this name."""
        return self._client.shown.hide({name: self.plain_of(value)})[name]

    @property
    def hides(self) -> bool:
        """Whether there is anything that people may not see."""
        return self._client.shown.hides

    def about(self, said: T, name: str, sent: Any) -> T:
        """A JSON value about what a caller has sent to something of this name, without what is redacted in that."""
        return self._client.shown.about(said, {name: self.plain_of(sent)})

    async def failure(self, run_id: str, failure: Failure) -> Failure:
        """A failure in the journal of a run, without what is redacted there."""
        return self._client.shown.failure(failure, await self._client.shown.secrets_of(run_id))


def _within(items: list[ItemResult], bytes_max: int) -> list[ItemResult]:
    """The first of them, as many as have so many bytes together; one in any case."""
    size = 0
    for count, item in enumerate(items):
        size += 0 if item.result is None else stored_size(item.result)
        if count and size > bytes_max:
            return items[:count]
    return items
