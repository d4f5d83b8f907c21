"""The processes of deploy/compose.yaml without Docker: two workers and the server, on a PostgreSQL of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
import yaml

from outlive_conformance.servers.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
APP = """
import asyncio

import outlive

@outlive.step
async def count(number: int) -> int:
    return number + 1

@outlive.workflow
async def order(steps: int) -> int:
    number = 0
    while number < steps:
        number = await count(number)
        await asyncio.sleep(0.05)
    return number
"""


@contextmanager
def process(words: list[str], folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process of ours, which is ready; it ends well unless it was killed."""
    command = [sys.executable, "-m", "outlive.cli", *words]
    with (
        (folder / "log").open("a") as log,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as running,
    ):
        try:
            yield running
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGTERM)
            assert running.wait(30) in (0, -signal.SIGKILL), (folder / "log").read_text("utf-8")


def first_line(running: subprocess.Popen[str]) -> str:
    """What it says when it is ready."""
    out = running.stdout
    assert isinstance(out, IO) or out is not None
    return out.readline()


def ask(url: str, key: str, body: Any = None) -> Any:
    """One request with the key."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=40) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read()) from error


@pytest.mark.slow
def test_the_processes_of_the_compose_file_run_orders_and_survive_a_kill(
    postgres_server: PostgresServer, postgres_database: str, tmp_path: Path
) -> None:
    """The commands are those in the file; only the address of the server and the ports are other ones."""
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))["services"]
    (tmp_path / "app.py").write_text(APP, "utf-8")
    environment = os.environ | {"OUTLIVE_STORE": postgres_server.store_url(postgres_database)}
    serve = [word.replace("0.0.0.0", "127.0.0.1") for word in services["server"]["command"]]
    work = [word.replace("9464", "0") for word in services["worker"]["command"]]
    with ExitStack() as stack:
        workers = [
            stack.enter_context(process(work, tmp_path, environment))
            for _ in range(services["worker"]["deploy"]["replicas"])
        ]
        assert all(first_line(worker).startswith("ready:") for worker in workers)
        make = [sys.executable, "-m", "outlive.cli", "keys", "create", "you", "--scope", "admin", "--json"]
        made = subprocess.run(make, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        key = json.loads(made.stdout)["secret"]
        server = stack.enter_context(process([*serve, "--port", "0"], tmp_path, environment))
        url = first_line(server).split()[1]

        runs = [ask(f"{url}/runs", key, {"workflow": "order", "arguments": {"steps": 30}}) for _ in range(10)]
        time.sleep(0.5)  # In the middle of the orders, wherever that is.
        workers[0].kill()
        ended = [ask(f"{url}/runs/{run['id']}/result?wait=30", key) for run in runs]

    assert [(it["status"], it["result"]) for it in ended] == [("succeeded", 30)] * 10
