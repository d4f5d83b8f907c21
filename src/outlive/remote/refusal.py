"""Errors that came over the wire: the same classes that an engine in this process would raise."""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec

from outlive.errors import CommitUnknownError, InvalidArgumentError, OutliveError, ServerError, StoreUnavailableError
from outlive.errors.document import FlowError, FlowInputError
from outlive.errors.document import Problem as FlowProblem
from outlive.errors.known import ERRORS
from outlive.http.problem import ProblemBody
from outlive.remote.transport import AGAIN, Answer

_NAMES: dict[str, type[OutliveError]] = ERRORS | {kind.__name__: kind for kind in (FlowError, FlowInputError)}
_CODES = {kind.code: kind for kind in _NAMES.values()}
NOTHING_HAPPENED = frozenset({"store_moved", "store_unavailable", "too_busy", "too_many_connections"})
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
        code = msgspec.json.decode(answer.body, type=ProblemBody).code
    except msgspec.MsgspecError:
        return False  # A proxy may have sent the request on.
    return code in NOTHING_HAPPENED or answer.status == TOO_MANY


def raise_refusal(answer: Answer, operation: str = "follow") -> NoReturn:
    """Raise what a server has answered to an operation.

    Raises:
        OutliveError: the error that an engine in this process would raise, with its facts.
        ServerError: no engine would raise it.
    """
    try:
        problem = msgspec.json.decode(answer.body, type=ProblemBody)
    except msgspec.MsgspecError:
        raise_foreign(answer, "")
    raise error_of(problem, operation, is_unsure=answer.is_unsure)


def error_of(problem: ProblemBody, operation: str = "follow", *, is_unsure: bool = False) -> OutliveError:
    """The error that an engine in this process would raise, with its facts; `ServerError` if no engine would raise it.

    Args:
        is_unsure: whether an earlier request may have been carried out.
    """
    public = _NAMES.get(problem.error)
    if public is None or public is ServerError:
        return ServerError(problem.status, problem.code, problem.detail, problem.next)
    kind = _CODES.get(problem.code, public)
    kind = kind if issubclass(kind, public) else public
    detail, is_away = problem.detail, issubclass(kind, StoreUnavailableError)
    facts = {name: _fact(it) for name, it in problem.facts.items() if not name.startswith("_")}
    if is_away:
        facts = {"place": "the server", "reason": detail, "run_id": ""} | facts
    if is_away and is_unsure and not issubclass(kind, CommitUnknownError):
        kind, detail = CommitUnknownError, f"{detail}; an earlier request may have been carried out"
    elif kind.code != problem.code:
        facts["code"] = problem.code  # An error of a later release: the class above it is known.
    if issubclass(kind, InvalidArgumentError):
        facts["where"] = f"engine.{operation.removeprefix('runs.')}"
    # Not by its own constructor: a server of another release may have other facts.
    error = kind.__new__(kind)
    Exception.__init__(error, detail)
    vars(error).update(facts)
    return error.advising(*problem.advice)


def _fact(plain: Any) -> Any:
    """A fact as an engine gives it: lists as tuples, the problems of a flow as such."""
    if not isinstance(plain, list):
        return plain
    try:
        return msgspec.convert(plain, tuple[FlowProblem, ...])
    except msgspec.ValidationError:
        return tuple(map(_fact, plain))
