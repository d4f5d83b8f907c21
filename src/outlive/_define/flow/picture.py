"""A flow as Mermaid text, as SVG and as lines for a terminal, with the state of a run in it or without.

Names come from documents, and a picture goes into pages of others: nothing in it may be more than text. So Mermaid gets
numbers for ids and every sign of a label spelled out, and SVG gets escaped text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from outlive._define.flow.graph import NO_RUN, Node, StepState, StepView, Views

WIDTH_MIN, LETTER, HEIGHT = 160, 9, 46
GAP_X, GAP_Y, EDGE = 70, 26, 30

COLOURS = {
    StepState.PENDING: "#ffffff",
    StepState.RUNNING: "#cfe3ff",
    StepState.WAITING: "#fff0c2",
    StepState.SUCCEEDED: "#d5f0d8",
    StepState.FAILED: "#f8cfcf",
    StepState.SKIPPED: "#eeeeee",
}
MARKS = {
    StepState.PENDING: ".",
    StepState.RUNNING: ">",
    StepState.WAITING: "~",
    StepState.SUCCEEDED: "+",
    StepState.FAILED: "x",
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
    """The flow as an SVG image: one column for each depth, the steps in the order of the document."""
    columns: dict[int, list[Node]] = {}
    for node in nodes:
        columns.setdefault(node.depth, []).append(node)
    wide = max([WIDTH_MIN, *(LETTER * max(len(node.id), len(node.use)) for node in nodes)])
    places = {
        node.id: (EDGE + depth * (wide + GAP_X), EDGE + row * (HEIGHT + GAP_Y))
        for depth, column in columns.items()
        for row, node in enumerate(column)
    }
    width = 2 * EDGE + (max(columns) + 1) * (wide + GAP_X) - GAP_X
    height = 2 * EDGE + max(map(len, columns.values())) * (HEIGHT + GAP_Y) - GAP_Y
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<title>{_text(name)}</title><style>{_STYLE}</style>",
            '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
            '<polygon points="0 0,9 4,0 8"/></marker></defs>',
            *(_arrow(places[other], places[node.id], wide) for node in nodes for other in node.needs),
            *(_box(node, places[node.id], wide, views.get(node.id)) for node in nodes),
            "</svg>\n",
        ]
    )


def _box(node: Node, place: tuple[int, int], wide: int, view: StepView | None) -> str:
    x, y = place
    middle = x + wide // 2
    mark = "" if node.is_needed else ' class="unneeded"'
    colour = COLOURS[StepState.PENDING if view is None else view.state]
    title = "" if view is None else f"<title>{_text(f'{view.state.value} {view.note}'.strip())}</title>"
    return (
        f'<g>{title}<rect{mark} fill="{colour}" x="{x}" y="{y}" width="{wide}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{middle}" y="{y + 21}">{_text(node.id)}{" ?" if node.is_conditional else ""}</text>'
        f'<text class="use" x="{middle}" y="{y + 37}">{_text(node.use)}</text></g>'
    )


def _text(text: str) -> str:
    """Text and nothing else; XML has no control characters."""
    return escape("".join(sign if sign.isprintable() else " " for sign in text))


def _arrow(start: tuple[int, int], end: tuple[int, int], wide: int) -> str:
    x, y, to_x, to_y = start[0] + wide, start[1] + HEIGHT // 2, end[0], end[1] + HEIGHT // 2
    line = f"M{x} {y} C{x + GAP_X // 2} {y} {to_x - GAP_X // 2} {to_y} {to_x} {to_y}"
    return f'<path d="{line}" marker-end="url(#tip)"/>'


def lines(nodes: Sequence[Node], views: Views | None = None) -> list[str]:
    """The flow as lines: a step under those that it waits for, with what it calls, and with its state in a run."""
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
    # Before its next attempt the note is the error of the last one; else it names what the step waits for.
    link = " for " if view.state is StepState.WAITING and not view.attempts else ": "
    return ", ".join(words) + (f"{link}{' '.join(view.note.split())}" if view.note else "")
