"""The processes of examples/invoices, as its README starts them."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass
class Processes:
    """What runs, and where."""

    process: subprocess.Popen[str]
    """The process that starts all others."""
    environment: dict[str, str]
    pids: dict[str, int]
    """Of all others, by their names."""

    @property
    def web(self) -> str:
        """The address of the page."""
        return self.environment["INVOICES_WEB"]

    def next_line(self) -> str:
        """What the starting process says next."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@contextmanager
def invoices_running(store: str) -> Iterator[Processes]:
    """All processes, up to the line that says that the page can be opened; SIGTERM stops them at the end."""
    environment = os.environ | {
        "INVOICES_WEB": f"http://127.0.0.1:{free_port()}",
        "INVOICES_BANK": f"http://127.0.0.1:{free_port()}",
        "INVOICES_MAILER": f"http://127.0.0.1:{free_port()}",
        "OUTLIVE_STORE": store,
        "PYTHONUNBUFFERED": "1",
    }
    start = [sys.executable, "-m", "invoices.start"]
    with subprocess.Popen(start, cwd=EXAMPLES, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            lines = list(itertools.takewhile(lambda line: not line.startswith("open "), running.stdout))
            found = (line.split(" is process ") for line in lines if " is process " in line)
            yield Processes(running, environment, {name: int(pid) for name, pid in found})
        finally:
            running.send_signal(signal.SIGTERM)
            running.communicate()


def free_port() -> int:
    """A port of loopback that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
