"""`outlive check-deploy` as a shell and a program see it: processes that import the new code."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import outlive
from outlive._kernel.define.registry import REGISTRY
from outlive.cli import main
from outlive.testing import TestEngine, check_deploy
from tests.cli.serving import served_store

NUMBERS = count(1)
OLD = """
import os
import outlive

@outlive.step(name="deployed.reserve")
async def reserve(order: str) -> str:
    return order

@outlive.step(name="deployed.check")
async def check(order: str) -> str:
    os._exit(9)

@outlive.workflow(name="deployed.checkout")
async def checkout(order: str) -> str:
    print("replayed")
    {first}
    await reserve(order)
    {then}
    return await outlive.wait_for_signal("paid", str)
"""


@outlive.step(name="cli_deploy.reserve")
async def reserve(order: str) -> str:
    """Stands for the step of the program."""
    return order


async def checkout(order: str) -> str:
    """The code that the runs were begun with."""
    await outlive.run_step(reserve.fn, order, name="deployed.reserve")
    return await outlive.wait_for_signal("paid", str)


async def begin(place: Path) -> None:
    """Three runs that wait for their signal."""
    with REGISTRY.forgetting():
        workflow = outlive.workflow(name="deployed.checkout")(checkout)
        async with TestEngine(f"sqlite:{place}") as engine:
            for number in range(3):
                await engine.start(workflow, f"o-{number}", id=f"order-{number}")
            await engine.settle()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With runs in it. What a test imports from it is forgotten."""
    asyncio.run(begin(tmp_path / "runs.db"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def deploy(name: str, first: str = "", then: str = "") -> str:
    """A program with the new code, as a module that this process has not imported yet."""
    file = f"{name}_{next(NUMBERS)}.py"
    Path(file).write_text(OLD.format(first=first or "pass", then=then or "pass"))
    return file


@pytest.fixture(params=["store", "server"])
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[dict[str, str]]:
    """The variable that says where the runs are: in a store, or behind a server of it."""
    if request.param == "store":
        yield {"OUTLIVE_STORE": "sqlite:runs.db"}
    else:
        with served_store("sqlite:runs.db") as address:
            yield {"OUTLIVE_SERVER": address}


def given(*args: str, place: dict[str, str] | None = None) -> Result:
    """Give the command."""
    with REGISTRY.forgetting():
        env = place or {"OUTLIVE_STORE": "sqlite:runs.db"}
        return CliRunner().invoke(main, ["check-deploy", *args], env=env)


def test_code_that_fits_exits_with_0(place: dict[str, str]) -> None:
    """`check-deploy` says in one line that all open runs go on with the code, and exits with 0."""
    result = given(deploy("fits_one"), place=place)

    assert (result.exit_code, result.stdout) == (0, "3 open runs replayed: all go on with this code\n")


def test_code_that_diverges_exits_with_1(place: dict[str, str]) -> None:
    """`check-deploy` prints the groups of runs that diverge as JSON, and exits with 1."""
    app = deploy("diverges_one", first="await check(order)")
    result = given(app, "--json", "--processes", "2", place=place)

    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert (report["open"], report["harmed"], report["is_fine"]) == (3, 3, False)
    (group,) = report["groups"]
    assert (group["kind"], group["count"]) == ("diverges", 3)
    assert group["code"] == "waits for step deployed.check"


def test_code_that_ends_its_process_is_reported(folder: Path) -> None:
    """For the runs that do it, one by one."""
    app = deploy("kills_one", then="os._exit(9) if order == 'o-1' else None")
    with REGISTRY.forgetting():
        report = check_deploy("sqlite:runs.db", app)

    (group,) = report.groups
    assert (group.kind, group.examples, report.checked) == ("undecided", ["order-1"], 3)
    assert group.what == "its process ended with code 9"


def test_mistakes_exit_with_2(folder: Path) -> None:
    """No such code, no such store, no store at all, and code that only its processes cannot import."""
    app = deploy("fits_two")
    assert "there is no file nothing.py" in given("nothing.py").stderr
    for args in (
        ["nothing.py"],
        [app, "--store", "sqlite:none.db"],
        [app, "--store", "memory:"],
        [app, "--limit", "0"],
    ):
        assert given(*args).exit_code == 2
    Path("picky.py").write_text(f"import os\nimport {app[:-3]}\nassert os.getpid() == {os.getpid()}\n")
    result = given("picky.py")
    assert (result.exit_code, "picky.py cannot be imported: AssertionError" in result.stderr) == (2, True)
