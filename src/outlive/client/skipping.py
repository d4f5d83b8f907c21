"""Asking for a step to be skipped: a wish in the inbox of a parked run, and one to go on, in one transaction."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from outlive._journal.packing import Packer, mail_mark
from outlive._model import Run, RunStatus
from outlive._store.contract import Message, MessageKind
from outlive.client.message_key import key_of_skip
from outlive.client.post import Post, codec_of_value
from outlive.errors import RunFinishedError, RunNotParkedError


async def skip_step(run: Run, root: Run, *, call: str | None, result: Any, at: int, packer: Packer, post: Post) -> None:
    """Send both. See `Engine.skip_step`."""
    if root.status is not RunStatus.PARKED:
        raise RunNotParkedError(root.id, root.status.value)
    if run.status.is_terminal:
        raise RunFinishedError(run.id, run.status.value)
    payload = blob = None
    if result is not UNSET:
        what = f"the result given for a step of run {run.id}"
        payload, blob = packer.pack(codec_of_value(result).encode(result, what), what, of=mail_mark(run.id))
    wish = Message(
        run_id=run.id,
        kind=MessageKind.SKIP,
        at=at,
        name=call or "",
        key=key_of_skip(run.number, nonce=root.nonce, epoch=root.epoch, call=call or ""),
        payload=payload,
        blobs=(blob,) if blob else (),
    )
    # The wish first: if only one of the two finds room in the inbox, the run must not go on without it.
    await post.deliver(wish, then=Message(run_id=root.id, kind=MessageKind.RESUME, at=at))
