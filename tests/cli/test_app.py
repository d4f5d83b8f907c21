"""What a command may call a program, and what it says when that cannot be run."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import outlive
from outlive.cli import main
from outlive.cli.app import load
from outlive.cli.edge import Mistake
from outlive.cli.worker import SIGNALS
from outlive.engine import Engine
from tests.engine.inside import worker_settings_of

IN_TIME = 10.0
WORKFLOW = "import outlive\n\n@outlive.workflow\nasync def {name}() -> None: ...\n"


@outlive.workflow
async def app_listed() -> None:
    """One of many runs."""


@pytest.fixture(autouse=True)
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Imports of one test are not those of the next; commands are given in an empty folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(file: str, text: str) -> str:
    """A file of a user's program, in the folder where the command is given."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return file


def worker(*args: str) -> Result:
    """Give the command."""
    return CliRunner().invoke(main, ["worker", *args], env={"OUTLIVE_STORE": None})


def test_a_file_is_imported_by_its_name() -> None:
    """So that what it defines can be found by others who import it."""
    module, found = load(write("shop_app.py", "x = 1"))

    assert module is found is sys.modules["shop_app"]


def test_a_file_in_a_package_is_imported_as_part_of_it() -> None:
    """From the folder in which the outermost package stands."""
    write("deep/store/__init__.py", "")
    write("deep/store/orders/__init__.py", "y = 2")
    module, _ = load(write("deep/store/orders/app.py", "from . import y"))

    assert ("store.orders.app", 2) == (module.__name__, module.y)


def test_a_module_is_imported_from_the_folder_of_the_command() -> None:
    """A module is imported from the folder of the command, as with `python -m`, and the name after the colon is looked
    up in it."""
    write("shop/app.py", "class A:\n    b = 3")

    assert 3 == load("shop.app:A.b")[1]


def test_the_file_that_is_named_is_the_one_that_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is named by its path is imported even if a file of the same name stands where the command is
    given."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != ""])  # As the installed command has it.
    write("twice_app.py", "x = 'old'")

    assert "new" == load(write("new/twice_app.py", "x = 'new'") + ":x")[1]


def test_a_file_that_another_module_hides_is_refused() -> None:
    """A program that is called like a module of Python would run that one."""
    with pytest.raises(Mistake, match=r"json\.py is hidden by .* rename it"):
        load(write("json.py", ""))


@pytest.mark.parametrize(
    ("app", "text", "complaint"),
    [
        ("gone.py", None, "there is no file gone.py"),
        ("no.such.module", None, "ModuleNotFoundError: No module named 'no'"),
        ("with-dash.py", "", "rename it to a name that Python can import"),
        ("typo_app.py", "import outlive\nboom(", "SyntaxError"),
        ("bad_app.py", "import outlive\n\nraise ValueError('planned')", r"ValueError: planned (.*bad_app.py:3)"),
        ("quits_app.py", "raise SystemExit(0)", "__main__"),
        ("empty_app.py", "x = 1", "empty_app defines no workflow; decorate one with @outlive.workflow"),
        ("none_app.py:x", "", "none_app.py has no 'x'"),
        ("number_app.py:x", "x = 1", "number_app.py:x is int and neither an Engine nor a function that makes one"),
    ],
)
def test_a_program_that_cannot_be_run_is_one_line_and_exit_code_2(
    app: str, text: str | None, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what is wrong and where; no traceback, and nothing is opened."""
    from outlive._kernel.define import registry

    monkeypatch.setattr(registry, "REGISTRY", registry.Registry())
    if text is not None:
        write(app.partition(":")[0], text)

    result = worker(app, "--store", "sqlite:x.db")

    assert 2 == result.exit_code, result.output
    (line,) = result.output.splitlines()
    start, _, end = complaint.partition(".*")
    assert start in line
    assert end in line
    assert not Path("x.db").exists()


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ([], "give --store URL, set OUTLIVE_STORE, or write store ="),
        (["--store", "mysql://x"], "no store has the scheme 'mysql'"),
        (["--store", "sqlite:x.db", "--lease", "zoo"], "zoo"),
        (["--store", "sqlite:x.db", "--grace-seconds", "-1"], "--grace-seconds"),
        (["--store", "sqlite:x.db", "--lease-seconds", "0.1"], "--lease-seconds"),
    ],
)
def test_wrong_options_are_exit_code_2(args: list[str], complaint: str) -> None:
    """Before anything is opened."""
    result = worker(write("fine_app.py", WORKFLOW.format(name="fine_one")), *args)

    assert (2, True) == (result.exit_code, complaint in result.output), result.output


def test_a_command_that_needs_the_store_says_so_beside_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is named, and `runs purge` does not ask it."""
    monkeypatch.setenv("OUTLIVE_SERVER", "http://127.0.0.1:1")
    result = CliRunner().invoke(main, ["runs", "purge", "--status", "failed"])

    assert 2 == result.exit_code
    assert "OUTLIVE_SERVER does not help: this command needs the store itself" in result.output


def test_a_file_that_is_not_a_store_exits_with_1() -> None:
    """A worker on a file that is not a store exits with 1, because the command is right and the file is not."""
    Path("other.db").write_text("something else entirely, and long enough to be looked at" * 10)

    result = worker(write("right_app.py", WORKFLOW.format(name="right_one")), "--store", "sqlite:other.db")

    assert 1 == result.exit_code
    assert "is not an Outlive database" in result.output


@pytest.mark.parametrize("command", ["worker", "serve"])
def test_service_that_has_ended_leaves_signals_to_its_process(command: str) -> None:
    """A program may give commands in its own process: the second Ctrl-C of its later life ended it."""
    Path("other.db").write_text("something else entirely, and long enough to be looked at" * 10)
    before = [signal.getsignal(number) for number in SIGNALS]
    args = [write("late_app.py", WORKFLOW.format(name="late_one"))] if command == "worker" else []

    result = CliRunner().invoke(main, [command, *args, "--store", "sqlite:other.db"])

    assert (1, before) == (result.exit_code, [signal.getsignal(number) for number in SIGNALS])
    for thread in [each for each in threading.enumerate() if each.name == "outlive-signals"]:
        thread.join(IN_TIME)
        assert not thread.is_alive()


@pytest.mark.parametrize("made", ["outlive.Engine('sqlite:x.db', {})", "lambda: outlive.Engine('sqlite:x.db', {})"])
def test_an_engine_of_the_program_brings_its_own_settings(made: str) -> None:
    """A store or leases beside its own are refused, and so is one that has no worker."""
    own = write("own_app.py", f"import outlive\nmine = {made.format('poll_seconds=1')}")
    idle = write("idle_app.py", f"import outlive\nmine = {made.format('worker=False')}")

    refused = worker(f"{own}:mine", "--store", "sqlite:y.db", "--lease", "none")
    assert (2, True) == (refused.exit_code, "give --lease, --store to Engine(...) there" in refused.output)
    refused = worker(f"{idle}:mine")
    assert (2, True) == (refused.exit_code, "leave out worker=False" in refused.output)


def test_the_worker_of_an_engine_of_the_program_can_be_named_and_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of the command set the name, the grace and the lease of a worker over those of the program's engine."""
    seen: list[Any] = []

    async def work(engine: Any, stop: Any, *, bounds: Any, metrics: Any) -> None:
        seen.append(worker_settings_of(engine))

    monkeypatch.setattr(importlib.import_module("outlive.cli.worker"), "work", work)
    app = write(
        "named_app.py",
        "import outlive\noptions = outlive.types.WorkerOptions(name='one', grace_seconds=1)\n"
        "mine = outlive.Engine('sqlite:x.db', worker=options)",
    )

    options = ["--name", "two", "--grace-seconds", "3", "--lease-seconds", "7", "--no-exit-when-stalled"]
    assert [0, 0] == [worker(f"{app}:mine").exit_code, worker(f"{app}:mine", *options).exit_code]
    assert [("one", 1, 10, True), ("two", 3, 7, False)] == seen


@pytest.mark.parametrize("command", ["runs list --ids", "runs list", "config show"])
def test_a_command_whose_reader_has_read_enough_ends_well(tmp_path: Path, command: str) -> None:
    """A command whose reader is gone, as in `outlive runs list | head -1`, ends with 0 and no message."""
    url = f"sqlite:{tmp_path / 'runs.db'}"
    with Engine(url, worker=False).sync as engine:
        engine.start_many([(app_listed,)] * 50)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        found = subprocess.run(
            [sys.executable, "-m", "outlive.cli", *command.split()],
            stdout=writer,
            stderr=subprocess.PIPE,
            env=os.environ | {"OUTLIVE_STORE": url},
            check=False,
        )
    finally:
        os.close(writer)

    assert (0, b"") == (found.returncode, found.stderr)
