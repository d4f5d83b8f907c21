"""Stored values are read by the model that the code has now: models change while runs are in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest

from outlive._kernel.journal.value import codec_for
from outlive.errors import UnreadableError


@dataclass
class Line:
    """As it was."""

    sku: str
    count: int


@dataclass
class Longer:
    """Reordered, and a field more."""

    count: int
    sku: str
    gift: bool = False


@dataclass
class Shorter:
    """A field less."""

    sku: str


@dataclass
class Renamed:
    """A field has another name."""

    article: str
    count: int


class LineModel(pydantic.BaseModel):
    """As it was, in pydantic."""

    sku: str
    count: int


class LongerModel(pydantic.BaseModel):
    """Reordered, and a field more."""

    count: int
    sku: str
    gift: bool = False


class ShorterModel(pydantic.BaseModel):
    """A field less."""

    sku: str


class StrictModel(pydantic.BaseModel):
    """Wants to know every field."""

    model_config = pydantic.ConfigDict(extra="forbid")
    sku: str


class AliasedModel(pydantic.BaseModel):
    """Has another name for a field and reads the old one."""

    article: str = pydantic.Field(alias="sku")
    count: int


class LongerStruct(msgspec.Struct):
    """Reordered, and a field more."""

    count: int
    sku: str
    gift: bool = False


class AliasedStruct(msgspec.Struct):
    """Has another name for a field and reads the old one."""

    count: int
    article: str = msgspec.field(name="sku")


class StrictStruct(msgspec.Struct, forbid_unknown_fields=True):
    """Wants to know every field."""

    sku: str


class LineDict(TypedDict):
    """As it was, as a dict."""

    sku: str
    count: int


class Pair(NamedTuple):
    """Stored by the order of its fields."""

    sku: str
    pieces: int


class Triple(NamedTuple):
    """A field more at the end."""

    sku: str
    pieces: int
    gift: bool = False


OLD: list[tuple[Any, Any]] = [
    (Line, Line("x", 2)),
    (LineModel, LineModel(sku="x", count=2)),
    (LineDict, LineDict(sku="x", count=2)),
]


@pytest.mark.parametrize(("annotation", "value"), OLD, ids=["dataclass", "pydantic", "typed dict"])
@pytest.mark.parametrize(
    "expected",
    [
        Longer(2, "x"),
        LongerStruct(2, "x"),
        LongerModel(count=2, sku="x"),
        Line("x", 2),
        LineModel(sku="x", count=2),
        Shorter("x"),
        ShorterModel(sku="x"),
        AliasedModel(sku="x", count=2),
        AliasedStruct(2, "x"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_model_that_can_be_read_is_read(annotation: Any, value: Any, expected: Any) -> None:
    """A field more with a default, another order, another kind of class, a field less, a field with an alias."""
    data = codec_for(annotation).encode(value, "a line")

    assert codec_for(type(expected)).decode(data, "a line") == expected


@pytest.mark.parametrize(("annotation", "value"), OLD, ids=["dataclass", "pydantic", "typed dict"])
@pytest.mark.parametrize("other", [Renamed, StrictModel, StrictStruct])
def test_a_model_that_cannot_be_read_is_refused(annotation: Any, value: Any, other: Any) -> None:
    """A field without a default that is not stored, and models that forbid fields that they do not know."""
    data = codec_for(annotation).encode(value, "a line")

    with pytest.raises(UnreadableError, match=f"a line cannot be read as {other.__name__}"):
        codec_for(other).decode(data, "a line")


def test_a_named_tuple_may_get_fields_at_its_end() -> None:
    """It is stored by order, so that nothing else may change in it."""
    data = codec_for(Pair).encode(Pair("x", 2), "a pair")

    assert codec_for(Triple).decode(data, "a pair") == Triple("x", 2)
