"""`make malformed`: bad requests by the thousand, beside clients that behave.

A server of its own (`outlive serve`, on either store) gets requests that are malformed, oversized or cut off, 150 a
second by plain sockets, while 200 connections send bodies byte by byte. Each has to be answered with a status from 400
to 499, or with nothing if its sender went away first; none with one from 500 on. What reaches the app says what is
wrong; what is not HTTP is refused by uvicorn, with its own words. (Slow heads, and heads without an end, are limited by
a reverse proxy, and are not sent.)

Clients that behave, in a process of their own (`good_clients`), ask for a page of runs 200 times a second over ten
connections: first alone, then beside the bad requests. They have to get 90 % of the answers a second that they got
alone. The memory of the server has to stay where it was after the first tenth.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from proof.http.bad_requests import BadRequest, bad_request, slow_request
from proof.http.good_clients import GoodClients, Served
from proof.http.place import add_store, new_store

BAD_RATE = 150.0
"""Bad requests a second, without those that are slow."""
SLOW_AT_ONCE = 200
WARM_SECONDS, CALM_SECONDS = 2.0, 8.0
ANSWER_SECONDS = 60.0
RATE_KEPT_MIN = 0.9
MEMORY_MAX_MB = 40.0
"""Bodies of 4 MB come and go by the dozen, and the allocator keeps some of their pages."""
QUIET_SECONDS = 2.0
_REASON = re.compile(rb'"code":"[^"]+"')
_NO_HTTP = b"\r\n\r\nInvalid HTTP request received."
"""How uvicorn refuses what no app sees."""


class Report(msgspec.Struct, kw_only=True):
    """What came of it."""

    requests: int
    slow: int
    """Those that came byte by byte, besides."""
    answers: dict[str, int]
    calm: Served
    """What the clients that behave got before."""
    beside: Served
    """And beside the bad requests."""
    cpu: tuple[float, float]
    """How much of a processor the server used: before, and beside the bad requests."""
    memory_mb: tuple[float, float, float]
    """Of the server: after a tenth of them, in the middle, at the end."""
    findings: list[str]
    """What is wrong with the answers and the memory, whatever else the machine does meanwhile."""

    @property
    def is_rate_kept(self) -> bool:
        """Whether the clients that behave had the rate that they have to have."""
        return self.kept >= RATE_KEPT_MIN

    @property
    def kept(self) -> float:
        """The part of their rate that the clients kept."""
        return self.beside.rate / self.calm.rate


@contextmanager
def server(url: str, folder: Path) -> Iterator[tuple[int, int]]:
    """A server on a store, which writes its log into a folder: its port, and the id of its process."""
    command = [sys.executable, "-m", "outlive.cli", "serve", "--port", "0", "--store", url]
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


def cpu_seconds(pid: int) -> float:
    """How much of the processors a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
                with suppress(ConnectionError):
                    await writer.wait_closed()
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
        body = await (reader.readexactly(int(length[0])) if length else reader.read())
    return head + body


def _judged(answer: bytes) -> str:
    if not answer:
        return "closed"
    status = answer[9:12].decode("latin-1")
    if answer.endswith(_NO_HTTP):
        return "no HTTP"
    if status.startswith("4") and _REASON.search(answer) is None:
        return f"{status} without a reason"
    return status


class Storm:
    """Bad requests to one server, and what became of them."""

    def __init__(self, port: int, seed: int) -> None:
        self._port, self._seed = port, seed
        self.answers: Counter[str] = Counter()
        self.findings: list[str] = []
        self.slow = 0

    async def send_paced(self, numbers: range) -> None:
        """Send these at their rate, and wait until they are answered."""
        loop = asyncio.get_running_loop()
        began, sending = loop.time(), []
        for place, number in enumerate(numbers):
            await asyncio.sleep(began + place / BAD_RATE - loop.time())
            bad = bad_request(random.Random(f"{self._seed}/{number}"))
            sending.append(asyncio.ensure_future(self._send(f"request {number}", bad)))
        await asyncio.gather(*sending)

    async def send_slowly(self, lane: int, ending: asyncio.Event) -> None:
        """Send slow ones, one after the other, until there are to be no more."""
        rng = random.Random(f"{self._seed}/slow/{lane}")
        while not ending.is_set():
            self.slow += 1
            await self._send(f"slow request of lane {lane}", slow_request(rng))

    async def _send(self, name: str, bad: BadRequest) -> None:
        outcome = await send(self._port, bad)
        self.answers[outcome] += 1
        if not bad.is_fit(outcome):
            self.findings.append(f"{name} ({bad.kind}): {outcome}")


async def storm(port: int, pid: int, *, requests: int, seed: int) -> Report:
    """Send bad requests beside good ones."""
    bad, ending, memory, parts = Storm(port, seed), asyncio.Event(), [], []
    with GoodClients(port) as good:
        await asyncio.sleep(WARM_SECONDS)  # Connections are made, and what is loaded later is loaded.
        await good.take()
        used = cpu_seconds(pid)
        await asyncio.sleep(CALM_SECONDS)
        calm, calm_used = await good.take(), cpu_seconds(pid) - used
        used = 0.0
        slow = [asyncio.ensure_future(bad.send_slowly(lane, ending)) for lane in range(SLOW_AT_ONCE)]
        tenth = requests // 10
        for numbers in (range(tenth), range(tenth, 5 * tenth), range(5 * tenth, requests)):
            await good.take()
            used -= cpu_seconds(pid)
            await bad.send_paced(numbers)
            parts.append(await good.take())
            used += cpu_seconds(pid)
            await asyncio.sleep(QUIET_SECONDS)
            memory.append(memory_mb(pid))
        ending.set()
        await asyncio.gather(*slow)
    beside = _together(parts)
    report = Report(
        requests=requests,
        slow=bad.slow,
        answers=dict(sorted(bad.answers.items())),
        calm=calm,
        beside=beside,
        cpu=(calm_used / calm.seconds, used / beside.seconds),
        memory_mb=(memory[0], memory[1], memory[2]),
        findings=bad.findings,
    )
    report.findings += _shortcomings(report)
    return report


def _together(parts: list[Served]) -> Served:
    """All parts as one."""
    failures: Counter[str] = Counter()
    for part in parts:
        failures.update(part.failures)
    times = [each for part in parts for each in part.times]
    return Served(times, sum(part.seconds for part in parts), dict(failures))


def _shown(served: Served) -> str:
    p50, p95 = (served.percentile_ms(part) for part in (0.5, 0.95))
    return f"(p50 {p50:.1f} ms, p95 {p95:.1f} ms)"


def _shortcomings(report: Report) -> list[str]:
    """Answers that the clients that behave did not get, and memory that has grown."""
    failures = {**report.calm.failures, **report.beside.failures}
    found = [f"a client that behaves: {count} times {what}" for what, count in failures.items()]
    grown = report.memory_mb[2] - report.memory_mb[0]
    if grown > MEMORY_MAX_MB:
        found.append(f"the server has {grown:.1f} MB more than after the first tenth")
    return found


def prove(*, requests: int, seed: int, store: str = "sqlite") -> Report:
    """The same, with a server and a store of its own."""
    with tempfile.TemporaryDirectory() as folder, new_store(store) as url, server(url, Path(folder)) as (port, pid):
        return asyncio.run(storm(port, pid, requests=requests, seed=seed))


def main() -> int:
    """Send the requests, and print what is found."""
    parser = argparse.ArgumentParser(prog="python -m proof.http.malformed", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    add_store(parser)
    given = parser.parse_args()
    report = prove(requests=given.requests, seed=given.seed, store=given.store)
    for line in report.findings[:50]:
        print(line)
    answers = ", ".join(f"{count:,} {name}" for name, count in report.answers.items())
    calm, beside, verdict = report.calm, report.beside, "kept" if report.is_rate_kept else "NOT KEPT"
    first, middle, last = report.memory_mb
    print(
        f"{given.store}: {report.requests:,} bad requests at {BAD_RATE:g}/s, and {report.slow:,} slow ones, "
        f"{SLOW_AT_ONCE} at a time: "
        f"{len(report.findings)} findings ({answers})\n"
        f"good clients: {calm.rate:.1f}/s alone {_shown(calm)}, "
        f"{beside.rate:.1f}/s beside them {_shown(beside)}: "
        f"{report.kept:.1%} of their rate, {RATE_KEPT_MIN:.0%} is the least: {verdict}\n"
        f"the server: {report.cpu[0]:.0%} and {report.cpu[1]:.0%} of a processor; "
        f"memory {first:.1f}, {middle:.1f}, {last:.1f} MB"
    )
    return 1 if report.findings or not report.is_rate_kept else 0


if __name__ == "__main__":
    sys.exit(main())
