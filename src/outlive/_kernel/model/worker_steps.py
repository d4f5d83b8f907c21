"""The steps that workers run: which ones, in the row of a session, and what they take and give, in cells.

The row of a session ends with its worker, so the row says which steps there are. What they take and give is the same
for all workers that run a step, and lies in cells that all of them share. Workers of Python describe their steps in one
cell when they start. A remote worker says with each claim what it can do; the cell of its queue has that until some
time after the claim, because a remote worker has no session between two tasks. Its schemas come from strangers, so they
are bounded in size, depth and number, and are shown and compared with documents, but no value is checked by them.

Cells are stored, so fields may be added to these values, and none may change its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from outlive.errors import ArgumentTypeError, InvalidArgumentError

MARK = "outlive.steps:"
STEPS_CELL = "outlive.steps"
REMOTE_STEPS_CELLS = "outlive.remote-steps/"
"""The prefix of the names of the cells with the steps of remote workers; the queue follows."""
SCHEMA_BYTES_MAX = 8_192
"""The size of one schema of a remote worker."""
SCHEMA_LEVELS_MAX = 20
SCHEMA_PARTS_MAX = 500
"""Maps and lists in one schema of a remote worker."""
STEPS_OF_QUEUE_MAX = 200
"""Steps of one queue that are listed; others can be claimed."""
BYTES_OF_QUEUE_MAX = 131_072
"""The size of all schemas of the steps of one queue; steps beyond it are listed without theirs."""
BYTES_OF_PYTHON_MAX = 1_048_576
"""The size of all schemas of steps of Python; steps beyond it are listed without theirs."""


def steps_mark(names: Iterable[str]) -> str:
    """The entry in a worker's list of definitions that says which steps it runs."""
    return f"{MARK}{','.join(sorted(names))}"


def is_steps_mark(definition: str) -> bool:
    """Whether an entry in a worker's list of definitions says which steps it runs."""
    return definition.startswith(MARK)


def steps_in(definitions: Iterable[str]) -> Sequence[str]:
    """The steps that a worker with these definitions runs."""
    said = next((each for each in definitions if is_steps_mark(each)), MARK)
    return said.removeprefix(MARK).split(",") if len(said) > len(MARK) else ()


class StepShape(msgspec.Struct, frozen=True, omit_defaults=True):
    """The JSON Schemas of a step."""

    arguments: dict[str, Any] = {}
    """The schema of its arguments by name, or of the input of a remote step; empty if nothing is known."""
    result: dict[str, Any] = {}


class RemoteShape(StepShape, frozen=True, omit_defaults=True, kw_only=True):
    """A step of remote workers, as one of them has described it."""

    until_at: int = 0
    """Until when it is listed though no session has it: a worker has claimed, or has been waiting, shortly before."""


StepShapes = dict[str, StepShape]
RemoteShapes = dict[str, RemoteShape]
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StepShapes).decode
_decode_remote = msgspec.json.Decoder(RemoteShapes).decode


def shapes_in(held: bytes | None) -> StepShapes:
    """The steps that workers of Python have described; none if a later release has written the cell, or if it is
    damaged: workers write it again."""
    try:
        return {} if held is None else _decode(held)
    except msgspec.MsgspecError:
        return {}


def remote_shapes_in(held: bytes | None) -> RemoteShapes:
    """The steps that remote workers of a queue have described; none as above."""
    try:
        return {} if held is None else _decode_remote(held)
    except msgspec.MsgspecError:
        return {}


def with_own(held: bytes | None, own: StepShapes, live: Iterable[str]) -> bytes | None:
    """The content of the cell of steps of Python when a worker adds its own. Steps that no live worker has go."""
    before = shapes_in(held)
    kept = {name: before[name] for name in live if name in before}
    merged = _within(kept | own)
    return held if merged == before else _encode(merged) if merged else None


def _within(shapes: StepShapes) -> StepShapes:
    left = BYTES_OF_PYTHON_MAX
    found: StepShapes = {}
    for name, shape in sorted(shapes.items()):
        left -= len(_encode(shape))
        found[name] = shape if left >= 0 else StepShape()
    return found


def with_remote(held: bytes | None, said: Mapping[str, StepShape | None], *, until_at: int, now_at: int) -> bytes:
    """The content of the cell of a queue when a remote worker says what it can do until this instant.

    A step without schemas keeps the schemas that another worker has given. What has run out makes room; beyond the
    bounds, schemas and then new steps are left out.
    """
    shapes = {name: shape for name, shape in remote_shapes_in(held).items() if shape.until_at > now_at or name in said}
    size = sum(len(_encode(shape)) for shape in shapes.values())
    for name, shape in said.items():
        before = shapes.get(name)
        wanted = before or RemoteShape() if shape is None else RemoteShape(shape.arguments, shape.result)
        until = until_at if before is None else max(until_at, before.until_at)
        wanted = msgspec.structs.replace(wanted, until_at=until)
        if before is None and len(shapes) >= STEPS_OF_QUEUE_MAX:
            continue
        held_bytes = 0 if before is None else len(_encode(before))
        if size - held_bytes + len(_encode(wanted)) > BYTES_OF_QUEUE_MAX:
            wanted = RemoteShape(until_at=until)
        size += len(_encode(wanted)) - held_bytes
        shapes[name] = wanted
    return _encode(shapes)


def left_of_remote_steps(data: bytes, now_at: int) -> bytes | None:
    """The content of such a cell that still counts; None if nothing does."""
    shapes = remote_shapes_in(data)
    kept = {name: shape for name, shape in shapes.items() if shape.until_at > now_at}
    return (data if len(kept) == len(shapes) else _encode(kept)) if kept else None


def schema_of_stranger(where: str, name: str, schema: object) -> dict[str, Any]:
    """A JSON Schema that a remote worker says; nothing is looked at in it but its size.

    Raises:
        ArgumentTypeError: it is not an object. InvalidArgumentError: it is too large, or too deep.
    """
    if schema is None:
        return {}
    if not isinstance(schema, dict):
        wanted = "give JSON Schemas, for example {'input': {'type': 'object'}, 'output': {'type': 'number'}}"
        raise ArgumentTypeError(where, name, schema, wanted)
    reason = _too_large(schema)
    if reason:
        wanted = f"{reason}; leave out what people and documents need not know, or the whole schema"
        raise InvalidArgumentError(where, name, "a schema", wanted)
    return schema


def _too_large(schema: dict[str, Any]) -> str:
    level: list[Any] = [schema]
    parts = 0
    for _ in range(SCHEMA_LEVELS_MAX):
        parts += len(level)
        if parts > SCHEMA_PARTS_MAX:
            return f"it has more than {SCHEMA_PARTS_MAX} maps and lists"
        inner = [each for part in level for each in (part.values() if isinstance(part, dict) else part)]
        level = [each for each in inner if isinstance(each, dict | list)]
        if not level:
            size = len(_encode(schema))
            return f"it has {size:,} bytes, and {SCHEMA_BYTES_MAX:,} are the most" if size > SCHEMA_BYTES_MAX else ""
    return f"it is more than {SCHEMA_LEVELS_MAX} levels deep"
