"""Expressions have the value that CEL gives them, and nothing random gets past an `ExpressionError`."""

import random
import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive._cel import ExpressionError, compile_value, parse
from outlive._cel.functions import FUNCTIONS
from proof.fuzz.grammar import SCOPE, Grammar
from proof.fuzz.nonsense import nonsense, plain_data
from proof.fuzz.oracle import difference
from tests.docs.page import DOCS

EXAMPLES = 100
"""Few: `make fuzz` tries 100,000."""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no wheel of cel-expr-python")
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**64))
def test_same_value_as_cel(seed: int) -> None:
    """A random expression has the value that CEL gives it, or has none where CEL has none, apart from what decision
    0043 lists."""
    text = Grammar(random.Random(seed)).expression()

    assert difference(text, SCOPE) == "", text


@pytest.mark.skipif(sys.platform != "linux", reason="there is no wheel of cel-expr-python")
@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775807 == double(input.big)",  # As doubles they are equal, as numbers they are not.
        "input.list[9] && ((1.0 * 1) in [2])",  # CEL tells of the index and not of the mixed numbers.
    ],
)
def test_the_oracle_allows_what_is_listed_behind_something_else(text: str) -> None:
    """The two that 100,000 inputs of seed 0 came upon."""
    assert difference(text, SCOPE) == ""


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**64))
def test_nonsense_is_refused(seed: int) -> None:
    """Whatever is wrong with the expression or its data, it is an `ExpressionError`. [S41]"""
    rng = random.Random(seed)
    text = nonsense(rng)
    scope = {name: plain_data(rng) for name in ("a", "b", "c", "x", "input", "steps")}

    with suppress(ExpressionError):
        parse(text).evaluate(scope)
    with suppress(ExpressionError):
        compile_value({"a": f"<${{{{ {text} }}}}>"}).render(scope)


def test_the_page_lists_every_function() -> None:
    """With its form and what it gives."""
    page = (DOCS / "reference" / "expressions.md").read_text("utf-8")

    for function in FUNCTIONS.values():
        assert f"| `{function.form}` | {function.says} |" in page
