"""Values of all kinds that a workflow may hand around, by chance; and what it means that two are the same."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NIGHT = settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11))])

DATETIMES = st.datetimes(timezones=ZONES).map(lambda value: value.replace(fold=0))
"""Naive, in UTC or with a fixed offset; a named zone or a `fold` is refused."""

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.complex_numbers(),
    TEXT,
    st.binary(max_size=8),
    st.binary(max_size=8).map(bytearray),
    st.dates(),
    st.times(timezones=ZONES).map(lambda value: value.replace(fold=0)),
    DATETIMES,
    st.timedeltas(),
    st.decimals(),
    st.uuids(),
)
HASHABLE: st.SearchStrategy[Any] = st.recursive(
    SCALARS.filter(lambda value: not isinstance(value, bytearray) and str(value) not in ("sNaN", "-sNaN")),
    lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=3)),
    max_leaves=4,
)
PLAIN: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.sets(HASHABLE, max_size=3),
        st.frozensets(HASHABLE, max_size=3),
        st.dictionaries(TEXT | st.just("$"), inner, max_size=3),
        st.dictionaries(HASHABLE, inner, max_size=3),
    ),
    max_leaves=6,
)
"""Everything that has an exact form without an annotation."""


def is_same(left: Any, right: Any) -> bool:
    """Whether two values are the same in value and type, all the way down; nan is the same as nan, 0.0 is not -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return str(left) == str(right)
    if isinstance(left, complex):
        return is_same(left.real, right.real) and is_same(left.imag, right.imag)
    if isinstance(left, Decimal):
        return str(left) == str(right)
    if isinstance(left, datetime | time):
        return repr(left) == repr(right)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, dict):
        return has_same(list(left.items()), list(right.items()))
    if isinstance(left, set | frozenset):
        return has_same(list(left), list(right))
    if dataclasses.is_dataclass(left):
        return all(is_same(getattr(left, each.name), getattr(right, each.name)) for each in dataclasses.fields(left))
    if isinstance(left, msgspec.Struct):
        return all(is_same(getattr(left, name), getattr(right, name)) for name in left.__struct_fields__)
    if hasattr(left, "__pydantic_fields__"):
        return is_same(dict(left), dict(right))
    return bool(left == right)


def has_same(left: list[Any], right: list[Any]) -> bool:
    """Whether two lists have the same members, in whatever order."""
    return len(left) == len(right) and all(any(is_same(one, other) for other in right) for one in left)
