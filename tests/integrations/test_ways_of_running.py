"""Every way of running that the guides show, as real processes for 20 seconds, with readers that follow runs.

They run at the same time, so that all of them together take as long as one. What is watched is what a person would
notice: memory that grows, a processor that is busy while nothing happens, a request that takes long, a reader that is
thrown out, a process that does not stop.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from outlive_conformance.servers.postgres import PostgresServer
from proof.http.malformed import cpu_seconds, memory_mb
from tests.docs.page import DOCS, ROOT, blocks_of

WATCH_SECONDS = 20.0
WATCH_CHANGED_SECONDS = 8.0
"""And once more after a file was changed."""
WATCHED = "order-watched"
"""A run that waits for a signal for good."""
START_WATCHED = f"""
import asyncio, outlive, shop

async def main():
    async with outlive.Engine("sqlite:shop.db", worker=False) as engine:
        await engine.start(shop.checkout, shop.Order("a lamp", 1200), id="{WATCHED}")

asyncio.run(main())
"""
START_WATCHED_IN_DJANGO = f"""
from outlive.integrations import django
from shop.workflows import checkout

django.engine().start(checkout, 1, id="{WATCHED}", delay="1d")
"""
READERS = {
    "/runs/follow": b"event: list",
    f"/runs/{WATCHED}/follow": b"event: ",
    f"/runs/{WATCHED}/result?wait=60": b"",
}
"""What is asked for by readers that stay, and what each of them is sent at first."""
START_SECONDS, STOP_SECONDS = 60.0, 30.0
CPU_MAX = 0.25
"""Of one processor, of all processes of one way: a reader that spins takes all, a watcher of files some percent."""
GROWTH_MAX_MB = 10.0
PING_TYPICAL_SECONDS_MAX, PING_SECONDS_MAX = 0.25, 5.0

CHANGED = """
@outlive.workflow
async def changed_while_watched() -> None:
    pass
"""

PYTHON = sys.executable
UVICORN = (PYTHON, "-m", "uvicorn", "--timeout-graceful-shutdown", "2", "--port", "{port}")
HYPERCORN = (PYTHON, "-m", "hypercorn", "--graceful-timeout", "2", "--bind", "127.0.0.1:{port}")
GUNICORN = (
    *(PYTHON, "-m", "gunicorn", "--workers", "2", "--worker-class", "gunicorn_worker.Worker"),
    *("--graceful-timeout", "10", "--bind", "127.0.0.1:{port}"),
)
OUTLIVE = (PYTHON, "-m", "outlive.cli")
MANAGE = (PYTHON, "manage.py")
STORE = ("--port", "{port}", "--store", "sqlite:shop.db")
WORKER = (*OUTLIVE, "worker", "shop.py", "--store", "sqlite:shop.db")
OWN_ENGINE, ENGINE_WITHOUT_WORKER = 'Engine("sqlite:shop.db")', 'Engine("sqlite:shop.db", worker=False)'
"""The engine of the application in the guide, and an engine that leaves the runs to other processes."""
log = logging.getLogger(__name__)


class Way(msgspec.Struct, frozen=True):
    """One way of running: a command, and what can be asked of it."""

    name: str
    command: tuple[str, ...]
    ping: str
    api: str | None = "/outlive/api/v1"
    """None where the guide mounts no API: then nothing can follow through it."""
    start_watched: tuple[str, ...] = (PYTHON, "-c", START_WATCHED)
    """Starts the run that its readers follow, in its store."""
    worker: tuple[str, ...] = ()
    """A process beside it that runs the workflows: then the application has the engine without a worker."""
    reloads: bool = False
    """Whether it watches `shop.py` and goes on with the changed file."""


WAYS = (
    Way("serve", (*OUTLIVE, "serve", *STORE), "/health/live", "/api/v1"),
    Way("dev", (*OUTLIVE, "dev", "shop.py", *STORE), "/health/live", "/api/v1", reloads=True),
    Way("FastAPI", (*UVICORN, "web:app"), "/orders/1"),
    Way("FastAPI, workers of their own", (*UVICORN, "web:app"), "/orders/1", worker=WORKER),
    Way("FastAPI, two processes", (*UVICORN, "web:app", "--workers", "2"), "/orders/1"),
    Way("FastAPI, reloading", (*UVICORN, "web:app", "--reload"), "/orders/1", reloads=True),
    Way("FastAPI, hypercorn", (*HYPERCORN, "web:app"), "/orders/1"),
    Way("FastAPI, gunicorn", (*GUNICORN, "web:app"), "/orders/1"),
    Way("Starlette", (*UVICORN, "web_starlette:app"), "/outlive/health/live"),
    Way("Litestar", (*UVICORN, "web_litestar:app"), "/outlive/health/live"),
    Way("Flask", (PYTHON, "-m", "flask", "--app", "flask_shop", "run", "--port", "{port}"), "/orders/1", None),
    Way("Django", (*MANAGE, "runserver", "{port}"), "/orders/1", None),
    Way("Django's worker", (*MANAGE, "outlive", "worker", "--metrics-port", "{port}"), "/health/live", None),
    Way(
        *("Django's server", (*MANAGE, "outlive", "serve", "--port", "{port}"), "/health/live", "/api/v1"),
        start_watched=(*MANAGE, "shell", "-c", START_WATCHED_IN_DJANGO),
    ),
)


class Running:
    """A way that runs, and what was seen of it."""

    def __init__(self, way: Way, folder: Path, port: int, processes: list[subprocess.Popen[bytes]]) -> None:
        self.way, self._folder, self._port, self._processes = way, folder, port, processes
        self._readers: list[socket.socket] = []
        self._pings: list[float] = []
        self._unanswered: list[str] = []

    def wait_until_ready(self) -> None:
        """Return when it answers, and when its worker, if it has one of its own, has begun the run that is watched."""
        ends_at = time.monotonic() + START_SECONDS
        while time.monotonic() < ends_at and all(each.poll() is None for each in self._processes):
            with suppress(OSError):
                self._ask()
                if not self.way.worker or '"status":"waiting"' in self._text(f"{self.way.api}/runs/{WATCHED}"):
                    return
            time.sleep(0.1)
        raise AssertionError(f"{self.way.name} does not answer:\n{self._log()}")

    def follow(self) -> None:
        """Open readers that stay: of the list of runs, of one run, and of its result."""
        for path, first in READERS.items() if self.way.api is not None else ():
            reader = socket.create_connection(("127.0.0.1", self._port), timeout=START_SECONDS)
            self._readers.append(reader)
            reader.sendall(f"GET {self.way.api}{path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            seen = b""
            while first not in seen:
                part = reader.recv(65_536)
                assert part, f"{self.way.name} closed a reader: {seen!r}"
                seen += part

    def change(self) -> None:
        """Change a file that it watches, while its readers follow; return when it has the new workflow, and all readers
        are there again: a server that reloads ends their requests, and they come again as a dashboard does."""
        with (self._folder / "shop.py").open("a", encoding="utf-8") as file:
            file.write(CHANGED)
        workflows = f"{self.way.api}/workflows"
        ends_at = time.monotonic() + START_SECONDS
        while "changed_while_watched" not in self._text(workflows):
            assert time.monotonic() < ends_at, f"{self.way.name} does not reload:\n{self._log()}"
            time.sleep(0.1)
        for reader in self._readers:
            reader.close()
        self._readers.clear()
        self.follow()

    def begin(self) -> None:
        """From here on it is watched."""
        self._cpu, self._memory, self._began = self._used(), self._size(), time.monotonic()
        self._pings, self._unanswered = [], []

    def ping(self) -> None:
        """Ask for something small, and note how long that takes."""
        asked_at = time.monotonic()
        try:
            self._ask()
        except OSError as error:
            self._unanswered.append(f"{self.way.name} does not answer a request: {error!r}:\n{self._log()}")
        self._pings.append(time.monotonic() - asked_at)

    def findings(self) -> Iterator[str]:
        """What a person would complain about."""
        yield from self._unanswered
        cpu = (self._used() - self._cpu) / (time.monotonic() - self._began)
        grown, typical, worst = self._size() - self._memory, statistics.median(self._pings), max(self._pings)
        log.info("%s: %.3f of a processor, %+.1f MB, ping %.3f/%.3f s", self.way.name, cpu, grown, typical, worst)
        if cpu > CPU_MAX:
            yield f"{self.way.name} takes {cpu:.0%} of a processor at rest"
        if grown > GROWTH_MAX_MB:
            yield f"{self.way.name} has grown by {grown:.0f} MB"
        if typical > PING_TYPICAL_SECONDS_MAX or worst > PING_SECONDS_MAX:
            yield f"{self.way.name} answers in {typical:.2f} s, {worst:.2f} s at worst"
        if thrown_out := sum(self._is_closed(reader) for reader in self._readers):
            yield f"{self.way.name} has closed {thrown_out} readers"

    def stop(self) -> Iterator[str]:
        """Ask it to stop while its readers follow."""
        for each in self._processes:
            each.send_signal(signal.SIGTERM)
        for each in self._processes:
            try:
                each.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                yield f"{self.way.name} does not stop:\n{self._log()}"
        for reader in self._readers:
            reader.close()
        if "Exception in ASGI application" in self._log():
            yield f"{self.way.name} logs a failure:\n{self._log()}"

    def _text(self, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=START_SECONDS) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""  # It reloads.

    def _ask(self) -> None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self._port}{self.way.ping}", timeout=START_SECONDS).close()
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 404:  # There is no such order.
                raise

    @staticmethod
    def _is_closed(reader: socket.socket) -> bool:
        reader.setblocking(False)
        try:
            while reader.recv(65_536):
                pass
        except BlockingIOError:
            return False
        return True

    def _used(self) -> float:
        return sum(cpu_seconds(pid) for each in self._processes for pid in _tree(each.pid))

    def _size(self) -> float:
        return sum(memory_mb(pid) for each in self._processes for pid in _tree(each.pid))

    def _log(self) -> str:
        return (self._folder / "log").read_text("utf-8", "replace")[-4_000:]


def _tree(pid: int) -> list[int]:
    """A process and all that it has started."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # It has ended meanwhile.
        parents.setdefault(parent, []).append(int(entry.parent.name))
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        left += parents.get(found[-1], [])
    return found


@contextmanager
def running(way: Way, folder: Path, database_url: str) -> Iterator[Running]:
    """The processes of a way, in a folder with what the guides show."""
    shutil.copytree(ROOT / "examples" / "django_shop", folder)
    shutil.copy(ROOT / "examples" / "flask_shop.py", folder)
    for block in blocks_of(DOCS / "guides" / "fastapi.md"):
        first = block.text.partition("\n")[0]
        if first.endswith(".py") and not way.name.startswith("Django"):
            text = block.text.replace(OWN_ENGINE, ENGINE_WITHOUT_WORKER) if way.worker else block.text
            (folder / first.removeprefix("# ")).write_text(text, "utf-8")
            shutil.rmtree(folder / "shop", ignore_errors=True)  # The app of Django has the name of the module.
    # gunicorn makes a socket in the folder of its user.
    environment = os.environ | {"DATABASE_URL": database_url, "PYTHONUNBUFFERED": "1", "HOME": str(folder)}
    if way.api is not None:
        subprocess.run(way.start_watched, cwd=folder, env=environment, check=True)
    if way.name == "Django":
        subprocess.run([*MANAGE, "migrate"], cwd=folder, env=environment, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "log").open("ab") as log:
        processes = [
            subprocess.Popen(
                [part.format(port=port) for part in command],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            for command in (way.command, way.worker)
            if command
        ]
    try:
        yield Running(way, folder, port, processes)
    finally:
        for process in processes:
            for pid in _tree(process.pid) if process.poll() is None else []:
                os.kill(pid, signal.SIGKILL)
            process.wait()


def test_the_guide_shows_workers_of_their_own() -> None:
    """The engine that is put into its application, and the command beside it, stand there as they are run here."""
    guide = (DOCS / "guides" / "fastapi.md").read_text("utf-8")
    (web,) = [block.text for block in blocks_of(DOCS / "guides" / "fastapi.md") if block.text.startswith("# web.py\n")]

    assert OWN_ENGINE in web
    assert f"`{ENGINE_WITHOUT_WORKER}`" in guide
    assert f"`{' '.join(('outlive', *WORKER[len(OUTLIVE) :]))}`" in guide


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_documented_way_of_running_rests_while_readers_follow(
    tmp_path: Path, postgres_server: PostgresServer, postgres_database: str
) -> None:
    """Nothing grows, spins or waits, no reader is thrown out, what reloads goes on with a changed file, and all of them
    stop when they are asked to."""
    database_url = postgres_server.store_url(postgres_database)
    with ExitStack() as stack:
        all_of_them = [
            stack.enter_context(running(way, tmp_path / f"way-{number}", database_url))
            for number, way in enumerate(WAYS)
        ]
        for each in all_of_them:
            each.wait_until_ready()
            each.follow()
        found = _watch(all_of_them, WATCH_SECONDS)
        reloading = [each for each in all_of_them if each.way.reloads]
        for each in reloading:
            each.change()
        found += _watch(reloading, WATCH_CHANGED_SECONDS)
        found += [line for each in all_of_them for line in each.stop()]

    assert found == []


def _watch(those: list[Running], seconds: float) -> list[str]:
    """What a person would complain about after so long."""
    for each in those:
        each.begin()
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        for each in those:
            each.ping()
        time.sleep(0.2)
    return [line for each in those for line in each.findings()]
