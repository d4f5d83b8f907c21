"""A PostgreSQL server of one's own, for tests and scripts.

Theory
------
* The server runs in the foreground as a direct child on a free port of the loopback address. Nothing is installed,
  nothing outlives the process that started it, and many servers can run side by side.
* Where the programs come from is said in `outlive_conformance.servers.postgres_programs`; `programs` names other ones.
* PostgreSQL refuses to run as root; as root we drop to the user `UNPRIVILEGED`. That user may not reach the folder of a
  virtual environment: then the programs are copied to a place that it can reach.
* `kill` is a power cut: SIGKILL for the server and everything that it started, at once. Sessions of PostgreSQL are in
  process groups of their own, so they are found by their parent.
* `pause` freezes all of these processes, as a machine that swaps does, or a disk that hangs.
* `data` puts the data elsewhere, for example on a disk of its own; the caller removes it.
* `copy_of` begins with a base backup of another server that runs: as its replica, which takes over what the other one
  writes until `promote`, or with `is_standby=False` as a restored backup. `primary_port` leads it through a proxy.
* Durability is on. `PostgresServer(fsync=False)` is faster and survives every kill of the process, but not a power cut
  of the machine; a store that opens such a server has to say `allow_unsafe=true`, and `store_url` says it.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Coroutine, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from outlive.errors import ConfigurationError
from outlive_conformance.servers.launched import Launched, dying_by
from outlive_conformance.servers.postgres_programs import PostgresNotFoundError, copy_programs, find_programs

__all__ = ["USER", "PostgresNotFoundError", "PostgresServer"]

USER = "outlive"
UNPRIVILEGED = "nobody"
"""The user of the system that runs a server for root."""


class PostgresServer(Launched):
    """One server with a data folder of its own; `with PostgresServer() as server` starts and removes it.

    Start it from a thread that lives as long as the server shall: the system ends it with that thread.
    """

    def __init__(
        self,
        *,
        fsync: bool = True,
        settings: Mapping[str, str] | None = None,
        programs: Path | None = None,
        data: Path | None = None,
        copy_of: PostgresServer | None = None,
        is_standby: bool = True,
        primary_port: int = 0,
    ) -> None:
        self._fsync = fsync
        self._programs = programs
        self._settings = dict(settings or {})
        self._data_elsewhere = data
        self._copy_of = copy_of
        self._is_standby = is_standby
        self._primary_port = primary_port
        self._folder: Path | None = None
        self._bin = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._names = count(1)
        self.port = 0

    # -- Life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the server and wait until it takes connections; the port stays the same after the first start."""
        assert self._process is None, "the server runs already"
        if self._folder is None:
            self._create()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "fsync": "on" if self._fsync else "off",
            **self._settings,
        }
        command = [str(self._bin / "postgres"), "-D", str(self._data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dying_by(signal.SIGQUIT),  # noqa: PLW1509 (one system call, which takes no lock)
                **_identity(),
            )
        self._wait_until_ready(self._process)

    def stop(self, *, mode: str = "fast") -> None:
        """Stop it in good order: `smart` waits for the clients, `fast` ends them, `immediate` does not even tidy up."""
        if self._process is None:
            return
        how = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode]
        self._process.send_signal(how)
        self._process.wait(timeout=60)
        self._process = None

    def kill(self) -> None:
        """Cut the power: SIGKILL for the server and all of its processes."""
        if self._process is None or self._process.poll() is not None:
            self._process = None  # It has ended by itself, and its sessions with it.
            return
        pid = self._process.pid
        os.kill(pid, signal.SIGSTOP)  # So that it starts nothing while we look.
        children = _children(pid)
        for each in (pid, *children):
            _signal(each, signal.SIGKILL)
        self._process.wait(timeout=60)
        self._process = None
        # The next start needs the memory that they share; the process that adopts them may take its time.
        deadline = time.monotonic() + 30
        while any(map(_is_running, children)) and time.monotonic() < deadline:
            time.sleep(0.005)

    def pause(self) -> None:
        """Let it and all of its sessions stand still until `resume`: connections stay open, without an answer."""
        os.kill(self.pid, signal.SIGSTOP)  # Before its sessions: it starts no other one then.
        for each in _children(self.pid):
            _signal(each, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        for each in (*_children(self.pid), self.pid):
            _signal(each, signal.SIGCONT)

    def restart(self) -> None:
        """Stop the server if it runs, then start it on the same port with the same data."""
        self.stop()
        self.start()

    def promote(self) -> None:
        """Let a replica take over: from now on it takes writes, on a timeline of its own."""
        self.execute("SELECT pg_promote(true, 60)")

    def remove(self) -> None:
        """Stop the server and delete its data; twice is fine."""
        self.stop(mode="immediate")
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @property
    def is_running(self) -> bool:
        """Whether the server's process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the server; its sessions are children of it."""
        assert self._process is not None, "the server does not run"
        return self._process.pid

    @property
    def log(self) -> str:
        """The log that the server has written."""
        return self._log.read_text("utf-8", "replace") if self._folder is not None and self._log.exists() else ""

    # -- Use -----------------------------------------------------------------------------------------------

    def url(self, database: str = "postgres") -> str:
        """The address of a database, as every driver takes it."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def store_url(self, database: str = "postgres", *, schema: str = "outlive") -> str:
        """The address of a store in a database, as `Engine` takes it."""
        unsafe = "" if self._fsync else "&allow_unsafe=true"
        return f"{self.url(database)}?schema={schema}{unsafe}"

    def create_database(self, name: str | None = None) -> str:
        """Create a database and give its name, a new one unless it is given."""
        name = name or f"test_{next(self._names)}"
        _in_thread(self._run(f'CREATE DATABASE "{name}"', "postgres"))
        return name

    def drop_database(self, name: str) -> None:
        """Delete a database, also one that is in use."""
        _in_thread(self._run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)', "postgres"))

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements; the rows of a single one. Works in a running event loop too, and blocks it."""
        return _in_thread(self._run(statement, database))

    async def _run(self, statement: str, database: str) -> list[tuple[Any, ...]]:
        import asyncpg

        connection = await asyncpg.connect(self.url(database))
        try:
            return [tuple(row) for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    # -- Inside --------------------------------------------------------------------------------------------

    @property
    def _data(self) -> Path:
        assert self._folder is not None
        return self._data_elsewhere or self._folder / "data"

    @property
    def _log(self) -> Path:
        assert self._folder is not None
        return self._folder / "postgres.log"

    def _create(self) -> None:
        programs = self._programs or find_programs()
        self._folder = Path(tempfile.mkdtemp(prefix="outlive-pg-"))
        if os.geteuid() == 0:
            user = pwd.getpwnam(UNPRIVILEGED)
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            if self._data_elsewhere is not None:
                self._data_elsewhere.mkdir(exist_ok=True)
                os.chown(self._data_elsewhere, user.pw_uid, user.pw_gid)
            if not _is_reachable(programs / "initdb"):
                programs = copy_programs(programs, self._folder / "programs")
        self._bin = programs
        command = [str(programs / "initdb"), "-D", str(self._data), "-U", USER, "--auth=trust", "--no-sync"]
        command += ["--encoding=UTF8", "--no-locale"]
        if self._copy_of is not None:
            port = self._primary_port or self._copy_of.port
            primary = f"host=127.0.0.1 port={port} user={USER} application_name=replica"
            command = [str(programs / "pg_basebackup"), "-d", primary, "-D", str(self._data), "-X", "stream"]
            command += ["--checkpoint=fast", "--no-sync", *(["-R"] if self._is_standby else [])]
        made = subprocess.run(command, capture_output=True, cwd=self._folder, check=False, **_identity())
        if made.returncode:
            raise ConfigurationError(f"{Path(command[0]).name} failed: {made.stderr.decode(errors='replace').strip()}")
        self.port = _free_port()

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        """Read the file in which the server says how far it is, as pg_ctl does."""
        deadline = time.monotonic() + 60
        status = self._data / "postmaster.pid"
        while time.monotonic() < deadline and process.poll() is None:
            try:
                lines = status.read_text("utf-8").splitlines()
            except OSError:
                lines = []
            if len(lines) >= 8 and lines[0] == str(process.pid) and lines[7].strip() in ("ready", "standby"):
                return
            time.sleep(0.005)
        process.kill()
        process.wait()
        self._process = None
        raise ConfigurationError(f"the PostgreSQL server does not start; its log ends with: {self.log[-2000:]}")


def _identity() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(UNPRIVILEGED)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _is_reachable(program: Path) -> bool:
    """Whether every user may run this."""
    folders_open = all(folder.stat().st_mode & stat.S_IXOTH for folder in program.parents)
    return folders_open and bool(program.stat().st_mode & stat.S_IXOTH)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


def _parent(pid: str) -> int:
    try:
        # The name of the program stands in brackets and may hold anything; what follows it does not.
        fields = Path("/proc", pid, "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[1])


def _children(pid: int) -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit() and _parent(each.name) == pid]


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        """It has ended by itself."""


def _is_running(pid: int) -> bool:
    return _parent(str(pid)) != 0


def _in_thread(work: Coroutine[Any, Any, list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Run a coroutine to its end, whether or not an event loop runs here."""
    found: list[list[tuple[Any, ...]]] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(asyncio.run(work))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return found[0]
