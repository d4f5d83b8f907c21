"""Checkpoints to rows and back.

The format, byte by byte
------------------------
A row of a run is `(sequence, format, crc, body, output)`:

* `sequence`: 0 to 2**63 - 1; unique in the run, gaps allowed.
* `format`: the version of this layout; this release writes and reads `FORMAT`.
* `crc`: CRC-32 (zlib) over the run's id in UTF-8, the ASCII text `/<sequence>/<format>/<size>/`, `body` and `output`,
  in this order; `size` is the number of bytes of `output`, -1 for none. A row that was flipped, cut, renumbered or
  brought from another run does not verify, and neither does one whose empty output became none.
* `body`: one JSON object, UTF-8: `state`, and if they have something to say `task`, `kind`, `version`, `token` and
  `via`. What is absent has its default: a row from before there were versions has version 0. Keys that this release
  does not know are passed over.
* `output`: the user's bytes as they are, or what the codecs named in `via` made of them; NULL for none.

The output lies in the row however large it is, and never in a blob: equal blobs of several owners are one, so
clearing a run could not know whether it may remove them.

`token` is random and new for each append. By it a row that is there already is known to be one's own, whose answer was
lost, or one with the same content that another writer wrote.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from outlive._kernel.model.checkpoint import CheckpointKind
from outlive.errors.store import CorruptCheckpointError, FormatTooNewError

FORMAT = 1

CheckpointRow = tuple[int, int, int, bytes, bytes | None]
"""(sequence, format, crc, body, output)."""


class CheckpointBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of the row of a checkpoint."""

    state: str
    task: str = ""
    kind: str = CheckpointKind.STATE.value
    """The kind as it was written, because a later release may have more kinds."""
    version: int = 0
    token: int = 0
    via: tuple[str, ...] = ()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(CheckpointBody).decode


def seal_checkpoint(run_id: str, sequence: int, body: CheckpointBody, output: bytes | None) -> CheckpointRow:
    """Write a checkpoint as a row of this run."""
    made = _encode(body)
    return sequence, FORMAT, checkpoint_checksum(run_id, sequence, FORMAT, made, output), made, output


def open_checkpoint(run_id: str, row: CheckpointRow) -> CheckpointBody:
    """Read the body of a row, or say exactly what is wrong with it.

    Raises:
        CorruptCheckpointError: the bytes differ from what was written.
        FormatTooNewError: a later release wrote it.
    """
    sequence, format_, crc, body, output = row
    if crc != checkpoint_checksum(run_id, sequence, format_, body, output):
        raise CorruptCheckpointError(run_id, sequence, "checksum does not match")
    if format_ != FORMAT:
        raise FormatTooNewError(run_id, sequence, f"a checkpoint of format {format_}, known up to {FORMAT}")
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        # The checksum holds, so these are the bytes that were written: a field of a later release.
        raise FormatTooNewError(run_id, sequence, f"a checkpoint: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptCheckpointError(run_id, sequence, str(error)) from error


def checkpoint_checksum(run_id: str, sequence: int, format_: int, body: bytes, output: bytes | None) -> int:
    """The `crc` of a row."""
    size = -1 if output is None else len(output)
    head = f"{run_id}/{sequence}/{format_}/{size}/".encode()
    return crc32(output or b"", crc32(body, crc32(head)))
