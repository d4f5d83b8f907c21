"""What the HTTP API costs: starting runs, listing them, following them.

`python -m bench.http`, or `make bench ARGS="--only http"`, starts a server (`outlive serve`, one process, SQLite) and
prints a line for each figure:

* the time of a start over HTTP, and of the same start by an engine, one after the other;
* starts a second by 16 connections at once, and by 64;
* the 95th percentile of a page of 50 runs among 1,000,000 (`--runs`);
* the memory of the server with 1,000 clients that follow a list (`--followers`).

Clients speak plain HTTP/1.1 over sockets that stay open: what is measured is the server. `--only start,list` measures
less.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import outlive
from bench.figures import shown
from bench.finding import fill

ALL = ("start", "list", "follow")
STARTS, AT_ONCE = 4_000, (16, 64)
"""How many connections ask at once: a start waits for the disk, which more of them share."""
FOLLOWERS = 1_000
PAGES = 200
DESCRIBED_SECONDS = 3.0
LENGTH = re.compile(rb"content-length: (\d+)")


@outlive.workflow
async def bench_http(number: int) -> int:
    """Is started, and not run: no worker is there."""
    return number


@contextmanager
def serving(url: str) -> Iterator[tuple[int, int]]:
    """A server of a store: its port, and the id of its process."""
    command = [sys.executable, "-m", "outlive.cli", "serve", "--port", "0", "--store", url, "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield int(re.findall(rb":(\d+)/", process.stdout.readline())[0]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Client:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The body of the answer to a request."""
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
        self._writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        found = LENGTH.search(answer)
        assert found is not None, answer
        content = await self._reader.readexactly(int(found[1]))
        assert answer[9:10] == b"2", (answer, content)
        return content

    async def follow(self, path: str) -> None:
        """Begin to follow, and read the first message."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        await self._reader.readuntil(b"retry: ")

    async def read_on(self) -> None:
        """Read what comes, until the end."""
        while await self._reader.read(65_536):
            pass

    async def start(self, number: int) -> None:
        """Start a run."""
        body = b'{"workflow": "bench_http", "arguments": {"number": %d}, "id": "http-%d"}'
        await self.ask("POST", "/api/v1/runs", body % (number, number))


def percentile(times: list[float], part: float) -> float:
    """In milliseconds."""
    return sorted(times)[min(len(times) - 1, int(len(times) * part))] * 1000


async def starts(url: str, count: int) -> None:
    """Starts over HTTP, beside those of an engine on the same store."""
    async with outlive.Engine(url):  # A worker describes its workflows a moment after its start.
        await asyncio.sleep(DESCRIBED_SECONDS)
    async with outlive.Engine(url, worker=False) as engine:
        own = [await _timed(engine.start("bench_http", {"number": 1}, id=f"own-{n}")) for n in range(count // 4)]
    with serving(url) as (port, pid):
        async with Client(port) as client:
            over = [await _timed(client.start(number)) for number in range(count // 4)]
        extra = percentile(over, 0.5) - percentile(own, 0.5)
        shown("start by an engine, p50", percentile(own, 0.5), "ms", "none")
        shown("start over HTTP, p50", percentile(over, 0.5), "ms", "none")
        shown("start over HTTP above the engine's own, p50", extra, "ms", "< 3 ms")
        for part, connections in enumerate(AT_ONCE, 1):
            began, cpu = time.perf_counter(), cpu_seconds(pid)
            numbers = iter(range(part * count, (part + 1) * count))
            await asyncio.gather(*[_start_all(port, numbers) for _ in range(connections)])
            rate, used = count / (time.perf_counter() - began), cpu_seconds(pid) - cpu
            shown(f"starts a second, {connections} connections", rate, "/s", "2,000/s")
            shown("CPU of the server for each of them", used / count * 1e6, "us", "< 500 us")


async def _start_all(port: int, numbers: Iterator[int]) -> None:
    async with Client(port) as client:
        for number in numbers:
            await client.start(number)


async def _timed(work: object) -> float:
    began = time.perf_counter()
    await work  # type: ignore[misc]
    return time.perf_counter() - began


async def lists(url: str, runs: int) -> None:
    """A page of a long list, with and without a filter."""
    async with outlive.Engine(url, worker=False):
        pass
    await fill(url, 1, runs)
    with serving(url) as (port, _):
        async with Client(port) as client:
            for path in ("/api/v1/runs?limit=50", "/api/v1/runs?limit=50&status=failed&workflow=flow-3"):
                times = [await _timed(client.ask("GET", path)) for _ in range(PAGES)]
                shown(f"GET {path}, {runs:,} runs, p95", percentile(times, 0.95), "ms", "< 50 ms")


async def followers(url: str, count: int) -> None:
    """The memory of a server that many clients follow."""
    async with outlive.Engine(url) as engine:
        for number in range(100):
            await engine.start(bench_http, number, id=f"followed-{number}")
    with serving(url) as (port, pid):
        clients = [Client(port) for _ in range(count)]
        for client in clients:
            await client.__aenter__()
            await client.follow("/api/v1/runs/follow?limit=50")
        reading = [asyncio.ensure_future(client.read_on()) for client in clients]
        await asyncio.sleep(3)
        shown(f"memory of a server with {count:,} followers", memory_mb(pid), "MB", "< 200 MB")
        for task in reading:
            task.cancel()


def cpu_seconds(pid: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """What a process had at most."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


async def measure(only: Sequence[str], *, directory: Path, starts_count: int, runs: int, followers_count: int) -> None:
    """Measure these, each on a store of its own, and print a line for each figure."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8_192), most))
    for name in only:
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            url = f"sqlite:{Path(folder) / 'bench.db'}"
            match name:
                case "start":
                    await starts(url, starts_count)
                case "list":
                    await lists(url, runs)
                case "follow":
                    await followers(url, followers_count)
                case _:
                    raise SystemExit(f"no such measurement: {name}")


def measure_all(*, directory: Path, runs: int, scale: float) -> None:
    """All of them, for `python -m bench`."""
    count = max(AT_ONCE[-1], round(STARTS * scale))
    print("the HTTP API, one process on SQLite", flush=True)
    asyncio.run(
        measure(ALL, directory=directory, starts_count=count, runs=runs, followers_count=round(FOLLOWERS * scale))
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.http", description=__doc__)
    parser.add_argument("--only", default=",".join(ALL))
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--followers", type=int, default=FOLLOWERS)
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for databases")
    given = parser.parse_args()
    asyncio.run(
        measure(
            given.only.split(","),
            directory=given.dir,
            starts_count=given.starts,
            runs=given.runs,
            followers_count=given.followers,
        )
    )


if __name__ == "__main__":
    main()
