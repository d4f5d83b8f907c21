"""Functions that look at a type, or change one: texts, numbers, JSON, base64 and the like."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from math import isfinite
from typing import Any
from urllib.parse import quote

from outlive._cel.errors import ExpressionError
from outlive._cel.functions.arguments import as_text, in_range
from outlive._cel.functions.table import COLLECTION, Table
from outlive._cel.tokens import INT_MAX, INT_MIN
from outlive._cel.types import ANY, BOOL, NUMBER, STRING
from outlive._cel.values import (
    DATA_DEPTH_MAX,
    ExpressionLimitError,
    Frame,
    is_number,
    json_of,
    refuse_length,
    shown,
    text_of,
)

_functions = Table()
FUNCTIONS = _functions.named


@_functions.add("size(x)", "characters of a text, elements of a list, fields of a map", COLLECTION, gives=NUMBER)
def _size(frame: Frame, value: Any) -> int:
    if type(value) not in (str, list, dict):
        raise ExpressionError(f"size() takes a string, a list or a map, and this is {shown(value)}")
    return len(value)


@_functions.add(
    "type(x)", "`'int'`, `'double'`, `'string'`, `'bool'`, `'list'`, `'map'` or `'null_type'`", ANY, gives=STRING
)
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


@_functions.add("string(x)", "a number, bool or text as text", ANY, gives=STRING)
def _string(frame: Frame, value: Any) -> str:
    return frame.made(text_of(value))


@_functions.add("int(x)", "a text, double or bool as integer, cut towards zero", ANY, gives=NUMBER)
def _int(frame: Frame, value: Any) -> int:
    if type(value) is str and re.fullmatch(r"-?[0-9]{1,19}", value):
        return in_range(int(value))
    if type(value) is float and INT_MIN < value < INT_MAX:
        return int(value)
    if type(value) is int or type(value) is bool:
        return in_range(int(value))
    raise ExpressionError(f"{shown(value)} is not an integer")


_DOUBLE = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")


@_functions.add("double(x)", "a text or integer as double", ANY, gives=NUMBER)
def _double(frame: Frame, value: Any) -> float:
    if is_number(value) or (type(value) is str and len(value) <= 1000 and _DOUBLE.fullmatch(value)):
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if isfinite(number):
            return number
    raise ExpressionError(f"{shown(value)} is not a double")


_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


@_functions.add("bool(x)", "`'true'` or `'false'` as bool", ANY, gives=BOOL)
def _bool(frame: Frame, value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str and value in _BOOLS:
        return _BOOLS[value]
    raise ExpressionError(f"{shown(value)} is not a bool")


@_functions.add("toJson(x)", "JSON text, compact, with the keys in order", ANY, gives=STRING)
def _to_json(frame: Frame, value: Any) -> str:
    return json_of(frame, value)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


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
                raise ExpressionLimitError(f"it reads data that is nested more than {DATA_DEPTH_MAX} deep")
        elif letter in "]}":
            depth -= 1


def _finite_everywhere(made: Any) -> Any:
    left = [made]
    while left:
        item = left.pop()
        if type(item) is float and not isfinite(item):
            raise ExpressionError("the text has a number that is too large")
        left += item.values() if type(item) is dict else item if type(item) is list else ()
    return made


@_functions.add("fromJson(text)", "the data of a JSON text", STRING, gives=ANY)
def _from_json(frame: Frame, text: Any) -> Any:
    refuse_length(len(as_text(text)))
    frame.spend(len(text) // 256)
    _refuse_depth(text)
    try:
        made = json.loads(text, parse_constant=_no_constant, parse_int=_small_int, object_pairs_hook=_unique)
    except ValueError as error:
        raise ExpressionError(f"the text is not JSON: {error}") from None
    return _finite_everywhere(made)


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ExpressionError("the text has half of a character, which has no UTF-8") from None


@_functions.add("base64.encode(text)", "base64 of the text's UTF-8", STRING, gives=STRING, name="base64.encode")
def _to_base64(frame: Frame, text: Any) -> str:
    frame.read_text(as_text(text))
    refuse_length(len(text))
    return frame.made(base64.b64encode(_bytes(text)).decode("ascii"))


@_functions.add("base64.decode(text)", "and back", STRING, gives=STRING, name="base64.decode")
def _from_base64(frame: Frame, text: Any) -> str:
    frame.read_text(as_text(text))
    refuse_length(len(text))
    try:
        return base64.b64decode(_bytes(text), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise ExpressionError(f"{shown(text)} is not base64 of a UTF-8 text") from None


@_functions.add("hash.sha256(text)", "64 hexadecimal digits", STRING, gives=STRING, name="hash.sha256")
def _sha256(frame: Frame, text: Any) -> str:
    frame.read_text(as_text(text))
    return hashlib.sha256(_bytes(text)).hexdigest()


@_functions.add("urlEncode(text)", "as a part of an address: `a b/c` is `a%20b%2Fc`", STRING, gives=STRING)
def _url_encode(frame: Frame, text: Any) -> str:
    frame.read_text(as_text(text))
    refuse_length(len(text) * 3)
    return frame.made(quote(_bytes(text), safe=""))
