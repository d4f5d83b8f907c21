"""A connection for code without `await`: for type checkers, its verbs and those of its runs by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, Unpack, overload

from outlive._define.workflow import Startable
from outlive.engine.sync import Blocking, BlockingEngine, Verb
from outlive.remote.following import Message

if TYPE_CHECKING:
    from outlive._model import given
    from outlive.client.starting import StartOptions
    from outlive.remote.engine import RemoteVerbs
    from outlive.remote.run import RemoteRun
from outlive.remote.talking import RemoteApprovals

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class SyncRemoteRun(Blocking, Generic[R]):
    """A `RemoteRun` for sync code: the same methods without `await`."""

    id: str

    if TYPE_CHECKING:

        def result(self, timeout: given.Span | None = None) -> R:
            """See `RemoteRun`."""

        def stream(self, name: str, kind: Any = Any, *, after: int = 0, positions: bool = False) -> Iterator[Any]:
            """See `RemoteRun`."""

        def watch(self) -> Iterator[dict[str, Any]]:
            """See `RemoteRun`."""

        def follow(self, *, after: str = "", streams: Sequence[str] = ()) -> Iterator[Message]:
            """See `RemoteRun`."""

        status = Verb(RemoteRun.status)
        info = Verb(RemoteRun.info)
        why = Verb(RemoteRun.why)
        steps = Verb(RemoteRun.steps)
        history = Verb(RemoteRun.history)
        until = Verb(RemoteRun.until)

        def published(self, key: str | None = None, *, timeout: given.Span | None = None) -> Any:
            """See `RemoteRun`."""

        signal = Verb(RemoteRun.signal)
        ask = Verb(RemoteRun.ask)
        answer = Verb(RemoteRun.answer)
        approve = Verb(RemoteRun.approve)
        reject = Verb(RemoteRun.reject)
        approvals = Verb(RemoteRun.approvals)
        dead_letters = Verb(RemoteRun.dead_letters)
        cancel = Verb(RemoteRun.cancel)
        retry = Verb(RemoteRun.retry)
        pause = Verb(RemoteRun.pause)
        resume = Verb(RemoteRun.resume)
        skip_step = Verb(RemoteRun.skip_step)


class SyncRemoteApprovals(Blocking):
    """`engine.approvals.list` for sync code."""

    if TYPE_CHECKING:
        list = Verb(RemoteApprovals.list)
        approve = Verb(RemoteApprovals.approve)
        reject = Verb(RemoteApprovals.reject)


class SyncRemote(BlockingEngine):
    """A connection for sync code: the verbs of `Remote` without `await`."""

    if TYPE_CHECKING:

        @overload
        def start(
            self, workflow: Startable[*Ts, R], *args: *Ts, **options: Unpack[StartOptions]
        ) -> SyncRemoteRun[R]: ...
        @overload
        def start(
            self,
            workflow: str,
            arguments: Mapping[str, Any] | Sequence[Any] | None = None,
            *,
            version: int | None = None,
            **options: Unpack[StartOptions],
        ) -> SyncRemoteRun[Any]: ...
        def start(self, workflow: Any, *args: Any, **options: Any) -> SyncRemoteRun[Any]:  # type: ignore[misc]
            """See `Remote`."""

        def start_by_name(
            self,
            workflow: str,
            arguments: Mapping[str, Any] | Sequence[Any] | None = None,
            *,
            version: int | None = None,
            **options: Unpack[StartOptions],
        ) -> SyncRemoteRun[Any]:
            """See `Remote`."""

        def get(self, run_id: str) -> SyncRemoteRun[Any]:
            """See `Remote`."""

        def fork(
            self,
            run_id: str,
            *,
            at: str | int | None = None,
            set: Mapping[str, Any] | None = None,
            input: tuple[Any, ...] | Mapping[str, Any] | None = None,
            version: int | None = None,
            id: str | None = None,
            reason: str = "",
        ) -> SyncRemoteRun[Any]:
            """See `Remote`."""

        approvals: SyncRemoteApprovals
        operate = Verb(RemoteVerbs.operate)
        list = Verb(RemoteVerbs.list)
        count = Verb(RemoteVerbs.count)
        info = Verb(RemoteVerbs.info)
        why = Verb(RemoteVerbs.why)
        steps = Verb(RemoteVerbs.steps)
        history = Verb(RemoteVerbs.history)
        recovery = Verb(RemoteVerbs.recovery)
        health = Verb(RemoteVerbs.health)
        result = Verb(RemoteVerbs.result)
        signal = Verb(RemoteVerbs.signal)
        ask = Verb(RemoteVerbs.ask)
        cancel = Verb(RemoteVerbs.cancel)
        retry = Verb(RemoteVerbs.retry)
        pause = Verb(RemoteVerbs.pause)
        resume = Verb(RemoteVerbs.resume)
        skip_step = Verb(RemoteVerbs.skip_step)
        purge = Verb(RemoteVerbs.purge)
