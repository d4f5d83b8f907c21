"""Between plain JSON data, which is all that a flow knows, and the types of the steps and workflows that it uses.

A flow gives arguments by name, as JSON. They go into the journal as they are, and the signature of the step reads them,
so a step gets its dataclass or model. What it returns is written by its own type, and the flow reads the JSON of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import Parameter
from typing import Any

import msgspec

from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.value import TAG_BYTES, TAGGED, Stored, ValueCodec
from outlive.errors import UnreadableError, UnserialisableError

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_DOLLAR = b'"$":'


def plain_of(data: Stored, what: str) -> Any:
    """Plain data of what a step or a run returned, as it is stored.

    Raises:
        UnreadableError: it is not JSON.
    """
    try:
        if TAG_BYTES in memoryview(data).tobytes():
            # A value without a type may be written with tags: a datetime, a tuple. Plain data has text and lists for
            # them. A field that is really called `$` is not a tag.
            with suppress(UnreadableError, msgspec.MsgspecError, TypeError, ValueError):
                return _decode(_encode(TAGGED.decode(data, what)))
        return _decode(data)
    except (msgspec.MsgspecError, TypeError) as error:
        raise UnreadableError(what, "plain data", str(error)) from error


def plain_value(value: Any, what: str) -> Any:
    """Plain data of a value that a signal, an approval or a person gave.

    Raises:
        UnserialisableError: it has none.
    """
    try:
        return _decode(_encode(value))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise UnserialisableError(
            what, "$", type(value).__qualname__, f"a flow has plain JSON data: {error}"
        ) from error


class PlainResult:
    """The result of a step for a flow: written by the type of the step, read as plain data."""

    def __init__(self, own: ValueCodec) -> None:
        self.encode = own.encode

    def decode(self, data: Stored, what: str) -> Any:
        """See `ValueCodec`."""
        return plain_of(data, what)


class PlainCodec:
    """Plain data, written and read as it is."""

    def encode(self, value: Any, what: str) -> bytes:
        """See `ValueCodec`."""
        try:
            return _encode(value)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            reason = f"a flow has plain JSON data: {error}"
            raise UnserialisableError(what, "$", type(value).__qualname__, reason) from error

    def decode(self, data: Stored, what: str) -> Any:
        """See `ValueCodec`."""
        return plain_of(data, what)


class PlainArguments(Signature):
    """The signature of a step or workflow for a flow: given plain data, by name; taken by its own types."""

    def __init__(self, own: Signature, name: str, *, is_checked: bool = False) -> None:
        """`is_checked`: read them by their types before they are written, as nothing does later on that could fail the
        step for it: the input of a child run."""
        self.__dict__.update(own.__dict__)
        self._name = name
        self._own = own
        self._is_checked = is_checked
        self.result: ValueCodec = PlainResult(own.result)
        by_position = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        self._order = [each.name for each in own.parameters if each.kind in by_position]

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """See `Signature`: by position as far as all are given, and the rest by name."""
        values = list(args)
        left = kwargs
        if kwargs:
            for name in self._order[len(args) :]:
                if name not in kwargs:
                    break
                values.append(kwargs[name])
            if len(values) - len(args) < len(kwargs):
                taken = self._order[len(args) : len(values)]
                left = {name: value for name, value in kwargs.items() if name not in taken}
            else:
                left = {}
        if left or len(values) != self._count or self._needs_keywords:
            self.check(values, left)
        data = _encode({"a": values, "k": left} if left else values)
        if _DOLLAR in data:
            values = [self._marked(name, each) for name, each in zip(self._order, values, strict=False)]
            left = {name: self._marked(name, each) for name, each in left.items()}
            data = _encode({"a": values, "k": left} if left else values)
        if self._is_checked:
            self._own.decode(data)
        return data

    def _marked(self, name: str, value: Any) -> Any:
        """An argument with a field that is called `$`, which a parameter without a type would take for a tag."""
        return msgspec.Raw(TAGGED.encode(value, name)) if self._codec_of(name) is TAGGED else value

    def decode(self, data: Stored) -> tuple[list[Any], dict[str, Any]]:
        """See `Signature`."""
        return self._own.decode(data)


class RenderedArguments(PlainArguments):
    """The arguments of an undo that the document writes: made of the result of the step when it is undone."""

    def __init__(self, own: Signature, name: str, render: Callable[[Any], Mapping[str, Any]]) -> None:
        super().__init__(own, name)
        self._render = render

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """See `Signature`; the one argument is the result of the step that is undone."""
        return super().encode((), dict(self._render(args[0])))


def find_misfit(signature: Signature, names: Mapping[str, Any] | None) -> str:
    """The reason why these arguments cannot be given by name; empty if they can."""
    taken = signature.parameters
    if names is None or any(each.kind is each.VAR_KEYWORD for each in taken):
        return ""
    known = [each.name for each in taken if each.kind is not each.VAR_POSITIONAL]
    unknown = [name for name in names if name not in known]
    if unknown:
        return f"it has no parameter {unknown[0]!r}; it takes {', '.join(known) or 'no arguments'}"
    missing = [
        each.name for each in taken if each.default is each.empty and each.name in known and each.name not in names
    ]
    return f"it needs {', '.join(missing)}, which `with` does not give" if missing else ""
