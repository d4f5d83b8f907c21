"""`Api`: the HTTP API of an engine, as an ASGI app.

A request passes the gate, is matched to an operation, is read by the types of that operation, and is answered with what
its function returns. Nothing here knows what any operation does.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from importlib import import_module
from typing import Any

import msgspec

from outlive._features import FEATURES
from outlive._features.security.run_tokens import TokenRecord
from outlive._kernel.client.acting import acting
from outlive._kernel.client.slices import others_turn
from outlive._kernel.client.timed_store import searching
from outlive._tasks import own_task
from outlive.engine import Engine
from outlive.engine.view import view_of
from outlive.errors import ConfigurationError, EngineClosedError, OutliveError, RunNotFoundError
from outlive.http import operations  # noqa: F401  (importing it declares them)
from outlive.http.asked import check_workflow
from outlive.http.denials import Denials, is_denial
from outlive.http.doors import Auth, door_of
from outlive.http.exchange import SECURITY, Gone, Receive, Request, Scope, Send, Unread, in_time, live, send_to_gone
from outlive.http.gate import ANY_HOST, LOCAL_HOSTS, SAFE, Gate, key_in
from outlive.http.limits import CHECKS_WAITING_MAX, ApiLimits, BodyBudgets, Places, stranger_at
from outlive.http.line import Line
from outlive.http.live import LivePages
from outlive.http.operation import OPERATIONS, Call, Content, Operation
from outlive.http.plain_page import HTML, page, wants_page
from outlive.http.principal import ANONYMOUS, Follower, Principal
from outlive.http.problem import MEDIA, RETRY_SECONDS, Problem, problem_of, title_of
from outlive.http.proxies import Proxies
from outlive.http.reading import check_media, read_body, read_query
from outlive.http.routing import Routes, below, known_at, operation_at, parts_of
from outlive.http.static import Pages, is_mount, send_page, send_to_slash
from outlive.http.wire.page import seconds_of
from outlive.http.wire.runs import AskRun, SendSignal
from outlive.telemetry import log

CHECK_SECONDS_MIN = 0.1
"""Between two looks at the key of a request that waits."""
REDACTED_BYTES_MAX = 64 * 1024
TOO_LONG_TO_SHOW = "what was sent is too long to say what is wrong with it without what is redacted; `error` names it"
_JSON = (b"content-type", b"application/json")
_PROBLEM = (b"content-type", MEDIA.encode())


Shown = Callable[[dict[str, Any]], dict[str, Any]] | None
"""Hides what the engine redacts in a JSON value; None if nothing has to be hidden."""


class Api:
    """The HTTP API of an engine.

        app = FastAPI(lifespan=engine.lifespan)
        app.mount("/outlive", engine.asgi(auth=...))

    Args:
        engine: it has to be entered while requests come; it may be one without a worker.
        auth: says who asks: "keys" for those of `engine.keys`, or a function (`Authenticate`). Unless given, programs
            of this machine may do everything, and no other may do anything.
        hosts: the names that this server answers for (the header `Host`); "*" for any. Those of this machine unless
            given.
        origins: where its own pages come from, as "https://admin.example.org", if a proxy changes `Host`. There is no
            CORS: a page of another site cannot use it.
        limits: how much one request, and one sender, may ask for.
        proxies: the addresses, or networks, of proxies in front of it. Of what these send, `X-Forwarded-For` says from
            where it comes: that counts for wrong keys, for budgets of strangers and in the audit log.
        webhooks: whether the webhooks of flows are at /webhooks.
        pages: files for browsers that anyone gets, as those of the dashboard.

    Raises:
        ConfigurationError: any host is allowed, and no key is asked for.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        auth: Auth = "loopback",
        hosts: Iterable[str] = LOCAL_HOSTS,
        origins: Iterable[str] = (),
        limits: ApiLimits | None = None,
        proxies: Iterable[str] = (),
        webhooks: bool = True,
        pages: Pages | None = None,
    ) -> None:
        self._engine = engine
        self._limits = limits or ApiLimits()
        hosts, proxies = tuple(hosts), tuple(proxies)
        self._proxies = Proxies(proxies)
        if auth == "loopback" and ANY_HOST in hosts:
            raise ConfigurationError(
                "hosts='*' without keys lets every page that a browser of this machine opens use the API, by a name "
                "that was rebound to it; name the hosts, or let callers need a key (auth='keys')"
            )
        self._gate = Gate(
            door_of(engine, auth),
            hosts=hosts,
            origins=origins,
            limits=self._limits,
            now=_loop_time,
            find_token=self._find_token,
        )
        self._routes = Routes(OPERATIONS.values())
        self._pages = pages
        self._budgets = BodyBudgets(self._limits)
        self._mounts = self._mounted(engine, proxies) if webhooks else {}
        self._denials = Denials(engine, now=_loop_time)
        self._live = LivePages(self._limits.lists_max)
        self._checks = Line(
            "the check of the document", waiting_max=CHECKS_WAITING_MAX, seconds=self._limits.check_seconds
        )
        self._searches = Line(
            "the search for runs", waiting_max=self._limits.searches_waiting_max, seconds=self._limits.search_seconds
        )
        self._places = Places(self._limits.followers_max)
        self._closing: asyncio.Future[None] | None = None

    def _mounted(
        self, engine: Engine, proxies: Iterable[str]
    ) -> dict[str, Callable[[Scope, Receive, Send], Awaitable[None]]]:
        """The apps of features, by the part of the path below which they are."""
        shared = {"limits": self._limits, "budgets": self._budgets, "proxies": proxies}
        modules = {part: import_module(module) for it in FEATURES for part, module in it.mounts.items()}
        return {part: it.MOUNT(engine, **shared) for part, it in modules.items()}

    async def _find_token(self, secret: str) -> TokenRecord | None:
        return await view_of(self._engine).run_tokens.find(secret)

    def close(self) -> None:
        """The server stops: requests that wait or follow end now. Call it on the event loop."""
        if not self._until_closing().done():
            self._until_closing().set_result(None)

    def _until_closing(self) -> asyncio.Future[None]:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_future()
        return self._closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the specification of ASGI."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await live(receive, send)
        else:
            await send({"type": f"{scope['type']}.close"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, self._proxies)
        try:
            await self._respond(scope, request, receive, in_time(send, self._limits.read_seconds))
        except Gone:
            await send_to_gone(send)
        except Unread:
            log.info("%s ends: its answer was not read for %g s", request.path, self._limits.read_seconds)
        finally:
            request.close()

    async def _respond(self, scope: Scope, request: Request, receive: Receive, send: Send) -> None:
        operation: Operation | None = None
        principal: Principal | None = None
        arguments: dict[str, Any] = {}
        try:
            parts = parts_of(scope)
            found = self._routes.find(parts, request.method)
            known = known_at(found, request.method)
            self._gate.check_place(request, known)
            if self._pages is not None and is_mount(scope):
                await send_to_slash(send, scope, SECURITY)
                return
            if self._pages is not None and request.method in SAFE and (page := self._pages.find(parts)) is not None:
                await send_page(send, request, page, SECURITY)
                return
            if len(parts) > 1 and (mounted := self._mounts.get(parts[0])) is not None:
                await mounted(below(scope, parts[0]), receive, send)
                return
            principal = await self._gate.principal(request, known)
            operation, names = operation_at(found, request.method)
            self._gate.check_scope(principal, operation, names)
            call, arguments = await self._read(scope, request, operation, principal, names)
            look_again = partial(_look_again, call, operation, names)
            try:
                answer = await self._within(call, operation, arguments, receive)
            except (OutliveError, Problem):
                await look_again()  # The message of a failure may be about the other run.
                raise
            await look_again()
        except (Gone, Unread):
            raise
        except asyncio.CancelledError:
            # The server stops and waits no longer: that is not a failure of the app, and its caller gets 503.
            await _send_problem(send, _closed(), request, operation)
            return
        except Exception as error:
            await self._refuse(send, error, request, principal, operation, arguments)
            return
        if isinstance(answer, Content):
            await self._send_content(send, request, answer, receive, principal, look_again)
        else:
            await _send_answer(send, request, operation, answer)

    async def _refuse(
        self,
        send: Send,
        error: Exception,
        request: Request,
        principal: Principal | None,
        operation: Operation | None,
        arguments: dict[str, Any],
    ) -> None:
        """Answer with an error. No function through which the error came may keep it in a variable: the frame and the
        error would refer to each other, and with them all that the request had in hand would stay until Python's
        collector comes."""
        problem = problem_of(error)
        if is_denial(problem, request):
            await self._denials.note(request, problem, principal, operation)
        await _send_problem(send, error, request, operation, shown=self._shown_of(request, arguments))

    def _shown_of(self, request: Request, arguments: dict[str, Any]) -> Shown:
        """Make a filter for what is said of a request that was read and failed: it hides everything that the engine
        redacts. What is said of a long body is replaced as a whole."""
        if "body" not in arguments or not view_of(self._engine).hides:
            return None
        if request.size > REDACTED_BYTES_MAX:
            return lambda _: {"detail": TOO_LONG_TO_SHOW}
        return partial(view_of(self._engine).about, name=arguments.get("name", ""), sent=arguments["body"])

    # -- Reading ---------------------------------------------------------------------------------------------

    async def _read(
        self, scope: Scope, request: Request, operation: Operation, principal: Principal, names: dict[str, str]
    ) -> tuple[Call, dict[str, Any]]:
        """The arguments of the function of an operation."""
        key = key_in(request)
        call = Call(
            self._engine,
            principal,
            request.headers,
            key,
            self._limits,
            self._live,
            self._checks,
            self._searches,
            partial(self._gate.check_again, principal, request),
            request.address,
            request="" if key is None else _named_by(principal, operation, names, key),
            mount=str(scope.get("root_path") or "").rstrip("/"),
        )
        is_free = operation.reach != "run" or principal.bounds.is_open
        is_there = is_free or await _check_run(call, names[operation.run_name])
        if not is_there and operation.body not in (SendSignal, AskRun):
            raise RunNotFoundError(names[operation.run_name])
        if operation.before_body is not None:
            await operation.before_body(call, **names)
        arguments: dict[str, Any] = dict(names)
        query = read_query(operation, scope.get("query_string", b""))
        if query is not None:
            arguments["query"] = query
        if request.method not in ("GET", "HEAD"):
            check_media(operation, request)
            sent = await self._body_in_time(call, request, operation)
            body = read_body(operation, sent)
            await others_turn(len(sent))
            if body is not None:
                arguments["body"] = body
        if not is_there:
            body = arguments.get("body")
            if body is None or body.start is None:
                raise RunNotFoundError(names["run_id"])
            check_workflow(call, body.start.workflow)
        return call, arguments

    async def _body_in_time(self, call: Call, request: Request, operation: Operation) -> bytes:
        """The body; the key of one that arrived slowly is looked at again, as it may be revoked by now."""
        began = _loop_time()
        body = await self._body(request, operation, call.principal)
        if _loop_time() - began >= self._limits.check_again_seconds:
            await call.check_again()
        return body

    async def _body(self, request: Request, operation: Operation, principal: Principal) -> bytes:
        size = self._limits.open_body_bytes_max if operation.is_open else self._limits.body_bytes_max
        budget = self._budgets.strangers if operation.is_open else self._budgets.known
        own = "" if principal.may_use("admin", "store") else principal.id
        sender = stranger_at(request.address) if operation.is_open else own
        return await request.body(bytes_max=size, seconds=self._limits.body_seconds, budget=budget, sender=sender)

    async def _within(self, call: Call, operation: Operation, arguments: dict[str, Any], receive: Receive) -> Any:
        """The result of an operation; a waiting operation is given up when its caller has gone, or has lost its rights.

        Raises:
            Gone: it has. Problem: there is no place for its principal, or it has lost its rights.
        """
        if not operation.waits or not _asks_to_wait(arguments):
            return await _call(operation, call, arguments)
        answer = await self._waiting(call, operation, arguments, receive)
        await call.check_again()
        return answer

    async def _waiting(self, call: Call, operation: Operation, arguments: dict[str, Any], receive: Receive) -> Any:
        if not self._places.take(call.principal):
            raise _no_place()
        work = own_task(_call(operation, call, arguments), name=f"outlive-http-{operation.name}")
        gone = own_task(_until_gone(receive), name="outlive-http-gone")
        try:
            over = (work, gone, self._until_closing())
            seconds = max(self._limits.check_again_seconds, CHECK_SECONDS_MIN)
            while not (await asyncio.wait(over, timeout=seconds, return_when=asyncio.FIRST_COMPLETED))[0]:
                await call.check_again()
            if work.done():
                return work.result()
            if gone.done():
                raise Gone
            raise _closed()
        finally:
            for task in (work, gone):
                task.cancel()
            self._places.leave(call.principal)

    # -- Answering -------------------------------------------------------------------------------------------

    async def _send_content(
        self,
        send: Send,
        request: Request,
        content: Content,
        receive: Receive,
        principal: Principal,
        look_again: Callable[[], Awaitable[None]],
    ) -> None:
        headers = [(b"content-type", content.media.encode()), *_lines(content.headers)]
        has_body = request.method != "HEAD"
        if isinstance(content.body, bytes):
            await _send_bytes(send, request, content.status, headers, content.body, has_body=has_body)
            return
        if not self._places.take(principal, content.places):
            await _send_problem(send, _no_place(), request, None)
            return
        try:
            await send({"type": "http.response.start", "status": content.status, "headers": [*SECURITY, *headers]})
            if has_body:
                parts = self._while_allowed(content.body, request, principal, look_again)
                await _send_parts(send, parts, receive, self._until_closing())
            await send({"type": "http.response.body", "body": b""})
        except OutliveError as error:
            # The answer has begun: all that is left is to end it, and its reader comes again.
            log.info("%s ends: %s", request.path, error)
            await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError:
            # The server stops and waits no longer: that is how a follower ends, and it is not a failure of the app.
            log.info("%s ends: the server has cancelled it", request.path)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._places.leave(principal, content.places)

    async def _while_allowed(
        self,
        parts: AsyncGenerator[bytes, None],
        request: Request,
        principal: Principal,
        look_again: Callable[[], Awaitable[None]],
    ) -> AsyncGenerator[bytes, None]:
        """The parts of an answer, until its reader may not see it: a key may be revoked while its events are followed,
        and another run may take the id."""
        checked = _loop_time()
        async with aclosing(parts):
            async for part in parts:
                if _loop_time() - checked >= self._limits.check_again_seconds:
                    if not await self._gate.is_still(principal, request):
                        log.info("%s ends: %s may not follow it any longer", request.path, principal.name)
                        return
                    checked = _loop_time()
                await look_again()
                yield part


def _asks_to_wait(arguments: Mapping[str, Any]) -> bool:
    """Whether a request may wait; one that does not say for how long waits as long as its operation does."""
    said = [getattr(arguments.get(name), "wait", None) for name in ("query", "body")]
    return any(seconds_of(each) for each in said if each is not None) or said == [None, None]


def _no_place() -> Problem:
    return Problem(
        503,
        "too_many_followers",
        "too many requests follow events of this server, or wait",
        "Try again later.",
        {"retry-after": str(RETRY_SECONDS)},
    )


async def _call(operation: Operation, call: Call, arguments: dict[str, Any]) -> Any:
    """The result of an operation. Its searches for runs wait for the turn of the principal, and its writes are in the
    audit log as the principal's."""
    asked = call.principal
    if operation.method in SAFE or asked is ANONYMOUS:
        with searching(call.search):
            return await operation.function(call, **arguments)
    with (
        searching(call.search),
        acting(
            asked.name,
            key=asked.key,
            via="http",
            address=call.address,
            request=call.request,
            workflows=asked.workflows,
            tags=asked.tags,
            overrides="all" if asked.may_use("admin", "store") else "policies",
        ),
    ):
        return await operation.function(call, **arguments)


def _named_by(principal: Principal, operation: Operation, names: Mapping[str, str], key: str) -> str:
    """The name of a request: equal only if the same principal sends it for the same with the same key."""
    whole = "\0".join([*principal.owner, operation.name, *names.values(), key])
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _look_again(call: Call, operation: Operation, names: Mapping[str, str]) -> None:
    """See that what was read is of a run that the principal may know of: another one may have taken the id since it was
    checked. What is written the store checks itself (see `acting`); but its answer may tell of what was there.

    Raises:
        RunNotFoundError: it may not.
    """
    if operation.reach != "run":
        return
    asks = call.principal
    if isinstance(asks, Follower) and not await call.view.run_tokens.is_of(asks.run, asks.nonce):
        raise RunNotFoundError(asks.run)
    if asks.bounds.is_open:
        return
    is_there = await _check_run(call, names[operation.run_name])
    if not is_there and operation.method in SAFE:
        raise RunNotFoundError(names[operation.run_name])


async def _check_run(call: Call, run_id: str) -> bool:
    """See that a principal may know of a run; one that it may not know of is not there. Whether there is one.

    The root counts: the runs of a tree have one journal, so who sees one of them sees all.
    """
    try:
        run = await call.view.row(run_id)
    except RunNotFoundError:
        return False  # A message may create it.
    root = run if run.number == 0 else await call.view.row(run.root_id)
    if not call.principal.bounds.allow(root):
        raise RunNotFoundError(run_id)
    return True


async def _send_answer(send: Send, request: Request, operation: Operation, answer: Any) -> None:
    if answer is None:
        status = next(iter(operation.answers))
        await send({"type": "http.response.start", "status": status, "headers": [*SECURITY, (b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
    else:
        status = operation.status_of.get(type(answer)) or next(iter(operation.answers))
        await _send_bytes(send, request, status, [_JSON], _encode(answer), has_body=request.method != "HEAD")


async def _send_parts(
    send: Send, parts: AsyncGenerator[bytes, None], receive: Receive, closing: asyncio.Future[None]
) -> None:
    """Send what comes until it ends, its reader has gone, or the server stops."""
    gone = own_task(_until_gone(receive), name="outlive-http-gone")
    sending = own_task(_send_all(send, parts), name="outlive-http-parts")
    try:
        await asyncio.wait([gone, sending, closing], return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        for task in (gone, sending):
            task.cancel()
        await asyncio.wait([sending])


async def _send_all(send: Send, parts: AsyncGenerator[bytes, None]) -> None:
    async with aclosing(parts):
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})


def _closed() -> EngineClosedError:
    return EngineClosedError("this request")


async def _send_problem(
    send: Send,
    error: Exception,
    request: Request,
    operation: Operation | None,
    *,
    shown: Shown = None,
) -> None:
    problem = problem_of(error)
    if shown is not None:
        problem.hide(shown)
    if problem.status >= 500:
        what = "no operation" if operation is None else operation.name
        cause = error if problem.status != 503 else None
        log.error("%s was answered with %d: %s", what, problem.status, type(error).__name__, exc_info=cause)
    if operation is not None and operation.is_page and wants_page(request.headers):
        body, media = page(title_of(problem.status), problem.detail, problem.next), (b"content-type", HTML.encode())
    else:
        body, media = _encode(problem.body), _PROBLEM
    headers = [media, *_lines(problem.headers)]
    await _send_bytes(send, request, problem.status, headers, body, has_body=request.method != "HEAD")


async def _send_bytes(
    send: Send, request: Request, status: int, headers: list[tuple[bytes, bytes]], body: bytes, *, has_body: bool
) -> None:
    lines = [*SECURITY, *headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await request.answer(send, body if has_body else b"")


def _lines(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


_encode: Callable[[Any], bytes] = msgspec.json.Encoder(enc_hook=str).encode
"""Shows values of a user's that have no JSON of their own as text."""
