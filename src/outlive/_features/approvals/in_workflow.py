"""`outlive.wait_for_approval`: ask people, and go on with what one of them decided.

Beside the wait there may be a watch: it tells people (`notify`), reminds them, asks others when there is no answer, and
ends the wait at its deadline. All of it is ordinary workflow code on ordinary durable timers and steps, in a scope of
its own: a run that is killed in the middle goes on with the same request.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

import msgspec

from outlive._kernel.define.step import Step
from outlive._kernel.journal.form import form_type
from outlive._kernel.model import given
from outlive._kernel.model.approval import Approval, ApprovalNotice, ApprovalRequest, Decision, NoticeKind
from outlive._kernel.model.given import Span
from outlive._kernel.model.instant import MICROSECONDS, instant_of, microseconds_of
from outlive._kernel.replay.approval import ask, decision, escalate, expire, watch_scope
from outlive._kernel.replay.ask import this_execution
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE, OpenApproval
from outlive.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from outlive._kernel.model.approval import Approved, Rejected

F = TypeVar("F")

WHERE = "outlive.wait_for_approval"


class _Options(TypedDict, total=False):
    title: str
    assignees: Sequence[str]
    deadline: Span | datetime | None
    remind_every: Span | None
    escalate_after: Span | None
    escalate_to: Sequence[str]
    notify: Step[[ApprovalNotice], Any] | None


@overload
async def wait_for_approval(
    name: str, *, form: None = None, **options: Unpack[_Options]
) -> Approved[None] | Rejected[None]: ...
@overload
async def wait_for_approval(name: str, *, form: type[F], **options: Unpack[_Options]) -> Approved[F] | Rejected[F]: ...
async def wait_for_approval(
    name: str,
    *,
    title: str = "",
    form: Any = None,
    assignees: Sequence[str] = (),
    deadline: Span | datetime | None = None,
    remind_every: Span | None = None,
    escalate_after: Span | None = None,
    escalate_to: Sequence[str] = (),
    notify: Step[[ApprovalNotice], Any] | None = None,
) -> Any:
    """Wait, durably, until a person approves or rejects it: see `engine.approvals.list`.

    Args:
        name: what deciders call it.
        title: the question, for people.
        form: the type of what they fill in: a dataclass, a msgspec struct or a pydantic model.
        assignees: who is asked; for people and for `notify`, everyone who may call the engine may decide.
        deadline: seconds, a timedelta or an aware datetime; after it the request is closed.
        remind_every: seconds or a timedelta between two reminders.
        escalate_after: seconds or a timedelta until `escalate_to` are asked too.
        escalate_to: the people to ask then.
        notify: a step that is called with an `ApprovalNotice` when people are asked, reminded, and escalated to. If it
            fails for good, that is in the journal, and the approval is still open.

    Raises:
        ApprovalExpiredError: the deadline has passed; it is a `TimeoutError`.
    """
    execution = this_execution("wait_for_approval")
    execution.refuse_if_dropped()
    wanted = given.label(WHERE, name, like="refund")
    now_at = execution.loop.now_at
    kind = None if form is None else form_type(given.kind(WHERE, "form", form))
    every = _microseconds("remind_every", remind_every)
    after = _microseconds("escalate_after", escalate_after)
    if (after is None) != (not escalate_to):
        raise ConfigurationError("escalate_after= and escalate_to= go together: when to ask others, and whom")
    if every is not None and notify is None:
        raise ConfigurationError("remind_every= needs notify=, a step that tells people")
    request = ApprovalRequest(
        title=given.text(WHERE, "title", title, like="Refund?", least=0, most=given.TEXT_CHARACTERS_MAX),
        form=msgspec.UNSET if kind is None else msgspec.Raw(kind.schema_json),
        assignees=given.texts(WHERE, "assignees", assignees, like="finance"),
        deadline_at=_deadline_at(deadline, now_at),
        remind_every=every,
        escalate_at=None if after is None else now_at + after,
        escalate_to=given.texts(WHERE, "escalate_to", escalate_to, like="boss"),
    )
    _check_notify(notify)
    answer: tuple[Decision, Any] | str = ""
    while isinstance(answer, str):
        asked = ask(execution, wanted, request, again=answer)
        watch = _Watch(execution, asked, request, notify)
        try:
            answer = await decision(execution, asked, kind)
        finally:
            watch.end()
    decided, filled = answer
    return Approval(
        name=wanted,
        approved=decided.approved,
        by=decided.by,
        at=instant_of(decided.at),
        comment=decided.comment,
        form=filled,
    )


class _Watch:
    """The tasks beside the wait for one request: the deadline, notices, reminders, the escalation."""

    def __init__(
        self,
        execution: Execution,
        asked: OpenApproval,
        request: ApprovalRequest,
        notify: Step[[ApprovalNotice], Any] | None,
    ) -> None:
        self._execution = execution
        self._asked = asked
        self._request = request
        self._notify = notify
        self._run_id = SCOPE.get().frame.id
        self._asked_at = execution.loop.now_at
        self._alarms: list[Any] = []
        self._tasks: list[asyncio.Task[None]] = []
        context = contextvars.copy_context()
        context.run(SCOPE.set, watch_scope(asked))
        context.run(self._begin)

    def _begin(self) -> None:
        loop, request = self._execution.loop, self._request
        if request.deadline_at is not None:
            self._alarms.append(loop.call_at(request.deadline_at / MICROSECONDS, expire, self._asked))
        if request.escalate_at is not None:
            self._alarms.append(loop.call_at(request.escalate_at / MICROSECONDS, self._escalate))
        if self._notify is not None:
            self._tasks.append(loop.create_task(self._remind(self._notify)))

    async def _remind(self, notify: Step[[ApprovalNotice], Any]) -> None:
        await self._tell(notify, "requested")
        every = self._request.remind_every
        while every is not None:
            # Reminders that a slow notify has missed are not made good: five reminders at once would help no one.
            passed = self._execution.loop.now_at - self._asked_at
            wait = every - passed % every
            await asyncio.sleep(wait / MICROSECONDS)
            await self._tell(notify, "reminder")

    def _escalate(self) -> None:
        if self._asked.future.done():
            return
        escalate(self._execution, self._asked, self._request.escalate_to)
        if self._notify is not None:
            self._tasks.append(self._execution.loop.create_task(self._tell(self._notify, "escalated")))

    async def _tell(self, notify: Step[[ApprovalNotice], Any], kind: NoticeKind) -> None:
        asked = self._asked
        notice = ApprovalNotice(
            run_id=self._run_id,
            name=asked.name,
            kind=kind,
            title=asked.title,
            assignees=asked.assignees,
            deadline=None if asked.deadline_at is None else instant_of(asked.deadline_at),
            request=asked.call,
        )
        # Its failure is in the journal. People can still decide, and the next reminder tries again.
        with suppress(Exception):
            await notify(notice)

    def end(self) -> None:
        """The wait is over, in whatever way."""
        for each in (*self._alarms, *self._tasks):
            each.cancel()


def _check_notify(notify: Any) -> None:
    """Whether the step can be given a notice: that is found before anybody is asked."""
    if notify is None:
        return
    if not isinstance(notify, Step):
        raise ArgumentTypeError(WHERE, "notify", notify, "give a step, a function decorated with @outlive.step")
    sample = ApprovalNotice("", "", "requested", "", (), None, "")
    notify.spec.signature.encode((sample,), {})


def _deadline_at(deadline: Span | datetime | None, now_at: int) -> int | None:
    if isinstance(deadline, datetime):
        return microseconds_of(given.instant(WHERE, "deadline", deadline))
    after = _microseconds("deadline", deadline)
    return None if after is None else now_at + after


def _microseconds(name: str, wanted: Span | None) -> int | None:
    return None if wanted is None else round(given.seconds(WHERE, name, wanted) * MICROSECONDS)
