"""Retries and forks of runs whose code this process does not have: a worker that has it does them.

The request is a run of a built-in workflow (`_kernel.define.intervention`), which only such a worker claims. The
caller waits for its end, and so hears what the verb would have said here. A request that is not answered in time is
cancelled before the caller hears of that: it must not be carried out when the caller has turned to something else.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import by_the_engine
from outlive._kernel.define.intervention import OF_RUN, Intervention, intervention_spec
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.journal.codec import creation_in
from outlive._kernel.journal.failure import exception_of
from outlive._kernel.model import Failure, Run, RunStatus, definition_key
from outlive._kernel.model.run import definition_shown
from outlive.errors import OutliveError, ResultTimeoutError, RunFinishedError

ANSWER_SECONDS = 30.0
"""How long a caller waits for a worker."""
WITHDRAWAL_SECONDS = 5.0
"""How long it waits until a request that was cancelled has ended."""

MakeRefusal = Callable[[str], OutliveError]
"""The error of a verb for a reason."""


class Interventions:
    """Lets workers do what needs their code."""

    def __init__(
        self,
        access: Access,
        *,
        start: Callable[..., Coroutine[Any, Any, str]],
        ended: Callable[[str, float], Coroutine[Any, Any, Run]],
        cancel: Callable[..., Coroutine[Any, Any, None]],
    ) -> None:
        """`start`, `ended` and `cancel` are verbs of the client; `ended` raises if the run has not ended in time."""
        self._access = access
        self._start = start
        self._ended = ended
        self._cancel = cancel

    async def ask(self, run: Run, version: int, wanted: Intervention, refused: MakeRefusal) -> None:
        """Let a worker that has this version of the run's workflow carry it out.

        Raises:
            OutliveError: what the verb raised there; or that no worker has the code, or none has answered.
        """
        store = self._access.store
        spec, definition = intervention_spec(run.workflow, version), definition_key(run.workflow, version)
        own = definition_key(spec.name, version)
        workers = [worker for worker in await store.list_workers(with_runs=False) if worker.is_live]
        if not any(own in worker.definitions for worker in workers):
            if run.queue and any(definition in worker.definitions for worker in workers):
                # Workers that have it take from queues only, so the request waits in the line of the run.
                spec = msgspec.structs.replace(spec, queue=run.queue)
            else:
                shown = definition_shown(run.workflow, version)
                raise refused(
                    f"workflow {shown} is not defined in this process, and no live worker has it; its code has to "
                    f"replay the history: start a worker that has it, and try again"
                )
        rows = await store.read_journal(run.journal, limit=1)
        # The middleware of the worker expects the headers of the run in whatever is done for it.
        headers = creation_in(rows[0], nonce=run.nonce, run_id=run.id).headers
        request_id = await self._start(Workflow(spec, {}), (wanted,), headers=headers)
        try:
            ended = await self._ended(request_id, ANSWER_SECONDS)
        except ResultTimeoutError as error:
            ended = await self._withdrawn(request_id, error, refused)
        if ended.status is not RunStatus.SUCCEEDED:
            how = ended.failure.message if ended.failure is not None else ended.reason
            raise refused(f"run {request_id}, which was to do it on a worker, ended as {ended.status.value}: {how}")
        assert ended.result is not None
        refusal = spec.signature.result.decode(await self._access.unpack(ended.result), "the answer")
        if isinstance(refusal, Failure):
            raise exception_of(refusal, registered=(OutliveError,))

    async def _withdrawn(self, request_id: str, late: ResultTimeoutError, refused: MakeRefusal) -> Run:
        """A request that was carried out at the last moment; raises if it was not."""
        asked = f"no worker has answered within {ANSWER_SECONDS:.0f} seconds ({late.why.replace(OF_RUN, '')})"
        # The request is a run of the engine's own, which the principal may not know of.
        with suppress(RunFinishedError), by_the_engine():
            await self._cancel(request_id, reason="no worker has answered in time")
        try:
            run = await self._ended(request_id, WITHDRAWAL_SECONDS)
        except ResultTimeoutError:
            raise refused(f"{asked}; run {request_id} was asked to do it and to stop, and has not ended yet") from None
        if run.status is RunStatus.CANCELLED:
            raise refused(f"{asked}; the request was withdrawn, and nothing has changed") from None
        return run
