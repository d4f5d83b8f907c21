"""Errors that came over the wire: the same classes that an engine in this process would raise."""

from __future__ import annotations

from typing import NoReturn

import msgspec

from outlive._features.flows.document.problems import FlowError, FlowInputError
from outlive.errors import CommitUnknownError, InvalidArgumentError, OutliveError, ServerError, StoreUnavailableError
from outlive.errors.known import ERRORS
from outlive.http.problem import ProblemBody
from outlive.remote.transport import AGAIN, Answer

OTHER_ERRORS: dict[str, type[OutliveError]] = {
    "FlowError": FlowError,
    "FlowInputError": FlowInputError,
    "Malformed": InvalidArgumentError,
}
"""Errors that belong to the documents of flows, and not to `outlive.errors`; and what a server says of a value that it
does not even read, where an engine would refuse the argument."""


NOTHING_HAPPENED = frozenset({"StoreMovedError", "StoreUnavailableError", "TooBusy", "TooManyConnections"})
TOO_MANY = 429
IS_IT = "Is this the address of `outlive serve`?"
IS_AWAY = "Try again later: a proxy answers, and the server behind it does not"


def raise_foreign(answer: Answer, why: str) -> NoReturn:
    """Raise what is not an answer of this API.

    Raises:
        ServerError: always.
    """
    if answer.location:
        raise ServerError(answer.status, "", f"it sends its callers to {answer.location}", "Give that address")
    text = why or " ".join(answer.body[:200].decode("utf-8", "replace").split()) or "nothing"
    raise ServerError(answer.status, "", text, IS_AWAY if answer.status in AGAIN else IS_IT) from None


def says_nothing_happened(answer: Answer) -> bool:
    """Whether an answer is a refusal of a server of ours, after which nothing of the request happens."""
    try:
        name = msgspec.json.decode(answer.body, type=ProblemBody).error
    except msgspec.MsgspecError:
        return False  # A proxy may have sent the request on.
    return name in NOTHING_HAPPENED or answer.status == TOO_MANY


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
    kind = OTHER_ERRORS.get(problem.error) or ERRORS.get(problem.error)
    if kind is None:
        raise ServerError(answer.status, problem.error, problem.detail, problem.next)
    detail, is_away = problem.detail, issubclass(kind, StoreUnavailableError)
    if answer.status >= 500 and not is_away:
        raise ServerError(answer.status, problem.error, detail, problem.next)
    if is_away and answer.is_unsure and not issubclass(kind, CommitUnknownError):
        kind, detail = CommitUnknownError, f"{detail}; an earlier request may have been carried out"
    # Not by its own constructor: that takes the facts, and makes the message of them.
    error = kind.__new__(kind)
    Exception.__init__(error, detail)
    error.add_note(problem.next)
    raise error
