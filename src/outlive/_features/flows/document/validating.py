"""From plain data to the typed document, and everything that keeps it from being one.

msgspec says yes or no in no time and names the first mistake. Only when it says no is the data walked with the types of
the model, to name all mistakes in the words of the document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, TypeAlias, TypeGuard

import msgspec
from msgspec import inspect

from outlive._cel.expression import REMEMBERED_MAX
from outlive._cel.spelling import few_suggestions
from outlive._features.flows.document.model import (
    ERROR,
    IDENTIFIER,
    INSTANT,
    METHOD,
    NAME,
    SHARE,
    USE,
    Document,
    Variable,
)
from outlive._features.flows.document.problems import PROBLEMS_LOOKED_FOR, did_you_mean
from outlive._features.flows.document.reading import Reading
from outlive._kernel.model.span import SPAN
from outlive.errors.document import FlowError, Path, Problem, dotted, placed

SHOWN_CHARACTERS_MAX = 40
LONG_EXPRESSIONS_CHARACTERS_MAX = 100_000
"""Long expressions are read again whenever a document is looked at: see `REMEMBERED_MAX`."""

_ELSEWHERE = {
    "args": "with",
    "arguments": "with",
    "input": "with",
    "params": "with",
    "inputs": "input",
    "component": "use",
    "uses": "use",
    "run": "use",
    "call": "use",
    "needs": "after",
    "depends_on": "after",
    "dependsOn": "after",
    "condition": "if",
    "when": "if",
    "mustExecute": "must_run",
    "retries": "retry",
    "outputs": "output",
    "variables": "vars",
    "cron": "schedule",
    "max_attempts": "attempts",
    "tz": "timezone",
    "default": "use_default",
    "compensate": "undo",
}
"""The names of our fields in other formats."""

_WORDS = {
    "Document": "a flow",
    "FlowStep": "a step",
    "RetryPolicy": "retry",
    "OnError": "on_error",
    "Undo": "undo",
    "Variable": "a variable",
    "Trigger": "a trigger",
    "Case": "a test",
    "Mock": "a mock",
    "MockCase": "an answer of a mock",
}

VARIABLE = re.compile(r"\bvars\.([A-Za-z_][A-Za-z0-9_]*)")


def document_of(reading: Reading) -> Document:
    """The typed document.

    Raises:
        FlowError: it has not the form of a flow; all problems, with their places.
    """
    try:
        document = _with_undeclared(msgspec.convert(reading.data, Document), reading.data)
    except msgspec.ValidationError as error:
        with few_suggestions():
            found = list(islice(misfits(reading.data, Document), PROBLEMS_LOOKED_FOR)) or [_of_msgspec(error)]
        raise FlowError((_placed(problem, reading) for problem in found), reading.file) from None
    count = sum(map(_long_expressions, _texts(reading.data, "${{")))
    if count > LONG_EXPRESSIONS_CHARACTERS_MAX:
        most = f"{LONG_EXPRESSIONS_CHARACTERS_MAX:,} are the most"
        message = f"expressions of more than {REMEMBERED_MAX} characters have {count:,} together, and {most}"
        problem = Problem(code="too-large", message=message, suggestion="write a step for what they compute")
        raise FlowError([placed(problem, 1, 1)], reading.file)
    return document


def _long_expressions(text: str) -> int:
    """The characters of the long expressions in a text."""
    count, begin = 0, text.find("${{")
    while begin >= 0:
        end = text.find("}}", begin)
        end = len(text) if end < 0 else end
        count += end - begin if end - begin > REMEMBERED_MAX else 0
        begin = text.find("${{", end)
    return count


def _with_undeclared(document: Document, data: Mapping[str, Any]) -> Document:
    """A document without `vars` may use variables all the same: a start or the settings give them values, and they are
    null without. One that declares some declares all, so that a slip is found."""
    if document.vars:
        return document
    used = {
        name
        for part in ("steps", "output")
        for text in _texts(data.get(part), "vars.")
        for name in VARIABLE.findall(text)
    }
    own = {name: Variable(required=False) for name in sorted(used)}
    return msgspec.structs.replace(document, vars=own) if own else document


def _texts(value: Any, mark: str) -> Iterator[str]:
    """All texts in a value that hold a mark."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            if mark in each:
                yield each
        elif isinstance(each, dict | list):
            left.extend(each.values() if isinstance(each, dict) else each)


def _placed(problem: Problem, reading: Reading) -> Problem:
    by_key = problem.code in ("unknown-field", "name")
    places = reading.positions
    return placed(problem, *(places.of_key(problem.path) if by_key else places.of(problem.path)))


Look: TypeAlias = Callable[[Any, inspect.Type, Path], Iterable[Problem] | None]
"""Looks at a value before its type does; None if it has nothing to say about this one."""


def misfits(data: Any, wanted: type[msgspec.Struct], path: Path = (), look: Look | None = None) -> Iterator[Problem]:
    """Why data is not what a struct wants: every reason."""
    yield from _walk(data, _info(wanted), path, look)


@cache
def _info(wanted: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(wanted)


def _walk(value: Any, wanted: inspect.Type, path: Path, look: Look | None) -> Iterator[Problem]:
    said = None if look is None else look(value, wanted, path)
    if said is not None:
        yield from said
        return
    match wanted:
        case inspect.AnyType() | inspect.CustomType():
            return
        case inspect.Metadata():
            yield from _walk(value, wanted.type, path, look)
        case inspect.UnionType():
            yield from _union(value, wanted, path, look)
        case inspect.StructType() if isinstance(value, dict):
            yield from _struct(value, wanted, path, look)
        case inspect.DictType() if isinstance(value, dict):
            yield from _map(value, wanted, path, look)
        case inspect.ListType() if isinstance(value, list):
            for index, each in enumerate(value):
                yield from _walk(each, wanted.item_type, (*path, index), look)
        case inspect.StrType() if isinstance(value, str):
            yield from _text(value, wanted, path)
        case inspect.IntType() | inspect.FloatType() if _is_number(value, wanted):
            yield from _number(value, wanted, path)
        case inspect.LiteralType() if isinstance(value, str):
            if value not in wanted.values:
                message = f"{_name(path)} is {shown(value)}; expected {either(map(str, wanted.values))}"
                yield Problem(code="value", message=message, path=path, suggestion=_near_value(value, wanted))
        case inspect.BoolType() if isinstance(value, bool):
            return
        case inspect.NoneType() if value is None:
            return
        case _:
            yield _wrong_type(value, [wanted], path)


def _near_value(value: str, wanted: inspect.LiteralType) -> str:
    if tuple(wanted.values) == ("fail",):
        return "or a map: {use_default: ...} or {retry: ...}"
    near = did_you_mean(value, map(str, wanted.values))
    return near if near.startswith("did") else ""


def _union(value: Any, wanted: inspect.UnionType, path: Path, look: Look | None) -> Iterator[Problem]:
    kinds = [each for each in wanted.types if kind_of(each) not in ("", "null")]
    fitting = [each for each in wanted.types if _fits(value, each)]
    if not fitting:
        yield _wrong_type(value, kinds, path)
        return
    reasons = [list(_walk(value, each, path, look)) for each in fitting]
    if all(reasons):
        yield from reasons[0]


def _struct(value: Mapping[str, Any], wanted: inspect.StructType, path: Path, look: Look | None) -> Iterator[Problem]:
    fields = {each.encode_name: each for each in wanted.fields}
    word = _WORDS.get(wanted.cls.__name__) or _name(path)
    meant: set[str] = set()
    for name, each in value.items():
        if name in fields:
            yield from _walk(each, fields[name].type, (*path, name), look)
        elif wanted.forbid_unknown_fields:
            near, advice = _near_field(name, fields)
            meant.add(near)
            message = f"{word} has no field `{name}`"
            yield Problem(code="unknown-field", message=message, path=(*path, name), suggestion=advice)
    for name, field in fields.items():
        if field.required and name not in value and name not in meant:
            where = f" of {_name(path)}" if path else ""
            message = f"`{name}`{where} is missing"
            yield Problem(code="missing-field", message=message, path=path, suggestion=_EXAMPLES.get(name, ""))


_EXAMPLES = {
    "name": "give it a name, for example `name: orders`",
    "use": "say what it calls, for example `use: http`",
    "steps": "give it steps: `steps: {hello: {use: log, with: {message: hello}}}`",
}


def _near_field(name: str, fields: Mapping[str, Any]) -> tuple[str, str]:
    """The field that is meant by an unknown one, if that can be said, and advice."""
    if _ELSEWHERE.get(name) in fields:
        return _ELSEWHERE[name], f"it is called `{_ELSEWHERE[name]}` here"
    plain = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower().replace("-", "_")
    advice = f"did you mean {plain}?" if plain in fields else did_you_mean(name, fields)
    return advice[len("did you mean ") : -1] if advice.startswith("did") else "", advice


def _map(value: Mapping[str, Any], wanted: inspect.DictType, path: Path, look: Look | None) -> Iterator[Problem]:
    least, most = wanted.min_length, wanted.max_length
    if least is not None and len(value) < least:
        yield Problem(code="value", message=f"{_name(path)} is empty; give at least {least}", path=path)
    if most is not None and len(value) > most:
        yield Problem(
            code="value", message=f"{_name(path)} has {len(value):,} entries; {most:,} are the most", path=path
        )
    for key, each in value.items():
        for problem in _walk(key, wanted.key_type, (*path, key), None):
            message = f"{shown(key)} cannot be a name in {_name(path)}: expected {_FORMS[IDENTIFIER]}"
            yield Problem(code="name", message=message, path=problem.path, suggestion=_as_identifier(key))
        yield from _walk(each, wanted.value_type, (*path, key), look)


def _as_identifier(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    return f"write {plain}" if re.match(IDENTIFIER, plain) and len(plain) <= SHOWN_CHARACTERS_MAX else ""


def _text(value: str, wanted: inspect.StrType, path: Path) -> Iterator[Problem]:
    pattern = wanted.pattern
    if pattern is not None and not re.search(pattern, value):
        message = f"{_name(path)} is {shown(value)}; expected {_FORMS.get(pattern) or f'text like {pattern}'}"
        yield Problem(code="value", message=message, path=path)
    elif wanted.max_length is not None and len(value) > wanted.max_length:
        message = f"{_name(path)} has {len(value):,} characters; {wanted.max_length} are the most"
        yield Problem(code="value", message=message, path=path)


_FORMS = {
    SPAN: "a time such as 30s, 5m, 1h30m, 250ms or PT15M, or a number of seconds",
    NAME: "a name of letters, digits, `_`, `.` and `-` that begins with a letter",
    USE: "a name of letters, digits, `_`, `.` and `-` that begins with a letter, or a remote step as QUEUE/STEP",
    IDENTIFIER: "a name of letters, digits and _ that begins with a letter",
    METHOD: "a method of HTTP such as GET or POST",
    INSTANT: "an instant such as 2026-01-31T06:00:00Z",
    ERROR: "the name of an error: it may not be the name of what ends a program",
    SHARE: "a number, or a share such as 10%",
}


def _number(value: float, wanted: inspect.IntType | inspect.FloatType, path: Path) -> Iterator[Problem]:
    if wanted.ge is not None and value < wanted.ge:
        message = f"{_name(path)} is {value}; expected {_plain(wanted.ge)} or more"
        yield Problem(code="value", message=message, path=path)
    elif wanted.gt is not None and value <= wanted.gt:
        message = f"{_name(path)} is {value}; expected more than {_plain(wanted.gt)}"
        yield Problem(code="value", message=message, path=path)
    elif wanted.le is not None and value > wanted.le:
        message = f"{_name(path)} is {value}; expected {_plain(wanted.le)} or less"
        yield Problem(code="value", message=message, path=path)


def _plain(number: float) -> str:
    return f"{number:g}"


def _is_number(value: Any, wanted: inspect.IntType | inspect.FloatType) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(wanted, inspect.FloatType) and isinstance(value, float))


_KINDS: tuple[tuple[type, str, Callable[[Any], bool]], ...] = (
    (inspect.StructType, "a map", lambda value: isinstance(value, dict)),
    (inspect.DictType, "a map", lambda value: isinstance(value, dict)),
    (inspect.ListType, "a list", lambda value: isinstance(value, list)),
    (inspect.StrType, "text", lambda value: isinstance(value, str)),
    (inspect.BoolType, "true or false", lambda value: isinstance(value, bool)),
    (inspect.NoneType, "null", lambda value: value is None),
)


_AS_BOOL = {
    "yes": "true",
    "on": "true",
    "y": "true",
    "1": "true",
    "no": "false",
    "off": "false",
    "n": "false",
    "0": "false",
}


def kind_of(wanted: inspect.Type) -> str:
    """The name of a type in a document."""
    match wanted:
        case inspect.Metadata():
            return kind_of(wanted.type)
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number"
        case inspect.LiteralType():
            return either(map(str, wanted.values))
        case inspect.StrType() if wanted.pattern == SPAN:
            return "a time such as 30s"
        case _:
            return next((word for kind, word, _ in _KINDS if isinstance(wanted, kind)), "")


def _fits(value: Any, wanted: inspect.Type) -> bool:
    match wanted:
        case inspect.AnyType():
            return True
        case inspect.Metadata():
            return _fits(value, wanted.type)
        case inspect.IntType() | inspect.FloatType():
            return _is_number(value, wanted)
        case inspect.LiteralType():
            return isinstance(value, str)
        case _:
            return any(isinstance(wanted, kind) and fits(value) for kind, _, fits in _KINDS)


def _wrong_type(value: Any, wanted: list[inspect.Type], path: Path) -> Problem:
    words = list(dict.fromkeys(kind_of(each) for each in wanted))
    what = _name(path) if path else "the document"
    message = f"{what} is {shown(value)}; expected {either(words)}"
    return Problem(code="type", message=message, path=path, suggestion=_advice_on_type(value, wanted, words, path))


def _advice_on_type(value: Any, wanted: list[inspect.Type], words: list[str], path: Path) -> str:
    """How to write what was most likely meant."""
    is_short = isinstance(value, int | float) or (isinstance(value, str) and len(value) <= SHOWN_CHARACTERS_MAX)
    if path == ("steps",) and isinstance(value, list):
        return "write `charge:` and its fields instead of `- id: charge`"
    if isinstance(value, str) and "a list" in words:
        return f"write [{value}]" if is_short else "put it into a list"
    if words == ["true or false"] and str(value).lower() in _AS_BOOL:
        return f"YAML 1.2 knows only true and false; write {_AS_BOOL[str(value).lower()]}"
    if value is None and path:
        return "give it a value, or remove it"
    field = next((_SHORT_FOR[each.cls.__name__] for each in wanted if _is_short_for(each)), None)
    return f"write {{ {field}: {value} }}" if field and is_short and not isinstance(value, bool) else ""


_SHORT_FOR = {"FlowStep": "use", "Undo": "use", "RetryPolicy": "attempts", "Variable": "type", "Mock": "result"}
"""The field that people mean when they write one value in place of a map."""


def _is_short_for(wanted: inspect.Type) -> TypeGuard[inspect.StructType]:
    return isinstance(wanted, inspect.StructType) and wanted.cls.__name__ in _SHORT_FOR


def either(words: Iterable[str]) -> str:
    """Words with commas and an `or` before the last."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _name(path: Path) -> str:
    return dotted(path) or "the document"


def shown(value: Any) -> str:
    """A value in a message: what it is, and not pages of it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            text = value if len(value) <= SHOWN_CHARACTERS_MAX else f"{value[: SHOWN_CHARACTERS_MAX - 3]}..."
            return f"{text!r}"
        case dict():
            return "a map"
        case list():
            return "a list"
        case _:
            return str(value)[:SHOWN_CHARACTERS_MAX]


def _of_msgspec(error: msgspec.ValidationError) -> Problem:
    """A mistake that only msgspec knows."""
    message, _, place = str(error).partition(" - at `$")
    path: list[str | int] = [
        int(index) if index else name for name, index in re.findall(r"\.([^.\[\]`]+)|\[(\d+)\]", place)
    ]
    return Problem(code="type", message=message, path=tuple(path))
