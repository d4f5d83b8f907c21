"""What a run of a flow is given: input and variables against their JSON Schemas, defaults, and what is refused."""

from typing import Any

import msgspec
import pytest

from outlive._features.flows.document.inputs import filled, given_input, given_vars, input_schema, schema_problems
from outlive.flow import Document, FlowInputError


def flow(**fields: Any) -> Document:
    """A flow with these fields."""
    return msgspec.convert({"name": "given", "steps": {"one": {"use": "noop"}}, **fields}, Document)


ORDER = flow(
    input={
        "id": "integer",
        "who": {"type": "string", "default": "you"},
        "note": {"type": "string", "required": False},
        "order": {"type": "object", "required": ["cents"], "properties": {"cents": "integer", "eu": {"default": True}}},
    }
)


def test_defaults_are_filled_in_at_every_level() -> None:
    """Defaults are filled in at every level; a field that is not required and has no default stays absent."""
    given = {"id": 1, "order": {"cents": 5, "more": []}}

    assert given_input(ORDER, given) == {"id": 1, "who": "you", "order": {"cents": 5, "eu": True, "more": []}}
    assert given == {"id": 1, "order": {"cents": 5, "more": []}}


def test_everything_that_is_wrong_with_an_input_is_said_at_once() -> None:
    """By path, with what was expected. [FE-A5]"""
    with pytest.raises(FlowInputError) as caught:
        given_input(ORDER, {"id": "1", "whom": "me", "order": {"cents": 0.5}})

    assert str(caught.value) == (
        "flow given does not take this: input.id is '1'; expected integer; input.order.cents is 0.5; expected integer; "
        "input.whom is not known (did you mean who?)"
    )


def test_a_flow_without_input_takes_any_data() -> None:
    """It says nothing about it."""
    assert given_input(flow(), [1]) == [1]
    assert given_input(flow(), None) is None


def test_the_data_of_an_event_may_have_more_than_the_flow_knows() -> None:
    """It is not written for this flow alone."""
    given = {"id": 1, "order": {"cents": 5}, "more": 1}

    assert "more" not in given_input(ORDER, given, drop_unknown=True)


def test_the_schema_of_the_input_is_plain_json_schema() -> None:
    """Other programs know nothing of our short forms."""
    assert input_schema(ORDER)["required"] == ["id", "order"]
    assert input_schema(ORDER)["properties"]["note"] == {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ("string", ["", "a"], [1, None, True]),
        ("integer", [0, -5], [1.5, True, "1"]),
        ("number", [0, 1.5], [True, "1", float("nan")]),
        ("boolean", [True], [0, "true"]),
        ("any", [None, {}, 1], []),
        ({"type": ["string", "null"]}, ["a", None], [1]),
        ({"enum": ["a", 1, None]}, ["a", 1, None], ["b", True]),
        ({"const": 1}, [1], [True, 2]),
        ({"minimum": 1, "maximum": 3}, [1, 3, "text"], [0, 4]),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 3}, [2], [1, 3]),
        ({"multipleOf": 0.1}, [0.3, 1], [0.25]),
        ({"minLength": 1, "maxLength": 2}, ["a", 5], ["", "abc"]),
        ({"minItems": 1, "maxItems": 2, "items": "integer"}, [[1]], [[], [1, 2, 3], ["a"]]),
        ({"uniqueItems": True}, [[1, "1", True]], [[{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
        ({"minProperties": 1}, [{"a": 1}], [{}]),
        ({"properties": {"a": "integer"}, "additionalProperties": False}, [{}, {"a": 1}], [{"b": 1}]),
        ({"additionalProperties": "integer"}, [{"a": 1}], [{"a": "x"}]),
        ({"required": ["a"]}, [{"a": None}], [{}]),
        ({"properties": {"a": {"required": True}}}, [{"a": 1}], [{}]),
        ({"anyOf": ["string", "integer"]}, ["a", 1], [None]),
        ({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, [0, 9], [3]),
        ({"allOf": [{"minimum": 1}, {"maximum": 5}]}, [3], [0, 9]),
        (False, [], [1]),
    ],
)
def test_each_keyword_takes_what_it_says_and_refuses_the_rest(schema: Any, good: list[Any], bad: list[Any]) -> None:
    """Each keyword accepts and refuses values as JSON Schema defines it: true is not 1, and a keyword for numbers
    accepts any text."""
    assert list(schema_problems(schema, ("input", "x"), is_property=True)) == []
    assert [value for value in good if filled(schema, value)[1]] == []
    assert [value for value in bad if not filled(schema, value)[1]] == []


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("strng", "did you mean string?"),
        (5, "expected a JSON Schema or a type"),
        ({"type": "text"}, "expected a type"),
        ({"pattern": "(a+)+$"}, "a regular expression can take forever"),
        ({"$ref": "#/a"}, "write the schema out"),
        ({"minLenght": 1}, "did you mean minLength?"),
        ({"minimum": "1"}, "expected a number"),
        ({"maxItems": -1}, "0 or more"),
        ({"enum": []}, "a list of values"),
        ({"anyOf": {}}, "a list of schemas"),
        ({"properties": [1]}, "a map from names"),
        ({"required": "a"}, "a list of names"),
        ({"items": {"type": "x"}}, "input.x.items.type"),
        ({"type": "integer", "default": "a"}, "input.x.default is 'a'; expected integer"),
    ],
)
def test_a_schema_that_we_cannot_keep_is_refused_before_anything_runs(schema: Any, said: str) -> None:
    """Not ignored: people would believe that it is checked. A regular expression of others is refused. [S27]"""
    (problem,) = schema_problems(schema, ("input", "x"), is_property=True)

    assert said in problem.shown()


def test_variables_come_from_the_caller_the_environment_or_the_default() -> None:
    """In this order; what the environment has is text and becomes what the schema says."""
    document = flow(
        vars={
            "hook": {"type": "string", "env": "HOOK"},
            "times": {"type": "integer", "env": "TIMES", "default": 1},
            "mode": {"schema": {"enum": ["a", "b"]}, "default": "a"},
            "key": {"type": "string", "secret": True, "env": "KEY"},
            "extra": {"type": "string", "required": False},
        }
    )

    found = given_vars(document, {"mode": "b"}, {"HOOK": "http://x", "TIMES": "5", "KEY": "secret"})
    assert found == {"hook": "http://x", "times": 5, "mode": "b", "extra": None}
    with pytest.raises(FlowInputError, match=r"vars\.hook is missing \(give it, or set HOOK\)"):
        given_vars(document, {}, {})
    with pytest.raises(FlowInputError, match=r"vars\.key is a secret"):
        given_vars(document, {"key": "x", "hook": ""}, {})
    with pytest.raises(FlowInputError, match=r"vars\.times is 'many'; expected integer"):
        given_vars(document, {"hook": ""}, {"TIMES": "many"})
    with pytest.raises(FlowInputError, match=r"vars\.hok is not known \(did you mean hook\?\)"):
        given_vars(document, {"hok": ""}, {"HOOK": ""})
