"""How an error is answered: RFC 9457, by one table.

A body says which error of ours it is, what happened, and what to do next. It never holds a stack, a statement of SQL or
a path: of an error that is the server's own, only its name is shown, and the rest is in its log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

import msgspec

import outlive.errors as e
from outlive.errors.advice import Advice
from outlive.errors.base import facts_of
from outlive.errors.document import FlowError, FlowInputError
from outlive.errors.document import Problem as FlowProblem
from outlive.errors.flow import FlowDamagedError
from outlive.errors.key import QueueRefusedError
from outlive.errors.program import SHOWN_CHARACTERS_MAX, ExpressionError, shown, shown_text
from outlive.errors.run import BatchFailedError, InboxFullError, InvalidRunIdError, QuotaExceededError, RunDamagedError
from outlive.errors.store import HistoryFormatError
from outlive.http.advice import as_requests

MEDIA = "application/problem+json"
DETAIL_CHARACTERS_MAX = 2_000
RETRY_SECONDS = 5
_RENAMED = {413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}
"""The titles of RFC 9110; Python before 3.13 has older names."""


def title_of(status: int) -> str:
    """The title of a status of HTTP; equal on every Python."""
    return _RENAMED.get(status) or HTTPStatus(status).phrase


class ProblemBody(msgspec.Struct, frozen=True, kw_only=True):
    """The problem, and how to solve it (RFC 9457)."""

    type: str
    """`urn:outlive:error:` and the code."""
    title: str
    """The title of the status."""
    status: int
    detail: str
    """The cause."""
    error: str
    """The class that a program in Python catches, one of `outlive.errors`. `ServerError` has what no engine in its
    own process would refuse: a key, a limit of the server, a bug."""
    code: str
    """The kind of the error, as a name that does not change: `queue_not_found`."""
    facts: dict[str, Any] = {}
    """The facts of the error, such as `run_id`: the attributes that its class has in Python."""
    advice: tuple[Advice, ...] = ()
    """The verbs that help next, as data."""
    next: str
    """The next thing to do, as a sentence; the advice in it as requests."""


class Problem(Exception):
    """A request that is refused before it reaches the engine, or the answer to what the engine has raised."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        next: str,  # noqa: A002 (what it is called in the body)
        headers: Mapping[str, str] | None = None,
        *,
        error: str = "ServerError",
        facts: Mapping[str, Any] | None = None,
        advice: tuple[Advice, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.next = status, code, detail, next
        self.error, self.facts, self.advice = error, dict(facts or {}), advice
        self.headers = dict(headers or {})

    def hide(self, shown: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Let its texts be seen as `shown` shows them."""
        advice = [msgspec.to_builtins(it) for it in self.advice]
        found = shown({"detail": self.detail, "next": self.next, "facts": self.facts, "advice": advice})
        self.facts = found.get("facts", {})
        if "given" in self.facts and found["detail"] != self.detail:
            self.facts["given"] = None  # It may be a number that is hidden in the text.
        self.detail, self.next = found["detail"], found.get("next", _NEXT.get(self.status, _CORRECT))
        self.advice = msgspec.convert(found.get("advice", ()), tuple[Advice, ...])

    @property
    def body(self) -> ProblemBody:
        """The body that is sent."""
        return ProblemBody(
            type=f"urn:outlive:error:{self.code}",
            title=title_of(self.status),
            status=self.status,
            detail=self.detail[:DETAIL_CHARACTERS_MAX],
            error=self.error,
            code=self.code,
            facts=self.facts,
            advice=self.advice,
            next=self.next,
        )


_CORRECT = "Correct what `detail` names and send the request again."
_LATER = "Send the same request again in a few seconds; with the same id or key nothing happens twice."
_NEXT = {
    403: "Leave out what `detail` names, or use a key that may do it.",
    404: "Look at the address and at the names in it.",
    409: "Look at it again: it is not in the state for this, as `detail` says.",
    413: "Send less, or send where the data lies.",
    429: "Send the same request again later.",
    503: _LATER,
}
"""The sentence for a status, where an error has no advice."""

STATUSES: dict[type[Exception], int] = {
    # -- There is no such thing --
    e.NotFoundError: 404,
    # -- Who asks may not do this --
    QueueRefusedError: 403,
    # -- It is not in the state for this --
    e.ConflictError: 409,
    e.RunParkedError: 409,
    RunDamagedError: 409,
    BatchFailedError: 409,
    FlowDamagedError: 409,
    # -- It cannot work as it was given --
    e.ConfigurationError: 422,
    e.DefinitionError: 422,
    FlowInputError: 422,
    ExpressionError: 422,
    e.WrongArgumentsError: 422,
    InvalidRunIdError: 422,
    e.UnfitValueError: 422,
    e.UnserialisableError: 422,
    HistoryFormatError: 422,
    e.PayloadTooLargeError: 413,
    QuotaExceededError: 429,
    InboxFullError: 429,
    # -- Not now --
    e.StoreUnavailableError: 503,
    e.EngineClosedError: 503,
}
"""The status of a class, or of the nearest class that it derives from, counts."""

_HIDDEN = 500
"""From this status on the message is for the log of the server."""
_INSTEAD = {
    503: "the store of this server cannot be reached now, or the server stops",
}
_FACT_CHARACTERS_MAX, _FACT_PARTS_MAX = 2_000, 100
"""The limit for each text among the facts, and for how many parts of a list are sent."""
_OF_FLOWS = (FlowError, FlowInputError)
"""Errors that are public beside `outlive.errors`."""


def status_of(kind: type[BaseException]) -> int | None:
    """The status with which errors of a class are answered; None if they are ours."""
    return next((STATUSES[each] for each in kind.__mro__ if each in STATUSES), None)


def public_name(kind: type[BaseException]) -> str:
    """The nearest class that a program can name."""
    return next(each.__name__ for each in kind.__mro__ if each in _OF_FLOWS or each.__name__ in e.__all__)


def problem_of(error: Exception) -> Problem:
    """The answer to an error that an operation raised."""
    if isinstance(error, Problem):
        return error
    status = status_of(type(error))
    code = error.code if isinstance(error, e.OutliveError) else "internal"
    if status is None or not isinstance(error, e.OutliveError):
        detail = "this server has failed at it; the log of the server says more"
        return Problem(500, code, detail, _LATER)
    headers = {"retry-after": str(RETRY_SECONDS)} if status in (429, 503) else {}
    if status >= _HIDDEN:
        name = public_name(type(error)) if isinstance(error, e.StoreUnavailableError) else "ServerError"
        detail, facts = _INSTEAD[status], {}
        if run_id := getattr(error, "run_id", ""):
            detail += f"; it is not known whether run {run_id} was started"
            facts = {"run_id": run_id}
        return Problem(status, code, detail, _LATER, headers, error=name, facts=facts)
    then = as_requests(error.advice) or _NEXT.get(status, _CORRECT)
    facts, name = _public_facts(error), public_name(type(error))
    return Problem(status, code, _detail_of(error), then, headers, error=name, facts=facts, advice=error.advice)


def _detail_of(error: e.OutliveError) -> str:
    if isinstance(error, e.InvalidArgumentError):
        # Values are not repeated: they may hold what is not to be seen, and answers are logged on their way.
        given = "" if isinstance(error.given, dict | list | tuple | None) else f" {_as_json(error.given)}"
        like = "" if error.example is None else f", for example {_as_json(error.example)}"
        return f"{error.name}{given} cannot work: {error.wanted}{like}"
    return error.summary


def _as_json(value: object) -> str:
    """A value as a caller of the API writes it; the name of its type, if JSON has no such value."""
    try:
        return shown_text(msgspec.json.encode(value).decode())
    except (TypeError, ValueError, msgspec.MsgspecError):
        return shown(value)


def _public_facts(error: e.OutliveError) -> dict[str, Any]:
    """The facts that are plain data. Those of an argument that cannot work are without its value, unless it is a number
    or a text as short as in `detail`; the caller knows which verb it has called."""
    facts = {name: plain for name, it in facts_of(error).items() if (plain := _plain(it)) is not msgspec.UNSET}
    if isinstance(error, e.InvalidArgumentError):
        is_short = isinstance(error.given, str | int | float) and len(repr(error.given)) <= SHOWN_CHARACTERS_MAX
        return facts | {"where": "", "given": error.given if is_short else None}
    return facts


def _plain(fact: object) -> Any:
    match fact:
        case None | bool() | int() | float():
            return fact
        case str():
            return fact[:_FACT_CHARACTERS_MAX]
        case FlowProblem():
            return _plain(asdict(fact))
        case list() | tuple():
            parts = [_plain(each) for each in fact[:_FACT_PARTS_MAX]]
            return msgspec.UNSET if msgspec.UNSET in parts else parts
        case dict():
            return {str(name): plain for name, it in fact.items() if (plain := _plain(it)) is not msgspec.UNSET}
        case _:
            return msgspec.UNSET


_CODES = {
    400: "malformed",
    401: "unauthenticated",
    408: "too_slow",
    413: "too_large",
    429: "rate_limited",
    503: "too_busy",
}


def refusal(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Problem:
    """A request that is refused by what it is; its status says what to do."""
    is_for_later = status in (408, 429) or status >= 500
    then = _NEXT[429] if is_for_later else _NEXT[413] if status == 413 else _CORRECT
    return Problem(status, _CODES.get(status) or title_of(status).replace(" ", "_").lower(), detail, then, headers)


def malformed(detail: str) -> Problem:
    """The request cannot be read."""
    then = "Correct the request; GET /api/v1/openapi.json says what is read."
    facts = {"where": "", "name": "", "given": None, "wanted": detail, "example": None}
    return Problem(400, "malformed", detail, then, error="InvalidArgumentError", facts=facts)
