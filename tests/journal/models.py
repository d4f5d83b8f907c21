"""Types that people write, and values of them by chance."""

from __future__ import annotations

import enum
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union
from uuid import UUID

import msgspec
import pydantic
from hypothesis import strategies as st

from tests.journal.values import DATETIMES, PLAIN, TEXT

NO_ID = UUID(int=0)


class Colour(enum.Enum):
    """A plain enum."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """An enum that is also a number."""

    LOW = 1
    HIGH = 2


class Mode(enum.StrEnum):
    """An enum that is also text."""

    FAST = "fast"


class Perm(enum.Flag):
    """An enum of flags."""

    READ = 1
    WRITE = 2


Pair = namedtuple("Pair", "a b")


class Named(NamedTuple):
    """A typed named tuple."""

    a: int
    b: str


class Text(str):
    """Text with a class of its own."""

    __slots__ = ()


class Whole(int):
    """A number with a class of its own."""


@dataclass
class Item:
    """A dataclass with all kinds of fields."""

    name: str
    price: Decimal
    tags: set[str] = field(default_factory=set)
    codes: frozenset[int] = frozenset()
    size: tuple[int, ...] = ()
    place: tuple[int, str] | None = None
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    made: datetime | None = None
    day: date = date(2024, 1, 1)
    took: timedelta = timedelta()
    id: UUID = NO_ID
    raw: bytes = b""
    counts: dict[int, int] = field(default_factory=dict)
    parts: list[Item] = field(default_factory=list)
    extra: Any = None


class Point(msgspec.Struct):
    """A struct."""

    x: float
    y: float
    label: str | None = None


class Circle(msgspec.Struct, tag=True, frozen=True):
    """A struct in a union."""

    radius: int


class Square(msgspec.Struct, tag=True, frozen=True):
    """The other one."""

    side: int
    holes: tuple[Circle, ...] = ()


class Address(pydantic.BaseModel):
    """A model in a model."""

    street: str
    number: int = 1


class Person(pydantic.BaseModel):
    """A model with all kinds of fields."""

    name: str
    born: datetime
    photo: bytes = b""
    address: Address | None = None
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    scores: dict[int, float] = {}
    tags: set[str] = set()
    pair: tuple[int, str] = (0, "")
    price: Decimal = Decimal(0)
    id: UUID = UUID(int=0)
    anything: Any = None
    friends: list[Person] = []


class Aliased(pydantic.BaseModel):
    """A model whose fields have other names outside."""

    model_config = pydantic.ConfigDict(extra="forbid")
    kind: str = pydantic.Field(alias="type")
    first_name: str = pydantic.Field(alias="firstName")

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def both(self) -> str:
        """Made of the others."""
        return self.kind + self.first_name


@dataclass(frozen=True)
class Order:
    """A dataclass with everything in it."""

    buyer: Person
    items: tuple[Item, ...]
    shape: Circle | Square
    where: Point | None = None


T = TypeVar("T")


class Box(msgspec.Struct, Generic[T]):
    """A generic struct."""

    content: T


UserId = NewType("UserId", int)

INT64 = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False)

ITEMS: st.SearchStrategy[Item] = st.deferred(
    lambda: st.builds(
        Item,
        name=TEXT,
        price=DECIMALS,
        tags=st.sets(TEXT, max_size=3),
        codes=st.frozensets(INT64, max_size=3),
        size=st.lists(INT64, max_size=3).map(tuple),
        place=st.none() | st.tuples(INT64, TEXT),
        colour=st.sampled_from(Colour),
        level=st.sampled_from(Level),
        made=st.none() | DATETIMES,
        day=st.dates(),
        took=st.timedeltas(),
        id=st.uuids(),
        raw=st.binary(max_size=8),
        counts=st.dictionaries(INT64, INT64, max_size=3),
        parts=st.lists(ITEMS, max_size=1),
        extra=st.none()
        | TEXT
        | st.lists(INT64 | FLOATS, max_size=2)
        | st.dictionaries(TEXT, st.booleans(), max_size=2),
    )
)
PEOPLE: st.SearchStrategy[Person] = st.deferred(
    lambda: st.builds(
        Person,
        name=TEXT,
        born=DATETIMES,
        photo=st.binary(max_size=8),
        address=st.none() | st.builds(Address, street=TEXT, number=INT64),
        colour=st.sampled_from(Colour),
        level=st.sampled_from(Level),
        scores=st.dictionaries(INT64, FLOATS, max_size=3),
        tags=st.sets(TEXT, max_size=3),
        pair=st.tuples(INT64, TEXT),
        price=DECIMALS,
        id=st.uuids(),
        anything=st.none() | TEXT | INT64,
        friends=st.lists(PEOPLE, max_size=1),
    )
)
POINTS = st.builds(Point, x=FLOATS, y=FLOATS, label=st.none() | TEXT)
SHAPES = st.builds(Circle, INT64) | st.builds(Square, INT64, st.lists(st.builds(Circle, INT64), max_size=2).map(tuple))

TYPED: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": (int, st.integers(-(2**70), 2**70)),
    "str": (str, TEXT),
    "bool": (bool, st.booleans()),
    "None": (None, st.none()),
    "float": (float, FLOATS),
    "bytes": (bytes, st.binary()),
    "datetime": (datetime, DATETIMES),
    "date": (date, st.dates()),
    "timedelta": (timedelta, st.timedeltas()),
    "Decimal": (Decimal, DECIMALS),
    "UUID": (UUID, st.uuids()),
    "enum": (Colour, st.sampled_from(Colour)),
    "int enum": (Level, st.sampled_from(Level)),
    "str enum": (Mode, st.sampled_from(Mode)),
    "flag": (Perm, st.sampled_from([Perm.READ, Perm.WRITE, Perm.READ | Perm.WRITE])),
    "literal": (Literal["a", 1], st.sampled_from(["a", 1])),
    "list": (list[int], st.lists(INT64)),
    "list of any": (list[Any], st.lists(PLAIN, max_size=3)),
    "bare list": (list, st.lists(PLAIN, max_size=3)),
    "set": (set[str], st.sets(TEXT)),
    "frozenset": (frozenset[int], st.frozensets(INT64)),
    "tuple": (tuple[int, str], st.tuples(INT64, TEXT)),
    "long tuple": (tuple[int, ...], st.lists(INT64).map(tuple)),
    "dict": (dict[str, int], st.dictionaries(TEXT, INT64)),
    "dict by int": (dict[int, str], st.dictionaries(INT64, TEXT)),
    "dict of any": (dict[str, Any], st.dictionaries(TEXT, PLAIN, max_size=3)),
    "bare dict": (dict, st.dictionaries(TEXT | INT64, PLAIN, max_size=3)),
    "optional": (Optional[int], st.none() | INT64),  # noqa: UP045
    "union": (Union[int, str, None], st.none() | INT64 | TEXT),  # noqa: UP007
    "union of text": (str | datetime, TEXT | DATETIMES),
    "union of tagged": (Circle | Square, SHAPES),
    "annotated": (Annotated[int, msgspec.Meta(ge=0)], st.integers(0, 2**63)),
    "new type": (UserId, INT64),
    "generic": (Box[int], st.builds(Box, INT64)),
    "named tuple": (Named, st.builds(Named, INT64, TEXT)),
    "dataclass": (Item, ITEMS),
    "list of dataclass": (list[Item], st.lists(ITEMS, max_size=2)),
    "struct": (Point, POINTS),
    "pydantic": (Person, PEOPLE),
    "list of pydantic": (list[Person], st.lists(PEOPLE, max_size=2)),
    "dict of pydantic": (dict[str, Person], st.dictionaries(TEXT, PEOPLE, max_size=2)),
    "everything": (Order, st.builds(Order, PEOPLE, st.lists(ITEMS, max_size=2).map(tuple), SHAPES, st.none() | POINTS)),
    "any": (Any, PLAIN),
    "object": (object, PLAIN),
}

ANYTHING = st.one_of(
    PLAIN, ITEMS, PEOPLE, POINTS, SHAPES, st.sampled_from([*Colour, *Level, *Mode, Pair(1, 2), Text("x")])
)
"""Values of all kinds, with or without an exact form."""
