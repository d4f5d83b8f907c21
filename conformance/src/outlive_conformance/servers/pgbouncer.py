"""A real PgBouncer in transaction mode in front of a test's PostgreSQL, as a child process.

Between two transactions a client may be given another server connection: whatever a store keeps in a session
(prepared statements, SET, LISTEN, advisory locks) is gone. That is how many databases are reached in production.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from outlive.errors import ConfigurationError
from outlive_conformance.servers.postgres import UNPRIVILEGED

START_SECONDS = 10.0

_SETTINGS = """\
[databases]
* = host={host} port={port} user={user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""


def find_pgbouncer() -> str | None:
    """The program, also where an ordinary user's PATH does not look."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class PgBouncerNotFoundError(ConfigurationError):
    """There is no PgBouncer on this machine that a test could start."""

    def __init__(self) -> None:
        super().__init__("there is no pgbouncer here; on Debian or Ubuntu: apt-get install pgbouncer")


class PgBouncer:
    """Pools the connections to one server."""

    def __init__(self, server_url: str, *, pool_size: int = 4) -> None:
        program = find_pgbouncer()
        if program is None:
            raise PgBouncerNotFoundError
        self._program = program
        self._server = urlsplit(server_url)
        self._pool_size = pool_size
        self._folder = Path(tempfile.mkdtemp(prefix="outlive-pgbouncer-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self.port = _free_port()
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(
            _SETTINGS.format(
                host=self._server.hostname,
                port=self._server.port,
                user=self._server.username,
                listen_port=self.port,
                pool_size=self._pool_size,
                folder=self._folder,
            )
        )
        user = _servant()
        if user is not None:
            for path in (self._folder, settings):
                os.chown(path, user.pw_uid, user.pw_gid)
        self._process = subprocess.Popen(
            [self._program, "-q", str(settings)],
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
        )
        self._wait_until_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str) -> str:
        """How a client reaches a database through it."""
        return f"postgresql://{self._server.username}@127.0.0.1:{self.port}/{database}"

    def _wait_until_open(self) -> None:
        assert self._process is not None
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.02)
        raise RuntimeError(f"pgbouncer did not start: {(self._folder / 'pgbouncer.log').read_text()}")


def _servant() -> pwd.struct_passwd | None:
    """PgBouncer refuses to be root."""
    return pwd.getpwnam(UNPRIVILEGED) if os.geteuid() == 0 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
