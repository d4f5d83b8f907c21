"""What holds for every command, also for the next one: `--json`, help that is quick, completion, colours."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import outlive
from outlive.cli import completing, main
from outlive.cli.edge import print_table
from outlive.cli.paint import painted
from outlive.engine import Engine
from tests.cli.serving import served_store

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
WITHOUT_JSON = {
    "demo": "a show for people; its exit code says whether all went well",
    "worker": "a service: `--log-format json` makes its log JSON",
    "serve": "a service: it answers in JSON over HTTP",
    "dev": "a worker and a service at once, for a person at a keyboard",
    "completion": "it prints a script for a shell",
}


SERVICES = {"demo", "dev", "serve", "worker"}


def commands(group: click.Command = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by the words that a person types."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from commands(command, (*path, name))
    else:
        yield " ".join(path), group


ALL = dict(commands())


def test_every_command_prints_json() -> None:
    """Or has a reason why not."""
    lacking = {name for name, command in ALL.items() if "--json" not in _options(command)}

    assert lacking == set(WITHOUT_JSON)


def test_every_command_says_what_it_does_and_what_its_options_mean() -> None:
    """In `--help`."""
    silent = [name for name, command in ALL.items() if not command.help]
    silent += [
        f"{name} {option.opts[0]}"
        for name, command in ALL.items()
        for option in command.params
        if isinstance(option, click.Option) and not option.help and not option.hidden
    ]

    assert silent == []


def test_help_of_a_group_cuts_no_sentence_off() -> None:
    """A person reads there what each command does."""
    context = click.Context(main)
    groups = {name: main.get_command(context, name) for name in main.list_commands(context)}
    for name, group in groups.items():
        if isinstance(group, click.Group):
            assert "..." not in group.get_help(click.Context(group, info_name=name)).partition("Options:")[2], name


@pytest.mark.parametrize("name", sorted({name.partition(" ")[0] for name in ALL if " " in name}))
def test_a_group_alone_says_its_help(name: str) -> None:
    """The grammar is one: a group does nothing without a command, and says that the command line is not complete."""
    answer = CliRunner().invoke(main, [name])

    assert answer.exit_code == 2
    assert f"Usage: main {name} [OPTIONS] COMMAND [ARGS]..." in answer.output


def test_every_command_is_in_the_reference() -> None:
    """In the block that shows how it is called."""
    text = REFERENCE.read_text("utf-8")
    blocks = "\n".join(re.findall(r"```(?:text|sh)[^\n]*\n(.*?)```", text, flags=re.DOTALL))
    missing = [name for name in ALL if not re.search(rf"^outlive {re.escape(name)}\b", blocks, flags=re.MULTILINE)]

    assert missing == []


def test_the_reference_says_which_commands_take_a_server() -> None:
    """Every command is in its table once, with what its options say, and with a reason if it takes none."""
    table = REFERENCE.read_text("utf-8").partition("## Which commands take a server")[2]
    said: dict[str, bool] = {}
    for names, answer, reason in re.findall(r"^\| (`.+?) \| (yes|no) \|(.*)\|$", table, flags=re.MULTILINE):
        assert (answer == "no") == bool(reason.strip()), names
        for name in re.findall(r"`(.+?)`", names):
            assert name not in said, name
            said[name] = answer == "yes"

    assert said == {name: "--server" in _options(command) for name, command in ALL.items()}


def test_help_loads_nothing_but_the_table() -> None:
    """So it takes what Python and click take, however many commands there are."""
    program = (
        "import sys; from outlive.cli import main\n"
        "try: main(['--help'], prog_name='outlive')\n"
        "except SystemExit: print([name for name in sys.modules if name.startswith('outlive')], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    loaded = [it for it in literal_eval(done.stderr) if not it.startswith("outlive._features")]
    assert loaded == ["outlive._on_demand", "outlive", "outlive._kernel", "outlive._kernel.feature", "outlive.cli"]


def test_the_help_of_every_command_is_quick() -> None:
    """It loads neither the engine nor asyncio, which would take longer than all the rest; services have to."""
    program = (
        "import sys, click; from outlive.cli import main\n"
        "def each(group):\n"
        "    context = click.Context(group)\n"
        f"    for name in set(group.list_commands(context)) - {SERVICES}:\n"
        "        command = group.get_command(context, name)\n"
        "        command.get_help(click.Context(command, info_name=name))\n"
        "        isinstance(command, click.Group) and each(command)\n"
        "each(main)\n"
        "print({'asyncio', 'msgspec', 'ssl', 'logging', 'outlive.engine', 'outlive.errors'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_ctrl_c_has_its_exit_code_wherever_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C exits with 130 even while the module of a command is imported."""

    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("outlive.cli.import_module", interrupted)
    assert CliRunner().invoke(main, ["runs", "list"]).exit_code == 130


@pytest.mark.parametrize(
    "words",
    [("runs", "why", "\udcff", "--server", "http://127.0.0.1:9"), ("check-deploy", "a.py", "--workflow", "\udcff")],
)
def test_bytes_that_are_not_text_are_one_line_and_exit_code_2(words: tuple[str, ...]) -> None:
    """An argument that is not UTF-8 is named in one line, and the command exits with 2."""
    result = CliRunner().invoke(main, words)

    assert result.exit_code == 2
    assert "'\\udcff' is not UTF-8" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        "runs list --since 999999999w",
        f"runs list --since {'9' * 5_000}d",
        "schedules backfill digest 999999w 1h",
        "keys create ci --expires 999999999w",
        f"keys create ci --expires {'9' * 5_000}d",
        f"audit list --after {'9' * 30}",
    ],
)
def test_a_number_that_is_too_large_is_a_mistake(words: str, tmp_path: Path) -> None:
    """A number that is too large is one line and exit code 2, without a traceback."""
    url = f"sqlite:{tmp_path / 'shop.db'}"
    with Engine(url, worker=False).sync:
        result = CliRunner().invoke(main, [*words.split(), "--store", url])

    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), result.output


@pytest.mark.parametrize("words", [("signal", "run-1", "go"), ("runs", "import")])
def test_standard_input_that_is_not_text_is_a_mistake(words: tuple[str, ...], tmp_path: Path) -> None:
    """Standard input that is not text gets one line and exit code 2, even where Python lets such bytes pass, as in the
    locale C."""
    env = os.environ | {"PYTHONIOENCODING": "utf-8:surrogateescape"}
    line = [sys.executable, "-m", "outlive.cli", *words, "-", "--store", f"sqlite:{tmp_path / 'none.db'}"]

    done = subprocess.run(line, input=b'"\xff"', capture_output=True, check=False, env=env)

    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert b"none.db" not in done.stderr, "it is read before the store is opened"


@pytest.mark.parametrize("words", [("flows", "schema"), ("flows", "new", "orders")])
def test_a_file_that_cannot_be_written_is_one_line_and_exit_code_2(words: tuple[str, ...], tmp_path: Path) -> None:
    """A folder that is not there, or one of another user."""
    result = CliRunner().invoke(main, [*words, "-o", str(tmp_path / "none" / "file")])

    assert (result.exit_code, result.stderr) == (
        2,
        f"Error: {tmp_path}/none/file cannot be used: No such file or directory\n",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /dev/full")
@pytest.mark.parametrize("words", [("--help",), ("flows", "schema", "--json"), ("completion", "bash")])
def test_an_answer_that_cannot_be_written_is_one_line_and_exit_code_74(words: tuple[str, ...]) -> None:
    """The help, much, and little of it."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "outlive.cli", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    said = "Error: the answer cannot be written: No space left on device; the command may be done\n"
    assert (done.returncode, done.stderr) == (74, said)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_a_script(shell: str) -> None:
    """Which asks the command itself for completions."""
    script = CliRunner().invoke(main, ["completion", shell])

    assert (script.exit_code, "_OUTLIVE_COMPLETE" in script.output) == (0, True)


@pytest.mark.skipif(sys.platform != "linux", reason="the bash of macOS is older than what we need")
@pytest.mark.parametrize(
    ("line", "broken", "offered"),
    [
        ("outlive runs why or", "outlive runs why or", "order:7"),
        ("outlive runs why ", "outlive runs why ", "order:7"),
        ("outlive runs why order:", "outlive runs why order :", "7"),
        ("outlive runs why --store=sqlite:a.db order:7", "outlive runs why --store = sqlite : a.db order : 7", "7"),
        ("outlive runs why 'order:7", "outlive runs why 'order:7", "order:7"),
    ],
)
def test_bash_completes_words_that_it_breaks_at_colons(line: str, broken: str, offered: str) -> None:
    """The command is asked with whole words, and bash gets what stands behind the last colon."""
    driver = """
        outlive() { echo "$COMP_WORDS" >&2; echo "$COMP_CWORD" >&2; echo plain,order:7; }
        COMP_LINE=$1 COMP_POINT=${#1} IFS=' '; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _outlive_completion outlive; echo "${COMPREPLY[@]}" """
    script = CliRunner().invoke(main, ["completion", "bash"]).output

    done = subprocess.run(
        ["bash", "-c", script + driver, "bash", line, *broken.split(" ")], capture_output=True, text=True, check=True
    )

    words = line.split(" ")
    assert (done.stdout, done.stderr.split("\n")) == (f"{offered}\n", [*words, str(len(words) - 1), ""])


def test_completions_are_commands_options_and_values() -> None:
    """Without a store, and without running anything; programs are files, which the shell completes."""
    from click.shell_completion import ShellComplete

    complete = ShellComplete(main, {}, "outlive", "_OUTLIVE_COMPLETE")
    names = [item.value for item in complete.get_completions(["runs"], "re")]
    options = [item.value for item in complete.get_completions(["runs", "list"], "--st")]

    values = [item.value for item in complete.get_completions(["runs", "list", "--status"], "pa")]
    files = {
        name: [item.type for item in complete.get_completions([name], "ap")]
        for name in ("check-deploy", "run", "worker", "dev")
    }

    assert names == ["reject", "retry", "resume"]
    assert options == ["--status", "--stuck", "--store"]
    assert values == ["parked"]
    assert set(map(tuple, files.values())) == {("file",)}, files


@outlive.workflow
async def cli_completed() -> None:
    """Has an id that a person does not want to type."""


def test_ids_and_queues_are_completed_as_the_store_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids and queues are completed from a store and from a server; a missing store offers none and is not made."""
    from click.shell_completion import ShellComplete

    url = f"sqlite:{tmp_path / 'runs.db'}"

    async def fill() -> None:
        async with Engine(url, worker=False) as engine:
            for name in ("completed-1", "completed-2", "other"):
                await engine.start(cli_completed, id=name, queue="cli_completed")

    asyncio.run(fill())
    complete = ShellComplete(main, {}, "outlive", "_OUTLIVE_COMPLETE")

    def offered(*args: str, begins: str) -> list[str]:
        return [item.value for item in complete.get_completions([*args], begins)]

    with served_store(url) as address:
        for place in (("--store", url), ("--server", address)):
            assert offered("runs", "why", *place, begins="comp") == ["completed-2", "completed-1"]
            assert offered("runs", "cancel", *place, "other", begins="completed-2") == ["completed-2"]
            assert offered("queues", "pause", *place, begins="cli_comp") == ["cli_completed"]
            assert offered("runs", "list", *place, "--queue", begins="cli_comp") == ["cli_completed"]
    missing = tmp_path / "nowhere.db"
    assert (offered("runs", "why", "--store", f"sqlite:{missing}", begins=""), missing.exists()) == ([], False)
    monkeypatch.setattr(completing, "ANSWER_SECONDS_MAX", 0.05)
    assert offered("runs", "why", "--server", "http://127.0.0.1:1", begins="") == []


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets text, and so does a person who says NO_COLOR; columns stay straight."""
    assert painted("failed", "failed") == "failed"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = painted("failed", "failed")
    print_table(["run", "status", "note"], [["a", "failed", "x"], ["b", "waiting", "y"]])
    lines = [click.unstyle(line) for line in capsys.readouterr().out.splitlines()]
    monkeypatch.setenv("NO_COLOR", "1")

    assert coloured == click.style("failed", fg="red")
    assert lines == ["RUN  STATUS   NOTE", "a    failed   x", "b    waiting  y"]
    assert painted("failed", "failed") == "failed"


def _options(command: click.Command) -> list[str]:
    return [option for parameter in command.params for option in parameter.opts]
