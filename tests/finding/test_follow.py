"""`run.follow`: every event of a journal in its order, past and future."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

import outlive
from outlive._kernel.client.following import JournalEntry
from outlive._kernel.client.shown import EVENTS_AT_ONCE, portions_of
from outlive._kernel.model import Payload, Run
from outlive._kernel.store.contract import Store
from outlive.engine.view import view_of
from outlive.errors import RunNotFoundError, RunParkedError
from outlive.events import SignalReceived
from outlive.testing import TestEngine
from tests.engine.inside import wrap_inner


@outlive.step
async def followed_step(password: str) -> str:
    """Says nothing of what it is given."""
    if password.startswith("un"):
        raise ValueError(f"{password} is not a password")
    return "ok"


@outlive.workflow
async def followed(password: str) -> str:
    """One step, a wait, and its end."""
    await followed_step(password)
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def followed_turns(turn: int) -> int:
    """Goes on as a new run twice."""
    await followed_step("a")
    if turn < 2:
        outlive.continue_as_new(turn + 1)
    return turn


@outlive.workflow
async def followed_long() -> None:
    """Gets a secret behind a thousand events, and fails with it."""
    for _ in range(1_000):
        await followed_step("a")
    sent = await outlive.wait_for_signal("go", dict)
    raise ValueError(f"{sent['password']} is wrong")


@outlive.workflow
async def followed_host(guests: int) -> None:
    """Waits for so many other runs at once."""
    runs = [await outlive.start(followed, "secret", detached=True, id=f"guest-{number}") for number in range(guests)]
    await asyncio.gather(*(run.result() for run in runs))


@outlive.workflow
async def followed_spin() -> None:
    """Waits for nothing, for ever."""
    while True:  # noqa: ASYNC110 (that is the point)
        await asyncio.sleep(0)


async def test_follower_sees_every_event_once_and_ends_with_the_run() -> None:
    """Whether it was there before or comes later; and a reader that was cut off goes on where it was."""
    async with TestEngine() as engine:
        run = await engine.start(followed, "secret")
        entries, positions = [], []
        async for entry in run.follow():
            entries.append(entry)
            positions.append(entry.seq)
            if "waits for signal" in entry.words:
                break
        await run.signal("go", "gone")
        rest = [entry async for entry in run.follow(after=positions[-1])]
        entries += rest
        positions += [entry.seq for entry in rest]

        assert await run.history() == entries
        assert list(range(len(entries))) == positions
        assert [] == [entry async for entry in run.follow(after=positions[-1])]


async def test_follower_goes_on_with_the_next_generation() -> None:
    """Whose journal begins again."""
    async with TestEngine() as engine:
        run = await engine.start(followed_turns, 0, id="turns")
        await run.result()
        seen = [entry.words async for entry in engine.get("turns").follow()]

    assert seen[-1] == "the run succeeded"


async def test_redacted_follower_hides_in_late_events_what_early_ones_showed() -> None:
    """A follower that begins behind the event with the secret hides that secret in the later events."""
    async with TestEngine(redact=["password"]) as engine:
        run = await engine.start(followed, "unlucky")
        with pytest.raises(outlive.errors.RunFailedError):
            await run.result()
        shown = [str(entry.data) async for entry in run.follow(after=0)]

    assert shown
    assert not [text for text in shown if "unlucky" in text]


class ReadRows:
    """A store that remembers which rows of journals were read."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.reads: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def read_journal(self, journal: int, **options: Any) -> list[Any]:
        """As the store has it."""
        rows = await self._inner.read_journal(journal, **options)
        self.reads.append([row[0] for row in rows])
        return rows


async def test_redacted_follower_reads_every_event_once() -> None:
    """It remembers what it must not show, and goes on where it was."""
    engine = TestEngine(redact=["password"])
    store = wrap_inner(engine, ReadRows)
    async with engine:
        run = await engine.start(followed, "secret")
        await engine.settle()
        store.reads.clear()
        positions = []
        async for entry in run.follow():
            positions.append(entry.seq)
            if "waits for signal" in entry.words:
                await run.signal("go", "gone")

    assert positions == sorted({seq for rows in store.reads for seq in rows})
    assert sum(len(rows) for rows in store.reads) == len(positions)


async def events_of(engine: TestEngine, run: Run, *, limit: int) -> list[JournalEntry]:
    """The first events of a journal."""
    return [entry async for portion in view_of(engine).portions(run, after=-1, limit=limit) for entry in portion]


async def test_failure_hides_what_only_a_late_event_of_a_long_journal_showed() -> None:
    """However long it is; and what was looked at once is not read again for another view."""
    engine = TestEngine(redact=["password"])
    store = wrap_inner(engine, ReadRows)
    async with engine:
        run = await engine.start(followed_long, id="long")
        await engine.settle()
        await run.signal("go", {"password": "hunter22"})
        with pytest.raises(outlive.errors.RunFailedError):
            await run.result()
        store.reads.clear()
        shown = await view_of(engine).run("long")
        read = sum(len(rows) for rows in store.reads)
        listed = await view_of(engine).runs(order="-created_at", limit=10, after=None)
        page = await events_of(engine, await view_of(engine).row("long"), limit=10)

    assert shown.error is not None
    assert "hunter22" not in f"{shown.error} {listed}"
    assert read > 1_000
    assert max(len(rows) for rows in store.reads) <= EVENTS_AT_ONCE
    assert (sum(len(rows) for rows in store.reads) - read, len(page)) == (10, 10)


class HeldRead(ReadRows):
    """A store whose first answer about a journal is held back until a test lets it go."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_held, self.go = asyncio.Event(), asyncio.Event()

    async def read_journal(self, journal: int, **options: Any) -> list[Any]:
        """As the store has it; late, if it is the first."""
        rows = await super().read_journal(journal, **options)
        if not self.is_held.is_set():
            self.is_held.set()
            await self.go.wait()
        return rows


async def test_readers_of_one_long_journal_miss_nothing_when_one_overtakes_the_other() -> None:
    """Two readers of one long journal get every event, even if the second overtakes the first during its read."""
    engine = TestEngine(redact=["password"])
    async with engine:
        await engine.start(followed_long, id="long")
        await engine.settle()
        run = await view_of(engine).row("long")
        store = wrap_inner(engine, HeldRead)
        slow = asyncio.ensure_future(events_of(engine, run, limit=1_000))
        await store.is_held.wait()
        fast = await events_of(engine, run, limit=1_000)
        store.go.set()

        assert [entry.position for entry in fast] == list(range(1_000))
        assert [entry.position for entry in await slow] == list(range(1_000))


async def test_follower_reads_no_event_again_because_people_look_at_other_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It keeps what it knows for as long as it follows, however little is kept of other journals."""
    monkeypatch.setattr("outlive._kernel.client.shown.KNOWN_MAX", 1)
    engine = TestEngine(redact=["password"])
    store = wrap_inner(engine, ReadRows)
    async with engine:
        run = await engine.start(followed, "secret", id="followed")
        await engine.start(followed, "unlucky", id="other")
        await engine.settle()
        followed_events = run.follow()
        async for entry in followed_events:
            if "waits for signal" in entry.words:
                break
        await view_of(engine).run("other")
        store.reads.clear()
        await run.signal("go", "gone")
        rest = [entry.seq async for entry in followed_events]

    assert sorted(seq for rows in store.reads for seq in rows if seq <= entry.seq) == []
    assert rest[0] == entry.seq + 1


async def test_secret_texts_are_kept_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the engine reads the journals again that people looked at the longest time ago."""
    monkeypatch.setattr("outlive._kernel.client.shown.KNOWN_CHARACTERS_MAX", 10)
    engine = TestEngine(redact=["password"])
    store = wrap_inner(engine, ReadRows)
    async with engine:
        for run_id in ("first", "last"):
            await engine.start(followed, "unlucky", id=run_id)
            await engine.settle()
            await view_of(engine).run(run_id)
        store.reads.clear()
        shown = [await view_of(engine).run(run_id) for run_id in ("last", "first")]

    assert not [run for run in shown if "unlucky" in str(run.error)]
    assert [bool(rows) for rows in store.reads] == [False, True]


async def test_follower_of_a_parked_run_gets_what_it_did_and_then_the_reason() -> None:
    """Nothing more comes before a person resumes it."""
    async with TestEngine(limits=outlive.limits.Limits(turns_per_event_max=50)) as engine:
        run = await engine.start(followed_spin)
        seen: list[str] = []
        with pytest.raises(RunParkedError, match="turns"):
            await _collect(run, seen)
        with pytest.raises(RunNotFoundError):
            await anext(engine.get("none").follow())

    assert seen[-1].startswith("the run was parked")


async def _collect(run: outlive.types.RunHandle[None], seen: list[str]) -> None:
    async for entry in run.follow():
        seen.append(entry.words)  # noqa: PERF401 (it raises at the end, and what came before is wanted)


async def test_why_reads_only_the_journals_of_runs_that_it_names() -> None:
    """A run may wait for thousands, and a page asks why every few seconds."""
    engine = TestEngine(redact=["password"])
    store = wrap_inner(engine, ReadRows)
    async with engine:
        run = await engine.start(followed_host, 30, id="host")
        await engine.settle()
        for number in range(30):
            await engine.get(f"guest-{number}").pause(by="ann", reason="secret is wrong")
        await engine.settle()
        store.reads.clear()
        said = await run.why()

    assert said.startswith("it waits for run guest-0, which is paused by ann: [redacted] is wrong or run guest-1")
    assert said.endswith("or 26 more")
    assert len([rows for rows in store.reads if rows]) == 4


def test_portion_of_a_journal_holds_as_much_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are looked at together up to the limit; an event that is larger than that is a portion of its own."""
    monkeypatch.setattr("outlive._kernel.client.shown.PORTION_BYTES", 10)
    events = [SignalReceived(at=0, name="go", payload=Payload(v=Raw(b"1" * size))) for size in (5, 5, 1, 9, 1, 30, 2)]

    assert [(part.start, part.stop) for part in portions_of(events)] == [(0, 2), (2, 4), (4, 5), (5, 6), (6, 7)]
