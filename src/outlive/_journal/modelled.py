"""pydantic models to plain values and back.

A model is written by its own `model_dump`, by the names of its fields (aliases may differ for reading and writing, or
be paths), and read by `model_validate` by either. Every field is written, also one that was not set: a default may
change, a recorded value may not. So after a replay every field counts as set. Reading is not strict, because an enum
is written as its value and a path or a URL as text; that what comes back is exactly what was written is checked anyway.

pydantic is never imported unless the user did.
"""

from __future__ import annotations

import dataclasses
import enum
import ipaddress
import sys
import typing
from functools import cache
from pathlib import PurePath
from typing import Any

from outlive._journal.tagged import from_plain, to_plain

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
        return cls.model_validate(from_plain(plain), strict=False, **_either_name())
    except sys.modules["pydantic"].ValidationError as error:
        raise _without_values(error) from error


class Adapter:
    """The same for what is made of models and has no class of its own, such as a union of them."""

    def __init__(self, annotation: Any) -> None:
        from pydantic import TypeAdapter

        self._adapter: Any = TypeAdapter(annotation)

    def write(self, value: Any, what: str) -> Any:
        """The plain value that stands for it."""
        plain = self._adapter.dump_python(value, round_trip=True, by_alias=not _knows_names(), warnings=False)
        return to_plain(_simplified(plain), what)

    def read(self, plain: Any) -> Any:
        """The value again."""
        try:
            return self._adapter.validate_python(from_plain(plain), strict=False, **_either_name())
        except sys.modules["pydantic"].ValidationError as error:
            raise _without_values(error) from error


def _without_values(error: Any) -> ValueError:
    """What is wrong and where, and not with which values: reasons are kept in the open and logged, and the values may
    be encrypted where they are stored."""
    faults = [(".".join(str(part) for part in fault["loc"]), fault["msg"]) for fault in error.errors()]
    return ValueError("; ".join(f"{place}: {message}" if place else message for place, message in faults))


def _either_name() -> dict[str, Any]:
    return {"by_alias": True, "by_name": True} if _knows_names() else {}


@cache
def _knows_names() -> bool:
    """Whether this pydantic can read a field by its name although it has an alias; since 2.11."""
    version = sys.modules["pydantic"].VERSION
    return tuple(int(part) for part in version.split(".")[:2]) >= (2, 11)


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
