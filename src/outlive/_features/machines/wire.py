"""The form of a machine's rows, and of the arguments of its steps: pieces of JSON."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from outlive._kernel.journal.arguments import Signature, split_named, split_positional
from outlive._kernel.journal.value import Stored, StructCodec, ValueCodec
from outlive.errors import UnreadableError

S = TypeVar("S", bound=enum.Enum)
D = TypeVar("D")

NULL = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class MachineResult(Generic[S, D]):
    """How a machine ended: in which exit, with what data."""

    state: S
    data: D


class StateResult(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How one call of a state's handler ended."""

    to: str = ""
    """The name of the next state; empty when it stays in this one."""
    data: msgspec.Raw | UnsetType = UNSET
    """The data after the handler; left out when it stays and has not changed it."""
    wait: float | None = None
    """For a poll that is pending: seconds until the next one."""
    cursor: msgspec.Raw | UnsetType = UNSET
    """For a stepped state that has more to do: how far it came."""

    def data_after(self, before: msgspec.Raw) -> msgspec.Raw:
        """The data after the handler."""
        return self.data if isinstance(self.data, msgspec.Raw) else before


STATE_RESULT = StructCodec(StateResult, "the outcome of a state")


class _StoredResult(msgspec.Struct):
    state: str
    data: msgspec.Raw = NULL


class ResultCodec:
    """The result of a machine: `{"state": "DONE", "data": ...}`."""

    def __init__(self, states: type[enum.Enum], data: ValueCodec) -> None:
        self._states = states
        self._data = data
        self._decode = msgspec.json.Decoder(_StoredResult).decode
        self._encode = msgspec.json.Encoder().encode

    def encode(self, value: StateResult | MachineResult[Any, Any], what: str) -> bytes:
        """See `ValueCodec`; given is the result of the state that led to the exit, or a result that was read."""
        if isinstance(value, MachineResult):
            return self._encode(_StoredResult(value.state.name, msgspec.Raw(self._data.encode(value.data, what))))
        assert isinstance(value.data, msgspec.Raw)
        return self._encode(_StoredResult(value.to, value.data))

    def decode(self, data: Stored, what: str) -> MachineResult[Any, Any]:
        """See `ValueCodec`."""
        try:
            stored = self._decode(data)
            state = self._states[stored.state]
        except (msgspec.MsgspecError, KeyError) as error:
            raise UnreadableError(
                what, f"a result of a machine over {self._states.__qualname__}", str(error)
            ) from error
        return MachineResult(state, self._data.decode(stored.data, what))


def result_type(exits: Collection[enum.Enum], data: Any) -> Any:
    """The type of what `ResultCodec` stores, for the description of a machine."""
    names: Any = Literal[tuple(state.name for state in exits)] if exits else str
    return msgspec.defstruct("MachineResult", [("state", names), ("data", data)])


# -- Arguments ---------------------------------------------------------------------------------------------------------


class MachineSignature(Signature):
    """A machine takes its data and hands it, unread, to its driver."""

    def __init__(self, name: str, data: Any, result: ValueCodec, *, is_required: bool) -> None:
        def required(data: Any) -> None: ...

        def optional(data: Any = None) -> None: ...

        taken = required if is_required else optional
        taken.__annotations__ = {"data": data}
        super().__init__(taken, name)
        self.result = result

    def decode(self, data: Stored) -> tuple[list[Any], dict[str, Any]]:
        """See `Signature`: read, to see that it can be, and then given on as it is stored."""
        super().decode(data)
        if bytes(memoryview(data)[:1]) == b"[":
            pieces = split_positional(data)
        else:
            named = split_named(data)
            pieces = [*named.a, *named.k.values()]
        return [pieces[0] if pieces else NULL], {}


class Pieces(Signature):
    """The arguments of a machine's own steps: given as JSON, taken as values."""

    def __init__(
        self,
        read: Callable[[Stored], tuple[list[Any], dict[str, Any]]],
        result: ValueCodec,
    ) -> None:
        self._read = read
        self.result = result

    @property
    def names(self) -> tuple[str, ...]:
        """The first piece is the data of the machine; the others have no names."""
        return ("data",)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The pieces, side by side. What an undo is given is the result of its state: it takes the data of it."""
        pieces = [bytes(each.data if isinstance(each, StateResult) else each) for each in args]  # type: ignore[arg-type]
        return b"[" + b",".join(pieces) + b"]"

    def decode(self, data: Stored) -> tuple[list[Any], dict[str, Any]]:
        """The values."""
        return self._read(data)

    def by_name(self, data: Stored) -> bytes:
        """The data of the machine, and the other pieces as `arguments`."""
        first, *others = split_positional(data)
        return msgspec.json.encode({"data": first, **({"arguments": others} if others else {})})


def reader(
    name: str, codecs: Sequence[ValueCodec], *, keeps_raw: bool = False
) -> Callable[[Stored], tuple[list[Any], dict[str, Any]]]:
    """Reads pieces by these codecs, in order; `keeps_raw` adds the first one as it is stored, behind all others."""

    def read(data: Stored) -> tuple[list[Any], dict[str, Any]]:
        pieces = split_positional(data)
        what = f"what {name} is given"
        values = [codec.decode(piece, what) for codec, piece in zip(codecs, pieces, strict=True)]
        return [*values, *pieces[: int(keeps_raw)]], {}

    return read
