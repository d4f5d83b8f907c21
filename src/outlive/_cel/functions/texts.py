"""Functions of texts."""

from __future__ import annotations

from typing import Any

from outlive._cel.functions.arguments import as_list, as_text, bounds
from outlive._cel.functions.table import TEXT_OR_LIST, Table, same
from outlive._cel.types import BOOL, LIST, NUMBER, STRING
from outlive._cel.values import Frame, refuse_length, text_of

_functions = Table()
FUNCTIONS = _functions.named


@_functions.add("text.contains(part)", "whether the part is in the text", STRING, STRING, gives=BOOL)
def _contains(frame: Frame, text: Any, part: Any) -> bool:
    frame.read_text(as_text(text), as_text(part))
    return part in text


@_functions.add("text.startsWith(part)", "whether it begins with it", STRING, STRING, gives=BOOL)
def _starts_with(frame: Frame, text: Any, part: Any) -> bool:
    return as_text(text).startswith(as_text(part))


@_functions.add("text.endsWith(part)", "whether it ends with it", STRING, STRING, gives=BOOL)
def _ends_with(frame: Frame, text: Any, part: Any) -> bool:
    return as_text(text).endswith(as_text(part))


@_functions.add("text.indexOf(part)", "where the part is first, or -1", STRING, STRING, gives=NUMBER)
def _index_of(frame: Frame, text: Any, part: Any) -> int:
    frame.read_text(as_text(text), as_text(part))
    return int(text.find(part))


@_functions.add("text.lastIndexOf(part)", "where the part is last, or -1", STRING, STRING, gives=NUMBER)
def _last_index_of(frame: Frame, text: Any, part: Any) -> int:
    frame.read_text(as_text(text), as_text(part))
    # Backwards and from the left, because Python's search from the right takes quadratic time.
    at = text[::-1].find(part[::-1])
    return -1 if at < 0 else len(text) - at - len(part)


_LOWER = {ord(upper): upper.lower() for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


_UPPER = {ord(lower): lower.upper() for lower in "abcdefghijklmnopqrstuvwxyz"}


@_functions.add("text.lowerAscii()", "with A to Z as small letters", STRING, gives=STRING)
def _lower_ascii(frame: Frame, text: Any) -> str:
    refuse_length(len(as_text(text)))
    return frame.made(text.translate(_LOWER))


@_functions.add("text.upperAscii()", "with a to z as capitals", STRING, gives=STRING)
def _upper_ascii(frame: Frame, text: Any) -> str:
    refuse_length(len(as_text(text)))
    return frame.made(text.translate(_UPPER))


@_functions.add("text.trim()", "without the white space around it", STRING, gives=STRING)
def _trim(frame: Frame, text: Any) -> str:
    return frame.made(as_text(text).strip())


@_functions.add("text.split(separator)", "the parts as a list", STRING, STRING, gives=LIST(STRING))
def _split(frame: Frame, text: Any, separator: Any) -> list[str]:
    frame.read_text(as_text(text), as_text(separator))
    frame.items(text.count(separator) + 1)
    return text.split(separator) if separator else list(text)


@_functions.add("list.join(separator)", "texts and numbers as one text", LIST(), STRING, gives=STRING, least=1)
def _join(frame: Frame, items: Any, separator: Any = "") -> str:
    frame.items(len(as_list(items)))
    texts = [text_of(item) for item in items]
    refuse_length(sum(map(len, texts)) + len(as_text(separator)) * max(0, len(texts) - 1))
    return frame.made(separator.join(texts))


@_functions.add("text.replace(old, new)", "with every old part replaced", STRING, STRING, STRING, gives=STRING)
def _replace(frame: Frame, text: Any, old: Any, new: Any) -> str:
    frame.read_text(as_text(text), as_text(old), as_text(new))
    refuse_length(len(text) + text.count(old) * (len(new) - len(old)))
    return frame.made(text.replace(old, new))


@_functions.add(
    "text.substring(first, end)", "characters first to end - 1", STRING, NUMBER, NUMBER, gives=STRING, least=2
)
def _substring(frame: Frame, text: Any, first: Any, end: Any = None) -> str:
    start, stop = bounds(len(as_text(text)), first, end)
    return frame.made(text[start:stop])


@_functions.add("text.charAt(n)", "one character; at the end nothing", STRING, NUMBER, gives=STRING)
def _char_at(frame: Frame, text: Any, at: Any) -> str:
    start, _ = bounds(len(as_text(text)), at, None)
    return as_text(text)[start : start + 1]


@_functions.add("x.reverse()", "a text or list backwards", TEXT_OR_LIST, gives=same)
def _reverse(frame: Frame, value: Any) -> Any:
    if type(value) is str:
        refuse_length(len(value))
        return frame.made(value[::-1])
    frame.items(len(as_list(value)))
    return value[::-1]
