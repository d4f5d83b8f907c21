"""The output of `outlive flows show`: a document as a graph, with the state of a run in it or without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from outlive._features.flows.commands.files import file_named, read_file
from outlive.cli.advice import as_typed
from outlive.cli.edge import Mistake, open_engine

if TYPE_CHECKING:
    from outlive._features.flows.document.model import Document
    from outlive._features.flows.graph import Node, StepView
    from outlive.engine import Engine


class Shown(NamedTuple):
    """A flow, and perhaps a run of it."""

    title: str
    name: str
    hash: str
    text: str
    nodes: list[Node]
    views: dict[str, StepView] | None
    why: str

    def plain(self) -> dict[str, Any]:
        """For programs."""
        steps = []
        for node in self.nodes:
            step: dict[str, Any] = {
                "id": node.id,
                "use": node.use,
                "needs": node.needs,
                "is_conditional": node.is_conditional,
                "is_needed": node.is_needed,
            }
            if self.views is not None:
                view = self.views[node.id]
                step |= {
                    "state": view.state.value,
                    "attempts": view.attempts,
                    "took_seconds": view.took_seconds,
                    "note": view.note,
                }
            steps.append(step)
        return {"name": self.name, "hash": self.hash, "steps": steps, "why": self.why or None}


async def find_shown(name: str, url: str | None, *, revision: int | None, is_draft: bool, run_id: str | None) -> Shown:
    """The flow that a person names."""
    file = file_named(name)
    if file is not None and run_id is None:
        read = read_file(file, warns=False)
        return shown_of(read.document, read.text, str(file))
    if not url:
        what = f"there is no file {name}; for a flow of a store" if run_id is None else "for a run"
        raise Mistake(f"{what} give --store URL or set OUTLIVE_STORE")
    async with open_engine(url) as engine:
        if run_id is not None:
            return await _of_run(engine, run_id)
        stored = await engine.flows.get(name, revision=revision, draft=is_draft)
        what = "draft" if is_draft else f"revision {stored.revision}"
        return shown_of(stored.document, stored.text, f"{name}, {what}")


async def _of_run(engine: Engine, run_id: str) -> Shown:
    from outlive._features.flows.library.progress import Progress

    run = await engine.get(run_id).info()
    document, text = await engine.flows.document_of(run)
    shown = shown_of(document, text, f"{run.workflow}, run {run_id}: {run.status}")
    progress = Progress(shown.nodes, run_id)
    progress.read(await engine.history(run_id))
    return shown._replace(views=progress.views(run), why=as_typed(await engine.get(run_id).why()))


def shown_of(document: Document, text: str, title: str) -> Shown:
    """A document as a graph."""
    from outlive._features.flows.document.model import hash_of
    from outlive._features.flows.graph import nodes_of
    from outlive._features.flows.run.plan import Plan

    return Shown(title, document.name, hash_of(document), text, nodes_of(Plan(document)), None, "")


def shown_text(shown: Shown, form: str) -> str:
    """The text to print."""
    from outlive._features.flows.picture import lines, mermaid, svg

    if form == "source":
        return shown.text if shown.text.endswith("\n") else shown.text + "\n"
    if form == "mermaid":
        return mermaid(shown.nodes, shown.views or {})
    if form == "svg":
        return svg(shown.title, shown.nodes, shown.views or {})
    head = [f"{shown.title} ({shown.hash})", *(f"  {line}" for line in lines(shown.nodes, shown.views))]
    return "\n".join([*head, *([shown.why] if shown.why else [])]) + "\n"
