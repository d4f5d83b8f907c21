"""The answers that a handler may return, and their effects."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from outlive._features.machines.wire import StateResult
from outlive._kernel.define.step import UnstorableResultError
from outlive._kernel.journal.value import ValueCodec
from outlive._kernel.model import given
from outlive.errors import UnserialisableError
from outlive.errors.program import StateResultError

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class More(Generic[C]):
    """A stepped state has more to do: it is called again with this cursor, also after a crash."""

    cursor: C


@dataclass(frozen=True, slots=True)
class Pending:
    """A poll found nothing yet: ask again after this delay."""

    delay: float | timedelta

    @property
    def seconds(self) -> float:
        """The delay in seconds."""
        return self.delay.total_seconds() if isinstance(self.delay, timedelta) else self.delay

    def __post_init__(self) -> None:
        given.seconds("Pending", "delay", self.delay, or_zero=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """Reads what the handler of one state returns."""

    machine: str
    state: str
    states: type[enum.Enum]
    data: ValueCodec
    """How the data of the machine is stored."""
    to: frozenset[str] | None = None
    """The only states that it may go to; None if that is not declared."""
    cursor: ValueCodec | None = None
    may_wait: bool = False

    def read(self, data: Any, returned: Any) -> StateResult:
        """The result of a state whose handler left its data like this.

        Raises:
            StateResultError: it returned something else than a state.
            UnserialisableError: its data has no exact stored form.
        """
        returned, data = self._parts(data, returned)
        stored = msgspec.Raw(self.data.encode(data, f"data of machine {self.machine} after {self.state}"))
        if isinstance(returned, self.states):
            return StateResult(to=self._checked(returned), data=stored)
        if isinstance(returned, More) and self.cursor is not None:
            what = f"cursor of state {self.state} of machine {self.machine}"
            return StateResult(data=stored, cursor=msgspec.Raw(self.cursor.encode(returned.cursor, what)))
        if isinstance(returned, Pending) and self.may_wait:
            return StateResult(data=stored, wait=float(returned.seconds))
        raise self.refused(repr(returned), self._wanted())

    def read_undoable(self, data: Any, returned: Any) -> StateResult:
        """Read the answer of a state with an undo: it has returned, so it has had its effect.

        Raises:
            UnstorableResultError: instead, with the data for the undo.
        """
        try:
            return self.read(data, returned)
        except (StateResultError, UnserialisableError) as error:
            _, left = self._parts(data, returned)
            raise UnstorableResultError(error, (left,)) from error

    def refused(self, returned: str, wanted: str) -> StateResultError:
        """Why something else that the user's code returned is of no use."""
        return StateResultError(self.machine, self.state, returned, wanted)

    def state_of(self, returned: Any) -> str:
        """The name of the state that a router returned: other data beside it would be lost.

        Raises:
            StateResultError: it returned something else.
        """
        if not isinstance(returned, self.states):
            raise self.refused(repr(returned), self._wanted_states())
        return self._checked(returned)

    def stay(self, data: Any, cursor: msgspec.Raw | UnsetType) -> StateResult:
        """The result of a handler that does not leave its state by itself."""
        what = f"data of machine {self.machine} after {self.state}"
        return StateResult(data=msgspec.Raw(self.data.encode(data, what)), cursor=cursor)

    def _parts(self, data: Any, returned: Any) -> tuple[Any, Any]:
        """Where to go, and the data as the handler left it."""
        if not isinstance(returned, self.states) and isinstance(returned, tuple) and len(returned) == 2:
            return returned
        return returned, data

    def _checked(self, returned: enum.Enum) -> str:
        if self.to is not None and returned.name not in self.to:
            raise self.refused(repr(returned), self._wanted())
        return returned.name

    def _wanted_states(self) -> str:
        names = sorted(self.to) if self.to is not None else []
        enumeration = self.states.__qualname__
        return " or ".join(f"{enumeration}.{name}" for name in names) or f"a state of {enumeration}"

    def _wanted(self) -> str:
        wanted = f"{self._wanted_states()}, or ({self.states.__qualname__}, data)"
        wanted += ", or outlive.machine.More(cursor)" if self.cursor is not None else ""
        return wanted + (", or outlive.machine.Pending(delay)" if self.may_wait else "")


def unchanged(result: StateResult, before: msgspec.Raw) -> StateResult:
    """The result without data that have not changed: a cursor that moves a million times need not carry them."""
    if not result.to and isinstance(result.data, msgspec.Raw) and bytes(result.data) == bytes(before):
        return msgspec.structs.replace(result, data=UNSET)
    return result
