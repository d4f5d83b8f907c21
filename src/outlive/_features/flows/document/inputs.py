"""Checks the input and the variables of a flow by their JSON Schemas, before the run exists.

The part of JSON Schema that people write by hand. What is not in it is refused when the document is checked: a keyword
that is silently ignored is worse than one that is missing. Defaults are filled in.

Strangers send values, too, so what looks at one is a generator: it yields after so many looks, where a caller on the
event loop gives way.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET

from outlive._cel.spelling import few_suggestions
from outlive._features.flows.document.model import Document, Variable
from outlive._features.flows.document.problems import did_you_mean
from outlive._features.flows.document.validating import shown
from outlive.errors.document import PROBLEMS_MAX, FlowInputError, Path, Problem, dotted

T = TypeVar("T")
Schema: TypeAlias = str | bool | Mapping[str, Any]
"""A JSON Schema, or just the name of a type."""
Filling: TypeAlias = Generator[None, None, T]
"""Work that yields where others may have their turn."""

_IS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
    "any": lambda value: True,
}
TYPES = tuple(_IS)
_NOTES = frozenset(
    ("title", "description", "examples", "format", "deprecated", "readOnly", "writeOnly", "$comment", "$schema")
)
"""They say nothing that could be checked."""
_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_COUNTS = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"))
_CHOICES = frozenset(("anyOf", "oneOf", "allOf"))
_OTHERS = frozenset(
    ("type", "enum", "const", "default", "required", "properties", "additionalProperties", "items", "uniqueItems")
)
KEYWORDS = _NOTES | _NUMBERS | _COUNTS | _CHOICES | _OTHERS
_REASONS = {
    "pattern": "a regular expression can take forever; compare in an expression, or list the values in `enum`",
    "$ref": "write the schema out",
    "not": "say what is allowed instead",
    "patternProperties": "use `additionalProperties`",
}


SCHEMA_DEPTH_MAX = 20
"""How deep schemas may stand in each other."""
SCHEMAS_MAX = 1_000
"""How many may stand in one, with itself."""
LOOKS_MAX, LOOKS_OF_DOCUMENT_MAX = 500_000, 20_000
"""How often a part of a schema may be held against a part of a value: a long list of choices for each item of a long
list is more work than both are long. The second is for all values that stand in one document."""
LOOKS_AT_ONCE = 1_000
"""Looks after which a caller gives way: two or three milliseconds."""
UNIQUE_BYTES_A_LOOK = 64
"""An item is written to find it twice, and a long one is so many looks more."""
VALUES_SHOWN_MAX, REASON_CHARACTERS_MAX = 12, 200
"""How many allowed values, or reasons, one message has, and how long a reason may be."""


class _Enough(Exception):
    """No more is looked for."""


class Looks:
    """How much may still be looked at: of one value, or of everything in one document."""

    def __init__(self, most: int = LOOKS_MAX) -> None:
        self._most = self._left = most
        self._rest_at = most - LOOKS_AT_ONCE
        self.reason = ""
        """Why no more was looked at."""

    def take(self, count: int = 1) -> bool:
        """Look at so many parts; whether others have their turn now.

        Raises:
            _Enough: it is more than may be.
        """
        self._left -= count
        if self._left < 0:
            raise self.enough(f"it takes more than {self._most:,} comparisons of values with schemas")
        if self._left > self._rest_at:
            return False
        self._rest_at = self._left - LOOKS_AT_ONCE
        return True

    def enough(self, reason: str) -> _Enough:
        """The end of it, for this reason."""
        self.reason = reason
        return _Enough()


# -- Schemas -----------------------------------------------------------------------------------------------------------


def schema_problems(
    schema: Any, path: Path, *, looks: Looks | None = None, is_property: bool = False
) -> Iterator[Problem]:
    """The problems of a schema itself. A property may say `required: false`, or be just the name of a type.

    `looks` counts the looks that a whole document may take; each schema is looked at once.
    """
    left = looks or Looks()
    try:
        yield from _Schema(left).problems(schema, path, is_property=is_property)
    except _Enough:
        yield _problem(path, f"{dotted(path)} cannot be checked: {left.reason}", "make it smaller")


class _Schema:
    """One look at one schema with those inside it."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._schemas = 0

    def problems(self, schema: Any, path: Path, *, is_property: bool = False, depth: int = 0) -> Iterator[Problem]:
        """The problems of a schema. Problems come as they are found, and are counted on the way: none is found
        twice."""
        self._schemas += 1
        if self._schemas > SCHEMAS_MAX:
            raise self._looks.enough(f"it holds more than {SCHEMAS_MAX:,} schemas")
        if depth > SCHEMA_DEPTH_MAX:
            raise self._looks.enough(f"schemas are nested more than {SCHEMA_DEPTH_MAX} levels deep")
        if isinstance(schema, bool):
            return
        if isinstance(schema, str):
            yield from _type_problems(schema, path)
            return
        if not isinstance(schema, dict):
            expected = f"expected a JSON Schema or a type: {', '.join(TYPES)}"
            yield _problem(path, f"{dotted(path)} is {shown(schema)}; {expected}")
            return
        is_sound = True
        for keyword, value in schema.items():
            for problem in self._of_keyword(keyword, value, (*path, keyword), is_property=is_property, depth=depth + 1):
                is_sound = False
                yield problem
        if "default" in schema and is_sound:
            yield from filled(schema, schema["default"], (*path, "default"), looks=self._looks)[1]

    def _of_keyword(self, keyword: str, value: Any, path: Path, *, is_property: bool, depth: int) -> Iterator[Problem]:
        if keyword == "properties" and isinstance(value, dict):
            for name, inner in value.items():
                yield from self.problems(inner, (*path, name), is_property=True, depth=depth)
        elif keyword in ("items", "additionalProperties"):
            yield from self.problems(value, path, depth=depth)
        elif keyword in _CHOICES and isinstance(value, list) and value:
            for index, inner in enumerate(value):
                yield from self.problems(inner, (*path, index), depth=depth)
        else:
            yield from _keyword_problems(keyword, value, path, is_property=is_property)


def _keyword_problems(keyword: str, value: Any, path: Path, *, is_property: bool) -> Iterator[Problem]:
    """The problems of a keyword that holds no schema, or something else in place of one."""
    if keyword not in KEYWORDS:
        advice = _REASONS.get(keyword) or did_you_mean(keyword, KEYWORDS)
        yield Problem(
            code="schema",
            message=f"{dotted(path)}: `{keyword}` is not a keyword that we check",
            path=path,
            suggestion=advice,
        )
    elif keyword == "type":
        yield from _type_problems(value, path)
    elif keyword == "required":
        if not (isinstance(value, bool) and is_property) and not _is_texts(value):
            wanted = "true, false or a list of names" if is_property else "a list of names"
            yield _problem(path, f"{dotted(path)} is {shown(value)}; expected {wanted}")
    elif keyword == "properties":
        yield _problem(path, f"{dotted(path)} is {shown(value)}; expected a map from names to schemas")
    elif keyword in _CHOICES:
        yield _problem(path, f"{dotted(path)} is {shown(value)}; expected a list of schemas")
    elif keyword == "enum":
        if not isinstance(value, list) or not value:
            yield _problem(path, f"{dotted(path)} is {shown(value)}; expected a list of values")
    elif keyword in _NUMBERS:
        if not _IS["number"](value) or (keyword == "multipleOf" and value <= 0):
            yield _problem(path, f"{dotted(path)} is {shown(value)}; expected a number")
    elif keyword in _COUNTS and (not _IS["integer"](value) or value < 0):
        yield _problem(path, f"{dotted(path)} is {shown(value)}; expected a whole number, 0 or more")


def _type_problems(value: Any, path: Path) -> Iterator[Problem]:
    for name in value if isinstance(value, list) and value else [value]:
        if not isinstance(name, str) or name not in _IS:
            advice = did_you_mean(name, TYPES) if isinstance(name, str) else ""
            yield Problem(
                code="schema",
                message=f"{dotted(path)} is {shown(name)}; expected a type: {', '.join(TYPES)}",
                path=path,
                suggestion=advice if advice.startswith("did") else "",
            )


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _problem(path: Path, message: str, suggestion: str = "") -> Problem:
    return Problem(code="schema", message=message, path=path, suggestion=suggestion)


# -- Data --------------------------------------------------------------------------------------------------------------


def in_one_turn(work: Filling[T]) -> T:
    """The return value of work that gives way to nothing."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def filled(schema: Schema, value: Any, path: Path = (), *, looks: Looks | None = None) -> tuple[Any, list[Problem]]:
    """A value with the defaults of its schema filled in, and what is wrong with it: the first mistakes of many.

    `looks` counts the looks that this value shares with others.
    """
    return in_one_turn(filling(schema, value, path, looks=looks))


def filling(
    schema: Schema, value: Any, path: Path = (), *, looks: Looks | None = None
) -> Filling[tuple[Any, list[Problem]]]:
    """The work of `filled`, for values that strangers send."""
    problems = _Problems(looks or Looks())
    try:
        with few_suggestions():
            return (yield from _filled(schema, value, path, problems)), problems
    except _Enough:
        if not problems:
            message = f"{dotted(path) or 'it'} cannot be checked: {problems.looks.reason}"
            list.append(problems, Problem(code="input", message=message, path=path, suggestion="give less at once"))
        return value, problems


class _Problems(list[Problem]):
    """The problems that were found so far, and how much may still be looked at."""

    def __init__(self, looks: Looks) -> None:
        super().__init__()
        self.looks = looks

    def append(self, problem: Problem) -> None:
        """Add one.

        Raises:
            _Enough: there are as many as are reported.
        """
        super().append(problem)
        if len(self) >= PROBLEMS_MAX:
            raise _Enough


def _filled(schema: Schema, value: Any, path: Path, problems: _Problems) -> Filling[Any]:
    if problems.looks.take():
        yield
    if schema is True:
        return value
    if schema is False:
        problems.append(_wrong(path, "nothing may be given here"))
        return value
    plain: Mapping[str, Any] = {"type": schema} if isinstance(schema, str) else schema
    wanted = plain.get("type", "any")
    types = wanted if isinstance(wanted, list) else [wanted]
    if not any(_IS[each](value) for each in types):
        problems.append(_wrong(path, f"is {shown(value)}; expected {' or '.join(types)}"))
        return value
    if "enum" in plain and problems.looks.take(len(plain["enum"])):
        yield
    _check_value(plain, value, path, problems)
    if isinstance(value, str):
        _check_count(plain, len(value), "Length", "characters", path, problems)
    elif isinstance(value, list):
        value = yield from _filled_list(plain, value, path, problems)
    elif isinstance(value, dict):
        value = yield from _filled_map(plain, value, path, problems)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(plain, value, path, problems)
    return (yield from _chosen(plain, value, path, problems))


def _check_value(schema: Mapping[str, Any], value: Any, path: Path, problems: _Problems) -> None:
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        values = ", ".join(shown(each) for each in schema["enum"][:VALUES_SHOWN_MAX])
        values += ", ..." if len(schema["enum"]) > VALUES_SHOWN_MAX else ""
        near = did_you_mean(value, filter(_IS["string"], schema["enum"])) if isinstance(value, str) else ""
        suggestion = near if near.startswith("did") else ""
        problems.append(_wrong(path, f"is {shown(value)}; expected one of {values}", suggestion))
    if "const" in schema and not _same(value, schema["const"]):
        problems.append(_wrong(path, f"is {shown(value)}; expected {shown(schema['const'])}"))


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


_LIMITS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "{} or more", operator.ge),
    ("maximum", "{} or less", operator.le),
    ("exclusiveMinimum", "more than {}", operator.gt),
    ("exclusiveMaximum", "less than {}", operator.lt),
)


def _check_number(schema: Mapping[str, Any], value: float, path: Path, problems: _Problems) -> None:
    for keyword, words, holds in _LIMITS:
        if keyword in schema and not holds(value, schema[keyword]):
            problems.append(_wrong(path, f"is {value}; expected {words.format(schema[keyword])}"))
    if "multipleOf" in schema and not _is_multiple(value, schema["multipleOf"]):
        problems.append(_wrong(path, f"is {value}; expected a multiple of {schema['multipleOf']}"))


def _is_multiple(value: float, of: float) -> bool:
    quotient = value / of
    return math.isfinite(quotient) and math.isclose(quotient, round(quotient), rel_tol=1e-12, abs_tol=1e-9)


def _check_count(
    schema: Mapping[str, Any], count: int, word: str, things: str, path: Path, problems: _Problems
) -> None:
    least, most = schema.get(f"min{word}"), schema.get(f"max{word}")
    if least is not None and count < least:
        problems.append(_wrong(path, f"has {count} {things}; expected {least} or more"))
    if most is not None and count > most:
        problems.append(_wrong(path, f"has {count} {things}; expected {most} or fewer"))


def _filled_list(schema: Mapping[str, Any], value: list[Any], path: Path, problems: _Problems) -> Filling[list[Any]]:
    _check_count(schema, len(value), "Items", "items", path, problems)
    if schema.get("uniqueItems") is True:
        texts = set[bytes]()
        for each in value:
            text = msgspec.json.encode(each, order="sorted")
            texts.add(text)
            if problems.looks.take(1 + len(text) // UNIQUE_BYTES_A_LOOK):
                yield
        if len(texts) < len(value):
            problems.append(_wrong(path, "has an item twice; expected different items"))
    if "items" not in schema:
        return value
    found: list[Any] = []
    for index, each in enumerate(value):
        found.append((yield from _filled(schema["items"], each, (*path, index), problems)))
    return found


def _filled_map(
    schema: Mapping[str, Any], value: dict[str, Any], path: Path, problems: _Problems
) -> Filling[dict[str, Any]]:
    _check_count(schema, len(value), "Properties", "properties", path, problems)
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required = schema.get("required")
    if problems.looks.take(len(properties) + (len(required) if isinstance(required, list) else 0)):
        yield
    wanted = {*(required if isinstance(required, list) else ())}
    found: dict[str, Any] = {}
    for name, inner in properties.items():
        if name in value:
            found[name] = yield from _filled(inner, value[name], (*path, name), problems)
        elif isinstance(inner, Mapping) and "default" in inner:
            found[name] = inner["default"]
        elif isinstance(inner, Mapping) and inner.get("required") is True:
            wanted.add(name)
    for name in sorted(wanted - value.keys() - found.keys()):
        problems.append(_wrong((*path, name), "is missing"))
    rest = schema.get("additionalProperties", True)
    for name, each in value.items():
        if name in properties:
            continue
        if rest is False:
            problems.append(_wrong((*path, name), "is not known", did_you_mean(name, properties)))
        else:
            found[name] = yield from _filled(rest, each, (*path, name), problems)
    return found


def _chosen(schema: Mapping[str, Any], value: Any, path: Path, problems: _Problems) -> Filling[Any]:
    for inner in schema.get("allOf", ()):
        value = yield from _filled(inner, value, path, problems)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            tried: list[tuple[Any, list[Problem]]] = []
            for inner in schema[keyword]:
                one = yield from _tried(inner, value, path, problems.looks)
                tried.append(one)
            fitting = [made for made, wrong in tried if not wrong]
            if not fitting:
                first = [wrong[0].message[:REASON_CHARACTERS_MAX] for _, wrong in tried[:VALUES_SHOWN_MAX] if wrong]
                reasons = "; or ".join(first)
                problems.append(_wrong(path, f"fits none of `{keyword}`: {reasons}"))
            elif keyword == "oneOf" and len(fitting) > 1:
                problems.append(_wrong(path, f"fits {len(fitting)} of `oneOf`; expected exactly one"))
            else:
                value = fitting[0]
    return value


def _tried(schema: Schema, value: Any, path: Path, looks: Looks) -> Filling[tuple[Any, list[Problem]]]:
    problems = _Problems(looks)
    try:
        return (yield from _filled(schema, value, path, problems)), problems
    except _Enough:
        looks.take(0)  # If there are none left, the others need not be tried.
        return value, problems


def _wrong(path: Path, message: str, suggestion: str = "") -> Problem:
    return Problem(code="input", message=f"{dotted(path) or 'it'} {message}", path=path, suggestion=suggestion)


# -- Input and variables of a run --------------------------------------------------------------------------------------


def input_schema(document: Document) -> dict[str, Any]:
    """The JSON Schema of the whole input: for editors, forms and other programs."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, schema in document.input.items():
        plain = {"type": schema} if isinstance(schema, str) else schema if isinstance(schema, dict) else {}
        own = {key: value for key, value in plain.items() if not (key == "required" and isinstance(value, bool))}
        properties[name] = {key: value for key, value in own.items() if (key, value) != ("type", "any")}
        if "default" not in plain and plain.get("required") is not False:
            required.append(name)
    if not properties:
        return {}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def given_input(document: Document, given: Any, *, drop_unknown: bool = False) -> Any:
    """The input of a run with its defaults.

    Args:
        document: the flow. One without `input` takes any JSON.
        given: what the caller gives.
        drop_unknown: leave out what the flow does not know: the data of an event is not written for this flow alone.

    Raises:
        FlowInputError: it is not what the flow takes.
    """
    return in_one_turn(input_filling(document, given, drop_unknown=drop_unknown))


def input_filling(document: Document, given: Any, *, drop_unknown: bool = False) -> Filling[Any]:
    """The work of `given_input`, for what strangers send.

    Raises:
        FlowInputError: see `given_input`.
    """
    schema = input_schema(document)
    if not schema:
        return given
    plain = {} if given is None else given
    if drop_unknown and isinstance(plain, dict):
        plain = {name: value for name, value in plain.items() if name in schema["properties"]}
    made, problems = yield from filling(schema, plain, ("input",))
    if problems:
        raise FlowInputError(document.name, problems)
    return made


def given_vars(document: Document, given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The variables of a run that are not secrets: what was given, else the environment, else the default.

    Raises:
        FlowInputError: one is missing, not known, a secret, or not what its schema says.
    """
    with few_suggestions():
        unknown = islice((name for name in given if name not in document.vars), PROBLEMS_MAX)
        problems = [_wrong(("vars", name), "is not known", did_you_mean(name, document.vars)) for name in unknown]
    found: dict[str, Any] = {}
    for name, variable in document.vars.items():
        path = ("vars", name)
        if variable.secret:
            if name in given:
                message = "is a secret, and what a run is given is in its journal"
                problems.append(_wrong(path, message, "put it into the environment or the settings of the worker"))
            continue
        value = given[name] if name in given else _from_environment(variable, environ)
        if value is not UNSET:
            found[name], wrong = filled(variable_schema(variable), value, path)
            problems += wrong
        elif variable.default is not UNSET:
            found[name] = variable.default
        elif variable.required:
            advice = f"give it, or set {variable.env}" if variable.env else "give it"
            problems.append(_wrong(path, "is missing", advice))
        else:
            found[name] = None
    if problems:
        raise FlowInputError(document.name, problems)
    return found


def refuse_fixed(document: Document, given: Mapping[str, Any], fixed: Collection[str]) -> None:
    """Return if no start gives a variable that the document, or the address of a step with a secret, fixes.

    Raises:
        FlowInputError: one does, and with another value than it has here anyway.
    """
    own = fixed_here(document, fixed)
    advice = "set it in the settings of the environment, or let the document say `fixed: false`"
    problems = [
        _wrong(("vars", name), "is fixed: a start cannot give it", advice)
        for name, value in given.items()
        if name in fixed and value != own.get(name, UNSET)
    ]
    if problems:
        raise FlowInputError(document.name, problems)


def fixed_here(document: Document, fixed: Collection[str]) -> dict[str, Any]:
    """The values that fixed variables have here: as the settings of this environment say, else the environment, else
    the default."""
    settled = _with_settings(document, {})
    found: dict[str, Any] = {}
    for name in fixed:
        variable = document.vars[name]
        value = settled[name] if name in settled else _from_environment(variable, os.environ)
        if value is UNSET:
            value = variable.default
        if value is not UNSET:
            found[name] = value
    return found


def vars_here(document: Document, given: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of a run that this process starts: what was given, else what the settings of this environment say,
    else the environment, else the default; see `given_vars`."""
    return given_vars(document, _with_settings(document, given), os.environ)


def _with_settings(document: Document, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values that a start gives, and for the others what the settings of this environment say."""
    if not document.vars:
        return given
    from outlive._features.flows.outside import settings

    own = settings.current().vars
    return {**{name: own[name] for name, each in document.vars.items() if name in own and not each.secret}, **given}


def variable_schema(variable: Variable) -> Schema:
    """The JSON Schema of a variable."""
    if variable.schema is not None:
        return variable.schema if variable.type is None else {"type": variable.type, **variable.schema}
    return variable.type or True


def _from_environment(variable: Variable, environ: Mapping[str, str]) -> Any:
    text = environ.get(variable.env) if variable.env else None
    if text is None:
        return UNSET
    schema = variable_schema(variable)
    wanted = schema.get("type", "string") if isinstance(schema, Mapping) else schema
    if wanted in ("string", True) or (isinstance(wanted, list) and "string" in wanted):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
