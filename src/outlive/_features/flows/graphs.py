"""Flows and machines as graphs, with where a run is in them or without: what pictures are drawn from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from outlive._cel import ExpressionError
from outlive._features.flows.document.positions import Positions
from outlive._features.flows.document.reading import read
from outlive._features.flows.document.validating import document_of
from outlive._features.flows.graph import NO_RUN, Node, StepView, nodes_of
from outlive._features.flows.library.progress import Progress
from outlive._features.flows.library.reading import check_document
from outlive._features.flows.run.plan import Plan
from outlive._features.flows.state_progress import StateProgress
from outlive._features.flows.verbs import Flows
from outlive._garbage_collection import collection_paused
from outlive._kernel.client.beside import Beside, at_once
from outlive._kernel.model import Run
from outlive._kernel.model.run import HASHES_FROM
from outlive._kernel.values.event import event_of
from outlive._kernel.values.run import run_of
from outlive.errors.document import FlowError, Problem
from outlive.errors.flow import FlowDamagedError

if TYPE_CHECKING:
    from outlive._features.flows.document.known_names import Listed
    from outlive._features.flows.document.model import Document
    from outlive._kernel.client.client import Client
    from outlive._kernel.client.following import JournalEntry
    from outlive._kernel.model.state_graph import StateGraph

ReadJournal = Callable[[], AsyncIterator["Sequence[JournalEntry]"]]
"""Gives the journal of a run with its payloads as JSON, portion by portion. Only runs that have a graph are read."""


class FlowGraph(NamedTuple):
    """The steps of a flow."""

    name: str
    nodes: Sequence[Node]
    lines: Mapping[str, int]
    """Where each step begins in the text of the document, counted from 1; nothing for one that has no text."""
    views: Mapping[str, StepView] = NO_RUN
    """Where a run is, by step; empty without a run."""


class MachineGraph(NamedTuple):
    """The states of a machine."""

    name: str
    graph: StateGraph
    views: Mapping[str, StepView] = NO_RUN
    """Where a run is, by state; empty without a run."""
    taken: frozenset[tuple[str, str]] = frozenset()
    """The arrows that the run has gone along."""


def graph_of_document(document: Document, text: str = "") -> FlowGraph:
    """The steps of a document, with their lines in its text.

    Raises:
        FlowError: they wait for each other, or name steps that there are not.
    """
    try:
        positions = read(text).positions
    except FlowError:  # The text was damaged, or is that of another release.
        positions = Positions()
    return _graph_of(document, positions)


def _graph_of(document: Document, positions: Positions) -> FlowGraph:
    lines = {id: positions.of_key(("steps", id)).line for id in document.steps}
    return FlowGraph(document.name, nodes_of(Plan(document)), {id: line for id, line in lines.items() if line})


class CheckedText(NamedTuple):
    """The result of a check of the text of a document."""

    problems: Sequence[Problem]
    """Mistakes and warnings."""
    document: Document | None = None
    """None if the text cannot be read."""
    graph: FlowGraph | None = None
    """None also if steps wait for each other."""


def check_text(text: str, listed: Listed | None = None) -> CheckedText:
    """The problems of a text, and the graph of the part that can be read. Nothing of it runs. `listed`: what workers
    run, beside what this process has."""
    with collection_paused():
        return _checked(text, listed)


def _checked(text: str, listed: Listed | None) -> CheckedText:
    try:
        reading = read(text)
        document = document_of(reading)
    except FlowError as error:
        return CheckedText(error.problems)
    try:
        problems: Sequence[Problem] = check_document(document, reading.positions, listed=listed)
    except FlowError as error:
        problems = error.problems
    try:
        graph = _graph_of(document, reading.positions)
    except (FlowError, ExpressionError):  # It is among the problems.
        graph = None
    return CheckedText(problems, document, graph)


async def graph_of_run(
    client: Client, run: Run, read_journal: ReadJournal, beside: Beside = at_once
) -> FlowGraph | MachineGraph | None:
    """The graph of a run with where the run is in it."""
    if run.version >= HASHES_FROM:
        return await _graph_of_flow_run(client, run, read_journal, beside)
    graph = await client.definitions.graph(run.workflow, run.version)
    if graph is None:
        return None
    states = StateProgress(run.workflow, graph, run.number)
    async for portion in read_journal():
        states.read(entry.event for entry in portion)
    views = states.views(run)
    return MachineGraph(run.workflow, graph, views, frozenset(states.taken))


async def _graph_of_flow_run(client: Client, run: Run, read_journal: ReadJournal, beside: Beside) -> FlowGraph | None:
    try:
        document, text = await Flows(client).document_of(run_of(run))
    except FlowDamagedError:  # It was started from a file, and is in no library.
        return None
    found = await beside(partial(graph_of_document, document, text))
    progress = Progress(found.nodes, run.id)
    async for portion in read_journal():
        progress.read(event_of(entry.position, entry.event, run.root_id) for entry in portion)
    return found._replace(views=progress.views(run_of(run)))
