"""The messages between `outlive dev` and its worker process: one JSON object in each line, over a socket.

The worker process speaks; all that it hears is one line, `GO`, and the end of the socket. The end means that it has to
stop, whether the other side wants that or is gone.
"""

from __future__ import annotations

import msgspec

GO = b"go\n"
"""To the worker process: begin to work."""


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The program was imported and the documents have no problem; the process waits for `GO`."""

    store: str
    redact: list[str]
    """The names of fields that the program's own engine hides."""
    workflows: list[str]
    """With the flows of the documents."""
    example: str
    """A command that starts a run of one of them; empty if there is none."""
    files: list[str]
    """The files that were imported, and the documents."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The program cannot be imported, or a document has a problem; the process ends."""

    error: str
    files: list[str]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """It works."""

    notes: list[str]
    """Notes for people, for example which flows were published."""


class Imported(msgspec.Struct, frozen=True, tag=True):
    """More files were imported while it worked."""

    files: list[str]


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """It has released all runs, and ends."""


Message = Loaded | Refused | Ready | Imported | Stopped

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Message).decode
