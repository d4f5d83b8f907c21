"""Files that come from elsewhere: exported runs, archives, documents. What they say of themselves need not be true."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import outlive
from outlive._kernel.journal.codec import checksum, salt_of
from outlive.cli import main
from outlive.errors import OutliveError, RunExistsError
from outlive.errors.store import HistoryFormatError
from outlive.testing.fsck import check_store
from tests.engine.inside import store_of
from tests.engine.support import in_time, waits

Event = dict[str, Any]
DEEP = "[" * 100_000 + "]" * 100_000
NONCES = {"nonce", "seed"}


@outlive.step
async def foreign_step(number: int) -> int:
    """Does nothing."""
    return number


@outlive.workflow
async def foreign_child(number: int) -> int:
    """A run in the tree of another one."""
    return await foreign_step(number)


@outlive.workflow
async def foreign(number: int) -> str:
    """Has a bit of everything in its file."""
    await foreign_step(number)
    await foreign_child(number)
    await outlive.emit("lines", "one")
    outlive.publish(stage="waiting")
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def at_home() -> str:
    """A run that was here before."""
    return await outlive.wait_for_signal("go", str)


class Forged:
    """The file of a run, which a forger changes; the checksums of all events are made right again."""

    def __init__(self, text: str) -> None:
        self.head, *self._lines = map(json.loads, text.splitlines())

    @property
    def events(self) -> list[Event]:
        """Those of the journal, to be changed."""
        return [line["event"] for line in self._lines if "event" in line]

    def add(self, part: dict[str, Any]) -> None:
        """Something that hangs on the journal."""
        self._lines.append({"tree": part})
        self.head["rest"] += 1

    def drop_suspension(self) -> None:
        """The last event: without it, the run is in the hands of its worker."""
        self._lines = [line for line in self._lines if line.get("event", {}).get("t") != "RunSuspended"]
        self.head["events"] -= 1

    def text(self, *, before: str = "", change: Callable[[str], str] = str) -> str:
        """The file, with a line behind its head, and with a change of the first event as it is written."""
        lines = [json.dumps(self.head, separators=(",", ":")), *filter(None, [before])]
        for line in self._lines:
            if "event" in line:
                body = json.dumps(line["event"], separators=(",", ":"))
                body = change(body) if line["seq"] == 0 else body
                salt = salt_of(self.head["nonce"])
                sum_ = checksum(line["seq"], line["format"], body.encode(), salt)
                lines.append(f'{{"seq":{line["seq"]},"format":{line["format"]},"crc":{sum_},"event":{body}}}')
            else:
                lines.append(json.dumps(line, separators=(",", ":")))
        return "\n".join(lines) + "\n"


@pytest.fixture
async def file() -> Forged:
    """A run that waits."""
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(foreign, 1, id="run-1", tags={"shop": "north"})
        await waits(run)
        return Forged(await engine.export("run-1"))


async def refuse(text: str) -> str:
    """What is said when it is not taken, by a store in which a run waits; that one and the store stay as they were."""
    async with outlive.Engine("memory:", worker=False) as engine:
        home = await engine.start(at_home, id="at-home")
        with pytest.raises(OutliveError) as refused:
            await engine.import_run(text)
        assert ["at-home"] == [run.id for run in await engine.list()]
        assert (await home.info()).status == "pending"
        assert [] == await check_store(store_of(engine))
    return str(refused.value)


async def test_a_forged_file_has_right_checksums(file: Forged) -> None:
    """A forged file is imported if its content is allowed, so the tests below are refused for their content and not for
    their checksums."""
    file.events[0]["tags"] = {"shop": "south"}
    async with outlive.Engine("memory:", worker=False) as engine:
        await engine.import_run(file.text())
        assert ["run-1"] == [run.id for run in await engine.list(tags={"shop": "south"})]


@pytest.mark.parametrize(
    "run_id",
    [
        "",
        "..",
        "../../etc/passwd",
        "a/b",
        "a\nb",
        "a\0b",
        "\x1b[2J",
        "\u202eabc",
        "-o",
        "@tick",
        "at-home~1",
        "x" * 5_000,
    ],
    ids=repr,
)
async def test_the_root_of_an_imported_tree_has_an_id_that_a_root_can_have(file: Forged, run_id: str) -> None:
    """No way through folders, no character that a terminal obeys, no id of a child. [S23 S46]"""
    file.head["root_id"] = file.head["run_id"] = run_id

    assert "cannot have the id" in await refuse(file.text())


@pytest.mark.parametrize("run_id", ["run-1~gen2", "run-1~old1", "digest@2026-11-19T06:00:00Z", "_f@0a1b", "b~chunk3"])
async def test_ids_that_are_made_for_roots_are_imported(file: Forged, run_id: str) -> None:
    """A next generation, a run that was replaced, that of a tick or an event, and a chunk of a batch."""
    file.head["root_id"] = file.head["run_id"] = run_id
    async with outlive.Engine("memory:", worker=False) as engine:
        assert (await engine.import_run(file.text())).id == run_id


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 2**63) for name in ("at", "version", "timeout_at", "timeout", "begin_by", "start_at", "lead")),
        *((name, -(2**63)) for name in ("at", "version", "timeout_at", "timeout", "begin_by", "start_at", "lead")),
        *((name, "a\0b") for name in ("workflow", "queue", "queue_key", "notify", "worker")),
        *((name, "x" * 100_000) for name in ("workflow", "queue", "queue_key", "notify", "worker")),
        *(("slots", slots) for slots in (2**63, 2**31, 0, -1)),
        ("nonce", -1),
        ("tags", {"\0": "x"}),
        ("tags", {"x": "y" * 1_000_000}),
        ("tags", {str(number): "x" for number in range(1_000)}),
    ],
    ids=lambda value: repr(value)[:20],
)
async def test_an_imported_run_has_no_row_that_a_store_cannot_keep(file: Forged, name: str, value: Any) -> None:
    """Numbers that no column can hold, nor their sum; text without end, or with what a database does not take. [S46]"""
    file.drop_suspension()  # Until here no worker had it: what it was given when it was started is in its row.
    del file.events[0]["worker"]
    file.events[0][name] = value

    assert "the exported run:1: " in await refuse(file.text())


@pytest.mark.parametrize("nonce", [-1, 2**64, 2**70])
async def test_a_file_has_a_nonce_that_there_can_be(file: Forged, nonce: int) -> None:
    """All checksums of the tree begin with it. [S46]"""
    text = file.text().replace(f'"nonce":{file.head["nonce"]}', f'"nonce":{nonce}', 1)

    assert "is not a nonce" in await refuse(text)


@pytest.mark.parametrize("line", ['{"blob":"aa","data":"a"}', '{"blob":"aa","data":"é"}'])
async def test_a_blob_that_is_not_base64_is_refused(file: Forged, line: str) -> None:
    """A blob that is not base64 is refused with its line. [S46]"""
    assert "the exported run:2: it is not base64" in await refuse(file.text(before=line))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: f'{body[:-1]},"unknown":{DEEP}}}',
        lambda body: body.replace('"input":{"v":[1]}', f'"input":{{"v":{DEEP}}}'),
        lambda body: body.replace('"workflow":"foreign"', '"workflow":"\\ud800"'),
    ],
    ids=["unknown field", "input", "half a surrogate pair"],
)
async def test_json_that_cannot_be_read_is_refused(file: Forged, change: Callable[[str], str]) -> None:
    """Nested deeper than a parser can follow, or no text at all. [S18 S46]"""
    assert "the exported run:" in await refuse(file.text(change=change))


@pytest.mark.parametrize(
    "before", [f'{{"blob":{DEEP}}}', f'{{"tree":{{"message":{DEEP}}}}}', f'{{"seq":0,"event":{DEEP}}}']
)
async def test_lines_of_any_depth_are_refused(file: Forged, before: str) -> None:
    """Wherever it stands. [S18 S46]"""
    file.head["rest"] += before.startswith('{"tree"')

    assert "the exported run:" in await refuse(file.text(before=before))


def signal_to(run_id: str) -> dict[str, Any]:
    """A message that waits."""
    return {"run_id": run_id, "kind": "signal", "at": 1, "name": "go", "key": "k", "payload": {"v": "forged"}}


@pytest.mark.parametrize(
    "part",
    [
        {"message": signal_to("at-home")},
        {"message": {**signal_to("at-home"), "kind": "cancel"}},
        {"answer": {"run_id": "at-home", "key": "@ask/a/b", "at": 1, "payload": {"v": 1}}},
        {"item": {"run": 7, "index": 0, "status": "succeeded"}},
        {"stream": {"run": 7, "name": "lines", "lines": []}},
        {"document": {"name": "x", "canonical": "{}"}},
        {"document": {"name": "x", "canonical": '{"name":"x","steps":{"a":{"use":"noop","with":' + DEEP + "}}}"}},
    ],
    ids=["signal", "cancel", "answer", "item", "stream", "no document", "deep document"],
)
async def test_a_part_of_an_imported_file_for_another_run_is_refused(file: Forged, part: dict[str, Any]) -> None:
    """An imported file with a message, answer, outcome or line for a run that is not in it is refused. [S46]"""
    file.add(part)

    await refuse(file.text())


@pytest.mark.parametrize("run", [7, -1, 2**70])
async def test_an_event_of_a_run_that_is_not_in_the_tree_is_refused(file: Forged, run: int) -> None:
    """A tree has only its own runs. [S46]"""
    file.events[1]["run"] = run

    assert "does not fit" in await refuse(file.text())


async def test_an_imported_run_takes_no_id_from_a_run_that_is_here(file: Forged) -> None:
    """An import with the id of an existing run is refused, and the existing run goes on. [S46]"""
    file.head["root_id"] = file.head["run_id"] = "at-home"

    async with outlive.Engine("memory:") as engine:
        home = await engine.start(at_home, id="at-home")
        with pytest.raises(RunExistsError):
            await engine.import_run(file.text())
        await home.signal("go", "mine")
        assert await in_time(home.result()) == "mine"


async def test_a_file_ends_no_session_of_a_worker(file: Forged) -> None:
    """A run whose worker was lost in another store brings that worker along, as a dead one; a live one stays. [S46]"""
    async with outlive.Engine("memory:") as engine:
        (worker,) = await store_of(engine).list_workers(with_runs=False)
        file.events[0]["worker"] = worker.id
        file.drop_suspension()
        with pytest.raises(OutliveError, match="alive in this store"):
            await engine.import_run(file.text())
        home = await engine.start(at_home, id="at-home")
        await home.signal("go", "mine")
        assert await in_time(home.result()) == "mine"
        assert [worker.id] == [found.id for found in await store_of(engine).list_workers(with_runs=False)]


def hostile_values(value: object) -> Iterator[object]:
    """What a forger would write in its place."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield from (-1, 2**62, 2**63, -(2**63), 2**70)
    elif isinstance(value, str):
        yield from ("", "\0", "\x1b[2J", "../x", "x" * 10_000)


async def test_whatever_an_event_says_is_refused_or_taken_whole(file: Forged) -> None:
    """Each field of each event, changed: an error of ours, or a store that is whole and can be read. [S41 S46]"""
    refused = taken = 0
    async with outlive.Engine("memory:", worker=False) as engine:
        for event in file.events:
            for name, value in list(event.items()):
                for hostile in hostile_values(value):
                    event[name] = hostile
                    try:
                        run = await engine.import_run(file.text(), id=f"run-{taken}")
                    except OutliveError:
                        refused += 1
                    else:
                        taken += 1
                        await run.info()
                        await run.why()
                        await engine.history(run.id)
                event[name] = value
        assert taken + 1 <= len(await engine.list(limit=1_000))
        assert [] == await check_store(store_of(engine))
    assert min(refused, taken) > 20


# -- Archives ----------------------------------------------------------------------------------------------------------

HEAD = '{"outlive":"history"}\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0" * 1_000_000, "begins with another line"),
        (HEAD + "0" * 1_000_000, "a tree has more than"),
        (HEAD + "0\n" * 100_000, "a tree has more than"),
        (HEAD * 3 + "0" * 1_000_000, "a tree has more than"),
    ],
    ids=["no tree", "a line", "lines", "the last one"],
)
def test_an_archive_cannot_explode(tmp_path: Path, text: str, reason: str) -> None:
    """A few kilobytes that unpack to much more are not unpacked beyond the limit; no tree is given. [S24 S46]"""
    file = tmp_path / "bomb.jsonl.gz"
    file.write_bytes(gzip.compress(text.encode()))

    with pytest.raises(HistoryFormatError, match=reason):
        next(outlive.retention.read_archive(file, tree_bytes_max=100_000))


def test_a_line_of_an_archive_is_not_unpacked_to_its_end(tmp_path: Path) -> None:
    """It may have a thousand times the bytes of the file. [S24]"""
    file = tmp_path / "bomb.jsonl.gz"
    file.write_bytes(gzip.compress(HEAD.encode() + b"0" * 8_000_000, compresslevel=1))
    tracemalloc.start()
    try:
        with pytest.raises(HistoryFormatError, match="a tree has more than"):
            next(outlive.retention.read_archive(file, tree_bytes_max=100_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 2_000_000


def test_a_cut_archive_gives_no_tree(tmp_path: Path) -> None:
    """All of it is looked at first, so that no half of it is imported. [S46]"""
    file = tmp_path / "cut.jsonl.gz"
    whole = gzip.compress(HEAD.encode() * 1_000)
    for data in (whole[:-1], whole[: len(whole) // 2], whole[:-8] + bytes(8), whole + b"more"):
        file.write_bytes(data)
        with pytest.raises(HistoryFormatError):
            next(outlive.retention.read_archive(file))


# -- Stores ------------------------------------------------------------------------------------------------------------


async def changed_store(file: Path, statement: str) -> str:
    """A store with a run that has ended, a stream and an audit log, after this statement of a stranger."""
    async with outlive.Engine(f"sqlite:{file}") as engine:
        with engine.audit.acting("ann"):
            run = await engine.start(foreign, 1, id="run-1")
            await run.signal("go", "x")
        await in_time(run.result())
    connection = sqlite3.connect(file)
    connection.execute(statement)
    connection.commit()
    connection.close()
    return f"sqlite:{file}"


async def test_a_stream_that_names_more_items_than_it_has_is_not_read_for_ever(tmp_path: Path) -> None:
    """Neither by who follows it, nor by an export, which a move and a backup do for each tree. [S22 S35]"""
    url = await changed_store(tmp_path / "a.db", f"UPDATE outlive_streams SET position = {2**63 - 1}")

    async with outlive.Engine(url, worker=False) as engine:
        stream = engine.get("run-1").stream("lines")
        assert await anext(stream) == "one"
        with pytest.raises(OutliveError, match="none is behind position 1"):
            await anext(stream)
        with pytest.raises(OutliveError, match="lacks its items from position 2 on"):
            await engine.export("run-1")


@pytest.mark.parametrize("body", ["'{'", "'5'", "replace(hex(zeroblob(50000)), '00', '[')"], ids=["cut", "5", "deep"])
async def test_a_store_whose_audit_log_cannot_be_read_is_not_moved(tmp_path: Path, body: str) -> None:
    """A move of a store with an unreadable row in its audit log fails and names the row. [S22]"""
    url = await changed_store(tmp_path / "a.db", f"UPDATE outlive_audit SET body = {body}")

    result = await asyncio.to_thread(CliRunner().invoke, main, ["move", url, f"sqlite:{tmp_path / 'b.db'}"])
    assert result.exit_code == 1
    assert "row 1 of the audit log cannot be read" in result.output


# -- What is not a file ------------------------------------------------------------------------------------------


@pytest.fixture(params=["pipe", "device"])
def no_file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A name that a stranger can put into a folder, or into an archive of one."""
    path = tmp_path / "run.jsonl"
    if request.param == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    return path


def test_a_file_that_is_not_regular_is_not_read(no_file: Path) -> None:
    """A pipe or a device is not read, because it may never end. [S46]"""
    with pytest.raises(HistoryFormatError, match="not a regular file"):
        next(outlive.retention.read_archive(no_file))
    for line in (["runs", "import", str(no_file), "--store", "memory:"], ["flows", "check", str(no_file)]):
        result = CliRunner().invoke(main, line)
        assert (result.exit_code, "not a regular file" in result.output) == (2, True), result.output


async def test_a_store_is_a_file(no_file: Path) -> None:
    """SQLite would wait for the other end of a pipe. [S22]"""
    with pytest.raises(OutliveError, match="a pipe, a device or a socket"):
        await outlive.Engine(f"sqlite:{no_file}", worker=False).__aenter__()


def test_a_document_is_not_read_beyond_what_it_may_have(tmp_path: Path) -> None:
    """A file with a hole of a terabyte takes no room on the disk. [S19]"""
    file = tmp_path / "hole.flow.yaml"
    with file.open("wb") as opened:
        opened.truncate(2**40)

    result = CliRunner().invoke(main, ["flows", "check", str(file)])
    assert (result.exit_code, "it has more than" in result.output) == (2, True), result.output


def test_an_import_takes_what_a_shell_hands_over(tmp_path: Path) -> None:
    """`outlive runs import <(zcat run.gz)` is a pipe, too, but one of the system. [S46]"""
    reader, writer = os.pipe()
    os.write(writer, b"no run")
    os.close(writer)

    result = CliRunner().invoke(main, ["runs", "import", f"/dev/fd/{reader}", "--store", f"sqlite:{tmp_path / 'a.db'}"])
    os.close(reader)
    assert "it cannot be read: JSON is malformed" in result.output
