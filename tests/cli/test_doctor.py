"""`outlive doctor`: what it finds, what it advises, and that it writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from click.testing import CliRunner

import outlive
from outlive._kernel.model.under_way import cell_of, report_of
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.postgres.address import parse_address
from outlive._kernel.store.postgres.schemas import list_schemas
from outlive._kernel.store.sqlite.migrate import migrations
from outlive.cli import main
from outlive.engine.diagnosis import diagnose
from outlive.engine.url import store_for
from outlive.types import WorkerOptions
from outlive_conformance.servers.postgres import USER, PostgresServer
from outlive_conformance.suite.builders import begin, hire
from tests.engine.inside import reporter_of, store_of
from tests.engine.support import in_time, stage


@outlive.workflow
async def doctored() -> None:
    """Ends at once."""


@outlive.step(retry=outlive.Retry(attempts=5, first=0, jitter=0))
async def doctored_charge(order: int, card: str) -> None:
    """Fails once, and then hangs."""
    if outlive.current_step().attempt == 1:
        raise ConnectionError("no answer")
    await stage.gate("doctored").pass_through()


@outlive.workflow
async def doctored_order(order: int) -> None:
    """Hangs in a step."""
    await doctored_charge(order, "47-11")


HOUR = 3_600 * 1_000_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, without a configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OUTLIVE_STORE", raising=False)
    return tmp_path


async def found(url: str | None) -> dict[str, list[str]]:
    """What is said about each check: the level, and the words."""
    lines: dict[str, list[str]] = {}
    for each in await diagnose(url):
        lines.setdefault(each.check, []).append(f"{each.level.value}: {each.said}")
        assert bool(each.advice) == (each.level.value != "ok"), each
    return lines


def worst(lines: dict[str, list[str]]) -> set[str]:
    """The checks that are not well."""
    return {check for check, said in lines.items() for each in said if not each.startswith("ok: ")}


async def test_a_place_without_a_store_stays_without(folder: Path, postgres_url: str) -> None:
    """Nothing is made that is not there: no file, no schema."""
    lines = await found("sqlite:shop.db")

    assert lines["store"] == [f"problem: there is no file {folder / 'shop.db'}"]
    # A worker makes a file, and no folder.
    assert (await found("sqlite:none/shop.db"))["store"] == [f"problem: there is no folder {folder / 'none'}"]
    assert (await found(f"sqlite:{folder}"))["store"] == [f"problem: {folder} is a folder"]
    assert list(folder.iterdir()) == []
    nowhere = f"{postgres_url}&schema=doctor_nowhere"
    lines = await found(nowhere)
    assert "is empty" in lines["schema"][0]
    assert "doctor_nowhere" not in await list_schemas(parse_address(nowhere))
    assert "not looked at" in lines["runs"][0]


@pytest.mark.every_store
async def test_a_healthy_store_is_well(url: str, folder: Path) -> None:
    """On a file and on a server, which keeps less than it should in tests; nothing is left behind."""
    async with outlive.Engine(url, worker=False):
        pass
    before = sorted(folder.iterdir())

    lines = await found(url)

    assert worst(lines) <= {"durability"}
    assert lines["workers"] == ["ok: 0 alive, 0 open runs"]
    assert "up to date" in lines["schema"][0]
    assert sorted(folder.iterdir()) == before
    if url.startswith("postgresql:"):
        assert "fsync" in lines["durability"][0]
        assert lines["autovacuum"]
        assert "the server's differs by" in lines["clock"][0]


async def test_a_server_that_may_forget_is_looked_into_all_the_same(postgres_url: str) -> None:
    """Who is on call wants to know of the setting and of the runs."""
    async with outlive.Engine(postgres_url, worker=False) as engine:
        await engine.start(doctored, id="left")

    lines = await found(postgres_url.replace("allow_unsafe=true", "allow_unsafe=false"))

    assert lines["durability"][0].startswith("problem: fsync")
    assert lines["workers"] == ["problem: none is alive, and there are 1 open runs"]
    assert lines["queues"][0].endswith("none is behind")


async def test_a_user_that_is_called_like_the_schema_is_warned(postgres_server: PostgresServer) -> None:
    """PostgreSQL looks for a table without a schema there first, and finds ours."""
    database = postgres_server.create_database()
    urls = [postgres_server.store_url(database, schema=schema) for schema in ("shop", USER)]
    for url in urls:
        async with outlive.Engine(url, worker=False):
            pass
    other, same = [await found(url) for url in urls]

    assert "names" not in other
    assert same["names"][0].startswith(f"warning: this user finds tables in schema {USER} first")


async def test_every_workflow_without_a_worker_is_named(url: str) -> None:
    """Not only that of the newest runs."""
    store = store_for(url, clock=SystemClock().now)
    await store.open()
    for nonce in range(1, 6):
        await begin(store, f"run-{nonce}", workflow="old" if nonce == 1 else "new", nonce=nonce)
    await store.close()

    (said,) = (await found(url))["runs"]

    assert said.startswith("warning: 5 undefined (new@1, old@1): ")


@pytest.mark.every_store
async def test_doctor_names_runs_workers_and_queues_that_stand_still(url: str) -> None:
    """The doctor names parked runs, runs without a worker, workers that are gone, and queues that are behind."""
    clock = SystemClock()
    store = store_for(url, clock=lambda: clock.now() - HOUR, is_test_clock=True)
    await store.open()
    await hire(store, "anvil")
    await (await begin(store, "stopped", worker="anvil")).park("the code changed")
    await begin(store, "lost", worker="anvil", nonce=2)
    await begin(store, "waiting", queue="emails", nonce=3)
    await store.end_session("anvil")
    await store.close()
    async with outlive.Engine(url, worker=False) as engine:
        await engine.queues.pause("emails", by="ann", reason="rain")
    code, text = ask("doctor", "--store", url)

    lines = await found(url)

    assert lines["workers"][0].startswith("problem: none is alive, and there are 3 open runs")
    assert "1 is gone and still owns 1 runs" in lines["workers"][1]
    assert {said.partition(" (")[0] for said in lines["runs"]} >= {"warning: 1 parked", "warning: 2 undefined"}
    assert any("the code changed" in said for said in lines["runs"])
    (queue,) = lines["queues"]
    assert queue.startswith("warning: emails: 1 runs in line")
    assert "paused by ann: rain" in queue
    assert (code, "-> outlive queues resume emails" in text) == (1, True)


@pytest.mark.every_store
@pytest.mark.parametrize(("beat", "level"), [(None, "warning"), (1_500, "warning"), (3, "ok")])
async def test_a_step_that_hangs_is_named(url: str, beat: int | None, level: str, folder: Path) -> None:
    """With its run, its attempt, since when, its worker, its last sign of life and its last failure, and without what
    is redacted. One that shows signs of life is well, however long it lasts."""
    (folder / "outlive.toml").write_text('redact = ["card"]\n')
    stage.clear()
    async with outlive.Engine(url, worker=WorkerOptions(name="w1")) as engine:
        run = await engine.start(doctored_order, 7, id="order-7")
        await stage.gate("doctored").reached()
        assert worst(await found(url)) <= {"durability"}
        await _age(engine, "order-7", seconds=1_680, beat=beat)

        said = (await found(url))["steps"]

        shown = 'in step doctored_charge(order=7, card="[redacted]"), attempt 2 of 5, for 28 min on w1'
        if level == "warning":
            heard = "" if beat is None else ", last heartbeat 25 min ago"
            failed = ", last failure ConnectionError: no answer"
            assert said == [f"warning: run order-7 is {shown}{heard}{failed}"]
            assert "-> outlive runs show order-7" in ask("doctor", "--store", url)[1]
        else:
            assert said == ["ok: 1 that has lasted for some seconds, and none without a sign of life for 10 min"]
        stage.gate("doctored").open()
        await in_time(run.result())


async def test_many_steps_that_hang_are_counted_and_the_oldest_named(url: str) -> None:
    """With a configuration that cannot be read nothing is shown of their values: it could say that they are secret."""
    stage.clear()
    async with outlive.Engine(url, worker=WorkerOptions(name="w1")) as engine:
        runs = [await engine.start(doctored_order, number, id=f"order-{number}") for number in range(8)]
        for _ in runs:
            await stage.gate("doctored").reached()
        await _age(engine, *[run.id for run in runs], seconds=1_680, beat=None)
        Path("outlive.toml").write_text("redact = 7\n")

        said = (await found(url))["steps"]

        assert len(said) == 6
        assert said[0] == "warning: run order-0 is in step doctored_charge, attempt 2 of 5, for 28 min on w1"
        assert said[-1] == "warning: 3 more have shown no sign of life for 10 min"
        stage.gate("doctored").open()
        for run in runs:
            await in_time(run.result())


async def _age(engine: outlive.Engine, *roots: str, seconds: int, beat: int | None) -> None:
    """Let the worker say what it says of steps that have lasted for so long."""
    now_at = SystemClock().now()
    (worker,) = await store_of(engine).list_workers()
    notes = [note for root in roots for note in reporter_of(engine).of(root).steps]
    aged = [
        msgspec.structs.replace(
            note,
            since_at=now_at - seconds * 1_000_000 + number,
            heartbeat_at=0 if beat is None else now_at - beat * 1_000_000,
        )
        for number, note in enumerate(notes)
    ]
    data = msgspec.json.encode(report_of(aged, at=now_at))
    await store_of(engine).change_cell(cell_of(worker.id), lambda *_: (data, None))


async def test_a_schedule_that_is_behind_is_named(folder: Path) -> None:
    """With how late it is, and which it is."""
    clock = SystemClock()
    async with outlive.Engine("sqlite:shop.db", worker=False, _clock=_Late(clock)) as engine:
        await engine.schedules.set("nightly", outlive.every(minutes=5), doctored)

    lines = await found("sqlite:shop.db")

    assert lines["schedules"][0].startswith("warning: 1 are behind by up to 3,")
    assert "(nightly)" in lines["schedules"][0]


class _Late(SystemClock):
    """A clock that is an hour behind."""

    def __init__(self, clock: SystemClock) -> None:
        super().__init__()
        self._clock = clock

    def now(self) -> int:
        """The instant an hour ago."""
        return self._clock.now() - HOUR


async def test_a_store_of_another_release_is_left_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older schema is a warning and is not migrated, a newer one is a problem."""
    async with outlive.Engine("sqlite:shop.db", worker=False):
        pass
    for known, said in (([*migrations(), folder], "warning: "), (migrations()[:-1], "problem: ")):
        with monkeypatch.context() as patch:
            patch.setattr("outlive._kernel.store.sqlite.diagnosis.migrations", lambda known=known: known)
            lines = await found("sqlite:shop.db")
        assert lines["schema"][0].startswith(said)
        assert "not looked at" in lines["runs"][0]


async def test_rights_and_places_are_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that others may read, a disk that is full, a network file system, and a file that is not a store."""
    async with outlive.Engine("sqlite:shop.db", worker=False):
        pass
    (folder / "shop.db").chmod(0o644)
    monkeypatch.setattr("outlive._kernel.store.sqlite.diagnosis.FREE_BYTES_MIN", 2**62)

    lines = await found("sqlite:shop.db")
    monkeypatch.setattr("outlive._kernel.store.sqlite.diagnosis.find_network", lambda folder: "nfs")
    of_network = await found("sqlite:shop.db")

    assert {"permissions", "disk"} <= worst(lines)
    assert lines["workers"] == ["ok: 0 alive, 0 open runs"]
    assert "file system" in worst(of_network)
    assert "not looked at" in of_network["runs"][0]
    (folder / "other.db").write_text("something else")
    assert "it cannot be read" in (await found("sqlite:other.db"))["schema"][0]
    assert "problem: " in (await found("sqlite:///x.db"))["store"][0]


def ask(*args: str, **environ: str) -> tuple[int, str]:
    """What a command answers; from a thread, because this one has an event loop."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(lambda: CliRunner().invoke(main, list(args), env=environ)).result()
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("error", "is_damaged"),
    [
        (apsw.IOError("disk I/O error"), False),
        (apsw.CantOpenError("unable to open database file"), False),
        (apsw.CorruptError("database disk image is malformed"), True),
    ],
)
def test_a_backup_is_advised_only_for_a_file_that_is_damaged(
    error: apsw.Error, *, is_damaged: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk and rights that are missing have done nothing to it."""

    def refuse(path: Path) -> None:
        raise error

    monkeypatch.setattr("outlive._kernel.store.sqlite.diagnosis.read_identity", refuse)
    (folder / "shop.db").touch()

    assert ("restore a backup" in ask("doctor", "--store", "sqlite:shop.db")[1]) is is_damaged


def test_mistakes_of_the_configuration_are_problems(folder: Path) -> None:
    """All of them, and the answer for programs has a number."""
    (folder / "outlive.toml").write_text('store = "memory:"\n[worker]\nlease_secnds = 1\n', "utf-8")

    code, text = ask("doctor", "--json", OUTLIVE_LIMITS_THREADS_MAX="0")

    answer: Any = json.loads(text)
    assert (code, answer["problems"]) == (1, 2)
    assert [it["check"] for it in answer["findings"] if it["level"] == "problem"] == ["configuration"] * 2
    (folder / "outlive.toml").unlink()
    assert ask("doctor") == (1, ask("doctor")[1])
    assert ask("doctor", OUTLIVE_STORE="memory:")[0] == 0


def test_the_store_of_a_tenant_is_looked_at(folder: Path) -> None:
    """`--namespace` names it, for the store that is given and for that of the configuration."""
    tenant = folder / "shop.acme.db"

    for args in (("--store", "sqlite:shop.db"), ()):
        code, said = ask("doctor", *args, "--namespace", "acme", OUTLIVE_STORE="" if args else "sqlite:shop.db")
        assert code == 1
        assert f"there is no file {tenant}" in said
