"""Typed values to JSON and back: exactly, or refused when written.

`codec_for(annotation)` picks the way once per annotation:

* no annotation, `Any`, bare `dict` and `list`: tagged JSON (`outlive._kernel.journal.tagged`);
* anything else: msgspec by type (dataclasses, msgspec structs, enums, datetime, Decimal, UUID, bytes, collections),
  with pydantic models through their own methods (`outlive._kernel.journal.modelled`).

msgspec turns some values into others without a word (a tuple in a `list` field, a subclass, a datetime under `Any`).
So a typed value is decoded again before it is accepted and must equal what went in, in value and type all the way down;
that costs a few microseconds for a dataclass. Whatever fails is reported with the path to the offending part.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from types import CoroutineType
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

import msgspec

from outlive._kernel.journal.modelled import Adapter, advice, is_for_pydantic, is_model, read_model, write_model
from outlive._kernel.journal.tagged import (
    DEPTH_MAX,
    NOT_AWAITED,
    find_unwritable,
    from_plain,
    has_plain_zone,
    is_plain,
    to_plain,
)
from outlive._kernel.model.why import Why
from outlive.errors import ConfigurationError, UnreadableError, UnserialisableError
from outlive.errors.program import UnstorableTypeError

T = TypeVar("T")
S = TypeVar("S")

_UNTYPED: frozenset[Any] = frozenset({Any, object, dict, list, typing.Dict, typing.List})  # noqa: UP006
_EXACT: tuple[type, ...] = (int, str, bool, type(None))
"""Types whose JSON needs no second look: what msgspec accepts for them comes back as it was."""

_LEAVES: frozenset[type] = frozenset({int, str, bool, type(None), float, bytes, Decimal, UUID, date, timedelta})
"""Types without parts: if two values are equal and of such a type, they are the same."""

TAG_BYTES = b'{"$":'

Stored = bytes | msgspec.Raw


class ValueCodec(Protocol):
    """Turns values of one declared type into JSON and back."""

    def encode(self, value: Any, what: str) -> bytes:
        """JSON that decodes to exactly this value.

        Raises:
            UnserialisableError: there is none; `what` names the value in the message.
        """

    def decode(self, data: Stored, what: str) -> Any:
        """The value again.

        Raises:
            UnreadableError: the JSON is not of this type.
        """


class TaggedCodec:
    """The codec of values without a declared type."""

    def __init__(self) -> None:
        self.encode_plain = msgspec.json.Encoder().encode
        self.decode_plain = msgspec.json.Decoder().decode

    def encode(self, value: Any, what: str) -> bytes:
        """See `ValueCodec`."""
        try:
            return self.encode_plain(to_plain(value, what))
        except (UnicodeEncodeError, RecursionError, OverflowError) as error:
            path, part = find_unwritable(value) or ("$", value)
            raise UnserialisableError(what, path, type(part).__qualname__, str(error)) from error

    def encode_sent(self, value: Any, what: str) -> bytes:
        """JSON as `encode` writes it, of what a stranger may have sent: a large plain value holds the loop for less."""
        if is_plain(value):
            with suppress(UnicodeEncodeError):  # `encode` says which text it is.
                return self.encode_plain(value)
        return self.encode(value, what)

    def decode(self, data: Stored, what: str) -> Any:
        """See `ValueCodec`."""
        try:
            return from_plain(self.decode_plain(data))
        except (msgspec.DecodeError, KeyError, ValueError, TypeError) as error:
            raise UnreadableError(what, "a plain value", str(error)) from error


class ContainerCodec(TaggedCodec):
    """The codec of messages that are to be a dict or a list of anything."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self._kind = kind

    def encode(self, value: Any, what: str) -> bytes:
        """See `ValueCodec`."""
        if not isinstance(value, self._kind):
            wanted = f"give a value of type {self._kind.__name__}, not {_short(value)}"
            raise UnserialisableError(what, "$", type(value).__qualname__, wanted)
        return super().encode(value, what)

    def decode(self, data: Stored, what: str) -> Any:
        """See `ValueCodec`."""
        value = super().decode(data, what)
        if not isinstance(value, self._kind):
            raise UnreadableError(what, self._kind.__name__, f"it is of type {type(value).__qualname__}")
        return value


class TypedCodec:
    """The codec of values with a declared type that msgspec knows."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._exact = next((kind for kind in _EXACT if annotation is kind), None)
        self._has_set = _has_set(annotation)
        self._encode = msgspec.json.Encoder(enc_hook=write_custom).encode
        self._decode = msgspec.json.Decoder(annotation, dec_hook=read_custom).decode

    def encode(self, value: Any, what: str) -> bytes:
        """See `ValueCodec`."""
        try:
            # Equal sets must be equal bytes whatever the hash seed of the process is.
            data = self._encode(_sort_sets(value, self._encode) if self._has_set else value)
        except Exception as error:  # enc_hook and the user's own properties may raise anything.
            raise self._refusal(value, what, str(error)) from error
        if type(value) is not self._exact:
            self._check_round_trip(value, data, what)
        return data

    def decode(self, data: Stored, what: str) -> Any:
        """See `ValueCodec`."""
        try:
            return self._decode(data)
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            if TAG_BYTES in memoryview(data).tobytes():
                return self._decode_tagged(data, what)
            raise UnreadableError(what, type_name(self._annotation), str(error)) from error

    def _decode_tagged(self, data: Stored, what: str) -> Any:
        """A sender who knew no type wrote tagged JSON: what it stands for may still be of this type."""
        try:
            return msgspec.convert(TAGGED.decode(data, what), self._annotation, dec_hook=read_custom)
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            raise UnreadableError(what, type_name(self._annotation), str(error)) from error

    def _check_round_trip(self, value: Any, data: bytes, what: str) -> None:
        try:
            back = self._decode(data)
        except Exception as error:  # dec_hook runs the user's validators.
            raise self._mismatch(value, what, error) from error
        if back != value or not _is_exact(back, value):
            path, part, other = _first_difference(value, back)
            reason = f"would come back as {type(other).__qualname__} {_short(other)}{advice(type(part), type(other))}"
            raise UnserialisableError(what, path, type(part).__qualname__, reason)

    def _refusal(self, value: Any, what: str, reason: str) -> UnserialisableError:
        path, part = self._culprit(value, "$", DEPTH_MAX)
        return UnserialisableError(what, path, type(part).__qualname__, reason)

    def _mismatch(self, value: Any, what: str, error: Exception) -> UnserialisableError:
        """An error for a value whose type differs from the annotation; it names the part that does not fit."""
        path, part = self._culprit(value, "$", DEPTH_MAX)
        wanted = f"give a value of type {type_name(self._annotation)}, not {_short(part)} ({error})"
        return UnserialisableError(what, path, type(part).__qualname__, wanted)

    def _culprit(self, value: Any, path: str, depth: int) -> tuple[str, Any]:
        """The innermost part that has no stored form; in a circle there is none."""
        for inner_path, part in _walk(value, path) if depth else ():
            try:
                self._encode(part)
            except Exception:
                return self._culprit(part, inner_path, depth - 1)
        return path, value


class AdaptedCodec(TypedCodec):
    """The codec of values made of pydantic models that msgspec cannot describe, such as a union of two."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._exact = None
        self._has_set = False
        adapter = Adapter(annotation)
        self._encode = lambda value: TAGGED.encode_plain(adapter.write(value, type_name(annotation)))
        self._decode = lambda data: adapter.read(TAGGED.decode_plain(data))

    def _decode_tagged(self, data: Stored, what: str) -> Any:
        raise UnreadableError(what, type_name(self._annotation), "no part of the type fits it")

    def _check_round_trip(self, value: Any, data: bytes, what: str) -> None:
        """Frameworks read their own messages in a more exact form, with nothing lost: that form must come back."""
        try:
            back = self._decode(data)
        except Exception as error:  # It runs the user's validators.
            raise self._mismatch(value, what, error) from error
        super()._check_round_trip(back if _is_normal_form(back, value) else value, data, what)


class StructCodec:
    """The codec of structs of our own, which need no look at what comes back."""

    def __init__(self, kind: Any, described: str) -> None:
        self._described = described
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(kind).decode

    def encode(self, value: Any, what: str) -> bytes:
        """See `ValueCodec`."""
        return self._encode(value)

    def decode(self, data: Stored, what: str) -> Any:
        """See `ValueCodec`."""
        try:
            return self._decode(data)
        except msgspec.MsgspecError as error:
            raise UnreadableError(what, self._described, str(error)) from error


@lru_cache(maxsize=4096)
def _cached_codec(annotation: Any) -> ValueCodec:
    if annotation in _UNTYPED:
        return TAGGED
    try:
        return TypedCodec(annotation)
    except (TypeError, ValueError) as error:
        # A type that msgspec cannot describe (text or an instant, a Protocol): the exact untyped form still serves its
        # plain values and refuses the others by name. Unions of models are for pydantic to distinguish. JSON of one
        # dataclass can look like JSON of another, so no value of a union of them could be written.
        if is_for_pydantic(annotation):
            return AdaptedCodec(annotation)
        if _has_record(annotation):
            raise UnstorableTypeError("it", type_name(annotation), str(error)) from error
        return TAGGED


def codec_for(annotation: Any) -> ValueCodec:
    """The codec for values declared as `annotation`."""
    if annotation is None:
        annotation = type(None)
    if _is_untyped(annotation):
        return TAGGED
    try:
        return _cached_codec(annotation)
    except UnstorableTypeError:
        raise
    except TypeError:  # Unhashable annotation, e.g. Annotated[..., []].
        return TypedCodec(annotation)


def codec_for_message(annotation: Any) -> ValueCodec:
    """The codec for what a run is sent, declared as `annotation`: a dict or a list of anything is at least that.

    (What a step or a workflow is given and returns is not looked at: journals hold what was accepted before.)
    """
    kind = typing.get_origin(annotation) or annotation
    codec = codec_for(annotation)
    return ContainerCodec(kind) if codec is TAGGED and (kind is dict or kind is list) else codec


def is_adapted(annotation: Any) -> bool:
    """Whether only pydantic reads and writes values of this type."""
    return isinstance(codec_for(annotation), AdaptedCodec)


def type_name(annotation: Any) -> str:
    """A declared type as a person would write it."""
    return (
        annotation.__qualname__ if isinstance(annotation, type) and not typing.get_args(annotation) else str(annotation)
    )


TAGGED = TaggedCodec()


def codec_of_value(value: Any) -> ValueCodec:
    """The codec for a value of no declared type: its class if that describes itself, else exactly as it is."""
    cls = type(value)
    marks = ("__dataclass_fields__", "__struct_fields__", "model_dump")
    return codec_for(cls) if cls in _CONVERTERS or any(hasattr(cls, mark) for mark in marks) else TAGGED


def encode_sent(value: Any, what: str) -> bytes:
    """The JSON of a value of no declared type, which a stranger may have sent."""
    codec = codec_of_value(value)
    return TAGGED.encode_sent(value, what) if codec is TAGGED else codec.encode(value, what)


def decode_untyped(codec: ValueCodec, data: Stored, what: str) -> Any:
    """A value from a program that did not know its type: it has encoded the value by its class (`codec_of_value`).

    Raises:
        UnreadableError: it fits neither.
    """
    try:
        return codec.decode(data, what)
    except UnreadableError:
        return TAGGED.decode(data, what)


def _is_untyped(annotation: Any) -> bool:
    """Whether the annotation says nothing about what is inside: `Any`, `dict`, `list[Any]`, `dict[str, Any]`."""
    origin = typing.get_origin(annotation)
    if origin in (list, dict):
        return all(_is_untyped(argument) or argument is str for argument in typing.get_args(annotation)) and any(
            _is_untyped(argument) for argument in typing.get_args(annotation)
        )
    try:
        return annotation in _UNTYPED
    except TypeError:
        return False


def _has_set(annotation: Any, seen: set[Any] | None = None) -> bool:
    seen = set() if seen is None else seen
    annotation = getattr(annotation, "__supertype__", annotation)
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, AbstractSet):
        return True
    inside = list(typing.get_args(annotation))
    # Only what is written by its fields: models sort their own sets, and the hints of any other class say nothing.
    if isinstance(origin, type) and origin not in seen and _has_fields(origin):
        seen.add(origin)
        inside += _hints(origin).values()
    return any(_has_set(part, seen) for part in inside if not isinstance(part, (str, list)))


def _sort_sets(value: Any, encode: Callable[[Any], bytes]) -> Any:
    """The value with a sorted list in place of every set, for msgspec to write; all else as it is.

    msgspec can sort by itself, but then it sorts dicts too, and refuses dicts whose keys are not text.
    """
    if isinstance(value, (set, frozenset)):
        return sorted((_sort_sets(member, encode) for member in value), key=encode)
    if isinstance(value, (list, tuple)):
        return [_sort_sets(item, encode) for item in value]
    if isinstance(value, dict):
        return {key: _sort_sets(item, encode) for key, item in value.items()}
    fields = {name: getattr(value, name, None) for name in _field_names(value)} if not is_model(type(value)) else {}
    changed = {name: new for name, old in fields.items() if (new := _sort_sets(old, encode)) is not old}
    if not changed:
        return value
    # Past its constructor, which may look at what it is given.
    twin = copy.copy(value)
    for name, new in changed.items():
        if isinstance(twin, msgspec.Struct):
            msgspec.structs.force_setattr(twin, name, new)
        else:
            object.__setattr__(twin, name, new)
    return twin


def is_record(cls: type) -> bool:
    """Whether values of this class are written by their fields: a dataclass, a struct, a model, a named tuple."""
    return is_model(cls) or _has_fields(cls)


def _has_fields(cls: type) -> bool:
    is_record = hasattr(cls, "_fields") or typing.is_typeddict(cls)
    return is_record or (bool(_field_names_of(cls)) and not is_model(cls))


def _has_record(annotation: Any) -> bool:
    """Whether the annotation names a class that is written by its fields."""
    origin = typing.get_origin(annotation) or annotation
    is_record = isinstance(origin, type) and _has_fields(origin)
    return is_record or any(_has_record(part) for part in typing.get_args(annotation))


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):
        return {}


class Converter(NamedTuple):
    """How values of a class of a user's own are stored: as values of a type that has a stored form."""

    to: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


_CONVERTERS: dict[type, Converter] = {}


def register(cls: type[T], *, to: type[S], encode: Callable[[T], S], decode: Callable[[S], T]) -> None:
    """Store values of a class of your own as values of another type.

        outlive.codecs.register(Point, to=str, encode=str, decode=Point.parse)

    Call it in the module of the class, before a value is stored. It is for a class that has no stored form: a
    dataclass, a struct, a model and an enum have theirs. What `decode` returns must be equal to what was encoded, so
    the class needs `__eq__`. Annotate parameters and fields with the class.

    Args:
        to: the type of the stored value; it is also what its JSON Schema describes.
        encode: gives a value of that type.
        decode: gives the value again.

    Raises:
        ConfigurationError: the class has a stored form, or another converter.
    """
    known = _CONVERTERS.get(cls)
    if is_record(cls) or issubclass(cls, Enum) or cls.__module__ == "builtins":
        raise ConfigurationError(f"{type_name(cls)} has a stored form of its own; a converter is for other classes")
    if known is not None and known != Converter(to, encode, decode):
        raise ConfigurationError(f"{type_name(cls)} has a converter already")
    codec_for(to)
    _CONVERTERS[cls] = Converter(to, encode, decode)


def converter_of(cls: Any) -> Converter | None:
    """The converter that was registered for a class."""
    return _CONVERTERS.get(cls) if isinstance(cls, type) else None


def write_custom(value: Any) -> Any:
    """The stored form of a value whose type msgspec does not know."""
    if is_model(type(value)):
        return write_model(value)
    if (converter := converter_of(type(value))) is not None:
        return _stored_as(converter.encode(value), converter.to)
    if isinstance(value, CoroutineType):
        raise TypeError(NOT_AWAITED)
    if type(value) is Why:
        return str(value)
    if isinstance(value, (str, int, float)):
        plain = next(each.__name__ for each in (str, int, float) if isinstance(value, each))
        raise TypeError(
            f"type {type(value).__qualname__}, a subclass of {plain}, would come back as a plain {plain}; convert it "
            f"with {plain}(...)"
        )
    raise TypeError(
        f"type {type(value).__qualname__} has no stored form; use a dataclass, a msgspec struct or plain values"
    )


def _stored_as(value: Any, to: Any) -> Any:
    return TAGGED.decode_plain(codec_for(to).encode(value, type_name(to)))


def read_custom(cls: Any, plain: Any) -> Any:
    """The value that a plain value stands for, of a class that msgspec does not know."""
    if is_model(cls):
        return read_model(cls, plain)
    if (converter := converter_of(cls)) is not None:
        return converter.decode(codec_for(converter.to).decode(TAGGED.encode_plain(plain), type_name(cls)))
    raise TypeError(f"type {type_name(cls)} has no stored form")


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The parts directly inside a value, with their paths."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]", item
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, item in enumerate(value):
            yield f"{path}[{index}]", item
    else:
        for name in _field_names(value):
            yield f"{path}.{name}", getattr(value, name, None)


def _field_names(value: Any) -> tuple[str, ...]:
    cls: Any = type(value)
    return _field_names_of(cls)


@lru_cache(maxsize=4096)
def _field_names_of(cls: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return tuple(getattr(cls, "__struct_fields__", None) or getattr(cls, "__pydantic_fields__", None) or ())


def _first_difference(left: Any, right: Any, path: str = "$") -> tuple[str, Any, Any]:
    """Where a value and what came back of it part ways."""
    if type(left) is type(right):
        others = dict(_walk(right, path))
        for inner_path, part in _walk(left, path):
            other = others.get(inner_path)
            if (part != other or not _is_exact(other, part)) and not (_is_nan(part) and _is_nan(other)):
                return _first_difference(part, other, inner_path)
    return path, left, right


def _is_normal_form(back: Any, value: Any) -> bool:
    """Whether all of a value is in what came back of it, part by part: in a subclass of its class, or, where a field
    takes anything, in an object with the same fields. What was None may have been filled in."""
    fields = [*_walk(value, "$")]
    is_object = type(back) is dict and is_record(type(value)) and len(back) == len(fields)
    if value is None or not (is_object or isinstance(back, type(value))):
        return value is None
    others = dict(_walk(back, "$"))
    if not fields:
        return bool(back == value)
    return all(path in others and _is_normal_form(others[path], part) for path, part in fields)


def _is_exact(back: Any, value: Any) -> bool:
    """Whether of two equal values also the types are equal, all the way down."""
    kind = type(value)
    if type(back) is not kind:
        # An int where the annotation says float is what every Python programmer means; the text of a Why is its text.
        return (type(back), kind) in ((float, int), (str, Why))
    if kind in _LEAVES:
        return True
    if kind is datetime or kind is time:
        return has_plain_zone(value)
    if kind is list or kind is tuple:
        return _are_exact(back, value)
    if kind is dict:
        return _are_exact([*back], [*value]) and _are_exact([*back.values()], [*value.values()])
    if kind is set or kind is frozenset:
        members = {member: member for member in back}
        return all(_is_exact(members[member], member) for member in value)
    names = _field_names(value)
    return _are_exact([getattr(back, name, None) for name in names], [getattr(value, name, None) for name in names])


def _are_exact(back: Sequence[Any], value: Sequence[Any]) -> bool:
    if len(value) > 8:  # Long lists are mostly of one kind.
        kinds = set(map(type, value))
        if kinds <= _LEAVES and kinds == set(map(type, back)):
            return True
    for other, part in zip(back, value, strict=True):
        kind = type(part)
        if (type(other) is not kind or kind not in _LEAVES) and not _is_exact(other, part):
            return False
    return True


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
