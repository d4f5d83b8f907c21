"""pydantic models of every shape come back exactly, or are refused when they are written."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from outlive._kernel.journal.value import codec_for
from outlive.errors import UnreadableError, UnserialisableError
from tests.journal.values import DATETIMES, QUICK, TEXT


class Colour(enum.Enum):
    """An enum."""

    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    """One of a union."""

    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    """The other one."""

    kind: Literal["dog"] = "dog"
    bark: bytes = b""


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


@dataclass
class Plain:
    """A dataclass in a model."""

    raw: bytes
    when: datetime | None = None


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    """A generic model."""

    content: T
    more: list[T] = []


class Everything(BaseModel):
    """A strict model with all kinds of fields."""

    model_config = ConfigDict(strict=True)
    when: datetime
    price: Decimal
    raw: bytes
    id: UUID
    colour: Colour
    took: timedelta
    names: set[str] = set()
    frozen: frozenset[int] = frozenset()
    pair: tuple[int, str] = (0, "")
    by_colour: dict[Colour, int] = {}
    pet: Pet = Cat()
    pets: list[Pet] = []
    maybe: Optional[Cat] = None  # noqa: UP045
    plain: Plain | None = None
    box: Box[datetime] | None = None
    either: int | str | float | None = None
    anything: Any = None


@dataclass
class Holder:
    """Models in a dataclass."""

    one: Everything
    maybe: Cat | None = None
    many: list[Dog] = field(default_factory=list)


class Aliased(BaseModel):
    """Names that differ inside, for reading and for writing."""

    a: int = Field(alias="A")
    b: int = Field(validation_alias="readB", serialization_alias="writeB")
    c: int = Field(validation_alias=pydantic.AliasChoices("c1", "c2"))
    d: int = Field(validation_alias=pydantic.AliasPath("deep", "d"))


class Private(BaseModel):
    """What it keeps for itself follows from its fields, or does not."""

    x: int
    _double: int = PrivateAttr(default=0)
    _own: int = PrivateAttr(default=1)

    def model_post_init(self, _: Any) -> None:
        """Computes."""
        self._double = self.x * 2

    def change_own(self, number: int) -> None:
        """Now it keeps something that does not follow from its fields."""
        self._own = number

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def triple(self) -> int:
        """Computed whenever it is asked for."""
        return self.x * 3


class Common(BaseModel):
    """What pydantic users have in their models every day."""

    password: pydantic.SecretStr
    url: pydantic.HttpUrl
    path: Path
    address: IPv4Address


class Base(BaseModel):
    """A model with a child."""

    a: int


class Derived(Base):
    """The child."""

    b: int


INTS = st.integers(-(2**63), 2**63 - 1)
CATS = st.builds(Cat, lives=INTS)
DOGS = st.builds(Dog, bark=st.binary(max_size=5))
PLAINS = st.builds(Plain, st.binary(max_size=5), st.none() | DATETIMES)
EVERYTHING = st.builds(
    Everything,
    when=DATETIMES,
    price=st.decimals(allow_nan=False, allow_infinity=False),
    raw=st.binary(max_size=8),
    id=st.uuids(),
    colour=st.sampled_from(Colour),
    took=st.timedeltas(),
    names=st.sets(TEXT, max_size=3),
    frozen=st.frozensets(INTS, max_size=3),
    pair=st.tuples(INTS, TEXT),
    by_colour=st.dictionaries(st.sampled_from(Colour), INTS),
    pet=CATS | DOGS,
    pets=st.lists(CATS | DOGS, max_size=2),
    maybe=st.none() | CATS,
    plain=st.none() | PLAINS,
    box=st.none() | st.builds(Box[datetime], content=DATETIMES, more=st.lists(DATETIMES, max_size=2)),
    either=st.none() | INTS | TEXT | st.floats(allow_nan=False),
    anything=st.none() | TEXT | INTS | st.tuples(INTS, st.binary(max_size=2)) | DATETIMES,
)
SHAPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "strict model": (Everything, EVERYTHING),
    "optional": (Optional[Everything], st.none() | EVERYTHING),  # noqa: UP045
    "model in a dataclass": (Holder, st.builds(Holder, EVERYTHING, st.none() | CATS, st.lists(DOGS, max_size=2))),
    "union": (Cat | Dog, CATS | DOGS),
    "discriminated union": (Pet, CATS | DOGS),
    "list of a union": (list[Cat | Dog], st.lists(CATS | DOGS, max_size=3)),
    "dict of unions": (dict[str, Cat | Dog | None], st.dictionaries(TEXT, st.none() | CATS | DOGS, max_size=3)),
    "tuple": (tuple[Cat, Dog], st.tuples(CATS, DOGS)),
    "generic": (Box[Cat], st.builds(Box[Cat], content=CATS, more=st.lists(CATS, max_size=2))),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_comes_back_exactly(shape: str) -> None:
    """Whatever is in it: equal, of the same types, and the same bytes when it is written again."""
    annotation, values = SHAPES[shape]
    codec = codec_for(annotation)

    @QUICK
    @given(values)
    def check(value: Any) -> None:
        data = codec.encode(value, "the value")
        back = codec.decode(data, "the value")
        assert back == value
        assert type(back) is type(value)
        assert codec.encode(back, "the value") == data

    check()


def test_aliases_do_not_matter() -> None:
    """Written by the names of the fields, whatever a model is called outside; read by either."""
    value = Aliased.model_validate({"A": 1, "readB": 2, "c2": 3, "deep": {"d": 4}})
    codec = codec_for(Aliased)

    assert codec.encode(value, "the value") == b'{"a":1,"b":2,"c":3,"d":4}'
    assert codec.decode(codec.encode(value, "the value"), "the value") == value
    assert codec.decode(b'{"A":1,"readB":2,"c1":3,"deep":{"d":4}}', "the value") == value


def test_private_attributes_come_back_if_they_follow_from_the_fields() -> None:
    """Else they would be lost, and that is said when the model is written."""
    codec, value = codec_for(Private), Private(x=2)
    back = codec.decode(codec.encode(value, "the value"), "the value")
    assert (back._double, back.triple) == (4, 6)

    value.change_own(7)
    with pytest.raises(UnserialisableError, match="at \\$, Private"):
        codec.encode(value, "the value")


def test_everyday_types_come_back() -> None:
    """Secrets (with their content: encrypt payloads that have any), URLs, paths, addresses."""
    value = Common.model_validate(
        {"password": "hunter2", "url": "https://x.y/z", "path": "/there", "address": "10.0.0.1"}
    )
    back = codec_for(Common).decode(codec_for(Common).encode(value, "the value"), "the value")

    assert back == value
    assert back.password.get_secret_value() == "hunter2"
    assert isinstance(back.path, Path)


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05"])
def test_a_time_that_pydantic_read_can_be_stored(text: str) -> None:
    """Its offset has a class of pydantic's own; it comes back as Python's."""
    value = Box[datetime].model_validate_json(f'{{"content": "{text}"}}')
    back = codec_for(Box[datetime]).decode(codec_for(Box[datetime]).encode(value, "the value"), "the value")

    assert back == value
    assert back.content.utcoffset() == value.content.utcoffset()


def test_a_value_that_fits_no_member_of_a_union_is_refused() -> None:
    """A value that fits no model of a union is refused."""
    with pytest.raises(UnreadableError, match="cannot be read as"):
        codec_for(Cat | Dog).decode(b'{"kind":"cow"}', "the value")


class Rounding(BaseModel):
    """Changes what it is given."""

    n: int

    @pydantic.field_validator("n")
    @classmethod
    def _grow(cls, value: int) -> int:
        return value + 1


class Shortened(BaseModel):
    """Writes less than it has."""

    when: datetime
    hidden: int = Field(default=1, exclude=True)

    @pydantic.field_serializer("when")
    def _year(self, value: datetime) -> int:
        return value.year


@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [
        (Base, Derived(a=1, b=2), r"\$, Derived: would come back as Base.*; annotate a union, Derived \| \.\.\.: Base"),
        (Box[Base], Box[Base](content=Derived(a=1, b=2)), r"\$\.content, Derived"),
        (Cat | Base, Derived(a=1, b=2), r"\$, Derived"),
        (Rounding, Rounding(n=1), r"\$\.n, int: would come back as int 3"),
        (Shortened, Shortened(when=datetime(2026, 1, 1, tzinfo=UTC)), r"\$\.when"),
        (Box[datetime], Box(content=datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Stockholm"))), "time zone"),
        (Box[Any], Box[Any](content=Colour.RED), r"\$\.content, Colour: would come back as str"),
        (Any, Cat(), "annotate it with its type"),
        (list[Any], [Cat()], r"\$\[0\], Cat"),
    ],
)
def test_a_model_that_would_change_is_refused_when_it_is_written(annotation: Any, value: Any, place: str) -> None:
    """A model that would come back as something else is refused when it is written, with the place."""
    with pytest.raises(UnserialisableError, match=place):
        codec_for(annotation).encode(value, "the value")


class Login(BaseModel):
    """Something that a validator refuses as a whole."""

    user: str
    password: str

    @pydantic.model_validator(mode="after")
    def _refuse(self) -> Login:
        raise ValueError("the user is unknown")


@pytest.mark.parametrize("annotation", [Login, list[Login], Login | Rounding])
def test_a_value_that_a_validator_refuses_is_not_in_the_reason(annotation: Any) -> None:
    """A value that a validator refuses is not in the reason, which is stored and logged in plain text."""
    plain = b'{"user": "ann", "password": "hunter2"}'

    with pytest.raises(UnreadableError, match="the user is unknown") as caught:
        codec_for(annotation).decode(b"[%s]" % plain if annotation == list[Login] else plain, "a signal")

    assert "hunter2" not in str(caught.value)
