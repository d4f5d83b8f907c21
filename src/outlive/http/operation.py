"""The operations of the API, and the table of all of them: the source of routes, of OpenAPI and of the docs.

    @operation("runs.start", "POST", "/runs", scope="operator", answers=201)
    async def start_run(call: Call, body: StartRun) -> Started:
        \"\"\"Start a run by the name of its workflow.\"\"\"

The function never sees a request. Names in the path are its arguments of the same name, `query` is a struct of the
parameters behind the question mark, `body` a struct of the JSON that was sent. It returns a struct, a `Content`, or
None; of several structs the type says the status.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from outlive._features.security.key import SCOPES
from outlive._kernel.client.acting import with_tags
from outlive.engine.view import view_of
from outlive.errors import OutliveError
from outlive.http.aside import on_thread
from outlive.http.limits import ApiLimits
from outlive.http.line import Line
from outlive.http.live import LivePages
from outlive.http.principal import NO_SCOPE, Principal
from outlive.http.problem import Problem

if TYPE_CHECKING:
    from outlive._kernel.client.request_plans import RequestPlans
    from outlive.engine import Engine
    from outlive.engine.view import View

PREFIX = "/api/v1"
JSON = "application/json"
EVENT_STREAM = "text/event-stream"
_NAMES = re.compile(r"\{(\w+)\}")
_ID = re.compile(r"[a-z_]+\.[a-z_]+")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])

Reach = Literal["run", "runs", "tagged", "code", "workflow", "store", "nothing"]
"""The things that an operation touches, for principals that are bound to some workflows, or to runs with some tags:

- `run`: the run in its path, which is looked at before.
- `runs`: runs, which the function narrows itself (`narrowed`), or starts within the bounds.
- `tagged`: runs, which the function narrows by tags only (`narrowed_tags`): refused to principals of some workflows.
- `code`: what workers say of their code, by the name of a workflow: the same for runs with all tags.
- `workflow`: a workflow with all its runs, whatever tags they have: refused to principals of some tags.
- `store`: the whole store, which is refused to both.
- `nothing`: nothing that belongs to a run.
"""


TRACEPARENT = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
TRACESTATE_CHARACTERS_MAX = 512
"""The limit up to which the standard lets a program pass it on."""


class Call:
    """The context of an operation, besides its arguments."""

    __slots__ = (
        "address",
        "check_again",
        "checks",
        "engine",
        "headers",
        "idempotency_key",
        "limits",
        "live",
        "mount",
        "principal",
        "request",
        "searches",
    )

    def __init__(
        self,
        engine: Engine,
        principal: Principal,
        headers: Mapping[str, str],
        idempotency_key: str | None,
        limits: ApiLimits,
        live: LivePages,
        checks: Line,
        searches: Line,
        check_again: Callable[[], Awaitable[None]],
        address: str = "",
        request: str = "",
        mount: str = "",
    ) -> None:
        self.engine = engine
        self.principal = principal
        self.headers = headers
        """The headers of the request, by their names in lower case."""
        self.idempotency_key = idempotency_key
        """The header `Idempotency-Key`."""
        self.limits = limits
        self.live = live
        """The lists that are followed now."""
        self.checks = checks
        self.searches = searches
        self.check_again = check_again
        """Looks whether the request still comes from the principal, with the same rights; raises `Problem` if not. For
        what waits: a key may be revoked meanwhile."""
        self.address = address
        """Where the request came from."""
        self.request = request
        """The name of the request, in the audit log and in ids that are made of it: a digest of its purpose, of its
        sender and of its key; empty without a key."""
        self.mount = mount
        """The path below which another app has this API; empty if none has."""

    async def was_done(self, target: str) -> bool:
        """Whether an earlier try of this request did it to this target, and only its answer was lost."""
        return bool(self.request) and await self.engine.audit._has_done(self.request, target)

    def person(self, by: str | None) -> str:
        """The person who acts: the principal, and another person only if the principal may say so.

        Raises:
            Problem: 403; it may not.
        """
        if by is None or by == self.principal.name:
            return self.principal.name
        if not self.principal.names_others:
            detail = f"{self.principal.name} cannot act for another person"
            raise Problem(403, "forbidden", detail, "Leave out `by`: it is the owner of the key.")
        return by

    @property
    def plans(self) -> RequestPlans:
        """The plans of requests for many runs."""
        return view_of(self.engine).plans

    async def beside(self, work: Callable[[], T]) -> T:
        """The result of work that may take seconds, such as the check of a document; the event loop goes on meanwhile.

        Raises:
            Problem: it took too long. Whatever the work raises.
        """
        return await self.checks.do(self.principal.id, partial(on_thread, partial(copy_context().run, work)))

    async def search(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of a search for runs, whose cost grows with the runs in the store, in the turn of the principal.

        Raises:
            Problem: it took too long. Whatever the work raises.
        """
        return await self.searches.do(self.principal.id, work)

    @property
    def view(self) -> View:
        """Runs as people may see them."""
        return view_of(self.engine)

    def run_headers(self, headers: dict[str, str] | None) -> dict[str, str]:
        """The headers of a run that this request starts: its own, the headers that say which tenant its key is for, and
        the trace of the request if they name none. A request whose trace cannot be read starts a run without one.

        Raises:
            InvalidArgumentError: it names another tenant.
        """
        # Middleware takes the tenant of a step from there: a caller must not choose it.
        return self._traced(with_tags("engine.start", "headers", headers or {}, self.principal.tags))

    def _traced(self, headers: dict[str, str]) -> dict[str, str]:
        own, state = self.headers.get("traceparent", ""), self.headers.get("tracestate", "")
        if "traceparent" in headers or TRACEPARENT.fullmatch(own) is None:
            return headers
        trace = {"traceparent": own} | ({"tracestate": state} if 0 < len(state) <= TRACESTATE_CHARACTERS_MAX else {})
        return trace | headers


@dataclass(frozen=True, slots=True)
class Content:
    """An answer that is not JSON, or comes bit by bit."""

    media: str
    body: bytes | AsyncGenerator[bytes, None]
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    places: int = 1
    """How many places it takes while it comes, by what it looks at again and again."""


@dataclass(frozen=True)
class Operation:
    """One operation of the API."""

    name: str
    """The name in OpenAPI, in the audit and in clients: the namespace of its subject, a dot, and the verb, as in
    Python."""
    method: str
    path: str
    """With the prefix, and names in braces."""
    scope: str
    reach: Reach
    function: Callable[..., Awaitable[Any]]
    body: Any
    """The struct that its body is parsed by; None if it takes none."""
    query: Any
    """The struct that its parameters are parsed by; None if it takes none."""
    names: tuple[str, ...]
    """The names in its path."""
    answers: dict[int, Any]
    """The types of its answers by status; None for an answer without a body."""
    media: str
    """The type of the answer's body."""
    raises: tuple[type[OutliveError], ...]
    """The errors of ours that its caller may have to deal with, besides errors that any operation may give, and
    `InvalidArgumentError`, which any may give that is given something."""
    waits: bool
    """Whether its caller may have to wait for it, and may have gone by then."""
    is_optional_body: bool
    is_page: bool = False
    """Whether people open it: a browser gets a page also where programs get JSON, and of a problem too."""
    messages: Mapping[str, Any] = field(default_factory=dict)
    """The types of the messages of a stream of events, by their names."""
    for_tokens: bool = False
    """Whether a token of a run may use it: it only follows."""
    before_body: Callable[..., Awaitable[None]] | None = None
    """Looks at the names in its path before its body is read; one with a body that needs no key has this."""

    @property
    def namespace(self) -> str:
        """The subject that it is about."""
        return self.name.partition(".")[0]

    @property
    def is_open(self) -> bool:
        """Whether it needs no key."""
        return self.scope == NO_SCOPE

    @property
    def run_name(self) -> str:
        """Which name in its path is the id of a run."""
        return "batch_id" if "batch_id" in self.names else "run_id"

    @cached_property
    def status_of(self) -> dict[Any, int]:
        """The status of an answer, by its type."""
        return {kind: status for status, kind in self.answers.items()}

    @cached_property
    def read_body(self) -> Callable[[bytes], Any]:
        """Reads the JSON of a body."""
        return msgspec.json.Decoder(self.body).decode

    @property
    def promise(self) -> str:
        """The promise of the operation, in one line."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n")[0]

    @property
    def explanation(self) -> str:
        """The rest of what there is to say of it."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n")[2].strip()


OPERATIONS: dict[str, Operation] = {}
"""All of them by name. They are in it when `outlive.http.operations` is imported."""


def operation(
    name: str,
    method: str,
    path: str,
    *,
    scope: str,
    answers: int | dict[int, Any] = 200,
    reach: Reach = "store",
    raises: tuple[type[OutliveError], ...] = (),
    media: str = JSON,
    waits: bool = False,
    prefix: str = PREFIX,
    is_page: bool = False,
    messages: Mapping[str, Any] | None = None,
    for_tokens: bool = False,
    before_body: Callable[..., Awaitable[None]] | None = None,
) -> Callable[[F], F]:
    """Declare an operation. Called while its module is imported; what does not fit together is an error then.

    Args:
        name: its id, for example "runs.start".
        scope: who may use it: "viewer", "operator", "admin", "worker", or "none" for everyone.
        answers: the status, with the type that the function returns; or types by status.
        reach: see `Reach`; a principal that is bound may not use what has none.
        raises: errors that a caller should know of, besides those of every operation.
        media: the type of the body of its answers.
        waits: whether it is given up when its caller has gone.
        is_page: whether a browser gets a page.
        messages: the types of the messages of a stream of events, by their names.
        for_tokens: whether a token of a run may use it; a name in its path besides the run is that of a stream.
        before_body: what sees that a request without a key may send a body: it raises what the function would raise.
    """

    def declare(function: F) -> F:
        found = _operation_of(function, name, method, prefix + path, scope=scope, answers=answers, media=media)
        declared = found | {"reach": reach, "raises": raises, "waits": waits, "is_page": is_page}
        declared |= {"for_tokens": for_tokens, "messages": messages or {}}
        it = Operation(**declared, before_body=before_body)
        place = method, _shape(it.path)
        same = [other.name for other in OPERATIONS.values() if (other.method, _shape(other.path)) == place]
        assert not same, f"{it.name} and {same} have the same method and path"
        assert it.name not in OPERATIONS, f"there are two operations {it.name}"
        assert bool(messages) == (media == EVENT_STREAM), f"{it.name} does not say which messages it sends"
        assert not for_tokens or (reach == "run" and method == "GET"), f"{it.name} does not only follow a run"
        assert reach != "run" or it.run_name in it.names, f"{it.name} reaches a run, and its path has no id of one"
        assert not it.is_open or it.body is None or before_body, (
            f"{it.name} reads a body of a sender who is not checked"
        )
        OPERATIONS[it.name] = it
        return function

    return declare


def _operation_of(
    function: Callable[..., Any],
    name: str,
    method: str,
    path: str,
    *,
    scope: str,
    answers: int | dict[int, Any],
    media: str,
) -> dict[str, Any]:
    assert _ID.fullmatch(name), f"{name} is not the id of an operation: a namespace, a dot and a verb"
    assert scope in (*SCOPES, NO_SCOPE), f"{name} has no scope that there is: {scope!r}"
    assert function.__doc__, f"{name} does not say what it does"
    hints = get_type_hints(function)
    names = tuple(_NAMES.findall(path))
    parameters = inspect.signature(function).parameters
    wanted = {"call", "body", "query", *names}
    assert {"call", *names} <= set(parameters) <= wanted, f"{name} takes other names than its path"
    body = hints.get("body")
    is_optional = body is not None and parameters["body"].default is not inspect.Parameter.empty
    returned = hints["return"]
    by_status = answers if isinstance(answers, dict) else {answers: None if returned is types.NoneType else returned}
    return {
        "name": name,
        "method": method,
        "path": path,
        "scope": scope,
        "function": function,
        "body": _without_none(body),
        "query": hints.get("query"),
        "names": names,
        "answers": by_status,
        "media": media,
        "is_optional_body": is_optional,
    }


def _without_none(hint: Any) -> Any:
    """The struct of `Struct | None`."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not types.NoneType)
    return hint


def _shape(path: str) -> str:
    return _NAMES.sub("{}", path)
