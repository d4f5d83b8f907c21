"""Encrypted and compressed runs: everything that is a value, in every place, with keys that come and go."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

import outlive
from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Payload
from outlive.codecs import Compression, Encryption
from outlive.errors import UnreadableError
from outlive.events import SignalReceived, StepProgressed, StepSucceeded
from outlive.testing import TestEngine
from outlive.types import Event
from tests.engine.inside import crash, journal_of, row_of
from tests.engine.support import Place, events_of, hold, in_time, parks, registry_of, stage, waits

pytestmark = pytest.mark.any_store

KEYS = {"2026-10": bytes(range(32)), "2026-11": bytes(range(32, 64))}
MARKER = "canary-7f3a"


def text_of(events: Sequence[AnyEvent | Event]) -> str:
    """Events with everything that is in them."""
    return msgspec.json.encode(events).decode()


def encryption(current: str = "2026-11", *names: str) -> list[Any]:
    """Compression and encryption, with these keys; no value of an engine goes another way."""
    keys = {name: KEYS[name] for name in names or KEYS}
    return [Compression(over=1_000), Encryption(keys, current, required=True)]


@outlive.step(retry=outlive.Retry(attempts=2, first=0.001))
async def whisper(text: str) -> str:
    """Says it back, after an attempt that saved how far it came and failed."""
    me = outlive.current_step()
    if me.attempt == 1 and text.startswith("slow"):
        me.heartbeat({"so far": MARKER})
        raise ValueError("not yet")
    return text


@outlive.workflow
async def inner(text: str) -> str:
    return await whisper(text)


@outlive.workflow
async def secretive(text: str) -> dict[str, Any]:
    """Puts a secret into every kind of value that there is."""
    child = await outlive.start(inner, text, detached=True, id="detached")
    return {
        "step": await whisper(text),
        "slow": await whisper("slow " + text),
        "child": await inner(text),
        "detached": await child.result(),
        "signal": await outlive.wait_for_signal("go"),
        "large": await whisper(text * 10_000),
    }


@outlive.workflow
async def hears() -> str:
    """Waits for a signal, and gives it back."""
    word: str = await outlive.wait_for_signal("go")
    return word


@outlive.workflow
async def told_by_detached() -> str:
    child = await outlive.start(inner, MARKER, detached=True, id="teller")
    await outlive.wait_for_signal("go")
    try:
        return await child.result()
    except Exception:
        return "gave up"


@outlive.workflow
async def resting(text: str) -> str:
    """Has a result of a step, and waits."""
    said = await whisper(text)
    return said + await hold("resting")


async def test_no_value_is_readable_at_rest(tmp_path: Path) -> None:
    """Arguments, results, signals, progress, children, detached runs and blobs; in the file and in what lies beside it,
    while the engine runs and after it. [S29]"""
    place = Place(tmp_path / "engine.db")

    def files() -> bytes:
        return b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir()) if path.is_file())

    async with place.engine(codecs=encryption()) as engine:
        run = await engine.start(secretive, MARKER, id="run-1")
        await engine.signal("run-1", "go", {"signal": MARKER})
        result = await in_time(run.result())
        progressed = await events_of(run, StepProgressed)
        while_running = files()
    after = files()

    assert result["large"] == MARKER * 10_000
    assert result["signal"] == {"signal": MARKER}
    assert progressed, "the attempt saved something"
    for name in (b"secretive", b"run-1"):
        assert name in while_running + after, "the search would find it"
    for marker in (MARKER, msgspec.json.encode(MARKER * 2).decode()[1:-1]):
        assert marker.encode() not in while_running
        assert marker.encode() not in after


async def test_a_key_can_be_changed_while_runs_are_under_way(place: Place) -> None:
    """New values have the new key, the old ones are still read."""
    async with place.engine(codecs=encryption("2026-10", "2026-10")) as engine:
        await engine.start(hears, id="run-1")
        run = await engine.start(resting, MARKER, id="run-2")
        await stage.gate("resting").reached()
        await waits(engine.get("run-1"))
    async with place.engine(codecs=encryption("2026-11")) as engine:
        await engine.signal("run-1", "go", MARKER)
        stage.gate("resting").open()
        run = engine.get("run-2")

        assert await in_time(engine.get("run-1").result()) == MARKER
        assert await in_time(run.result()) == f"{MARKER}resting"


async def test_a_missing_key_parks_the_run_until_it_is_back(place: Place) -> None:
    """Nothing is lost, and the reason names the key. [S29 S43]"""
    async with place.engine(codecs=encryption("2026-10", "2026-10")) as engine:
        await engine.start(resting, MARKER, id="run-1")
        await stage.gate("resting").reached()
        await crash(engine)
    async with place.engine(codecs=encryption("2026-11", "2026-11")) as engine:
        reason = await parks(engine.get("run-1"))
        assert "no key '2026-10' is here; put it into Encryption(keys=...), then resume the run" in reason
        assert reason in await engine.get("run-1").why()
    async with place.engine(codecs=encryption("2026-11")) as engine:
        await engine.resume("run-1")
        stage.gate("resting").open()
        assert await in_time(engine.get("run-1").result()) == f"{MARKER}resting"


async def test_a_detached_result_that_cannot_be_read_parks_too(place: Place) -> None:
    """The workflow that waits for it would otherwise go another way for want of a key."""
    starter, teller = registry_of(told_by_detached), registry_of(inner)
    async with (
        place.engine(codecs=encryption("2026-11"), registry=starter) as engine,
        place.engine(codecs=encryption("2026-10"), registry=teller),
    ):
        run = await engine.start(told_by_detached, id="run-1")
        await in_time(engine.get("teller").result())
        await waits(run)
    async with place.engine(codecs=encryption("2026-11", "2026-11")) as engine:
        await engine.signal("run-1", "go", None)
        assert "no key '2026-10' is here" in await parks(engine.get("run-1"))
    async with place.engine(codecs=encryption("2026-11")) as engine:
        await engine.resume("run-1")
        assert await in_time(engine.get("run-1").result()) == MARKER


async def test_a_client_without_the_key_gets_an_error_that_says_so(place: Place) -> None:
    """When it asks for the result; everything else it may see."""
    async with place.engine(codecs=encryption()) as engine:
        await in_time((await engine.start(inner, MARKER, id="run-1")).result())
    async with place.engine(codecs=[Encryption({"other": bytes(32)}, "other")], worker=False) as client:
        run = client.get("run-1")
        with pytest.raises(UnreadableError, match="no key '2026-11' is here"):
            await run.result()
        assert await run.status() == "succeeded"
        assert "[unreadable: no key '2026-11' is here]" in text_of(await run.history())


async def test_an_inbox_is_read_by_the_next_owner_of_the_name(place: Place) -> None:
    """A signal is for the name of the run: sent by one engine, read by another; sent to a child, read by it."""
    async with place.engine(codecs=encryption(), worker=False) as client:
        await client.signal("run-1", "go", MARKER, start=(hears,))
    async with place.engine(codecs=encryption()) as engine:
        assert await in_time(engine.get("run-1").result()) == MARKER
        (heard,) = await events_of(engine.get("run-1"), SignalReceived)
        assert heard.payload.of == "to:run-1"


async def test_a_replaced_run_can_still_be_read(place: Place) -> None:
    """It has another name, and the owner of its values is not its name."""
    async with place.engine(codecs=encryption()) as engine:
        await in_time((await engine.start(inner, MARKER, id="run-1")).result())
        await engine.start(inner, "other", id="run-1", on_conflict="replace")

        assert await in_time(engine.get("run-1~old1").result()) == MARKER
        assert MARKER in text_of(await engine.history("run-1~old1"))


async def test_a_value_that_is_moved_between_runs_is_not_believed(tmp_path: Path) -> None:
    """A person who can write to the file can put one run's ciphertext into another; that run parks and says why.

    [S29]
    """
    place = Place(tmp_path / "engine.db", is_damaged=True)
    async with place.engine(codecs=encryption()) as engine:
        for name in ("rich", "poor"):
            await engine.start(resting, name, id=name)
            await stage.gate("resting").reached()
        (rich,) = await events_of(engine.get("rich"), StepSucceeded)
        poor = [await row_of(engine, "poor"), *await journal_of(engine, "poor")]
        await crash(engine)
    _forge(place, poor, rich)
    async with place.engine(codecs=encryption()) as engine:
        reason = await parks(engine.get("poor"))
        stage.gate("resting").open()
        assert await in_time(engine.get("rich").result()) == "richresting"
    assert "it was moved" in reason


async def test_a_value_that_was_not_encrypted_is_not_believed_where_that_is_required(tmp_path: Path) -> None:
    """A person who can write to the file needs a key to say what a step has given; people see that it is none. [S29]"""
    place = Place(tmp_path / "engine.db", is_damaged=True)
    async with place.engine(codecs=encryption()) as engine:
        await engine.start(resting, "poor", id="poor")
        await stage.gate("resting").reached()
        poor = [await row_of(engine, "poor"), *await journal_of(engine, "poor")]
        (real,) = await events_of(engine.get("poor"), StepSucceeded)
        await crash(engine)
    planted = msgspec.structs.replace(real, result=Payload(v=msgspec.Raw(b'"of a thief"')))
    _forge(place, poor, planted)
    async with place.engine(codecs=encryption()) as engine:
        reason = await parks(engine.get("poor"))
        shown = text_of(await engine.history("poor"))
    assert "was not made by the payload codec 'aes256gcm'" in reason
    assert "of a thief" not in shown
    assert "[unreadable: it was not made by" in shown


def _forge(place: Place, poor: list[Any], rich: StepSucceeded) -> None:
    """Give one run the result of another's step, with a checksum that is right."""
    run, *events = poor
    (seq,) = (seq for seq, event in enumerate(events) if isinstance(event, StepSucceeded))
    forged = msgspec.structs.replace(events[seq], result=rich.result)
    _, _, crc, body = seal(forged, salt=salt_of(run.nonce), seq=seq)
    assert place.path is not None
    connection = apsw.Connection(str(place.path))
    connection.execute(
        "UPDATE outlive_events SET crc = ?, body = ? WHERE journal = ? AND seq = ?", (crc, body, run.journal, seq)
    )
    assert connection.changes() == 1
    connection.close()


# -- What people see ---------------------------------------------------------------------------------------------------


class LoginError(Exception):
    """Knows too much."""

    def __init__(self, password: str) -> None:
        super().__init__(f"wrong password {password}")
        self.password = password


@outlive.step
async def log_in(user: str, password: str) -> dict[str, str]:
    """Fails for the wrong one."""
    if password.startswith("wrong"):
        raise LoginError(password)
    return {"user": user, "token": password * 2}


@outlive.workflow
async def visit(user: str, password: str) -> str:
    return (await log_in(user, password))["token"]


@outlive.step
async def try_password(password: str) -> None:
    raise ValueError(f"wrong password {password}")


@pytest.mark.parametrize("codecs", [[], encryption()], ids=["plain", "encrypted"])
async def test_people_do_not_see_what_is_redacted(place: Place, codecs: list[Any]) -> None:
    """In history and in the reason of a failure; the workflow sees everything. [S30 S32]"""
    async with place.engine(codecs=codecs, redact=("password", "token")) as engine:
        run = await engine.start(visit, "ann", MARKER)
        assert await in_time(run.result()) == MARKER * 2

        history = await run.history()
        created, result = history[0], history[1]
        assert created.data["input"] == ["ann", "[redacted]"]
        assert result.data["result"] == {"user": "ann", "token": "[redacted]"}

        failed = await engine.start(visit, "ann", f"wrong-{MARKER}", id="failed")
        with pytest.raises(outlive.errors.RunFailedError):
            await in_time(failed.result())
        assert MARKER not in text_of(await engine.history("failed"))
        assert MARKER not in await failed.why()
        assert "wrong password [redacted]" in await failed.why()


@outlive.workflow
async def lingers(password: str) -> None:
    """Waits, and holds a secret."""
    await outlive.wait_for_signal("never")


@outlive.workflow
async def attends(password: str) -> None:
    """Waits for another run, which has the secret too."""
    other = await outlive.start(lingers, password, detached=True, id="lingers")
    await other.result()


async def test_why_a_run_waits_hides_what_is_redacted_in_the_run_that_it_waits_for() -> None:
    """Why that one stopped is said, without it. [S30]"""
    async with TestEngine(redact=("password",)) as engine:
        run = await engine.start(attends, MARKER, id="attends")
        await engine.settle()
        await engine.get("lingers").pause(by="ann", reason=f"{MARKER} is wrong")
        await engine.settle()

        assert await run.why() == "it waits for run lingers, which is paused by ann: [redacted] is wrong"


async def test_rows_of_a_batch_are_redacted_as_arguments(place: Place) -> None:
    """In the rows, and in what a failed item says."""
    async with place.engine(redact=("password",)) as engine:
        batch = await engine.start_batch(try_password, [MARKER], id="batch")
        await in_time(batch.result())

        assert MARKER in text_of(await journal_of(engine, "batch~chunk1"))
        assert MARKER not in text_of(await engine.history("batch~chunk1"))


async def test_a_history_is_whole_unless_people_are_to_see_it(place: Place) -> None:
    """Replay and tests need what is stored."""
    async with place.engine(redact=("password",)) as engine:
        run = await engine.start(visit, "ann", MARKER)
        await in_time(run.result())

        assert MARKER in text_of(await journal_of(run))
        assert len(await journal_of(run)) == len(await run.history())


async def test_blobs_are_shown_as_the_values_they_are(place: Place) -> None:
    """A large value is read for every reader."""
    async with place.engine(codecs=encryption()) as engine:
        run = await engine.start(inner, os.urandom(40_000).hex())
        text = await in_time(run.result())

        assert text in text_of(await run.history())
