"""Documents of flows that cost more than their length where a check is careless: what `make malformed` sends.

Each kind is given about how long its text is to be. The same length is the same text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Make = Callable[[int], str]
_NAME = "name: hostile\n"
_STEPS = "steps: {a: {use: noop}}\n"
_STEPS_MAX = 9_999
"""A document may have one more."""


def document(kind: str, length: int) -> str:
    """A document of a kind of about this length."""
    return KINDS[kind](length)


def _nested(levels: int, around: Callable[[Any], Any], inner: Any) -> Any:
    for _ in range(levels):
        inner = around(inner)
    return inner


def _with_input(schema: Any, *, output: bool = False) -> str:
    text = f"{_NAME}{_STEPS}input: {json.dumps({'x': schema})}\n"
    return text + ("output: ${{ input.x }}\n" if output else "")


def _in_metadata(part: str, length: int) -> str:
    return f"{_NAME}{_STEPS}metadata: {{x: [{part * (length // len(part))}]}}\n"


def _lines(begin: str, line: Callable[[int], str], length: int) -> str:
    return _NAME + _STEPS + begin + "".join(line(number) for number in range(length // len(line(1_000))))


def _steps(length: int, step: Callable[[int], str]) -> str:
    count = min(_STEPS_MAX, length // (len(step(1_000)) + 9))
    return f"{_NAME}steps:\n" + "".join(f"  s{number}: {step(number)}\n" for number in range(count))


def _message(text: str) -> str:
    return f'{_NAME}steps: {{a: {{use: log, with: {{message: "{text}"}}}}}}\n'


def _list(each: Callable[[int], Any], length: int) -> list[Any]:
    return [each(number) for number in range(length // (len(json.dumps(each(1_000))) + 2))]


def _map(each: Callable[[int], str], value: Any, length: int) -> dict[str, Any]:
    return {each(number): value for number in range(length // (len(json.dumps([each(1_000), value])) + 2))}


def _dense(length: int) -> str:
    count = int((length / 5) ** 0.5)
    after = [", ".join(f"s{other}" for other in range(number)) for number in range(count)]
    return f"{_NAME}steps:\n" + "".join(
        f"  s{number}: {{use: noop, after: [{each}]}}\n" for number, each in enumerate(after)
    )


def _circle(length: int) -> str:
    count = min(_STEPS_MAX, length // 40)
    return _steps(length, lambda number: f"{{use: noop, after: [s{(number + 1) % count}]}}")


def _tests_by_inputs(length: int) -> str:
    text = f"{_NAME}{_STEPS}input: {json.dumps(_map('x{}'.format, 'string', length // 2))}\ntests:\n"
    return text + "".join(f"- {{name: t{number}}}\n" for number in range(length // 32))


def _tests_by_variable(length: int) -> str:
    schema = {"properties": _map("p{}".format, "string", length // 2)}
    text = f"{_NAME}{_STEPS}vars: {{v: {{schema: {json.dumps(schema)}}}}}\ntests:\n"
    return text + "".join(f"- {{name: t{number}, vars: {{v: {{}}}}}}\n" for number in range(length // 50))


def _triggers_by_inputs(length: int) -> str:
    schemas = _map("x{}".format, {"default": 1}, length // 2)
    return f"{_NAME}{_STEPS}input: {json.dumps(schemas)}\ntriggers:\n" + "- {schedule: '* * * * *'}\n" * (length // 60)


def _depth(length: int) -> int:
    return min(18, length // 30)


KINDS: dict[str, Make] = {
    # -- Many values --
    "values": lambda n: _in_metadata("a,", n),
    "maps": lambda n: _in_metadata("{},", n),
    "numbers": lambda n: _in_metadata("01,", n),
    "anchors": lambda n: _in_metadata("&a 1,", n),
    "tags": lambda n: _in_metadata("!t 1,", n),
    "aliases": lambda n: f"{_NAME}metadata: {{a: &a [1], b: [{'*a,' * (n // 3)}]}}\n{_STEPS}",
    "keys twice": lambda n: _lines("metadata:\n", lambda number: "  a: 1\n", n),
    # -- Nested --
    "brackets": lambda n: "[" * n,
    "dashes": lambda n: "- " * (n // 2),
    "questions": lambda n: "? " * (n // 2),
    "schemas with defaults": lambda n: _with_input(
        _nested(_depth(n), lambda it: {"default": [], "items": it}, "string")
    ),
    "schemas of two lists": lambda n: _with_input(
        _nested(_depth(n), lambda it: {"type": ["array", "array"], "items": it}, "string"), output=True
    ),
    "schemas with choices": lambda n: _with_input(_nested(_depth(n), lambda it: {"anyOf": [it], "default": 1}, "any")),
    # -- Unknown names --
    "fields": lambda n: _lines("", "field_{}: 1\n".format, n),
    "fields almost known": lambda n: _lines("", "descriptio{}: 1\n".format, n),
    "fields of steps": lambda n: _steps(n, lambda number: "{use: noop, wiht: 1, afte: 2}"),
    "uses": lambda n: _steps(n, "{{use: nop{}}}".format),
    "steps": lambda n: _steps(n, "{{use: noop, after: [s{}x]}}".format),
    "names of steps": lambda n: f"{_NAME}steps: {{{','.join(f'-a{each}: {{use: noop}}' for each in range(n // 20))}}}",
    "arguments": lambda n: (
        f"{_NAME}steps: {{a: {{use: http, with: {{{','.join(f'u{it}: 1' for it in range(n // 9))}}}}}}}"
    ),
    "keywords": lambda n: _with_input(_map("tpe{}".format, 1, n)),
    "types": lambda n: _with_input({"type": _list("strin{}".format, n)}),
    "mocks": lambda n: _lines("tests:\n", "- {{name: t, mocks: {{x{}: {{result: 1}}}}}}\n".format, n),
    "tokens": lambda n: _lines("triggers:\n", "- {{webhook: /a, token: w{}}}\n".format, n),
    "variables": lambda n: _steps(n, "{{use: log, with: {{message: '${{{{ vars.v{} }}}}'}}}}".format),
    # -- Much of one thing times much of another --
    "choices by items": lambda n: _with_input({"items": {"anyOf": ["string"] * (n // 24)}, "default": [1] * (n // 8)}),
    "all of by items": lambda n: _with_input({"allOf": [{"items": "number"}] * (n // 40), "default": [1] * (n // 8)}),
    "values by items": lambda n: _with_input(
        {"items": {"enum": _list("e{}".format, n // 2)}, "default": ["f"] * (n // 16)}
    ),
    "properties by names": lambda n: _with_input(
        {
            "properties": _map("p{}".format, "string", n // 2),
            "additionalProperties": False,
            "default": _map("q{}".format, 1, n // 2),
        }
    ),
    "choices of objects": lambda n: _with_input(
        {"anyOf": [{"type": "object", "properties": {f"a{each}": "string"}} for each in range(n // 55)]}, output=True
    ),
    "values of objects": lambda n: _with_input({"enum": [{f"a{each}": 1} for each in range(n // 16)]}, output=True),
    "tests by inputs": _tests_by_inputs,
    "tests by variable": _tests_by_variable,
    "triggers by inputs": _triggers_by_inputs,
    "maps by steps": lambda n: _steps(n, lambda number: "{use: map, with: {items: [1], use: noop}}"),
    "bodies by steps": lambda n: _steps(
        n, lambda number: "{use: map, with: {items: [1], do: {steps: {a: {use: noop}}}}}"
    ),
    "long names by mistakes": lambda n: _with_input(
        _nested(
            8, lambda it: {"properties": {"k" * (n // 20): it}}, {"properties": _map("p{}".format, "strin", n // 2)}
        )
    ),
    # -- Order --
    "flat": lambda n: _steps(n, lambda number: "{use: noop}"),
    "unused": lambda n: _steps(n, lambda number: "{use: noop}") + "output: 1\n",
    "chain": lambda n: _steps(n, lambda number: f"{{use: noop, after: [{f's{number - 1}' if number else ''}]}}"),
    "circle": _circle,
    "dense": _dense,
    # -- Expressions and times --
    "wrong expressions in a text": lambda n: _message("${{ x }}" * (n // 8)),
    "wrong expressions in a list": lambda n: (
        _message("x") + f"output: [{'${{ x }},' * (n // 11)}]\n".replace("${{", "'${{").replace("}},", "}}',")
    ),
    "expressions": lambda n: _steps(n, lambda number: "{use: log, with: {message: '${{ 1 + 2 * 3 == 7 ? 1 : 2 }}'}}"),
    "not an expression": lambda n: _message("${{ " * (n // 4)),
    "a long expression": lambda n: _message("${{ " + "+".join(["1"] * (n // 2)) + " }}"),
    "digits": lambda n: f"{_NAME}timeout: '{'1' * n}'\n{_STEPS}",
    "cron": lambda n: f"{_NAME}{_STEPS}triggers: [{{schedule: '{'0-59,' * (n // 5)}0 * * * *'}}]\n",
    "crons": lambda n: _lines("triggers:\n", lambda number: "- {schedule: '0 0 30 2 *'}\n", n),
    # -- Text --
    "comments": lambda n: _NAME + "# a\n" * (n // 4) + _STEPS,
    "escapes": lambda n: '{"name": "' + "\\ud83d\\ude00" * (n // 12) + '"}',
    "backslashes": lambda n: '{"name": "' + ("\\" * 200 + "\\ud83d\\ude00") * (n // 212) + '"}',
    "a quote": lambda n: 'a: "' + "\\n" * (n // 2),
    "a control character": lambda n: f"{_NAME}x: {'a' * n}\x01",
}
