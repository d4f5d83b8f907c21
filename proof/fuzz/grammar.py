"""Random expressions by type, in the language that CEL and ours have in common, and the data they ask for."""

from __future__ import annotations

import random
from typing import Any

DEPTH_MAX = 4
MIXED = 0.04
"""How often a value has another type than the one that fits: errors must be the same too."""

SCOPE: dict[str, Any] = {
    "input": {
        "i": 7,
        "zero": 0,
        "big": 9223372036854775807,
        "d": 2.5,
        "s": "order é-1",
        "t": True,
        "n": None,
        "list": [3, 1, 2, 3],
        "texts": ["a", "b", ""],
        "map": {"a": 1},
        "nested": {"c": [1, 2.5, "x"]},
        "rows": [{"id": 1, "tag": "x"}, {"id": 2, "tag": "y"}],
    },
    "steps": {"a": {"count": 3}, "b": None, "c": {"ok": True}},
}

_INTS = ["0", "1", "2", "7", "-3", "100", "9223372036854775807", "0x10", "input.i", "input.zero", "input.big"]
_INTS += ["steps.a.count", "input.map.a", "input.list[1]", "input.rows[0].id"]
_DOUBLES = ["0.5", "1.0", "-2.25", "1e3", "input.d", "3.0", "input.nested.c[1]"]
_TEXTS = ["'a'", "''", "'é'", '"order"', "r'\\d'", "input.s", "input.texts[0]", "input.rows[1].tag", "'b' + 'c'"]
_BOOLS = ["true", "false", "input.t", "steps.c.ok", "has(input.i)", "has(input.none)", "steps.b == null"]
_BROKEN = ["input.nothing", "input.list[9]", "1 / 0", "steps.b.x", "undefined"]


class Grammar:
    """Writes expressions."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._variables: list[str] = []

    def expression(self) -> str:
        """An expression of any type."""
        return self._of(self._rng.choice(["int", "double", "text", "bool", "list", "map"]), DEPTH_MAX)

    def _of(self, kind: str, depth: int) -> str:
        rng = self._rng
        if rng.random() < MIXED:
            if rng.random() < 0.3:
                return rng.choice(_BROKEN)
            # A map of one field at most: a macro goes over the fields of a map, and CEL has no order for them.
            return self._leaf(rng.choice(["int", "double", "text", "bool", "list", "map", "null"]))
        if depth <= 0 or rng.random() < 0.15:
            return self._leaf(kind)
        if rng.random() < 0.1:
            return f"({self._of('bool', depth - 1)} ? {self._of(kind, depth - 1)} : {self._of(kind, depth - 1)})"
        write = {
            "int": self._int,
            "double": self._double,
            "text": self._text,
            "bool": self._bool,
            "list": self._list,
            "map": self._map,
        }
        return write[kind](depth - 1) if kind in write else self._leaf(kind)

    def _leaf(self, kind: str) -> str:
        rng = self._rng
        match kind:
            case "int":
                return rng.choice([*_INTS, *self._variables])
            case "double":
                return rng.choice(_DOUBLES)
            case "text":
                return rng.choice(_TEXTS)
            case "bool":
                return rng.choice(_BOOLS)
            case "list":
                return rng.choice(["[]", "[1, 2, 3]", "input.list"])
            case "map":
                return rng.choice(["{}", "{'a': 1}", "input.map", "input.nested", "steps.a"])
            case _:
                return rng.choice(["null", "input.n", "steps.b"])

    def _int(self, depth: int) -> str:
        rng = self._rng
        match rng.randrange(7):
            case 0 | 1 | 2:
                return f"({self._of('int', depth)} {rng.choice('+-*/%')} {self._of('int', depth)})"
            case 3:
                return f"size({self._of(rng.choice(['text', 'list', 'map']), depth)})"
            case 4:
                return f"-({self._of('int', depth)})"
            case 5:
                return f"{self._of('list', depth)}[{rng.randrange(3)}]"
            case _:
                return f"int({self._of('double', depth)})"

    def _double(self, depth: int) -> str:
        rng = self._rng
        if rng.random() < 0.2:
            return f"double({self._of('int', depth)})"
        return f"({self._of('double', depth)} {rng.choice('+-*/')} {self._of('double', depth)})"

    def _text(self, depth: int) -> str:
        if self._rng.random() < 0.3:
            return f"string({self._of(self._rng.choice(['int', 'bool', 'text']), depth)})"
        return f"({self._of('text', depth)} + {self._of('text', depth)})"

    def _bool(self, depth: int) -> str:
        rng = self._rng
        match rng.randrange(9):
            case 0 | 1:
                return f"({self._of('bool', depth)} {rng.choice(['&&', '||'])} {self._of('bool', depth)})"
            case 2:
                return f"!({self._of('bool', depth)})"
            case 3 | 4:
                kind = rng.choice(["int", "double", "text", "bool"])
                return f"({self._of(kind, depth)} {rng.choice(['<', '<=', '>', '>='])} {self._of(kind, depth)})"
            case 5:
                kinds = ["int", "double", "text", "bool", "list", "map", "null"]
                left, right = rng.choice(kinds), rng.choice(kinds)
                return f"({self._of(left, depth)} {rng.choice(['==', '!='])} {self._of(right, depth)})"
            case 6:
                return f"({self._of('int', depth)} in {self._of('list', depth)})"
            case 7:
                verb = rng.choice(["contains", "startsWith", "endsWith"])
                return f"{self._of('text', depth)}.{verb}({self._of('text', depth)})"
            case _:
                return self._macro(rng.choice(["all", "exists", "exists_one"]), "bool", depth)

    def _list(self, depth: int) -> str:
        rng = self._rng
        match rng.randrange(4):
            case 0:
                return f"[{', '.join(self._of('int', depth) for _ in range(rng.randrange(4)))}]"
            case 1:
                return f"({self._of('list', depth)} + {self._of('list', depth)})"
            case 2:
                return self._macro("filter", "bool", depth)
            case _:
                return self._macro("map", "int", depth)

    def _map(self, depth: int) -> str:
        rng = self._rng
        names = rng.sample(["a", "b", "c d", "é"], rng.randrange(4))
        kinds = ["int", "text", "list"]
        return "{" + ", ".join(f"'{name}': {self._of(rng.choice(kinds), depth)}" for name in names) + "}"

    def _macro(self, kind: str, body: str, depth: int) -> str:
        target = self._of("list", depth)
        name = self._rng.choice("xyz")
        self._variables.append(name)
        written = self._of(body, depth)
        self._variables.pop()
        return f"{target}.{kind}({name}, {written})"
