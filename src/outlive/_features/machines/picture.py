"""A machine as SVG, with its first state at the top."""

from __future__ import annotations

from html import escape

from outlive._features.machines.diagram import graph_of
from outlive._features.machines.driver import Plan
from outlive._kernel.define.layout import HEIGHT, Arrow, Box, arrange
from outlive._kernel.model.state_graph import StateBox

WIDTH_MIN, LETTER = 150, 9

_STYLE = (
    "text{font:13px sans-serif;text-anchor:middle}rect{fill:#fff;stroke:#333}.exit{stroke-width:3}"
    ".kind{font-size:10px;fill:#666}path{fill:none;stroke:#333}.guess{stroke-dasharray:4}"
)


def svg(plan: Plan) -> str:
    """The machine as an SVG image."""
    graph = graph_of(plan)
    guessed = {(state.name, other) for state in graph.states for other in state.guessed}
    wide = max(WIDTH_MIN, LETTER * max(len(state.name) for state in graph.states))
    drawn = arrange({state.name: wide for state in graph.ordered}, graph.arrows)
    size = f'viewBox="0 0 {drawn.width} {drawn.height}" width="{drawn.width}" height="{drawn.height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<title>{escape(plan.name)}</title><style>{_STYLE}</style>",
            '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
            '<polygon points="0 0,9 4,0 8"/></marker></defs>',
            *(_arrow(arrow, is_guess=(arrow.start, arrow.end) in guessed) for arrow in drawn.arrows),
            *(_box(state, drawn.boxes[state.name]) for state in graph.states),
            "</svg>\n",
        ]
    )


def _box(state: StateBox, box: Box) -> str:
    middle = box.x + box.width // 2
    mark = ' class="exit"' if state.kind == "exit" else ""
    return (
        f'<rect{mark} x="{box.x}" y="{box.y}" width="{box.width}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{middle}" y="{box.y + 21}">{_text(state.name)}</text>'
        f'<text class="kind" x="{middle}" y="{box.y + 37}">{escape(state.kind)}</text>'
    )


def _text(name: str) -> str:
    """Text and nothing else; XML has no control characters."""
    return escape("".join(sign if sign.isprintable() else " " for sign in name))


def _arrow(arrow: Arrow, *, is_guess: bool) -> str:
    mark = ' class="guess"' if is_guess else ""
    return f'<path{mark} d="{arrow.path}" marker-end="url(#tip)"/>'
