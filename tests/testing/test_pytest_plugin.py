"""The fixtures work with every way to run async tests, and cost nothing where no test uses them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"

WORKFLOW = """
import asyncio
import outlive
import pytest

@outlive.step
async def greet(name: str) -> str:
    return f"Hello, {name}!"

@outlive.workflow
async def hello(name: str) -> str:
    await asyncio.sleep(3600)
    return await greet(name)

async def story(engine):
    run = await engine.start(hello, "you")
    assert await run.result() == "Hello, you!"

"""
SYNC = """
def test_it_survives(outlive_crash):
    assert outlive_crash(hello, "you", max_points=2).result == "Hello, you!"

def test_it_runs_on_a_loop_of_its_own(outlive_engine):
    asyncio.run(story(outlive_engine))

def test_it_is_not_used(outlive_engine):
    pass
"""
ASYNC = """
MARK
async def test_it_starts_by_itself(outlive_engine):
    await story(outlive_engine)

MARK
async def test_it_is_left_behind_in_the_middle(outlive_engine):
    await asyncio.gather(outlive_engine.start(hello, "a"), outlive_engine.start(hello, "b"))

MARK
async def test_it_can_be_entered(outlive_engine):
    async with outlive_engine as engine:
        await story(engine)
"""

SCOPE = ["-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function"]


def run_pytest(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run tests in a project of their own, with no other plugins than these."""
    (folder / "test_hello.py").write_text(WORKFLOW + tests, "utf-8")
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    env = {**os.environ, "PYTHONPATH": str(SRC), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=50)


@pytest.mark.parametrize(
    ("tests", "passed", "options"),
    [
        (SYNC, 3, []),
        (ASYNC.replace("MARK", ""), 3, [*SCOPE, "-o", "asyncio_mode=auto"]),
        (ASYNC.replace("MARK", "@pytest.mark.asyncio"), 3, [*SCOPE, "-o", "asyncio_mode=strict"]),
        (ASYNC.replace("MARK", "@pytest.mark.anyio"), 3, ["-p", "anyio.pytest_plugin"]),
    ],
    ids=["sync", "asyncio auto", "asyncio strict", "anyio"],
)
def test_fixtures_work(tmp_path: Path, tests: str, passed: int, options: list[str]) -> None:
    """No warning, nothing left behind."""
    if "pytest.mark.anyio" in tests:
        tests += '\n@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n'

    done = run_pytest(tmp_path, tests, "-p", "pytest_outlive", *options)

    assert f"{passed} passed" in done.stdout, done.stdout + done.stderr
    assert "warning" not in done.stdout


def test_the_plugin_does_not_import_outlive() -> None:
    """Until a fixture is used."""
    code = "import sys, pytest_outlive; sys.exit('outlive' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SRC)}).returncode == 0


def test_the_plugin_is_announced_and_shipped() -> None:
    """pytest finds it by the entry point, and the wheel holds it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

    assert project["project"]["entry-points"]["pytest11"] == {"pytest_outlive": "pytest_outlive"}
    assert "src/pytest_outlive" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert not any("pytest" in needed for needed in project["project"]["dependencies"])
