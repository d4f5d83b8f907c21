"""The agents in examples/agents, on real HTTP to a model on loopback, killed with -9 in the middle of a tool."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.errors import RunNotFoundError, StoreError
from tests.engine.support import until
from tests.integrations.agent_process import AGENTS

ROOT = Path(__file__).parents[2]
EXAMPLES = ["pydantic_ai_ops", "openai_agents_ops", "langgraph_ops"]


@contextmanager
def begun(folder: Path, example: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process in which deleting takes a minute, so that it is killed before."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), "PAUSE": "60"}
    command = [sys.executable, "-m", "tests.integrations.agent_process", example]
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


async def approve_and_see_it_delete(ledger: Path) -> None:
    """The process asks a person, who says yes, and then deletes."""
    async with outlive.Engine("sqlite:ops.db", worker=False) as client:
        run = client.get("clean-up-1")

        async def has_asked() -> bool:
            try:
                return bool(await run.approvals())
            except (RunNotFoundError, StoreError):
                return False

        await until(has_asked)
        [asked] = await run.approvals()
        assert ("delete_backup", ("ops",)) == (asked.name, asked.assignees)
        assert 'Call delete_backup(name="2019.tar")?' == asked.title
        await run.approve("delete_backup", by="ann")

        async def is_deleting() -> bool:
            return "deleting" in ledger.read_text()

        await until(is_deleting)


@pytest.mark.slow
@pytest.mark.timeout(180)  # On a busy machine it takes these frameworks half a minute to be imported.
@pytest.mark.parametrize("example", EXAMPLES)
async def test_agent_killed_in_a_tool_repeats_only_that_tool(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three answers of the model and the question to a person are there once, and usage is counted once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(AGENTS))
    server: Any = importlib.import_module("model_server")
    ledger = tmp_path / "ledger.txt"
    with server.ModelServer() as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        with begun(tmp_path, example) as killed:
            workflow = importlib.import_module(example).clean_up
            assert killed.stdout is not None
            assert b"ready\n" == killed.stdout.readline()
            await approve_and_see_it_delete(ledger)

        async with outlive.Engine("sqlite:ops.db") as engine:
            again = await engine.start(workflow, "Delete the oldest backup.", id="clean-up-1")
            assert "Deleted 2019.tar." == (await again.result(timeout=30)).strip()
            tokens = [token async for token in again.stream("tokens")]
            assert "I will look. Deleted 2019.tar." == "".join(tokens).strip()
            used = {"requests": 3, "input_tokens": 300, "output_tokens": 60}
            assert used == (await again.published())["usage"]
            assert 1 == len(await again.approvals())

    assert 3 == len(model.requests)
    assert ["listed", "deleting 2019.tar", "deleting 2019.tar", "deleted 2019.tar"] == ledger.read_text().splitlines()
