"""Random expressions that are mostly broken or hostile: words in any order, changed characters, deep and long ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from outlive._cel.functions import FUNCTIONS
from proof.fuzz.grammar import Grammar

_WORDS = [
    *["input", "steps", "x", "true", "null", "in", "has", "coalesce", "orValue", "__class__", "map", "filter", "all"],
    *[
        "sortBy",
        "exists_one",
        "1",
        "0",
        "9223372036854775807",
        "1.5",
        "1e308",
        "'a'",
        "'''",
        '"',
        "r'",
        "b'",
        "\\",
        "é",
    ],
    *[
        ".",
        "?",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ":",
        "+",
        "-",
        "*",
        "/",
        "%",
        "!",
        "&&",
        "||",
        "==",
        "<",
        ">=",
        "//",
    ],
    *["${{", "}}", "$", "`", ";", "=", "\n", "\x00", "\ud800", "\u202e", "0x", "1u", "if", "for", *FUNCTIONS],
]
_PIECES = ["[", "(", "{'a': ", "-", "!", "input.", "x[", "size(", "true ? ", "1 + ", "a.map(x, ", "'a' + ", "f("]


def nonsense(rng: random.Random) -> str:
    """One expression."""
    write: list[Callable[[random.Random], str]] = [_words, _changed, _changed, _repeated, _calls, _heavy]
    return rng.choice(write)(rng)


def plain_data(rng: random.Random, depth: int = 4) -> Any:
    """A random value of plain data, with strange texts and numbers."""
    match rng.randrange(9 if depth else 6):
        case 0:
            return rng.choice([None, True, False])
        case 1:
            return rng.choice([0, 1, -1, 2**63 - 1, -(2**63), 2**63, 10**30, rng.randrange(100)])
        case 2:
            return rng.choice([0.0, -0.0, 1.5, 1e308, -1e-300, 2.0**63, rng.random()])
        case 3 | 4:
            return rng.choice(["", "a", "é", "${{ x }}", "\x00", "\ud83d", "2026-01-01T00:00:00Z", "1h", "x" * 3000])
        case 5:
            return rng.choice([[], {}, [1, 2, 3], {"a": 1}])
        case 6 | 7:
            return [plain_data(rng, depth - 1) for _ in range(rng.choice([1, 2, 3, 4, 30]))]
        case _:
            return {rng.choice(["a", "b", "", "__class__", "é"]): plain_data(rng, depth - 1) for _ in range(3)}


def _words(rng: random.Random) -> str:
    return rng.choice(["", " "]).join(rng.choice(_WORDS) for _ in range(rng.randrange(1, 30)))


def _changed(rng: random.Random) -> str:
    """A good expression with some characters taken out, doubled or replaced."""
    letters = list(Grammar(rng).expression())
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(letters) + 1)
        letters[at : at + rng.randrange(4)] = rng.choice([[], [rng.choice(_WORDS)], letters[:at][-9:]])
    return "".join(letters)


def _repeated(rng: random.Random) -> str:
    """Long or deep, closed or not."""
    piece = rng.choice(_PIECES)
    count = rng.choice([50, 99, 101, 1000, 4000])
    closing = {"[": "]", "(": ")", "{": "}"}
    behind = "".join(closing[letter] for letter in reversed(piece) if letter in closing) * count
    return piece * count + rng.choice(["1", "x", ""]) + rng.choice(["", behind, " : 2" * count])


def _calls(rng: random.Random) -> str:
    """A function with any values, and as many as it likes."""
    names = ["a", "b", "c", "1", "-1", "2.5", "''", "'a'", "[1, 2]", "{'a': 1}", "null", "true"]
    text = rng.choice(names)
    for _ in range(rng.randrange(1, 5)):
        others = [text, *(rng.choice(names) for _ in range(rng.randrange(3)))]
        name = rng.choice(list(FUNCTIONS))
        text = f"{name}({', '.join(others)})" if rng.random() < 0.7 else f"{text}.{name}({', '.join(others[1:])})"
    return text


def _heavy(rng: random.Random) -> str:
    """What would take long or make much, if nothing stopped it."""
    text = rng.choice(["a", "b", "c", "range(9000)", "'xy'", "[1, 2, 3]", "range(99).map(x, 'abcdefgh')"])
    for _ in range(rng.randrange(1, 7)):
        text = rng.choice(
            [
                "range(80).map(i, {0})",
                "range(300).map(i, i).map(x, x * 2).join()",
                "({0}) + ({0})",
                "toJson({0})",
                "[{0}, {0}, {0}, {0}]",
                "'a'.replace('a', string({0}))",
                "{0}.map(x, {0})",
                "[{0}].flatten(9)",
                "{0}.split('')",
                "{{'a': {0}, 'b': {0}}}",
                "[{0}, {0}].distinct()",
                "{0} == {0}",
                "base64.encode(toJson({0}))",
                "fromJson(toJson({0}))",
                "{0}.sortBy(x, toJson(x))",
                "{0}.exists(x, {0}.all(y, x == y))",
            ]
        ).format(text)
        if len(text) > 9000:
            break
    return text
