"""`Webhooks`: an ASGI app at whose paths requests start flows.

The order of the checks matters: the path, the method, the type of the body; then the token, and whether there is a
signature; then the size of the body, which is small where nothing says who sends it; then the signature, over the body
as it was sent; only then is the body parsed. What has been accepted is a run: the answer comes when that is
durable, and a request that is sent again gets the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from outlive._features.events.matching import UNFIT, Match, Webhook, arguments_by
from outlive._features.events.signing import keys_in
from outlive._garbage_collection import collection_paused
from outlive._kernel.client.slices import others_turn
from outlive._kernel.model.instant import MICROSECONDS, instant_text
from outlive._kernel.model.trigger import RefusedStart, SecretName, Sent, SentEvent
from outlive.engine import Engine
from outlive.errors import CommitUnknownError, EngineClosedError, OutliveError, StoreUnavailableError
from outlive.errors.base import message_of
from outlive.errors.outside import SecretError
from outlive.errors.run import QuotaExceededError
from outlive.http.exchange import Gone, Receive, Request, Scope, Send, answer, live, send_to_gone
from outlive.http.guesses import Guesses
from outlive.http.limits import ApiLimits, BodyBudgets, stranger_at
from outlive.http.nesting import CONTAINERS_MAX, DEPTH_MAX, holds_more, is_deeper
from outlive.http.problem import MEDIA, Problem, refusal
from outlive.http.proxies import Proxies
from outlive.http.signature import ID, check_signature, check_signed, check_token, token_in
from outlive.telemetry import log

BODY_BYTES_MAX = 1024 * 1024
ID_CHARACTERS_MAX = 200
SOURCE = "webhook"
_IDS = (ID, "idempotency-key", "x-github-delivery")
"""Headers that say which delivery it is, if no signature does."""
_HIDDEN = ("authorization", "cookie", "proxy-authorization", "x-webhook-token")
"""Headers that no flow sees."""
_SIGNED_FORM = "a signed body is application/json: as a form, text in the middle of another one would be fields"

FindSecret = Callable[[str, str | None], str]
"""Given the name of a secret and the environment variable that its document names: its value."""


class Webhooks:
    """An ASGI app that starts flows by the `webhook` triggers of their documents.

        app = outlive.http.Webhooks(engine)

    Args:
        engine: it has to be entered while requests come; it may be one without a worker.
        limits: how much one request may ask for. Unless given those of the API, and 1 MiB for a body; without a token
            and a key 16 KiB (`open_body_bytes_max`).
        secret: finds the values of tokens and keys; unless given as steps of flows find secrets.
        budgets: what the bodies of all requests may have together, if others share it.
        proxies: addresses, or networks, of proxies in front of it; see `Api`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        limits: ApiLimits | None = None,
        secret: FindSecret | None = None,
        budgets: BodyBudgets | None = None,
        proxies: Iterable[str] = (),
    ) -> None:
        self._engine = engine
        self._limits = limits or ApiLimits(body_bytes_max=BODY_BYTES_MAX)
        self._budgets = budgets or BodyBudgets(self._limits)
        self._proxies = Proxies(proxies)
        self._secret = secret or _find_secret
        self._guesses = Guesses(lambda: engine.events._now() / MICROSECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the specification of ASGI."""
        if scope["type"] == "lifespan":
            await live(receive, send)
        elif scope["type"] == "http":
            request = Request(scope, receive, self._proxies)
            try:
                await self._serve(request, send)
            finally:
                request.close()
        else:
            await send({"type": f"{scope['type']}.close"})

    async def _serve(self, request: Request, send: Send) -> None:
        try:
            sent = await self._take(request)
        except Gone:
            await send_to_gone(send)
        except Problem as refused:
            await _refuse(send, request, refused)
        except QuotaExceededError:
            again = "there is no room for more runs now; send the same request again later"
            await _refuse(send, request, refusal(429, again, {"retry-after": "5"}))
        except (StoreUnavailableError, CommitUnknownError, EngineClosedError) as error:
            log.warning("webhook %s was not answered: %s", request.path, error)
            again = "the store is away; send the same request again"
            await _refuse(send, request, refusal(503, again, {"retry-after": "5"}))
        except OutliveError as error:
            log.exception("webhook %s failed", request.path)
            failed = f"it failed here, and nothing was started: {type(error).__name__}"
            await _refuse(send, request, refusal(500, failed))
        else:
            first = {"run_id": sent.runs[0].run_id} if sent.runs else {}
            data = {"id": sent.id, **first, "runs": sent.runs}
            await answer(send, request, 202 if sent.runs else 200, data)

    async def _take(self, request: Request) -> Sent:
        """Check a request and create its runs."""
        webhooks = await self._engine.events._webhooks(request.path)
        if not webhooks:
            raise refusal(404, f"no flow has a webhook at {request.path}")
        if request.method != "POST":
            raise refusal(405, "a webhook takes POST", {"allow": "POST"})
        read = _reader_of(request.headers.get("content-type", ""))
        let_in = self._check_tokens(webhooks, request)
        body = await self._body(request, let_in)
        allowed, delivery = self._check(let_in, request, body)
        data = read(body)
        await others_turn(len(body))
        now = self._engine.events._now()
        # The path is part of the type: one id at two paths is two deliveries.
        event = SentEvent(type=f"webhook {request.path}", id=delivery, source=SOURCE, data=data, time=instant_text(now))
        scope = {"event": _scope_of(event, request)}
        matches: list[Match] = []
        refused: list[RefusedStart] = []
        for each in allowed:
            try:
                arguments = await arguments_by(each.triggers, [each.trigger], scope)
            except UNFIT as error:
                refused.append(RefusedStart(each.workflow, message_of(error)))
                continue
            if arguments is not None:
                matches.append(Match(each.workflow, each.triggers, arguments))
        if refused and not matches:
            raise refusal(422, "; ".join(f"{each.workflow}: {each.reason}" for each in refused))
        return await self._engine.events._take(event, matches, refused)

    async def _body(self, request: Request, webhooks: list[Webhook]) -> bytes:
        """The body that was sent: short if nothing says by whom. A signature says it only when all has arrived."""
        limits = self._limits
        is_known = any(each.trigger.token is not None for each in webhooks)
        is_open = not is_known and all(each.trigger.hmac is None for each in webhooks)
        size = min(limits.open_body_bytes_max, limits.body_bytes_max) if is_open else limits.body_bytes_max
        budget, sender = self._budgets.strangers, stranger_at(request.address)
        if is_known:
            budget, sender = self._budgets.known, request.path
        return await request.body(bytes_max=size, seconds=limits.body_seconds, budget=budget, sender=sender)

    def _check_tokens(self, webhooks: list[Webhook], request: Request) -> list[Webhook]:
        """The webhooks whose token the sender has, if they want one, and which it has signed for, if they want that;
        before its body is read. An address that tries tokens is slowed down. (A signature cannot be guessed.)

        Raises:
            Problem: it may use none of them, or has tried too many tokens.
        """
        token = token_in(request.headers)
        if not token:
            return self._let_in(webhooks, request)
        key = f"{request.path} {token}"
        if wait := self._guesses.wait(key, request.address):
            again = {"retry-after": str(int(wait) + 1)}
            raise refusal(429, "too many wrong tokens came from this address; send it again later", again)
        try:
            found = self._let_in(webhooks, request)
        except Problem as refused:
            if refused.status == 401:
                self._guesses.note_wrong(key, request.address)
            raise
        self._guesses.note_right(key)
        return found

    def _let_in(self, webhooks: list[Webhook], request: Request) -> list[Webhook]:
        found: list[Webhook] = []
        refusals: list[Problem] = []
        for each in webhooks:
            try:
                self._check_head(each, request)
                found.append(each)
            except Problem as refused:
                refusals.append(refused)
        if not found:
            raise refusals[0]
        return found

    def _check_head(self, webhook: Webhook, request: Request) -> None:
        trigger = webhook.trigger
        if trigger.token is not None:
            check_token(self._value_of(webhook, trigger.token), request.headers)
        if trigger.hmac is not None:
            if _reader_of(request.headers.get("content-type", "")) is _read_form:
                raise refusal(415, _SIGNED_FORM)
            now = self._engine.events._now() / MICROSECONDS
            check_signed(request.headers, now_seconds=now, layout=trigger.layout)

    def _check(self, webhooks: list[Webhook], request: Request, body: bytes) -> tuple[list[Webhook], str]:
        """The webhooks that the sender may use, and which delivery it is.

        Raises:
            Problem: it may use none of them.
        """
        allowed: list[Webhook] = []
        ids: list[str] = []
        refusals: list[Problem] = []
        for each in webhooks:
            try:
                ids.append(self._check_one(each, request, body))
                allowed.append(each)
            except Problem as refused:
                refusals.append(refused)
        if not allowed:
            raise refusals[0]
        delivery = next(filter(None, ids), "") or next(filter(None, map(request.headers.get, _IDS)), "")
        if len(delivery) > ID_CHARACTERS_MAX or not delivery.isprintable():
            raise refusal(400, f"the id of the delivery has to be at most {ID_CHARACTERS_MAX} printable characters")
        return allowed, delivery or self._engine.events._new_id()

    def _check_one(self, webhook: Webhook, request: Request, body: bytes) -> str:
        """The id that is signed; empty if none is."""
        trigger = webhook.trigger
        if trigger.hmac is None:
            return ""
        key = self._value_of(webhook, trigger.hmac)
        now = self._engine.events._now() / MICROSECONDS
        return check_signature(key, request.headers, body, now_seconds=now, layout=trigger.layout)

    def _value_of(self, webhook: Webhook, name: SecretName) -> str:
        try:
            value = self._secret(name.name, name.env)
            if not keys_in(value):
                raise SecretError(name.name, "has no key in it, only spaces or `whsec_`")
            return value
        except SecretError as error:
            log.error("the webhook %s of flow %s is closed: %s", webhook.trigger.path, webhook.workflow, error)
            raise refusal(503, "this webhook is not set up yet: its secret is missing") from None


MOUNT = Webhooks
"""The app that the API mounts, as the declaration of the feature says."""


def _find_secret(name: str, env: str | None) -> str:
    from outlive._features.flows.outside.secrets import find_value  # Only where a webhook has a secret.

    return find_value(name, env)


def _scope_of(event: SentEvent, request: Request) -> dict[str, Any]:
    """The value of `event` in the expressions of a trigger."""
    headers = {name: value for name, value in request.headers.items() if name not in _HIDDEN}
    return {
        "type": event.type,
        "id": event.id,
        "source": event.source,
        "time": event.time,
        "data": event.data,
        "headers": headers,
        "query": request.query,
        "path": request.path,
    }


# -- Bodies ------------------------------------------------------------------------------------------------


def _reader_of(content_type: str) -> Callable[[bytes], Any]:
    """The function that reads a body of this type.

    Raises:
        Problem: nothing does.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return _read_json
    if kind == "application/x-www-form-urlencoded":
        return _read_form
    if not kind:
        return _read_nothing
    raise refusal(415, f"{kind} cannot be read; send application/json or application/x-www-form-urlencoded")


def _read_json(body: bytes) -> Any:
    if is_deeper(body, DEPTH_MAX):
        raise refusal(400, f"the body is nested more than {DEPTH_MAX} levels deep")
    if holds_more(body, CONTAINERS_MAX):
        raise refusal(400, f"the body holds more than {CONTAINERS_MAX:,} maps and lists")
    try:
        with collection_paused():
            return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise refusal(400, f"the body is not JSON: {error}") from None


def _read_form(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=1_000))
    except ValueError as error:
        raise refusal(400, f"the body is not a form: {error}") from None


def _read_nothing(body: bytes) -> None:
    if body:
        raise refusal(415, "the request has a body and no Content-Type; send application/json")


async def _refuse(send: Send, request: Request, problem: Problem) -> None:
    """Answer with a problem, as the API does."""
    await answer(send, request, problem.status, problem.body, {"content-type": MEDIA, **problem.headers})
