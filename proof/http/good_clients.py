"""Clients that behave, in a process of their own: what others do to the server must not show in what these get.

`python -m proof.http.good_clients PORT` asks for a page of runs at a fixed rate over several connections that stay
open. A request that is due while the one before it is under way is sent when that is answered, and its time is counted
from when it was due. For each line on standard input the program writes what came since the line before, as JSON.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections import Counter

import msgspec

CONNECTIONS = 10
RATE = 200.0
"""Requests a second, of all of them together."""
_REQUEST = b"GET /api/v1/runs?limit=10 HTTP/1.1\r\nhost: localhost\r\n\r\n"
_LENGTH = re.compile(rb"content-length: (\d+)")
_INTERVAL = CONNECTIONS / RATE


class Served(msgspec.Struct):
    """What the clients got in a while."""

    times: list[float]
    """Of each answer, in seconds from when its request was due."""
    seconds: float
    failures: dict[str, int]

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.times) / self.seconds

    def percentile_ms(self, part: float) -> float:
        """The time within which this part of the answers came."""
        return sorted(self.times)[int(len(self.times) * part)] * 1000 if self.times else 0.0


class Clients:
    """All of them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._times: list[float] = []
        self._failures: Counter[str] = Counter()
        self._since = time.monotonic()

    async def run(self) -> None:
        """Ask, until cancelled."""
        began = time.monotonic()
        shifts = [number * _INTERVAL / CONNECTIONS for number in range(CONNECTIONS)]
        await asyncio.gather(*[self._ask_on(began + shift) for shift in shifts])

    async def _ask_on(self, due: float) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    while True:
                        await asyncio.sleep(due - time.monotonic())
                        await self._ask(reader, writer)
                        self._times.append(time.monotonic() - due)
                        # Clients that were late by more than a second do not make up for it.
                        due = max(due + _INTERVAL, time.monotonic() - 1.0)
                finally:
                    writer.close()
            except (OSError, asyncio.IncompleteReadError) as error:
                self._failures[type(error).__name__] += 1
                due = time.monotonic() + _INTERVAL

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        await reader.readexactly(int(length[1]) if length else 0)
        if not head.startswith(b"HTTP/1.1 200 "):
            self._failures[head.partition(b"\r\n")[0].decode("latin-1")] += 1

    def take(self) -> Served:
        """What came since the last call."""
        times, self._times = self._times, []
        failures, self._failures = dict(self._failures), Counter()
        now = time.monotonic()
        seconds, self._since = now - self._since, now
        return Served(times, seconds, failures)


class GoodClients:
    """The process, for the program that started it."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-m", "proof.http.good_clients", str(port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> GoodClients:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    async def take(self) -> Served:
        """What the clients got since the last call."""
        return await asyncio.to_thread(self._take)

    def _take(self) -> Served:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(b"\n")
        stdin.flush()
        return msgspec.json.decode(stdout.readline(), type=Served)


async def main() -> None:
    """Ask until standard input ends."""
    clients = Clients(int(sys.argv[1]))
    asking = asyncio.ensure_future(clients.run())
    while await asyncio.to_thread(sys.stdin.readline):
        print(msgspec.json.encode(clients.take()).decode(), flush=True)
    asking.cancel()


if __name__ == "__main__":
    asyncio.run(main())
