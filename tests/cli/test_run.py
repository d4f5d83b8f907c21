"""`outlive run`: starts one run of a program and follows it; the same command again goes on with it."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from outlive._features.runs.commands.run import arguments_of, id_of
from outlive._kernel.define.registry import REGISTRY
from outlive.cli import main
from tests.cli.conftest import Command, Ledger

Give = Callable[..., Result]

PROGRAM = """\
import outlive

@outlive.step
async def cli_run_double(n: int) -> int:
    if n == 13:
        raise ValueError("unlucky")
    return n * 2

@outlive.workflow
async def cli_run_one(n: int) -> dict:
    return {"twice": await cli_run_double(n)}

@outlive.workflow
async def cli_run_two() -> None:
    ...
"""


@pytest.fixture
def give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Give:
    """Gives commands in a folder with a program."""
    name = f"cli_run_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)

    def give(workflow: str, *args: str, store: str | None = "sqlite:run.db") -> Result:
        found: list[Result] = []
        words = ["run", f"{name}.py{workflow}", *args, *(["--store", store] if store else [])]
        runner = CliRunner(env={"OUTLIVE_STORE": None})
        thread = Thread(target=lambda: found.append(runner.invoke(main, words)))
        thread.start()
        thread.join()
        return found[0]

    return give


def test_run_prints_its_result_and_says_what_happens(give: Give) -> None:
    """The result on standard output, the events on standard error; arguments by name, in a list, or the only one.
    [FE-O2]
    """
    with REGISTRY.forgetting():
        first = give(":cli_run_one", '{"n": 4}')
        assert (first.exit_code, json.loads(first.stdout)) == (0, {"twice": 8}), first.output
        assert "step cli_run_double succeeded" in first.stderr
        again = give(":cli_run_one", "4")
        assert (json.loads(again.stdout), first.stderr.split()[1] == again.stderr.split()[1]) == ({"twice": 8}, True)
        shown = CliRunner().invoke(main, ["runs", "show", again.stderr.split()[1], "--store", "sqlite:run.db"])
        assert 'input      {"n":4}' in shown.stdout, shown.output
        # It had ended, so this is a new one.
        assert "the run of cli_run_one, version 1, began" in again.stderr

        named = [give(":cli_run_one", "[5]", "--id", "mine", "--tag", "a=b", "--json") for _ in range(2)]
        assert [json.loads(it.stdout)["result"] for it in named] == [{"twice": 10}] * 2
        assert give(":cli_run_one", "6", "--id", "later", "--detach").stdout == "later\n"


def test_without_a_store_the_run_is_kept_beside_the_program(give: Give, tmp_path: Path) -> None:
    """In the file that `outlive dev` uses too, and it says where."""
    with REGISTRY.forgetting():
        found = give(":cli_run_one", "4", store=None)

    (file,) = tmp_path.glob("*.db")
    assert (found.exit_code, found.stderr.splitlines()[0]) == (0, f"store sqlite:{file.name}")


def test_failure_is_shown_once_with_the_line_of_the_code(give: Give) -> None:
    """A failed run exits with 1 and shows the line of the code that failed, without a traceback."""
    with REGISTRY.forgetting():
        failed = give(":cli_run_one", "13")

    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "Traceback" not in failed.stderr
    assert 'in cli_run_double: raise ValueError("unlucky")' in failed.stderr


def test_mistakes_are_one_line(give: Give) -> None:
    """With what to write instead."""
    with REGISTRY.forgetting():
        for result, words in [
            (give("", "4"), "say which workflow:"),
            (give(":cli_run_one", "4", store="memory:"), "--store sqlite:orders.db"),
            (give(":cli_run_one", "4", "--input", "5"), "give the arguments once"),
            (give(":cli_run_one", "{"), "it is not JSON"),
            (give(":cli_run_one", "four"), """if you mean the text, write '"four"'"""),
            (give(":cli_run_one", '"four"'), "is not of type integer"),
        ]:
            assert (result.exit_code, words in result.stderr) == (2, True), result.output


def test_ids_are_those_of_the_arguments() -> None:
    """However they are written; a workflow with one parameter may be given its argument itself."""
    from tests.cli import shop

    assert arguments_of(shop.order, {"name": "a"}) == arguments_of(shop.order, ["a"]) == {"name": "a"}
    assert arguments_of(shop.order, {"id": 7}) == {"name": {"id": 7}}
    assert arguments_of(shop.order, None) == {}
    assert id_of("a b", {"x": 1, "y": 2}) == id_of("a b", {"y": 2, "x": 1})
    assert id_of("order", {"x": 1}) != id_of("order", {"x": 2})


def test_ctrl_c_and_the_same_command_again_goes_on(command: Callable[..., Command], ledger: Ledger) -> None:
    """A real process: steps that had ended are not called again."""
    words = ("run", "tests.cli.shop:order", '{"name": "c"}', "--store", "sqlite:shop.db")
    first = command(*words)
    ledger.hears("begin c-1")
    first.signal(signal.SIGINT)
    ledger.open_gate()
    assert first.ends() == 130
    assert "the same command goes on with run order-" in first.log

    second = command(*words)
    assert second.ends() == 0, second.log
    assert second.process.stdout is not None
    assert json.loads(second.process.stdout.read()) == "c-1 c-2"
    assert ledger.said().count("end c-1") == 1


def answer_to(*words: str) -> str:
    """What a command that is wrong says."""
    done = CliRunner().invoke(main, words)
    assert 2 == done.exit_code, done.output
    return done.output


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program of one workflow, in which the commands are given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "newcomer.py").write_text(
        "import outlive\n\n@outlive.workflow\nasync def greet_newcomer(name: str) -> str:\n    return name\n"
    )
    return tmp_path


def test_mistake_is_answered_with_what_may_be_meant(in_folder: Path) -> None:
    """Files, names and commands that are nearly right, and arguments that do not fit."""
    answers = {
        ("dev", "newcommer.py"): "there is no file newcommer.py; is it newcomer.py?",
        ("run", "newcommer.py"): "there is no file newcommer.py; is it newcomer.py?",
        ("run", "newcomer.py:greet"): "newcomer.py has no 'greet'; it has greet_newcomer",
        ("dve", "newcomer.py"): "is it `outlive dev`?",
        ("why", "order-1"): "is it `outlive runs why`?",
        ("run", "newcomer.py", "5"): 'greet_newcomer cannot be given {"name": 5}: at $.name: 5 is not of type string',
        ("run", "newcomer.py"): "greet_newcomer cannot be given nothing: at $: 'name' is missing",
    }
    for words, said in answers.items():
        assert said in " ".join(answer_to(*words).split())


def test_program_that_cannot_be_imported_is_named_with_its_own_line(in_folder: Path) -> None:
    """Not with the line of Outlive that refuses it."""
    (in_folder / "mistaken.py").write_text("import outlive\n\n@outlive.workflow\ndef greet() -> None: ...\n")

    said = answer_to("run", "mistaken.py")

    assert "use `async def greet`" in said
    assert "mistaken.py:3)" in said or "mistaken.py:4)" in said
    assert "0x" not in said


def test_stores_of_the_folder_are_offered(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that needs a store says which ones are here."""
    monkeypatch.delenv("OUTLIVE_STORE", raising=False)
    (in_folder / "hello.db-workers").mkdir()

    assert "here are sqlite:hello.db" in answer_to("runs", "list")


def test_flow_whose_steps_are_not_known_asks_for_the_program(in_folder: Path) -> None:
    """With the line of the document, and the command that can run it."""
    (in_folder / "welcome.flow.yaml").write_text("name: welcome\nsteps:\n  greet: { use: shop.greet }\n")

    said = answer_to("run", "welcome.flow.yaml")

    assert "welcome.flow.yaml:3:17: step greet: no step or workflow is registered as 'shop.greet'" in said
    assert "outlive flows run welcome.flow.yaml --app app.py" in said


def test_run_of_a_flow_is_kept_in_the_store_and_the_namespace_that_are_named(
    in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By flags or in the configuration, as a run of a workflow is."""
    monkeypatch.delenv("OUTLIVE_STORE", raising=False)
    (in_folder / "echo.flow.yaml").write_text(
        "name: echo\nsteps:\n  nap: { use: sleep, with: { seconds: 0 } }\noutput: 1\n"
    )
    (in_folder / "outlive.toml").write_text("store = 'sqlite:named.db'\n")

    flow = ["run", "echo.flow.yaml"]
    of_file = CliRunner().invoke(main, flow)
    of_flags = CliRunner().invoke(main, [*flow, "--store", "sqlite:given.db", "--namespace", "acme"])

    assert (of_file.exit_code, of_flags.exit_code) == (0, 0)
    assert {file.name for file in in_folder.glob("*.db")} == {"named.db", "given.acme.db"}
