"""What the language of expressions has, and what each part of it gives."""

from typing import Any

import pytest

from outlive._cel import ExpressionError, parse

SCOPE: dict[str, Any] = {
    "input": {
        "order": {"id": 7, "cents": 1050, "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 3}]},
        "at": "2026-05-31T23:30:00+02:00",
        "none": None,
    },
    "steps": {"reserve": {"id": "h-1"}, "send-mail": "sent"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("input.order.id", 7),
        ('input["order"].lines[1].sku', "b"),
        ('steps["send-mail"]', "sent"),
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 / 2.0", 3.5),
        ("input.order.cents / 7 * 2.0", 300.0),
        ("-9223372036854775808", -(2**63)),
        ("-(1)", -1),
        ("--(1)", 1),
        ("1 - -1", 2),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("!true || 1 < 2.5 && 'a' != 'b'", True),
        ("1 == 1.0", True),
        ("true == 1", False),
        ("[1, 2] == [1.0, 2]", True),
        ("{'a': 1} == {'a': 1.0}", True),
        ("'x' in {'x': null}", True),
        ("3 in [1, 2]", False),
        ("input.order.cents > 1000 ? 'large' : 'small'", "large"),
        ("false && input.order.nothing", False),
        ("input.order.nothing || true", True),
        ("has(input.order.id) && !has(input.order.x) && !has(input.x.y.z)", True),
        ("has(input.none)", True),
        ("coalesce(input.x.y, input.none, 'last')", "last"),
        ("input.order.?x.y.z", None),
        ("input.order.?id", 7),
        ("input.order.lines[?9].sku", None),
        ("input.order.?x.orValue('d')", "d"),
        ("r'\\d' + '\\u00e9\\n' + '''a\nb'''", "\\dé\na\nb"),
        (r"'\101\x42\U00000043\t\\'", "ABC\t\\"),
        ("[1, 2, 3,].map(x, x * 2)", [2, 4, 6]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("[[1, 2], [3]].map(x, x.map(x, x + 1))", [[2, 3], [4]]),
        ("[1, 2].map(x, [3, 4].map(y, x * y))", [[3, 4], [6, 8]]),
        ("input.order.lines.filter(line, line.n > 2)[0].sku", "b"),
        ("{'a': 1, 'b': 2}.filter(key, key != 'a')", ["b"]),
        ("[1, 0].exists(x, 1 / x == 1)", True),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[1, 2].all(x, x > 0) && ![1, 2].all(x, x > 1) && [1, 2].exists_one(x, x > 1)", True),
        ("input.order.lines.sortBy(x, -x.n).map(x, x.sku).join(', ')", "b, a"),
        ("// the number\n input.order.id", 7),
        ("{'if': 1, 'in': 2}.if", 1),
    ],
)
def test_value(text: str, value: Any) -> None:
    """An expression gives the value that CEL gives, or the value that the documentation says."""
    found = parse(text).evaluate(SCOPE)

    assert value == found
    assert type(value) is type(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input.order.idd", "there is no field 'idd' among 'id', 'cents', 'lines'"),
        ("input.none.x", "null has no field 'x'"),
        ("input.order.lines.sku", "a list has no field 'sku'; write x[0].sku"),
        ("nothing", "there is no 'nothing' here"),
        ("input.order.lines[2]", "there is no element 2 in a list of 2"),
        ("9223372036854775807 + 1", "an integer of more than 64 bits"),
        ("-(-9223372036854775807 - 1)", "an integer of more than 64 bits"),
        ("1 / 0", "a division by zero"),
        ("1.5 % 0", "a division by zero"),
        ("1e308 * 10", "not a finite number"),
        ("'a' + 1", "`+` cannot take the string 'a' and the number 1; write string(x)"),
        ("1 < 'a'", "have no order; write int(x)"),
        ("-'a'", "`-` takes a number, and this is the string 'a'"),
        ("!1", "`!` takes true or false, and this is the number 1"),
        ("1 + null", "write coalesce(x, 0)"),
        ("null < 1", "write coalesce(x, 0)"),
        ("1 ? 2 : 3", "a condition is true or false, and this is the number 1"),
        ("1 && true", "`&&` takes true or false, and this is the number 1"),
        ("'a' in 'abc'", "write text.contains(part)"),
        ("{1 < 2 ? 'a' : 'b': 1, 'a': 2}", "the key 'a' twice"),
        ("[1].map(x, y)", "there is no 'y' here"),
        ("[1, 2].all(x, x)", "the body of all() is true or false"),
    ],
)
def test_no_value(text: str, message: str) -> None:
    """The error says what was found, what to write, and where in which expression."""
    with pytest.raises(ExpressionError) as raised:
        parse(text).evaluate(SCOPE)

    assert message in str(raised.value)
    assert text in str(raised.value)
    assert "at character" in str(raised.value)
    assert type(raised.value) is ExpressionError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a value was expected before its end"),
        ("1 +", "a value was expected before its end"),
        ("1 2", "complete before `2`"),
        ("a and b", "complete before `and`; write `&&`"),
        ("a = b", "'=' has no meaning here; write `==`"),
        ("a?.b", "write `.?`"),
        ("(1", "`)` of a bracket was expected before its end"),
        ("a ? b", "`:` of `condition ? yes : no` was expected"),
        ("'abc", "is not closed"),
        ("'a\nb'", "a text ends on the line"),
        (r"'\d'", r"\d is not an escape; write \\"),
        (r"'\ud800'", "is not a character"),
        (r"'\udfff'", "is not a character"),
        (r"'\U00110000'", "is not a character"),
        (r"'\x4'", "needs 2 digits"),
        ("1u", "no unsigned numbers"),
        ("b'x'", "no bytes"),
        ("9223372036854775808", "at most 64 bits"),
        ("1e999", "too large"),
        ("{1: 2}", "the keys of a map are texts"),
        ("has(a)", "has() takes a field"),
        ("uperAscii(a)", "no function 'uperAscii'; did you mean 'upperAscii'?"),
        ("a.b.matches('x')", "no function 'matches'"),
        ("size()", "size() takes one value and was given 0; write size(x)"),
        ("map(x, x)", "write list.map(x, ...)"),
        ("[1].map(1, 2)", "the name of its variable"),
        ("[1].map(x)", "`,` of map(x, ...) was expected"),
        ("if", "'if' is a reserved word; write `condition ? yes : no`"),
        ("(" * 101 + "1" + ")" * 101, "more than 100 brackets"),
        ("[" * 99 + "a" + ".b" * 110 + "]" * 99, "more than 200 operations"),
        ("a" + ".b" * 300, "more than 200 operations"),
        ("1 + " * 2500 + "1" + " " * 10_000, "may have 10,000 characters"),
        ("f(1)(2)", "no function 'f'"),
        ("size(a)(2)", "only functions of the fixed list can be called"),
        ("a\u200b", "has no meaning here"),
    ],
)
def test_text_that_is_not_an_expression_is_refused(text: str, message: str) -> None:
    """A text that cannot be read as an expression is refused with the character and advice."""
    with pytest.raises(ExpressionError) as raised:
        parse(text)

    assert message in str(raised.value)
    assert raised.value.offset is not None


def test_long_chains_do_not_count_as_depth() -> None:
    """An expression may have thousands of operators of one rank, because they do not count as depth."""
    assert parse("1" + "+1" * 4000).evaluate({}) == 4001
    assert parse("false" + "||false" * 1000 + "||true").evaluate({}) is True
    assert parse("!" * 5001 + "true").evaluate({}) is False


def test_references() -> None:
    """Every path from a name of the scope, as far as it is written out; variables of macros are none."""
    text = 'input.items.map(x, x.id + steps.a.n) + [steps["send-mail"].x[0].y, vars[input.key].z, item]'

    assert parse(text).references == {
        ("input", "items"),
        ("steps", "a", "n"),
        ("steps", "send-mail", "x"),
        ("vars",),
        ("input", "key"),
        ("item",),
    }
