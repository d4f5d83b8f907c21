"""A machine as SVG: one column for each step away from the start, curves between boxes, loops above them."""

from __future__ import annotations

from html import escape

from outlive._define.machine.diagram import arrows_of
from outlive._define.machine.driver import Plan

WIDTH_MIN, LETTER, HEIGHT = 150, 9, 46
GAP_X, GAP_Y, EDGE = 70, 30, 40

_STYLE = (
    "text{font:13px sans-serif;text-anchor:middle}rect{fill:#fff;stroke:#333}.exit{stroke-width:3}"
    ".kind{font-size:10px;fill:#666}path{fill:none;stroke:#333}.guess{stroke-dasharray:4}"
)


def svg(plan: Plan) -> str:
    """The machine as an SVG image."""
    arrows = [(member.name, to, known) for member in plan.states for to, known in arrows_of(member.name, plan)]
    columns = _columns(plan, [(name, to) for name, to, _ in arrows])
    wide = max(WIDTH_MIN, LETTER * max(len(member.name) for member in plan.states))
    places = {
        name: (EDGE + x * (wide + GAP_X), EDGE + y * (HEIGHT + GAP_Y))
        for x, column in enumerate(columns)
        for y, name in enumerate(column)
    }
    width = 2 * EDGE + len(columns) * (wide + GAP_X) - GAP_X
    height = 2 * EDGE + max(len(column) for column in columns) * (HEIGHT + GAP_Y) - GAP_Y
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<title>{escape(plan.name)}</title><style>{_STYLE}</style>",
            '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
            '<polygon points="0 0,9 4,0 8"/></marker></defs>',
            *(_arrow(places[name], places[to], wide, is_known=known) for name, to, known in arrows),
            *(_box(name, place, wide, plan) for name, place in places.items()),
            "</svg>\n",
        ]
    )


def _columns(plan: Plan, arrows: list[tuple[str, str]]) -> list[list[str]]:
    """The states by how many steps they are away from the start; what cannot be reached comes last."""
    columns, placed = [[plan.start.name]], {plan.start.name}
    names = [member.name for member in plan.states]
    while True:
        reached = {to for name, to in arrows if name in columns[-1]} - placed
        if not reached:
            break
        columns.append([name for name in names if name in reached])
        placed |= reached
    left = [name for name in names if name not in placed]
    return [*columns, left] if left else columns


def _box(name: str, place: tuple[int, int], wide: int, plan: Plan) -> str:
    x, y = place
    middle = x + wide // 2
    is_exit = name in plan.exits
    kind = plan.kinds.get(name)
    word = "exit" if is_exit else "" if kind is None else kind.word
    mark = ' class="exit"' if is_exit else ""
    return (
        f'<rect{mark} x="{x}" y="{y}" width="{wide}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{middle}" y="{y + 21}">{_text(name)}</text>'
        f'<text class="kind" x="{middle}" y="{y + 37}">{escape(word)}</text>'
    )


def _text(name: str) -> str:
    """Text and nothing else; XML has no control characters."""
    return escape("".join(sign if sign.isprintable() else " " for sign in name))


def _arrow(start: tuple[int, int], end: tuple[int, int], wide: int, *, is_known: bool) -> str:
    mark = "" if is_known else ' class="guess"'
    (x, y), (to_x, to_y) = start, end
    if start == end:
        line = f"M{x + 100} {y} C{x + 100} {y - 34} {x + 50} {y - 34} {x + 50} {y - 1}"
    elif to_x > x:
        x, y, to_y = x + wide, y + HEIGHT // 2, to_y + HEIGHT // 2
        line = f"M{x} {y} C{x + GAP_X // 2} {y} {to_x - GAP_X // 2} {to_y} {to_x} {to_y}"
    else:
        middle, to_middle = x + wide // 2, to_x + wide // 2
        low, to_low = y + HEIGHT, to_y + HEIGHT
        line = f"M{middle} {low} C{middle} {low + 34} {to_middle} {to_low + 34} {to_middle} {to_low + 1}"
    return f'<path{mark} d="{line}" marker-end="url(#tip)"/>'
