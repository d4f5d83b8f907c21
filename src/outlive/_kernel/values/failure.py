"""Failures, as people and programs see them."""

from __future__ import annotations

from typing import Any, overload

import msgspec

from outlive._kernel.journal.readable import public_of
from outlive._kernel.model import Failure as StoredFailure


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of a run, a step or an item."""

    type: str
    """The class of what went wrong, with its module: `shop.errors.CardDeclined`."""
    message: str = ""
    """The message of the exception."""
    wrapper: str = ""
    """The class in which it reached the workflow, if that is another one: that of a step whose own class the workflow
    does not know."""
    notes: list[str] = []
    """Its notes, as `add_note` adds them."""
    attributes: dict[str, Any] = {}
    """The public attributes of the exception, as plain JSON."""
    cause: Failure | None = None
    """The failure from which it was raised."""
    traceback: str = ""
    """Empty in lists."""

    @property
    def name(self) -> str:
        """The class without its module: `CardDeclined`."""
        return self.type.rpartition(".")[2]

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.message else self.name

    def __repr__(self) -> str:
        return f"<Failure {self}>"


@overload
def failure_of(stored: StoredFailure, *, with_traceback: bool = True) -> Failure: ...
@overload
def failure_of(stored: StoredFailure | None, *, with_traceback: bool = True) -> Failure | None: ...
def failure_of(stored: StoredFailure | None, *, with_traceback: bool = True) -> Failure | None:
    """A failure of a journal or of a row, as users see it."""
    if stored is None:
        return None
    return Failure(
        type=stored.error,
        message=stored.message,
        wrapper=stored.class_name if stored.error != stored.class_name else "",
        notes=list(stored.notes),
        attributes=public_of(stored.attributes),
        cause=failure_of(stored.cause, with_traceback=with_traceback),
        traceback=stored.traceback if with_traceback else "",
    )


def stored_failure(failure: Failure) -> StoredFailure:
    """The failure in the form in which an engine raises it."""
    return StoredFailure(
        type=failure.wrapper or failure.type,
        message=failure.message,
        attributes=failure.attributes | ({"type_name": failure.type} if failure.wrapper else {}),
        cause=None if failure.cause is None else stored_failure(failure.cause),
        notes=tuple(failure.notes),
        traceback=failure.traceback,
    )
