"""Values without an annotation: they come back exactly, value and type, or are refused with path and type."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from outlive._kernel.journal.value import TAGGED
from outlive.errors import UnreadableError, UnserialisableError
from tests.journal.models import Colour, Level, Mode, Pair, Text, Whole
from tests.journal.values import PLAIN, QUICK, is_same

STOCKHOLM = ZoneInfo("Europe/Stockholm")


def again(value: Any) -> Any:
    """A value that went through a journal."""
    return TAGGED.decode(TAGGED.encode(value, "the value"), "the value")


def refused(value: Any) -> UnserialisableError:
    """How a value is refused."""
    with pytest.raises(UnserialisableError) as caught:
        TAGGED.encode(value, "the value")
    assert str(caught.value).startswith("the value cannot be stored: at $")
    return caught.value


@QUICK
@given(PLAIN)
def test_a_plain_value_comes_back_exactly(value: Any) -> None:
    """Whatever JSON would alter is kept: tuples, sets, bytes, times, decimals, infinities, keys that are not text."""
    assert is_same(again(value), value)


CORNERS: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**63),
    -(2**63) - 1,
    10**5000,
    -(10**5000),
    {"$": 1},
    {"$": ["tuple", [1]]},
    {"$": ["no such tag", 1]},
    {"a": {"$": {"$": 2}}},
    {1: "int", "1": "text"},
    {(1, 2): {3}},
    {None: 1},
    {1.5: 1, True: 2},
    [[]],
    (),
    {},
    set(),
    frozenset(),
    frozenset({frozenset({1, "a"}), (1, (2,))}),
    "",
    "\x00\u2028\U0001f600",
    b"",
    bytearray(b"x"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("-Infinity"),
    Decimal("1.10"),
    Decimal("1E+5"),
    timedelta.max,
    timedelta.min,
    datetime.max,  # noqa: DTZ901
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1, minutes=2, seconds=3))),
    time(1, 2, 3, 4, tzinfo=UTC),
    complex(math.nan, -0.0),
    UUID(int=0),
]


@pytest.mark.parametrize("value", CORNERS, ids=[f"{n}-{type(value).__name__}" for n, value in enumerate(CORNERS)])
def test_the_corners_come_back_exactly(value: Any) -> None:
    """Values that JSON, or a library, would turn into something else."""
    assert is_same(again(value), value)
    assert is_same(again([value, {"in": value}]), [value, {"in": value}])


REFUSED: list[tuple[Any, str, str]] = [
    (object(), "$", "object"),
    ([1, {"a": object()}], "$[1].a", "object"),
    ({"a": [{"b": {1}}, {2: object()}]}, "$.a[1][2]", "object"),
    ((1, Colour.RED), "$[1]", "Colour"),
    ([Level.LOW], "$[0]", "Level"),
    ({"m": Mode.FAST}, "$.m", "Mode"),
    ([Pair(1, 2)], "$[0]", "Pair"),
    (Text("x"), "$", "Text"),
    ({"n": Whole(3)}, "$.n", "Whole"),
    (OrderedDict(a=1), "$", "OrderedDict"),
    ([defaultdict(int)], "$[0]", "defaultdict"),
    ({Text("k"): 1}, "$ key", "Text"),
    (memoryview(b"x"), "$", "memoryview"),
    (range(3), "$", "range"),
    ([lambda: 1], "$[0]", "function"),
    (ValueError("x"), "$", "ValueError"),
    ({"when": datetime(2024, 7, 1, tzinfo=STOCKHOLM)}, "$.when", "datetime"),
    ([time(1, tzinfo=STOCKHOLM)], "$[0]", "time"),
    ([datetime(2024, 7, 1, fold=1)], "$[0]", "datetime"),  # noqa: DTZ001
    ({"x": ["fine", "caf\udce9"]}, "$.x[1]", "str"),
    ({"caf\udce9": 1}, "$ key", "str"),
    ("\ud800", "$", "str"),
]
NAMES = [f"{n}-{kind}" for n, (_, _, kind) in enumerate(REFUSED)]


@pytest.mark.parametrize(("value", "path", "kind"), REFUSED, ids=NAMES)
def test_a_value_without_an_exact_form_is_refused_with_its_path(value: Any, path: str, kind: str) -> None:
    """A value that would not come back exactly, such as one of a subclass, is refused with its path and type."""
    error = refused(value)

    assert (error.path, error.type_name) == (path, kind)
    assert path in str(error)
    assert kind in str(error)


def nested(depth: int, make: Any) -> Any:
    """Something in something in something."""
    value: Any = 1
    for _ in range(depth):
        value = make(value)
    return value


@pytest.mark.parametrize("kind", ["list", "tuple", "dict", "dict by int"])
def test_a_limit_on_nesting_is_kept_on_both_sides(kind: str) -> None:
    """A hundred levels come back; one more is refused, and so are very many."""
    make: dict[str, Callable[[Any], Any]] = {
        "list": lambda value: [value],
        "tuple": lambda value: (value,),
        "dict": lambda value: {"a": value},
        "dict by int": lambda value: {1: value},
    }
    assert is_same(again(nested(100, make[kind])), nested(100, make[kind]))
    for depth in (101, 100_000):
        assert "nested deeper than 100 levels" in str(refused(nested(depth, make[kind])))


def test_a_circle_is_refused() -> None:
    """It has no end."""
    circle: list[Any] = []
    circle.append(circle)

    assert "nested deeper" in str(refused(circle))


def test_json_that_no_codec_wrote_is_unreadable() -> None:
    """Tags that we do not know, and bodies that do not fit, are not values."""
    for text in ('{"$":["os.system","ls"]}', '{"$":["int"]}', '{"$":5}', '{"$":["UUID","x"]}', "nonsense", ""):
        with pytest.raises(UnreadableError):
            TAGGED.decode(text.encode(), "the value")


WHOLE = [1, "a", None, True, 1.5, [], {}]
SENT = [*CORNERS, WHOLE, [2**70], [math.inf], [{"a": {"$": ["tuple", [1]]}}], [(1, 2)], nested(100, lambda it: [it])]


@pytest.mark.parametrize("value", SENT, ids=[f"{n}-{type(value).__name__}" for n, value in enumerate(SENT)])
def test_a_value_that_is_sent_is_written_as_any_other_one(value: Any) -> None:
    """The quick way for large plain values writes the same bytes as the way for all values."""
    assert TAGGED.encode_sent(value, "it") == TAGGED.encode(value, "it")


@QUICK
@given(PLAIN)
def test_whatever_is_sent_is_written_as_any_other_value(value: Any) -> None:
    """Both ways agree on random values."""
    assert TAGGED.encode_sent(value, "it") == TAGGED.encode(value, "it")


@pytest.mark.parametrize(("value", "path", "kind"), REFUSED, ids=NAMES)
def test_a_value_that_is_sent_is_refused_as_any_other_one(value: Any, path: str, kind: str) -> None:
    """The quick way takes no value that has no exact form."""
    with pytest.raises(UnserialisableError) as caught:
        TAGGED.encode_sent(value, "it")

    assert (caught.value.path, caught.value.type_name) == (path, kind)
