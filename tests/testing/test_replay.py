"""`replay` finds out whether the code still fits what happened."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import outlive
from outlive._kernel.journal.codec import checksum, salt_of
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.packing import Packer
from outlive._kernel.model import Payload
from outlive.errors import ConfigurationError, RunFailedError
from outlive.errors.store import HistoryFormatError
from outlive.events import RunCancelled, RunCreated, SignalReceived
from outlive.limits import Limits
from outlive.testing import HistoryMismatchError, TestEngine, replay
from outlive.testing.rerun import Rerun
from outlive.types import Workflow


@outlive.step(name="replay.fetch")
async def fetch(what: str) -> str:
    """Something large or small."""
    return what * (50_000 if what == "large" else 1)


@outlive.workflow(name="replay.child")
async def child(what: str) -> str:
    """A child that is not among the given workflows."""
    return await fetch(what)


@outlive.workflow(name="replay.story")
async def story(what: str) -> list[Any]:
    """A bit of everything."""
    first = await fetch(what)
    await asyncio.sleep(60)
    word = await outlive.wait_for_signal("said", str)
    return [len(first), word, await child("x")]


@outlive.workflow(name="replay.broken")
async def broken() -> None:
    """Fail."""
    raise ValueError(await fetch("x"))


def changed(original: Workflow[..., Any], fn: Any) -> Workflow[..., Any]:
    """The same workflow with other code."""
    other: Workflow[..., Any] = Workflow.__new__(Workflow)
    other.__dict__.update(original.__dict__)
    other.spec = msgspec.structs.replace(original.spec, fn=fn)
    return other


@outlive.workflow(name="replay.at_once")
async def at_once(number: int) -> int:
    """Has nothing to do."""
    return number + 1


@pytest.fixture
async def history(tmp_path: Path) -> Path:
    """A recorded story, with a blob."""
    path = tmp_path / "story.jsonl"
    async with TestEngine() as engine:
        run = await engine.start(story, "large", id="story-1")
        await run.signal("said", "héllo\u2028\x85")
        await run.result()
        await run.export(path)
    return path


async def test_a_run_that_was_ended_from_outside_replays_up_to_there(tmp_path: Path) -> None:
    """Its code never heard of that: it was replaced, or parked and then cancelled."""
    path = tmp_path / "replaced.jsonl"
    async with TestEngine() as engine:
        await engine.start(story, "x", id="story-1")
        await engine.settle()
        await engine.start(story, "y", id="story-1", on_conflict="replace")
        await engine.get("story-1~old1").export(path)

    assert replay(path, workflows=[story]) == [path]


def test_the_same_code_replays(history: Path) -> None:
    """By pattern, by path, by many; children are found by name."""
    assert replay(str(history.parent / "*.jsonl"), workflows=[story]) == [history]
    assert replay([history, str(history)], workflows=[story]) == [history]


async def test_replay_works_inside_a_test_with_a_loop(history: Path) -> None:
    """`replay` is a sync function and works inside a test with an event loop."""
    assert replay(history) == [history]


def test_code_that_asks_for_something_else_is_reported(history: Path) -> None:
    """With the file, the line, the event, and both sides."""

    async def other(what: str) -> list[Any]:
        await asyncio.sleep(1)
        return [what]

    with pytest.raises(HistoryMismatchError) as caught:
        replay(history, workflows=[changed(story, other)])

    text = str(caught.value)
    assert text.startswith("1 of 1 histories do not replay")
    assert f"{history}:4: run story-1, event 1 (StepSucceeded replay.fetch)" in text
    assert "- journal: step replay.fetch succeeded" in text
    assert "+ code:    waits for timer @timer" in text


def test_other_arguments_are_listed_and_are_not_an_error(history: Path) -> None:
    """A call with other arguments is listed with its file, line and event, and is not an error."""
    assert not replay(history, workflows=[story]).differences

    async def other(what: str) -> list[Any]:
        first = await fetch(what.upper())
        await asyncio.sleep(60)
        word = await outlive.wait_for_signal("said", str)
        return [len(first), word, await child("x")]

    replayed = replay(history, workflows=[changed(story, other)])

    assert replayed == [history]
    assert replayed.differences == [
        f"{history}:4: run story-1, event 1: replay.story@1 calls replay.fetch with other arguments"
    ]


def test_other_arguments_contradict_a_strict_workflow(history: Path) -> None:
    """A call with other arguments contradicts the journal of a workflow with `strict_arguments=True`."""

    async def other(what: str) -> list[Any]:
        return [await fetch(what.upper())]

    strict = changed(story, other)
    strict.spec = msgspec.structs.replace(strict.spec, strict_arguments=True)
    with pytest.raises(HistoryMismatchError, match=r"\+ code:    replay\.fetch with other arguments"):
        replay(history, workflows=[strict])


def test_code_that_ends_with_another_result_is_reported(history: Path) -> None:
    """A worker would not see that: here it is an error."""

    async def other(what: str) -> list[Any]:
        return [*await story.spec.fn(what), "more"]

    with pytest.raises(HistoryMismatchError, match=r"ends otherwise[\s\S]*journal: succeeded: \[250000[\s\S]*'more'\]"):
        replay(history, workflows=[changed(story, other)])


def test_code_that_fails_instead_is_reported(history: Path) -> None:
    """Another status is another end."""

    async def other(what: str) -> list[Any]:
        await story.spec.fn(what)
        raise ValueError("no")

    with pytest.raises(HistoryMismatchError, match=r"code: +failed: 'ValueError: no'"):
        replay(history, workflows=[changed(story, other)])


async def test_another_failure_is_reported(tmp_path: Path) -> None:
    """Type and message count."""
    async with TestEngine() as engine:
        run = await engine.start(broken)
        with pytest.raises(RunFailedError):
            await run.result()
        await run.export(tmp_path / "broken.jsonl")

    async def other() -> None:
        raise KeyError(await fetch("x"))

    assert replay(tmp_path / "broken.jsonl")
    with pytest.raises(HistoryMismatchError, match="KeyError"):
        replay(tmp_path / "broken.jsonl", workflows=[changed(broken, other)])


async def test_a_run_under_way_replays_and_code_that_ends_there_does_not(tmp_path: Path) -> None:
    """A history need not be at its end."""
    async with TestEngine() as engine:
        run = await engine.start(story, "x")
        await engine.skip(minutes=2)
        (tmp_path / "open.jsonl").write_text(await engine.export(run.id), "utf-8")

    async def other(what: str) -> list[Any]:
        await fetch(what)
        await asyncio.sleep(60)
        return []

    assert replay(tmp_path / "open.jsonl")
    with pytest.raises(HistoryMismatchError, match="the code has ended"):
        replay(tmp_path / "open.jsonl", workflows=[changed(story, other)])


async def test_a_run_that_was_not_moved_yet_replays(tmp_path: Path) -> None:
    """It waits for a worker, and its code would end at once."""
    async with TestEngine(worker=False) as engine:
        run = await engine.start(at_once, 3)
        await run.export(tmp_path / "pending.jsonl")

    replay(tmp_path / "pending.jsonl")


@outlive.workflow(name="replay.asks")
async def asks(number: int) -> int:
    """Has nothing to do but to hear something."""
    return number + await outlive.wait_for_signal("said", int)


@pytest.mark.parametrize("ending", [[], [RunCancelled(at=3)]], ids=["open", "cancelled"])
def test_a_generation_that_was_not_moved_yet_replays(ending: list[AnyEvent]) -> None:
    """It was given the signals that no code had taken, its code would end at once, and no worker has called it."""
    number, answer = (Payload(msgspec.Raw(data)) for data in (b"[1]", b"2"))
    created = RunCreated(at=1, workflow="replay.asks", version=1, input=number, nonce=7, generation=1)
    given = SignalReceived(at=2, name="said", payload=answer)
    rerun = Rerun(
        "asks", resolve=lambda name, version: asks.spec, unpack=lambda payload: Packer(Limits()).unpack(payload, {})
    )

    rerun.feed_all([created, given, *ending])


def test_a_missing_version_is_reported(history: Path) -> None:
    """By the name that the journal has."""
    text = history.read_text("utf-8").replace('"version":1,', '"version":7,')
    history.write_text(resealed(text), "utf-8")

    with pytest.raises(HistoryMismatchError, match=r"replay\.story@7"):
        replay(history)


def resealed(text: str) -> str:
    """A changed history with good checksums: what other code might have written."""
    head, *lines = text.split("\n")
    salt = salt_of(msgspec.json.decode(head)["nonce"])
    sealed = [head]
    for line in lines:
        if line.startswith('{"seq"'):
            body = line[line.index('"event":') + 8 : -1].encode()
            row = msgspec.json.decode(line)
            crc = checksum(row["seq"], row["format"], body, salt)
            sealed.append(f'{{"seq":{row["seq"]},"format":1,"crc":{crc},"event":{body.decode()}}}')
        else:
            sealed.append(line)
    return "\n".join(sealed)


def test_a_payload_that_cannot_be_read_is_reported(history: Path) -> None:
    """A result that is no longer text."""
    text = history.read_text("utf-8").replace('"payload":{"v":"héllo\u2028\x85"}', '"payload":{"v":5}')
    history.write_text(resealed(text), "utf-8")

    with pytest.raises(HistoryMismatchError, match="signal 'said' cannot be read as str"):
        replay(history)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "empty"),
        (lambda text: "{}\n", "cannot be read"),
        (lambda text: text.replace('"outlive":"history"', '"outlive":"menu"'), "holds 'menu'"),
        (lambda text: text.replace('"format":1', '"format":2', 1), "newer"),
        (lambda text: text.replace('"at":175000000', '"at":175000001', 1), "checksum"),
        (lambda text: "\n".join(text.split("\n")[:-2]), "the head says"),
        (lambda text: "\n".join(sorted(text.split("\n"))), "cannot be read"),
        (lambda text: text.replace('"data":"', '"data":"AAAA'), "another hash"),
        (lambda text: text + "hello\n", "cannot be read"),
    ],
    ids=["empty", "no head", "other kind", "newer", "changed", "cut", "sorted", "blob", "more"],
)
def test_a_file_that_was_changed_is_refused(history: Path, change: Any, message: str) -> None:
    """With the line where it begins."""
    history.write_text(change(history.read_text("utf-8")), "utf-8")

    with pytest.raises(HistoryFormatError, match=message) as caught:
        replay(history)

    assert str(caught.value).startswith(f"{history}:{caught.value.line}: ")


def test_a_pattern_without_files_is_an_error(tmp_path: Path) -> None:
    """A test that replays nothing must not pass."""
    with pytest.raises(ConfigurationError, match="no file matches"):
        replay(str(tmp_path / "*.jsonl"))


async def test_the_history_of_a_child_is_that_of_its_tree() -> None:
    """The head names both."""
    async with TestEngine() as engine:
        run = await engine.start(story, "x", id="s")
        await run.signal("said", "t")
        await run.result()
        (found,) = [it for it in await engine.list() if it.parent_id]
        head = msgspec.json.decode((await engine.export(found.id)).splitlines()[0])

    assert (head["run_id"], head["root_id"]) == (found.id, "s")
