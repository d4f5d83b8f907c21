"""Blobs of flows: data known by the SHA-256 of its bytes, in a folder that the operator names.

The store of runs has blobs of its own, for payloads, and deletes them with the last run that refers to them. These are
for data that outlives runs and goes from one flow to another. A blob is one file: a line of JSON that says what it is,
and its bytes. It is written beside its place and moved there, so a reader finds a whole blob or none, and it is never
changed. What is read is checked against its name.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path

import msgspec

from outlive._platform import open_below
from outlive.errors.outside import BlobError

HEAD_BYTES_MAX = 4096
_ID = re.compile(r"[0-9a-f]{64}")


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The metadata of a blob."""

    size: int
    type: str
    filename: str | None = None


def id_of(data: bytes) -> str:
    """The id of a blob: the SHA-256 of its bytes."""
    return hashlib.sha256(data).hexdigest()


def put(folder: Path, data: bytes, *, type: str, filename: str | None = None) -> str:  # noqa: A002
    """Store a blob, unless it is there; its id. What the first one said of it stays.

    Raises:
        BlobError: it cannot be written.
    """
    id = id_of(data)
    head = msgspec.json.encode(Head(size=len(data), type=type, filename=filename))
    if len(head) >= HEAD_BYTES_MAX:
        raise BlobError(f"blob {id}", "has a type or a file name that is too long")
    place = folder / id[:2] / id
    try:
        if place.exists():
            return id
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, written = tempfile.mkstemp(prefix=".new-", dir=place.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(head + b"\n" + data)
                file.flush()
                os.fsync(file.fileno())
            Path(written).replace(place)
        except BaseException:
            Path(written).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BlobError(f"blob {id}", f"cannot be written: {error}") from None
    return id


def get(folder: Path, id: str) -> tuple[Head, bytes] | None:
    """A blob, or None if there is none of this id.

    Raises:
        BlobError: it is damaged.
    """
    if not _ID.fullmatch(id):
        return None
    try:
        text = read_file(folder, [id[:2], id])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BlobError(f"blob {id}", f"cannot be read: {error}") from None
    line, _, data = text.partition(b"\n")
    try:
        head = msgspec.json.decode(line, type=Head)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BlobError(f"blob {id}", "is damaged: it does not say what it is") from None
    if head.size != len(data):
        raise BlobError(f"blob {id}", f"is damaged: it has {len(data)} bytes, and should have {head.size}")
    if id_of(data) != id:
        raise BlobError(f"blob {id}", "is damaged: its bytes have another hash")
    return head, data


def read_file(folder: Path, parts: list[str], *, bytes_max: int | None = None) -> bytes:
    """The bytes of a plain file below a folder.

    Raises:
        OSError: it cannot be opened, is not a plain file, or has more bytes.
    """
    with os.fdopen(open_below(folder, parts), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is not a plain file")
        data = file.read() if bytes_max is None else file.read(bytes_max + 1)
    if bytes_max is not None and len(data) > bytes_max:
        raise OSError(f"it is larger than {bytes_max} bytes")
    return data
