"""Start everything that the application is: a bank, a mailer, the web application, three workers. Ctrl-C stops it.

    python -m invoices.start

The store is what OUTLIVE_STORE names, else a PostgreSQL server of its own that is removed at the end.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path

from invoices import settings
from outlive_conformance.servers.postgres import PostgresServer

START_SECONDS_MAX = 60


def commands(folder: Path) -> dict[str, list[str]]:
    """What is run, each in a process of its own."""
    web, bank, mailer = (each.rpartition(":")[2] for each in (settings.WEB, settings.BANK, settings.MAILER))
    return {
        "bank": ["invoices.outside.bank", bank, str(folder / "bank.jsonl"), f"{settings.WEB}/hooks/bank"],
        "mailer": ["invoices.outside.mailer", mailer, str(folder / "mailer.jsonl")],
        "web": [
            "uvicorn",
            "invoices.web:app",
            "--port",
            web,
            "--log-level",
            "warning",
            "--timeout-graceful-shutdown",
            "2",
        ],
        "worker 1": ["outlive.cli", "worker", "invoices.workflows"],
        "worker 2": ["outlive.cli", "worker", "invoices.workflows"],
        "agents": ["outlive.cli", "worker", "invoices.agent"],
    }


def main() -> None:
    """Start them, and start again what has ended, as a supervisor does; Ctrl-C and SIGTERM stop all."""
    with ExitStack() as stack:
        if "OUTLIVE_STORE" not in os.environ:
            server = stack.enter_context(PostgresServer())
            os.environ["OUTLIVE_STORE"] = server.url(server.create_database("invoices"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        subprocess.run([sys.executable, "-m", "invoices.tables"], check=True)
        running: dict[str, subprocess.Popen[bytes]] = {}
        stack.callback(stop, running)
        for name, command in commands(folder).items():
            running[name] = start(name, command)
        wait_for_web()
        print(f"open {settings.WEB}/ and, for the dashboard, {settings.WEB}/outlive/", flush=True)
        while True:
            time.sleep(0.5)
            for name, command in commands(folder).items():
                if running[name].poll() is not None:
                    running[name] = start(name, command)


def start(name: str, command: list[str]) -> subprocess.Popen[bytes]:
    """Begin one of them."""
    process = subprocess.Popen([sys.executable, "-m", *command])
    print(f"{name} is process {process.pid}", flush=True)
    return process


def stop(running: dict[str, subprocess.Popen[bytes]]) -> None:
    """Ask all of them to stop, and wait for them."""
    for process in running.values():
        process.terminate()
    for process in running.values():
        process.wait()


def wait_for_web() -> None:
    """Return when the web application answers."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        with suppress(OSError):
            urllib.request.urlopen(f"{settings.WEB}/ping").close()
            return
        time.sleep(0.1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        main()
    except KeyboardInterrupt:
        print("stopped")
