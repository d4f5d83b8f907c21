"""Values of a document with references in Stepflow's form, beside expressions."""

from typing import Any

import pytest

from outlive._cel import ExpressionError
from outlive._features.flows.document.references import compile_cases, compile_value, expression_errors
from outlive.errors import OutliveError, program

SCOPE: dict[str, Any] = {
    "input": {"name": "Ada", "items": [{"id": 1}, {"id": 2}], "none": None, "yes": True},
    "steps": {"reserve": {"id": "h-1", "odd name": [1, 2]}, "skipped": None},
    "vars": {"hook": "http://x"},
}


@pytest.mark.parametrize(
    ("value", "rendered"),
    [
        ("Dear ${{ input.name }}", "Dear Ada"),
        ({"$step": "reserve"}, {"id": "h-1", "odd name": [1, 2]}),
        ({"$step": "reserve", "path": "id"}, "h-1"),
        ({"$step": "reserve", "path": "$['odd name'][1]"}, 2),
        ({"$step": "skipped", "path": "$.x", "default": 5}, 5),
        ({"$input": "$.items[1].id"}, 2),
        ({"$input": "$"}, SCOPE["input"]),
        ({"$input": "name"}, "Ada"),
        ({"$variable": "hook"}, "http://x"),
        ({"$variable": "$.nothing", "default": {"$input": "name"}}, "Ada"),
        ({"$literal": {"$step": "x", "a": "${{ no }}"}}, {"$step": "x", "a": "${{ no }}"}),
        ({"$if": {"$input": "yes"}, "then": "${{ input.name }}", "else": 1}, "Ada"),
        ({"$if": {"$input": "none"}, "then": 1}, None),
        ({"$if": "${{ 1 > 2 }}", "then": {"$input": "nothing"}, "else": [{"$input": "name"}]}, ["Ada"]),
        ({"$coalesce": [{"$step": "skipped"}, {"$input": "x.y"}, "${{ input.none }}", 3]}, 3),
    ],
)
def test_reference_is_a_path(value: Any, rendered: Any) -> None:
    """A reference has the value at its path, in every form that takes a value."""
    assert compile_value(value).render(SCOPE) == rendered


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"$step": "a", "pth": "b"}, "$step cannot have 'pth' beside it; put data that looks like this into $literal"),
        ({"$step": 1}, "$step and its path are texts"),
        ({"$input": "$..a"}, "'$..a' is not a path; write it like $.items[0].id"),
    ],
)
def test_reference_that_means_no_path_is_refused(value: Any, message: str) -> None:
    """A reference that cannot be read is refused before anything runs, with its place."""
    problems: list[Any] = []
    compile_value({"a": [value, "${{ 1 + }}"]}, problems)

    with pytest.raises(ExpressionError) as raised:
        compile_value(value)

    assert message in str(raised.value)
    assert [path for path, _ in problems] == [("a", 0), ("a", 1)]
    assert message in str(problems[0][1])


def test_references_are_among_the_expressions() -> None:
    """A template knows the path of a reference as it knows that of an expression."""
    template = compile_value({"a": "${{ input.b }}", "e": {"$step": "f", "path": "g[0]['x y']"}})

    assert template.references == {("input", "b"), ("steps", "f", "g")}
    assert [each.text for _, each in template.expressions] == ["input.b", 'steps.f.g[0]["x y"]']


def test_cases_may_be_references() -> None:
    """The cases of a switch take references as every other value."""
    template = compile_cases({"on": {"$input": "name"}, "cases": {"Ada": {"$step": "reserve"}}})

    assert template.render(SCOPE) == {"on": "Ada", "cases": {"Ada": SCOPE["steps"]["reserve"]}}


def test_error_of_an_expression_leaves_flows_as_one_of_outlive() -> None:
    """The error that a program sees has the words and the place of the error of the language."""
    template = compile_value("a ${{ input.none }}")

    with pytest.raises(OutliveError) as raised, expression_errors():
        template.render(SCOPE)

    assert isinstance(raised.value, program.ExpressionError)
    assert str(raised.value) == "a text cannot have null in it; write coalesce(x, '') (in `input.none`, at character 1)"
    assert (raised.value.expression, raised.value.offset) == ("input.none", 0)
    assert raised.value.suggestion == "write coalesce(x, '')"
