"""`make malformed`: bad requests by the thousand, beside clients that behave.

A server of its own (`outlive serve`, on SQLite) gets requests that are malformed, oversized, slow or cut off, by plain
sockets, many at a time. Each has to be answered with a status from 400 to 499 that says what is wrong, or with nothing
if its sender went away first; none with one from 500 on. Meanwhile a few clients ask for runs at a steady pace: they
have to keep 90 % of the rate that they had before. The memory of the server has to stay where it was.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from proof.http.bad_requests import BadRequest, bad_request

AT_ONCE = 50
SLOW_AT_ONCE = 100
GOOD_CLIENTS = 5
GOOD_PAUSE_SECONDS = 0.05
"""Each of them asks 20 times a second at most."""
CALM_SECONDS = 5.0
ANSWER_SECONDS = 60.0
RATE_KEPT_MIN = 0.9
MEMORY_MAX_MB = 40.0
"""Bodies of 4 MB come and go by the dozen, and the allocator keeps some of their pages."""
QUIET_SECONDS = 2.0
_GOOD = b"GET /api/v1/runs?limit=10 HTTP/1.1\r\nhost: localhost\r\n\r\n"
_REASON = re.compile(rb'"error":"[^"]+"')


class Report(msgspec.Struct, kw_only=True):
    """What came of it."""

    requests: int
    answers: dict[str, int]
    calm_rate: float
    """Requests a second of the clients that behave, before."""
    rate: float
    """And meanwhile."""
    memory_mb: tuple[float, float, float]
    """Of the server: after a tenth of them, in the middle, at the end."""
    findings: list[str]


class Good:
    """Clients that behave."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.answers = 0
        self.failures: Counter[str] = Counter()

    async def run(self) -> None:
        """Ask, until cancelled."""
        await asyncio.gather(*[self._ask_on() for _ in range(GOOD_CLIENTS)])

    async def _ask_on(self) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                while True:
                    began = time.monotonic()
                    writer.write(_GOOD)
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(re.findall(rb"content-length: (\d+)", head)[0])
                    await reader.readexactly(length)
                    if not head.startswith(b"HTTP/1.1 200 "):
                        self.failures[head.partition(b"\r\n")[0].decode()] += 1
                    self.answers += 1
                    await asyncio.sleep(max(0.0, GOOD_PAUSE_SECONDS - (time.monotonic() - began)))
            except (OSError, asyncio.IncompleteReadError) as error:
                self.failures[type(error).__name__] += 1

    async def rate(self, seconds: float) -> float:
        """Answers a second from now on."""
        before, began = self.answers, time.monotonic()
        await asyncio.sleep(seconds)
        return (self.answers - before) / (time.monotonic() - began)


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int]]:
    """A server on a store of its own: its port, and the id of its process."""
    command = [sys.executable, "-m", "outlive.cli", "serve", "--port", "0", "--store", f"sqlite:{folder / 'runs.db'}"]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            yield int(re.findall(rb":(\d+)/", line)[0]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)


def memory_mb(pid: int) -> float:
    """How much memory a process has."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


async def send(port: int, bad: BadRequest) -> str:
    """Send a bad request as it wants to be sent; what became of it: a status, "closed", or "no answer"."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            reading = asyncio.ensure_future(_answer(reader))
            try:
                with suppress(ConnectionError):
                    await _send_parts(writer, bad, reading)
                return "went away" if bad.goes_away else _judged(await reading)
            finally:
                reading.cancel()
                writer.close()
    except TimeoutError:
        return "no answer"


async def _send_parts(writer: asyncio.StreamWriter, bad: BadRequest, reading: asyncio.Future[bytes]) -> None:
    """Send it, until it is answered."""
    for part in bad.parts:
        if reading.done():
            return
        writer.write(part)
        await writer.drain()
        if bad.is_slow:
            await asyncio.wait([reading], timeout=bad.pause_seconds)


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """The answer, or what came of it."""
    head = body = b""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.findall(rb"content-length: (\d+)", head)
        body = await reader.readexactly(int(length[0])) if length else b""
    return head + body


def _judged(answer: bytes) -> str:
    if not answer:
        return "closed"
    status = answer[9:12].decode("latin-1")
    if status.startswith("4") and _REASON.search(answer) is None:
        return f"{status} without a reason"
    return status


async def storm(port: int, pid: int, *, requests: int, seed: int) -> Report:
    """Send bad requests beside good ones."""
    good = Good(port)
    asking = asyncio.ensure_future(good.run())
    try:
        await good.rate(1.0)  # Connections are made, and what is loaded later is loaded.
        calm = await good.rate(CALM_SECONDS)
        answers: Counter[str] = Counter()
        findings: list[str] = []
        gates = {False: asyncio.Semaphore(AT_ONCE), True: asyncio.Semaphore(SLOW_AT_ONCE)}

        async def one(number: int) -> None:
            bad = bad_request(random.Random(f"{seed}/{number}"))
            async with gates[bad.is_slow]:
                outcome = await send(port, bad)
            answers[outcome] += 1
            if not bad.is_fit(outcome):
                findings.append(f"request {number} ({bad.kind}): {outcome}")

        began, before, memory = time.monotonic(), good.answers, []
        tenth = requests // 10
        for part in (range(tenth), range(tenth, 5 * tenth), range(5 * tenth, requests)):
            await asyncio.gather(*[one(number) for number in part])
            await asyncio.sleep(QUIET_SECONDS)
            memory.append(memory_mb(pid))
        rate = (good.answers - before) / (time.monotonic() - began)
    finally:
        asking.cancel()
    findings += [f"a client that behaves: {count} times {what}" for what, count in good.failures.items()]
    if rate < RATE_KEPT_MIN * calm:
        findings.append(f"clients that behave had {rate:.1f} answers a second, and {calm:.1f} before")
    if memory[2] - memory[0] > MEMORY_MAX_MB:
        findings.append(f"the server has {memory[2] - memory[0]:.1f} MB more than after the first tenth")
    return Report(
        requests=requests,
        answers=dict(sorted(answers.items())),
        calm_rate=calm,
        rate=rate,
        memory_mb=(memory[0], memory[1], memory[2]),
        findings=findings,
    )


def prove(*, requests: int, seed: int) -> Report:
    """The same, with a server of its own."""
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (port, pid):
        return asyncio.run(storm(port, pid, requests=requests, seed=seed))


def main() -> int:
    """Send the requests, and print what is found."""
    parser = argparse.ArgumentParser(prog="python -m proof.http.malformed", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    report = prove(requests=given.requests, seed=given.seed)
    for line in report.findings[:50]:
        print(line)
    answers = ", ".join(f"{count:,} {name}" for name, count in report.answers.items())
    first, middle, last = report.memory_mb
    print(
        f"{report.requests:,} bad requests: {len(report.findings)} findings ({answers}); good ones "
        f"{report.calm_rate:.1f}/s before and {report.rate:.1f}/s meanwhile; "
        f"memory {first:.1f}, {middle:.1f}, {last:.1f} MB"
    )
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
