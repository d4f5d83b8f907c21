"""`use: http`: one request, as a step.

Its result is `{status, headers, body}`. A status that is not expected fails the step with `HttpStatusError`; a status
that another attempt may change is tried again. An attempt that was cut off may have reached the server, so requests
that change something carry a key that is the same for every attempt of the step.
"""

from __future__ import annotations

import base64
import dataclasses
import re
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET, Meta, UnsetType

from outlive._cel import ANY, MAP, NUMBER, STRING, Type
from outlive._features.flows.built_in.contract import Call, OneOf
from outlive._features.flows.document.model import METHOD
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.http_answer import Answer
from outlive._features.flows.outside.http_client import (
    BYTES_MAX,
    CONNECT_SECONDS,
    REDIRECTS_MAX,
    TOTAL_SECONDS,
    Fetcher,
    Request,
)
from outlive._features.flows.outside.secrets import Revealed, granted
from outlive._features.flows.run.policies import TRANSPORT_RETRY
from outlive._kernel.define.in_step import current_step
from outlive._kernel.model import Retry
from outlive.errors.outside import AnswerError, HttpStatusError, RequestError
from outlive.errors.program import NotInRunError

EXCERPT_CHARACTERS_MAX = 500
RETRY_AFTER_SECONDS_MAX = 3_600.0
"""A server that wants to be left alone for longer is asked again after this."""
RESPONSE_BYTES_MAX = 64 * 1024 * 1024
KEY_HEADER = "Idempotency-Key"
HTTP_RETRY = Retry(attempts=4, first=1, factor=2, cap=30)
"""Where neither the step nor its flow says anything."""

_CHANGING = {"POST", "PATCH"}
_MAY_CHANGE = {408, 425, 429}
_WILL_NOT = {501, 505}
_JSON = re.compile(r"application/(.*\+)?json|text/json")
_TEXT = re.compile(r"text/.*|application/(.*\+)?xml|application/(x-www-form-urlencoded|javascript|x-ndjson|yaml)|")

Scalar = str | int | float | bool


class Basic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user and a password, for the header Authorization."""

    user: str
    password: str = ""


class HttpArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`with` of an http step."""

    url: str
    method: Annotated[str, Meta(pattern=METHOD)] = "GET"
    headers: dict[str, Scalar] = {}
    query: dict[str, Scalar | list[Scalar] | None] = {}
    """Added to what the URL has; null leaves out."""
    body: Any = UNSET
    """Sent as JSON."""
    text: str | None = None
    """Sent as it is."""
    form: dict[str, Scalar | list[Scalar]] | None = None
    """Sent as a form."""
    basic: Basic | None = None
    bearer: str | None = None
    """A token, for the header Authorization."""
    expect: list[int] | UnsetType = UNSET
    """Statuses that are not failures; 200 to 299 unless given."""
    response: Literal["auto", "json", "text", "base64"] = "auto"
    """The form of the body in the result; "auto" goes by the type that the server names."""
    idempotency_key: bool | str = True
    """The header that has the key of the step: Idempotency-Key for POST and PATCH; or another name, for any method."""
    connect_timeout: Annotated[float, Meta(gt=0, le=600)] = CONNECT_SECONDS
    timeout: Annotated[float, Meta(gt=0, le=86_400)] = TOTAL_SECONDS
    """Seconds for the whole request; `timeout` of the step bounds the attempt, also where it waits."""
    bytes_max: Annotated[int, Meta(ge=0, le=RESPONSE_BYTES_MAX)] = BYTES_MAX
    """How large the body of the answer may be."""
    redirects: Annotated[int, Meta(ge=0, le=REDIRECTS_MAX)] = REDIRECTS_MAX
    """How many are followed."""


class Http:
    """`use: http`."""

    name = "http"
    arguments = HttpArguments
    takes_secrets = True
    result: Type = MAP({"status": NUMBER, "headers": MAP(of=STRING), "body": ANY})
    one_of = OneOf(("body", "text", "form"), is_needed=False)

    async def run(self, call: Call, given: HttpArguments) -> Any:
        """One journaled step."""
        if sum((given.body is not UNSET, given.text is not None, given.form is not None)) > 1:
            raise RequestError("an http step", "has one of body, text and form")
        return await with_retry(call).step(send, given, call.secrets)


def with_retry(call: Call) -> Call:
    """A copy of the call that is tried again only for errors that another attempt may change, unless its `retry` names
    errors."""
    retry = call.options.retry
    if retry is TRANSPORT_RETRY:
        retry = HTTP_RETRY
    if retry is None or retry.when is not None:
        return call
    return call.with_retry(dataclasses.replace(retry, when=is_worth_another_attempt))


def is_worth_another_attempt(error: BaseException) -> bool:
    """Whether the same request may get another answer: no answer, too many requests, or a server in trouble."""
    if isinstance(error, HttpStatusError):
        return error.status in _MAY_CHANGE or (error.status >= 500 and error.status not in _WILL_NOT)
    return isinstance(error, TimeoutError | ConnectionError)


async def send(given: HttpArguments, grants: list[str]) -> Any:
    """Send the request, with the values of its secrets, and take its answer."""
    with granted(grants) as revealed:
        real = msgspec.convert(revealed.resolve(msgspec.to_builtins(given)), HttpArguments)
        return revealed.blot(await _exchange(real, settings.current().fetcher, revealed))


async def _exchange(given: HttpArguments, fetcher: Fetcher, revealed: Revealed) -> dict[str, Any]:
    request = dataclasses.replace(_request(given), bounds=revealed.bounds)
    answer = await fetcher.fetch(request)
    expect_status(answer, given.expect, f"{request.method} {_shown(request.url)}", revealed)
    headers = {name: value for name, value in answer.headers.items() if name != "set-cookie"}
    return {"status": answer.status, "headers": headers, "body": _body(answer, given.response)}


def expect_status(answer: Answer, expected: list[int] | UnsetType, request: str, revealed: Revealed) -> None:
    """Return if the status of the answer is one of these, or one of success.

    Raises:
        HttpStatusError: it is another one.
    """
    is_fine = 200 <= answer.status < 300 if expected is UNSET else answer.status in expected
    if not is_fine:
        # Blotted first: half of a secret would not be found.
        excerpt = " ".join(str(revealed.blot(answer.text())).split())[:EXCERPT_CHARACTERS_MAX]
        raise HttpStatusError(answer.status, request=request, excerpt=excerpt, retry_after=_retry_after(answer))


def _request(given: HttpArguments) -> Request:
    method = given.method.upper()
    headers = {name: _text(value) for name, value in given.headers.items()}
    named = {name.lower() for name in headers}

    def offer(name: str, value: str) -> None:
        if name.lower() not in named:
            headers[name] = value

    body = b""
    if given.body is not UNSET:
        body = msgspec.json.encode(given.body)
        offer("Content-Type", "application/json")
    elif given.text is not None:
        body = given.text.encode()
        offer("Content-Type", "text/plain; charset=utf-8")
    elif given.form is not None:
        body = _urlencoded(given.form).encode()
        offer("Content-Type", "application/x-www-form-urlencoded")
    if given.basic is not None:
        pair = f"{given.basic.user}:{given.basic.password}".encode()
        offer("Authorization", f"Basic {base64.b64encode(pair).decode()}")
    elif given.bearer is not None:
        offer("Authorization", f"Bearer {given.bearer}")
    key = _idempotency_key(method, wanted=given.idempotency_key)
    if key is not None:
        offer(*key)
    return Request(
        url=_with_query(given.url, given.query),
        method=method,
        headers=headers,
        body=body,
        connect_seconds=given.connect_timeout,
        total_seconds=given.timeout,
        bytes_max=given.bytes_max,
        redirects_max=given.redirects,
    )


def _idempotency_key(method: str, *, wanted: bool | str) -> tuple[str, str] | None:
    if wanted is False or (wanted is True and method not in _CHANGING):
        return None
    try:
        key = current_step().idempotency_key
    except NotInRunError:  # A step that is tried without a run.
        return None
    return (KEY_HEADER if wanted is True else str(wanted)), key


def _with_query(url: str, query: dict[str, Any]) -> str:
    added = _urlencoded({name: value for name, value in query.items() if value is not None})
    if not added:
        return url
    base, _, fragment = url.partition("#")
    return f"{base}{'&' if '?' in base else '?'}{added}{f'#{fragment}' if fragment else ''}"


def _urlencoded(values: dict[str, Any]) -> str:
    pairs = [(name, each) for name, value in values.items() for each in (value if isinstance(value, list) else [value])]
    return urlencode([(name, _text(value)) for name, value in pairs])


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(url: str) -> str:
    """For people: a query may hold anything."""
    return url.partition("?")[0].partition("#")[0]


def _body(answer: Answer, wanted: str) -> Any:
    if not answer.body and wanted != "text":
        return None
    if wanted == "auto":
        kind = answer.media_type
        wanted = "json" if _JSON.fullmatch(kind) else "text" if _TEXT.fullmatch(kind) else "base64"
    if wanted == "json":
        try:
            return msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise AnswerError(
                _shown(answer.url), f"is not JSON: {error}; take it as text with response: text"
            ) from None
    return answer.text() if wanted == "text" else base64.b64encode(answer.body).decode()


def _retry_after(answer: Answer) -> float | None:
    """Seconds. A time of day is taken relative to the server's own clock."""
    value = answer.headers.get("retry-after", "").strip()
    if value.isdecimal() and len(value) < 10:
        return min(float(value), RETRY_AFTER_SECONDS_MAX)
    try:
        there = parsedate_to_datetime(value) - parsedate_to_datetime(answer.headers["date"])
    except (ValueError, TypeError, KeyError):
        return None
    return min(max(there.total_seconds(), 0.0), RETRY_AFTER_SECONDS_MAX)


BUILT_INS = {"http": Http()}
