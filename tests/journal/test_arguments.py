"""The arguments of a call as one JSON value: what the caller said, typed by the annotations of the function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive._kernel.journal.arguments import Signature
from outlive.errors import UnreadableError, UnserialisableError
from tests.journal.models import ITEMS, Item
from tests.journal.values import PLAIN, QUICK, is_same

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]


def signature_of(fn: Callable[..., Any], **options: Any) -> Signature:
    """How the arguments of a function are stored."""
    return Signature(fn, fn.__name__, **options)


def call_again(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with arguments that went through a journal."""
    signature = signature_of(fn)
    stored_args, stored_kwargs = signature.decode(signature.encode(args, kwargs))
    return fn(*stored_args, **stored_kwargs)


def nothing() -> str:
    """No arguments."""
    return "called"


def typed(item: Item, when: datetime, *, price: Decimal = Decimal("1.10")) -> tuple[Item, datetime, Decimal]:
    """Arguments with types."""
    return item, when, price


def untyped(a, b=(1, 2), *rest, c=None, **more):  # type: ignore[no-untyped-def]
    """Arguments without any."""
    return a, b, rest, c, more


def positional_only(a: int, b: str = "b", /, *, c: int) -> tuple[int, str, int]:
    """Every kind of parameter."""
    return a, b, c


def variable(*numbers: int, **texts: str) -> tuple[tuple[int, ...], dict[str, str]]:
    """As many as one likes."""
    return numbers, texts


ITEM = Item("shoes", Decimal("9.99"), tags={"new"})
NOW = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "json"),
    [
        (nothing, (), {}, b"[]"),
        (positional_only, (1,), {"c": 3}, b'{"a":[1],"k":{"c":3}}'),
        (positional_only, (1, "x"), {"c": 3}, b'{"a":[1,"x"],"k":{"c":3}}'),
        (untyped, (1,), {}, b"[1]"),
        (untyped, (1, (2, 3), 4), {"z": {5}}, b'{"a":[1,{"$":["tuple",[2,3]]},4],"k":{"z":{"$":["set",[5]]}}}'),
        (untyped, (), {"a": 1}, b'{"a":[],"k":{"a":1}}'),
        (variable, (1, 2, 3), {}, b"[1,2,3]"),
        (variable, (), {"x": "y"}, b'{"a":[],"k":{"x":"y"}}'),
    ],
)
def test_the_bytes_are_what_the_caller_said(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], json: bytes
) -> None:
    """Positional arguments alone are an array; defaults are not written."""
    signature = signature_of(fn)

    assert signature.encode(args, kwargs) == json
    assert signature.decode(json) == (list(args), kwargs)
    assert call_again(fn, *args, **kwargs) == fn(*args, **kwargs)


def test_types_come_from_the_annotations() -> None:
    """By position and by name."""
    assert is_same(call_again(typed, ITEM, NOW), typed(ITEM, NOW))
    assert is_same(call_again(typed, ITEM, when=NOW, price=Decimal("2.0")), typed(ITEM, NOW, price=Decimal("2.0")))
    assert is_same(call_again(typed, when=NOW, item=ITEM), typed(ITEM, NOW))


@QUICK
@given(ITEMS, st.lists(PLAIN, max_size=3), st.dictionaries(st.sampled_from(["x", "y", "c"]), PLAIN))
def test_any_arguments_come_back(item: Item, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Typed and untyped ones."""
    assert is_same(call_again(typed, item, NOW), (item, NOW, Decimal("1.10")))
    assert is_same(call_again(untyped, 0, *args, **kwargs), untyped(0, *args, **kwargs))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("fn", "args", "kwargs"),
    [
        (nothing, (1,), {}),
        (nothing, (), {"a": 1}),
        (positional_only, (), {"c": 1}),
        (positional_only, (1,), {}),
        (positional_only, (1, "b"), {}),
        (positional_only, (1, "b", 3), {"c": 1}),
        (positional_only, (1,), {"c": 1, "d": 2}),
        (typed, (ITEM,), {}),
        (typed, (ITEM, NOW, Decimal(1)), {}),
        (typed, (ITEM, NOW), {"item": ITEM}),
        (untyped, (), {}),
    ],
)
def test_wrong_arguments_are_refused_at_once(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Arguments that Python would refuse raise a TypeError with the name of the function where they are encoded."""
    with pytest.raises(TypeError):
        fn(*args, **kwargs)
    with pytest.raises(TypeError, match=fn.__name__):
        signature_of(fn).encode(args, kwargs)


def test_an_argument_that_cannot_be_stored_is_named() -> None:
    """By its place or its name."""
    with pytest.raises(UnserialisableError, match=r"argument 2 of typed cannot be stored: at \$, str"):
        signature_of(typed).encode((ITEM, "tomorrow"), {})
    with pytest.raises(UnserialisableError, match=r"argument 'z' of untyped cannot be stored: at \$\[0\], object"):
        signature_of(untyped).encode((1,), {"z": [object()]})


@pytest.mark.parametrize(
    ("fn", "data", "reason"),
    [
        (nothing, b"[1]", "too many positional arguments"),
        (positional_only, b"[1]", "missing a required argument: 'c'"),
        (positional_only, b'{"a":[1],"k":{"c":1,"x":2}}', "got an unexpected keyword argument 'x'"),
        (positional_only, b"[]", "missing a required argument: 'a'"),
        (positional_only, b'{"a":["text"],"k":{"c":1}}', "cannot be read as int"),
        (typed, b"nonsense", "malformed"),
        (typed, b"", "truncated"),
        (typed, b'{"b":[]}', "missing required field"),
    ],
)
def test_arguments_that_do_not_fit_the_function_any_more_are_unreadable(
    fn: Callable[..., Any], data: bytes, reason: str
) -> None:
    """The function was changed after the call was written: the error says how it does not fit."""
    with pytest.raises(UnreadableError, match=reason):
        signature_of(fn).decode(data)


def test_the_result_has_a_codec_too() -> None:
    """By the annotation of what the function returns."""
    assert is_same(_again(typed, (ITEM, NOW, Decimal(1))), (ITEM, NOW, Decimal(1)))
    assert is_same(_again(untyped, {1: (2,)}), {1: (2,)})


def _again(fn: Callable[..., Any], value: Any) -> Any:
    codec = signature_of(fn).result
    return codec.decode(codec.encode(value, "x"), "x")


def unresolvable(a: Missing, b: int, c: Decimal) -> list[Missing]:
    """One annotation is for type checkers only."""
    return [a, b, c]


def test_an_annotation_that_cannot_be_resolved_counts_as_none() -> None:
    """The others still count."""
    assert is_same(call_again(unresolvable, (1, 2), 3, Decimal("1.0")), [(1, 2), 3, Decimal("1.0")])
    with pytest.raises(UnserialisableError):
        signature_of(unresolvable).encode((1, "not a number", Decimal(1)), {})


def test_leading_parameters_can_be_left_out() -> None:
    """The leading parameters that the engine fills in are neither encoded nor decoded."""
    signature = signature_of(typed, skip=1)

    assert signature.decode(signature.encode((NOW,), {})) == ([NOW], {})


def test_a_wrapped_function_keeps_its_types() -> None:
    """Decorators of users come between."""

    @functools.wraps(typed)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return typed(*args, **kwargs)

    assert is_same(call_again(wrapper, ITEM, NOW), typed(ITEM, NOW))


class Callable_:  # noqa: N801
    """An object that can be called."""

    def method(self, item: Item) -> Item:
        """A bound method is a function too."""
        return item


def test_a_bound_method_can_be_called() -> None:
    """Its `self` is not an argument."""
    assert is_same(call_again(Callable_().method, ITEM), ITEM)
