"""`engine.tasks`: programs outside take the tasks of remote steps, work on them, and say how they ended.

A task is a run of its own in the queue of its step, and its worker is a program outside. So the store does here what
it does for every worker. A claim begins a session with a lease, and the run is the session's from then on. A session
whose lease has run out is not live: the next claim takes the run away from it, and every change of the first owner
finds its seq taken. An end is the last event of the run, written by compare-and-swap: the first one wins, and the
message to the workflow that waits is in the same transaction.

Everyone who may see a run sees the session that has it. So the session is not what proves a claim: that is a random
secret, the `lease` of the task. It is in the answer to the claim and nowhere else; the id of the session has its hash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from outlive._features.tasks.listing import RemoteListing
from outlive._features.tasks.values import Task, TaskNotice
from outlive._kernel.client.client import Client
from outlive._kernel.client.closing import end_message, trace_ends
from outlive._kernel.client.secret_token import new_token
from outlive._kernel.client.slices import mismatch_of, others_turn
from outlive._kernel.journal.arguments import split_positional
from outlive._kernel.journal.codec import Row, open_journal, salt_of, seal
from outlive._kernel.journal.event import (
    AnyEvent,
    Ending,
    RunCancelled,
    RunClaimed,
    RunCreated,
    RunFailed,
    RunPublished,
    RunSucceeded,
)
from outlive._kernel.journal.failure import storable
from outlive._kernel.journal.fold import STATUS, Fold
from outlive._kernel.journal.packing import tree_mark
from outlive._kernel.journal.plain import decode_sent, plain_json
from outlive._kernel.journal.readable import public_json
from outlive._kernel.journal.value import TAGGED
from outlive._kernel.model import Failure, Payload, Run, RunStatus, definition_key, given
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.queue import DEFAULT, queue_names
from outlive._kernel.model.remote import OF_REMOTE, VERSION, RemoteTerms, remote_step_of, use_of
from outlive._kernel.model.worker import is_lease_of, remote_name, remote_session_id
from outlive._kernel.model.worker_steps import StepShape, schema_of_stranger, steps_mark
from outlive._kernel.store.contract import Change, Ended, InboxMessage, MessageKind, Outcome, WorkerInfo
from outlive.errors import ArgumentTypeError, ConfigurationError, RunNotFoundError
from outlive.errors.run import TaskEndedError, TaskLeaseLostError, TaskNotFoundError, TaskOutputError

PREFIX = "olt"
LEASE_SECONDS = 30.0
LEASE_SECONDS_MAX = 24 * 3600.0
WAIT_SECONDS_MAX = 300.0
POLL_FIRST_SECONDS, POLL_MAX_SECONDS = 0.1, 0.5
"""How long a claim that waits lets the store alone."""
STEPS_MAX = 100
TEXT_CHARACTERS_MAX = 20_000
_LOST = "outlive.errors.TaskLeaseLostError"
_decode_terms = msgspec.json.Decoder(RemoteTerms).decode

Wait = Callable[[asyncio.Future[Any], float | None], Coroutine[Any, Any, None]]
"""Waits for a future, so many seconds at most."""
Check = Callable[[], Awaitable[None]]
"""Raises if a caller may have no task any longer."""
Steps = Sequence[str] | Mapping[str, Mapping[str, Any]]
"""The names of remote steps; or each with its JSON Schemas, `input` and `output`."""
MakeEvent = Callable[[int], RunSucceeded | RunFailed | RunCancelled | RunPublished]
"""Makes the next event of a task, given the time."""


async def claim_while(
    check: Check, tasks: Tasks, queue: str, steps: Steps, *, worker: str, lease_seconds: float, wait: float
) -> Task | None:
    """Take the next task for a caller who may lose its rights while it waits. See `Tasks.claim`.

    Args:
        check: asked before each claim that follows a wait, and before the task is given. What it raises ends this, and
            a task that was claimed is due for others at once.
    """
    return await tasks._take(queue, steps, worker=worker, lease_seconds=lease_seconds, wait=wait, check=check)


async def _allow() -> None:
    """Nothing is against it: the caller is a program with the store."""


class Tasks:
    """The tasks of remote steps."""

    def __init__(self, client: Client) -> None:
        self._access, self._wait, self._attempts_max = client.access, client.wait, client.limits.attempts_max
        self._listing = RemoteListing()

    # -- Claiming --------------------------------------------------------------------------------------------

    async def claim(
        self,
        queue: str,
        steps: Steps,
        *,
        worker: str = "",
        lease_seconds: float = LEASE_SECONDS,
        wait: float = 0.0,
    ) -> Task | None:
        """Take the next task of a queue; None if there is none within `wait` seconds.

        Args:
            steps: the names of the remote steps that the program can do; or each name with the JSON Schemas of what the
                step takes and gives, `{"resize": {"input": {...}, "output": {...}}}`, which `engine.workers.steps`
                lists and documents are checked with.
            worker: what people call the program.
            lease_seconds: how long the task is the program's without a heartbeat; then another one may claim it.
        """
        return await self._take(queue, steps, worker=worker, lease_seconds=lease_seconds, wait=wait, check=_allow)

    async def _take(
        self, queue: str, steps: Steps, *, worker: str, lease_seconds: float, wait: float, check: Check
    ) -> Task | None:
        where = "engine.tasks.claim"
        names = given.texts(where, "steps", steps, like="resize")
        said = _said(where, names, steps)
        if not names or len(names) > STEPS_MAX:
            raise ConfigurationError(f"{where}: give the names of 1 to {STEPS_MAX} remote steps as steps")
        (line,) = queue_names(where, [queue]) or ("",)
        seconds = given.number(where, "lease_seconds", lease_seconds, least=1, most=LEASE_SECONDS_MAX, like=30)
        patience = given.number(where, "wait", wait, least=0, most=WAIT_SECONDS_MAX, like=20)
        store = self._access.store
        caller, lease = remote_name(worker), new_token(PREFIX).text
        definitions = tuple(definition_key(OF_REMOTE + name, VERSION) for name in names)
        info = WorkerInfo(
            id=remote_session_id(caller, lease),
            name=caller,
            definitions=(*definitions, steps_mark(use_of(line, name) for name in said)),
            started_at=store.now(),
            expires_at=0,
        )
        # Live for as long as it may wait; the lease of a task begins with its claim.
        await store.register_worker(info, lease_seconds=seconds + patience)
        await self._listing.note(store, line or DEFAULT, said, seconds=patience)
        task: Task | None = None
        try:
            until_at = store.now() + round(patience * MICROSECONDS)
            found = await self._claim(info, definitions, lease, line, seconds, until_at=until_at, check=check)
            if found is not None:
                await check()
            task = found
        finally:
            if task is None:
                # Its caller may have gone, or may have no task: then the claimed task is due for others at once.
                await asyncio.shield(store.end_session(info.id))
        return task

    async def _claim(
        self,
        info: WorkerInfo,
        definitions: Sequence[str],
        lease: str,
        line: str,
        seconds: float,
        *,
        until_at: int,
        check: Check,
    ) -> Task | None:
        store, pause = self._access.store, POLL_FIRST_SECONDS
        while True:
            claims = (await store.claim_runs(info.id, definitions, limit=1, queues=[line])).claims
            if claims and (task := await self._begin(claims[0].run, lease, seconds)) is not None:
                return task
            if not claims:
                left = (until_at - store.now()) / MICROSECONDS
                if left <= 0:
                    return None
                await self._wait(asyncio.get_running_loop().create_future(), min(left, pause))
                await check()
                pause = min(2 * pause, POLL_MAX_SECONDS)

    async def _begin(self, run: Run, lease: str, seconds: float) -> Task | None:
        """A run that was claimed, as a task; None if there is nothing left to do of it."""
        if (cancel := await self._cancel_of(run)) is not None:
            await self._write(run, lease, lambda at: RunCancelled(at=at, run=0, reason=cancel.name))
            return None
        if run.attempts > self._attempts_max:
            text = f"{run.attempts} programs have let their leases of it run out, and none has reported progress"
            await self._write(run, lease, lambda at: RunFailed(at=at, run=0, failure=Failure(type=_LOST, message=text)))
            return None
        value, terms = await self._arguments(run, await self._access.events(run))
        await self._renew(_session_of(run, lease), seconds)
        return Task(
            id=run.id,
            lease=lease,
            lasts=timedelta(seconds=seconds),
            step=remote_step_of(run.workflow),
            queue=run.queue or "default",
            input=value,
            claims=run.epoch,
            progress=None if run.published is None else await self._progress(run, run.published),
            output_schema=None if isinstance(terms.schema, msgspec.UnsetType) else msgspec.json.decode(terms.schema),
        )

    async def _arguments(self, run: Run, events: list[AnyEvent]) -> tuple[Any, RemoteTerms]:
        created = events[0]
        assert isinstance(created, RunCreated)
        value, terms = split_positional(await self._access.unpack(created.input))
        return public_json(value), _decode_terms(terms)

    async def _progress(self, run: Run, payload: Payload) -> Any:
        return public_json(await self._access.unpack(payload))

    async def _is_other(self, payload: Payload, data: bytes) -> bool:
        """Whether the journal has another value than this one."""
        stored = await self._access.unpack(payload)
        if stored == data:
            return False
        value = decode_sent(stored)
        await others_turn(len(data))
        return bool(value != decode_sent(data))

    # -- While a program works on it -------------------------------------------------------------------------

    async def heartbeat(
        self,
        task_id: str,
        lease: str,
        *,
        progress: Mapping[str, Any] | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> TaskNotice:
        """Renew the lease of a task, and report progress: people see it as what the task publishes, and the next
        program gets it if this one is lost.

        Raises:
            TaskLeaseLostError: another program has the task now. TaskEndedError: it has ended.
            TaskNotFoundError: there is no such task.
        """
        where = "engine.tasks.heartbeat"
        seconds = given.number(where, "lease_seconds", lease_seconds, least=1, most=LEASE_SECONDS_MAX, like=30)
        run = await self._run_of(task_id)
        session = _session_of(run, lease)
        if progress is not None:
            if not isinstance(progress, Mapping):
                raise ConfigurationError(f"{where}: give progress as an object, for example {{'done': 0.4}}")
            payload, blob = self._pack(run, TAGGED.encode_sent(plain_json(where, dict(progress)), "it"), "the progress")
            await self._write(run, lease, lambda at: RunPublished(at=at, run=0, payload=payload), blob)
        if not await self._renew(session, seconds):
            _session_of(await self._run_of(task_id), lease)
            raise TaskLeaseLostError(task_id)
        step = remote_step_of(run.workflow)
        await self._listing.note(self._access.store, run.queue or DEFAULT, _listed([step]), seconds=seconds)
        cancel = await self._cancel_of(run)
        return TaskNotice(
            is_cancelled=cancel is not None,
            reason="" if cancel is None else cancel.name,
            lasts=timedelta(seconds=seconds),
        )

    async def _renew(self, session: str, seconds: float) -> bool:
        beat = self._access.store.open_beat(session)
        try:
            return await asyncio.to_thread(beat.renew, lease_seconds=seconds)
        finally:
            await asyncio.to_thread(beat.close)

    async def _cancel_of(self, run: Run) -> InboxMessage | None:
        inbox = (await self._access.store.read_inbox([run.journal])).get(run.journal, [])
        return next((message for message in inbox if message.kind is MessageKind.CANCEL), None)

    # -- Its end ---------------------------------------------------------------------------------------------

    async def complete(self, task_id: str, lease: str, output: Any = None) -> None:
        """End a task with its output. Durable when this returns; the same again is fine, and says nothing new.

        Raises:
            TaskOutputError: the output does not fit what the step gives; the task goes on.
            TaskLeaseLostError: another program has the task now. TaskEndedError: it has ended otherwise.
            TaskNotFoundError: there is no such task.
        """
        run = await self._run_of(task_id)
        events = await self._access.events(run)
        if run.status.is_terminal:
            _session_of_end(run, events, lease, RunStatus.SUCCEEDED)
        else:
            _session_of(run, lease)
        _, terms = await self._arguments(run, events)
        if not isinstance(terms.schema, msgspec.UnsetType):
            mismatch = await mismatch_of(output, msgspec.json.decode(terms.schema))
            if mismatch is not None:
                raise TaskOutputError(task_id, terms.type, mismatch)
        what = f"the output of task {task_id}"
        data = TAGGED.encode_sent(output, what) if not terms.type else msgspec.json.encode(output)
        payload, blob = self._pack(run, data, what)
        before = await self._end(run, lease, lambda at: RunSucceeded(at=at, run=0, result=payload), blob)
        if isinstance(before, RunSucceeded) and await self._is_other(before.result, data):
            raise TaskEndedError(task_id, RunStatus.SUCCEEDED.value)

    async def fail(
        self,
        task_id: str,
        lease: str,
        message: str,
        *,
        type: str = "RemoteError",  # noqa: A002 (what it is called in journals)
        retryable: bool = True,
        retry_after: float | None = None,
        traceback: str = "",
    ) -> None:
        """End a task with an error: this attempt of the step has failed. Durable when this returns; the same again is
        fine. A task that was cancelled ends as cancelled.

        Args:
            type: the class of the error, as the program calls it.
            retryable: whether another attempt may help, if the step has one left.
            retry_after: seconds until the next attempt.

        Raises:
            TaskLeaseLostError, TaskEndedError, TaskNotFoundError: as for `complete`.
        """
        where = "engine.tasks.fail"
        attributes: dict[str, Any] = {} if given.flag(where, "retryable", retryable) else {"retryable": False}
        if retry_after is not None:
            attributes["retry_after"] = given.seconds(where, "retry_after", retry_after, or_zero=True)
        failure = Failure(
            type=given.text(where, "type", type, like="ValueError"),
            message=storable(str(message)[:TEXT_CHARACTERS_MAX]),
            attributes=attributes,
            traceback=storable(str(traceback)[-TEXT_CHARACTERS_MAX:]),
        )
        run = await self._run_of(task_id)
        cancel = None if run.status.is_terminal else await self._cancel_of(run)
        if cancel is not None or run.status is RunStatus.CANCELLED:
            reason = run.reason if cancel is None else cancel.name
            await self._end(run, lease, lambda at: RunCancelled(at=at, run=0, reason=reason))
        else:
            before = await self._end(run, lease, lambda at: RunFailed(at=at, run=0, failure=failure))
            if isinstance(before, RunFailed) and before.failure != failure:
                raise TaskEndedError(task_id, RunStatus.FAILED.value)

    async def _end(self, run: Run, lease: str, make: MakeEvent, blob: Blob | None = None) -> AnyEvent | None:
        session, before = await self._write(run, lease, make, blob)
        await self._access.store.end_session(session)
        return before

    async def _write(
        self, run: Run, lease: str, make: MakeEvent, blob: Blob | None = None
    ) -> tuple[str, AnyEvent | None]:
        """Append one event to the journal of a task, if the lease is its owner's: as the journal says, at whose end the
        event is written. The session of the lease; and the end that it has written before, if that is there already."""
        store = self._access.store
        while True:
            rows = await store.read_journal(run.journal)
            events = open_journal(rows, nonce=run.nonce, run_id=run.id)
            fold = Fold(run.id)
            for each in events:
                fold.apply(each)
            event = make(store.now())
            if fold.root.status.is_terminal:
                status = STATUS[type(event)] if isinstance(event, Ending) else None
                return _session_of_end(fold.root, events, lease, status), events[-1]
            session = _session_of(fold.root, lease)
            change = _change_of(run, fold, rows, event, blob)
            ((outcome, _),) = await store.commit([change])
            if outcome is Outcome.COMMITTED:
                if isinstance(event, Ending):
                    trace_ends(self._access.hooks.tracer, change, rows)
                self._access.ring()
                return session, None
            # It has moved meanwhile: by a heartbeat, or because its lease has run out.

    def _pack(self, run: Run, data: bytes, what: str) -> tuple[Payload, Blob | None]:
        return self._access.packer.pack(data, what, of=tree_mark(run.nonce))

    async def _run_of(self, task_id: str) -> Run:
        try:
            run = await self._access.info(task_id)
        except RunNotFoundError as error:
            raise TaskNotFoundError(task_id) from error
        if not remote_step_of(run.workflow):
            raise TaskNotFoundError(task_id)
        return run


def _said(where: str, names: Sequence[str], steps: Steps) -> dict[str, StepShape | None]:
    """The steps of a claim that documents can call, each with its schemas if they are given.

    Raises:
        ArgumentTypeError, InvalidArgumentError: a schema is none, or too large.
    """
    said = _listed(names)
    if isinstance(steps, Mapping):
        for name, schemas in plain_json(where, dict(steps)).items():
            if not isinstance(schemas, dict) or schemas.keys() - {"input", "output"}:
                wanted = "give the schemas of a step as {'input': {...}, 'output': {...}}"
                raise ArgumentTypeError(where, "steps", schemas, wanted)
            found = {key: schema_of_stranger(where, "steps", each) for key, each in schemas.items()}
            if name in said and any(found.values()):
                said[name] = StepShape(found.get("input", {}), found.get("output", {}))
    return said


def _listed(names: Sequence[str]) -> dict[str, StepShape | None]:
    """The names that a document can say; a worker may ask for any."""
    return {name: None for name in names if given.is_label(name)}


def _session_of(run: Run, lease: str) -> str:
    """The session that has a task, if this is its lease."""
    if run.status.is_terminal:
        raise TaskEndedError(run.id, run.status.value)
    if not is_lease_of(lease, run.owner):
        raise TaskLeaseLostError(run.id)
    return run.owner


def _session_of_end(run: Run, events: list[AnyEvent], lease: str, status: RunStatus | None) -> str:
    """The session that has ended a task, if this is its lease and the same end: its first answer was lost."""
    claim = next((each for each in reversed(events) if isinstance(each, RunClaimed)), None)
    if claim is None or not is_lease_of(lease, claim.worker) or status is not run.status:
        raise TaskEndedError(run.id, run.status.value)
    return claim.worker


def _change_of(run: Run, fold: Fold, rows: list[Row], event: AnyEvent, blob: Blob | None) -> Change:
    after = rows[-1][0]
    moved = fold.apply(event)
    row = seal(event, salt=salt_of(run.nonce), seq=after + 1)
    runs = [] if moved is None else [msgspec.structs.replace(moved, journal=run.journal)]
    blobs = [] if blob is None else [blob]
    change = Change(journal=run.journal, after=after, prior=rows[-1][2], rows=[row], runs=runs, blobs=blobs)
    if run.parent_id is not None and isinstance(event, Ending):
        end = Ended(
            run_id=run.id,
            status=STATUS[type(event)],
            result=event.result if isinstance(event, RunSucceeded) else None,
            failure=event.failure if isinstance(event, RunFailed) else None,
        )
        change.messages.append(end_message(run, rows, end, at=event.at))
    return change
