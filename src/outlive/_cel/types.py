"""The types of values before anything runs: a small lattice.

Every type includes null, because a step that was not needed has the result null: only what certainly fails is a
mistake. `ANY` is what nothing is known of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA_DEPTH_MAX = 50
ALTERNATIVES_MAX = 50
"""The largest number of maps and lists for which a common type is looked for: each is compared with all fields of those
before it."""


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value."""

    kind: str
    """`any`, `null`, `bool`, `number`, `string`, `list` or `map`."""
    of: Type | None = None
    """The type of the elements of a list, or of the fields of a map that are not listed; None: a map has no other
    fields."""
    fields: Mapping[str, Type] | None = None
    """The known fields of a map."""

    def __str__(self) -> str:
        if self.kind == "list" and self.of and self.of.kind != "any":
            return f"list of {self.of}"
        return self.kind


ANY = Type("any")
NULL = Type("null")
BOOL = Type("bool")
NUMBER = Type("number")
STRING = Type("string")


def LIST(of: Type = ANY) -> Type:  # noqa: N802 - it stands beside ANY and NUMBER
    """A list whose elements have a type."""
    return Type("list", of)


def MAP(fields: Mapping[str, Type] | None = None, *, of: Type | None = None) -> Type:  # noqa: N802
    """A map: with these fields and no others, or with any others (`of`), or of which nothing is known."""
    return Type("map", of or (ANY if fields is None else None), fields)


def join(left: Type, right: Type) -> Type:
    """The type of a value that has one type or the other."""
    if left == right or right.kind == "null":
        return left
    if left.kind == "null":
        return right
    if left.kind != right.kind:
        return ANY
    if left.kind == "list":
        return LIST(join(left.of or ANY, right.of or ANY))
    if left.kind == "map" and left.fields is not None and right.fields is not None:
        of = None if left.of is None and right.of is None else ANY
        names = {**left.fields, **right.fields}
        fields = {
            name: join(left.fields[name], right.fields[name])
            if name in left.fields and name in right.fields
            else names[name]
            for name in names
        }
        return Type("map", of, fields)
    return MAP() if left.kind == "map" else left


def field_of(type_: Type, name: str) -> Type | None:
    """The type of a field of a map; None if it certainly has no such field."""
    if type_.kind != "map":
        return ANY
    if type_.fields is not None and name in type_.fields:
        return type_.fields[name]
    return type_.of


def type_of_value(value: Any, depth: int = 0) -> Type:
    """The type of plain data."""
    if depth > SCHEMA_DEPTH_MAX:
        return ANY
    match value:
        case None:
            return NULL
        case bool():
            return BOOL
        case int() | float():
            return NUMBER
        case str():
            return STRING
        case list():
            if _are_many(value):
                return LIST(ANY)
            of = NULL
            for item in value:
                of = join(of, type_of_value(item, depth + 1))
            return LIST(ANY if of == NULL else of)
        case dict():
            return MAP({name: type_of_value(item, depth + 1) for name, item in value.items()})
        case _:
            return ANY


def _are_many(values: list[Any]) -> bool:
    return len(values) > ALTERNATIVES_MAX < sum(isinstance(each, dict | list) for each in values)


_SIMPLE = {
    "string": STRING,
    "number": NUMBER,
    "integer": NUMBER,
    "boolean": BOOL,
    "null": NULL,
    "any": ANY,
}


def type_of_schema(schema: Any, depth: int = 0) -> Type:
    """The type that a JSON Schema describes; ANY where it says something that types cannot.

    An object whose `properties` are listed has no other fields, unless `additionalProperties` says that it has: a
    reference to a field that the schema does not know is a mistake more often than not.
    """
    if isinstance(schema, str):
        schema = {"type": schema}
    if not isinstance(schema, dict) or depth > SCHEMA_DEPTH_MAX:
        return ANY
    kind = schema.get("type")
    if isinstance(kind, list):
        # Each kind once: two of one kind would look at all that is in it twice, at every level.
        kinds = dict.fromkeys(each for each in kind if isinstance(each, str))
        return _joined([{**schema, "type": each} for each in kinds], depth)
    if kind == "array":
        return LIST(type_of_schema(schema.get("items"), depth + 1))
    if kind == "object" or (kind is None and "properties" in schema):
        return _object(schema, depth)
    if isinstance(kind, str):
        return _SIMPLE.get(kind, ANY)
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            return _joined(schema[word], depth)
    if "const" in schema:
        return type_of_value(schema["const"])
    if isinstance(schema.get("enum"), list):
        return type_of_value(schema["enum"]).of or ANY
    return ANY


def _joined(schemas: list[Any], depth: int) -> Type:
    if _are_many(schemas):
        return ANY
    joined = NULL
    for schema in schemas:
        joined = join(joined, type_of_schema(schema, depth + 1))
    return joined if schemas else ANY


def _object(schema: dict[str, Any], depth: int) -> Type:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    of = type_of_schema(others, depth + 1) if others is True or isinstance(others, dict) else None
    if not isinstance(properties, dict) or any(word in schema for word in ("allOf", "anyOf", "oneOf", "$ref")):
        return MAP(of=of)
    required = schema.get("required")
    named = (
        dict.fromkeys((name for name in required if isinstance(name, str)), ANY) if isinstance(required, list) else {}
    )
    fields = {name: type_of_schema(each, depth + 1) for name, each in properties.items()}
    return Type("map", ANY if "patternProperties" in schema else of, {**named, **fields})
