"""Durable graphs of LangGraph: each node a step of a workflow, and a checkpointer on a store.

    graph = durable(builder, name="ops", stream="tokens")        # a StateGraph, or what `compile()` or an agent gave

    @outlive.workflow
    async def clean_up(request: str) -> str:
        state = await run(graph, {"messages": [("user", request)]}, people=People(assignees=["ops"]))
        return str(state["messages"][-1].text)

LangGraph's loop is workflow code: it decides which nodes are next and merges what they return. A node is a step, and
the journal has what it returned. A node that is a graph itself is workflow code too, and its own nodes are steps. The
functions of conditional edges decide where to go: they are workflow code and run on the spot, where LangGraph would put
sync ones on a thread.

`interrupt()` in a node ends the loop, as ever. `run` then asks people, and resumes the graph with what they said. For
that a graph needs a checkpointer. In a workflow it is LangGraph's own in memory, one for each call of `run`: what it
holds is rebuilt by a replay, like all that workflow code holds.

`Saver` is for graphs that run outside of workflows, with LangGraph's own way to resume. Its rows are the calls that
LangGraph makes to a checkpointer; LangGraph's checkpointer in memory, given the same calls, says what they mean.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import traceback
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

from outlive._features.checkpoints.store import CheckpointStore
from outlive.errors import ConfigurationError
from outlive.errors.program import NotDurableError
from outlive.integrations.agents import (
    CallOptions,
    People,
    ask_all,
    call_step,
    count_usage,
    emit_text,
    is_workflow_code,
    step_name,
)
from outlive.integrations.interrupts import question_of
from outlive.integrations.records import Records

try:
    from langchain_core.callbacks import AsyncCallbackHandler
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.runnables.config import merge_configs, set_config_context
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, get_checkpoint_metadata
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.errors import GraphInterrupt
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Command, Interrupt

    from outlive.integrations.graph_values import GraphValues, types_in
except ImportError as error:
    raise ConfigurationError(
        f"this needs LangGraph 1.2 or newer: pip install 'outlive[langgraph]' ({error})"
    ) from error

SEND = "__pregel_send"
"""Where LangGraph gives a node the function that it writes with: `interrupt()` notes there what people said before."""
INTERRUPTS = "__interrupt__"
"""Where LangGraph says in a result what it was interrupted for."""
LOOP = "langgraph.pregel"
"""The package in which LangGraph runs graphs."""


def durable(
    graph: Any,
    *,
    name: str = "graph",
    stream: str | None = None,
    node: CallOptions | None = None,
    types: Sequence[type] = (),
    **options: Any,
) -> Any:
    """A copy of the graph, compiled, whose nodes are steps of the workflow that runs it with `run`.

    A node that is a graph itself, for example a prebuilt agent, is made durable with it: its own nodes are steps. A
    graph that the code of a node calls is part of that node's step.

    Args:
        graph: a `StateGraph`, or one that is compiled.
        name: of the graph, for the names of the steps.
        stream: a stream of the run that text of chat models is emitted to, if they stream it.
        node: how nodes are called, for example `{"timeout": 60, "retry": outlive.Retry(attempts=3)}`.
        types: classes of values that nodes return and that the types of the state do not name.
        options: of `compile`, without a checkpointer.

    Raises:
        ConfigurationError: this is not a graph, or one that stops at nodes (`interrupt_before`, `interrupt_after`).
    """
    builder = graph if isinstance(graph, StateGraph) else getattr(graph, "builder", None)
    if not isinstance(builder, StateGraph):
        raise ConfigurationError(
            f"durable() takes a StateGraph, or one that is compiled, and no {type(graph).__name__}"
        )
    options = _compiled_with(graph) | options
    if options.get("interrupt_before") or options.get("interrupt_after"):
        raise ConfigurationError(
            "a durable graph does not stop before or after a node (interrupt_before, interrupt_after), because no "
            'person would be asked; call interrupt({"tool": ..., "arguments": ...}) in the node, and people are asked'
        )

    known = [*types_in([*builder.schemas, *types]), *types]
    values = GraphValues(known)

    def as_steps(spec: Any, each: str) -> Any:
        if isinstance(spec.runnable, CompiledStateGraph):
            return durable(spec.runnable, name=f"{name}.{each}", stream=stream, node=node, types=known)
        return _NodeStep(spec.runnable, step_name(name, each), stream, node or {}, values)

    own = copy.copy(builder)
    own.nodes = {each: dataclasses.replace(spec, runnable=as_steps(spec, each)) for each, spec in builder.nodes.items()}
    own.branches = type(builder.branches)(
        builder.branches.default_factory,
        {
            each: {way: branch._replace(path=_OnTheSpot(branch.path)) for way, branch in ways.items()}
            for each, ways in builder.branches.items()
        },
    )
    return own.compile(**options)


def _compiled_with(graph: Any) -> dict[str, Any]:
    """The options that a graph was compiled with, as far as they say something in a workflow."""
    if not isinstance(graph, CompiledStateGraph):
        return {}
    return {
        "interrupt_before": graph.interrupt_before_nodes,
        "interrupt_after": graph.interrupt_after_nodes,
        "store": graph.store,
        "name": graph.name,
    }


def _is_durable(graph: Any) -> bool:
    builder = getattr(graph, "builder", None)
    nodes = builder.nodes.values() if isinstance(builder, StateGraph) else ()
    return all(isinstance(spec.runnable, _NodeStep) or _is_durable(spec.runnable) for spec in nodes) and bool(nodes)


async def run(
    graph: Any, state: Any, *, people: People | None = None, config: RunnableConfig | None = None, **options: Any
) -> Any:
    """Run a durable graph to its end, and give its state: `interrupt(value)` in a node asks people and goes on.

    A value `{"tool": ..., "arguments": ...}` asks whether this tool may be called, under its name; any other value is
    the question. The node gets `{"approved": True or False, "message": ...}`. What `HumanInTheLoopMiddleware` of
    LangChain asks is asked for each tool, and it gets its decisions.

    Args:
        graph: what `durable` returned.
        state: what the graph begins with.
        people: who is asked.
        config: of LangGraph.
        options: of `ainvoke`: context and others.

    Raises:
        ConfigurationError: the graph was not made durable.
    """
    if is_workflow_code() and not _is_durable(graph):
        raise ConfigurationError(
            "the nodes of this graph would be called in the workflow itself, and again by every replay; give it to "
            "outlive.integrations.langgraph.durable(graph) where it is made, and run what that returns"
        )
    own = graph.copy({"checkpointer": InMemorySaver()})
    configured = merge_configs(config, {"configurable": {"thread_id": "run"}})
    result = await own.ainvoke(state, configured, **options)
    while isinstance(result, dict) and (interrupts := result.get(INTERRUPTS)):
        answers = await _ask(people or People(), interrupts)
        result = await own.ainvoke(Command(resume=answers), configured, **options)
    return result


async def _ask(people: People, interrupts: Sequence[Any]) -> dict[str, Any]:
    """Ask people all that a graph was interrupted for at the same time; the answers by the ids of the interrupts."""
    questions = [question_of(each.value) for each in interrupts]
    answers = iter(await ask_all(people, [call for question in questions for call in question.calls]))
    return {
        each.id: question.form([next(answers) for _ in question.calls])
        for each, question in zip(interrupts, questions, strict=True)
    }


class _OnTheSpot(Runnable[Any, Any]):
    """The function of a conditional edge, which runs where it is called and not on a thread."""

    def __init__(self, path: Any) -> None:
        self._path = path

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._path.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        if is_workflow_code() and getattr(self._path, "func", None) is not None:
            return self._path.invoke(input, config, **kwargs)
        return await self._path.ainvoke(input, config, **kwargs)


class _NodeStep(Runnable[Any, Any]):
    """A node that is called in a step of the workflow; elsewhere it is the node itself."""

    def __init__(self, node: Any, name: str, stream: str | None, options: CallOptions, values: GraphValues) -> None:
        self._node, self._step_name, self._stream, self._options = node, name, stream, options
        self._values = values

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._node.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        if not is_workflow_code():
            return await self._node.ainvoke(input, config, **kwargs)
        written, read = self._values.written, self._values.read
        given: Any = config or {}
        settings = given.get("configurable", {})

        async def call_node() -> Any:
            sent: list[tuple[str, Any]] = []
            tokens = [_Emitting(self._stream)] if self._stream is not None else []
            within = merge_configs({**given, "configurable": {**settings, SEND: sent.extend}}, {"callbacks": tokens})
            try:
                with set_config_context(within) as context:  # `interrupt()` and other functions look there.
                    called = self._node.ainvoke(input, within, **kwargs)
                    returned = await asyncio.create_task(called, context=context)
            except GraphInterrupt as interrupted:
                self._refuse_inner(interrupted)
                return {"interrupts": [written(each.value) for each in interrupted.args[0]], "sent": written(sent)}
            return {"returned": written(returned), "sent": written(sent)}

        stored = await call_step(
            call_node, name=self._step_name, options=self._options, shown=partial(_shown_state, input)
        )
        if (sent := read(stored["sent"])) and SEND in settings:
            settings[SEND]([tuple(each) for each in sent])
        if "interrupts" in stored:
            # Their ids are made of those of checkpoints, which are new in every replay.
            place = settings.get("checkpoint_ns", "")
            raise GraphInterrupt(tuple(Interrupt.from_ns(read(each), ns=place) for each in stored["interrupts"]))
        returned = read(stored["returned"])
        _count(returned)
        return returned

    def _refuse_inner(self, interrupted: BaseException) -> None:
        """Refuse an interrupt of a graph that the code of the node has called: only the node itself gets the answer."""
        frames = traceback.walk_tb(interrupted.__traceback__)
        if any(frame.f_globals.get("__name__", "").startswith(LOOP) for frame, _ in frames):
            raise ConfigurationError(
                f"node {self._step_name} calls a graph that calls interrupt(), and the answer would not reach it; make "
                'the graph a node of its own, builder.add_node("name", graph), or call interrupt() in the node itself'
            )


def _shown_state(state: Any) -> dict[str, Any]:
    return state if isinstance(state, dict) else {"state": state}


class _Emitting(AsyncCallbackHandler):
    """Emits the text of chat models as they stream it."""

    def __init__(self, stream: str) -> None:
        self._stream = stream

    async def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
        await emit_text(self._stream, token)


def _count(returned: Any) -> None:
    """Count what the messages that a node returned have used."""
    for message in _messages_in(returned):
        if isinstance(message, AIMessage) and (used := message.usage_metadata):
            count_usage(input_tokens=used["input_tokens"], output_tokens=used["output_tokens"], answer_id=message.id)


def _messages_in(value: Any) -> Iterator[BaseMessage]:
    if isinstance(value, BaseMessage):
        yield value
    elif isinstance(value, Command):
        yield from _messages_in(value.update)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _messages_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _messages_in(each)


# -- A checkpointer on a store ------------------------------------------------------------------------------------


class Saver(BaseCheckpointSaver[str]):
    """A checkpointer of LangGraph on a store: `builder.compile(checkpointer=Saver(engine.checkpoints))`.

    For graphs that run outside of workflows, or as a whole in one step. A thread is a key of rows that are only
    appended. Reading a thread reads all its rows, and deleting it removes them; single checkpoints are not deleted.
    The sync methods are for other threads than that of the event loop in which it was made.

    Args:
        store: `engine.checkpoints`, or what `outlive.checkpoints.open_store(url)` gives; in a step that of the engine
            unless given.
        serde: how LangGraph writes values.
    """

    def __init__(self, store: CheckpointStore | None = None, *, serde: Any = None) -> None:
        super().__init__(serde=serde)
        self._records = Records("langgraph", store)
        self._loop = asyncio._get_running_loop()

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Keep a checkpoint: only its changed values."""
        values = checkpoint["channel_values"]
        changed = {channel: values[channel] for channel in new_versions if channel in values}
        place = _place_of(config)
        kept = get_checkpoint_metadata(config, metadata)
        await self._append("put", place, {**checkpoint, "channel_values": changed}, kept, dict(new_versions))
        return {"configurable": {**place, "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        """Keep what a node has written before its step of the graph is complete."""
        await self._append("writes", _place_of(config), [list(each) for each in writes], task_id, task_path)

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        """The checkpoint that is asked for, or the last one of the thread."""
        return (await self._thread(_place_of(config)["thread_id"])).get_tuple(config)

    async def alist(
        self,
        config: Any,
        *,
        filter: Any = None,  # noqa: A002  # LangGraph calls it so.
        before: Any = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The checkpoints of a thread, the newest first."""
        if config is None:
            raise ConfigurationError("a Saver lists the checkpoints of one thread; give a config with its thread_id")
        thread = await self._thread(_place_of(config)["thread_id"])
        for each in thread.list(config, filter=filter, before=before, limit=limit):
            yield each

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove all that is kept of a thread."""
        self._refuse_in_workflows()
        await self._records.clear(thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, with all its checkpoints."""
        self._refuse_in_workflows()
        for row in await self._records.read(source_thread_id):
            place, *rest = self._opened(row.output or b"")
            await self._append(row.state, {**place, "thread_id": target_thread_id}, *rest)

    def get_next_version(self, current: Any, channel: None) -> str:
        """The next version of a channel, numbered as LangGraph's own checkpointers do."""
        return str(InMemorySaver.get_next_version(self, current, channel))

    async def _append(self, state: str, place: dict[str, Any], *rest: Any) -> None:
        self._refuse_in_workflows()
        kind, data = self.serde.dumps_typed([place, *rest])
        await self._records.append(place["thread_id"], state, kind.encode() + b"\0" + data)

    def _opened(self, output: bytes) -> Any:
        kind, _, data = output.partition(b"\0")
        return self.serde.loads_typed((kind.decode(), data))

    async def _thread(self, thread_id: str) -> InMemorySaver:
        """LangGraph's own checkpointer, with all that was kept of a thread."""
        self._refuse_in_workflows()
        memory = InMemorySaver(serde=self.serde)
        for row in await self._records.read(thread_id):
            place, *rest = self._opened(row.output or b"")
            kept: Any = memory.put if row.state == "put" else memory.put_writes
            kept({"configurable": place}, *rest)
        return memory

    def _refuse_in_workflows(self) -> None:
        if is_workflow_code():
            raise NotDurableError(
                "a Saver of LangGraph (in a workflow, `run` of this module keeps the state of a graph)"
            )

    # LangGraph calls these where a graph is invoked without an event loop.

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """`aput` for sync code."""
        return self._wait_for(self.aput(config, checkpoint, metadata, new_versions))

    def put_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        """`aput_writes` for sync code."""
        self._wait_for(self.aput_writes(config, writes, task_id, task_path))

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        """`aget_tuple` for sync code."""
        return self._wait_for(self.aget_tuple(config))

    def list(
        self,
        config: Any,
        *,
        filter: Any = None,  # noqa: A002  # LangGraph calls it so.
        before: Any = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """`alist` for sync code."""

        async def read() -> Any:
            return [each async for each in self.alist(config, filter=filter, before=before, limit=limit)]

        yield from self._wait_for(read())

    def delete_thread(self, thread_id: str) -> None:
        """`adelete_thread` for sync code."""
        self._wait_for(self.adelete_thread(thread_id))

    def _wait_for(self, call: Coroutine[Any, Any, Any]) -> Any:
        if self._loop is None or asyncio._get_running_loop() is not None:
            call.close()
            raise ConfigurationError(
                "this Saver is used by sync code on the thread of an event loop, or was made without one; use the "
                "async methods of the graph (ainvoke, astream), or call the sync ones on another thread"
            )
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


def _place_of(config: Any) -> dict[str, Any]:
    """Which thread, namespace and checkpoint a config means; it has much else that is not a value."""
    asked = config["configurable"]
    place = {"thread_id": str(asked["thread_id"]), "checkpoint_ns": asked.get("checkpoint_ns", "")}
    return place if asked.get("checkpoint_id") is None else {**place, "checkpoint_id": asked["checkpoint_id"]}
