"""Forking a run: a new run that begins with the history of another one, edited; the other one stays as it is.

The code is fed with every event that is copied (`outlive._kernel.replay.copying`), so the new run is written only if it
replays. If this process does not have the code, a worker does all this. Values are packed again, as payload codecs bind
them to their tree.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

import msgspec

from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import check_acts_on, check_uses, doing, own_bounds
from outlive._kernel.client.definitions import Definitions, checked_input
from outlive._kernel.client.interventions import Interventions
from outlive._kernel.client.placing import own_place
from outlive._kernel.client.retrying import in_turns
from outlive._kernel.client.starting import Ids
from outlive._kernel.define.intervention import Intervention
from outlive._kernel.define.middleware import around_workflow
from outlive._kernel.define.own import family_of
from outlive._kernel.journal.codec import Row, open_journal, salt_of, seal
from outlive._kernel.journal.event import AnyEvent, ApprovalDecided, DetachedEnded, RunCreated, RunForked, SnapshotTaken
from outlive._kernel.journal.fold import Fold
from outlive._kernel.journal.history import blobs_of
from outlive._kernel.journal.packing import tree_mark
from outlive._kernel.journal.value import encode_sent
from outlive._kernel.model import Payload, Run, check_run_id, given
from outlive._kernel.model.approval import Decision
from outlive._kernel.model.giver import gives_freely
from outlive._kernel.model.payload import Blob
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.replay.copying import CannotFork, Copier, Numbered
from outlive._kernel.replay.execution import Execution
from outlive._kernel.store.contract import Change, Outcome
from outlive.errors import InvalidArgumentError, RunExistsError
from outlive.errors.run import RunNotForkableError

Arguments = tuple[Any, ...] | Mapping[str, Any] | msgspec.Raw
TAKEN = "another run has this id", "use another id for the fork"


class Forker:
    """Forks runs."""

    def __init__(self, access: Access, *, ids: Ids, definitions: Definitions, interventions: Interventions) -> None:
        self._access = access
        self._ids = ids
        self._definitions = definitions
        self._interventions = interventions

    async def fork(
        self,
        run_id: str,
        *,
        at: str | int | None = None,
        set: Mapping[str, Any] | None = None,
        input: Arguments | None = None,
        version: int | None = None,
        id: str | None = None,
        reason: str = "",
    ) -> str:
        """Start a run with the history of another one; its id. See `Engine.fork`."""
        origin = await self._access.info(run_id)
        results = _checked(at, set, version)
        new_id = self._ids.new_id() if id is None else check_run_id(id)
        check_acts_on(await self._access.root_of(origin))
        if origin.number:
            raise RunNotForkableError(run_id, f"it is a child of {origin.root_id!r}; fork that run")
        family = family_of(origin.workflow)
        if family is not None and (why_not := family.no_fork(origin)):
            raise RunNotForkableError(run_id, why_not)
        store = self._access.store
        number = origin.version if version is None else version
        if not own_bounds().is_open:
            check_uses(origin.queue, await self._queue_of(origin.workflow, number))
        if not self._access.registry.has_workflow(origin.workflow, number):
            wanted = Intervention(
                verb="fork",
                run_id=origin.id,
                at=store.now(),
                reason=reason,
                new_id=new_id,
                place=at,
                results={name: _raw(name, value) for name, value in results.items()},
                input=await self._arguments(origin.workflow, number, input),
                version=number,
            )
            if await store.find_run(new_id) is not None:
                raise RunExistsError(new_id, *TAKEN)  # A request that a worker refuses is in the audit log.
            with doing("fork", origin.id, reason):
                await self._interventions.ask(origin, number, wanted, partial(RunNotForkableError, origin.id))
            return new_id
        # Here, where it is known who gives them.
        data = self._encoded(self._access.registry.workflow(origin.workflow, number), input)
        rows = await store.read_journal(origin.journal)
        events = open_journal(rows, nonce=origin.nonce, run_id=origin.id)
        ids = blobs_of(rows)
        blobs = await store.get_blobs(sorted(ids)) if ids else {}
        nonce, freely = self._ids.nonce(), gives_freely()  # The copy is made in no context of the caller.
        fork = _Fork(self._access, origin, new_id, nonce=nonce, blobs=blobs, version=number, freely=freely)
        change = await in_turns(fork.change(events, at, results, data, reason, now_at=store.now()))
        async with self._access.admission.start(new_id):
            with doing("fork", origin.id, reason):
                outcomes = await self._access.store.commit([change])
        if outcomes[0][0] is Outcome.CONFLICT:
            raise RunExistsError(new_id, *TAKEN)
        self._access.ring()
        return new_id

    async def _queue_of(self, workflow: str, number: int) -> str:
        """The queue that a workflow declares, whether its code is here or not; empty for none."""
        if self._access.registry.has_workflow(workflow, number):
            return own_place(self._access.registry.workflow(workflow, number)).queue
        return (await self._definitions.find(workflow, number))[1].queue

    @staticmethod
    def _encoded(spec: WorkflowSpec, input: Arguments | None) -> bytes | None:
        """Arguments of a workflow whose code is here."""
        if input is None or isinstance(input, msgspec.Raw):
            return None if input is None else bytes(input)  # It comes from a program that does not have the code.
        args, kwargs = ((), dict(input)) if isinstance(input, Mapping) else (tuple(input), {})
        return spec.signature.encode(args, kwargs)

    async def _arguments(self, workflow: str, version: int, input: object) -> msgspec.Raw:
        """Arguments of a workflow whose code is not here, checked by the schema that its workers have described."""
        if input is None:
            return msgspec.Raw(b"null")
        _, described = await self._definitions.find(workflow, version)
        return msgspec.Raw(await checked_input(workflow, described, input, where="engine.fork"))


class _Fork:
    """One fork on its way into the store."""

    def __init__(
        self,
        access: Access,
        origin: Run,
        new_id: str,
        *,
        nonce: int,
        blobs: dict[str, bytes],
        version: int,
        freely: bool,
    ) -> None:
        self._access = access
        self._origin = origin
        self._id = new_id
        self._nonce = nonce
        self._blobs = dict(blobs)
        self._new_blobs: dict[str, Blob] = {}
        self._version = version
        self._freely = freely

    def change(
        self,
        events: list[AnyEvent],
        at: str | int | None,
        results: Mapping[str, Any],
        input: bytes | None,
        reason: str,
        *,
        now_at: int,
    ) -> Generator[None, None, Change]:
        """The change that creates the new tree; it yields at each event."""
        spec = self._access.registry.workflow(self._origin.workflow, self._version)
        execution = Execution(
            self._id,
            resolve=self._access.registry.workflow,
            unpack=lambda payload: self._access.packer.unpack(payload, self._blobs),
            around=around_workflow(self._access.hooks),
        )
        execution.refuses_plain = self._access.packer.refuses_plain
        copier = Copier(
            execution,
            pack=self._packed,
            results=results,
            pack_result=self._pack,
            is_other_code=self._version != self._origin.version,
        )
        numbered = Numbered(events)
        try:
            until = numbered.find(at)
            first = self._first(events[0], spec, input)
            yield from copier.copy(first, numbered, until=until, is_edited=input is not None)
            span = _span(events)
            copier.go_on(
                RunForked(
                    at=now_at,
                    origin=self._origin.id,
                    events=until,
                    seed=self._nonce,
                    rested=max(0, now_at - copier.events[-1].at),
                    timeout_at=None if span is None else now_at + span,
                    timeout=span,
                    rests=True,
                    reason=reason,
                )
            )
        except CannotFork as error:
            raise RunNotForkableError(self._origin.id, str(error)) from None
        finally:
            execution.drop()
        fold, salt = Fold(self._id), salt_of(self._nonce)
        rows: list[Row] = []
        for seq, event in enumerate(copier.events):
            yield
            fold.apply(event)
            rows.append(seal(event, salt=salt, seq=seq))
        return Change(
            journal=0,
            after=-1,
            rows=rows,
            runs=list(fold.runs.values()),
            blobs=list(self._new_blobs.values()),
        )

    def _first(self, event: AnyEvent, spec: WorkflowSpec, input: bytes | None) -> AnyEvent:
        """The first event of the new journal."""
        if isinstance(event, SnapshotTaken):
            if input is not None:
                raise CannotFork("its history begins with a snapshot, behind its arguments; fork it without `input`")
            packed = self._packed(event)
            assert isinstance(packed, SnapshotTaken)
            # Its open asks stay with the run that was asked.
            own = self._created(self._carried(packed.created, spec))
            return msgspec.structs.replace(packed, events=0, worker="", created=own, asks=())
        assert isinstance(event, RunCreated)
        if input is None:
            created = self._packed(event)
            assert isinstance(created, RunCreated)
            return self._created(self._carried(created, spec))
        payload = self._pack(input, f"the arguments of {spec.name}")
        return self._created(msgspec.structs.replace(event, input=payload))

    def _carried(self, event: RunCreated, spec: WorkflowSpec) -> RunCreated:
        """With arguments as the version takes them that the new run has."""
        if self._version == self._origin.version:
            return event
        data = bytes(self._access.packer.unpack(event.input, self._blobs))
        carried = spec.signature.carried(data, freely=self._freely)
        if carried is data:
            return event
        return msgspec.structs.replace(event, input=self._pack(carried, f"the arguments of {spec.name}"))

    def _created(self, event: RunCreated) -> RunCreated:
        tracer = self._access.hooks.tracer
        return msgspec.structs.replace(
            event,
            headers=event.headers if tracer is None else tracer.pass_on(event.headers, self._origin),
            version=self._version,
            nonce=self._nonce,
            seed=event.seed or event.nonce,
            worker="",
            notify="",
            generation=0,
            before=0,
            begin_by=0,
        )

    # -- Values ----------------------------------------------------------------------------------------------

    def _pack(self, data: bytes, what: str) -> Payload:
        payload, blob = self._access.packer.pack(data, what, of=tree_mark(self._nonce))
        if blob is not None:
            self._new_blobs[blob.id] = blob
            self._blobs[blob.id] = blob.data
        return payload

    def _packed(self, event: AnyEvent) -> AnyEvent:
        """An event with its values packed for the new tree."""
        if isinstance(event, DetachedEnded):
            return event  # Its result is that of another tree.
        changes: dict[str, Any] = {}
        for name in event.__struct_fields__:
            value = getattr(event, name)
            if isinstance(value, Payload) and (value.v is msgspec.UNSET or isinstance(event, ApprovalDecided)):
                changes[name] = self._repacked(event, value)
            elif isinstance(event, SnapshotTaken) and name in ("signals", "set_aside"):
                changes[name] = tuple(self._packed(inner) for inner in value)
            elif isinstance(value, RunCreated):
                changes[name] = self._packed(value)
        return msgspec.structs.replace(event, **changes) if changes else event

    def _repacked(self, event: AnyEvent, payload: Payload) -> Payload:
        data = bytes(self._access.packer.unpack(payload, self._blobs))
        if isinstance(event, ApprovalDecided):
            # A decision says which tree it is for.
            decision = msgspec.json.decode(data, type=Decision)
            if decision.nonce == self._origin.nonce:
                data = msgspec.json.encode(msgspec.structs.replace(decision, nonce=self._nonce))
        return self._pack(data, f"a value of {type(event).__name__}")


def _raw(name: str, value: Any) -> msgspec.Raw:
    """The result of a step whose type is not known here."""
    return msgspec.Raw(encode_sent(value, f"the result set for step {name}"))


def _span(events: list[AnyEvent]) -> int | None:
    """How long the run may take."""
    first = events[0].created if isinstance(events[0], SnapshotTaken) else events[0]
    assert isinstance(first, RunCreated)
    if first.timeout is not None or first.timeout_at is None:
        return first.timeout
    return first.timeout_at - first.at


def _checked(at: object, results: object, version: object) -> dict[str, Any]:
    """The results by name, after the arguments of the caller were checked."""
    where = "engine.fork"
    if at is not None and (isinstance(at, bool) or not isinstance(at, str | int)):
        wanted = "give the name of a step, a call or an event"
        raise InvalidArgumentError(where, "at", at, wanted, example="charge")
    if version is not None:
        given.whole(where, "version", version)
    if results is None:
        return {}
    if not isinstance(results, Mapping) or not all(isinstance(key, str) for key in results):
        wanted = "give results by the names of steps"
        raise InvalidArgumentError(where, "set", results, wanted, example={"fraud_check": True})
    return dict(results)
