"""A form is checked by its JSON Schema: what its type would refuse is refused, and the message names the place."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Union

import msgspec
import pydantic
import pytest

from outlive._kernel.journal import schema as checking
from outlive._kernel.journal.form import encode_form, form_type, schema_of
from outlive._kernel.journal.schema import find_mismatch
from outlive.errors import ConfigurationError, UnreadableError


class Colour(enum.Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Line:
    """A part of a form."""

    cents: Annotated[int, msgspec.Meta(ge=1, le=100)]
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plain:
    """A form with everything that msgspec describes."""

    lines: list[Line]
    colour: Colour = Colour.RED
    note: Annotated[str, msgspec.Meta(min_length=2, max_length=5, pattern="^[a-z]*$")] | None = None
    point: tuple[int, str] = (0, "")
    size: Literal[1, 2] = 1
    sums: dict[str, Decimal] = field(default_factory=dict)
    when: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    ratio: float = 0.0
    names: set[str] = field(default_factory=set)


class Closed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form that takes nothing else."""

    cents: int
    inner: Closed | None = None


class Card(pydantic.BaseModel):
    """One of two."""

    kind: Literal["card"]
    number: str = pydantic.Field(pattern=r"^\d{4}$")


class Cash(pydantic.BaseModel):
    """The other one."""

    kind: Literal["cash"]


class Model(pydantic.BaseModel):
    """A form with what pydantic describes in other words."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)

    cents: int = pydantic.Field(gt=0, lt=1000, multiple_of=5, alias="c")
    paid: Card | Cash = pydantic.Field(discriminator="kind", default=Cash(kind="cash"))
    total: Decimal = Decimal(0)
    when: datetime | None = None
    items: list[int] = pydantic.Field(default=[], max_length=2)


@dataclass(frozen=True)
class Mixed:
    """A dataclass with a model in it."""

    model: Model
    lines: list[Line] = field(default_factory=list)


LINE = {"cents": 1}
FITS: list[tuple[Any, Any]] = [
    (Plain, {"lines": []}),
    (Plain, {"lines": [LINE], "colour": "blue", "note": "abc", "point": [1, "x"], "size": 2, "ratio": 1}),
    (Plain, {"lines": [{"cents": 100, "tags": ["a"]}], "note": None, "sums": {"a": "1.5"}, "names": ["a", "b"]}),
    (Plain, {"lines": [], "more": 1}),
    (Closed, {"cents": 1, "inner": {"cents": 2, "inner": None}}),
    (Model, {"cents": 5, "paid": {"kind": "card", "number": "1234"}, "total": "1.5", "when": "2026-01-01T00:00:00Z"}),
    (Mixed, {"model": {"cents": 5}, "lines": [LINE]}),
    (int, 3),
    (Annotated[str, msgspec.Meta(min_length=1)], "x"),
]
BREAKS: list[tuple[Any, Any, str]] = [
    (Plain, None, "at $: None is not of type object"),
    (Plain, {}, "at $: 'lines' is missing"),
    (Plain, {"lines": {}}, "at $.lines: {} is not of type array"),
    (Plain, {"lines": [LINE, {"cents": "1"}]}, "at $.lines[1].cents: '1' is not of type integer"),
    (Plain, {"lines": [{"cents": True}]}, "at $.lines[0].cents: True is not of type integer"),
    (Plain, {"lines": [{"cents": 1.0}]}, "at $.lines[0].cents: 1.0 is not of type integer"),
    (Plain, {"lines": [], "when": "tomorrow"}, "at $.when: 'tomorrow' does not have the format date-time"),
    (Plain, {"lines": [], "sums": {"a": "much"}}, "at $.sums.a: 'much' does not have the format decimal"),
    (Model, {"cents": 5, "when": "tomorrow"}, "at $.when: 'tomorrow' does not have the format date-time"),
    (Plain, {"lines": [{"cents": 1.5}]}, "at $.lines[0].cents: 1.5 is not of type integer"),
    (Plain, {"lines": [{"cents": 0}]}, "at $.lines[0].cents: 0 must be at least 1"),
    (Plain, {"lines": [{"cents": 101}]}, "at $.lines[0].cents: 101 must be at most 100"),
    (Plain, {"lines": [{"cents": 1, "tags": [1]}]}, "at $.lines[0].tags[0]: 1 is not of type string"),
    (Plain, {"lines": [], "colour": "green"}, "at $.colour: 'green' is none of 'blue', 'red'"),
    (Plain, {"lines": [], "note": "a"}, "at $.note: 1 characters are too few, at least 2"),
    (Plain, {"lines": [], "note": "abcdef"}, "at $.note: 6 characters are too many, at most 5"),
    (Plain, {"lines": [], "note": "ABC"}, "at $.note: 'ABC' does not match the pattern ^[a-z]*$"),
    (Plain, {"lines": [], "note": 1}, "at $.note: 1 is not of type string"),
    (Plain, {"lines": [], "point": [1]}, "at $.point: 1 items are too few, at least 2"),
    (Plain, {"lines": [], "point": ["x", "y"]}, "at $.point[0]: 'x' is not of type integer"),
    (Plain, {"lines": [], "point": [1, "y", 2]}, "at $.point[2]: nothing is allowed here"),
    (Plain, {"lines": [], "size": 3}, "at $.size: 3 is none of 1, 2"),
    (Plain, {"lines": [], "sums": {"a": []}}, "at $.sums.a: [] is not of type string"),
    (Plain, {"lines": [], "ratio": "1"}, "at $.ratio: '1' is not of type number"),
    (Closed, {"cents": 1, "dollars": 2}, "at $.dollars: there is no such field (fields: cents, inner)"),
    (Closed, {"cents": 1, "inner": {"cents": "2"}}, "at $.inner.cents: '2' is not of type integer"),
    (Model, {"cents": 0}, "at $.cents: 0 must be more than 0"),
    (Model, {"cents": 1000}, "at $.cents: 1000 must be less than 1000"),
    (Model, {"cents": 6}, "at $.cents: 6 must be a multiple of 5"),
    (Model, {"paid": None}, "at $: 'cents' is missing"),
    (Model, {"cents": 5, "items": [1, 2, 3]}, "at $.items: 3 items are too many, at most 2"),
    (
        Model,
        {"cents": 5, "paid": {"kind": "card", "number": "12"}},
        "at $.paid.number: '12' does not match the pattern",
    ),
    (Mixed, {"model": {"cents": 5, "paid": {"kind": "gold"}}}, "at $.model.paid.kind: 'gold' must be"),
    (int, "3", "at $: '3' is not of type integer"),
]


@pytest.mark.parametrize(("kind", "value"), FITS)
def test_a_value_that_its_type_accepts_fits_the_schema(kind: Any, value: Any) -> None:
    """A value that a form's type accepts fits its schema and can be decoded."""
    form = form_type(kind)

    assert find_mismatch(value, form.schema) is None
    form.decode(encode_form(value), "the form")


@pytest.mark.parametrize(("kind", "value", "message"), BREAKS)
def test_a_value_that_its_type_refuses_breaks_the_schema(kind: Any, value: Any, message: str) -> None:
    """A value that a form's type refuses breaks its schema, with the place and what is wrong there."""
    form = form_type(kind)

    mismatch = find_mismatch(value, form.schema)
    assert mismatch is not None
    assert mismatch.startswith(message)
    with pytest.raises(UnreadableError, match="the form cannot be read"):
        form.decode(encode_form(value), "the form")


@pytest.mark.parametrize(
    "value",
    [
        Plain([Line(3, ("a",))], colour=Colour.BLUE, sums={"a": Decimal("1.50")}, names={"x"}),
        Closed(1, Closed(2)),
        Model(c=5, total=Decimal("1.50"), when=datetime(2026, 1, 1, tzinfo=UTC)),
        Mixed(Model(c=5), [Line(1)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_form_given_as_its_own_type_is_the_same_as_plain_values(value: Any) -> None:
    """It is written as its schema says, and comes back as it was."""
    kind: Any = type(value)
    form = form_type(kind)
    data = encode_form(value)

    assert find_mismatch(msgspec.json.decode(data), form.schema) is None
    assert form.decode(data, "the form") == value


@pytest.mark.parametrize(
    ("schema", "fits", "breaks"),
    [
        (True, 1, None),
        ({"type": ["string", "null"]}, None, 1),
        ({"const": 1}, 1.0, True),
        ({"const": {"a": [1]}}, {"a": [1.0]}, {"a": [True]}),
        ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, 2, 3),
        ({"oneOf": [{"minimum": 2}, {"maximum": 3}]}, 1, 2),
        ({"type": "array", "uniqueItems": True}, [1, 2], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
        ({"propertyNames": {"pattern": "^x"}}, {"x1": 1}, {"y1": 1}),
        ({"minProperties": 1, "maxProperties": 2}, {"a": 1}, {}),
        ({"items": {"$ref": "#/$defs/a~1b"}, "$defs": {"a/b": {"type": "null"}}}, [None], [1]),
        ({"items": {"$ref": "#"}, "type": "array"}, [[], [[]]], [[1]]),
        ({"multipleOf": 0.1}, 0.3, 0.25),
        ({"format": "date"}, "2026-01-31", "2026-01-32"),
        ({"contentEncoding": "base64"}, "AAAA", "?"),
        ({"format": "phone", "unheard": 1}, "no phone", ...),
        ({"pattern": "(?<"}, "anything", ...),
    ],
)
def test_words_of_a_schema(schema: Any, fits: Any, breaks: Any) -> None:
    """Each lets pass what it should and nothing else; unknown ones are left alone."""
    assert find_mismatch(fits, schema) is None
    if breaks is not ... and schema is not True:
        assert find_mismatch(breaks, schema) is not None


def test_a_schema_is_plain_json() -> None:
    """A schema with a default is the same in its process and where it was sent."""

    @dataclass
    class Order:
        lines: tuple[str, ...] = ()
        cents: Decimal = Decimal(5)

    schema = schema_of(Order)

    assert schema == json.loads(json.dumps(schema))


def test_nothing_fits_a_schema_that_takes_nothing() -> None:
    """`false` is a schema too."""
    assert find_mismatch(1, False) == "at $: nothing is allowed here"


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    """Instead of breaking the process."""
    value: Any = []
    for _ in range(5_000):
        value = [value]

    assert find_mismatch(value, {"type": "array", "items": {"$ref": "#"}}) == (
        "at $: it is nested too deeply to be checked"
    )


# -- What a value of a stranger costs ---------------------------------------------------------------------------------


class Both(msgspec.Struct, tag="both"):
    """A tagged one of two that refer to each other."""

    left: Union[Both, Either, str]  # noqa: UP007 (msgspec evaluates it)
    right: Union[Both, Either, str]  # noqa: UP007


class Either(msgspec.Struct, tag="either"):
    """The other one, with the same fields."""

    left: Union[Both, Either, str]  # noqa: UP007
    right: Union[Both, Either, str]  # noqa: UP007


def looks(value: Any, schema: Any) -> int:
    """How many looks a check takes, where each gives way."""
    return sum(1 for _ in checking.check(value, schema))


@pytest.mark.parametrize("tag", ["first", "last"])
def test_a_tag_says_which_choice_is_looked_into(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tag says which choice is looked into, wherever the sender has written it: of a tree 60 deep each part is looked
    at once. [S35]"""
    monkeypatch.setattr(checking, "LOOKS_AT_ONCE", 1)
    schema = schema_of(Both | Either)

    def tree(depth: int) -> Any:
        value: Any = "x"
        for level in range(depth):
            fields = {"left": value, "right": "y"}
            own = {"type": "either" if level % 2 else "both"}
            value = own | fields if tag == "first" else fields | own
        return value

    assert find_mismatch(tree(60), schema) is None
    assert looks(tree(60), schema) <= 2 * looks(tree(30), schema) + 2 < 800


def untagged(depth: int, end: Any) -> Any:
    """Lists that each choice of `UNTAGGED` could be."""
    value = end
    for _ in range(depth):
        value = [value]
    return value


UNTAGGED = {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"$ref": "#"}}]}


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
def test_choices_that_begin_alike_are_looked_into_once_for_each_part(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells them apart, so both are looked into; not again for each way that leads there. [S35]"""
    monkeypatch.setattr(checking, "LOOKS_AT_ONCE", 1)
    schema = {word: UNTAGGED["anyOf"]}

    assert find_mismatch(untagged(60, 1), schema) is not None
    assert looks(untagged(60, 1), schema) <= 2 * looks(untagged(30, 1), schema) + 2 < 800


def test_the_first_choice_that_fits_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first choice that fits is enough for `anyOf`: the others are not looked into."""
    monkeypatch.setattr(checking, "LOOKS_AT_ONCE", 1)
    many = {"type": "array", "items": {"minimum": 0}}

    assert looks([1] * 200, {"anyOf": [many, dict(many)]}) < looks([1] * 200, {"oneOf": [many, dict(many)]})


def test_items_of_which_only_the_type_counts_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two million numbers are checked in a moment, also where each may be absent. [S35]"""
    monkeypatch.setattr(checking, "LOOKS_AT_ONCE", 1)

    for kind in (list[float], list[int | str | None], list[float] | None):
        assert looks([1] * 10_000, schema_of(kind)) <= 10_000 // checking.TOGETHER_MAX + 10
    assert find_mismatch([1] * 10_000 + ["x"], schema_of(list[float])) == "at $[10000]: 'x' is not of type number"


def test_a_value_that_takes_too_many_looks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is made: each look counts. [S35]"""
    monkeypatch.setattr(checking, "LOOKS_MAX", 100)

    assert find_mismatch([{}] * 101, {"items": {"type": "object"}}) == (
        "at $: it is too large to be checked, as that takes more than 100 looks at parts of it"
    )


def test_the_choice_whose_tag_fits_is_what_a_mismatch_is_about() -> None:
    """A person reads what is wrong with the card, and not that it is not cash."""
    schema = schema_of(Card | Cash)

    assert find_mismatch({"kind": "card"}, schema) == "at $: 'number' is missing"
    assert find_mismatch({"kind": "card", "number": 1}, schema) == "at $.number: 1 is not of type string"
    assert str(find_mismatch({"kind": "gold"}, schema)).startswith("at $.kind: 'gold' ")


def test_a_long_text_is_not_matched_with_a_pattern() -> None:
    """The time that a match takes may grow with the square of the length. [S27 S35]"""
    most = checking.PATTERN_CHARACTERS_MAX
    schema = {"pattern": "^a*$"}

    assert find_mismatch("a" * most, schema) is None
    assert find_mismatch("a" * (most + 1), schema) == (
        f"at $: {most + 1} characters are too many to be matched with a pattern, at most {most}"
    )


class Shown:
    """What counts how often it is shown."""

    count = 0

    def __repr__(self) -> str:
        Shown.count += 1
        return "shown"


def test_of_a_long_value_the_beginning_is_shown() -> None:
    """A mismatch shows the beginning of a value, and does not look at the rest of it. [S35]"""
    value = {"a": [1, "x", {"b": None}], "more": [Shown()] * 1_000}
    found = find_mismatch(value, {"type": "array"})

    assert found == "at $: {'a': [1, 'x', {'b': None}], 'more': [shown, shown, shown... is not of type array"
    assert Shown.count < 10


def test_a_number_too_large_to_be_divided_is_left_to_its_type() -> None:
    """Instead of failing the request."""
    assert find_mismatch(10**400, {"multipleOf": 0.1}) is None


class Opaque:
    """Nothing describes it."""


@pytest.mark.parametrize("kind", [Opaque, list[Opaque]])
def test_a_type_without_a_schema_cannot_be_a_form(kind: Any) -> None:
    """The error says what can."""
    with pytest.raises(ConfigurationError, match="use a dataclass, a msgspec struct or a pydantic model"):
        form_type(kind)
