"""How items become lines of a stream: packed, through the codecs, as a blob if they are large, and sealed."""

from __future__ import annotations

from outlive._kernel.journal.packing import Packer, inbox_mark
from outlive._kernel.journal.stream import Source as LineSource
from outlive._kernel.journal.stream import array_of, seal_items, seal_source
from outlive._kernel.model import Limits, Run
from outlive._kernel.model.payload import Blob
from outlive._kernel.replay.command import Emit
from outlive._kernel.runtime.tree.emitter import ItemSource
from outlive._kernel.store.streams import StreamLine, StreamLines
from outlive.errors.store import StreamFullError

LINE_BYTES_MAX = 16 * 1024
"""Items beyond this begin another line; an item that is larger is a line of its own."""


def lines_of(items: list[bytes], source: ItemSource, packer: Packer, blobs: list[Blob]) -> list[StreamLine]:
    """The lines of items that were emitted one after the other; what they need is added to `blobs`.

    Raises:
        UnserialisableError: a payload codec failed.
    """
    lines: list[StreamLine] = []
    part: list[bytes] = []
    size = 0
    for item in items:
        if part and size + len(item) > LINE_BYTES_MAX:
            lines.append(line_of(part, source, packer, blobs))
            part, size = [], 0
        part.append(item)
        size += len(item)
    if part:
        lines.append(line_of(part, source, packer, blobs))
    return lines


def line_of(
    items: list[bytes], source: ItemSource, packer: Packer, blobs: list[Blob], *, number: int = 0
) -> StreamLine:
    """One line.

    Raises:
        UnserialisableError: a payload codec failed. PayloadTooLargeError: the items are too large.
    """
    # By name, as inbox: the stream goes on with the next generation of the run, which is another tree.
    payload, blob = packer.pack(array_of(items), "items of a stream", of=inbox_mark(source.root_id))
    if blob is not None:
        blobs.append(blob)
    body, head = seal_items(payload), seal_source(LineSource(source.call, source.attempt, source.epoch))
    size = len(body) + (len(blob.data) if blob is not None else 0)
    return StreamLine(body, len(items), head, size, number)


def emitted(command: Emit, run: Run, root_id: str, packer: Packer, blobs: list[Blob], limits: Limits) -> StreamLines:
    """The lines of an item that a workflow emits, for the next change.

    Raises:
        StreamFullError: the stream is full. UnserialisableError, PayloadTooLargeError: as `line_of`.
    """
    if command.items > limits.stream_items_max or command.bytes > limits.stream_bytes_max:
        raise StreamFullError(
            run.id,
            command.stream,
            streams_max=limits.streams_max,
            items_max=limits.stream_items_max,
            bytes_max=limits.stream_bytes_max,
        )
    line = line_of([command.data], ItemSource(root_id), packer, blobs, number=command.number)
    return StreamLines(run=command.run, name=command.stream, lines=(line,))
