"""Errors that came over the wire: the same classes that an engine in this process would raise."""

from __future__ import annotations

from typing import NoReturn

import msgspec

import outlive.errors
from outlive._define.flow.problems import FlowError, FlowInputError
from outlive.errors import OutliveError, ServerError
from outlive.http.problem import ProblemBody
from outlive.remote.transport import Answer

FLOW_ERRORS = {kind.__name__: kind for kind in (FlowError, FlowInputError)}
"""Errors that belong to the documents of flows, and not to `outlive.errors`."""


def raise_refusal(answer: Answer) -> NoReturn:
    """Raise what a server has answered.

    Raises:
        OutliveError: of the class that the body names, with its message; its facts are in the message alone.
        ServerError: it names none of ours.
    """
    try:
        problem = msgspec.json.decode(answer.body, type=ProblemBody)
    except msgspec.MsgspecError:
        text = answer.body[:200].decode("utf-8", "replace")
        raise ServerError(answer.status, "", text, "Is this the address of `outlive serve`?") from None
    kind = FLOW_ERRORS.get(problem.error) or getattr(outlive.errors, problem.error, None)
    if isinstance(kind, type) and issubclass(kind, OutliveError) and answer.status < 500:
        # Not by its own constructor: that takes the facts, and makes the message of them.
        error = kind.__new__(kind)
        Exception.__init__(error, problem.detail)
        error.add_note(problem.next)
        raise error
    raise ServerError(answer.status, problem.error, problem.detail, problem.next)
