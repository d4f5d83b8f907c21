"""Values with an annotation: they come back exactly, value and type, or are refused with path and type."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive._kernel.journal.value import TAGGED, TaggedCodec, TypedCodec, codec_for
from outlive.errors import UnreadableError, UnserialisableError
from tests.journal.models import (
    ANYTHING,
    TYPED,
    Aliased,
    Item,
    Level,
    Mode,
    Pair,
    Person,
    Point,
    Text,
)
from tests.journal.values import NIGHT, QUICK, is_same

ROOT = Path(__file__).parents[2]
STOCKHOLM = ZoneInfo("Europe/Stockholm")


def again(annotation: Any, value: Any) -> Any:
    """A value that went through a journal."""
    codec = codec_for(annotation)
    return codec.decode(codec.encode(value, "the value"), "the value")


def refused(annotation: Any, value: Any) -> UnserialisableError:
    """How a value is refused."""
    with pytest.raises(UnserialisableError) as caught:
        codec_for(annotation).encode(value, "the value")
    assert str(caught.value).startswith("the value cannot be stored: at $")
    return caught.value


def test_text_of_a_class_of_its_own_is_refused_with_how_to_convert_it() -> None:
    """Libraries return subclasses of str and float where their hints say str and float."""
    assert "Text, a subclass of str, would come back as a plain str; convert it with str(...)" in str(
        refused(str, Text("x"))
    )


@pytest.mark.parametrize("name", TYPED)
def test_a_typed_value_comes_back_exactly(name: str) -> None:
    """Dataclasses, structs, models, enums, collections: equal, and of the same type all the way down."""
    annotation, values = TYPED[name]

    @QUICK
    @given(values)
    def check(value: Any) -> None:
        assert is_same(again(annotation, value), value)

    check()


@QUICK
@given(st.sampled_from(sorted(TYPED)), ANYTHING | st.lists(ANYTHING, max_size=2) | st.tuples(ANYTHING, ANYTHING))
def test_any_value_under_any_annotation_comes_back_exactly_or_is_refused(name: str, value: Any) -> None:
    """There is no third way: what the codec takes, it gives back. Only an int for a float may become one."""
    annotation = TYPED[name][0]
    try:
        back = again(annotation, value)
    except UnserialisableError:
        return
    assert is_same(back, value) or (name == "float" and type(value) is int and back == value)


@pytest.mark.slow
@NIGHT
@given(st.sampled_from(sorted(TYPED)), ANYTHING | st.lists(ANYTHING, max_size=2) | st.tuples(ANYTHING, ANYTHING))
def test_a_great_many_values_come_back_exactly_or_are_refused(name: str, value: Any) -> None:
    """A great many values under any annotation come back exactly or are refused."""
    test_any_value_under_any_annotation_comes_back_exactly_or_is_refused.hypothesis.inner_test(name, value)  # type: ignore[attr-defined]


REFUSED: list[tuple[Any, Any, str, str]] = [
    (int, "text", "$", "str"),
    (int, True, "$", "bool"),
    (int, Level.LOW, "$", "Level"),
    (int, 10**5000, "$", "int"),
    (float, math.nan, "$", "float"),
    (float, math.inf, "$", "float"),
    (str, Mode.FAST, "$", "Mode"),
    (str, "\ud800", "$", "str"),
    (list[int], [1, "two"], "$", "list"),
    (list[int], (1, 2), "$", "tuple"),
    (list[int], [1, Level.LOW], "$[1]", "Level"),
    (list[str], ["a", Text("b")], "$[1]", "Text"),
    (list[float], [1.0, math.nan], "$", "list"),
    (list[dict[str, int]], [OrderedDict(a=1)], "$[0]", "OrderedDict"),
    (list[tuple[int, ...]], [Pair(1, 2)], "$[0]", "Pair"),
    (list[set[int]], [frozenset({1})], "$[0]", "frozenset"),
    (dict[str, list[int]], {"a": (1,)}, "$.a", "tuple"),
    (dict[str, int], {"a": True}, "$", "dict"),
    (dict[Mode, int], {Mode.FAST: Level.LOW}, "$.fast", "Level"),
    (dict[str, int], {Text("k"): 1}, "$", "dict"),
    (tuple[Any, ...], ((1, 2),), "$[0]", "tuple"),
    (tuple[Any, ...], (datetime(2024, 1, 1, tzinfo=UTC),), "$[0]", "datetime"),
    (datetime, datetime(2024, 7, 1, tzinfo=STOCKHOLM), "$", "datetime"),
    (list[datetime], [datetime(2024, 7, 1, fold=1)], "$[0]", "datetime"),  # noqa: DTZ001
    (Item, Item("a", Decimal(1), parts=[Item("b", 1)]), "$.parts[0].price", "int"),  # type: ignore[arg-type]
    (Item, Item("a", Decimal(1), extra=(1, 2)), "$.extra", "tuple"),
    (Item, Item("a", Decimal(1), extra=object()), "$.extra", "object"),
    (Item, Item("a", Decimal(1), made=datetime(2024, 7, 1, tzinfo=STOCKHOLM)), "$.made", "datetime"),
    (Item, Point(1, 2), "$", "Point"),
    (Point, Point(1.0, 2.0, label=object()), "$.label", "object"),  # type: ignore[arg-type]
    (Person, Person(name="a", born=datetime(2024, 7, 1, tzinfo=STOCKHOLM)), "$", "Person"),
    (Person, Person(name="a", born=datetime(2024, 7, 1), anything=object()), "$.anything", "object"),  # noqa: DTZ001
]
NAMES = [f"{n}-{kind}" for n, (_, _, _, kind) in enumerate(REFUSED)]


@pytest.mark.parametrize(("annotation", "value", "path", "kind"), REFUSED, ids=NAMES)
def test_a_value_that_would_change_is_refused_with_its_path(annotation: Any, value: Any, path: str, kind: str) -> None:
    """The message names the innermost part that would come back as something else."""
    error = refused(annotation, value)

    assert (error.path, error.type_name) == (path, kind)


def test_an_int_where_a_float_is_declared_is_a_float() -> None:
    """An int that stands where a float is declared comes back as that float."""
    assert is_same(again(float, 3), 3.0)
    assert is_same(again(list[float], [1, 2.5]), [1.0, 2.5])
    assert is_same(again(Point, Point(1, 2)), Point(1.0, 2.0))


def test_a_model_with_other_names_outside_comes_back() -> None:
    """Aliases and computed fields are pydantic's own business."""
    model = Aliased(type="a", firstName="b")

    assert is_same(again(Aliased, model), model)


def test_a_circle_of_typed_values_is_refused() -> None:
    """It has no end, and looking for the culprit must have one."""
    item = Item("a", Decimal(1))
    item.parts.append(item)

    assert refused(Item, item).type_name == "Item"
    deep = Item("a", Decimal(1))
    for _ in range(5_000):
        deep = Item("a", Decimal(1), parts=[deep])
    assert refused(Item, deep).type_name in ("Item", "list")


def test_a_value_of_another_type_is_unreadable() -> None:
    """A value that was written under another type is unreadable, with both types in the error."""
    data = codec_for(int).encode(5, "x")

    with pytest.raises(UnreadableError, match="result cannot be read as str: Expected `str`, got `int`"):
        codec_for(str).decode(data, "result")


def test_an_untyped_sender_is_understood() -> None:
    """A signal that was sent without knowing its type is tagged JSON; what it stands for may be of the type."""
    sent = TAGGED.encode((1, "a"), "x")

    assert codec_for(tuple[int, str]).decode(sent, "x") == (1, "a")
    assert codec_for(datetime).decode(TAGGED.encode(datetime(2024, 1, 1, tzinfo=UTC), "x"), "x").year == 2024


def test_annotations_choose_their_codec_once() -> None:
    """One annotation always has one codec, and an annotation that msgspec cannot describe is untyped."""
    assert codec_for(list[int]) is codec_for(list[int])
    assert isinstance(codec_for(list[int]), TypedCodec)
    for annotation in (Any, object, dict, list, dict[str, Any], list[Any], dict[str, list[Any]], str | bytes):
        assert isinstance(codec_for(annotation), TaggedCodec), annotation
    assert isinstance(codec_for(Annotated[int, [1]]), TypedCodec)


# -- Equal sets are equal bytes -------------------------------------------------------------------------------

SETS = """
from tests.journal.models import Item, Person
from outlive._kernel.journal.value import codec_for
from decimal import Decimal
from datetime import datetime
from typing import Any, NamedTuple, NewType
from collections.abc import Set as AbstractSet
import msgspec
class Named(NamedTuple):
    words: set[str]
class Frozen(msgspec.Struct, frozen=True):
    words: frozenset[str]
    def __post_init__(self): assert isinstance(self.words, frozenset)
Tags = NewType("Tags", set[str])
words = {f"word {n}" for n in range(50)}
mixed = {*words, 1, 2.5, None, (1, "a"), frozenset(words)}
people = [Person(name="a", born=datetime(2024, 1, 1), tags=words)]
for annotation, value in [
    (Any, words), (Any, frozenset(words)), (Any, {"a": [mixed]}), (set[str], words), (frozenset[str], frozenset(words)),
    (dict[str, set[str]], {"a": words}), (Item, Item("a", Decimal(1), tags=words)), (list[Person], people),
    (Tags, words), (Named, Named(words)), (list[Frozen], [Frozen(frozenset(words))]), (AbstractSet[str], words),
]:
    print(codec_for(annotation).encode(value, "x").decode())
"""


def test_equal_sets_are_equal_bytes_in_every_process() -> None:
    """The digest of the arguments must not depend on the hash seed, or every replay elsewhere would be a divergence."""
    texts = set()
    for hash_seed in ("0", "1", "77"):
        output = subprocess.run(
            [sys.executable, "-c", SETS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
            check=True,
            capture_output=True,
            text=True,
        )
        texts.add(output.stdout)

    assert len(texts) == 1
    assert "word 49" in texts.pop()


@pytest.mark.parametrize(
    "annotation", [Any, dict[str, Any], dict[str, int], dict[str, set[int]], dict[str, list[int]]], ids=str
)
def test_a_dict_keeps_its_order(annotation: Any) -> None:
    """Python's dicts have an order, and code relies on it."""
    value: Any = {dict[str, set[int]]: {1}, dict[str, list[int]]: [1]}.get(annotation, 1)

    assert list(again(annotation, dict.fromkeys("zebra", value))) == list("zebra")
