"""Durable agents of Pydantic AI.

    agent = Agent("openai:gpt-5", name="support", capabilities=[Durability(stream="tokens"), asks_people()])

    @outlive.workflow
    async def support(question: str) -> str:
        return (await agent.run(question)).output

Pydantic AI has a public contract for durable engines (`pydantic_ai.durable_exec`): a capability of the agent gives
each of its operations (a request to a model, a call of a tool, discovery of the tools of an MCP server, an operation
of a capability) to a backend that carries it out as one durable unit. Here the unit is a step. What the operation
returns is reduced to JSON inside the step by the codec of Pydantic AI, and that is what the journal has.

The loop of the agent runs as workflow code. Three things of it would not do there, and are replaced:

* ids and the clock of a run come from the journal (`get_default_run_id`, `get_run_clock`);
* sync functions that the loop calls (prompts, output validators) run on the spot, and not on threads, which a journal
  cannot replay. They belong to the workflow, so they must not do I/O. Tools are steps, and their sync functions run on
  threads as ever;
* connections to MCP servers are opened in the step that needs them and closed in it.

A tool may run another agent and give it `usage=ctx.usage`. What that one has used is part of what the step of the tool
returned, and is added to the usage of the run when it comes out of the journal: a replay, which does not call the tool,
counts the same.

Outside of a workflow the capability does nothing: the agent is an ordinary one.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal, cast

import outlive
from outlive.errors import ConfigurationError
from outlive.errors.program import NotInRunError
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

try:
    from pydantic import TypeAdapter
    from pydantic_ai import AgentRunResult, RunContext, _utils
    from pydantic_ai.agent import EventStreamHandler
    from pydantic_ai.capabilities import HandleDeferredToolCalls, WrapRunHandler
    from pydantic_ai.durable_exec import (
        JSON_CODEC,
        BaseDurabilityCapability,
        BoundDurableOperation,
        CacheIdentity,
        CallableOperationBackend,
        CapabilityOperationId,
        DurabilityEngineSpec,
        DurableOperationBackend,
        DurableOperationId,
        DurableOperationNamer,
        EventStreamHandlerId,
        ModelCancelSuspendedResponseId,
        ModelCompactMessagesId,
        ModelRequestId,
        ResultCodec,
        RoleBasedOperationConfig,
        ToolsetCallToolId,
        ToolsetGetInstructionsId,
        ToolsetGetToolsId,
        ToolsetValidateToolArgumentsId,
        conversation_id_from_run_id,
    )
    from pydantic_ai.durable_exec._operation_names import DurableInvocationName
    from pydantic_ai.exceptions import AgentRunError, UserError
    from pydantic_ai.messages import AgentStreamEvent, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
    from pydantic_ai.models import Model
    from pydantic_ai.tools import AgentDepsT, DeferredToolRequests, DeferredToolResults, ToolDenied
    from pydantic_ai.toolsets import ToolsetTool
    from pydantic_ai.usage import RunUsage
except ImportError as error:
    raise ConfigurationError(
        f"this needs Pydantic AI 2.66 or newer: pip install 'outlive[pydantic-ai]' ({error})"
    ) from error

RAISES = (AgentRunError, UserError)
"""Exceptions of Pydantic AI that reach its loop as themselves, also after a replay: it decides by their class."""
OWN_TOOLS = "<agent>"
"""The name that Pydantic AI gives to the tools that an agent has of its own."""
RETURNED, USED = "returned", "used"
"""The fields in the journal of a tool in which another agent has used something."""

_RUN_USAGE: Any = TypeAdapter(RunUsage)


class Durability(BaseDurabilityCapability[AgentDepsT]):
    """Makes every call of the agent's models and tools a step of the workflow that runs it.

    Args:
        stream: a stream of the run that text is emitted to as the model writes it; `run.stream("tokens")` reads it.
        model: how requests to models are made, for example `{"timeout": 60, "retry": outlive.Retry(attempts=3)}`.
        tool: how tools are called. One tool has its own with `metadata={"outlive": {...}}`, or
            `metadata={"outlive": False}`: then it runs as workflow code, where it may wait, ask people and call steps.
        models: models that runs may change to, by name: a model is not a value that a journal could have.
        event_stream_handler: is given the events of the agent, in steps.
        name: of the agent in the names of its steps; the name of the agent unless given.
    """

    engine_spec = DurabilityEngineSpec(
        engine_name="Outlive",
        durable_unit_noun="step",
        durable_container_noun="workflow",
        codec=JSON_CODEC,
        wrapped_toolset_kinds=frozenset({"function", "mcp", "dynamic"}),
        # A toolset that a run adds is not wrapped, so its tools would be called again by every replay.
        unsupported_runtime_toolset_kinds=frozenset({"function", "mcp", "dynamic"}),
        toolset_lifecycles={
            "function": "enter-outside-durable",
            "mcp": "enter-outside-durable",
            "dynamic": "enter-never",
        },
        journal_discovery=True,
        sequential_tools_in_durable_context=False,
        tool_config_key="outlive",
    )

    def __init__(
        self,
        *,
        stream: str | None = None,
        model: CallOptions | None = None,
        tool: CallOptions | None = None,
        models: Mapping[str, Model] | None = None,
        event_stream_handler: EventStreamHandler[AgentDepsT] | None = None,
        name: str | None = None,
    ) -> None:
        self._stream, self._has_handler = stream, event_stream_handler is not None
        self._model_options: CallOptions = model or {}
        self._tool_options: CallOptions = tool or {}
        super().__init__(
            models=models,
            event_stream_handler=event_stream_handler if stream is None else _emitting(stream, event_stream_handler),
            name=name,
        )

    @property
    def in_durable_context(self) -> bool:
        """Whether workflow code is running here."""
        return is_workflow_code()

    def get_default_run_id(self) -> str | None:
        """An id that is equal in every replay."""
        return str(outlive.uuid4()) if self.in_durable_context else None

    def get_default_conversation_id(self, run_id: str) -> str | None:
        """An id that is equal in every replay."""
        return conversation_id_from_run_id(run_id) if self.in_durable_context else None

    def get_run_clock(self) -> Callable[[], datetime] | None:
        """The clock of the journal."""
        return outlive.now if self.in_durable_context else None

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Sync functions that the loop calls run on the spot: a workflow has no threads."""
        if not self.in_durable_context:
            return await handler()
        with _utils.disable_threads():
            return await handler()

    def get_durable_operation_backend(self) -> DurableOperationBackend[CallOptions]:
        """Carries out operations as steps."""
        return _Steps(
            namer=_Names(self.name, self.default_model_id),
            config=RoleBasedOperationConfig(
                model=self._model_options,
                event={},
                capability={},
                tool=self._tool_options,
                resolve_tool=self._options_of_tool,
            ),
            has_handler=self._has_handler,
        )

    def _options_of_tool(
        self, operation_id: DurableOperationId, tool: object | None, tool_name: str
    ) -> CallOptions | Literal[False]:
        own = cast("ToolsetTool[Any]", tool).tool_def.metadata if tool is not None else None
        given = (own or {}).get("outlive", {})
        if given is False:
            return False
        known = set(CallOptions.__annotations__)
        if not isinstance(given, dict) or not given.keys() <= known:
            raise UserError(
                f"the metadata of tool {tool_name!r} has 'outlive': {given!r}; it may have {', '.join(sorted(known))}, "
                "or be False for a tool that runs as workflow code"
            )
        return cast(CallOptions, {**self._tool_options, **given})


class _Steps(CallableOperationBackend[CallOptions]):
    """Carries out each operation of an agent as a step of the run."""

    def __init__(self, *, namer: _Names, config: RoleBasedOperationConfig[CallOptions], has_handler: bool) -> None:
        super().__init__(namer=namer, config=config)
        self._has_handler = has_handler

    def bind(self, operation: Any) -> Any:
        """The function that carries out the operation."""
        operation = replace(operation, cache_identity=_Given())
        if not isinstance(operation.operation_id, ToolsetCallToolId):
            return super().bind(operation)
        handler, codec = _counting(operation.handler), _CountedCodec(operation.result_codec)
        return _ToolCalls(super().bind(replace(operation, handler=handler, result_codec=codec)))

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: CallOptions,
    ) -> object:
        """The result of the operation, out of the journal."""
        if isinstance(operation_id, EventStreamHandlerId) and not self._has_handler:
            return None  # Our own handler emits text where the model writes it, and these events have none.

        async def carry_out() -> Any:
            return await body()

        shown = partial(_shown, *cache_key)
        answer = await call_step(carry_out, name=name, raises=RAISES, options=config, shown=shown)
        if isinstance(operation_id, ModelRequestId | ModelCompactMessagesId) and isinstance(answer, dict):
            used = answer.get("usage") or {}
            count_usage(input_tokens=used.get("input_tokens") or 0, output_tokens=used.get("output_tokens") or 0)
        return answer


class _Given(CacheIdentity[Any]):
    """Hands the parameters of an operation over to `execute`, which gets nothing else of them. Steps are not known by
    a hash, so no other key is lost."""

    def project(self, params: Any) -> tuple[object, ...]:
        """The parameters."""
        return (params,)


def _shown(params: Any) -> Mapping[str, Any]:
    """The arguments of a tool, or the messages to a model: its settings may have keys of a provider."""
    if (arguments := getattr(params, "tool_args", None)) is not None:
        return by_name(arguments)
    asked = getattr(params, "request_context", params)
    return {"messages": asked.messages} if hasattr(asked, "messages") else {}


# -- What the agents in a tool have used ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Counted:
    """The result of a tool, and the usage in it."""

    returned: Any
    used: Any


class _CountedCodec(ResultCodec[Any]):
    """Writes both; without usage, what the tool returned is all that is written."""

    def __init__(self, codec: Any) -> None:
        self._codec = codec

    def dump(self, value: _Counted) -> object:
        returned = self._codec.dump(value.returned)
        if not value.used.has_values():
            return returned
        return {RETURNED: returned, USED: _RUN_USAGE.dump_python(value.used, mode="json")}

    def load(self, payload: object) -> _Counted:
        if isinstance(payload, dict) and payload.keys() == {RETURNED, USED}:
            return _Counted(self._codec.load(payload[RETURNED]), _RUN_USAGE.validate_python(payload[USED]))
        return _Counted(self._codec.load(payload), RunUsage())


class _ToolCalls(BoundDurableOperation[Any, Any, Any]):
    """Calls tools, and adds what was used in them to the usage of the run."""

    def __init__(self, bound: Any) -> None:
        self._bound = bound

    @property
    def operation(self) -> Any:
        return self._bound.operation

    async def __call__(self, params: Any, *, config: object | None = None) -> Any:
        counted: _Counted = await self._bound(params, config=config)
        if (used := counted.used).has_values():
            params.ctx.usage.incr(used)
            count_usage(
                requests=used.requests, input_tokens=used.input_tokens or 0, output_tokens=used.output_tokens or 0
            )
        return counted.returned


def _counting(call_tool: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[_Counted]]:
    """The body of a tool call with a usage of its own: that of the run belongs to the workflow."""

    async def call(params: Any) -> _Counted:
        before, usage = copy.deepcopy(params.ctx.usage), copy.deepcopy(params.ctx.usage)
        returned = await call_tool(replace(params, ctx=replace(params.ctx, usage=usage)))
        return _Counted(returned, usage - before)

    return call


class _Names(DurableOperationNamer):
    """Names of steps as people read them in a timeline. Journals have them: they must not change."""

    def __init__(self, agent: str, model: str | None) -> None:
        self._agent, self._model = agent, model

    def operation_name(self, operation_id: DurableOperationId) -> str:
        """Without what one call adds."""
        return step_name(self._agent, *(part for part in _parts(operation_id) if part != self._model))

    def invocation_name(self, operation_id: DurableOperationId, *, label: str | None) -> DurableInvocationName:
        """With the name of the tool."""
        return DurableInvocationName(step_name(self.operation_name(operation_id), label or ""))


def _parts(operation_id: DurableOperationId) -> tuple[str, ...]:
    match operation_id:
        case ModelRequestId(model_id=model):
            return "model", model or ""
        case ModelCompactMessagesId(model_id=model):
            return "compact", model or ""
        case ModelCancelSuspendedResponseId(model_id=model):
            return "cancel-response", model or ""
        case EventStreamHandlerId():
            return ("events",)
        case CapabilityOperationId(capability_id=capability, operation=operation):
            return "capability", capability, operation
        case ToolsetGetToolsId(toolset_id=toolset):
            return "tools", _own(toolset)
        case ToolsetGetInstructionsId(toolset_id=toolset):
            return "instructions", _own(toolset)
        case ToolsetValidateToolArgumentsId(toolset_id=toolset):
            return "validate", _own(toolset)
        case ToolsetCallToolId(toolset_id=toolset):
            return "tool", _own(toolset)
        case _:  # The union grows in minor releases.
            return (type(operation_id).__name__.removesuffix("Id"),)


def _own(toolset: str) -> str:
    return "" if toolset == OWN_TOOLS else toolset


def _emitting(stream: str, handler: EventStreamHandler[AgentDepsT] | None) -> EventStreamHandler[AgentDepsT]:
    """A handler of events that emits the text of the model, and gives everything to the other handler."""

    async def emitted(events: AsyncIterable[AgentStreamEvent]) -> AsyncIterator[AgentStreamEvent]:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                await emit_text(stream, event.part.content)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                await emit_text(stream, event.delta.content_delta)
            yield event

    async def handle(ctx: RunContext[AgentDepsT], events: AsyncIterable[AgentStreamEvent]) -> None:
        if handler is not None:
            await handler(ctx, emitted(events))
            return
        async for _ in emitted(events):
            pass

    return handle


def asks_people(people: People | None = None, /, **options: Any) -> HandleDeferredToolCalls[Any]:
    """A capability: before a tool with `requires_approval=True` is called, people are asked, and the run waits for
    them.

    Takes a `People` or its options: `asks_people(assignees=["ops"], deadline=timedelta(days=2))`. The approval has
    the name of the tool. A call that people do not allow is not made, and the model reads why.
    """
    asked = people or People(**options)

    async def handle(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults | None:
        if not requests.approvals:
            return None
        if not is_workflow_code():
            _refuse_in_step(requests.approvals[0].tool_name)
            return None
        calls = [(call.tool_name, call.args) for call in requests.approvals]
        answers = await ask_all(asked, calls)
        decided: dict[str, bool | ToolDenied] = {
            call.tool_call_id: answer.approved or ToolDenied(answer.message)
            for call, answer in zip(requests.approvals, answers, strict=True)
        }
        return requests.build_results(approvals=decided)

    return HandleDeferredToolCalls(handler=handle)


def _refuse_in_step(tool: str) -> None:
    """Refuse to ask people from a step, which cannot wait for them; outside of runs nothing is refused."""
    with suppress(NotInRunError):
        raise ConfigurationError(
            f"tool {tool!r} needs the approval of people, but its agent runs in step {outlive.current_step().name}, "
            'which cannot wait for them; give the tool that runs this agent metadata={"outlive": False}, so that it is '
            "workflow code"
        )
