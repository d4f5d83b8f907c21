"""Every example of the five systems, in examples/seeds, is short, runs, and prints what it says that it prints.

An example that says that it is killed kills itself with SIGKILL; the same command goes on with it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from outlive._kernel.define.registry import REGISTRY
from outlive_conformance.servers.etcd import EtcdServer
from outlive_conformance.servers.postgres import PostgresServer
from tests.docs.page import ROOT

SEEDS = sorted((ROOT / "examples" / "seeds").glob("*.py"))
SYSTEMS = {"asynkron", "cano", "flowbot", "stepflow", "tanstack"}
LINES_MAX = 100
PRINTS = "\n# Prints:\n"
IS_KILLED = "\n# Prints, and is killed:\n"
AGAIN = "#\n# Started again, it prints:\n"
IN_ONE_PROCESS = [path for path in SEEDS if IS_KILLED not in path.read_text("utf-8")]
KILLED = [path for path in SEEDS if path not in IN_ONE_PROCESS]
ON_A_SERVER = {"asynkron_postgres", "tanstack_postgres"}
KILLS_ANOTHER = {"asynkron_leases", "tanstack_stale_lease"}
"""They kill a process that they have started."""


def printed(comment: str) -> str:
    """What the comment at the end of an example says, without the marks of a comment."""
    return "".join(line.removeprefix("#").removeprefix(" ") for line in comment.splitlines(keepends=True))


def without_spaces_at_ends(text: str) -> str:
    """As comments have it."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def test_each_system_has_examples_and_one_that_is_killed() -> None:
    """The tests below look at examples of all five systems, and at a SIGKILL in each."""
    assert {path.stem.partition("_")[0] for path in SEEDS} == SYSTEMS
    assert {stem.partition("_")[0] for stem in KILLS_ANOTHER | {path.stem for path in KILLED}} == SYSTEMS


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_an_example_is_short(path: Path) -> None:
    """It has less than a hundred lines with everything that it prints."""
    assert len(path.read_text("utf-8").splitlines()) < LINES_MAX


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow) if path.stem in ON_A_SERVER else path for path in IN_ONE_PROCESS],
    ids=lambda path: path.stem,
)
def test_an_example_prints_what_it_says(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """In this process, and in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    if path.stem in ON_A_SERVER:
        server = request.getfixturevalue("postgres_server")
        monkeypatch.setenv("DATABASE_URL", new_database(server, path.stem))

    play(path)

    assert said_by(path) == without_spaces_at_ends(capfd.readouterr().out)


@pytest.mark.slow
def test_deployments_of_stepflow_are_the_same_on_a_server_with_leases_in_etcd(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    postgres_server: PostgresServer,
    etcd_program: None,
) -> None:
    """The third pattern of its page was to come."""
    [path] = [path for path in SEEDS if path.stem == "stepflow_deployments"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORE", new_database(postgres_server, "deployments"))
    with EtcdServer() as etcd:
        monkeypatch.setenv("LEASE", etcd.url("flows"))

        play(path)

    assert said_by(path) == without_spaces_at_ends(capfd.readouterr().out)


def new_database(server: PostgresServer, name: str) -> str:
    """The address of an empty one; the server of tests may forget when the power fails."""
    return f"{server.url(server.create_database(name))}?allow_unsafe=true"


def said_by(path: Path) -> str:
    """What an example says that it prints."""
    _, _, comment = path.read_text("utf-8").partition(PRINTS)
    assert comment
    return printed(comment)


def play(path: Path) -> None:
    """Run an example to its end; no other test sees what it defines."""
    spec = importlib.util.spec_from_file_location(f"seeds_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with REGISTRY.apart():
        spec.loader.exec_module(module)
        asyncio.run(asyncio.wait_for(module.main(), 50))


@pytest.mark.parametrize("path", KILLED, ids=lambda path: path.stem)
def test_an_example_that_is_killed_goes_on(path: Path, tmp_path: Path) -> None:
    """In processes of its own; the second one is the same command."""
    before, _, after = path.read_text("utf-8").partition(IS_KILLED)[2].partition(AGAIN)

    lives = [live(path, tmp_path), live(path, tmp_path)]

    assert [(it.returncode, without_spaces_at_ends(it.stdout)) for it in lives] == [
        (-signal.SIGKILL, printed(before)),
        (0, printed(after)),
    ]


def live(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """One life of an example."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(path)],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, err = process.communicate(timeout=50)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
