"""The questions of an `interrupt()` of LangGraph to people, and the form in which the code that called it reads the
answer.

The code interrupts with                         people decide on    the code reads
{"tool": ..., "arguments": ...}                  that call           {"approved": ..., "message": ..., "arguments": ...}
{"action_requests": [{"name", "args"}, ...]}     each call in it     {"decisions": [...]}, in the order of the calls
{"type": "tool_approval", "name", "args", ...}   that call           one decision
anything else                                    the value itself    {"approved": ..., "message": ...}

The second and the third are those of `HumanInTheLoopMiddleware` of LangChain. A decision is `{"type": "approve"}`, or
`{"type": "reject", "message": ...}`.

A node that has asked is called again from its beginning when the answer is there, and what it asks then may be another
call: of a model, for example, that it asks again itself. LangGraph gives it the answer to the first one. So the answer
to a call says which arguments people saw, and the code calls the tool with these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from outlive.integrations.agents import Answer

ANYTHING = "interrupt"
"""The name of an approval that is about no tool."""


@dataclass(frozen=True, slots=True)
class Question:
    """The question to people, and how their answers are given back."""

    calls: list[tuple[str, Any]]
    """Tools with their arguments; each is one approval."""
    form: Callable[[Sequence[Answer]], Any]
    """Makes the value that `interrupt()` returns from the answers, which are in the order of the calls."""


def question_of(value: Any) -> Question:
    """The question in a value that was given to `interrupt()`."""
    if not isinstance(value, dict):
        return Question([(ANYTHING, {"value": value})], _as_answer)
    if isinstance(value.get("tool"), str):
        arguments = value.get("arguments", {})
        return Question([(value["tool"], arguments)], partial(_as_answer_to, arguments))
    if isinstance(actions := value.get("action_requests"), list) and actions:
        return Question([(each["name"], each.get("args", {})) for each in actions], _as_decisions)
    if value.get("type") == "tool_approval":
        return Question([(value["name"], value.get("args", {}))], _as_decision)
    return Question([(ANYTHING, {"value": value})], _as_answer)


def _as_answer(answers: Sequence[Answer]) -> dict[str, Any]:
    [answer] = answers
    return {"approved": answer.approved, "message": "" if answer.approved else answer.message}


def _as_answer_to(arguments: Any, answers: Sequence[Answer]) -> dict[str, Any]:
    return {**_as_answer(answers), "arguments": arguments}


def _as_decision(answers: Sequence[Answer]) -> dict[str, Any]:
    [answer] = answers
    return {"type": "approve"} if answer.approved else {"type": "reject", "message": answer.message}


def _as_decisions(answers: Sequence[Answer]) -> dict[str, Any]:
    return {"decisions": [_as_decision([answer]) for answer in answers]}
