"""A flow as Mermaid text, as SVG and as lines for a terminal, with the state of a run in it or without.

Names come from documents, and a picture goes into pages of others: nothing in it may be more than text. So Mermaid gets
numbers for ids and every sign of a label spelled out, and SVG gets escaped text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from outlive._features.flows.graph import NO_RUN, Node, StepState, StepView, Views, arrows_of
from outlive._kernel.define.layout import HEIGHT, Box, arrange

WIDTH_MIN, LETTER = 160, 9

COLOURS = {
    StepState.PENDING: "#ffffff",
    StepState.RUNNING: "#cfe3ff",
    StepState.WAITING: "#fff0c2",
    StepState.RETRYING: "#ffe0b8",
    StepState.SUCCEEDED: "#d5f0d8",
    StepState.FAILED: "#f8cfcf",
    StepState.UNDONE: "#ecd9f3",
    StepState.SKIPPED: "#eeeeee",
}
MARKS = {
    StepState.PENDING: ".",
    StepState.RUNNING: ">",
    StepState.WAITING: "~",
    StepState.RETRYING: "~",
    StepState.SUCCEEDED: "+",
    StepState.FAILED: "x",
    StepState.UNDONE: "<",
    StepState.SKIPPED: "-",
}
_STYLE = (
    "text{font:13px sans-serif;text-anchor:middle}rect{stroke:#333}.unneeded{stroke-dasharray:4}"
    ".use{font-size:10px;fill:#666}path{fill:none;stroke:#333}"
)


def mermaid(nodes: Sequence[Node], views: Views = NO_RUN) -> str:
    """The flow as a Mermaid flowchart."""
    ids = {node.id: f"s{number}" for number, node in enumerate(nodes, 1)}
    lines = ["flowchart LR"]
    for node in nodes:
        text = f"{_spelled(node.id)}<br/><small>{_spelled(node.use)}</small>"
        opening, closing = ('{{"', '"}}') if node.is_conditional else ('["', '"]')
        lines.append(f"    {ids[node.id]}{opening}{text}{closing}")
    lines += [f"    {ids[other]} --> {ids[node.id]}" for node in nodes for other in node.needs]
    lines += [f"    style {ids[node.id]} stroke-dasharray:4" for node in nodes if not node.is_needed]
    for state, colour in COLOURS.items():
        found = [ids[node.id] for node in nodes if node.id in views and views[node.id].state is state]
        if found:
            lines += [f"    classDef {state.value} fill:{colour}", f"    class {','.join(found)} {state.value}"]
    return "\n".join(lines) + "\n"


def _spelled(text: str) -> str:
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    return re.sub(r"[^A-Za-z0-9_ ]", lambda found: f"#{ord(found[0])};", printable)


def svg(name: str, nodes: Sequence[Node], views: Views = NO_RUN) -> str:
    """The flow as an SVG image: what a step waits for is above it."""
    wide = max([WIDTH_MIN, *(LETTER * max(len(node.id), len(node.use)) for node in nodes)])
    drawn = arrange({node.id: wide for node in nodes}, arrows_of(nodes))
    size = f'viewBox="0 0 {drawn.width} {drawn.height}" width="{drawn.width}" height="{drawn.height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<title>{_text(name)}</title><style>{_STYLE}</style>",
            '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
            '<polygon points="0 0,9 4,0 8"/></marker></defs>',
            *(f'<path d="{arrow.path}" marker-end="url(#tip)"/>' for arrow in drawn.arrows),
            *(_box(node, drawn.boxes[node.id], views.get(node.id)) for node in nodes),
            "</svg>\n",
        ]
    )


def _box(node: Node, box: Box, view: StepView | None) -> str:
    middle = box.x + box.width // 2
    mark = "" if node.is_needed else ' class="unneeded"'
    colour = COLOURS[StepState.PENDING if view is None else view.state]
    title = "" if view is None else f"<title>{_text(f'{view.state.value} {view.note}'.strip())}</title>"
    return (
        f'<g>{title}<rect{mark} fill="{colour}" x="{box.x}" y="{box.y}" width="{box.width}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{middle}" y="{box.y + 21}">{_text(node.id)}{" ?" if node.is_conditional else ""}</text>'
        f'<text class="use" x="{middle}" y="{box.y + 37}">{_text(node.use)}</text></g>'
    )


def _text(text: str) -> str:
    """Text and nothing else; XML has no control characters."""
    return escape("".join(sign if sign.isprintable() else " " for sign in text))


def lines(nodes: Sequence[Node], views: Views | None = None) -> list[str]:
    """The flow as lines: a step under the steps that it waits for, with what it calls, and with its state in a run."""
    names = ["  " * node.depth + node.id for node in nodes]
    wide, wide_use = max(map(len, names)), max(len(node.use) for node in nodes)
    found = []
    for node, name in zip(nodes, names, strict=True):
        after = f"after {', '.join(node.needs)}" if node.needs else ""
        need = "not needed" if not node.is_needed else "" if node.is_certain else "if needed"
        marks = [after, "if" if node.is_conditional else "", need]
        line = f"{name.ljust(wide)}  {node.use.ljust(wide_use)}  {', '.join(mark for mark in marks if mark)}"
        if views is not None:
            view = views.get(node.id, StepView())
            line = f"{MARKS[view.state]} {line.rstrip()}  {said(view)}"
        found.append(line.rstrip())
    return found


def said(view: StepView) -> str:
    """The state of a step in a few words."""
    words = [view.state.value]
    if view.attempts > 1:
        words.append(f"attempt {view.attempts}")
    if view.took_seconds is not None:
        words.append(f"{view.took_seconds:.2f} s" if view.took_seconds < 100 else f"{view.took_seconds:.0f} s")
    # The note of a waiting step names its wait; any other note is an error.
    link = " for " if view.state is StepState.WAITING else ": "
    return ", ".join(words) + (f"{link}{' '.join(view.note.split())}" if view.note else "")
