"""Errors that came over the wire: the same classes that an engine in this process would raise."""

from __future__ import annotations

from typing import NoReturn

import msgspec

import outlive.errors
from outlive._define.flow.problems import FlowError, FlowInputError
from outlive.errors import InvalidArgumentError, OutliveError, ServerError
from outlive.http.problem import ProblemBody
from outlive.remote.transport import AGAIN, Answer

OTHER_ERRORS: dict[str, type[OutliveError]] = {
    "FlowError": FlowError,
    "FlowInputError": FlowInputError,
    "Malformed": InvalidArgumentError,
}
"""Errors that belong to the documents of flows, and not to `outlive.errors`; and what a server says of a value that it
does not even read, where an engine would refuse the argument."""


IS_IT = "Is this the address of `outlive serve`?"
IS_AWAY = "Try again later: a proxy answers, and the server behind it does not"


def raise_foreign(answer: Answer, why: str) -> NoReturn:
    """Raise what is no answer of this API.

    Raises:
        ServerError: always.
    """
    if answer.location:
        raise ServerError(answer.status, "", f"it sends its callers to {answer.location}", "Give that address")
    text = why or " ".join(answer.body[:200].decode("utf-8", "replace").split()) or "nothing"
    raise ServerError(answer.status, "", text, IS_AWAY if answer.status in AGAIN else IS_IT) from None


def raise_refusal(answer: Answer) -> NoReturn:
    """Raise what a server has answered.

    Raises:
        OutliveError: of the class that the body names, with its message; its facts are in the message alone.
        ServerError: it names none of ours.
    """
    try:
        problem = msgspec.json.decode(answer.body, type=ProblemBody)
    except msgspec.MsgspecError:
        raise_foreign(answer, "")
    kind = OTHER_ERRORS.get(problem.error) or getattr(outlive.errors, problem.error, None)
    if isinstance(kind, type) and issubclass(kind, OutliveError) and answer.status < 500:
        # Not by its own constructor: that takes the facts, and makes the message of them.
        error = kind.__new__(kind)
        Exception.__init__(error, problem.detail)
        error.add_note(problem.next)
        raise error
    raise ServerError(answer.status, problem.error, problem.detail, problem.next)
