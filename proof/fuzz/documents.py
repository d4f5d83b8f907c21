"""Random documents of flows: a good one with something changed in it, as YAML or JSON, and hostile YAML."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import yaml

from proof.fuzz.grammar import Grammar
from proof.fuzz.nonsense import nonsense, plain_data

GOOD: dict[str, Any] = {
    "name": "orders",
    "description": "of a shop",
    "input": {
        "order": {"type": "object", "properties": {"id": "string", "cents": {"type": "integer"}}},
        "note": {"type": "string", "default": ""},
    },
    "vars": {"hook": {"type": "string", "default": "http://x"}, "key": {"secret": True, "env": "KEY"}},
    "triggers": [
        {"event": "order.created"},
        {"schedule": "0 6 * * 1-5", "timezone": "UTC"},
        {"webhook": "/hooks/orders"},
    ],
    "steps": {
        "reserve": {"use": "noop", "with": {"value": "${{ input.order }}"}},
        "charge": {
            "use": "noop",
            "with": {"value": {"$step": "reserve", "path": "$.id"}},
            "retry": {"attempts": 4, "first": "1s"},
            "timeout": "30s",
            "on_error": {"use_default": None},
        },
        "notify": {
            "use": "http",
            "if": "${{ steps.charge != null }}",
            "must_run": True,
            "with": {"url": "${{ vars.hook }}"},
        },
        "wait": {
            "use": "sleep",
            "must_run": True,
            "after": ["charge"],
            "with": {"seconds": 1},
            "undo": {"use": "noop", "with": {}},
        },
    },
    "output": "${{ steps.charge }}",
    "tests": [{"name": "free", "input": {"order": {"id": "1", "cents": 0}}, "mocks": {"reserve": {"result": 1}}}],
}
_TOP = [*GOOD, "resumable", "timeout", "concurrency", "order", "on_failure", "retry", "queue", "metadata", "language"]
_FIELDS = [
    "use",
    "with",
    "if",
    "after",
    "must_run",
    "retry",
    "timeout",
    "on_error",
    "undo",
    "once",
    "queue",
    "limit",
    "x",
]
_HOSTILE = [
    "a: &a [x]\nb: [*a, *a]",
    "a: &a {b: *a}",
    "<<: {a: 1}",
    "!!python/object/apply:os.system ['id']",
    "a: !!binary aGk=",
    "a: 1\na: 2",
    "? [a, b]\n: c",
    "a: {b: {c: {d: [",
    "- - - - - - - - a",
    "'",
    "\t- a",
    "%YAML 1.1\n---\na: b\n--- c",
    "name: no\nsteps: {yes: {use: on}}",
    "\ufeffname: x",
    "a: 'b\n\n\n  c'",
    "a: |\n  b\n c",
    "steps: {a: {use: noop, after: [a]}}\nname: x",
    "name: x\nsteps: {a: {use: noop, after: [b]}, b: {use: noop, after: [a]}}",
]


def document(rng: random.Random) -> str:
    """One document, as text."""
    write: list[Callable[[random.Random], str]] = [_changed_data, _changed_data, _changed_text, _hostile, _deep]
    return rng.choice(write)(rng)


def _changed_data(rng: random.Random) -> str:
    data = copy.deepcopy(GOOD)
    for _ in range(rng.randrange(1, 4)):
        _change(rng, data)
    return _written(rng, data)


def _written(rng: random.Random, data: Any) -> str:
    if rng.random() < 0.5:
        return json.dumps(data)
    try:
        return yaml.safe_dump(data, allow_unicode=True)
    except (yaml.YAMLError, UnicodeEncodeError):
        return json.dumps(data)


def _change(rng: random.Random, data: Any) -> None:
    """One value anywhere becomes another, is taken out, or gets a neighbour."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = data[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
            data = inner
            continue
        match rng.randrange(4):
            case 0:
                del data[key]
            case 1:
                data[key] = _value(rng)
            case 2 if isinstance(data, dict):
                data[rng.choice([*_TOP, *_FIELDS, "$step", "$if", "é", ""])] = _value(rng)
            case _:
                data[key] = f"${{{{ {nonsense(rng)} }}}}"
        return


def _value(rng: random.Random) -> Any:
    if rng.random() < 0.4:
        return f"${{{{ {Grammar(rng).expression()} }}}}"
    return rng.choice([plain_data(rng), rng.choice(["noop", "map", "1s", "exponential", "steps", "a.b"])])


def _changed_text(rng: random.Random) -> str:
    letters = list(_written(rng, GOOD))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(letters) + 1)
        new = rng.choice(
            ["", ":", "- ", "\n", "  ", "{", "}", "[", "'", '"', "&a ", "*a", "!", "|", ">", "#", "\x07", "\t"]
        )
        letters[at : at + rng.randrange(6)] = new
    return "".join(letters)


def _hostile(rng: random.Random) -> str:
    if rng.random() < 0.3:
        # Each level names the one before nine times.
        levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]" for n in range(9)]
        return "\n".join(levels)
    return "\n".join(rng.choice(_HOSTILE) for _ in range(rng.randrange(1, 4)))


def _deep(rng: random.Random) -> str:
    count = rng.choice([40, 60, 500, 20_000])
    opening, closing = rng.choice([("[", "]"), ("{a: ", "}"), ('{"a":', "}"), ("- ", ""), ("a:\n ", "")])
    return "name: x\nsteps: " + opening * count + "1" + closing * rng.choice([0, count])
