# ruff: noqa: E501 - a table has a row for each function
"""The functions of the language: a fixed list, pure, each bounded by the steps that it uses up.

`x.f(y)` is `f(x, y)`. None of them knows the time, chance, a file or a network, and none takes a pattern: a regular
expression from data can take for ever.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from functools import cmp_to_key
from math import isfinite
from typing import Any
from urllib.parse import quote

from outlive._define.flow.expression.times import TIME_FUNCTIONS
from outlive._define.flow.expression.tokens import INT_MAX, INT_MIN
from outlive._define.flow.expression.types import ANY, BOOL, LIST, MAP, NUMBER, STRING, Type
from outlive._define.flow.expression.values import (
    DATA_DEPTH_MAX,
    Frame,
    LimitError,
    is_number,
    json_of,
    key_of,
    less,
    refuse_length,
    shown,
    text_of,
)
from outlive.errors import ExpressionError

_COLLECTION = Type("collection")
"""What `size` takes: a text, a list or a map."""
_TEXT_OR_LIST = Type("text or list")


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the language."""

    form: str
    """How it is written, for messages and the documentation."""
    says: str
    """What it gives, for the documentation."""
    takes: tuple[Type, ...]
    gives: Type | Callable[[list[Type]], Type]
    run: Callable[..., Any]
    least: int = -1
    most: int = -1

    def __post_init__(self) -> None:
        if self.least < 0:
            object.__setattr__(self, "least", len(self.takes))
        if self.most < 0:
            object.__setattr__(self, "most", max(self.least, len(self.takes)))

    def counts(self) -> str:
        """How many values it takes, in words."""
        if self.least == self.most:
            return "one value" if self.most == 1 else f"{self.most} values"
        return f"at least {self.least}" if self.most > 9 else f"{self.least} to {self.most} values"


# --- What values are -------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ExpressionError(f"it takes a string, and this is {shown(value)}", suggestion=_text_advice(value))
    return value


def _text_advice(value: Any) -> str:
    return "write string(x)" if is_number(value) else "write coalesce(x, '')" if value is None else ""


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ExpressionError(
            f"it takes a list, and this is {shown(value)}", suggestion="write coalesce(x, [])" if value is None else ""
        )
    return value


def _map(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise ExpressionError(
            f"it takes a map, and this is {shown(value)}", suggestion="write coalesce(x, {})" if value is None else ""
        )
    return value


def _number(value: Any) -> int | float:
    if type(value) is float and not isfinite(value):
        raise ExpressionError("it takes a finite number")
    if type(value) is int or type(value) is float:
        return value
    raise ExpressionError(f"it takes a number, and this is {shown(value)}")


def _whole(value: Any) -> int:
    if type(value) is float and isfinite(value) and value == int(value):
        value = int(value)
    if type(value) is not int:
        raise ExpressionError(f"it takes a whole number, and this is {shown(value)}")
    return value


def _in_range(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise ExpressionError("the result is an integer of more than 64 bits")
    return value


def _size(frame: Frame, value: Any) -> int:
    if type(value) not in (str, list, dict):
        raise ExpressionError(f"size() takes a string, a list or a map, and this is {shown(value)}")
    return len(value)


def _type(frame: Frame, value: Any) -> str:
    names = {
        str: "string",
        int: "int",
        float: "double",
        bool: "bool",
        list: "list",
        dict: "map",
        type(None): "null_type",
    }
    if type(value) not in names:
        raise ExpressionError(f"{shown(value)}")
    return names[type(value)]


def _int(frame: Frame, value: Any) -> int:
    if type(value) is str and re.fullmatch(r"-?[0-9]{1,19}", value):
        return _in_range(int(value))
    if type(value) is float and isfinite(value):
        return _in_range(int(value))
    if type(value) is int:
        return _in_range(value)
    raise ExpressionError(f"{shown(value)} is no integer")


_DOUBLE = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")


def _double(frame: Frame, value: Any) -> float:
    if is_number(value) or (type(value) is str and len(value) <= 1000 and _DOUBLE.fullmatch(value)):
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if isfinite(number):
            return number
    raise ExpressionError(f"{shown(value)} is no double")


_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def _bool(frame: Frame, value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str and value in _BOOLS:
        return _BOOLS[value]
    raise ExpressionError(f"{shown(value)} is no bool")


def _string(frame: Frame, value: Any) -> str:
    return frame.made(text_of(value))


# --- Texts -----------------------------------------------------------------------------------------------


def _contains(frame: Frame, text: Any, part: Any) -> bool:
    frame.read_text(_text(text), _text(part))
    return part in text


def _starts_with(frame: Frame, text: Any, part: Any) -> bool:
    return _text(text).startswith(_text(part))


def _ends_with(frame: Frame, text: Any, part: Any) -> bool:
    return _text(text).endswith(_text(part))


def _index_of(frame: Frame, text: Any, part: Any) -> int:
    frame.read_text(_text(text), _text(part))
    return int(text.find(part))


def _last_index_of(frame: Frame, text: Any, part: Any) -> int:
    frame.read_text(_text(text), _text(part))
    return int(text.rfind(part))


_LOWER = {ord(upper): upper.lower() for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_UPPER = {ord(lower): lower.upper() for lower in "abcdefghijklmnopqrstuvwxyz"}


def _lower_ascii(frame: Frame, text: Any) -> str:
    return frame.made(_text(text).translate(_LOWER))


def _upper_ascii(frame: Frame, text: Any) -> str:
    return frame.made(_text(text).translate(_UPPER))


def _trim(frame: Frame, text: Any) -> str:
    return frame.made(_text(text).strip())


def _split(frame: Frame, text: Any, separator: Any) -> list[str]:
    frame.read_text(_text(text), _text(separator))
    frame.items(text.count(separator) + 1)
    return text.split(separator) if separator else list(text)


def _join(frame: Frame, items: Any, separator: Any = "") -> str:
    frame.items(len(_list(items)))
    texts = [text_of(item) for item in items]
    refuse_length(sum(map(len, texts)) + len(_text(separator)) * max(0, len(texts) - 1))
    return frame.made(separator.join(texts))


def _replace(frame: Frame, text: Any, old: Any, new: Any) -> str:
    frame.read_text(_text(text), _text(old), _text(new))
    refuse_length(len(text) + text.count(old) * (len(new) - len(old)))
    return frame.made(text.replace(old, new))


def _bounds(count: int, first: Any, end: Any) -> tuple[int, int]:
    start, stop = _whole(first), count if end is None else _whole(end)
    if not 0 <= start <= stop <= count:
        raise ExpressionError(f"{start} to {stop} is not within 0 to {count}")
    return start, stop


def _substring(frame: Frame, text: Any, first: Any, end: Any = None) -> str:
    start, stop = _bounds(len(_text(text)), first, end)
    return frame.made(text[start:stop])


def _char_at(frame: Frame, text: Any, at: Any) -> str:
    start, _ = _bounds(len(_text(text)), at, None)
    return _text(text)[start : start + 1]


def _reverse(frame: Frame, value: Any) -> Any:
    if type(value) is str:
        return frame.made(value[::-1])
    frame.items(len(_list(value)))
    return value[::-1]


# --- Numbers ---------------------------------------------------------------------------------------------


def _abs(frame: Frame, value: Any) -> int | float:
    number = abs(_number(value))
    return _in_range(number) if type(number) is int else number


def _rounding(mode: str) -> Callable[..., int | float]:
    def run(frame: Frame, value: Any, digits: Any = 0) -> int | float:
        number, places = _number(value), _whole(digits)
        if not 0 <= places <= 15:
            raise ExpressionError(f"it rounds to 0 to 15 digits behind the point, and this is {places}")
        if type(number) is int:
            return _in_range(number)
        # By the digits that people see: 2.675 is rounded to 2.68, though its double is a little less.
        exact = Decimal(repr(number))
        if abs(number) >= 1e15:
            return _in_range(int(exact)) if places == 0 else number
        rounded = exact.quantize(Decimal(1).scaleb(-places), mode)
        return float(rounded) if places else int(rounded)

    return run


def _values_of(frame: Frame, given: tuple[Any, ...]) -> list[Any]:
    values = _list(given[0]) if len(given) == 1 and type(given[0]) is list else list(given)
    frame.items(len(values))
    if not values:
        raise ExpressionError("it needs at least one value", suggestion="look at size(list) first")
    return values


def _min(frame: Frame, *given: Any) -> Any:
    first, *others = _values_of(frame, given)
    for other in others:
        first = other if less(frame, other, first) else first
    return first


def _max(frame: Frame, *given: Any) -> Any:
    first, *others = _values_of(frame, given)
    for other in others:
        first = other if less(frame, first, other) else first
    return first


def _sum(frame: Frame, items: Any) -> int | float:
    frame.items(len(_list(items)))
    total: int | float = 0
    for item in items:
        try:
            total = total + _number(item)
        except OverflowError:
            total = float("inf")
        if type(total) is float and not isfinite(total):
            raise ExpressionError("the result is no finite number")
    return _in_range(total) if type(total) is int else total


# --- Lists and maps --------------------------------------------------------------------------------------


def sorted_by(frame: Frame, items: list[Any], keys: list[Any]) -> list[Any]:
    """The items in the order of their keys; items with equal keys keep theirs."""
    frame.items(len(items))

    def compare(left: Any, right: Any) -> int:
        frame.items(1)
        return -1 if less(frame, left[0], right[0]) else 1 if less(frame, right[0], left[0]) else 0

    return [item for _, item in sorted(zip(keys, items, strict=True), key=cmp_to_key(compare))]


def _sort(frame: Frame, items: Any) -> list[Any]:
    return sorted_by(frame, _list(items), items)


def _distinct(frame: Frame, items: Any) -> list[Any]:
    frame.items(len(_list(items)))
    seen = set()
    found = []
    for item in items:
        key = key_of(frame, item)
        if key not in seen:
            seen.add(key)
            found.append(item)
    return found


def _flatten(frame: Frame, items: Any, depth: Any = 1) -> list[Any]:
    levels = _whole(depth)
    if not 0 <= levels <= DATA_DEPTH_MAX:
        raise ExpressionError(f"it flattens 0 to {DATA_DEPTH_MAX} levels, and this is {levels}")
    found = _list(items)
    for _ in range(levels):
        frame.items(sum(len(item) if type(item) is list else 1 for item in found))
        if not any(type(item) is list for item in found):
            break
        found = [inner for item in found for inner in (item if type(item) is list else [item])]
    return found


def _range(frame: Frame, first: Any, end: Any = None) -> list[int]:
    start, stop = (0, _whole(first)) if end is None else (_whole(first), _whole(end))
    frame.items(max(0, stop - start))
    return list(range(start, stop))


def _slice(frame: Frame, items: Any, first: Any, end: Any = None) -> list[Any]:
    start, stop = _bounds(len(_list(items)), first, end)
    frame.items(stop - start)
    return _list(items)[start:stop]


def _first(frame: Frame, items: Any) -> Any:
    return items[0] if _list(items) else None


def _last(frame: Frame, items: Any) -> Any:
    return items[-1] if _list(items) else None


def _zip(frame: Frame, left: Any, right: Any) -> list[Any]:
    if len(_list(left)) != len(_list(right)):
        raise ExpressionError(f"the lists have {len(left)} and {len(right)} elements")
    frame.items(len(left) * 2)
    return [[a, b] for a, b in zip(left, right, strict=True)]


def _keys(frame: Frame, value: Any) -> list[str]:
    frame.items(len(_map(value)))
    return list(value)


def _values(frame: Frame, value: Any) -> list[Any]:
    frame.items(len(_map(value)))
    return list(value.values())


def _entries(frame: Frame, value: Any) -> list[Any]:
    frame.items(len(_map(value)) * 2)
    return [{"key": key, "value": each} for key, each in value.items()]


def _from_entries(frame: Frame, entries: Any) -> dict[str, Any]:
    frame.items(len(_list(entries)))
    made = {}
    for entry in entries:
        if type(entry) is list and len(entry) == 2:
            key, value = entry
        elif type(entry) is dict and "key" in entry and "value" in entry:
            key, value = entry["key"], entry["value"]
        else:
            raise ExpressionError(
                f'an entry is {{"key": ..., "value": ...}} or [key, value], and this is {shown(entry)}'
            )
        made[_text(key)] = value
    return made


def _merge(frame: Frame, *maps: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for each in maps:
        frame.items(len(_map(each)))
        made.update(each)
    return made


# --- Other forms of data ---------------------------------------------------------------------------------


def _to_json(frame: Frame, value: Any) -> str:
    return json_of(frame, value)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _small_int(text: str) -> int:
    if len(text) > 20:
        raise ValueError("an integer of more than 64 bits")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key comes twice")
    return made


def _refuse_depth(text: str) -> None:
    """Before anything is built; brackets in texts count too, which errs on the safe side only for odd texts."""
    depth = 0
    inside = False
    escaped = False
    for letter in text:
        if inside:
            inside = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            inside = True
        elif letter in "[{":
            depth += 1
            if depth > DATA_DEPTH_MAX:
                raise LimitError(f"it reads data that is nested more than {DATA_DEPTH_MAX} deep")
        elif letter in "]}":
            depth -= 1


def _from_json(frame: Frame, text: Any) -> Any:
    refuse_length(len(_text(text)))
    frame.spend(len(text) // 256)
    _refuse_depth(text)
    try:
        made = json.loads(text, parse_constant=_no_constant, parse_int=_small_int, object_pairs_hook=_unique)
    except ValueError as error:
        raise ExpressionError(f"the text is no JSON: {error}") from None
    return _finite_everywhere(made)


def _finite_everywhere(made: Any) -> Any:
    left = [made]
    while left:
        item = left.pop()
        if type(item) is float and not isfinite(item):
            raise ExpressionError("the text has a number that is too large")
        left += item.values() if type(item) is dict else item if type(item) is list else ()
    return made


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ExpressionError("the text has half of a character, which has no UTF-8") from None


def _to_base64(frame: Frame, text: Any) -> str:
    frame.read_text(_text(text))
    refuse_length(len(text))
    return frame.made(base64.b64encode(_bytes(text)).decode("ascii"))


def _from_base64(frame: Frame, text: Any) -> str:
    frame.read_text(_text(text))
    refuse_length(len(text))
    try:
        return base64.b64decode(_bytes(text), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise ExpressionError(f"{shown(text)} is no base64 of a UTF-8 text") from None


def _sha256(frame: Frame, text: Any) -> str:
    frame.read_text(_text(text))
    return hashlib.sha256(_bytes(text)).hexdigest()


def _url_encode(frame: Frame, text: Any) -> str:
    frame.read_text(_text(text))
    refuse_length(len(text) * 3)
    return frame.made(quote(_bytes(text), safe=""))


FUNCTIONS: Mapping[str, Function] = {
    "size": Function("size(x)", "characters of a text, elements of a list, fields of a map", (_COLLECTION,), NUMBER, _size),
    "type": Function("type(x)", "`'int'`, `'double'`, `'string'`, `'bool'`, `'list'`, `'map'` or `'null_type'`", (ANY,), STRING, _type),
    "string": Function("string(x)", "a number, bool or text as text", (ANY,), STRING, _string),
    "int": Function("int(x)", "a text or double as integer, cut towards zero", (ANY,), NUMBER, _int),
    "double": Function("double(x)", "a text or integer as double", (ANY,), NUMBER, _double),
    "bool": Function("bool(x)", "`'true'` or `'false'` as bool", (ANY,), BOOL, _bool),
    "contains": Function("text.contains(part)", "whether the part is in the text", (STRING, STRING), BOOL, _contains),
    "startsWith": Function("text.startsWith(part)", "whether it begins with it", (STRING, STRING), BOOL, _starts_with),
    "endsWith": Function("text.endsWith(part)", "whether it ends with it", (STRING, STRING), BOOL, _ends_with),
    "indexOf": Function("text.indexOf(part)", "where the part is first, or -1", (STRING, STRING), NUMBER, _index_of),
    "lastIndexOf": Function("text.lastIndexOf(part)", "where the part is last, or -1", (STRING, STRING), NUMBER, _last_index_of),
    "lowerAscii": Function("text.lowerAscii()", "with A to Z as small letters", (STRING,), STRING, _lower_ascii),
    "upperAscii": Function("text.upperAscii()", "with a to z as capitals", (STRING,), STRING, _upper_ascii),
    "trim": Function("text.trim()", "without the white space around it", (STRING,), STRING, _trim),
    "split": Function("text.split(separator)", "the parts as a list", (STRING, STRING), LIST(STRING), _split),
    "join": Function("list.join(separator)", "texts and numbers as one text", (LIST(), STRING), STRING, _join, least=1),
    "replace": Function("text.replace(old, new)", "with every old part replaced", (STRING, STRING, STRING), STRING, _replace),
    "substring": Function("text.substring(first, end)", "characters first to end - 1", (STRING, NUMBER, NUMBER), STRING, _substring, least=2),
    "charAt": Function("text.charAt(n)", "one character; at the end nothing", (STRING, NUMBER), STRING, _char_at),
    "reverse": Function("x.reverse()", "a text or list backwards", (_TEXT_OR_LIST,), ANY, _reverse),
    "abs": Function("abs(x)", "without its sign", (NUMBER,), NUMBER, _abs),
    "round": Function("round(x, digits)", "to the nearest, halves away from zero; without digits an integer", (NUMBER, NUMBER), NUMBER, _rounding(ROUND_HALF_UP), least=1),
    "floor": Function("floor(x)", "the next smaller integer", (NUMBER,), NUMBER, _rounding(ROUND_FLOOR)),
    "ceil": Function("ceil(x)", "the next larger integer", (NUMBER,), NUMBER, _rounding(ROUND_CEILING)),
    "min": Function("min(list) or min(a, b)", "the smallest", (ANY,), ANY, _min, most=100),
    "max": Function("max(list) or max(a, b)", "the largest", (ANY,), ANY, _max, most=100),
    "sum": Function("list.sum()", "all numbers together; of nothing 0", (LIST(NUMBER),), NUMBER, _sum),
    "sort": Function("list.sort()", "in order; numbers, texts or bools", (LIST(),), LIST(), _sort),
    "distinct": Function("list.distinct()", "each value once, in the order of their first place", (LIST(),), LIST(), _distinct),
    "flatten": Function("list.flatten(levels)", "lists in the list become their elements; one level unless given", (LIST(), NUMBER), LIST(), _flatten, least=1),
    "range": Function("range(end) or range(first, end)", "integers from 0 or first to end - 1", (NUMBER, NUMBER), LIST(NUMBER), _range, least=1),
    "slice": Function("list.slice(first, end)", "elements first to end - 1", (LIST(), NUMBER, NUMBER), LIST(), _slice, least=2),
    "first": Function("list.first()", "the first element, or null", (LIST(),), ANY, _first),
    "last": Function("list.last()", "the last element, or null", (LIST(),), ANY, _last),
    "zip": Function("zip(list, list)", "pairs `[a, b]` of two lists of one length", (LIST(), LIST()), LIST(LIST()), _zip),
    "keys": Function("map.keys()", "the names of the fields, in their order", (MAP(),), LIST(STRING), _keys),
    "values": Function("map.values()", "the values of the fields, in their order", (MAP(),), LIST(), _values),
    "entries": Function("map.entries()", '`{"key": ..., "value": ...}` for each field', (MAP(),), LIST(MAP({"key": STRING, "value": ANY})), _entries),
    "fromEntries": Function("fromEntries(list)", "a map of what `entries` or `zip` gives", (LIST(),), MAP(), _from_entries),
    "merge": Function("merge(map, map)", "all fields; of two with one name the later", (MAP(),), MAP(), _merge, most=100),
    "toJson": Function("toJson(x)", "JSON text, compact, with the keys in order", (ANY,), STRING, _to_json),
    "fromJson": Function("fromJson(text)", "the data of a JSON text", (STRING,), ANY, _from_json),
    "base64.encode": Function("base64.encode(text)", "base64 of the text's UTF-8", (STRING,), STRING, _to_base64),
    "base64.decode": Function("base64.decode(text)", "and back", (STRING,), STRING, _from_base64),
    "hash.sha256": Function("hash.sha256(text)", "64 hexadecimal digits", (STRING,), STRING, _sha256),
    "urlEncode": Function("urlEncode(text)", "as a part of an address: `a b/c` is `a%20b%2Fc`", (STRING,), STRING, _url_encode),
    **{name: Function(*facts) for name, facts in TIME_FUNCTIONS.items()},
}  # fmt: skip
