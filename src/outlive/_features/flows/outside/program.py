"""Programs that flows run: without a shell, in a group of processes of their own, bounded in time and output.

A program is killed with everything that it has started when its step is cancelled, has taken too long, or has written
more than it may. It gets no environment but what it is given and PATH: that of the worker has the worker's secrets.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from outlive._platform import kill_group
from outlive.errors.outside import ProgramError

READ_BYTES = 64 * 1024

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIDING = re.compile(
    # Where programs and libraries are found, and what every program loads before its own code.
    r"PATH|HOME|SHELL|LD_.*|DYLD_.*|GCONV_PATH|GLIBC_TUNABLES|MALLOC_.*|LOCPATH|NLSPATH|OPENSSL_.*|XDG_.*"
    # Shells.
    r"|ENV|BASH_.*|BASHOPTS|SHELLOPTS|PS[0-4]|PROMPT_COMMAND|IFS|CDPATH|GLOBIGNORE|ZDOTDIR|FPATH"
    # Languages: options, modules and agents that are loaded first.
    r"|NODE_.*|NPM_.*|ELECTRON_.*|PERL.*|PYTHON.*|PIP_.*|UV_.*|RUBY.*|GEM_.*|BUNDLE_.*|PHP.*|LUA_.*|R_.*|JULIA_.*"
    r"|.*JAVA_OPTIONS|JAVA_.*|JDK_.*|CLASSPATH|MAVEN_.*|GRADLE_.*|DOTNET_.*|CORECLR_.*|COR_.*|COMPLUS_.*|GO.*|CARGO.*|RUST.*"
    # Programs that they call, and where those find their settings.
    r"|GIT_.*|SSH_.*|DOCKER_.*|KUBECONFIG|MAKEFLAGS|MFLAGS|LESS.*|PAGER|EDITOR|VISUAL|BROWSER|.*_ASKPASS|.*_CONFIG_FILE"
    # Through whom they speak, and whom they believe.
    r"|.*_PROXY|SSL_CERT_.*|SSLKEYLOGFILE|.*_CA_BUNDLE|.*_EXTRA_CA_CERTS|HOSTALIASES|RES_OPTIONS|LOCALDOMAIN"
)
"""Variables that decide what runs, or to whom it speaks."""


def why_not_settable(variable: str) -> str:
    """Why no flow may set an environment variable of a program, whatever the operator says; "" if it may."""
    if not _VARIABLE.fullmatch(variable):
        return "is not the name of a variable"
    return "decides what a program runs, or to whom it speaks" if _DECIDING.fullmatch(variable.upper()) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program has ended."""

    code: int
    output: bytes
    errors: bytes
    is_cut: bool
    """Whether there was more output than is kept."""

    @property
    def streams(self) -> tuple[bytes, bytes]:
        """The output and the error output."""
        return self.output, self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run, with its limits."""

    name: str
    """For messages."""
    argv: Sequence[str]
    env: Mapping[str, str]
    folder: str | None = None
    seconds_max: float = 60.0
    bytes_max: int = 1024 * 1024
    """The limit for its output, and for its error output; the rest is read and dropped."""

    async def start(self, *, stderr: int, limit: int = READ_BYTES) -> asyncio.subprocess.Process:
        """Begin it; `limit` is how long a line may be that is read from it.

        Raises:
            ProgramError: it cannot begin.
        """
        if any("\0" in each for each in (*self.argv, *self.env, *self.env.values())):
            raise ProgramError(self.name, "cannot be given a NUL character")
        making = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *self.argv,
                env={"PATH": os.environ.get("PATH", os.defpath), **self.env},
                cwd=None if self.folder is None else Path(self.folder),
                start_new_session=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                limit=limit,
            )
        )
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            # It may have begun: asyncio would kill it alone, and not what it has started.
            with suppress(OSError):
                await kill(await making)
            raise
        except OSError as error:
            raise ProgramError(self.name, f"cannot begin: {error}") from None

    async def run(self, given: bytes = b"") -> Ended:
        """Run it to its end.

        Raises:
            ProgramError: it could not begin, or took too long.
        """
        process = await self.start(stderr=subprocess.PIPE)
        timeout = asyncio.timeout(self.seconds_max)
        try:
            async with timeout:
                assert process.stdout is not None
                assert process.stderr is not None
                output, errors, _ = await asyncio.gather(
                    _read(process.stdout, self.bytes_max), _read(process.stderr, self.bytes_max), _give(process, given)
                )
                code = await process.wait()
        except TimeoutError:
            if not timeout.expired():
                raise
            raise ProgramError(self.name, f"did not end within {self.seconds_max:g} s, and was killed") from None
        finally:
            await kill(process)
        return Ended(code=code, output=output[0], errors=errors[0], is_cut=output[1] or errors[1])


async def kill(process: asyncio.subprocess.Process) -> None:
    """Kill a program and what it has started, and wait until it is gone."""
    if not kill_group(process.pid):
        with suppress(ProcessLookupError):
            process.kill()
    # Its pipes first: one that something else has kept open would be waited for.
    process._transport.close()  # type: ignore[attr-defined]
    await process.wait()


async def _read(stream: asyncio.StreamReader, bytes_max: int) -> tuple[bytes, bool]:
    kept, is_cut = bytearray(), False
    while part := await stream.read(READ_BYTES):
        room = bytes_max - len(kept)
        kept += part[:room]
        is_cut = is_cut or len(part) > room
    return bytes(kept), is_cut


async def _give(process: asyncio.subprocess.Process, given: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # It need not read what it is given.
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()
