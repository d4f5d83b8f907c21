"""What a document costs is bounded by its length: whatever it nests, repeats or spells wrong."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from outlive import flow
from outlive._cel.spelling import SUGGESTIONS_MAX
from outlive._features.flows.document import reading, validating
from outlive._features.flows.document.inputs import LOOKS_OF_DOCUMENT_MAX, SCHEMA_DEPTH_MAX, SCHEMAS_MAX, Looks, filled
from outlive._features.flows.graphs import check_text
from outlive.flow import FlowError, Problem
from proof.http.hostile_documents import KINDS, document

SHORT = 2_500
CALLS_FOR_A_BYTE = 25
CALLS_FOR_A_BYTE_OF = {"a long expression": 80}
"""All of these together have `LONG_EXPRESSIONS_CHARACTERS_MAX` characters."""
CALLS_FOR_A_LOOK = 30
LEFT_MAX = 100
"""Objects in circles that a check may leave, whatever the length of its document."""


class TooMany(BaseException):
    """More was called than may be."""


def calls(work: Callable[[], Any], *, most: int) -> int:
    """How many functions are called, of Python and of C; not more than so many.

    Raises:
        TooMany: it would be more.
    """
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")
        if count > most:
            raise TooMany(most)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def problems_of(text: str) -> list[Problem]:
    """What is wrong with a document."""
    return list(check_text(text).problems)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_of_a_check_is_bounded_by_the_length_of_a_document(kind: str) -> None:
    """A check calls a bounded number of functions for each byte of a document, whatever its depth and length. [S35]"""
    text = document(kind, SHORT)
    check_text(document("flat", 200))  # Modules are imported, and tables are made.
    most = CALLS_FOR_A_BYTE_OF.get(kind, CALLS_FOR_A_BYTE) * SHORT
    most += CALLS_FOR_A_LOOK * LOOKS_OF_DOCUMENT_MAX * (" by " in kind)

    assert calls(lambda: check_text(text), most=most)


def test_a_check_leaves_nothing_to_the_collector_of_garbage() -> None:
    """The objects of a check go with it, on its thread: a plan that referred to itself, and mistakes with the frames in
    which they were listed, kept twenty objects for each step until Python's collector came. It came on the thread of
    the event loop, and took 0.3 s there. [S35]"""
    check_text(document("flat", 200))  # Modules are imported, and tables are made.
    left: dict[str, int] = {}
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for kind in KINDS:
            check_text(document(kind, SHORT))
            left[kind] = gc.collect(0)  # Of all objects, only those that were made since.
    finally:
        if was_enabled:
            gc.enable()

    assert {} == {kind: count for kind, count in left.items() if count > LEFT_MAX}


HEAD = "name: bounded\nsteps: {a: {use: noop}}\n"


def with_input(schema: Any) -> str:
    """A document with one input."""
    return f"{HEAD}input: {json.dumps({'x': schema})}\n"


def nested(levels: int, around: Callable[[Any], Any], inner: Any) -> Any:
    """Something around something, so many times."""
    for _ in range(levels):
        inner = around(inner)
    return inner


def test_a_document_with_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document with too many values is refused with the line of the first one beyond the limit. [S35]"""
    assert reading.VALUES_MAX == 200_000
    monkeypatch.setattr(reading, "VALUES_MAX", 1_000)
    fits = f"{HEAD}metadata: {{x: [{'a,' * 900}]}}\n"
    (problem,) = problems_of(f"{HEAD}metadata: {{x: [{'a,' * 1_000}]}}\n")

    assert [] == problems_of(fits)
    assert (problem.code, problem.line) == ("too-large", 3)


def test_a_schema_is_limited_in_depth_and_number() -> None:
    """A schema that is nested too deeply or holds too many schemas is refused. [S35]"""
    fits = nested(SCHEMA_DEPTH_MAX, lambda it: {"items": it, "default": []}, {})
    many = {"anyOf": ["string"] * (SCHEMAS_MAX - 1)}

    assert [] == problems_of(with_input(fits)) == problems_of(with_input(many))
    for schema, why in (
        ({"items": fits}, "schemas are nested more than 20 levels deep"),
        ({"anyOf": ["string"] * SCHEMAS_MAX}, "it holds more than 1,000 schemas"),
    ):
        (problem,) = problems_of(with_input(schema))
        assert (problem.code, problem.message) == ("schema", f"input.x cannot be checked: {why}")


def test_a_default_is_found_wrong_at_any_depth() -> None:
    """Once, at its own place. [S35]"""
    schema = nested(10, lambda it: {"items": it, "default": []}, {"type": "string", "default": 7})
    (problem,) = problems_of(with_input(schema))

    assert problem.message == f"input.x{'.items' * 10}.default is 7; expected string"


def test_long_expressions_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long expressions of a document are limited in their characters together; short ones may be any number. [S35]"""
    assert validating.LONG_EXPRESSIONS_CHARACTERS_MAX == 100_000
    monkeypatch.setattr(validating, "LONG_EXPRESSIONS_CHARACTERS_MAX", 1_000)
    short, long = "${{ 1 + 1 }}", "${{ " + "+".join(["1"] * 150) + " }}"
    for texts, codes in (([long, long, long, *[short] * 500], set()), ([long] * 4, {"too-large"})):
        text = f"{HEAD}output: {json.dumps(texts)}\n"
        assert codes == {each.code for each in problems_of(text) if not each.is_warning}


def test_comparisons_with_a_schema_are_limited() -> None:
    """A start that takes too many comparisons of values with schemas is refused. [S35]"""
    schema = {"items": {"anyOf": [*["string"] * 99, "integer"]}}
    enough, too_many = [1] * 9, [1] * 10

    assert (enough, []) == filled(schema, enough, ("input",), looks=Looks(1_000))
    _, problems = filled(schema, too_many, ("input",), looks=Looks(1_000))
    assert ["input cannot be checked: it takes more than 1,000 comparisons of values with schemas"] == [
        each.message for each in problems
    ]


def test_a_value_that_is_wrong_in_many_places_is_not_looked_at_to_its_end() -> None:
    """A hundred mistakes are enough for a person, and their text for an answer. [S35]"""
    many = {"type": "array", "items": {"enum": [f"value-{each}" for each in range(1_000)]}}
    _, problems = filled(many, ["x"] * 10_000)

    assert len(problems) == 100
    assert max(len(each.message) for each in problems) < 500
    assert problems[0].message.endswith("'value-11', ...")


def test_names_are_suggested_for_the_first_mistakes_only() -> None:
    """To compare names is what costs most of a check. [S35]"""
    for text in (
        HEAD + "".join(f"descriptio{number}: 1\n" for number in range(50)),
        "name: bounded\nsteps:\n" + "".join(f"  s{number}: {{use: noop, wiht: 1}}\n" for number in range(50)),
        "name: bounded\nsteps:\n"
        + "".join(f"  s{number}: {{use: nop, after: [s{number}x]}}\n" for number in range(50)),
        with_input({"properties": {f"p{number}": "strin" for number in range(50)}}),
    ):
        problems = problems_of(text)
        assert len(problems) >= 50
        assert 0 < len([each for each in problems if each.suggestion.startswith("did you mean")]) <= SUGGESTIONS_MAX


def test_mistakes_are_not_hidden_by_warnings() -> None:
    """A check of a document with thousands of warnings lists the first ones and every mistake. [S35]"""
    steps = "".join(f"  s{number}: {{use: unknown}}\n" for number in range(2_000))
    problems = problems_of(f"name: bounded\nsteps:\n{steps}output: 1\ntimeout: 0\n")

    assert ["value"] == [each.code for each in problems if not each.is_warning]
    assert len(problems) == 501


def test_a_long_name_is_cut_in_the_path_of_each_mistake() -> None:
    """Else each mistake would be as long as the document. [S35]"""
    text = with_input({"properties": {"k" * 10_000: {"properties": {f"p{number}": "strin" for number in range(50)}}}})

    assert max(len(each.message) for each in problems_of(text)) < 500


def test_an_expression_that_cannot_be_read_is_a_problem_of_the_document() -> None:
    """An expression that cannot be read is a problem of its document, and the check goes on. [S35]"""
    text = 'name: bounded\nsteps: {a: {use: log, with: {message: "${{ ( }}"}}}\n'

    assert ["expression"] == [each.code for each in problems_of(text)]
    with pytest.raises(FlowError):
        flow.parse(text)
