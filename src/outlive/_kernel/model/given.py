"""Checks the arguments that users give to verbs, decorators and options, where they give them.

Each function takes where something was given (`engine.start`), what it is called there (`timeout`) and the value. It
gives the value back in the one form that everything behind the door knows, or raises an `InvalidArgumentError` that
says what to give instead. So all stores refuse the same, and no store ever sees what another one could not keep.

* Text is a plain `str` that UTF-8 can hold, without NUL, which PostgreSQL cannot keep. A member of an Enum whose value
  is text stands for that value.
* A number is not a bool, and not text. A span of time is a number of seconds, a timedelta or text such as "1h30m"
  (`outlive._kernel.model.span`); an instant is aware.
"""

from __future__ import annotations

import enum
import inspect
import math
import numbers
import operator
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from outlive._kernel.model.span import EXAMPLES, seconds_in
from outlive.errors import ArgumentTypeError, InvalidArgumentError

T = TypeVar("T")

Span = float | timedelta | str
"""How users give a span of time: seconds, a timedelta, or text such as "90s", "5m", "1h30m" and "PT15M"."""

SECONDS_MAX = 100 * 366 * 24 * 3600
"""The longest span of time: more is a mistake, and does not fit into an instant."""
NAME_CHARACTERS_MAX = 200
KEY_CHARACTERS_MAX = 1_000
TEXT_CHARACTERS_MAX = 10_000
"""Reasons, comments and titles: what people read."""
TAGS_MAX = 100
HEADERS_BYTES_MAX = 8 * 1024
"""The largest size of headers: the limit of HTTP for the baggage of a trace."""

LABEL_CHARACTERS_MAX = 128

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_MICROSECOND = 1e-6


# -- Text --------------------------------------------------------------------------------------------------------------


def text(where: str, name: str, value: object, *, like: str, least: int = 1, most: int = NAME_CHARACTERS_MAX) -> str:
    """Text of `least` to `most` characters; `like` is an example."""
    if type(value) is str and least <= len(value) <= most and value.isascii() and "\0" not in value:
        return value
    plain = value.value if isinstance(value, enum.Enum) else value
    wanted = f"give text of {least:,} to {most:,} characters"
    if not isinstance(plain, str):
        raise ArgumentTypeError(where, name, value, wanted, example=like)
    if type(plain) is not str:
        plain = str.__str__(plain)
    if not least <= len(plain) <= most:
        raise InvalidArgumentError(where, name, value, wanted, example=like)
    if not is_storable(plain):
        wanted = f"no store can keep a NUL or half a surrogate pair; {wanted}"
        raise InvalidArgumentError(where, name, value, wanted, example=like)
    return plain


def is_storable(plain: str) -> bool:
    """Whether every store can keep this text."""
    if "\0" in plain:
        return False
    try:
        return plain.isascii() or bool(plain.encode())
    except UnicodeEncodeError:
        return False


def label(where: str, value: object, *, name: str = "name", like: str = "charge") -> str:
    """A name that identities in journals, URLs and flows can take."""
    plain = text(where, name, value, like=like, most=LABEL_CHARACTERS_MAX)
    if _LABEL.fullmatch(plain) is None:
        wanted = "use letters, digits, `_`, `.` and `-`, and begin with a letter"
        raise InvalidArgumentError(where, name, value, wanted, example=like)
    return plain


def is_label(value: str) -> bool:
    """Whether identities in journals, URLs and flows can take a name."""
    return 0 < len(value) <= LABEL_CHARACTERS_MAX and _LABEL.fullmatch(value) is not None


def texts(where: str, name: str, values: object, *, like: str) -> tuple[str, ...]:
    """Several texts, in a list or another collection."""
    if isinstance(values, str) or not isinstance(values, Collection):
        raise ArgumentTypeError(where, name, values, "give a list of text", example=[like])
    return tuple(text(where, name, each, like=like) for each in values)


def tags(where: str, given: object) -> dict[str, str]:
    """A copy of the tags of a run, or of a search."""
    return {} if given is None else _text_by_name(where, "tags", given, like=("customer", "ann"))


def headers(where: str, given: object) -> dict[str, str]:
    """A copy of the headers of a run: as tags, and not too long, as every run that it starts has them too."""
    if given is None:
        return {}
    plain = _text_by_name(where, "headers", given, like=("tenant", "a"))
    size = sum(len(name.encode()) + len(value.encode()) for name, value in plain.items())
    if size > HEADERS_BYTES_MAX:
        wanted = f"they have {size:,} bytes, and {HEADERS_BYTES_MAX:,} are the most; give the rest as an argument"
        raise InvalidArgumentError(where, "headers", given, wanted)
    return plain


def _text_by_name(where: str, what: str, given: object, *, like: tuple[str, str]) -> dict[str, str]:
    wanted, example = "give text by name", {like[0]: like[1]}
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(where, what, given, wanted, example=example)
    if len(given) > TAGS_MAX:
        raise InvalidArgumentError(where, what, given, f"give at most {TAGS_MAX} of them", example=example)
    try:
        return {
            text(where, what, name, like=like[0]): text(
                where, what, value, like=like[1], least=0, most=KEY_CHARACTERS_MAX
            )
            for name, value in given.items()
        }
    except ArgumentTypeError as error:
        raise ArgumentTypeError(where, what, given, wanted, example=example) from error
    except InvalidArgumentError as error:
        raise InvalidArgumentError(where, what, given, error.wanted, example=example) from error


def one_of(where: str, name: str, value: object, choices: Collection[str]) -> str:
    """One of a few words."""
    plain = value.value if isinstance(value, enum.Enum) else value
    if not isinstance(plain, str) or plain not in choices:
        wanted = f"give one of {', '.join(choices)}"
        raise (InvalidArgumentError if isinstance(plain, str) else ArgumentTypeError)(where, name, value, wanted)
    return str.__str__(plain)


# -- Numbers and time --------------------------------------------------------------------------------------------------


def whole(where: str, name: str, value: object, *, least: int = 1, most: int | None = None, or_none: str = "") -> int:
    """A whole number; `or_none` says what None would mean where that may be given."""
    if type(value) is int and least <= value and (most is None or value <= most):
        return value
    bounds = f"from {least:,} on" if most is None else f"from {least:,} to {most:,}"
    wanted = f"give a whole number {bounds}{or_none and f', or None {or_none}'}"
    try:
        if isinstance(value, bool):
            raise TypeError(value)
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(where, name, value, wanted, example=max(least, 1)) from None
    if number < least or (most is not None and number > most):
        raise InvalidArgumentError(where, name, value, wanted, example=max(least, 1))
    return number


def number(
    where: str, name: str, value: object, *, least: float, most: float = math.inf, what: str = "", like: float = 1
) -> float:
    """A finite number from `least` to `most`."""
    bounds = f"of {least:g} or more" if most == math.inf else f"from {least:g} to {most:g}"
    wanted = f"give a number {bounds}{what and f', {what}'}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentTypeError(where, name, value, wanted, example=like)
    if not (least <= value <= most and math.isfinite(value)):
        raise InvalidArgumentError(where, name, value, wanted, example=like)
    return value


def seconds(where: str, name: str, value: object, *, or_zero: bool = False, or_none: str = "") -> float:
    """A span of time in seconds, given as such, as a timedelta or as text; `or_none` says what None would mean."""
    lowest = 0 if or_zero else _MICROSECOND
    if type(value) in (int, float) and lowest <= value <= SECONDS_MAX:  # type: ignore[operator]
        return value  # type: ignore[return-value]
    above = "0 or more" if or_zero else "more than 0"
    wanted = f"give {above} seconds, as a number, a timedelta or text ({EXAMPLES}), up to 100 years"
    wanted += f"{or_none and f', or None {or_none}'}"
    span = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(span, str):
        span = seconds_in(span)
        if span is None:
            raise InvalidArgumentError(where, name, value, wanted, example=5)
    if isinstance(span, bool) or not isinstance(span, int | float):
        raise ArgumentTypeError(where, name, value, wanted, example=5)
    if not lowest <= span <= SECONDS_MAX:
        raise InvalidArgumentError(where, name, value, wanted, example=5)
    return span


def some_seconds(where: str, name: str, value: object, *, or_none: str = "for no limit") -> float | None:
    """A span of time, or None."""
    return None if value is None else seconds(where, name, value, or_none=or_none)


def instant(where: str, name: str, value: object) -> datetime:
    """A datetime with a time zone."""
    wanted = f"give an aware datetime, for example {name}=outlive.now() + timedelta(hours=1)"
    if not isinstance(value, datetime):
        raise ArgumentTypeError(where, name, value, wanted)
    if value.utcoffset() is None:
        raise InvalidArgumentError(where, name, value, f"it has no time zone; {wanted}")
    return value


# -- Everything else ---------------------------------------------------------------------------------------------------


def alone(where: str, name: str, **others: object) -> None:
    """Nothing else is given beside `name`: it would not mean anything."""
    for other, value in others.items():
        if value is not None:
            raise InvalidArgumentError(where, other, value, f"give either {name} or {other}, and not both")


def flag(where: str, name: str, value: object) -> bool:
    """True or False, and nothing that only looks like it: `bool("no")` is True."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(where, name, value, "give True or False", example=True)
    return value


def instance(where: str, name: str, value: object, kind: type[T], *, like: str) -> T:
    """An object of a class; `like` is an example."""
    if not isinstance(value, kind):
        wanted = f"give {kind.__name__}, and not the class itself" if value is kind else f"give a {kind.__name__}"
        raise ArgumentTypeError(where, name, value, f"{wanted}, for example {name}={like}")
    return value


def option(where: str, name: str, value: T | None, kind: type[T]) -> T:
    """An object of a class of options; with its defaults unless given."""
    return kind() if value is None else instance(where, name, value, kind, like=f"outlive.{kind.__name__}()")


def exceptions(where: str, name: str, values: object) -> tuple[type[BaseException], ...]:
    """Exception classes in a tuple or a list; one alone is refused, as the next one would be forgotten."""
    classes = tuple(values) if isinstance(values, list | tuple | set | frozenset) else None
    if classes is None or not all(isinstance(it, type) and issubclass(it, BaseException) for it in classes):
        wanted = f"give a tuple of exception classes, for example {name}=(ConnectionError,)"
        raise ArgumentTypeError(where, name, values, wanted)
    return classes


def kind(where: str, name: str, value: object) -> Any:
    """A type, as annotations have it."""
    if isinstance(value, str | bytes | numbers.Number | Mapping | list | tuple | set | frozenset):
        raise ArgumentTypeError(where, name, value, f"give a type, for example {name}=Payment or {name}=dict[str, int]")
    return value


def kinds(where: str, name: str, values: object) -> dict[str, Any]:
    """Types by the name of what they are the type of."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(where, name, values, f'give types by name, for example {name}={{"paid": Payment}}')
    return {text(where, name, key, like="paid"): kind(where, name, value) for key, value in values.items()}


def function(where: str, name: str, value: object, *, like: str) -> Any:
    """A function, async or not: nothing that makes a generator, and no class."""
    if isinstance(value, type) or not callable(value):
        raise ArgumentTypeError(where, name, value, f"give a function, for example {name}={like}")
    if inspect.isasyncgenfunction(value) or inspect.isgeneratorfunction(value):
        wanted = "it yields; give a function that returns, for example a list, as only a result can be stored"
        raise ArgumentTypeError(where, name, value, wanted)
    return value


def several(where: str, name: str, values: object, *, like: str) -> None:
    """A list of something, or a dict of it by name."""
    if not isinstance(values, Sequence | Mapping) or isinstance(values, str | bytes):
        raise ArgumentTypeError(where, name, values, f"give a list, or a dict by name, for example {name}={like}")


def call(where: str, name: str, value: object) -> tuple[Any, ...]:
    """A workflow and its arguments."""
    if not isinstance(value, tuple) or not value:
        wanted = f"give a tuple of a workflow and its arguments, for example {name}=(refund, order_id)"
        raise ArgumentTypeError(where, name, value, wanted)
    return value


def many(where: str, name: str, values: object) -> Iterable[Any]:
    """Something to go through, that is not one text."""
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise ArgumentTypeError(where, name, values, f"give a list or another iterable, for example {name}=[1, 2, 3]")
    return values


def keep(frozen: object, **fields: Any) -> None:
    """Put checked values into a frozen object."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)
