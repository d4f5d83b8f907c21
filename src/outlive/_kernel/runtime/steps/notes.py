"""Notes about the attempts that run, for reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from outlive._kernel.journal.recorded import RECORDED_BYTES_MAX, recorded
from outlive._kernel.journal.redaction import Redaction
from outlive._kernel.model import Payload
from outlive._kernel.model.policy import NO_RETRY
from outlive._kernel.model.under_way import ARGUMENTS_BYTES_MAX, FAILURE_CHARACTERS_MAX, StepNote
from outlive._kernel.replay.call import StepCall
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive._kernel.runtime.tree.live import LiveTree
from outlive.errors import OutliveError


class AttemptNotes:
    """Tells of the attempts that run: see `Source`. An attempt that lasts is packed once; what its step says of itself
    with heartbeats is added each time.

    Args:
        under_way: the attempts that run, in the order in which they began.
    """

    def __init__(self, under_way: Mapping[Attempt, LiveTree]) -> None:
        self._under_way = under_way
        self._packed: dict[Attempt, StepNote] = {}

    def __call__(self, *, until_at: int, is_stored: bool, root_id: str = "") -> Iterator[StepNote]:
        """See `Source`."""
        self._packed = {attempt: note for attempt, note in self._packed.items() if attempt in self._under_way}
        for attempt, live in self._under_way.items():
            if attempt.began_at > until_at:
                break
            if attempt.is_wanted and root_id in ("", live.id):
                yield self._packed_note(live, attempt) if is_stored else _note_of(live, attempt, is_stored=False)

    def _packed_note(self, live: LiveTree, attempt: Attempt) -> StepNote:
        note = self._packed.get(attempt)
        if note is None:
            note = self._packed[attempt] = _note_of(live, attempt, is_stored=True)
        progress = _progress(live, attempt, is_stored=True)
        return msgspec.structs.replace(note, heartbeat_at=attempt.heartbeat_at, progress=progress)


def _note_of(live: LiveTree, attempt: Attempt, *, is_stored: bool) -> StepNote:
    """An attempt that runs. What is stored is packed as the values of its run are, and left out if it is large."""
    command = attempt.command
    retry = command.options.retry or NO_RETRY
    call = live.execution.calls.get((command.run, command.call))
    earlier = call.earlier if isinstance(call, StepCall) else []
    return StepNote(
        root=live.id,
        run=command.run,
        call=command.call,
        name=command.step.name,
        attempt=command.attempt,
        attempts_max=retry.attempts,
        since_at=attempt.began_at,
        heartbeat_at=attempt.heartbeat_at,
        progress=_progress(live, attempt, is_stored=is_stored),
        failure=_failure(earlier[-1]) if earlier else "",
        arguments=_arguments(live, attempt, is_stored=is_stored),
    )


def _progress(live: LiveTree, attempt: Attempt, *, is_stored: bool) -> Payload | None:
    return _value(live, attempt.reported or attempt.command.progress, is_stored=is_stored)


def _failure(text: str) -> str:
    """How an attempt has failed, without its number."""
    said = text.partition(": ")[2].strip()
    return said if len(said) <= FAILURE_CHARACTERS_MAX else f"{said[: FAILURE_CHARACTERS_MAX - 3]}..."


def _arguments(live: LiveTree, attempt: Attempt, *, is_stored: bool) -> Payload | None:
    command = attempt.command
    if is_stored and len(command.arguments) > ARGUMENTS_BYTES_MAX:
        return None
    try:
        data = command.arguments_for_people()
        if command.step.shown is not None:  # A whole conversation would be left out of the cell.
            hidden = live.execution.redaction or Redaction()
            data = recorded(data, hidden, bytes_max=ARGUMENTS_BYTES_MAX if is_stored else RECORDED_BYTES_MAX)
    except Exception:  # The code that shows them may raise anything.
        return None
    return _value(live, data, is_stored=is_stored)


def _value(live: LiveTree, data: bytes | None, *, is_stored: bool) -> Payload | None:
    if data is None:
        return None
    if not is_stored and not live.payloads.packer.refuses_plain:
        return Payload(v=msgspec.Raw(data))
    if len(data) > 2 * ARGUMENTS_BYTES_MAX:
        return None
    try:
        payload, blob = live.payloads.packer.pack(data, "what is under way", of=live.payloads.owner)
    except OutliveError:  # A codec of the user's that raises: its run will hear of it.
        return None
    return payload if blob is None else None
