"""Where the boxes and arrows of a picture go."""

from __future__ import annotations

import random
import re
from itertools import pairwise

from outlive._kernel.define.layout import EDGE, GAP_X, GAP_Y, HEIGHT, GraphLayout, arrange


def layout_of(*arrows: str, extra: str = "") -> GraphLayout:
    """A picture of arrows that are written `a>b`."""
    pairs = [(start, end) for start, _, end in (arrow.partition(">") for arrow in arrows)]
    names = dict.fromkeys([name for pair in pairs for name in pair] + extra.split())
    return arrange(dict.fromkeys(names, 100), pairs)


def rows_of(drawn: GraphLayout) -> list[list[str]]:
    """The names in each layer, from left to right."""
    rows: dict[int, list[tuple[int, str]]] = {}
    for name, box in drawn.boxes.items():
        rows.setdefault(box.y, []).append((box.x, name))
    return [[name for _, name in sorted(row)] for _, row in sorted(rows.items())]


def test_a_box_is_below_all_that_lead_to_it() -> None:
    """A box is below every box that leads to it, and a box that nothing leads to is at the top."""
    drawn = layout_of("a>b", "b>c", "a>c", extra="alone")

    assert [["a", "alone"], ["b"], ["c"]] == [sorted(row) for row in rows_of(drawn)]


def test_a_picture_is_as_high_as_its_layers() -> None:
    """There is a gap between two layers, and none for a layer alone or for no layer at all."""
    heights = [layout_of(extra=names).height for names in ("", "a")] + [layout_of("a>b").height]

    assert heights == [2 * EDGE, 2 * EDGE + HEIGHT, 2 * EDGE + 2 * HEIGHT + GAP_Y]


def test_boxes_of_a_layer_do_not_overlap_and_are_inside() -> None:
    """In graphs of chance, with circles and loops; and the same graph has the same picture."""
    for seed in range(20):
        chance = random.Random(seed)
        names = [f"n{number}" for number in range(12)]
        widths = {name: chance.randrange(80, 260) for name in names}
        arrows = [(chance.choice(names), chance.choice(names)) for _ in range(18)]

        drawn = arrange(widths, arrows)

        for row in rows_of(drawn):
            boxes = [drawn.boxes[name] for name in row]
            assert all(before.x + before.width < after.x for before, after in pairwise(boxes))
            assert all(box.x >= 0 and box.x + box.width <= drawn.width for box in boxes)
        assert drawn.height == max(box.y + HEIGHT for box in drawn.boxes.values()) + min(
            box.y for box in drawn.boxes.values()
        )
        assert arrows == [(arrow.start, arrow.end) for arrow in drawn.arrows]
        assert drawn == arrange(dict(widths), list(arrows))


def test_arrows_that_can_do_without_crossing_do_not_cross() -> None:
    """The order of the document is changed for that."""
    drawn = layout_of("a>d", "b>c", "a>x", "b>y")

    first, second = rows_of(drawn)
    sides = {"d": "a", "x": "a", "c": "b", "y": "b"}
    assert [sides[name] for name in second] == [name for name in first for _ in range(2)]


def test_a_long_arrow_goes_round_the_boxes_between() -> None:
    """It passes their layer beside them."""
    drawn = layout_of("a>b", "b>c", "a>c")

    passing = next(arrow.path for arrow in drawn.arrows if (arrow.start, arrow.end) == ("a", "c"))
    bend = int(re.findall(r"C\S+ \S+ \S+ \S+ (\d+) ", passing)[0])
    box = drawn.boxes["b"]
    assert bend < box.x or bend > box.x + box.width


def test_a_circle_is_drawn_from_its_first_box_down() -> None:
    """The arrow back begins above its box, and ends below the first one, beside the arrow down; a loop is at the
    right."""
    drawn = layout_of("a>b", "b>a", "b>b")

    assert [["a"], ["b"]] == rows_of(drawn)
    down, back, loop = [[int(number) for number in re.findall(r"\d+", arrow.path)] for arrow in drawn.arrows]
    assert down[1] < down[-1]
    assert back[1] > back[-1]
    assert down[0] != back[-2]
    assert loop[0] == drawn.boxes["b"].x + drawn.boxes["b"].width
    assert max(loop[::2]) < drawn.width


def test_a_picture_of_many_boxes_has_arrows_without_bends() -> None:
    """A picture of many boxes has every arrow, drawn without bends because finding them would take too long."""
    names = [f"n{number}" for number in range(120)]
    arrows = [*pairwise(names), *((names[0], name) for name in names[2:])]

    drawn = arrange(dict.fromkeys(names, 100), arrows)

    assert len(arrows) == len(drawn.arrows)
    assert 1 == drawn.arrows[-1].path.count("C")


def test_nothing_is_a_picture_too() -> None:
    """An empty graph has no box, and no error."""
    assert {} == arrange({}, []).boxes


def middles_of(drawn: GraphLayout) -> dict[str, float]:
    """The middle of each box, from left to right."""
    return {name: box.x + box.width / 2 for name, box in drawn.boxes.items()}


def test_a_box_stands_in_the_middle_below_those_that_lead_to_it() -> None:
    """A box with two boxes above it stands between them, however wide they are."""
    arrows = [("a", "c"), ("b", "c")]
    middle = middles_of(arrange({"a": 100, "b": 240, "c": 100}, arrows))

    assert abs(middle["c"] - (middle["a"] + middle["b"]) / 2) <= 1


def test_an_arrow_that_is_almost_straight_is_drawn_straight() -> None:
    """A box stands exactly below the only one that leads to it, if it is near that place anyway."""
    arrows = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]
    drawn = arrange({"a": 160, "b": 160, "c": 60, "d": 110}, arrows)

    (path,) = [arrow.path for arrow in drawn.arrows if arrow.end == "d"]
    assert "C" not in path
    assert middles_of(drawn)["c"] == middles_of(drawn)["d"]


def test_parts_that_no_arrow_connects_stand_side_by_side() -> None:
    """Each part begins where the one before it ends, also a part whose boxes are found from its last one."""
    drawn = layout_of("a>b", "c>d", "d>e", "x>b")
    left = [drawn.boxes[name] for name in ("a", "b", "x")]
    right = [drawn.boxes[name] for name in ("c", "d", "e")]

    assert min(box.x for box in right) - max(box.x + box.width for box in left) == GAP_X
    assert min(box.x for box in left) == EDGE
