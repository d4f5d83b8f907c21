"""Requests to people and their decisions, as journals keep them and as users see them.

`ApprovalRequest` and `Decision` are stored, so fields may be added to them and none may change its meaning. `Approval`
and `ApprovalNotice` are what user code holds in its hands; both may be arguments and results of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

F = TypeVar("F")

NoticeKind = Literal["requested", "reminder", "escalated"]


class ApprovalRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A request of a run to people: everything that a person without its code must know to answer."""

    title: str = ""
    form: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The JSON Schema of the form; unset when there is none to fill in."""
    assignees: tuple[str, ...] = ()
    deadline_at: int | None = None
    remind_every: int | None = None
    """Microseconds."""
    escalate_at: int | None = None
    escalate_to: tuple[str, ...] = ()


class OpenRequest(msgspec.Struct, frozen=True, gc=False):
    """A request that waits for a decision, as the row of its run has it."""

    call: str
    """The call of the request."""
    assignees: tuple[str, ...] = ()
    """The people who are asked by now."""


class Decision(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The decision of one person."""

    id: str
    """Made with the decision: its sender knows it again."""
    nonce: int
    """The nonce of the tree that was asked. A run that continues as a new one keeps its id and may make an equal
    request, and a decision that was on its way to the old run is not for the new one."""
    approved: bool
    by: str
    at: int
    comment: str = ""
    form: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Approval(msgspec.Struct, Generic[F], frozen=True):
    """The decision of a person. It is true if they approved: `if answer: ...`."""

    name: str
    approved: bool
    by: str
    at: datetime
    """When it was made."""
    comment: str = ""
    form: F | None = None
    """The form as it was filled in; a rejection may come without."""
    is_first: bool = True
    """For the person who decides: False if another had decided before, and this is that decision."""

    def __bool__(self) -> bool:
        # Without this a rejection would be as true as every object, and `if answer:` would let it pass.
        return self.approved

    def __repr__(self) -> str:
        return f"<Approval {self.name}: {'approved' if self.approved else 'rejected'} by {self.by}>"


if TYPE_CHECKING:
    # At run time there is one class. Type checkers see two, so that `form` is there after `if answer:`.
    class Approved(Approval[F], frozen=True, kw_only=True):
        """The decision of a person who approved."""

        form: F

        def __bool__(self) -> Literal[True]: ...

    class Rejected(Approval[F], frozen=True):
        """The decision of a person who rejected."""

        def __bool__(self) -> Literal[False]: ...

    AnyApproval = Approval[Any]
else:
    AnyApproval = Approval


@dataclass(frozen=True, slots=True)
class ApprovalNotice:
    """The argument of the `notify` step of an approval, which notifies people."""

    run_id: str
    name: str
    kind: NoticeKind
    title: str
    assignees: tuple[str, ...]
    """The people who are asked by now."""
    deadline: datetime | None
    request: str
    """The id of the request, for `engine.approvals.approve(..., request=...)`."""
