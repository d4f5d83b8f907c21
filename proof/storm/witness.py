"""The witness: a process that writes down what others tell it, and has no part in anything else.

    python -m proof.storm.witness SOCKET FILE

Steps can write what they do to a file of their own; but then the record of an effect hangs on the process, the disk and
the limits of the very worker that is tormented. A witness shares none of that. It takes lines on a Unix socket, appends
each to its file, and says so: when `write` returns, the line is there, whatever happens to the process that wrote it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import msgspec

from outlive.testing.child_process import say, until_asked_to_stop
from outlive.testing.line_file import append, encode

SCHEME = "unix:"
ANSWER_SECONDS_MAX = 60.0
_HEARD = b"."


def write(place: str, line: msgspec.Struct) -> None:
    """Write one line to a file, or to the witness at an address; it is there when this returns."""
    if not place.startswith(SCHEME):
        append(place, line)
        return
    # A connection for each line: nothing is shared between threads, forks and loops.
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(ANSWER_SECONDS_MAX)
        wire.connect(place.removeprefix(SCHEME))
        wire.sendall(encode(line) + b"\n")
        if wire.recv(1) != _HEARD:
            raise ConnectionError(f"the witness at {place} is gone")


async def serve(path: str, file: Path) -> None:
    """Hear all processes until asked to stop."""
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # A line that was cut off by a kill has not been said.
            while (line := await reader.readline()).endswith(b"\n"):
                os.write(out, line)
                writer.write(_HEARD)
        except ConnectionError:
            """The process that spoke was killed before it was answered."""
        finally:
            writer.close()

    server = await asyncio.start_unix_server(hear, path)
    say("listening")
    await until_asked_to_stop()
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
