"""Where the boxes and arrows of a picture go: in layers, one under the other.

This is the method of Sugiyama in its four steps. Arrows that close a circle are turned round. Each box goes one layer
below the lowest box that leads to it, and an arrow that passes layers gets a *bend* in each of them, which takes part
in the order like a box. The order in a layer is improved by sweeps that put each box at the mean place of the boxes
that it is connected with; the order with the fewest crossings is kept. Then every layer gets the coordinates that are
nearest to what its neighbours want, in this order and without an overlap.

The same graph has the same picture, in every process: nothing here depends on chance, on hashes or on fonts.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import inf

import msgspec

HEIGHT, GAP_X, GAP_Y, EDGE = 46, 28, 38, 16
BEND_GAP = 18
"""Between an arrow that passes a layer and its neighbours there."""
LOOP, CORNER = 26, 13
"""How far an arrow from a box to itself reaches beside it, and how far from the corners it begins and ends."""
APART = 12
"""Half of the space between the ends of arrows that go down and of arrows that come back."""
SNAP = 14
"""How crooked an arrow may be for its boxes to be put below each other."""
BENDS_MAX = 2_000
"""Long arrows without bends cross boxes. That is better than a picture that takes seconds."""
SWEEPS, SWEEPS_OF_LARGE, LARGE = 10, 2, 1_200
"""A picture with more boxes and bends is looked at less often."""
KEPT = 64
"""Pictures that a process remembers: the graph of a run is asked for again and again while the run goes on."""


class Box(msgspec.Struct, frozen=True):
    """Where a box is, by its upper left corner."""

    x: int
    y: int
    width: int
    height: int


class Arrow(msgspec.Struct, frozen=True):
    """An arrow, and its way as the data of an SVG path."""

    start: str
    end: str
    path: str


class GraphLayout(msgspec.Struct, frozen=True):
    """A picture: its size, its boxes by name, its arrows in the order in which they were given."""

    width: int
    height: int
    boxes: dict[str, Box]
    arrows: list[Arrow]


def arrange(widths: Mapping[str, int], arrows: Sequence[tuple[str, str]]) -> GraphLayout:
    """Put boxes of these widths into layers, the first one at the top if no arrow leads to it.

    Args:
        widths: of each box by its name. Where two orders are as good as each other, this one counts.
        arrows: from which box to which. An arrow may lead back to an earlier box, or to its own.
    """
    return _arranged(tuple(widths.items()), tuple(arrows))


@lru_cache(maxsize=KEPT)
def _arranged(widths: tuple[tuple[str, int], ...], arrows: tuple[tuple[str, str], ...]) -> GraphLayout:
    return _Arrangement(dict(widths), arrows).layout()


class _Arrangement:
    """One picture while it is made. Vertices are numbers: first the boxes, then the bends."""

    def __init__(self, widths: Mapping[str, int], arrows: Sequence[tuple[str, str]]) -> None:
        self._names = list(widths)
        places = {name: number for number, name in enumerate(self._names)}
        self._arrows = [(places[start], places[end]) for start, end in arrows]
        self._backward = _backward(len(places), self._arrows)
        # Downwards, as they are laid out.
        self._down = [
            (end, start) if number in self._backward else (start, end)
            for number, (start, end) in enumerate(self._arrows)
        ]
        loops = {start for start, end in self._arrows if start == end}
        self._widths = list(widths.values())
        self._left = [width / 2 for width in self._widths]
        self._right = [width / 2 + (LOOP if number in loops else 0) for number, width in enumerate(self._widths)]
        self._layer = _layers(len(places), self._down)
        self._below: list[list[int]] = [[] for _ in places]
        self._above: list[list[int]] = [[] for _ in places]
        self._chains = self._bend()
        self._is_shared = self._shared_sides()

    def layout(self) -> GraphLayout:
        """The picture."""
        order = _ordered(self._layer, self._above, self._below)
        xs = [round(middle) for middle in self._middles(order)]
        boxes = {
            name: Box(xs[number] - self._widths[number] // 2, self._top(number), self._widths[number], HEIGHT)
            for number, name in enumerate(self._names)
        }
        ends = [xs[number] + self._right[number] for number in range(len(xs))]
        depth = max(self._layer, default=-1) + 1
        return GraphLayout(
            width=round(max(ends, default=0)) + EDGE,
            height=2 * EDGE + depth * HEIGHT + max(depth - 1, 0) * GAP_Y,
            boxes=boxes,
            arrows=[self._arrow(number, xs) for number in range(len(self._arrows))],
        )

    # -- Layers ----------------------------------------------------------------------------------------------

    def _bend(self) -> list[list[int]]:
        """Give arrows that pass layers a bend in each of them, the short ones first. The vertices along each arrow."""
        chains = [[start, end] for start, end in self._down]
        spare = BENDS_MAX
        by_length = sorted(range(len(chains)), key=self._length)
        for number in by_length:
            missing = self._length(number) - 1
            if 0 < missing <= spare:
                spare -= missing
                first = len(self._layer)
                start, end = self._down[number]
                self._layer += range(self._layer[start] + 1, self._layer[end])
                self._left += [0.0] * missing
                self._right += [0.0] * missing
                self._below += [[] for _ in range(missing)]
                self._above += [[] for _ in range(missing)]
                chains[number] = [start, *range(first, first + missing), end]
        for chain in chains:
            for upper, lower in pairwise(chain):
                if upper != lower:
                    self._below[upper].append(lower)
                    self._above[lower].append(upper)
        return chains

    def _length(self, number: int) -> int:
        start, end = self._down[number]
        return self._layer[end] - self._layer[start]

    # -- Coordinates -----------------------------------------------------------------------------------------

    def _middles(self, order: list[list[int]]) -> list[float]:
        """The middle of each vertex. What is not connected stands side by side."""
        middles = [0.0] * len(self._layer)
        edge = float(EDGE)
        for rows in self._connected(order):
            self._settle(rows, middles)
            part = [vertex for row in rows for vertex in row]
            shift = edge - min(middles[vertex] - self._left[vertex] for vertex in part)
            for vertex in part:
                middles[vertex] += shift
            edge = max(middles[vertex] + self._right[vertex] for vertex in part) + GAP_X
        return middles

    def _connected(self, order: list[list[int]]) -> list[list[list[int]]]:
        """The layers of each part of the picture that no arrow connects with the others."""
        parts: list[list[list[int]]] = []
        part_of = [-1] * len(self._layer)
        for first in range(len(self._names)):
            if part_of[first] >= 0:
                continue
            part_of[first], left = len(parts), [first]
            while left:
                vertex = left.pop()
                fresh = [other for other in self._above[vertex] + self._below[vertex] if part_of[other] < 0]
                for other in fresh:
                    part_of[other] = len(parts)
                left += fresh
            parts.append([])
        for row in order:
            of_parts: dict[int, list[int]] = {}
            for vertex in row:
                of_parts.setdefault(part_of[vertex], []).append(vertex)
            for part, vertices in of_parts.items():
                parts[part].append(vertices)
        return parts

    def _settle(self, rows: list[list[int]], middles: list[float]) -> None:
        """Sweeps down, sweeps up, sweeps that look both ways; and at last what is almost straight is straightened."""
        for row in rows:
            for vertex, offset in zip(row, self._offsets(row), strict=True):
                middles[vertex] = offset
        count = SWEEPS_OF_LARGE if len(self._layer) > LARGE else SWEEPS
        for sweep in range(3 * count):
            is_down, both = sweep % 2 == 0, sweep >= 2 * count
            for row in rows if is_down else reversed(rows):
                wanted = [self._wanted(vertex, middles, is_down=is_down, both=both) for vertex in row]
                for vertex, middle in zip(row, _fitted(self._offsets(row), wanted), strict=True):
                    middles[vertex] = middle
        for row in rows:
            self._straighten(row, middles)

    def _straighten(self, row: list[int], middles: list[float]) -> None:
        """Put each vertex below its only neighbour above, if that is near and nothing is in the way."""
        offsets = self._offsets(row)
        for place, vertex in enumerate(row):
            above = self._above[vertex]
            if len(above) != 1 or abs(middles[above[0]] - middles[vertex]) > SNAP:
                continue
            low, high = -inf, inf
            if place:
                low = middles[row[place - 1]] + offsets[place] - offsets[place - 1]
            if place + 1 < len(row):
                high = middles[row[place + 1]] - offsets[place + 1] + offsets[place]
            if low <= middles[above[0]] <= high:
                middles[vertex] = middles[above[0]]

    def _offsets(self, row: list[int]) -> list[float]:
        """Where the vertices of a layer are if they stand as close as they may."""
        offsets = [0.0]
        for before, after in pairwise(row):
            is_bend = max(before, after) >= len(self._names)
            offsets.append(offsets[-1] + self._right[before] + self._left[after] + (BEND_GAP if is_bend else GAP_X))
        return offsets

    def _wanted(self, vertex: int, middles: list[float], *, is_down: bool, both: bool) -> tuple[float, float]:
        """Where a vertex would like to be, and how much. Bends stay in one line before anything else does."""
        near = self._above[vertex] if is_down else self._below[vertex]
        if both or not near:
            near = self._above[vertex] + self._below[vertex]
        if not near:
            return middles[vertex], 0.1
        count = len(self._names)
        weights = [8.0 if vertex >= count and other >= count else 2.0 if vertex >= count else 1.0 for other in near]
        mean = sum(weight * middles[other] for weight, other in zip(weights, near, strict=True)) / sum(weights)
        return mean, sum(weights)

    def _top(self, vertex: int) -> int:
        return EDGE + self._layer[vertex] * (HEIGHT + GAP_Y)

    # -- Arrows ----------------------------------------------------------------------------------------------

    def _arrow(self, number: int, xs: list[int]) -> Arrow:
        start, end = self._arrows[number]
        if start == end:
            return Arrow(self._names[start], self._names[end], self._loop(start, xs))
        first, *bends, last = self._chains[number]
        is_backward = number in self._backward
        points = [(xs[first] + self._aside(first, number, is_below=True), self._top(first) + HEIGHT)]
        for bend in bends:
            points += [(xs[bend], self._top(bend)), (xs[bend], self._top(bend) + HEIGHT)]
        points.append((xs[last] + self._aside(last, number, is_below=False), self._top(last)))
        path = _curve(points[::-1] if is_backward else points)
        return Arrow(self._names[start], self._names[end], path)

    def _shared_sides(self) -> set[tuple[int, bool]]:
        """The sides of boxes, each with whether it is the lower one, where some arrows go down and others come back."""
        down: set[tuple[int, bool]] = set()
        back: set[tuple[int, bool]] = set()
        for number, (upper, lower) in enumerate(self._down):
            if upper != lower:
                (back if number in self._backward else down).update([(upper, True), (lower, False)])
        return down & back

    def _aside(self, box: int, number: int, *, is_below: bool) -> int:
        """How far from the middle of a side an arrow ends."""
        return 0 if (box, is_below) not in self._is_shared else APART if number in self._backward else -APART

    def _loop(self, box: int, xs: list[int]) -> str:
        x, top = xs[box] - self._widths[box] // 2 + self._widths[box], self._top(box)
        out, high, low = x + LOOP, top + CORNER, top + HEIGHT - CORNER
        return f"M{x} {high} C{out} {high} {out} {low} {x} {low}"


def _backward(count: int, arrows: Sequence[tuple[int, int]]) -> set[int]:
    """The arrows that close a circle, seen from the first box on."""
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for number, (start, end) in enumerate(arrows):
        if start != end:
            leaving[start].append((number, end))
    found: set[int] = set()
    is_seen, is_open = [False] * count, [False] * count
    for first in range(count):
        if is_seen[first]:
            continue
        is_seen[first] = is_open[first] = True
        way: list[tuple[int, Iterator[tuple[int, int]]]] = [(first, iter(leaving[first]))]
        while way:
            box, rest = way[-1]
            number, end = next(rest, (-1, -1))
            if number < 0:
                is_open[box] = False
                way.pop()
            elif is_open[end]:
                found.add(number)
            elif not is_seen[end]:
                is_seen[end] = is_open[end] = True
                way.append((end, iter(leaving[end])))
    return found


def _layers(count: int, down: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each box: one below the lowest box that leads to it."""
    below: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for start, end in down:
        if start != end:
            below[start].append(end)
            missing[end] += 1
    layers = [0] * count
    ready = [box for box in range(count) if not missing[box]]
    for box in ready:
        for other in below[box]:
            layers[other] = max(layers[other], layers[box] + 1)
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    return layers


def _ordered(layers: Sequence[int], above: Sequence[list[int]], below: Sequence[list[int]]) -> list[list[int]]:
    """The vertices of each layer in an order with few crossings."""
    rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for vertex, layer in enumerate(layers):
        rows[layer].append(vertex)
    best, fewest = rows, _crossings(rows, below)
    for sweep in range(SWEEPS_OF_LARGE if len(layers) > LARGE else SWEEPS):
        if not fewest:
            break
        is_down = sweep % 2 == 0
        rows = [list(row) for row in rows]
        places = [0.0] * len(layers)
        for row in rows if is_down else reversed(rows):
            for place, vertex in enumerate(row):
                near = above[vertex] if is_down else below[vertex]
                places[vertex] = sum(places[other] for other in near) / len(near) if near else place
            row.sort(key=lambda vertex: places[vertex])
            for place, vertex in enumerate(row):
                places[vertex] = place
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: Sequence[list[int]], below: Sequence[list[int]]) -> int:
    """How often arrows between neighbouring layers cross."""
    found = 0
    for upper, lower in pairwise(rows):
        places = {vertex: place for place, vertex in enumerate(lower)}
        seen: list[int] = []
        for vertex in upper:
            ends = sorted(places[other] for other in below[vertex] if other in places)
            found += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return found


def _fitted(offsets: Sequence[float], wanted: Sequence[tuple[float, float]]) -> list[float]:
    """The coordinates nearest to the wanted ones that keep the order and the distances of a layer.

    Less its offset, each coordinate may be no smaller than the one before: a regression under that constraint, by
    pooling neighbours that would change places.
    """
    pools: list[tuple[float, float, int]] = []  # Mean, weight, how many vertices.
    for offset, (middle, weight) in zip(offsets, wanted, strict=True):
        mean, heavy, count = middle - offset, weight, 1
        while pools and pools[-1][0] > mean:
            other, more, others = pools.pop()
            mean = (mean * heavy + other * more) / (heavy + more)
            heavy, count = heavy + more, count + others
        pools.append((mean, heavy, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _curve(points: Sequence[tuple[int, int]]) -> str:
    """A way through points that is upright at each of them."""
    parts = [f"M{points[0][0]} {points[0][1]}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) // 2
        parts.append(f"V{to_y}" if x == to_x else f"C{x} {middle} {to_x} {middle} {to_x} {to_y}")
    return " ".join(parts)
