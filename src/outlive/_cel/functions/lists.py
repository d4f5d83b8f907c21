"""Functions of lists and maps."""

from __future__ import annotations

from typing import Any

from outlive._cel.errors import ExpressionError
from outlive._cel.functions.arguments import as_list, as_map, as_text, as_whole, bounds
from outlive._cel.functions.table import Table, element, same
from outlive._cel.types import ANY, LIST, MAP, NUMBER, STRING
from outlive._cel.values import CHARACTERS_PER_FUEL, DATA_DEPTH_MAX, Frame, key_of, less, shown

_functions = Table()
FUNCTIONS = _functions.named


def sorted_by(frame: Frame, items: list[Any], keys: list[Any]) -> list[Any]:
    """The items in the order of their keys; items with equal keys keep theirs."""
    frame.items(len(items))
    if len(kinds := {type(key) for key in keys}) > 1 or not kinds <= {int, float, str, bool}:
        for key in keys:
            less(frame, keys[0], key)  # Refuses the first that has no order with it.
    if kinds == {str}:
        # A comparison may look at all of a text, and each is compared about so often.
        frame.spend(sum(map(len, keys)) * len(keys).bit_length() // CHARACTERS_PER_FUEL)
    return [items[number] for number in sorted(range(len(items)), key=keys.__getitem__)]


@_functions.add("list.sort()", "in order; numbers, texts or bools", LIST(), gives=same)
def _sort(frame: Frame, items: Any) -> list[Any]:
    return sorted_by(frame, as_list(items), items)


@_functions.add("list.distinct()", "each value once, in the order of their first place", LIST(), gives=same)
def _distinct(frame: Frame, items: Any) -> list[Any]:
    frame.items(len(as_list(items)))
    seen = set()
    found = []
    for item in items:
        key = key_of(frame, item)
        if key not in seen:
            seen.add(key)
            found.append(item)
    return found


@_functions.add(
    "list.flatten(levels)",
    "lists in the list become their elements; one level unless given",
    LIST(),
    NUMBER,
    gives=LIST(),
    least=1,
)
def _flatten(frame: Frame, items: Any, depth: Any = 1) -> list[Any]:
    levels = as_whole(depth)
    if not 0 <= levels <= DATA_DEPTH_MAX:
        raise ExpressionError(f"it flattens 0 to {DATA_DEPTH_MAX} levels, and this is {levels}")
    found = as_list(items)
    for _ in range(levels):
        frame.items(sum(len(item) if type(item) is list else 1 for item in found))
        if not any(type(item) is list for item in found):
            break
        found = [inner for item in found for inner in (item if type(item) is list else [item])]
    return found


@_functions.add(
    "range(end) or range(first, end)",
    "integers from 0 or first to end - 1",
    NUMBER,
    NUMBER,
    gives=LIST(NUMBER),
    least=1,
)
def _range(frame: Frame, first: Any, end: Any = None) -> list[int]:
    start, stop = (0, as_whole(first)) if end is None else (as_whole(first), as_whole(end))
    frame.items(max(0, stop - start))
    return list(range(start, stop))


@_functions.add("list.slice(first, end)", "elements first to end - 1", LIST(), NUMBER, NUMBER, gives=same, least=2)
def _slice(frame: Frame, items: Any, first: Any, end: Any = None) -> list[Any]:
    start, stop = bounds(len(as_list(items)), first, end)
    frame.items(stop - start)
    return as_list(items)[start:stop]


@_functions.add("list.first()", "the first element, or null", LIST(), gives=element)
def _first(frame: Frame, items: Any) -> Any:
    return items[0] if as_list(items) else None


@_functions.add("list.last()", "the last element, or null", LIST(), gives=element)
def _last(frame: Frame, items: Any) -> Any:
    return items[-1] if as_list(items) else None


@_functions.add("zip(list, list)", "pairs `[a, b]` of two lists of one length", LIST(), LIST(), gives=LIST(LIST()))
def _zip(frame: Frame, left: Any, right: Any) -> list[Any]:
    if len(as_list(left)) != len(as_list(right)):
        raise ExpressionError(f"the lists have {len(left)} and {len(right)} elements")
    frame.items(len(left) * 2)
    return [[a, b] for a, b in zip(left, right, strict=True)]


@_functions.add("map.keys()", "the names of the fields, in their order", MAP(), gives=LIST(STRING))
def _keys(frame: Frame, value: Any) -> list[str]:
    frame.items(len(as_map(value)))
    return list(value)


@_functions.add("map.values()", "the values of the fields, in their order", MAP(), gives=LIST())
def _values(frame: Frame, value: Any) -> list[Any]:
    frame.items(len(as_map(value)))
    return list(value.values())


@_functions.add(
    "map.entries()",
    '`{"key": ..., "value": ...}` for each field',
    MAP(),
    gives=LIST(MAP({"key": STRING, "value": ANY})),
)
def _entries(frame: Frame, value: Any) -> list[Any]:
    frame.items(len(as_map(value)) * 2)
    return [{"key": key, "value": each} for key, each in value.items()]


@_functions.add("fromEntries(list)", "a map of what `entries` or `zip` gives", LIST(), gives=MAP())
def _from_entries(frame: Frame, entries: Any) -> dict[str, Any]:
    frame.items(len(as_list(entries)))
    made = {}
    for entry in entries:
        if type(entry) is list and len(entry) == 2:
            key, value = entry
        elif type(entry) is dict and "key" in entry and "value" in entry:
            key, value = entry["key"], entry["value"]
        else:
            raise ExpressionError(
                f'an entry is {{"key": ..., "value": ...}} or [key, value], and this is {shown(entry)}'
            )
        made[as_text(key)] = value
    return made


@_functions.add("merge(map, map)", "all fields; of two with one name the later", MAP(), gives=MAP(), most=100)
def _merge(frame: Frame, *maps: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for each in maps:
        frame.items(len(as_map(each)))
        made.update(each)
    return made
