"""`outlive check`: what a replay cannot repeat is found in the source of workflows, with the line and the remedy."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import outlive
from outlive._kernel.define.determinism import check_source
from outlive.cli import main
from tests.engine.inside import describe_now

ROOT = Path(__file__).parents[2]
HEAD = """\
import asyncio, os, random, threading, time, uuid
import datetime as dt
from datetime import datetime
from pathlib import Path

import outlive
from outlive import step, workflow

@outlive.step
async def charge(order: str) -> str:
    return datetime.now().isoformat()

"""


def found_in(body: str, *, head: str = HEAD) -> list[tuple[str, str]]:
    """What is found in a workflow with this body, each with the first words of the remedy."""
    text = f"{head}@outlive.workflow\nasync def order(id: str) -> None:\n    {body}\n"
    return [(it.what, it.remedy.partition(":")[0]) for it in check_source(text)]


@pytest.mark.parametrize(
    ("body", "what", "remedy"),
    [
        ("at = datetime.now()", "datetime.now()", "the time of the machine"),
        ("at = dt.datetime.utcnow()", "dt.datetime.utcnow()", "the time of the machine"),
        ("at = time.time()", "time.time()", "the time of the machine"),
        ("time.sleep(1)", "time.sleep()", "it blocks every run of the worker"),
        ("n = random.randint(1, 6)", "random.randint()", "another value at every replay"),
        ("n = uuid.uuid4()", "uuid.uuid4()", "another value at every replay"),
        ("f = open('a')", "open()", "the world outside"),
        ("t = Path('a').read_text()", "Path('a').read_text()", "the world outside"),
        ("k = os.environ['KEY']", "os.environ", "the world outside"),
        ("k = os.getenv('KEY')", "os.getenv()", "the world outside"),
        ("threading.Thread(target=print).start()", "threading.Thread()", "a thread or a process of its own"),
        ("await asyncio.to_thread(print)", "asyncio.to_thread()", "a thread or a process of its own"),
        ("for x in {1, 2}: await charge(str(x))", "{1, 2}", "a set has no order that a replay repeats"),
        ("[await charge(x) for x in set(id)]", "set(id)", "a set has no order that a replay repeats"),
        ("charge(id)", "charge(...)", "it is not awaited, so it is never called"),
        ("n = random.random()", "random.random()", "another value at every replay"),
        ("names = os.listdir('.')", "os.listdir()", "the world outside"),
        ("is_there = os.path.exists('a')", "os.path.exists()", "the world outside"),
        ("day = time.strftime('%d')", "time.strftime()", "the time of the machine"),
        ("lane = hash(id) % 4", "hash()", "another number in every process"),
        ("for q in id | {3}: await charge(q)", "id | {3}", "a set has no order that a replay repeats"),
        ("for q in {1} - set(id): await charge(q)", "{1} - set(id)", "a set has no order that a replay repeats"),
        ("v = {1}; first = list(v)", "list(v)", "a set has no order that a replay repeats"),
        ("first = list({1, 2})[0]", "list({1, 2})", "a set has no order that a replay repeats"),
        ("text = ', '.join({'a', 'b'})", "', '.join({'a', 'b'})", "a set has no order that a replay repeats"),
        ("v = {1, 2}; first = v.pop()", "v.pop()", "a set has no order that a replay repeats"),
        ("v = {1, 2}; all = [*v.union({3})]", "*v.union({3})", "a set has no order that a replay repeats"),
    ],
)
def test_a_line_that_a_replay_cannot_repeat_is_found(body: str, what: str, remedy: str) -> None:
    """A line of a workflow that a replay cannot repeat is found, with what to write instead."""
    assert found_in(body) == [(what, remedy)]


@pytest.mark.parametrize(
    "body",
    [
        "await charge(id)",
        "await asyncio.gather(charge(id), charge(id))",
        "await asyncio.sleep(3)",
        "at = outlive.now()",
        "n = outlive.random().randint(1, 6)",
        "for x in sorted({1, 2}): await charge(str(x))",
        "known = {1, 2}; ok = 1 in known",
        "text = str(datetime(2026, 1, 1))",
        "at = datetime.now()  # outlive: ignore",
        "for task in {asyncio.create_task(charge(id))}: await task",
        "for q in sorted({1} | set(id)): await charge(q)",
        "n = len({1, 2}); top = max({1, 2} - {1})",
        "v = [1]; last = v.pop(); text = ', '.join(sorted({'a'}))",
        "name = os.path.join('a', 'b')",
        "known = {1, 2}; v = known | {3}; ok = 3 in v",
        "flags = 1 | 2\n    for q in list([flags]): await charge(q)",
        "done, seen = await charge(id), set(id)\n    for x in done: await charge(x)",
    ],
)
def test_a_line_that_a_replay_repeats_is_not_found(body: str) -> None:
    """A step, a timer, a value of the engine, or a line that a person has marked is not reported."""
    assert found_in(body) == []


MACHINE = """\
import random, time
import outlive

order = outlive.Machine("order", S, data=Data, start=S.PICK, exits={S.DONE})

@order.router(S.PICK)
def pick(data: Data) -> S:
    return S.DONE if {code} else S.PICK

@order.state(S.PACK)
async def pack(data: Data) -> S:
    return S.DONE if random.random() > time.time() else S.PACK
"""


@pytest.mark.parametrize(
    ("code", "found"),
    [("random.random() > 0.5", ["random.random()"]), ("time.time() > 5", ["time.time()"]), ("data.count > 5", [])],
)
def test_a_router_of_a_machine_is_looked_at_and_its_states_are_not(code: str, found: list[str]) -> None:
    """A replay calls a router again, as it does a workflow; what a state does is in the journal."""
    assert [it.what for it in check_source(MACHINE.replace("{code}", code))] == found


def test_a_parameter_that_is_a_set_is_a_set_where_it_is_walked_through() -> None:
    """By its annotation; a set of tasks has an order that a replay repeats."""
    text = f"{HEAD}@outlive.workflow\nasync def order(v: set[str], w: set[asyncio.Task]) -> None:\n"
    walked = "    for x in v: await charge(x)\n    for y in w: await y\n"

    assert [it.what for it in check_source(text + walked)] == ["v"]


def test_the_hook_of_pre_commit_finds_what_the_command_finds(tmp_path: Path) -> None:
    """Its entry is a command, takes the files that are to be committed, and ends with 1 if one of them is wrong."""
    (hook,) = msgspec.yaml.decode((ROOT / ".pre-commit-hooks.yaml").read_bytes())
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(HEAD)
    wrong.write_text(f"{HEAD}@outlive.workflow\nasync def order(id: str) -> None:\n    at = time.time()\n")
    program, *words = hook["entry"].split()
    command = [str(Path(sys.executable).with_name(program)), *words]
    fine = subprocess.run([*command, str(right)], capture_output=True, text=True, check=False)
    found = subprocess.run([*command, str(right), str(wrong)], capture_output=True, text=True, check=False)

    assert (hook["id"], hook["language"], hook["types"]) == ("outlive-check", "python", ["python"])
    assert (fine.returncode, found.returncode) == (0, 1), fine.stderr + found.stderr
    assert f"{wrong}:15:10: workflow order: time.time()" in found.stdout


def test_plain_functions_that_a_workflow_calls_are_looked_at_and_steps_are_not() -> None:
    """A function calls another one, in a circle too; a step may do anything."""
    helpers = "def stamp(n: int) -> str:\n    return mark(n) + stamp(n)\n\n"
    helpers += "def mark(n: int) -> str:\n    return str(time.time())\n\n"
    assert found_in("await charge(stamp(1))", head=HEAD + helpers) == [("time.time()", "the time of the machine")]
    assert found_in("await charge(id)", head=HEAD + helpers) == []


def test_a_name_that_is_given_a_set_is_a_set_where_it_is_walked_through() -> None:
    """Unless it is given something else too."""
    assert found_in("seen = set(id)\n    for x in seen: await charge(x)") == [
        ("seen", "a set has no order that a replay repeats")
    ]
    assert found_in("seen = set(id)\n    seen = sorted(seen)\n    for x in seen: await charge(x)") == []


def test_decorators_are_known_by_any_name_that_they_are_imported_under() -> None:
    """`@workflow` of `from outlive import workflow`, and `@o.workflow(version=2)`."""
    plain = "from outlive import workflow\nimport time\n@workflow\nasync def a() -> None:\n    time.time()\n"
    alias = "import outlive as o\nimport time\n@o.workflow(version=2)\nasync def a() -> None:\n    time.time()\n"
    assert [len(check_source(text)) for text in (plain, alias, alias.replace("o.workflow", "o.step"))] == [1, 1, 0]


async def test_a_worker_says_it_once_in_its_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it describes its workflows, for each file of the program."""
    (tmp_path / "checked_app.py").write_text(
        "import time\nimport outlive\n\n@outlive.workflow\nasync def checked() -> float:\n    return time.time()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import_module("checked_app")

    for _ in range(2):
        async with outlive.Engine("memory:") as engine:
            await describe_now(engine)

    (said,) = [record.getMessage() for record in caplog.records if "workflow checked:" in record.getMessage()]
    assert said.startswith(
        f"{tmp_path / 'checked_app.py'}:6:12: workflow checked: time.time(): the time of the machine"
    )


def test_command_says_the_place_and_exits_with_1(tmp_path: Path) -> None:
    """For a file or a folder; for programs as JSON; a file that is not Python is a mistake."""
    file = tmp_path / "app.py"
    file.write_text(f"{HEAD}@outlive.workflow\nasync def order(id: str) -> None:\n    at = datetime.now()\n")
    said = CliRunner().invoke(main, ["check", str(file)])
    assert (said.exit_code, said.stderr) == (1, "1 finding\n")
    assert said.stdout == (
        f"{file}:15:10: workflow order: datetime.now(): "
        "the time of the machine: use outlive.now(), which a replay repeats\n"
    )
    (plain,) = json.loads(CliRunner().invoke(main, ["check", str(tmp_path), "--json"]).stdout)
    assert (plain["line"], plain["what"]) == (15, "datetime.now()")

    file.write_text(HEAD)
    assert CliRunner().invoke(main, ["check", str(file)]).exit_code == 0
    file.write_text("def (")
    assert "cannot be read as Python" in CliRunner().invoke(main, ["check", str(file)]).stderr
    assert CliRunner().invoke(main, ["check", str(tmp_path / "none.py")]).exit_code == 2
