"""Mistakes that are found before anything runs, and the types that JSON Schemas describe."""

from typing import Any

import pytest

from outlive._cel import (
    ANY,
    BOOL,
    LIST,
    MAP,
    NULL,
    NUMBER,
    STRING,
    ExpressionError,
    Type,
    join,
    parse,
    type_of_schema,
)

TYPES = {
    "input": MAP(
        {
            "order": MAP({"id": STRING, "amount": NUMBER, "lines": LIST(MAP({"sku": STRING, "n": NUMBER}))}),
            "open": MAP({"a": NUMBER}, of=ANY),
            "free": MAP(),
            "flag": BOOL,
        }
    ),
    "steps": MAP({"reserve": ANY, "send-mail": MAP({"id": STRING})}),
    "vars": MAP({"hook": STRING}),
}


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("input.order.amount * 2 + 1", NUMBER),
        ("input.order.id + 'x'", STRING),
        ("steps.reserve.what.ever", ANY),
        ("steps.reserve.n + 1", NUMBER),
        ("steps.reserve + steps.reserve", ANY),
        ("input.open.b", ANY),
        ("input.order.lines[0].sku", STRING),
        ("input.order.lines.map(x, x.n)", LIST(NUMBER)),
        ("input.order.lines.map(x, x.n > 1, [x.sku])", LIST(LIST(STRING))),
        ("input.order.lines.filter(x, x.n > 1).first().sku", STRING),
        ("input.order.lines.sortBy(x, x.n).last().n", NUMBER),
        ("input.order.map(key, key)", LIST(STRING)),
        ("input.flag ? 1 : null", NUMBER),
        ("input.flag ? 1 : 'a'", ANY),
        ("coalesce(input.order.id, null)", STRING),
        ("steps.reserve == null && has(input.free.x)", BOOL),
        ("'sku' in input.order && 1 in [1, 2.5]", BOOL),
        ("{'a': 1, 'b': ['x']}", MAP({"a": NUMBER, "b": LIST(STRING)})),
        ("{'a': {'b': 1}}.a.b", NUMBER),
        ("[[1], [2]] + [[3]]", LIST(LIST(NUMBER))),
        ("size(input.free)", NUMBER),
        ("-input.order.amount", NUMBER),
        ("!input.flag", BOOL),
        ("input.free[input.order.id]", ANY),
        ("steps['send-mail'].id", STRING),
        ("[].first()", ANY),
        ("'a,b'.split(',').reverse()", LIST(STRING)),
    ],
)
def test_expression_has_the_type_of_its_value(text: str, type_: Type) -> None:
    """A check gives the type of an expression as far as it is known, else ANY."""
    assert parse(text).check(TYPES) == type_


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input.order.ammount", "unknown field 'ammount' of input.order; did you mean 'amount'?"),
        ("inputs.order", "unknown name 'inputs'; did you mean 'input'?"),
        ("steps.send-mail.id", """unknown field 'send' of steps; write steps["send-mail"]"""),
        ("steps.xyz", "unknown field 'xyz' of steps; there are reserve, send-mail"),
        ("has(input.oder)", "unknown field 'oder' of input; did you mean 'order'?"),
        ("input.order.lines.sku", "input.order.lines is a list of map and has no field 'sku'; write x[0].sku"),
        ("input.order.id.x", "input.order.id is a string and has no field 'x'"),
        ("input.order.id[0]", "input.order.id is a string and has no elements"),
        ("input.order.lines['a' + 'b']", "the index of a list takes a number, and this is a string"),
        ("input.order.lines.map(x, x.skuu)", "unknown field 'skuu' of x; did you mean 'sku'?"),
        ("input.order.id + 1", "`+` cannot take a string and a number; write string(x)"),
        ("input.order.id * 2", "`*` cannot take a string and a number"),
        ("null + 1", "`+` cannot take null and a number"),
        ("input.order.id == 1", "a string is never equal to a number"),
        ("input.order.id < 1", "a string and a number have no order"),
        ("input.order < input.order", "a map and a map have no order"),
        ("'a' in input.order.id", "write text.contains(part)"),
        ("1 in ['a']", "a number is never in a list of string"),
        ("input.order.amount && true", "`&&` takes a bool, and input.order.amount is a number"),
        ("input.order.amount ? 1 : 2", "the condition of `? :` takes a bool, and input.order.amount is a number"),
        ("!input.order.id", "`!` takes a bool, and input.order.id is a string"),
        ("size(input.flag)", "size() takes a string, a list or a map, and input.flag is a bool"),
        ("input.order.amount.contains('1')", "takes a string, and input.order.amount is a number; write string(x)"),
        ("['a'].sum()", "sum() takes a list of number, and this is a list of string"),
        ("input.order.id.map(x, x)", "map() needs a list or a map, and input.order.id is a string"),
        ("[1].filter(x, x)", "the body of filter() takes a bool, and x is a number"),
        ("{a: 1}", 'unknown name \'a\'; write {"a": ...}'),
        ("{input.order.amount: 1}", "the key of a map takes a string"),
    ],
)  # fmt: skip
def test_mistake(text: str, message: str) -> None:
    """Only what certainly fails, with advice and the place."""
    with pytest.raises(ExpressionError) as raised:
        parse(text).check(TYPES)

    assert message in str(raised.value)
    assert raised.value.offset is not None
    assert raised.value.expression == text


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ("string", STRING),
        ({"type": "integer"}, NUMBER),
        ({"type": ["string", "null"]}, STRING),
        ({"type": ["string", "number"]}, ANY),
        ({"type": "array", "items": {"type": "boolean"}}, LIST(BOOL)),
        ({"type": "array"}, LIST()),
        ({"type": "object"}, MAP()),
        ({"type": "object", "required": ["id"]}, MAP()),
        ({"type": "object", "properties": {"a": "string"}, "required": ["b"]}, MAP({"a": STRING, "b": ANY})),
        ({"properties": {"a": {}}, "additionalProperties": True}, MAP({"a": ANY}, of=ANY)),
        ({"type": "object", "additionalProperties": {"type": "number"}}, MAP(of=NUMBER)),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, MAP({"a": ANY})),
        ({"enum": ["a", "b"]}, STRING),
        ({"const": 1}, NUMBER),
        ({"anyOf": [{"type": "null"}, {"type": "number"}]}, NUMBER),
        ({"$ref": "#/x"}, ANY),
        ({}, ANY),
        (True, ANY),
        ({"type": 7, "properties": []}, ANY),
        ({"type": "object", "properties": {"a": {"anyOf": 1, "enum": 2}}}, MAP({"a": ANY})),
    ],
)
def test_schema_gives_the_type_of_its_values(schema: Any, type_: Type) -> None:
    """A JSON Schema gives the type of its values as far as types can say it; nonsense gives ANY."""
    assert type_of_schema(schema) == type_


def test_join_of_maps() -> None:
    """A field of either may be there."""
    left, right = MAP({"a": NUMBER, "b": STRING}), MAP({"a": NUMBER, "c": NULL})

    assert join(left, right) == MAP({"a": NUMBER, "b": STRING, "c": NULL})
    assert join(left, MAP()) == MAP()
