"""`use: llm`: one completion of a chat, by an endpoint that speaks OpenAI's protocol.

The endpoint is one that the settings name, with its URL, its key and its model, or the document gives a URL and a key.
The result, with the tokens that it cost, is in the journal once: an attempt that failed has cost what the server says
on its bill, and counts for nothing here.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from outlive._cel import ANY, MAP, NUMBER, STRING, Type
from outlive._features.flows.built_in.contract import Call, OneOf
from outlive._features.flows.built_in.http import expect_status, with_retry
from outlive._features.flows.outside import settings
from outlive._features.flows.outside.grants import Bounds
from outlive._features.flows.outside.http_client import Answer, Fetcher, Request
from outlive._features.flows.outside.secrets import Revealed, granted
from outlive.errors.outside import AnswerError, NotAllowedError, RequestError

ANSWER_BYTES_MAX = 16 * 1024 * 1024
DEFAULT = "default"
URL_SECONDS_MAX = 300.0


class LlmArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`with` of an llm step."""

    prompt: str | None = None
    """The question to the model; or give `messages`."""
    system: str | None = None
    """Instructions for the model, before `prompt`."""
    messages: list[dict[str, Any]] = []
    """A whole chat, as the protocol has it."""
    endpoint: str | None = None
    """The name of an endpoint in the settings: `default` unless given."""
    url: str | None = None
    """The base of an endpoint that the settings do not name: https://api.openai.com/v1"""
    key: str | None = None
    """Its API key, a secret."""
    model: str | None = None
    """Unless the settings name one."""
    temperature: float | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    schema: dict[str, Any] | None = None
    """A JSON Schema of the answer, which is then parsed: `data` in the result."""
    options: dict[str, Any] = {}
    """Other fields of the request, as the protocol has them: tools, stop, seed."""


class Llm:
    """`use: llm`."""

    name = "llm"
    arguments = LlmArguments
    one_of = OneOf(("prompt", "messages"))
    takes_secrets = True
    result: Type = MAP(
        {
            "text": STRING,
            "data": ANY,
            "message": MAP(),
            "finish_reason": STRING,
            "model": STRING,
            "usage": MAP({"input_tokens": NUMBER, "output_tokens": NUMBER, "total_tokens": NUMBER}),
        }
    )

    async def run(self, call: Call, given: LlmArguments) -> Any:
        """One journaled step."""
        if (given.prompt is None) == (not given.messages):
            raise RequestError("an llm step", "has one of prompt and messages")
        return await with_retry(call).step(complete, given, call.secrets)


async def complete(given: LlmArguments, grants: list[str]) -> Any:
    """Ask for one completion."""
    named = _endpoint(given)
    with granted(grants) as revealed:
        real = msgspec.convert(revealed.resolve(msgspec.to_builtins(given)), LlmArguments)
        if named is None:
            assert real.url is not None
            base, key, seconds, fetcher = real.url, real.key, URL_SECONDS_MAX, settings.current().fetcher
        else:
            base, seconds, fetcher = named.url, named.seconds_max, settings.current().fetcher_for(named.url)
            key = real.key if named.key is None else revealed.own(named.key)
        model = real.model or (named.model if named else None)
        if model is None:
            raise RequestError("an llm step", "needs a model, in `with` or in the settings of its endpoint")
        answer = await _ask(fetcher, base, key, seconds, _body(real, model), revealed.bounds)
        expect_status(answer, UNSET, f"POST {base}/chat/completions", revealed)
        return revealed.blot(_result(answer, base, revealed, is_data=real.schema is not None))


def _endpoint(given: LlmArguments) -> settings.LlmEndpoint | None:
    """The endpoint of the settings; None if the document gives a URL."""
    if given.url is not None and given.endpoint is None:
        return None
    name, known = given.endpoint or DEFAULT, settings.current().llm
    if name not in known:
        raise NotAllowedError("llm endpoint", name, key=f"[flows.llm.{name}]", allowed=[*known])
    return known[name]


async def _ask(
    fetcher: Fetcher,
    base: str,
    key: str | None,
    seconds: float,
    body: dict[str, Any],
    bounds: tuple[Bounds, ...],
) -> Answer:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    request = Request(
        url=f"{base.rstrip('/')}/chat/completions",
        method="POST",
        headers=headers,
        body=msgspec.json.encode(body),
        total_seconds=seconds,
        bytes_max=ANSWER_BYTES_MAX,
        redirects_max=0,
        bounds=bounds,
    )
    return await fetcher.fetch(request)


def _body(given: LlmArguments, model: str) -> dict[str, Any]:
    messages = list(given.messages)
    if given.prompt is not None:
        messages.append({"role": "user", "content": given.prompt})
    if given.system is not None:
        messages.insert(0, {"role": "system", "content": given.system})
    body: dict[str, Any] = {**given.options, "model": model, "messages": messages, "stream": False}
    if given.temperature is not None:
        body["temperature"] = given.temperature
    if given.max_tokens is not None:
        body["max_tokens"] = given.max_tokens
    if given.schema is not None:
        shape = {"name": "answer", "schema": given.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    return body


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class _Choice(msgspec.Struct):
    message: dict[str, Any]
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], Meta(min_length=1)]
    model: str = ""
    usage: _Usage | None = None


def _result(answer: Answer, base: str, revealed: Revealed, *, is_data: bool) -> dict[str, Any]:
    try:
        completion = msgspec.json.decode(answer.body, type=_Completion)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise AnswerError(base, f"is not a completion: {error}") from None
    choice, usage = completion.choices[0], completion.usage
    text = choice.message.get("content")
    text = text if isinstance(text, str) else ""
    result: dict[str, Any] = {
        "text": text,
        "message": choice.message,
        "finish_reason": choice.finish_reason,
        "model": completion.model,
        "usage": usage
        and {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens or usage.prompt_tokens + usage.completion_tokens,
        },
    }
    if is_data:
        try:
            result["data"] = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            excerpt = str(revealed.blot(text))[:200]
            raise AnswerError(base, f"is not JSON, which its schema asks for: {error}: {excerpt}") from None
    return result


BUILT_INS = {"llm": Llm()}
