"""Checks JSON against a JSON Schema: the part of the standard (draft 2020-12) that msgspec and pydantic write.

A form is checked where it is filled in, and there the code of the workflow may be missing: all there is is the schema
in the journal. A decision that was taken stays, so what passes here must be readable by the type that wrote the schema.
Therefore this is stricter than the standard in two places: a number like `5.0` is not an integer, and the formats that
msgspec and pydantic write are checked. Other formats, and unknown words, are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

Schema = Mapping[str, Any] | bool


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    quotient = value / step
    return abs(quotient - round(quotient)) < 1e-9


_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_LIMITS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("minimum", lambda value, limit: value >= limit, "at least {}"),
    ("maximum", lambda value, limit: value <= limit, "at most {}"),
    ("exclusiveMinimum", lambda value, limit: value > limit, "more than {}"),
    ("exclusiveMaximum", lambda value, limit: value < limit, "less than {}"),
    ("multipleOf", _is_multiple, "a multiple of {}"),
)
_LENGTHS: dict[Any, tuple[str, str, str]] = {
    str: ("minLength", "maxLength", "characters"),
    list: ("minItems", "maxItems", "items"),
    dict: ("minProperties", "maxProperties", "properties"),
}


_FORMATS: dict[Any, Any] = {
    "date-time": datetime,
    "date": date,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
    "decimal": Decimal,
    "base64": bytes,
}


def find_mismatch(value: Any, schema: Schema) -> str | None:
    """Where and how a value breaks a schema, for a person; None if it fits."""
    root = schema if isinstance(schema, Mapping) else {}
    try:
        return next(_Check(root).mismatches(value, schema, "$"), None)
    except RecursionError:
        return "at $: it is nested too deeply to be checked"


class _Check:
    """One walk through a value; yields mismatches, the first one first."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def mismatches(self, value: Any, schema: Schema, path: str) -> Iterator[str]:
        if isinstance(schema, bool):
            if not schema:
                yield f"at {path}: nothing is allowed here"
            return
        if "$ref" in schema:
            yield from self.mismatches(value, self._resolve(schema["$ref"]), path)
        yield from _kind_mismatch(value, schema, path)
        yield from self._choices(value, schema, path)
        if isinstance(value, dict):
            yield from self._object(value, schema, path)
        elif isinstance(value, list):
            yield from self._array(value, schema, path)
        elif isinstance(value, str):
            for form in (schema.get("format"), schema.get("contentEncoding")):
                if not _has_format(value, form):
                    yield f"at {path}: {_short(value)} does not have the format {form}"
            if "pattern" in schema and not _matches(value, schema["pattern"]):
                yield f"at {path}: {_short(value)} does not match the pattern {schema['pattern']}"
        elif _is_number(value):
            for word, fits, wanted in _LIMITS:
                if word in schema and not fits(value, schema[word]):
                    yield f"at {path}: {value} must be {wanted.format(schema[word])}"
        yield from _length_mismatch(value, schema, path)

    def _resolve(self, reference: str) -> Schema:
        """The schema to which a reference points; all references point into the schema itself."""
        found: Any = self._root
        for part in reference.removeprefix("#").split("/")[1:]:
            found = found[part.replace("~1", "/").replace("~0", "~")]
        schema: Schema = found
        return schema

    def _choices(self, value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
        for each in schema.get("allOf", ()):
            yield from self.mismatches(value, each, path)
        for word in ("anyOf", "oneOf"):
            if word not in schema:
                continue
            found = [next(self.mismatches(value, each, path), None) for each in schema[word]]
            if None not in found:
                # The choice that came furthest was meant.
                yield max((each for each in found if each is not None), key=_depth)
            elif word == "oneOf" and found.count(None) > 1:
                yield f"at {path}: {_short(value)} fits more than one of the choices"

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"at {path}: {name!r} is missing"
        for name, item in value.items():
            inner = f"{path}.{name}"
            if "propertyNames" in schema:
                yield from self.mismatches(name, schema["propertyNames"], inner)
            if name in properties:
                yield from self.mismatches(item, properties[name], inner)
            elif schema.get("additionalProperties", True) is False:
                known = ", ".join(properties) or "none"
                yield f"at {inner}: there is no such field (fields: {known})"
            else:
                yield from self.mismatches(item, schema.get("additionalProperties", True), inner)

    def _array(self, value: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
        first = schema.get("prefixItems", ())
        for index, item in enumerate(value):
            inner = first[index] if index < len(first) else schema.get("items", True)
            yield from self.mismatches(item, inner, f"{path}[{index}]")
        if schema.get("uniqueItems") and len({msgspec.json.encode(item, order="sorted") for item in value}) < len(
            value
        ):
            yield f"at {path}: two items are equal"


def _kind_mismatch(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    wanted = schema.get("type", ())
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        yield f"at {path}: {_short(value)} is not of type {' or '.join(kinds)}"
    if "const" in schema and not _equal(value, schema["const"]):
        yield f"at {path}: {_short(value)} must be {_short(schema['const'])}"
    if "enum" in schema and not any(_equal(value, each) for each in schema["enum"]):
        yield f"at {path}: {_short(value)} is none of {', '.join(_short(each) for each in schema['enum'])}"


def _length_mismatch(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    words = _LENGTHS.get(type(value))
    if words is None:
        return
    least, most, what = words
    if len(value) < schema.get(least, 0):
        yield f"at {path}: {len(value)} {what} are too few, at least {schema[least]}"
    if most in schema and len(value) > schema[most]:
        yield f"at {path}: {len(value)} {what} are too many, at most {schema[most]}"


def _has_format(text: str, form: Any) -> bool:
    try:
        msgspec.convert(text, _FORMATS.get(form, str))
    except msgspec.ValidationError:
        return False
    return True


def _matches(text: str, pattern: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True  # Written for an engine that knows more than ours; the type itself will look at the text.


def _equal(value: Any, other: Any) -> bool:
    """Equal as JSON: 1 is 1.0, and true is not 1."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_equal, value, other))
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_equal(item, other[name]) for name, item in value.items())
    return bool(value == other)


def _depth(mismatch: str) -> int:
    place = mismatch.partition(": ")[0]
    return place.count(".") + place.count("[")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
