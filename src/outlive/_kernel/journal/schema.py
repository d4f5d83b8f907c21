"""Checks JSON against a JSON Schema: the part of the standard (draft 2020-12) that msgspec and pydantic write.

A form is checked where it is filled in, and there the code of the workflow may be missing: all there is is the schema
in the journal. A decision that was taken stays, so what passes here must be readable by the type that wrote the schema.
Therefore this is stricter than the standard in two places: a number like `5.0` is not an integer, and the formats that
msgspec and pydantic write are checked. Other formats, and unknown words, are left alone.

The schema is the program's, but strangers send values. So the cost grows with the length of a value and not with its
depth: of several choices those are looked into whose type and whose tags fit, the answer for one list or object and one
schema is remembered while there are several, and the looks at one value are limited. Between some of them a caller on
the event loop gives way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from outlive.errors.program import brief

Schema = Mapping[str, Any] | bool
Checking = Generator[None, None, str | None]

LOOKS_MAX = 3_000_000
"""Looks at one value, each at a part of it by a part of its schema: what 4 MiB of JSON needs fits in, if no more than a
few choices begin alike."""
LOOKS_AT_ONCE = 1_000
"""Looks after which a caller gives way: about a millisecond."""
TOGETHER_MAX = 100
"""Items of a list that are one look, where nothing but their types counts."""
PATTERN_CHARACTERS_MAX = 4_096
"""A longer text is not matched with a pattern: the time that a match takes may grow with the square of its length."""
SHOWN_CHARACTERS_MAX = 60


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    try:
        quotient = value / step
        return abs(quotient - round(quotient)) < 1e-9
    except OverflowError:  # It is too large for a float; the type itself will look at it.
        return True


_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_SCALARS: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
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
_BOUNDS = frozenset(word for least, most, _ in _LENGTHS.values() for word in (least, most))
_WORDS = _BOUNDS | frozenset(
    {"$ref", "type", "const", "enum", "allOf", "anyOf", "oneOf", "format", "contentEncoding", "pattern"}
)
_WORDS |= {"required", "properties", "additionalProperties", "propertyNames", "prefixItems", "items", "uniqueItems"}
_WORDS |= {word for word, _, _ in _LIMITS}
"""The words by which a value may break a schema."""

_FORMATS: dict[Any, Any] = {
    "date-time": datetime,
    "date": date,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
    "decimal": Decimal,
    "base64": bytes,
}


class _TooManyLooks(Exception):
    """The budget of looks is used up."""


class _Mismatch(NamedTuple):
    """A place in a value, and how it breaks the schema there: words are made of it when a person reads it."""

    say: Callable[[], str]
    places: tuple[str, ...] = ()

    def below(self, place: str) -> _Mismatch:
        """The mismatch seen from the value around it."""
        return _Mismatch(self.say, (place, *self.places))


_Found = Generator[None, None, _Mismatch | None]
_Tag = tuple[str, Mapping[str, Any], frozenset[str]]
"""A field, its schema, and the texts that it may be."""
_ABSENT = object()


def find_mismatch(value: Any, schema: Schema) -> str | None:
    """Where and how a value breaks a schema, for a person; None if it fits."""
    checking = check(value, schema)
    while True:
        try:
            next(checking)
        except StopIteration as end:
            found: str | None = end.value
            return found


def check(value: Any, schema: Schema) -> Checking:
    """A check in slices, for values that strangers send: it yields where others may have their turn, and returns as
    `find_mismatch` does."""
    try:
        found = yield from _Check(schema if isinstance(schema, Mapping) else {}).look(value, schema)
    except RecursionError:
        return "at $: it is nested too deeply to be checked"
    except _TooManyLooks:
        return f"at $: it is too large to be checked, as that takes more than {LOOKS_MAX:,} looks at parts of it"
    return None if found is None else f"at ${''.join(found.places)}: {found.say()}"


class _Check:
    """One walk through a value."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._looks, self._rest_at = 0, LOOKS_AT_ONCE
        self._branches = 0
        """How many choices with several ways surround the part that is looked at."""
        self._seen: dict[tuple[int, int], _Mismatch | None] = {}
        self._plain: dict[int, frozenset[type]] = {}
        self._tags: dict[int, list[_Tag]] = {}
        self._resolved: dict[str, Schema] = {}

    def _is_due(self, looks: int = 1) -> bool:
        """Count looks; whether others have their turn now."""
        self._looks += looks
        if self._looks > LOOKS_MAX:
            raise _TooManyLooks
        if self._looks < self._rest_at:
            return False
        self._rest_at = self._looks + LOOKS_AT_ONCE
        return True

    def look(self, value: Any, schema: Schema) -> _Found:
        """The first mismatch of a value and a schema."""
        if not isinstance(schema, bool) and "$ref" in schema:
            schema = self._meant(schema)
        if isinstance(schema, bool):
            return _of_bool(schema)
        if self._branches and isinstance(value, (dict, list)):
            return self._remembered(value, schema)
        return self._look(value, schema)

    def _remembered(self, value: Any, schema: Mapping[str, Any]) -> _Found:
        pair = id(value), id(schema)
        if pair not in self._seen:
            self._seen[pair] = yield from self._look(value, schema)
        return self._seen[pair]

    def _meant(self, schema: Mapping[str, Any]) -> Schema:
        """The schema that this one refers to, if it says nothing else."""
        found: Schema = schema
        for _ in range(len(self._root.get("$defs", ())) + 1):
            if isinstance(found, bool) or "$ref" not in found or len(_WORDS.intersection(found)) > 1:
                break
            found = self._resolve(found["$ref"])
        return found

    def _look(self, value: Any, schema: Mapping[str, Any]) -> _Found:
        if self._is_due():
            yield
        found: _Mismatch | None = None
        if "$ref" in schema:
            found = yield from self.look(value, self._resolve(schema["$ref"]))
        found = found or _kind_mismatch(value, schema) or (yield from self._choices(value, schema))
        if found is not None:
            return found
        if isinstance(value, dict):
            found = yield from self._object(value, schema)
        elif isinstance(value, list):
            found = yield from self._array(value, schema)
        elif isinstance(value, str):
            if "pattern" in schema and self._is_due(len(value) // 16):
                yield
            found = _text_mismatch(value, schema)
        elif _is_number(value):
            found = _limit_mismatch(value, schema)
        return found or _length_mismatch(value, schema)

    def _resolve(self, reference: str) -> Schema:
        """The schema to which a reference points; all references point into the schema itself."""
        if reference not in self._resolved:
            found: Any = self._root
            for part in reference.removeprefix("#").split("/")[1:]:
                found = found[part.replace("~1", "/").replace("~0", "~")]
            self._resolved[reference] = found
        return self._resolved[reference]

    def _choices(self, value: Any, schema: Mapping[str, Any]) -> _Found:
        found: _Mismatch | None = None
        if "allOf" in schema:
            self._branches += 1
            for each in schema["allOf"]:
                found = found or (yield from self.look(value, each))
            self._branches -= 1
        for word in ("anyOf", "oneOf"):
            if word in schema:
                found = found or (yield from self._choice(value, schema[word], is_one=word == "oneOf"))
        return found

    def _choice(self, value: Any, choices: Sequence[Schema], *, is_one: bool) -> _Found:
        if not is_one and any(type(value) in self._plain_types(each) for each in choices):
            return None
        glances = [self._glance(value, each) for each in choices]
        left = [each for each, glance in zip(choices, glances, strict=True) if glance is None]
        if self._is_due(len(choices)):
            yield
        if not left:
            return _furthest(glances)
        fits, found = 0, []
        self._branches += len(left) > 1
        for each in left:
            found.append((yield from self.look(value, each)))
            fits += found[-1] is None
            if fits > is_one:
                break
        self._branches -= len(left) > 1
        if not fits:
            return _furthest(found)
        return _Mismatch(lambda: f"{_short(value)} fits more than one of the choices") if fits > 1 else None

    def _glance(self, value: Any, schema: Schema) -> _Mismatch | None:
        """A mismatch that shows without a look into the value: in its type, or in a field that says what it is."""
        while not isinstance(schema, bool):
            if (found := _kind_mismatch(value, schema)) is not None:
                return found
            for name, tag, texts in self._tags_of(schema) if isinstance(value, dict) else ():
                said = value.get(name, _ABSENT)
                if said is _ABSENT or (type(said) is str and said in texts):
                    continue
                if (found := _kind_mismatch(said, tag)) is not None:
                    return found.below(f".{name}")
            if "$ref" not in schema:
                break
            schema = self._resolve(schema["$ref"])
        return None

    def _tags_of(self, schema: Mapping[str, Any]) -> list[_Tag]:
        """The fields of an object that have one of some given values."""
        if id(schema) not in self._tags:
            properties = schema.get("properties", {}).items()
            tags = [(name, each) for name, each in properties if isinstance(each, Mapping)]
            self._tags[id(schema)] = [
                (name, each, frozenset(value for value in each.get("enum", [each.get("const")]) if type(value) is str))
                for name, each in tags
                if ("enum" in each) is not ("const" in each)
            ]
        return self._tags[id(schema)]

    def _plain_types(self, schema: Schema) -> frozenset[type]:
        """The types of Python whose values fit, whatever they are."""
        if isinstance(schema, bool):
            return frozenset()
        if id(schema) not in self._plain:
            self._plain[id(schema)] = frozenset()  # A circle of references says nothing of types.
            words = _WORDS.intersection(schema)
            parts: Iterable[Iterable[type]] = ()
            if words == {"type"}:
                kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
                parts = [_SCALARS.get(kind, ()) for kind in kinds]
            elif words == {"anyOf"}:
                parts = [self._plain_types(each) for each in schema["anyOf"]]
            elif words == {"$ref"}:
                parts = [self._plain_types(self._resolve(schema["$ref"]))]
            self._plain[id(schema)] = frozenset(kind for part in parts for kind in part)
        return self._plain[id(schema)]

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any]) -> _Found:
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                return _Mismatch(partial("{!r} is missing".format, name))
        names, others = schema.get("propertyNames", True), schema.get("additionalProperties", True)
        if not properties and not _says(names) and not _says(others):
            return None
        for name, item in value.items():
            if self._is_due():
                yield
            found = None
            if _says(names):
                found = yield from self.look(name, names)
            inner = properties.get(name, others)
            if found is None and inner is False and name not in properties:
                known = ", ".join(properties) or "none"
                found = _Mismatch(partial("there is no such field (fields: {})".format, known))
            if found is None and type(item) not in self._plain_types(inner):
                found = yield from self.look(item, inner)
            if found is not None:
                return found.below(f".{name}")
        return None

    def _array(self, value: list[Any], schema: Mapping[str, Any]) -> _Found:
        first, rest = schema.get("prefixItems", ()), schema.get("items", True)
        for index, (item, inner) in enumerate(zip(value, first, strict=False)):
            found = yield from self.look(item, inner)
            if found is not None:
                return found.below(f"[{index}]")
        plain = self._plain_types(rest)
        for start in range(len(first), len(value), TOGETHER_MAX) if _says(rest) else ():
            if self._is_due():
                yield
            part = value[start : start + TOGETHER_MAX]
            if plain.issuperset(map(type, part)):
                continue
            for index, item in enumerate(part, start):
                found = None if type(item) in plain else (yield from self.look(item, rest))
                if found is not None:
                    return found.below(f"[{index}]")
        if schema.get("uniqueItems"):
            seen: set[bytes] = set()
            for item in value:
                seen.add(msgspec.json.encode(item, order="sorted"))
                if self._is_due():
                    yield
            if len(seen) < len(value):
                return _Mismatch(lambda: "two items are equal")
        return None


def _of_bool(schema: bool) -> _Found:  # noqa: FBT001 (it is a schema)
    yield from ()
    return None if schema else _Mismatch(lambda: "nothing is allowed here")


def _says(schema: Schema) -> bool:
    """Whether a schema says anything about a value."""
    return not schema if isinstance(schema, bool) else not _WORDS.isdisjoint(schema)


def _furthest(found: Iterable[_Mismatch | None]) -> _Mismatch | None:
    """The mismatch of the choice that came furthest: it was meant."""
    return max((each for each in found if each is not None), key=lambda each: len(each.places))


def _is_any(value: Any, kinds: Iterable[str]) -> bool:
    return any(_TYPES[kind](value) for kind in kinds)


def _kind_mismatch(value: Any, schema: Mapping[str, Any]) -> _Mismatch | None:
    wanted = schema.get("type")
    if wanted is not None and not (_TYPES[wanted](value) if type(wanted) is str else _is_any(value, wanted)):
        kinds = [wanted] if isinstance(wanted, str) else wanted
        return _Mismatch(lambda: f"{_short(value)} is not of type {' or '.join(kinds)}")
    if "const" in schema and not _equal(value, schema["const"]):
        return _Mismatch(lambda: f"{_short(value)} must be {_short(schema['const'])}")
    if "enum" in schema and not any(_equal(value, each) for each in schema["enum"]):
        return _Mismatch(lambda: f"{_short(value)} is none of {', '.join(_short(each) for each in schema['enum'])}")
    return None


def _text_mismatch(text: str, schema: Mapping[str, Any]) -> _Mismatch | None:
    for form in (schema.get("format"), schema.get("contentEncoding")):
        if not _has_format(text, form):
            return _Mismatch(partial("{} does not have the format {}".format, _short(text), form))
    if "pattern" not in schema:
        return None
    if len(text) > PATTERN_CHARACTERS_MAX:
        most = f"{len(text)} characters are too many to be matched with a pattern, at most {PATTERN_CHARACTERS_MAX}"
        return _Mismatch(partial(str, most))
    if not _matches(text, schema["pattern"]):
        return _Mismatch(lambda: f"{_short(text)} does not match the pattern {schema['pattern']}")
    return None


def _limit_mismatch(value: float, schema: Mapping[str, Any]) -> _Mismatch | None:
    for word, fits, wanted in _LIMITS:
        if word in schema and not fits(value, schema[word]):
            return _Mismatch(partial("{} must be {}".format, value, wanted.format(schema[word])))
    return None


def _length_mismatch(value: Any, schema: Mapping[str, Any]) -> _Mismatch | None:
    words = _LENGTHS.get(type(value))
    if words is None or _BOUNDS.isdisjoint(schema):
        return None
    least, most, what = words
    if len(value) < schema.get(least, 0):
        return _Mismatch(lambda: f"{len(value)} {what} are too few, at least {schema[least]}")
    if most in schema and len(value) > schema[most]:
        return _Mismatch(lambda: f"{len(value)} {what} are too many, at most {schema[most]}")
    return None


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


def _short(value: Any) -> str:
    return brief(value, SHOWN_CHARACTERS_MAX)
