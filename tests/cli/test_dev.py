"""`outlive dev` as processes: it reloads, survives broken saves and kills, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

import outlive
from outlive.cli import main
from outlive.dev.parked import is_because_of_code
from outlive.dev.place import PlaceError, Places
from outlive.dev.watch import Watch, imported_files
from outlive.errors.program import DivergenceError, StuckError
from outlive.http.server import free_port
from tests.cli.conftest import Command, Ledger, until

Begin = Callable[..., Command]

PROGRAM = """\
import asyncio, os, time
from pathlib import Path
import outlive

FOLDER = Path(os.environ["SHOP"])

def tell(line: str) -> None:
    with (FOLDER / "ledger").open("a") as file:
        file.write(f"{line} {os.getpid()} {time.time()}\\n")

@outlive.step
async def pack(name: str) -> str:
    tell(f"begin {name}")
    while not (FOLDER / "gate").exists():
        await asyncio.sleep(0.01)
    tell(f"end {name}")
    return name

@outlive.workflow
async def order(name: str) -> str:
    first = await pack(f"{name}-1")
    await outlive.wait_for_signal("go")
    tell("CODE")
    return first
"""


def says(command: Command, words: str) -> str:
    """Wait for the next line with these words on its standard error; the line."""
    line = ""

    def is_found() -> bool:
        nonlocal line
        while part := command.notes.readline():
            line = part if line.endswith("\n") else line + part
            if line.endswith("\n") and words in line:
                return True
        return command.process.poll() is not None

    until(is_found)
    assert words in line, f"it ended without saying {words!r}\n{command.log}"
    return line


def place_in(command: Command) -> str:
    """The address of the dashboard."""
    found = re.search(r"dashboard (\S+)/", command.ready())
    assert found is not None
    return found[1]


def pid_in(line: str) -> int:
    """The process that a line names."""
    found = re.search(r"worker process (\d+)", line)
    assert found is not None, line
    return int(found[1])


def wait_for_end(pid: int) -> None:
    """Wait until a process that is not our child is gone; the test's timeout is the limit."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(watch) as file:
        select.select([file], [], [])


def test_a_run_goes_on_in_the_code_that_was_saved(command: Begin, tmp_path: Path, ledger: Ledger) -> None:
    """A change starts the next worker, a broken one is shown and changes nothing, a run that was parked by a change
    goes on when the change is taken back, and Ctrl-C ends both processes."""
    program = tmp_path / "app.py"
    program.write_text(PROGRAM.replace("CODE", "old"))
    dev = command("dev", "app.py", "--port", "0")
    place = place_in(dev)
    first = pid_in(says(dev, "runs order"))
    says(dev, """outlive run app.py:order '{"name": ...}'""")
    with outlive.Engine(f"sqlite:{tmp_path}/app.db", worker=False).sync as engine:
        engine.start("order", ["a"], id="a")
    ledger.open_gate()
    ledger.hears("end a-1")

    program.write_text("def (")
    says(dev, "SyntaxError")
    assert first == pid_in(says(dev, "goes on with the code from before"))
    program.write_text(PROGRAM.replace("@outlive.step", '@outlive.step(name="wrap")'))
    says(dev, "app.py changed")
    with outlive.Engine(f"sqlite:{tmp_path}/app.db", worker=False).sync as engine:
        engine.signal("a", "go")
        with pytest.raises(outlive.errors.RunParkedError, match="waits for step wrap"):
            engine.get("a").result()
    program.write_text(PROGRAM.replace("CODE", "new"))
    says(dev, "a parked run will be tried again with this code: a")
    second = pid_in(says(dev, "app.py changed"))
    ledger.hears("new")

    assert ["begin a-1", "end a-1", "new"] == ledger.said(), "the first step is done, and the rest is the new code"
    assert "succeeded" == json.load(urlopen(f"{place}/api/v1/runs/a/result?wait=20", timeout=30))["status"]
    dev.signal(signal.SIGINT)
    assert 0 == dev.ends()
    assert dev.process.stdout is not None
    assert dev.process.stdout.read() == "", "the first line was all that a pipe needs"
    wait_for_end(first)
    wait_for_end(second)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(command: Begin, tmp_path: Path, ledger: Ledger) -> None:
    """The server answers meanwhile, and the run goes on in the next process; a dev that is killed takes it along."""
    (tmp_path / "app.py").write_text(PROGRAM)
    dev = command("dev", "app.py", "--port", "0")
    place = place_in(dev)
    first = pid_in(says(dev, "runs order"))
    with outlive.Engine(f"sqlite:{tmp_path}/app.db", worker=False).sync as engine:
        engine.start("order", ["a"], id="a")
    ledger.hears("begin a-1")

    os.kill(first, signal.SIGKILL)

    assert first == pid_in(says(dev, "was ended by SIGKILL"))
    assert "a" == json.load(urlopen(f"{place}/api/v1/runs/a", timeout=20))["id"]
    second = pid_in(says(dev, "runs order"))
    ledger.hears("begin a-1", times=2)
    dev.process.kill()
    wait_for_end(second)


@pytest.mark.slow
def test_a_program_that_is_broken_from_the_start_is_tried_again(command: Begin, tmp_path: Path) -> None:
    """The dashboard is there already, and the first save that can be imported works."""
    (tmp_path / "app.py").write_text("import nothing_of_this_name")
    dev = command("dev", "app.py", "--port", "0")
    place_in(dev)
    says(dev, "ModuleNotFoundError")
    says(dev, "no worker runs")

    (tmp_path / "nothing_of_this_name.py").write_text(PROGRAM)

    says(dev, "runs order")


@pytest.mark.slow
def test_flows_are_published_as_they_are_saved(command: Begin, tmp_path: Path) -> None:
    """A folder needs no program; a document with a problem is shown with its line, and the one before stays."""
    folder = tmp_path / "flows"
    folder.mkdir()
    document = folder / "hi.flow.yaml"
    text = 'name: hi\nsteps:\n  greet: { use: noop, with: { text: "Hi" } }\noutput: "${{ steps.greet.text }}"\n'
    document.write_text(text)
    (folder / "buy.flow.yaml").write_text("name: buy\nsteps:\n  pay: { use: shop.pay }\n")
    dev = command("dev", "flows", "--port", "0")
    place = place_in(dev)
    line = says(dev, "no step or workflow is registered as 'shop.pay'; known: ")
    assert "no worker of this command can run the flow" in line
    says(dev, "outlive dev app.py FLOWS")
    says(dev, "flow hi published as revision 1")
    assert says(dev, "runs hi").endswith(" runs hi\n")

    document.write_text(text.replace("use: noop", "uses: noop"))
    says(dev, "hi.flow.yaml:3")
    says(dev, "goes on with the code from before")
    document.write_text(text.replace('"Hi"', '"Hello"'))
    says(dev, "flow hi published as revision 2")

    assert (folder / "flows.db").exists()
    assert "hi" == json.load(urlopen(f"{place}/api/v1/flows/hi", timeout=20))["name"]


@pytest.mark.slow
def test_an_engine_of_the_program_brings_its_store(command: Begin, tmp_path: Path) -> None:
    """`outlive dev` serves the store of the engine that it is given, refuses another store beside it, and names an
    engine that it does not use."""
    (tmp_path / "app.py").write_text(f"{PROGRAM}\nengine = outlive.Engine('sqlite:own.db')\n")
    dev = command("dev", "app.py:engine", "--port", "0")

    says(dev, "store     sqlite:own.db")
    says(command("dev", "app.py", "--port", "0"), "`outlive dev app.py:engine` uses that one")
    refused = command("dev", "app.py:engine", "--store", "sqlite:other.db")

    assert 2 == refused.ends()
    assert "app.py:engine has a store of its own" in refused.log


def test_without_a_program_it_is_the_dashboard_of_a_store(command: Begin) -> None:
    """It starts no worker. It answers this machine without a key, and is a proxy for no program of it. [S1 S2]"""
    dev = command("dev", "--store", "sqlite:shop.db", "--port", "0")
    place = place_in(dev)

    assert [] == json.load(urlopen(f"{place}/api/v1/workers", timeout=20))["items"]
    with socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2])), timeout=20) as proxied:
        proxied.sendall(b"GET http://evil.example/api/v1/runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert proxied.recv(100).startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "no store is named"),
        (["a.py", "b.py"], "a.py and b.py: give one program"),
        (["a.py", "--store", "memory:"], "belongs to its process"),
        (["nothing.flow.yaml"], "there is no file nothing.flow.yaml"),
    ],
)
def test_dev_refuses_arguments_that_it_cannot_run(names: list[str], words: str) -> None:
    """`outlive dev` refuses arguments that it cannot run with exit code 2."""
    result = CliRunner().invoke(main, ["dev", *names])

    assert 2 == result.exit_code, result.output
    assert words in result.output


@pytest.mark.parametrize("command", ["dev", "serve"])
def test_without_the_extra_it_says_what_to_install(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, before a worker is started."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    result = CliRunner().invoke(main, [command, "--store", "sqlite:nothing.db"])

    assert (2, 1) == (result.exit_code, len(result.output.splitlines())), result.output
    assert "run: pip install 'outlive[server]'" in result.output
    assert not Path("nothing.db").exists()


def test_the_store_lies_beside_what_is_named(tmp_path: Path) -> None:
    """A file beside the program, or in the folder of the flows."""
    (tmp_path / "hi.flow.yaml").touch()

    assert "sqlite:shop/app.db" == Places.of(["shop/app.py"]).default_store()
    assert "sqlite:app.db" == Places.of(["shop.app"]).default_store()
    assert f"sqlite:{tmp_path}/flows.db" == Places.of([str(tmp_path)]).default_store()
    assert Places.of([]).default_store() is None


def test_a_folder_without_documents_is_a_mistake(tmp_path: Path) -> None:
    """It says what a document is called."""
    with pytest.raises(PlaceError, match=r"\*\.flow\.yaml"):
        Places.of([str(tmp_path)])


def test_a_change_is_a_file_that_was_written_that_came_or_that_went(tmp_path: Path) -> None:
    """Beside a file that was imported too; another kind of file is none."""
    app, beside, flow = tmp_path / "app.py", tmp_path / "beside.py", tmp_path / "flows" / "a.flow.yaml"
    flow.parent.mkdir()
    for file in (app, flow):
        file.write_text("1")
    watch = Watch([app], [flow.parent])
    assert not watch.changed()

    app.write_text("12")
    assert [str(app)] == watch.changed()
    beside.write_text("1")
    (tmp_path / "notes.txt").write_text("1")
    assert [str(beside)] == watch.changed()
    beside.unlink()
    flow.write_text("12")
    assert [str(beside), str(flow)] == watch.changed()


def test_a_file_that_is_watched_later_counts_from_then_on(tmp_path: Path) -> None:
    """A file that is added to the watch is not a change itself, and hides no change of another file."""
    app, other = tmp_path / "app.py", tmp_path / "other" / "part.py"
    other.parent.mkdir()
    app.write_text("1")
    other.write_text("1")
    watch = Watch([app], [])
    app.write_text("12")

    watch.add([str(other)])

    assert [str(app)] == watch.changed()
    other.write_text("12")
    assert [str(other)] == watch.changed()


def test_only_files_of_the_user_are_watched() -> None:
    """This file, and nothing that is installed."""
    found = imported_files()

    assert str(Path(__file__).resolve()) in found
    assert not [file for file in found if file in (json.__file__, pytest.__file__) or "/src/outlive/" in file]


def test_a_port_that_is_taken_is_passed_over() -> None:
    """A second `outlive dev` gets the next one."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]

        assert free_port(taken) != taken


def test_only_what_other_code_may_do_otherwise_is_tried_again() -> None:
    """A run that a person has paused, or that kills its workers, stays as it is."""
    diverged = DivergenceError(definition="order@1", seq=1, journal="step a succeeded", code="waits for step b")
    stuck = f"order@1 stopped at event 3: {StuckError('app.py:7')}"

    assert all(map(is_because_of_code, [str(diverged), stuck, "it could not be replayed: KeyError: 'x'"]))
    assert not any(map(is_because_of_code, ["it was paused by ann", "it was taken over 11 times without progress"]))


def test_a_document_that_changes_is_one_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a person named it from here or the worker process named it in full."""
    monkeypatch.chdir(tmp_path)
    document = tmp_path / "order.flow.yaml"
    document.write_text("name: order")
    watch = Watch([], [Path("order.flow.yaml")])
    watch.add([str(document.resolve())])

    document.write_text("name: orders")

    assert [str(document.resolve())] == watch.changed()
