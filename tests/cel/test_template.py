"""Plain data with expressions in it: texts with `${{ }}`, `$if`, `$coalesce` and `$literal`."""

from typing import Any

import pytest

from outlive._cel import (
    ANY,
    BOOL,
    LIST,
    MAP,
    NUMBER,
    STRING,
    ExpressionError,
    compile_value,
)

SCOPE: dict[str, Any] = {
    "input": {"name": "Ada", "items": [{"id": 1}, {"id": 2}], "none": None, "yes": True},
    "steps": {"reserve": {"id": "h-1", "odd name": [1, 2]}, "skipped": None},
    "vars": {"hook": "http://x"},
}


@pytest.mark.parametrize(
    ("value", "rendered"),
    [
        ("${{ input.items }}", [{"id": 1}, {"id": 2}]),
        (" ${{ input.items[0].id }}\n", 1),
        ("Dear ${{ input.name }}, ${{ input.items.size() }} items", "Dear Ada, 2 items"),
        ("${{ input.items }} ${{ 1.0 }} ${{ true }}", '[{"id":1},{"id":2}] 1 true'),
        ("${{ {'a': {'b': '}}'}} }}", {"a": {"b": "}}"}}),
        ("${{ {'a': {'b': 1}}}}", {"a": {"b": 1}}),
        ("$${{ input.name }} costs $5, ${ x } {{ y }}", "${{ input.name }} costs $5, ${ x } {{ y }}"),
        ("$${{ a }} ${{ input.name }}", "${{ a }} Ada"),
        ({"to": ["${{ input.name }}", 1, None], "at": {"b": True}}, {"to": ["Ada", 1, None], "at": {"b": True}}),
        ({"$literal": {"$if": 1, "a": "${{ no }}"}}, {"$if": 1, "a": "${{ no }}"}),
        ({"$if": "${{ input.yes }}", "then": "${{ input.name }}", "else": 1}, "Ada"),
        ({"$if": "${{ input.none }}", "then": 1}, None),
        ({"$if": "${{ 1 > 2 }}", "then": "${{ input.nothing }}", "else": ["${{ input.name }}"]}, ["Ada"]),
        ({"$coalesce": ["${{ steps.skipped }}", "${{ input.x.y }}", "${{ input.none }}", 3]}, 3),
        ({"$coalesce": [None]}, None),
        ({"$set": {"a": "${{ input.name }}"}, "$schema": 1}, {"$set": {"a": "Ada"}, "$schema": 1}),
        ({"$step": "a", "path": "${{ input.name }}"}, {"$step": "a", "path": "Ada"}),
    ],
)
def test_render(value: Any, rendered: Any) -> None:
    """A text that is one expression has the value itself; everything else keeps its form."""
    assert compile_value(value).render(SCOPE) == rendered


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${{ input.name", "not closed with }}"),
        ("${{ }}", "a value was expected before its end"),
        ("a ${{ 'x }}", "is not closed"),
        ("${{ input.name + }}", "a value was expected"),
        ({"${{ x }}": 1}, "the name of a field cannot be an expression"),
        ({"$literal": 1, "a": 2}, "$literal cannot have 'a' beside it; put data that looks like this into $literal"),
        ({"$if": True}, "$if needs 'then' beside it"),
        ({"$coalesce": []}, "$coalesce takes a list of values"),
    ],
)
def test_no_template(value: Any, message: str) -> None:
    """A mistake is refused before anything runs, and all mistakes can be had at once, with their places."""
    with pytest.raises(ExpressionError) as raised:
        compile_value(value)
    problems: list[Any] = []
    compile_value({"a": [value, "${{ 1 + }}"]}, problems)

    assert message in str(raised.value)
    assert [path for path, _ in problems] == [("a", 0), ("a", 1)]
    assert message in str(problems[0][1])


def test_null_in_a_text_is_an_error() -> None:
    """Nothing is silent: the text `null` or a gap in an address would be."""
    with pytest.raises(ExpressionError, match=r"null in it; write coalesce\(x, ''\) \(in `input.none`"):
        compile_value("http://x/${{ input.none }}").render(SCOPE)


def test_a_template_knows_its_references_and_expressions() -> None:
    """A template knows its references, its expressions with their places, and whether it has any."""
    template = compile_value({"a": ["${{ input.b }} ${{ steps.c.d }}"], "e": "${{ steps.f.g }}"})

    assert template.references == {("input", "b"), ("steps", "c", "d"), ("steps", "f", "g")}
    assert [(path, each.text) for path, each in template.expressions] == [
        (("a", 0), "input.b"),
        (("a", 0), "steps.c.d"),
        (("e",), "steps.f.g"),
    ]
    assert not template.is_constant
    assert compile_value({"a": [1, "b"], "c": {"$literal": "${{ x }}"}}).is_constant


def test_type() -> None:
    """The type of a value follows from those of its parts."""
    types = {"input": MAP({"n": NUMBER, "yes": BOOL}), "steps": MAP({"a": ANY})}
    value: dict[str, Any] = {
        "n": "${{ input.n }}",
        "t": "x ${{ input.n }}",
        "l": ["${{ input.n }}", 1],
        "a": "${{ steps.a }}",
    }
    value |= {"i": {"$if": "${{ input.yes }}", "then": 1}, "c": {"$coalesce": [None, "x"]}}

    assert compile_value(value).check(types) == MAP(
        {"n": NUMBER, "t": STRING, "l": LIST(NUMBER), "a": ANY, "i": NUMBER, "c": STRING}
    )
    with pytest.raises(ExpressionError, match="unknown field 'm' of input"):
        compile_value({"x": "${{ input.m }}"}).check(types)
    with pytest.raises(ExpressionError, match=r"condition of \$if is true or false, and this is a number"):
        compile_value({"$if": "${{ input.n }}", "then": 1}).check(types)
