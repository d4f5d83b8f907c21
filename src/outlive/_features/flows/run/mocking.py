"""A flow with steps that answer what a person says instead of doing their work: for tests, and to try one step.

A mocked step is replaced in the document by a step of ours that is given the same arguments. So its arguments are still
rendered, its retry, its timeout and `on_error` still count, and its code need not be here.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from outlive._features.flows.document.model import Document, FlowStep, Mock, Undo
from outlive._features.flows.run.plan import Plan
from outlive._kernel.define.step import step
from outlive.errors import InvalidArgumentError

MOCK = "outlive.mocked"


@step(name=MOCK)
async def mocked(given: Any, answer: Any) -> Any:
    """The result of a mocked step; `given` are the arguments with which the step would have been called."""
    answer = next((case for case in answer.get("when", ()) if case["with"] == given), answer)
    if "when" in answer and not answer.keys() & {"result", "error"}:
        raise LookupError(f"the mock has no answer for {given}: add one to `when`, or a `result` for all others")
    if "error" in answer:
        raise _error_of(answer["error"])
    return answer.get("result")


def _error_of(error: Mapping[str, str]) -> Exception:
    """An exception of a class of this name: the built-in one if there is one, so that retries see what it is."""
    name = error.get("type", "Exception")
    own = getattr(builtins, name, None)
    if isinstance(own, type) and issubclass(own, Exception):
        kind: type[Exception] = own
    else:
        kind = type(name.rpartition(".")[2], (Exception,), {"__module__": name.rpartition(".")[0] or "builtins"})
    return kind(error.get("message", ""))


def with_mocks(document: Document, mocks: Mapping[str, Mock]) -> Document:
    """A document whose mocked steps answer what they are to.

    Raises:
        InvalidArgumentError: there is no step of that name.
    """
    for id in mocks:
        _check_step(document, id, "mocks")
    steps = {id: _mocked(each, mocks[id]) if id in mocks else each for id, each in document.steps.items()}
    return replace(document, steps=steps, tests=[], triggers=[])


def _check_step(document: Document, id: str, what: str) -> None:
    if id not in document.steps:
        wanted = f"flow {document.name} has no step {id}; it has {', '.join(document.steps)}"
        raise InvalidArgumentError(f"flow {document.name}", what, id, wanted)


def _mocked(own: FlowStep, mock: Mock) -> FlowStep:
    answer = msgspec.to_builtins(mock)
    undo = own.undo
    if undo is not None:
        undo = Undo(use=MOCK, with_={"given": undo.with_, "answer": {"$literal": {"result": None}}})
    given = {"given": own.with_, "answer": {"$literal": answer}}
    return replace(own, use=MOCK, with_=given, queue=None, limit=None, once=False, undo=undo)


def one_step(document: Document, id: str, results: Mapping[str, Any], arguments: Any = None) -> Document:
    """A document with one step of another one, and with the results of the steps that it refers to.

    Args:
        arguments: what it is called with, in the place of what the document says.

    Raises:
        InvalidArgumentError: there is no such step, or a result that it needs is missing.
    """
    _check_step(document, id, "step")
    own = document.steps[id]
    if arguments is not None:
        own = replace(own, with_={"$literal": arguments})
    own = replace(own, must_run=True, undo=None, after=[])
    before = _needs(replace(document, steps=document.steps | {id: own}), id)
    missing = [each for each in before if each not in results]
    if missing:
        example = ", ".join(f'"{each}": ...' for each in missing)
        wanted = f"step {id} refers to {', '.join(missing)}: give --steps '{{{example}}}'"
        raise InvalidArgumentError(f"flow {document.name}", "steps", sorted(results), wanted)
    given = {
        each: FlowStep(use=MOCK, with_={"given": None, "answer": {"$literal": {"result": results[each]}}})
        for each in before
    }
    output = f"${{{{ steps.{id} }}}}"
    return replace(document, steps={**given, id: own}, output=output, tests=[], triggers=[])


def _needs(document: Document, id: str) -> list[str]:
    """The steps whose results one step refers to."""
    needs = Plan(document).all_steps[id].needs
    return [each for each in document.steps if each in needs]
