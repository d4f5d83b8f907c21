"""pydantic models to plain values and back.

A model is written by its own `model_dump`, by the names of its fields (aliases may differ for reading and writing, or
be paths), and read by `model_validate` by either. Every field is written, also one that was not set: a default may
change, a recorded value may not. So after a replay every field counts as set. Reading is not strict, because an enum
is written as its value and a path or a URL as text; that what comes back is exactly what was written is checked anyway.

pydantic is never imported unless the user did.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import ipaddress
import sys
import types
import typing
from collections.abc import Collection
from functools import cache
from pathlib import PurePath
from typing import Any

from outlive._kernel.journal.tagged import from_plain, to_plain

NOT_FINITE = ("Infinity", "-Infinity", "NaN")
"""The public form of numbers that JSON has no form for; pydantic reads it."""
REFERENCE = "#/$defs/{name}"
"""How a schema refers to its definitions."""
_ADDRESSES = (
    ipaddress.IPv4Address
    | ipaddress.IPv6Address
    | ipaddress.IPv4Interface
    | ipaddress.IPv6Interface
    | ipaddress.IPv4Network
    | ipaddress.IPv6Network
)
_URLS = ("pydantic.networks", "pydantic_core._pydantic_core")
"""Where the classes of URLs are defined. What else comes from there is text already, or does not come back."""


def is_model(cls: Any) -> bool:
    """Whether this is a class of pydantic models."""
    return isinstance(cls, type) and hasattr(cls, "__pydantic_fields__") and hasattr(cls, "model_validate")


def is_for_pydantic(annotation: Any, seen: set[Any] | None = None) -> bool:
    """Whether only pydantic can tell what is meant: a model on the surface, or somewhere inside a union with a
    discriminator, a tag or another of its marks. Frameworks describe their messages so, in plain dataclasses."""
    seen = set() if seen is None else seen
    if is_model(annotation) or any(type(mark).__module__.startswith("pydantic") for mark in _marks_of(annotation)):
        return True
    inside = list(typing.get_args(annotation))
    if dataclasses.is_dataclass(annotation) and annotation not in seen:
        seen.add(annotation)
        inside += _fields_of(annotation)
    return any(is_for_pydantic(part, seen) for part in inside if not isinstance(part, (str, list)))


def _marks_of(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__metadata__", ())


def _fields_of(cls: Any) -> list[Any]:
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):
        return []
    return [hints[field.name] for field in dataclasses.fields(cls)]


def write_model(value: Any) -> Any:
    """The plain value that stands for a model."""
    plain = value.model_dump(round_trip=True, by_alias=not _knows_names(), warnings=False)
    return to_plain(_simplified(plain), type(value).__qualname__)


def read_model(cls: Any, plain: Any) -> Any:
    """The model again; its own validators may raise anything."""
    try:
        return cls.model_validate(_of_public(cls, from_plain(plain)), strict=False, **_either_name())
    except sys.modules["pydantic"].ValidationError as error:
        raise _without_values(error) from error


def advice(cls: type, base: type) -> str:
    """How to annotate a model that came back as its base: as the union that its package has, if there is one, as
    `AnyMessage` of LangChain; else as a union of the user's own. Nothing for other values."""
    if cls is base or not (is_model(base) and issubclass(cls, base)):
        return ""
    package = sys.modules.get(cls.__module__.rpartition(".")[0])
    unions = [name for name, each in vars(package).items() if cls in _members(each)] if package else []
    wanted = f"{unions[0]} of {cls.__module__.rpartition('.')[0]}" if unions else f"a union, {cls.__qualname__} | ..."
    return f"; annotate {wanted}: {base.__qualname__} has no other fields than its own"


def _members(annotation: Any) -> list[Any]:
    """The members of a union, without their marks."""
    kind = _bare(annotation)
    return [_bare(each) for each in typing.get_args(kind)] if typing.get_origin(kind) in _UNIONS else []


def _bare(annotation: Any) -> Any:
    """A type without its marks."""
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation


def schema_of_model(annotation: Any) -> dict[str, Any]:
    """The JSON Schema of the public form of a model, or of what is made of models."""
    from pydantic import TypeAdapter

    made: dict[str, Any] = TypeAdapter(annotation).json_schema(
        by_alias=not _knows_names(),
        ref_template=REFERENCE.replace("name", "model"),
        schema_generator=_public_schemas(),
    )
    return made


@cache
def _public_schemas() -> Any:
    """A class that writes schemas of the public form, for the types to which pydantic gives another form as JSON."""
    from pydantic.json_schema import GenerateJsonSchema

    class PublicSchemas(GenerateJsonSchema):
        def bytes_schema(self, schema: Any) -> Any:
            return {"type": "string", "contentEncoding": "base64"}

        def timedelta_schema(self, schema: Any) -> Any:
            return {"type": "string", "format": "duration"}

        def float_schema(self, schema: Any) -> Any:
            made = super().float_schema(schema)
            is_finite = schema.get("allow_inf_nan") is False
            return made if is_finite else {"anyOf": [made, {"enum": [*NOT_FINITE]}]}

        def decimal_schema(self, schema: Any) -> Any:
            made = super().decimal_schema(schema)
            # The pattern of pydantic refuses the exponent that Python writes.
            number: dict[str, Any] = next(
                (each for each in made.get("anyOf", [made]) if each.get("type") == "number"), {}
            )
            return {"anyOf": [{**number, "type": "number"}, {"type": "string", "format": "decimal"}]}

        def dict_schema(self, schema: Any) -> Any:
            made = super().dict_schema(schema)
            if schema.get("keys_schema", {}).get("type") not in ("tuple", "frozenset"):
                return made
            return {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}}

    return PublicSchemas


class Adapter:
    """Writes and reads values that are made of models and have no class of their own, such as a union of models."""

    def __init__(self, annotation: Any) -> None:
        from pydantic import TypeAdapter

        self._annotation = annotation
        self._adapter: Any = TypeAdapter(annotation)

    def write(self, value: Any, what: str) -> Any:
        """The plain value that stands for it."""
        plain = self._adapter.dump_python(value, round_trip=True, by_alias=not _knows_names(), warnings=False)
        return to_plain(_simplified(plain), what)

    def read(self, plain: Any) -> Any:
        """The value again."""
        try:
            value = _of_public(self._annotation, from_plain(plain))
            return self._adapter.validate_python(value, strict=False, **_either_name())
        except sys.modules["pydantic"].ValidationError as error:
            raise _without_values(error) from error


def _without_values(error: Any) -> ValueError:
    """The faults and their places, without the values: reasons are stored in the open and logged, and the values may be
    encrypted where they are stored."""
    faults = [(".".join(str(part) for part in fault["loc"]), fault["msg"]) for fault in error.errors()]
    return ValueError("; ".join(f"{place}: {message}" if place else message for place, message in faults))


def _either_name() -> dict[str, Any]:
    return {"by_alias": True, "by_name": True} if _knows_names() else {}


@cache
def _knows_names() -> bool:
    """Whether this pydantic can read a field by its name although it has an alias; since 2.11."""
    version = sys.modules["pydantic"].VERSION
    return tuple(int(part) for part in version.split(".")[:2]) >= (2, 11)


# -- From the public form ---------------------------------------------------------------------------------------------


def _of_public(annotation: Any, value: Any) -> Any:
    """A value in its public form as pydantic reads it. Two types have another one there: text for bytes is base64, and
    a dict whose keys are not scalars is a list of pairs."""
    return _converted(annotation, value) if _needs_help(annotation) else value


def _needs_help(annotation: Any) -> bool:
    try:
        return _cached_needs_help(annotation)
    except TypeError:  # An annotation that has no hash.
        return _has_bytes(annotation, set())


@cache
def _cached_needs_help(annotation: Any) -> bool:
    return _has_bytes(annotation, set())


def _has_bytes(annotation: Any, seen: set[Any]) -> bool:
    """Whether bytes, or a dict with such keys, are somewhere in a type."""
    if annotation in (bytes, bytearray) or _has_pairs(annotation):
        return True
    inside = list(typing.get_args(annotation))
    if _is_described(annotation) and annotation not in seen:
        seen.add(annotation)
        inside += hints_of(annotation).values()
    return any(_has_bytes(part, seen) for part in inside if not isinstance(part, (str, list)))


def _has_pairs(annotation: Any) -> bool:
    keys = typing.get_args(annotation)[:1] if typing.get_origin(annotation) is dict else ()
    return any(typing.get_origin(key) in (tuple, frozenset) or key in (tuple, frozenset) for key in keys)


def _converted(annotation: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _converted(arguments[0], value)
    if origin in _UNIONS:
        return _converted(_member_for(arguments, value), value)
    if isinstance(value, str):
        return base64.b64decode(value, validate=True) if annotation in (bytes, bytearray) else value
    if isinstance(value, dict):
        if origin is dict and len(arguments) == 2:
            return {key: _converted(arguments[1], each) for key, each in value.items()}
        if _is_described(annotation):
            hints = hints_of(annotation)
            return {name: _converted(hints.get(name, Any), each) for name, each in value.items()}
    if isinstance(value, list) and arguments:
        if _has_pairs(annotation):
            return {_hashable(key): _converted(arguments[1], each) for key, each in value}
        if origin is tuple and arguments[-1] is not ...:
            return [_converted(kind, each) for kind, each in zip(arguments, value, strict=False)]
        return [_converted(arguments[0], each) for each in value]
    return value


def _member_for(members: tuple[Any, ...], value: Any) -> Any:
    """The member of a union that a value is of, as far as its shape tells."""
    if isinstance(value, str):
        # Text is bytes only where nothing else in the union could be text.
        others = [each for each in members if each not in (bytes, bytearray, type(None))]
        return Any if others else next(each for each in members if each is not type(None))
    for member in members:
        kind = _bare(member)
        origin = typing.get_origin(kind) or kind
        if isinstance(value, list) and isinstance(origin, type) and issubclass(origin, Collection):
            return kind
        if isinstance(value, dict) and (origin is dict or _fits(kind, value)):
            return kind
    return Any


def _fits(kind: Any, value: dict[str, Any]) -> bool:
    """Whether an object can be of this class: it has no other fields, and says no other constant."""
    if not _is_described(kind):
        return False
    hints = hints_of(kind)
    return value.keys() <= hints.keys() and all(
        each in typing.get_args(hints[name])
        for name, each in value.items()
        if typing.get_origin(hints[name]) is typing.Literal
    )


def _hashable(key: Any) -> Any:
    return tuple(_hashable(each) for each in key) if isinstance(key, list) else key


def _is_described(annotation: Any) -> bool:
    return is_model(annotation) or dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation)


@cache
def hints_of(cls: Any) -> dict[str, Any]:
    """The types of the fields of a class."""
    if is_model(cls):
        return _hints_of_model(cls)
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):
        return {}


def _hints_of_model(cls: Any) -> dict[str, Any]:
    """The annotations of the fields for which the model has no serializer of its own."""
    own = cls.__pydantic_decorators__
    if own.model_serializers:
        return {}
    written = {name for each in own.field_serializers.values() for name in each.info.fields}
    fields = {name: field for name, field in cls.__pydantic_fields__.items() if not written & {name, "*"}}
    plain = {
        name: field.annotation
        for name, field in fields.items()
        if not any(type(mark).__module__ == "pydantic.functional_serializers" for mark in field.metadata)
    }
    return {field.alias: plain[name] for name, field in fields.items() if field.alias and name in plain} | plain


_UNIONS = (typing.Union, types.UnionType)


def _simplified(value: Any) -> Any:
    """A model's own dump keeps what its validation takes in a simpler form too."""
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(type(value), "get_secret_value"):
        return value.get_secret_value()
    if isinstance(value, PurePath | _ADDRESSES) or type(value).__module__ in _URLS:
        return str(value)
    if type(value) is dict:
        return {_simplified(key): _simplified(item) for key, item in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(_simplified(item) for item in value)
    return value
