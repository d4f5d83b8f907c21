"""Durable agents of the OpenAI Agents SDK.

    agent = durable(Agent(name="ops", model="gpt-5", tools=[list_backups, delete_backup]), stream="tokens")

    @outlive.workflow
    async def clean_up(request: str) -> str:
        return str((await run(agent, request)).final_output)

The loop of the SDK (`Runner.run`) is workflow code. The model of a durable agent makes its requests in steps, and its
tools and those of its MCP servers are invoked in steps. What the journal has of a model is its `ModelResponse` as JSON,
and of a tool its output as JSON. `run` is `Runner.run` with two things settled for workflows:

* where the SDK ends its loop for people (`needs_approval`), the run waits for them and goes on with what they said;
* tracing of the SDK is off: it has threads and clocks. Outlive has tracing of its own.

`Conversation` is a session of the SDK on the store of the engine. Outside of a workflow a durable agent is an ordinary
one.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

import outlive
from outlive._features.checkpoints.store import CheckpointStore
from outlive.errors import ConfigurationError
from outlive.integrations.agents import (
    CallOptions,
    People,
    ask_all,
    by_name,
    call_step,
    count_usage,
    emit_text,
    is_workflow_code,
    step_name,
)
from outlive.integrations.records import Records

try:
    from agents import (
        Agent,
        AgentsException,
        FunctionTool,
        Model,
        ModelProvider,
        ModelResponse,
        MultiProvider,
        RunConfig,
        Runner,
        RunResult,
        SessionABC,
        SessionSettings,
        Usage,
    )
    from openai import OpenAIError
    from openai.types.responses import Response, ResponseCompletedEvent, ResponseTextDeltaEvent
    from pydantic import BaseModel, TypeAdapter

    from outlive.integrations.openai_mcp import DurableServer
except ImportError as error:
    raise ConfigurationError(
        f"this needs the OpenAI Agents SDK 0.24 or newer: pip install 'outlive[openai-agents]' ({error})"
    ) from error

RAISES = (AgentsException, OpenAIError)
"""Exceptions that reach the loop of the SDK as themselves, also after a replay."""

_RESPONSE: Any = TypeAdapter(ModelResponse)


def durable(
    agent: Agent[Any],
    *,
    stream: str | None = None,
    model: CallOptions | None = None,
    tool: CallOptions | None = None,
    provider: ModelProvider | None = None,
) -> Agent[Any]:
    """A copy of the agent whose requests to its model, tools and MCP servers are steps of the workflow that runs it.

    Agents that it hands over to, or that run in its tools, are made durable on their own.

    Args:
        stream: a stream of the run that text is emitted to as the model writes it; `run.stream("tokens")` reads it.
        model: how requests to the model are made, for example `{"timeout": 60, "retry": outlive.Retry(attempts=3)}`.
        tool: how tools are invoked, also those of MCP servers.
        provider: finds the model if the agent has only its name; that of OpenAI unless given.
    """
    wrapped = agent.model if isinstance(agent.model, Model) else (agent.model, provider)
    return agent.clone(
        model=DurableModel(wrapped, agent=agent.name, stream=stream, options=model),
        tools=[durable_tool(each, agent=agent.name, options=tool) for each in agent.tools],
        mcp_servers=[_durable_server(each, agent=agent.name, options=tool) for each in agent.mcp_servers],
    )


def _durable_server(server: Any, *, agent: str, options: CallOptions | None) -> Any:
    if isinstance(server, DurableServer):
        return server
    return DurableServer(server, agent=agent, options=options or {})


class DurableModel(Model):
    """A model whose requests are steps of the workflow that makes them; elsewhere it is the model that it wraps.

    Args:
        wrapped: the model, or its name and the provider that finds it when it is first needed.
        agent: its name, for the names of the steps.
        stream: where text is emitted.
        options: how requests are made.
    """

    def __init__(
        self, wrapped: Any, *, agent: str, stream: str | None = None, options: CallOptions | None = None
    ) -> None:
        self._given, self._stream = wrapped, stream
        self._name = step_name(agent, "model")
        self._options: CallOptions = options or {}

    @property
    def _wrapped(self) -> Any:
        if isinstance(self._given, tuple):
            name, provider = self._given
            self._given = (provider or MultiProvider()).get_model(name)
        return self._given

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """The answer of the model, out of the journal."""
        if not is_workflow_code():
            return await self._wrapped.get_response(*args, **kwargs)

        async def request() -> Any:
            if self._stream is None:
                answer = await self._wrapped.get_response(*args, **kwargs)
            else:
                answer = await self._read_stream(args, kwargs)
            # Fields that the provider left out stay left out: the SDK sends what is set back with the next request.
            return _RESPONSE.dump_python(answer, mode="json", by_alias=True, exclude_unset=True)

        stored = await call_step(
            request, name=self._name, options=self._options, raises=RAISES, shown=partial(_prompt, *args, **kwargs)
        )
        answer = _RESPONSE.validate_python(stored)
        used = answer.usage
        count_usage(requests=max(used.requests, 1), input_tokens=used.input_tokens, output_tokens=used.output_tokens)
        return answer

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """The events of the model; in a workflow only the last one, which has the whole answer."""
        if not is_workflow_code():
            async for event in self._wrapped.stream_response(*args, **kwargs):
                yield event
            return
        answer = await self.get_response(*args, **kwargs)
        yield _completed(answer)

    async def _read_stream(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The answer of a model that streams it; its text is emitted as it comes."""
        last: Any = None
        async for event in self._wrapped.stream_response(*args, **kwargs):
            if isinstance(event, ResponseTextDeltaEvent):
                await emit_text(self._stream, event.delta)
            elif isinstance(event, ResponseCompletedEvent):
                last = event.response
        if last is None:
            raise OpenAIError(f"the stream of model {self._name} ended without an answer")
        return ModelResponse(output=last.output, usage=_usage_of(last), response_id=last.id)

    async def close(self) -> None:
        """Close the model that it wraps, if that was used."""
        if not isinstance(self._given, tuple):
            await self._given.close()


def _prompt(system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The prompt among what the SDK gives to a model, under its own names; settings may have keys of a provider."""
    return {"instructions": system_instructions, "input": input}


def _usage_of(response: Any) -> Any:
    used = response.usage
    if used is None:
        return Usage(requests=1)
    return Usage(
        requests=1,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        total_tokens=used.total_tokens,
        input_tokens_details=used.input_tokens_details,
        output_tokens_details=used.output_tokens_details,
    )


def _completed(answer: Any) -> Any:
    """The last event of a stream, made of an answer."""
    used = answer.usage
    response = Response.model_construct(
        id=answer.response_id or "",
        created_at=outlive.now().timestamp(),
        model="",
        object="response",
        output=answer.output,
        parallel_tool_calls=True,
        tool_choice="auto",
        tools=[],
        usage={
            "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "total_tokens": used.total_tokens,
            "input_tokens_details": used.input_tokens_details,
            "output_tokens_details": used.output_tokens_details,
        },
    )
    return ResponseCompletedEvent.model_construct(type="response.completed", response=response, sequence_number=0)


def durable_tool(tool: Any, *, agent: str = "", options: CallOptions | None = None) -> Any:
    """A function tool that is invoked in a step of the workflow that calls it; any other tool as it is.

    Tools that the provider itself runs (web search and the like) are part of the request to the model. A tool in
    which an agent runs is workflow code: its model and its tools are steps.
    """
    if not isinstance(tool, FunctionTool) or getattr(tool, "_is_agent_tool", False):
        return tool
    invoke = tool.on_invoke_tool
    if getattr(invoke, "is_durable", False):
        return tool
    name = step_name(agent, "tool", tool.name)

    async def invoke_in_step(context: Any, arguments: str) -> Any:
        if not is_workflow_code():
            return await invoke(context, arguments)

        async def carry_out() -> Any:
            return _as_json(await invoke(context, arguments))

        shown = partial(by_name, arguments)
        return await call_step(carry_out, name=name, options=options or {}, raises=RAISES, shown=shown)

    invoke_in_step.is_durable = True  # type: ignore[attr-defined]
    return dataclasses.replace(tool, on_invoke_tool=invoke_in_step)


def _as_json(output: Any) -> Any:
    """The output of a tool as the SDK reads it: structured outputs as objects, JSON as it is, anything else as text."""
    if isinstance(output, BaseModel):
        return output.model_dump(mode="json", exclude_none=True)
    if isinstance(output, list):
        return [_as_json(each) for each in output]
    try:
        return json.loads(json.dumps(output))
    except (TypeError, ValueError):
        return str(output)


async def run(
    agent: Agent[Any],
    request: Any,
    *,
    people: People | None = None,
    run_config: RunConfig | None = None,
    **options: Any,
) -> RunResult:
    """`Runner.run` for workflows: it asks people about tools with `needs_approval`, and goes on with their answers.

    Args:
        agent: made durable.
        request: what the agent is asked.
        people: who is asked. The approval has the name of the tool.
        run_config: of the SDK.
        options: those of `Runner.run`: session, context, max_turns and others.

    Raises:
        ConfigurationError: the agent, or one that it can reach by a handoff or a tool, was not made durable.
    """
    if not is_workflow_code():
        return await Runner.run(agent, request, run_config=run_config, **options)
    _refuse_others(agent)
    config = dataclasses.replace(run_config or RunConfig(), tracing_disabled=True)
    result = await Runner.run(agent, request, run_config=config, **options)
    while result.interruptions:
        state = result.to_state()
        calls = [(item.name or "tool", item.arguments) for item in result.interruptions]
        for item, answer in zip(result.interruptions, await ask_all(people or People(), calls), strict=True):
            if answer.approved:
                state.approve(item)
            else:
                state.reject(item, rejection_message=answer.message)
        result = await Runner.run(agent, state, run_config=config, **options)
    return result


def _refuse_others(agent: Agent[Any]) -> None:
    """Refuse an agent whose run could come to one that was not made durable."""
    seen: list[Any] = []
    reached: list[tuple[Any, str]] = [(agent, "")]
    while reached:
        other, how = reached.pop()
        if any(other is each for each in seen):
            continue  # Agents may hand over to each other.
        seen.append(other)
        if not isinstance(other.model, DurableModel):
            raise ConfigurationError(
                f"agent {other.name!r}{how} would call its model and its tools in the workflow itself; give it to "
                "outlive.integrations.openai_agents.durable(agent) where it is made, and use what that returns"
            )
        _refuse_late_tools(other)
        reached += [(each, f", to which agent {other.name!r} hands over,") for each in _handed_to(other)]
        reached += [(each, f", which runs in a tool of agent {other.name!r},") for each in _in_tools(other)]


def _refuse_late_tools(agent: Agent[Any]) -> None:
    """Refuse what was given to an agent after it was made durable."""
    late = [each.name for each in agent.tools if durable_tool(each) is not each]
    late += [each.name for each in agent.mcp_servers if not isinstance(each, DurableServer)]
    if late:
        raise ConfigurationError(
            f"agent {agent.name!r} got {', '.join(late)} after it was made durable, so calls would be made in the "
            "workflow itself; give tools and MCP servers to the agent before outlive.integrations.openai_agents."
            "durable(agent)"
        )


def _handed_to(agent: Agent[Any]) -> Iterator[Any]:
    for each in agent.handoffs:
        target = each if isinstance(each, Agent) else _target_of(each)
        if target is not None:
            yield target


def _target_of(handoff: Any) -> Any:
    known = getattr(handoff, "_agent_ref", None)
    return known() if known is not None else None


def _in_tools(agent: Agent[Any]) -> Iterator[Any]:
    for tool in agent.tools:
        if (inner := getattr(tool, "_agent_instance", None)) is not None:
            yield inner


class Conversation(SessionABC):
    """A session of the SDK on a store: what was said, for every run that has the same id of it.

    In a workflow each of its methods is a step. Rows are appended and never changed: removing the last item is a row
    too.

    Args:
        session_id: what runs of the conversation share, for example the id of a customer.
        store: `engine.checkpoints`, for use outside of workflows; in a workflow the store of its engine.
        session_settings: of the SDK.
    """

    def __init__(
        self,
        session_id: str,
        *,
        store: CheckpointStore | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id, self.session_settings = session_id, session_settings or SessionSettings()
        self._records = Records("conversation", store)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items of the conversation, the oldest first; with a limit, the last items."""
        most = self.session_settings.limit if limit is None else limit
        items: list[Any] = await self._carry_out("read", self._read)
        return items if most is None else items[len(items) - min(most, len(items)) :]

    async def add_items(self, items: list[Any]) -> None:
        """Add what was said."""
        if items:
            written = json.dumps(items).encode()
            add = partial(self._records.append, self.session_id, "items", written)
            await self._carry_out("add", add, shown=lambda: {"items": items})

    async def pop_item(self) -> Any:
        """Take back the last item, or None if there is none."""
        return await self._carry_out("pop", self._pop)

    async def clear_session(self) -> None:
        """Forget all that was said."""
        await self._carry_out("clear", lambda: self._records.clear(self.session_id))

    async def _carry_out(
        self,
        name: str,
        do: Callable[[], Coroutine[Any, Any, Any]],
        *,
        shown: Callable[[], Mapping[str, Any]] | None = None,
    ) -> Any:
        if not is_workflow_code():
            return await do()

        async def carry_out() -> Any:
            return await do()

        return await call_step(carry_out, name=step_name("conversation", name), options={}, shown=shown)

    async def _read(self) -> list[Any]:
        items: list[Any] = []
        for row in await self._records.read(self.session_id):
            if row.state == "items":
                items += json.loads(row.output or b"[]")
            elif items:
                items.pop()
        return items

    async def _pop(self) -> Any:
        taken = await self._records.append(self.session_id, "pop", json.dumps((await self._read())[-1:]).encode())
        return next(iter(json.loads(taken)), None)
