"""Graphs on the wire: boxes and arrows with their coordinates, and the state of a run in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from outlive._features.flows.graph import StepState, StepView, arrows_of
from outlive._features.flows.graphs import FlowGraph, MachineGraph
from outlive._kernel.define.layout import GraphLayout, arrange

LETTER, PADDING, WIDTH_MIN, WIDTH_MAX = 7.6, 44, 124, 240
"""How wide the boxes are: a letter in a monospaced font of 12.5 px, what is around the longest name, and the limits."""
_NOT_COME_TO = (StepState.PENDING, StepState.SKIPPED)


class GraphNode(Struct, frozen=True, kw_only=True):
    """A step of a flow, or a state of a machine."""

    id: str
    kind: str
    """The component that a step uses, or the kind of a state."""
    x: int
    y: int
    width: int
    height: int
    line: int
    """Where it begins in the document of its flow, counted from 1; 0 if that is not known."""
    needs: list[str]
    """The boxes from which arrows lead to it."""
    is_conditional: bool
    """It has an `if`."""
    is_needed: bool
    """False for a step to which no run ever comes."""
    is_certain: bool
    """False for a step that only one branch of a condition needs."""
    is_start: bool
    is_exit: bool
    state: Literal["pending", "running", "waiting", "retrying", "succeeded", "failed", "undone", "skipped"] | None
    """Where a run is with it; null in a graph without a run."""
    attempts: int
    visits: int
    """How often the run has come to this state of its machine."""
    took: float | None
    """Seconds, the last time."""
    note: str
    """The error, or what it waits for."""


class GraphArrow(Struct, frozen=True, kw_only=True):
    """An arrow."""

    start: str
    end: str
    path: str
    """The data of an SVG path."""
    is_guess: bool
    """The code of a state mentions where it leads, and no annotation promises it."""
    is_taken: bool
    """A run has gone along it."""


class GraphView(Struct, frozen=True, kw_only=True):
    """A graph that is laid out in layers, from the top to the bottom."""

    kind: Literal["flow", "machine", "function"]
    """A function has neither steps nor states that are known before it runs: its graph is empty."""
    name: str
    width: int
    height: int
    nodes: list[GraphNode]
    arrows: list[GraphArrow]


def graph_view(found: FlowGraph | MachineGraph | None, name: str = "") -> GraphView:
    """A graph with its coordinates."""
    match found:
        case FlowGraph():
            return _flow_view(found)
        case MachineGraph():
            return _machine_view(found)
        case None:
            return GraphView(kind="function", name=name, width=0, height=0, nodes=[], arrows=[])


def _flow_view(found: FlowGraph) -> GraphView:
    arrows = arrows_of(found.nodes)
    wide = _width(text for node in found.nodes for text in (node.id, node.use))
    drawn = arrange({node.id: wide for node in found.nodes}, arrows)
    come_to = {id for id, view in found.views.items() if view.state not in _NOT_COME_TO}
    nodes = [
        _node(
            drawn,
            node.id,
            node.use,
            found.views.get(node.id),
            list(node.needs),
            line=found.lines.get(node.id, 0),
            is_conditional=node.is_conditional,
            is_needed=node.is_needed,
            is_certain=node.is_certain,
        )
        for node in found.nodes
    ]
    taken = frozenset(arrow for arrow in arrows if come_to.issuperset(arrow))
    return _view("flow", found.name, drawn, nodes, taken)


def _machine_view(found: MachineGraph) -> GraphView:
    graph = found.graph
    wide = _width(text for state in graph.states for text in (state.name, state.kind))
    drawn = arrange({state.name: wide for state in graph.ordered}, graph.arrows)
    needs: dict[str, list[str]] = {state.name: [] for state in graph.states}
    for start, end in graph.arrows:
        needs[end].append(start)
    nodes = [
        _node(
            drawn,
            state.name,
            state.kind,
            found.views.get(state.name),
            needs[state.name],
            is_start=state.name == graph.start,
            is_exit=state.kind == "exit",
        )
        for state in graph.states
    ]
    guessed = frozenset((state.name, other) for state in graph.states for other in state.guessed)
    return _view("machine", found.name, drawn, nodes, found.taken, guessed)


def _width(texts: Iterable[str]) -> int:
    """The width of all boxes of a graph."""
    return int(min(max(LETTER * max(map(len, texts), default=0) + PADDING, WIDTH_MIN), WIDTH_MAX))


def _node(
    drawn: GraphLayout,
    id: str,
    kind: str,
    view: StepView | None,
    needs: list[str],
    *,
    line: int = 0,
    is_conditional: bool = False,
    is_needed: bool = True,
    is_certain: bool = True,
    is_start: bool = False,
    is_exit: bool = False,
) -> GraphNode:
    box, seen = drawn.boxes[id], view or StepView()
    return GraphNode(
        id=id,
        kind=kind,
        x=box.x,
        y=box.y,
        width=box.width,
        height=box.height,
        line=line,
        needs=needs,
        is_conditional=is_conditional,
        is_needed=is_needed,
        is_certain=is_certain,
        is_start=is_start,
        is_exit=is_exit,
        state=None if view is None else view.state.value,
        attempts=seen.attempts,
        visits=seen.visits,
        took=seen.took_seconds,
        note=seen.note,
    )


def _view(
    kind: Literal["flow", "machine"],
    name: str,
    drawn: GraphLayout,
    nodes: list[GraphNode],
    taken: frozenset[tuple[str, str]],
    guessed: frozenset[tuple[str, str]] = frozenset(),
) -> GraphView:
    arrows = [
        GraphArrow(
            start=it.start,
            end=it.end,
            path=it.path,
            is_guess=(it.start, it.end) in guessed,
            is_taken=(it.start, it.end) in taken,
        )
        for it in drawn.arrows
    ]
    return GraphView(kind=kind, name=name, width=drawn.width, height=drawn.height, nodes=nodes, arrows=arrows)
