"""What an interrupt of LangGraph asks people, and the form of its answer."""

from __future__ import annotations

from typing import Any

import pytest

from outlive.integrations.agents import Answer
from outlive.integrations.interrupts import question_of

YES = Answer(approved=True, message="ann did not allow this call")
NO = Answer(approved=False, message="ann did not allow this call: no")


@pytest.mark.parametrize(
    ("value", "calls", "answer"),
    [
        ("Really?", [("interrupt", {"value": "Really?"})], {"approved": False, "message": NO.message}),
        ({"x": 1}, [("interrupt", {"value": {"x": 1}})], {"approved": False, "message": NO.message}),
        (
            {"tool": "dig", "arguments": {"a": 1}},
            [("dig", {"a": 1})],
            {"approved": False, "message": NO.message, "arguments": {"a": 1}},
        ),
        (
            {"type": "tool_approval", "tool_call_id": "1", "name": "dig", "args": {"a": 1}, "description": "?"},
            [("dig", {"a": 1})],
            {"type": "reject", "message": NO.message},
        ),
    ],
)
def test_question_about_one_call(value: Any, calls: list[tuple[str, Any]], answer: Any) -> None:
    """People are asked under the name of the tool, and the code reads the answer in the form that it expects."""
    question = question_of(value)

    assert calls == question.calls
    assert answer == question.form([NO])


def test_request_of_langchains_middleware_is_one_question_for_each_tool() -> None:
    """It gets its decisions in the order of its requests."""
    question = question_of(
        {"action_requests": [{"name": "dig", "args": {"a": 1}}, {"name": "burn", "args": {}}], "review_configs": []}
    )

    assert [("dig", {"a": 1}), ("burn", {})] == question.calls
    assert {"decisions": [{"type": "approve"}, {"type": "reject", "message": NO.message}]} == question.form([YES, NO])
