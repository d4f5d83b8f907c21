"""`outlive runs` as a person on call and a program see it."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import outlive
from outlive._kernel.model import Failure, Wait, WaitKind
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive.cli import main
from outlive.cli.paint import span
from outlive.engine import Engine
from outlive.engine.url import store_for
from outlive.events import RunClaimed, RunFailed, StepFailed
from outlive_conformance.suite.builders import Writer, begin, hire

Ask = Callable[..., Result]

TRACE = """\
Traceback (most recent call last):
  File "/srv/shop/app.py", line 17, in charge
    raise CardDeclined("no money")
"""
DECLINED = Failure(type="shop.CardDeclined", message="no money", traceback=TRACE)


class Shop:
    """A store with runs of all sorts, and the commands that are given about it."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:{folder / 'runs.db'}"

    def __call__(self, *args: str, input: str | None = None) -> Result:
        return CliRunner().invoke(main, ["runs", *args], env={"OUTLIVE_STORE": self.url}, input=input)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        """The store itself."""
        store = store_for(self.url, clock=SystemClock().now)
        await store.open()
        yield store
        await store.close()


async def prepare(shop: Shop) -> None:
    """Two that are parked, one that waits, one that failed after a crash, and one that is done."""
    async with shop.store() as store:
        await hire(store, "anvil")
        await (await begin(store, "p-1", worker="anvil", nonce=1)).park("the code changed")
        await (await begin(store, "p-2", worker="anvil", nonce=2, tags={"tenant": "a"})).park()
        waits = (Wait(kind=WaitKind.SIGNAL, name="paid"),)
        await (await begin(store, "w-1", worker="anvil", nonce=3, workflow="refund")).suspend(waits=waits)
        failed = await begin(store, "f-1", worker="anvil", nonce=4)
        await fail(failed, store)
        await (await begin(store, "s-1", worker="anvil", nonce=5)).succeed({"cents": 5})


async def fail(writer: Writer, store: Store) -> None:
    """A worker is lost, the next one fails."""
    await writer.step("reserve")
    await writer.write(RunClaimed(at=store.now(), worker="brush", epoch=2, interrupted=True))
    await writer.write(StepFailed(at=store.now(), call="charge", failure=DECLINED))
    await writer.write(RunFailed(at=store.now(), failure=DECLINED))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with runs of all sorts."""
    folder = tmp_path_factory.mktemp("runs")
    asyncio.run(prepare(Shop(folder)))
    return folder


@pytest.fixture
def shop(prepared: Path, tmp_path: Path) -> Shop:
    """A copy of it."""
    shutil.copy(prepared / "runs.db", tmp_path / "runs.db")
    return Shop(tmp_path)


def test_runs_are_listed_one_on_each_line(shop: Shop) -> None:
    """With the one fact that matters: the reason, the error, or what it waits for."""
    lines = shop("list").stdout.splitlines()
    listed = json.loads(shop("list", "--json").stdout)["runs"]

    assert lines[0].split() == ["RUN", "WORKFLOW", "STATUS", "AGE", "NOTE"]
    assert [line.split()[0] for line in lines[1:]] == [it["id"] for it in listed] == ["s-1", "f-1", "w-1", "p-2", "p-1"]
    assert lines[2].endswith("shop.CardDeclined: no money")
    assert lines[3].endswith("waits for signal 'paid'")
    assert lines[5].endswith("the code changed")
    assert listed[2]["waits"] == [{"kind": "signal", "name": "paid", "until": None, "detail": "", "run_id": "w-1"}]
    assert listed[0]["created_at"].endswith("Z")


def test_every_filter_narrows(shop: Shop) -> None:
    """Every filter of `runs list` narrows the list as in `engine.list`."""
    for options, ids in {
        "--status parked": "p-2 p-1",
        "--status failed --status succeeded": "s-1 f-1",
        "--workflow refund --queue default": "w-1",
        "--tag tenant=a": "p-2",
        "--id-prefix p- --oldest-first": "p-1 p-2",
        "--error CardDeclined": "f-1",
        "--waiting-for paid": "w-1",
        "--since 1h --until 2100-01-01": "s-1 f-1 w-1 p-2 p-1",
        "--until 1h": "",
    }.items():
        result = shop("list", "--ids", *options.split())
        assert (result.exit_code, result.stdout.split()) == (0, ids.split()), options
    assert "no run fits" in shop("list", "--queue", "emails").stderr


def test_pages_follow_each_other(shop: Shop) -> None:
    """The cursor of the next page is said on standard error, so that a pipe has rows only."""
    first = shop("list", "--limit", "3", "--ids")
    cursor = first.stderr.split("--after ")[1].split()[0]
    second = shop("list", "--limit", "3", "--ids", "--after", cursor)

    assert first.stdout.split() + second.stdout.split() == ["s-1", "f-1", "w-1", "p-2", "p-1"]
    assert second.stderr == ""
    assert json.loads(shop("list", "--limit", "3", "--json").stdout)["next"] == cursor


def test_runs_are_counted_by_status(shop: Shop) -> None:
    """For people and for programs."""
    rows = [line.split() for line in shop("count").stdout.splitlines()]
    counted = json.loads(shop("count", "--workflow", "greet", "--status", "parked", "--json").stdout)

    assert rows == [["STATUS", "RUNS"], ["waiting", "1"], ["parked", "2"], ["succeeded", "1"], ["failed", "1"]]
    assert counted == {"parked": {"count": 2, "at_least": False}}
    by_workflow = shop("count", "--by", "workflow", "--run-id", "w-1", "--run-id", "s-1").stdout
    assert by_workflow.split()[:2] == ["WORKFLOW", "RUNS"]
    assert shop("list", "--ids", "--run-id", "w-1", "--finished-since", "1d").stdout == ""
    ended = shop("list", "--ids", "--run-id", "s-1", "--finished-since", "1d", "--workflow-version", "1").stdout
    assert ended == "s-1\n"
    assert shop("list", "--ids", "--children", "--parent-id", "s-1", "--finished-until", "1d").stdout == ""


def test_why_is_one_sentence(shop: Shop) -> None:
    """`runs why` answers in one sentence or as JSON, and a missing run is one line and exit code 1."""
    assert shop("why", "w-1").output == "it waits for signal 'paid'\n"
    assert json.loads(shop("why", "p-1", "--json").output) == {"id": "p-1", "why": "it is parked: the code changed"}
    missing = shop("why", "none")
    assert (missing.exit_code, len(missing.output.splitlines())) == (1, 1)


def test_show_draws_what_happened(shop: Shop) -> None:
    """Facts, the error with the frames of the user's code, and the gap of the crash."""
    text = shop("show", "f-1").stdout

    assert "why        it ended" in text
    assert "error      shop.CardDeclined: no money" in text
    assert '/srv/shop/app.py:17 in charge: raise CardDeclined("no money")' in text
    assert "worker anvil was lost; worker brush took over" in text
    assert "step charge: shop.CardDeclined: no money" in text
    assert "result     {" in shop("show", "s-1").stdout
    history = shop("show", "f-1", "--history", "--limit", "2").stdout.splitlines()
    assert history[-3] == "... 3 events before these; --limit shows more"
    assert history[-1].endswith("the run failed: shop.CardDeclined: no money")

    plain = json.loads(shop("show", "f-1", "--history", "--json").stdout)
    assert (plain["run"]["id"], plain["errors"][0]["frames"][0]["line"]) == ("f-1", 17)
    assert [line["kind"] for line in plain["timeline"]] == ["mark", "step", "lost", "step", "mark"]
    assert [event["type"] for event in plain["history"]][-1] == "RunFailed"
    assert plain["input"] == "hello"


def test_show_puts_the_lines_of_a_reason_below_each_other(shop: Shop) -> None:
    """A diff between a journal and the code stays readable, and a table has it on one line."""

    async def park() -> None:
        async with shop.store() as store:
            await (await begin(store, "d-1", worker="anvil", nonce=9)).park("the code changed:\n  - charge\n  + bill")

    asyncio.run(park())

    head = shop("show", "d-1").stdout.splitlines()
    assert head[3:6] == ["why        it is parked: the code changed:", "             - charge", "             + bill"]
    assert shop("list", "--id-prefix", "d-").stdout.endswith("the code changed: - charge + bill\n")


def test_a_paused_run_is_explained_with_the_command_that_helps(shop: Shop) -> None:
    """In a sentence, among the facts of the run, and in JSON."""
    shop("pause", "w-1")

    for command in (["why"], ["show"], ["why", "--json"], ["show", "--json"]):
        assert "`outlive runs resume w-1` lets it go on" in shop(command[0], "w-1", *command[1:]).stdout
    assert "`outlive runs list` shows" in shop("resume", "none").stderr
    assert "`outlive runs list` shows" in shop("why", "none").stderr


def test_named_runs_are_taken_at_once_and_runs_that_fit_are_shown_first(shop: Shop) -> None:
    """A preview changes nothing; `--yes` does it; one that refuses is exit code 1, and the others are done."""
    preview = shop("resume", "--status", "parked")
    assert (preview.exit_code, len(preview.stdout.splitlines())) == (0, 3)
    assert preview.stderr == "2 runs would be resumed; say --yes to do it\n"

    done = shop("resume", "--status", "parked", "--yes")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "run p-1 resumed\nrun p-2 resumed\n", "2 runs resumed\n")

    mixed = shop("cancel", "w-1", "s-1", "--reason", "rain", "--json")
    assert mixed.exit_code == 1
    plain = json.loads(mixed.stdout)
    assert (plain["done"], plain["refused"]) == (1, 1)
    assert "error" in plain["runs"][1]
    assert "no run fits" in shop("cancel", "--workflow", "none").stderr


def test_workflow_is_paused_as_a_whole(shop: Shop) -> None:
    """The preview says so; runs that fit another filter are paused one by one."""
    preview = shop("pause", "--workflow", "refund")
    assert preview.stderr == (
        "workflow refund would be paused as a whole: 1 open run, and the runs that are started later; "
        "say --yes to do it\n"
    )
    assert shop("pause", "--workflow", "refund", "--yes", "--by", "ann").stdout == "workflow refund is paused\n"
    assert "paused by ann" in shop("why", "w-1").stdout
    assert shop("resume", "--workflow", "refund", "--yes").stdout == "workflow refund is resumed\n"
    assert shop("pause", "w-1", "--by", "bob").stdout == "run w-1 paused\n"
    assert json.loads(shop("pause", "--all", "--json").stdout) == {
        "what": "everything in this store",
        "done": False,
        "preview": True,
        "open_runs": 0,
    }


def test_step_is_skipped_and_a_fork_needs_the_code(shop: Shop) -> None:
    """A step of a parked run is skipped; a fork or a retry that Outlive refuses is reported with the id of its run."""
    assert shop("skip", "p-1", "--step", "charge", "--result", "5").stdout == "run p-1 resumed without the step\n"
    refused = shop("fork", "f-1", "--at", "charge", "--set", "reserve=1")
    assert (refused.exit_code, "run f-1" in refused.stderr) == (1, True)
    assert shop("retry", "f-1").exit_code == 1


def test_mistakes_are_one_line(shop: Shop) -> None:
    """With what to write instead."""
    for args, words in {
        ("cancel",): "name runs by their ids",
        ("cancel", "p-1", "--workflow", "greet"): "or choose them by filters",
        ("list", "--status", "dead"): "it is one of pending",
        ("list", "--tag", "tenant"): "NAME=VALUE",
        ("list", "--since", "soon"): "2h for two hours ago",
        ("skip", "p-1", "--result", "{"): "it is not JSON",
        ("pause", "p-1", "--all"): "neither ids nor filters",
        ("fork", "--workflow", "greet", "--id", "x"): "name that run",
        ("export", "p-1", "p-2"): "--dir FOLDER",
        ("import", "none.jsonl"): "cannot be read",
    }.items():
        result = shop(*args)
        assert (result.exit_code, words in result.stderr, len(result.stderr.splitlines())) == (2, True, 1), args


def test_runs_travel_as_files(shop: Shop, tmp_path: Path) -> None:
    """Out of one store and into another one, which is created."""
    files = shop("export", "--status", "parked", "--dir", str(tmp_path / "out"), "--json")
    assert {it["id"] for it in json.loads(files.stdout)["runs"]} == {"p-1", "p-2"}
    text = shop("export", "f-1").stdout
    other = ["--store", f"sqlite:{tmp_path / 'other.db'}"]

    brought = shop("import", str(tmp_path / "out" / "p-1.jsonl"), "-", *other, input=text)
    assert (brought.exit_code, brought.stdout) == (0, "run p-1 imported\nrun f-1 imported\n"), brought.output
    assert shop("show", "f-1", *other).stdout.splitlines()[0].split() == ["run", "f-1"]


def test_redacted_fields_are_exported_only_with_unredacted(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export of a run with redacted fields is refused without `--unredacted`, and whole with it."""
    monkeypatch.setenv("OUTLIVE_REDACT", "password,card")
    refused = shop("export", "s-1")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "(password, card); say --unredacted" in refused.stderr

    monkeypatch.delenv("OUTLIVE_REDACT")
    whole = shop("export", "s-1").stdout
    monkeypatch.setenv("OUTLIVE_REDACT", "password,card")
    assert whole == shop("export", "s-1", "--unredacted").stdout


def test_import_names_the_file_that_is_refused_and_what_it_has_brought(shop: Shop, tmp_path: Path) -> None:
    """The runs before it are here."""
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    shop("export", "s-1", "-o", str(good))
    bad.write_text("{")

    (tmp_path / "other").mkdir()
    other = Shop(tmp_path / "other")
    result = other("import", str(good), str(bad))

    assert (result.exit_code, result.stdout) == (1, "run s-1 imported\n")
    assert result.stderr.startswith(f"Error: {bad}: the exported run:1: it cannot be read")


def test_tail_says_how_the_run_ended_by_its_exit_code(shop: Shop) -> None:
    """0, 1, and 3 for a run that needs a person."""
    ended, failed, parked = (shop("tail", run_id) for run_id in ("s-1", "f-1", "p-1"))

    assert (ended.exit_code, failed.exit_code, parked.exit_code) == (0, 1, 3)
    assert len(failed.stdout.splitlines()) == 5
    assert failed.stdout.splitlines()[-1].endswith("the run failed: shop.CardDeclined: no money")
    assert "it is parked" in parked.stderr
    last = json.loads(shop("tail", "f-1", "-n", "1", "--json").stdout)
    assert (last["type"], last["words"]) == ("RunFailed", "the run failed: shop.CardDeclined: no money")


@outlive.workflow
async def tailed() -> str:
    """Waits for a word."""
    return await outlive.wait_for_signal("word", str)


async def test_tail_follows_a_run_that_moves(tmp_path: Path) -> None:
    """Until it ends, in another process than its worker's."""
    shop = Shop(tmp_path)
    async with Engine(shop.url) as engine:
        run = await engine.start(tailed, id="t-1")
        following = asyncio.create_task(asyncio.to_thread(shop, "tail", "t-1"))
        await run.signal("word", "bye")
        assert await run.result() == "bye"
        result = await following

    assert result.exit_code == 0, result.output
    assert [line.split("  ")[1] for line in result.stdout.splitlines()][-2:] == [
        "signal word arrived",
        "the run succeeded",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0123, "12.3 ms"),
        (1.234, "1.2 s"),
        (12.3, "12 s"),
        (90, "1.5 min"),
        (7_200, "2 h"),
        (1e6, "12 d"),
    ],
)
def test_spans_are_short(seconds: float, text: str) -> None:
    """Two figures, in the unit that fits."""
    assert span(seconds) == text


def test_runs_with_ids_that_look_alike_are_files_of_their_own(shop: Shop, tmp_path: Path) -> None:
    """`a:b` and `a_b` do not overwrite each other when they are exported into one folder."""
    text, folder = shop("export", "s-1").stdout, tmp_path / "out"
    for run_id in ("a:b", "a_b"):
        shop("import", "-", "--id", run_id, input=text)

    shop("export", "a:b", "a_b", "--dir", str(folder))

    assert {file.name for file in folder.iterdir()} == {"a%3Ab.jsonl", "a_b.jsonl"}
