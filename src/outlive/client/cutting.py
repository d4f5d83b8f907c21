"""Rows of a batch, cut into chunks as they come.

Rows may be any iterable, sync or async, of any length: no more than one chunk of them is in memory at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any

import msgspec

from outlive._define.batch import Chunk
from outlive._journal.packing import Packer, mail_mark
from outlive._replay.command import StepSpec, WorkflowSpec
from outlive._store.contract import Store

CHUNK_ITEMS_MAX = 256
CHUNK_BYTES_MAX = 1024 * 1024
"""A chunk is in memory as a whole while it runs."""

Rows = Iterable[Any] | AsyncIterable[Any]


async def cut(item: StepSpec | WorkflowSpec, rows: Rows, *, batch_id: str, packer: Packer, store: Store) -> list[Chunk]:
    """Store the rows in chunks, each row as the arguments of one item; where the chunks lie."""
    chunks: list[Chunk] = []
    waiting: list[bytes] = []
    first = size = 0

    async def store_chunk() -> None:
        data = b"[%d,[%s]]" % (first, b",".join(waiting))
        what = f"rows {first} to {first + len(waiting) - 1}"
        payload, blob = packer.pack(data, what, of=mail_mark(batch_id), as_blob=True)
        assert blob is not None
        await store.put_blobs([blob])
        chunks.append(Chunk(msgspec.json.encode(payload).decode(), len(waiting)))

    async for row in _each(rows):
        arguments = item.signature.encode((row,), {})
        if waiting and (len(waiting) >= CHUNK_ITEMS_MAX or size + len(arguments) > CHUNK_BYTES_MAX):
            await store_chunk()
            first, size = first + len(waiting), 0
            waiting.clear()
        waiting.append(arguments)
        size += len(arguments)
    if waiting:
        await store_chunk()
    return chunks


async def _each(rows: Rows) -> AsyncIterator[Any]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row
