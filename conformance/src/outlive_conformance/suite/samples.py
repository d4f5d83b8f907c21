"""A value for every type that a journal or a row can hold, made from the type itself.

A field or an event kind that is added later is covered without a change here.
"""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from outlive._kernel.model import Payload
from outlive_conformance.suite.builders import value

DEPTH_MAX = 3
"""How many failures a failure is caused by, and the like."""


def fullest(kind: type[Any]) -> Any:
    """An instance with something else than the default in every field."""
    return _sample(inspect.type_info(kind), depth=0)


def barest(kind: type[Any]) -> Any:
    """An instance with only the fields that it cannot do without."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return kind(**{field.name: _sample(field.type, depth=0) for field in info.fields if field.required})


def _sample(info: inspect.Type, *, depth: int) -> Any:
    match info:
        case inspect.StructType(cls=kind) if kind is Payload:
            # Exactly one of its fields may be set, which its type cannot say.
            return value({"text": "žluťoučký kůň ☃ \U0001f600", "number": 1.5, "nothing": None})
        case inspect.StructType():
            return info.cls(**{field.name: _sample(field.type, depth=depth + 1) for field in info.fields})
        case inspect.UnionType():
            return None if depth > DEPTH_MAX else _sample(_something(info), depth=depth)
        case inspect.VarTupleType():
            return (_sample(info.item_type, depth=depth), _sample(info.item_type, depth=depth))
        case inspect.DictType():
            return {"ключ": _sample(info.value_type, depth=depth), "": _sample(info.value_type, depth=depth)}
        case inspect.EnumType():
            return list(info.cls)[-1]
        case inspect.IntType():
            return 2**53 + 1  # A store that keeps integers as floats loses the 1.
        case inspect.StrType():
            return "two\nlines, \"quotes\", 'quotes', ☃ and \U0001f600"
        case inspect.BoolType():
            return True
        case inspect.AnyType():
            return ["any", {"thing": [1, 2.5, None, True]}]
        case _:
            raise NotImplementedError(f"say here what a value of {info} looks like")


def _something(info: inspect.UnionType) -> inspect.Type:
    """The first type in the union that is not None."""
    return next(kind for kind in info.types if not isinstance(kind, inspect.NoneType))
