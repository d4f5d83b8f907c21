"""`outlive workers`, `queues`, `runs list --stuck`, `fsck` and `migrate` as a shell and a program see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive.cli import COMMANDS, main
from outlive.engine import Engine
from outlive.engine.url import store_for
from outlive.errors.run import InboxFullError
from outlive_conformance.suite.builders import begin, claim, hire

Ask = Callable[..., Result]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Gives commands about one store."""
    url = f"sqlite:{tmp_path / 'ask.db'}"

    def give(*args: str) -> Result:
        return CliRunner().invoke(main, list(args), env={"OUTLIVE_STORE": url})

    return give


@pytest.fixture
async def store(tmp_path: Path) -> Store:
    """The store that the commands are about, open while the test prepares it."""
    store = store_for(f"sqlite:{tmp_path / 'ask.db'}", clock=SystemClock().now)
    await store.open()
    return store


async def test_workers_are_shown_with_what_they_own(store: Store, ask: Ask) -> None:
    """Who is alive, until when, and how much; for people and for programs."""
    await hire(store, "anvil", lease_seconds=3_000)
    await hire(store, "brush", lease_seconds=3_000)
    for name in ("a", "b"):
        await begin(store, name, worker="anvil")
    await begin(store, "c", worker="brush")
    await store.end_session("brush")
    await store.close()

    table = in_thread(ask, "workers", "list").output.splitlines()
    listed = json.loads(in_thread(ask, "workers", "list", "--json").output)

    assert ["WORKER", "STATUS", "LEASE", "RUNS", "QUEUES", "WORKFLOWS"] == table[0].split()
    assert [("anvil", 2), ("brush", 1)] == [(it["id"], it["runs"]) for it in listed]
    assert ["live", "gone"] == [it["status"] for it in listed]
    assert "runs out in 50 min" in table[1]
    assert "greet@1" in table[1]


async def test_queues_are_shown_and_changed(store: Store, ask: Ask) -> None:
    """How full they are and what they allow; for people and for programs."""
    for name in ("a", "b"):
        await begin(store, name, queue="emails")
    await store.close()

    said = [
        in_thread(ask, "queues", *words).output.strip()
        for words in (
            ["set", "emails", "--concurrency", "5", "--per-key", "1"],
            ["set", "emails", "--per-key", "none"],
            ["set", "emails", "--rate", "10:50", "--rate", "500/1h", "--weight", "a=b=3", "--weight", "acme=0.5"],
            ["set", "emails", "--rate", "20", "--weight", "none"],
            ["set", "emails", "--rate", "5 in any 2s"],
            ["set", "emails", "--rate", "none"],
            ["pause", "emails", "--by", "ann", "--reason", "rain"],
            ["drain", "emails"],
        )
    ]
    table = in_thread(ask, "queues", "list").output.splitlines()
    # Other tests of this process may have declared some.
    (listed,) = [it for it in json.loads(in_thread(ask, "queues", "list", "--json").output) if it["name"] == "emails"]

    assert said == [
        "queue emails: concurrency 5, per key 1",
        "queue emails: concurrency 5",
        "queue emails: concurrency 5, 10 a second, 50 at once, 500 in 3600 s, weight of a=b 3, weight of acme 0.5",
        "queue emails: concurrency 5, 20 a second, 20 at once",
        "queue emails: concurrency 5, 5 in any 2 s",
        "queue emails: concurrency 5",
        "queue emails is paused",
        "queue emails is paused, and no run of it is under way",
    ]
    assert table[0].split()[:3] == ["QUEUE", "STATE", "IN"]
    assert any("paused by ann: rain" in row for row in table)
    assert (listed["in_line"]["count"], listed["running"]["count"], listed["limits"]["concurrency"]) == (2, 0, 5)
    assert "is open" in in_thread(ask, "queues", "resume", "emails").output
    assert in_thread(ask, "queues", "set", "emails", "--reset").output == "queue emails: none\n"
    for wrong in (["set", "emails"], ["set", "emails", "--concurrency", "many"], ["pause", "default"]):
        assert in_thread(ask, "queues", *wrong).exit_code in (1, 2)
    for option, value in (
        ("--rate", "often"),
        ("--rate", "5/soon"),
        ("--rate", "5 in any"),
        ("--rate", "-1"),
        ("--weight", "acme"),
    ):
        refused = in_thread(ask, "queues", "set", "emails", option, value)
        assert (refused.exit_code, f"{option} {value}: write" in refused.output) == (2, True)


async def test_an_empty_store_has_no_workers(store: Store, ask: Ask) -> None:
    """The list of workers of an empty store says that there are none, and exits with 0."""
    await store.close()

    result = in_thread(ask, "workers", "list")

    assert (0, "no worker is on this store\n") == (result.exit_code, result.output)
    assert [] == json.loads(in_thread(ask, "workers", "list", "--json").output)


async def test_stuck_runs_are_listed_with_the_reason(store: Store, ask: Ask) -> None:
    """Parked runs, runs without a worker, and runs that no worker can run."""
    await hire(store, "anvil")
    await begin(store, "lost", worker="anvil", nonce=3)
    await (await begin(store, "stopped", worker="anvil")).park("the code changed")
    await begin(store, "new")
    await store.end_session("anvil")
    await store.close()

    found = json.loads(in_thread(ask, "runs", "list", "--stuck", "--json").stdout)
    listed = {it["id"]: it for it in found["runs"]}

    assert {"lost", "stopped", "new"} == set(listed)
    assert "parked" == listed["stopped"]["kind"]
    assert "the code changed" in listed["stopped"]["why"]
    assert "no live worker has greet@1" in listed["new"]["why"]
    pages = []
    page = in_thread(ask, "runs", "list", "--stuck", "--limit", "2", "--ids")
    while page.stdout:
        pages.append(page.stdout.split())
        page = in_thread(ask, "runs", "list", "--stuck", "--limit", "2", "--ids", "--after", pages[-1][-1])
    assert pages == [["new", "stopped"], ["lost"]]
    assert "--after stopped shows the next page" in in_thread(ask, "runs", "list", "--stuck", "--limit", "2").stderr
    for other in ("--children", "--status=parked"):
        assert in_thread(ask, "runs", "list", "--stuck", other).exit_code == 2


async def test_a_reason_of_many_lines_is_one_line_of_the_table(
    store: Store, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reason of many lines is cut to the width of the terminal, and a pipe gets all of it in one line."""
    await hire(store, "anvil")
    await (await begin(store, "stopped", worker="anvil")).park("the code changed:\n  - journal: a\n  + code:    b" * 9)
    await store.close()

    monkeypatch.delenv("COLUMNS", raising=False)
    _, piped = in_thread(ask, "runs", "list", "--stuck").output.splitlines()
    monkeypatch.setenv("COLUMNS", "60")
    title, line = in_thread(ask, "runs", "list", "--stuck").output.splitlines()

    assert 9 == piped.count("the code changed: - journal: a + code: b")
    assert title.startswith("RUN")
    assert (60, "...") == (len(line), line[-3:])


async def test_parked_runs_are_resumed_one_or_all(store: Store, ask: Ask) -> None:
    """The request to resume is durable: the worker that claims next finds it."""
    await hire(store, "anvil")
    for number in range(3):
        await (await begin(store, f"p{number}", worker="anvil", nonce=number + 1)).park()
    await store.close()

    assert 0 == in_thread(ask, "runs", "resume", "p1").exit_code
    assert "3 runs resumed" in in_thread(ask, "runs", "resume", "--status", "parked", "--yes").output

    await store.open()
    await hire(store, "brush")
    assert ["p0", "p1", "p2"] == sorted(await claim(store, "brush"))
    await store.close()


async def test_one_run_that_cannot_be_resumed_does_not_hold_up_the_others(
    store: Store, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named with the reason, and the others are counted."""
    await hire(store, "anvil")
    for number in range(3):
        await (await begin(store, f"p{number}", worker="anvil", nonce=number + 1)).park()
    await store.close()
    resume = Engine.resume

    async def refusing(self: Engine, run_id: str) -> None:
        if run_id == "p1":
            raise InboxFullError(run_id, 7)
        await resume(self, run_id)

    monkeypatch.setattr(Engine, "resume", refusing)
    said = in_thread(ask, "runs", "resume", "--status", "parked", "--yes").output

    assert "2 runs resumed, 1 refused" in said
    assert "run p1: 7 messages wait" in said


async def test_a_step_is_skipped_with_a_result(store: Store, ask: Ask) -> None:
    """A step is skipped with a result given as JSON, and anything but JSON is refused."""
    await hire(store, "anvil")
    await (await begin(store, "p", worker="anvil")).park()
    await store.close()

    result = in_thread(ask, "runs", "skip", "p", "--step", "charge", "--result", '{"cents": 5}')
    assert (0, "run p resumed without the step\n") == (result.exit_code, result.output)
    wrong = in_thread(ask, "runs", "skip", "p", "--result", "{")
    assert (2, True) == (wrong.exit_code, "it is not JSON" in wrong.output)

    await store.open()
    run = await store.find_run("p")
    assert run is not None
    mail = (await store.read_inbox([run.journal]))[run.journal]
    assert [("skip", "charge"), ("resume", "")] == [(it.kind.value, it.name) for it in mail]
    await store.close()


async def test_a_refusal_of_outlive_is_one_line_and_exit_code_1(store: Store, ask: Ask) -> None:
    """A command on a missing run prints one line without a traceback and exits with 1."""
    await store.close()

    result = in_thread(ask, "runs", "resume", "r-9")

    assert 1 == result.exit_code
    assert "run r-9: no run has id 'r-9'" in result.output
    assert 1 == len(result.output.splitlines())


async def test_fsck_says_how_much_it_has_seen(store: Store, ask: Ask) -> None:
    """A whole store is exit code 0."""
    await (await begin(store, "a")).succeed()
    await store.close()

    result = in_thread(ask, "fsck")
    assert (0, "1 tree, 1 run, 2 events: whole\n") == (result.exit_code, result.output)
    assert {"trees": 1, "runs": 1, "events": 2, "problems": [], "left": 0} == json.loads(
        in_thread(ask, "fsck", "--json").output
    )


async def test_fsck_finds_and_repairs(store: Store, ask: Ask, tmp_path: Path) -> None:
    """Problems are exit code 1 until they are repaired; what cannot be repaired stays so."""
    import apsw

    await (await begin(store, "a")).succeed()
    await store.close()
    database = apsw.Connection(str(tmp_path / "ask.db"))
    database.execute("UPDATE outlive_runs SET status = 'failed'")

    found = in_thread(ask, "fsck")
    assert 1 == found.exit_code
    assert "run a: status is" in found.output
    assert "1 problem; --repair may help" in found.output
    repaired = in_thread(ask, "fsck", "--repair")
    assert (0, True) == (repaired.exit_code, "1 problem, all repaired" in repaired.output), repaired.output
    database.execute("UPDATE outlive_events SET crc = 1 WHERE seq = 1")
    database.close()
    broken = in_thread(ask, "fsck", "--repair", "--json")
    assert 1 == broken.exit_code
    assert [("a", "event", 1, False)] == [
        (it["run_id"], it["kind"], it["seq"], it["is_repaired"]) for it in json.loads(broken.output)["problems"]
    ]


async def test_fsck_does_not_advise_a_backup_for_an_owner_that_is_gone(store: Store, ask: Ask) -> None:
    """No journal is damaged: the next worker takes the run over."""
    await begin(store, "a", worker="missing")
    await store.close()

    found = in_thread(ask, "fsck")

    assert (1, True) == (found.exit_code, "missing is not a worker that the store knows" in found.output)
    assert "backup" not in found.output
    assert "1 problem; the next worker that has the workflow takes over what has no owner" in found.output


@pytest.mark.parametrize("command", [["fsck"], ["workers", "list"], ["runs", "list", "--stuck"]])
def test_a_command_that_looks_creates_nothing(command: list[str], tmp_path: Path) -> None:
    """A mistyped name of a file is a mistake, and not an empty store."""
    result = CliRunner().invoke(main, [*command, "--store", f"sqlite:{tmp_path / 'typo.db'}"])

    assert (2, True) == (result.exit_code, "there is no file" in result.output)
    assert not list(tmp_path.iterdir())
    assert 2 == CliRunner().invoke(main, [*command, "--store", "memory:"]).exit_code
    assert 2 == CliRunner().invoke(main, [*command], env={"OUTLIVE_STORE": None}).exit_code


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    """Every command has help with its own name in the usage."""
    result = CliRunner().invoke(main, [name, "--help"])

    assert 0 == result.exit_code
    assert f"Usage: main {name}" in result.output


def in_thread(ask: Ask, *args: str) -> Result:
    """Give a command while the event loop of the test runs: it has one of its own."""
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(ask, *args).result()


async def test_store_is_moved_into_another_one(store: Store, ask: Ask, tmp_path: Path) -> None:
    """The command says what it carried over; a second time it finds everything there."""
    await begin(store, "a")
    await store.close()
    source, target = f"sqlite:{tmp_path / 'ask.db'}", f"sqlite:{tmp_path / 'new.db'}"

    moved = in_thread(ask, "move", source, target)
    again = in_thread(ask, "move", source, target, "--json")
    missing = in_thread(ask, "move", f"sqlite:{tmp_path / 'none.db'}", target)

    assert moved.exit_code == 0, moved.output
    assert "1 trees with 1 runs and 1 events" in moved.output
    counted = {"trees": 1, "runs": 1, "events": 1, "checkpoints": 0, "schedules": 0, "pauses": 0}
    assert json.loads(again.output) == counted
    assert (missing.exit_code, "there is no file" in missing.output) == (2, True)


def test_a_store_is_migrated_once(ask: Ask, tmp_path: Path) -> None:
    """`--check` only says that it is needed. An empty file is the oldest store that there is."""
    file = tmp_path / "ask.db"
    assert (ask("migrate").exit_code, file.exists()) == (2, False)
    file.touch()

    needed = ask("migrate", "--check")
    assert (needed.exit_code, file.stat().st_size) == (1, 0)
    assert "the schema is 0, and this release needs" in needed.output
    migrated = json.loads(ask("migrate", "--json").output)
    assert (migrated["old"]["found"], migrated["migrated"]) == (0, True)
    again = ask("migrate", "--check")
    assert (again.exit_code, "nothing was changed" in again.output) == (0, True)
    assert json.loads(ask("migrate", "--json").output) == {"old": None, "migrated": False}
