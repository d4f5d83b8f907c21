"""The words of an expression: names, numbers, texts and signs, each with its place.

The form is CEL's. Unsigned numbers (`1u`) and bytes (`b"..."`) are left out: plain data has neither.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from outlive._cel.errors import ExpressionError

SOURCE_CHARACTERS_MAX = 10_000
"""How long one expression may be."""
INT_MIN = -(2**63)
INT_MAX = 2**63 - 1

_WORD = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>0[xX][0-9a-fA-F]+|[0-9]+)
    |(?P<text>(?P<prefix>[rRbB]{0,2})(?P<quote>'''|\"\"\"|'|\"))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE,
)
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "?": "?",
    '"': '"',
    "'": "'",
    "`": "`",
}
_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}
_BEFORE_SIGN = {
    "=": "write `==` to compare",
    "&": "write `&&`",
    "|": "write `||`",
    ";": "an expression is one value and has no statements",
    "$": "names have no `$` inside an expression",
    "`": 'write a field with an unusual name as x["the name"]',
}


class Token(NamedTuple):
    """One word, and at which character it begins."""

    kind: str
    """`name`, `int`, `double`, `text`, `sign` or `end`."""
    value: Any
    offset: int


def tokens_of(source: str) -> list[Token]:
    """All words of an expression, and one of kind `end`.

    Raises:
        ExpressionError: a word that the language does not have, or a source that is too long.
    """
    if len(source) > SOURCE_CHARACTERS_MAX:
        raise ExpressionError(
            f"an expression may have {SOURCE_CHARACTERS_MAX:,} characters and this one has {len(source):,}", 0
        )
    found, _ = read_tokens(source, 0)
    return found


def read_tokens(source: str, start: int, *, closed: bool = False) -> tuple[list[Token], int]:
    """The words from `start` on, and where they end: at the end of the source, or (closed) behind `}}`."""
    found: list[Token] = []
    at, depth = start, 0
    stop = min(len(source), start + SOURCE_CHARACTERS_MAX) if closed else len(source)
    while at < stop:
        match = _WORD.match(source, at, stop)
        if match is None:
            raise ExpressionError(f"{source[at]!r} has no meaning here", at, _BEFORE_SIGN.get(source[at], ""))
        kind, value = match.lastgroup, match[0]
        if kind == "space":
            at = match.end()
        elif kind in ("text", "quote"):
            text, at = _text(source, match, stop)
            found.append(Token("text", text, match.start()))
        else:
            if value == "{":
                depth += 1
            elif value == "}":
                if closed and depth == 0 and source.startswith("}}", at):
                    return [*found, Token("end", "", at)], at + 2
                depth -= 1
            begin, at = match.span()
            if kind in ("int", "double"):
                found.append(_number(kind, value, begin, source[at : at + 1]))
            else:
                found.append(Token(str(kind), value, begin))
    if closed:
        limit = "" if stop == len(source) else f" within {SOURCE_CHARACTERS_MAX:,} characters"
        raise ExpressionError(f"an expression that begins with ${{{{ is not closed with }}}}{limit}", start)
    return [*found, Token("end", "", at)], at


def _number(kind: str, text: str, at: int, follower: str) -> Token:
    if kind == "double":
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise ExpressionError(f"the number {text[:40]} is too large", at)
        _refuse_letter(text, at, follower)
        return Token(kind, number, at)
    _refuse_letter(text, at, follower)
    if len(text) > 20:
        raise ExpressionError("an integer literal has at most 64 bits", at)
    # -9223372036854775808 is written as a minus and a number that alone is too large: the parser looks again.
    return Token(kind, int(text, 16 if text[:2] in ("0x", "0X") else 10), at)


def _refuse_letter(text: str, at: int, follower: str) -> None:
    if follower in ("u", "U"):
        raise ExpressionError(f"there are no unsigned numbers; write {text}", at)
    if follower.isalnum() or follower == "_":
        raise ExpressionError(f"a number is followed by {follower!r}", at + len(text))


def _text(source: str, match: re.Match[str], stop: int) -> tuple[str, int]:
    """The value of a text, and where the source goes on behind it."""
    prefix, quote = match["prefix"].lower(), match["quote"]
    if "b" in prefix or len(prefix) > 1:
        raise ExpressionError('there are no bytes; write a text without "b"', match.start())
    parts: list[str] = []
    at = match.end()
    while True:
        if at >= stop:
            raise ExpressionError(f"a text that begins with {quote} is not closed", match.start())
        if source.startswith(quote, at):
            return "".join(parts), at + len(quote)
        letter = source[at]
        if letter in "\r\n" and len(quote) == 1:
            raise ExpressionError("a text ends on the line on which it began; write \\n, or use '''", match.start())
        if letter == "\\" and not prefix:
            value, at = _escape(source, at, stop)
            parts.append(value)
        else:
            parts.append(letter)
            at += 1


def _escape(source: str, at: int, stop: int) -> tuple[str, int]:
    letter = source[at + 1 : at + 2] if at + 1 < stop else ""
    if letter in _ESCAPES and letter:
        return _ESCAPES[letter], at + 2
    if letter in _DIGITS:
        digits, base, begin = _DIGITS[letter], 16, at + 2
    elif letter and letter in "0123":
        digits, base, begin = 3, 8, at + 1
    else:
        raise ExpressionError(f"\\{letter} is not an escape", at, "write \\\\ for a backslash, or a raw text: r'...'")
    code = source[begin : begin + digits]
    allowed = "01234567" if base == 8 else "0123456789abcdefABCDEF"
    if len(code) < digits or any(digit not in allowed for digit in code):
        raise ExpressionError(f"the escape \\{letter} needs {digits} digits", at)
    number = int(code, base)
    if 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
        raise ExpressionError(f"\\{letter}{code} is not a character", at)
    return chr(number), begin + digits
