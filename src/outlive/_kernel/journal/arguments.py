"""The arguments of a call as one JSON value.

Positional arguments alone are a JSON array; with keyword arguments it is `{"a": [...], "k": {...}}`. Defaults are not
written: what the caller left out, the called function fills in. The CRC-32 of these bytes is the digest that lets a
replay see, and report, that the code now asks with other arguments.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from outlive._kernel.journal.value import Stored, ValueCodec, codec_for
from outlive.errors import UnreadableError, WrongArgumentsError
from outlive.errors.program import UnstorableTypeError

split_positional = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Named(msgspec.Struct):
    a: list[msgspec.Raw]
    k: dict[str, msgspec.Raw]


split_named = msgspec.json.Decoder(_Named).decode
_name = msgspec.json.Encoder().encode


NONE = b"[]"
"""A call without arguments."""


class Signature:
    """How one function's arguments and result are stored, by its annotations."""

    def __init__(self, fn: Callable[..., Any], name: str, *, skip: int = 0, without: Collection[str] = ()) -> None:
        """`skip` and `without`: the first parameters, and those by name, that are not of the caller to give."""
        self._name = name
        self._signature = inspect.signature(fn)
        hints = resolve_hints(fn)
        given = list(self._signature.parameters.values())[skip:]
        parameters = [each for each in given if each.name not in without]
        self._signature = self._signature.replace(parameters=parameters)
        self._positional: list[ValueCodec] = []
        self._count = 0
        """How many positional parameters there are."""
        self._by_name: dict[str, ValueCodec] = {}
        self._rest = codec_for(Any)
        for parameter in parameters:
            codec = _codec_of(hints.get(parameter.name, Any), f"argument {parameter.name!r} of {name}")
            self._by_name[parameter.name] = codec
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                self._positional.append(codec)
            elif parameter.kind is parameter.VAR_POSITIONAL:
                self._rest = codec
        self.result: ValueCodec = _codec_of(hints.get("return", Any), f"the result of {name}")
        self._count = len(self._positional)
        self._needs_keywords = any(each.kind is each.KEYWORD_ONLY and each.default is each.empty for each in parameters)

    @property
    def takes_one(self) -> bool:
        """Whether it can be called with one positional argument."""
        try:
            self._signature.bind(None)
        except TypeError:
            return False
        return True

    @property
    def schemas(self) -> Mapping[str, dict[str, Any]]:
        """The JSON Schemas of parameters that say more than their annotations."""
        return {}

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters that are the caller's to give."""
        return list(self._signature.parameters.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in order."""
        return tuple(self._signature.parameters)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The arguments as JSON.

        Raises:
            WrongArgumentsError: the function does not take these arguments.
            UnserialisableError: one of them has no exact stored form.
        """
        # Loops and no comprehensions, and no helper: every step comes by here.
        if kwargs or len(args) != self._count or self._needs_keywords:
            self.check(args, kwargs)
        parts: list[bytes] = []
        for value in args:
            place = len(parts)
            codec = self._positional[place] if place < self._count else self._rest
            parts.append(codec.encode(value, f"argument {place + 1} of {self._name}"))
        array = b"[" + b",".join(parts) + b"]"
        if not kwargs:
            return array
        named = b",".join(
            _name(key) + b":" + self._codec_of(key).encode(value, f"argument {key!r} of {self._name}")
            for key, value in kwargs.items()
        )
        return b'{"a":' + array + b',"k":{' + named + b"}}"

    def carried(self, data: bytes, *, freely: bool) -> bytes:
        """The arguments of a run of another version, for a run of this one; `freely` as `gives_freely` says it of the
        caller that wants that run."""
        return data

    def decode(self, data: Stored) -> tuple[list[Any], dict[str, Any]]:
        """The arguments again.

        Raises:
            UnreadableError: the function's annotations do not fit what is stored.
        """
        what = f"an argument of {self._name}"
        raws: list[msgspec.Raw] = []
        named: dict[str, msgspec.Raw] = {}
        try:
            if bytes(memoryview(data)[:1]) != b"[":
                both = split_named(data)
                raws, named = both.a, both.k
            elif data != NONE:
                raws = split_positional(data)
            if named or len(raws) != self._count or self._needs_keywords:
                self.check(raws, named)
        except (msgspec.DecodeError, WrongArgumentsError) as error:
            what = f"the arguments of {self._name}"
            reason = error.reason if isinstance(error, WrongArgumentsError) else str(error)
            raise UnreadableError(what, f"{self._name}{self._signature}", reason) from error
        args: list[Any] = []
        for raw in raws:
            codec = self._positional[len(args)] if len(args) < self._count else self._rest
            args.append(codec.decode(raw, what))
        kwargs = {}
        for key, raw in named.items():
            kwargs[key] = self._codec_of(key).decode(raw, what)
        return args, kwargs

    def by_name(self, data: Stored) -> bytes:
        """Encoded arguments as a JSON object, by the names of the parameters: for people, and so that fields can be
        hidden by name. What does not fit the parameters is listed as `arguments`."""
        raws: list[msgspec.Raw] = []
        named: dict[str, msgspec.Raw] = {}
        if bytes(memoryview(data)[:1]) == b"[":
            raws = split_positional(data)
        else:
            both = split_named(data)
            raws, named = both.a, both.k
        try:
            bound = self._signature.bind(*raws, **named)
        except TypeError:
            return msgspec.json.encode({"arguments": raws, **named})
        return msgspec.json.encode(bound.arguments)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Check that the function can be called with these positional and keyword arguments.

        Raises:
            WrongArgumentsError: it does not.
        """
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise WrongArgumentsError(self._name, str(self._signature), str(error)) from None

    def _codec_of(self, name: str) -> ValueCodec:
        return self._by_name.get(name) or codec_for(Any)


def _codec_of(annotation: Any, what: str) -> ValueCodec:
    try:
        return codec_for(annotation)
    except UnstorableTypeError as error:
        raise UnstorableTypeError(what, error.type_name, error.reason) from error.__cause__


def plain_function(fn: Any) -> Any:
    """The function that a partial, or an object that can be called, calls in the end."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn if inspect.isroutine(fn) or isinstance(fn, type) else type(fn).__call__


def resolve_hints(fn: Callable[..., Any]) -> dict[str, Any]:
    """The annotations as types; a name that cannot be resolved counts as no annotation."""
    fn = plain_function(fn)
    try:
        return typing.get_type_hints(fn, include_extras=True)
    except Exception:  # One bad name (imported for type checkers only) spoils the call for all of them.
        return {name: hint for name, hint in _resolve_one_by_one(fn) if not isinstance(hint, str)}


def _resolve_one_by_one(fn: Callable[..., Any]) -> list[tuple[str, Any]]:
    resolved = []
    for name, hint in inspect.get_annotations(fn).items():
        holder = type("holder", (), {"__annotations__": {name: hint}, "__module__": fn.__module__})
        try:
            resolved.append((name, typing.get_type_hints(holder, fn.__globals__, include_extras=True)[name]))
        except Exception:
            resolved.append((name, Any))
    return resolved
