"""What users have of checkpoints: alone and on an engine, with codecs, and the errors when it cannot work."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._kernel.journal.checkpoint import checkpoint_checksum
from outlive.checkpoints import Checkpoint, CheckpointKind
from outlive.codecs import Compression, Encryption
from outlive.errors import EngineClosedError, PayloadTooLargeError, StoreError, UnreadableError
from outlive.errors.program import NotDurableError
from outlive.errors.run import InvalidRunIdError
from outlive.errors.store import InvalidCheckpointError, StoreUrlError
from tests.engine.inside import store_of
from tests.engine.support import Place, in_time

ROW = Checkpoint(3, "PAY", "pay", CheckpointKind.UNDO, b"receipt", 2)
SECRET = b"canary-7f3a " * 500
KEYS = {"2026-11": bytes(range(32))}

opened: list[outlive.checkpoints.CheckpointStore] = []
"""Those of the engine under test, for its step."""


@outlive.step(name="checkpoints.note")
async def note(number: int) -> int:
    """Writes a checkpoint."""
    await opened[0].append("apart", Checkpoint(number, "S"))
    return number


@outlive.workflow(name="checkpoints.careless")
async def careless() -> str:
    """Tries what only a step may do."""
    (store,) = opened
    seen = []
    for verb in (store.append("apart", ROW), store.load_run("apart"), store.clear("apart")):
        try:
            await verb
        except NotDurableError as error:
            seen.append(str(error))
    await note(1)
    return "; ".join(seen)


# -- Bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("sequence", -1, "between 0 and"),
        ("sequence", 2**63, "between 0 and"),
        ("sequence", True, "whole number"),
        ("sequence", "1", "whole number"),
        ("sequence", 1.0, "whole number"),
        ("version", -1, "between 0 and"),
        ("version", None, "whole number"),
        ("state", "", "names no state"),
        ("state", CheckpointKind.STATE, "take its name"),
        ("state", "\ud800", "UTF-8"),
        ("task", None, "is text"),
        ("kind", "state", "CheckpointKind"),
        ("output", "text", "is bytes"),
        ("output", bytearray(b"x"), "is bytes"),
        ("unknown_kind", 1, "is text"),
    ],
)
def test_a_checkpoint_that_cannot_be_stored_is_refused_when_it_is_made(field: str, value: Any, reason: str) -> None:
    """The error says which part of it, and why."""
    fields: dict[str, Any] = {"sequence": 1, "state": "PAY", field: value}

    with pytest.raises(InvalidCheckpointError, match=reason) as caught:
        Checkpoint(**fields)

    assert caught.value.field == field
    assert isinstance(caught.value, ValueError)


def test_only_a_state_can_have_been_an_unknown_kind() -> None:
    """A row says one thing."""
    with pytest.raises(InvalidCheckpointError, match="counts as a STATE"):
        Checkpoint(1, "PAY", kind=CheckpointKind.CURSOR, unknown_kind="teleported")


def test_a_checkpoint_cannot_be_changed() -> None:
    """It is a value."""
    with pytest.raises(AttributeError):
        ROW.state = "SHIP"  # type: ignore[misc]


def test_a_long_output_is_not_shown_in_an_error() -> None:
    """It may be secret, and of any size."""
    with pytest.raises(InvalidCheckpointError) as caught:
        Checkpoint(1, "PAY", output="secret" * 1_000)  # type: ignore[arg-type]

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("run_id", ["", "x" * 129, "a b", "-a", None, 7, "a\x00"])
async def test_an_id_that_cannot_be_one_is_refused(run_id: Any) -> None:
    """By every verb, as everywhere."""
    async with outlive.checkpoints.open_store("memory:") as store:
        for verb in (store.append(run_id, ROW), store.load_run(run_id), store.clear(run_id)):
            with pytest.raises(InvalidRunIdError):
                await verb


async def test_something_else_than_a_checkpoint_is_refused() -> None:
    """Before anything is written."""
    async with outlive.checkpoints.open_store("memory:") as store:
        with pytest.raises(InvalidCheckpointError, match=r"outlive\.checkpoints\.Checkpoint"):
            await store.append("run-1", {"sequence": 1})  # type: ignore[arg-type]


async def test_an_address_that_is_not_a_store_is_refused() -> None:
    """An address that is not a store raises StoreUrlError, as for an engine."""
    with pytest.raises(StoreUrlError):
        async with outlive.checkpoints.open_store("app.db"):
            """Never."""


# -- Where they can be used ----------------------------------------------------------------------------------


async def test_an_engine_and_a_plain_front_have_the_same_checkpoints(place: Place) -> None:
    """The checkpoints of an engine and of a plain front lie in one table."""
    async with place.engine() as engine:
        await engine.checkpoints.append("run-1", ROW)
        if place.url != "memory:":
            async with outlive.checkpoints.open_store(place.url) as store:
                assert await store.load_run("run-1") == [ROW]
                await store.append("run-1", Checkpoint(4, "SHIP"))
            assert await engine.checkpoints.load_run("run-1") == [ROW, Checkpoint(4, "SHIP")]
    async with place.engine(worker=False) as engine:
        assert (await engine.checkpoints.load_run("run-1"))[0] == ROW


async def test_checkpoints_are_used_in_steps_and_not_in_workflows(engine: outlive.Engine) -> None:
    """A workflow would write them again with every replay; it has a journal of its own."""
    store = engine.checkpoints
    opened[:] = [store]

    answer = await in_time((await engine.start(careless)).result())

    assert answer.count("do this in a step") == 3
    assert await store.load_run("apart") == [Checkpoint(1, "S")]


async def test_sync_code_has_checkpoints(place: Place) -> None:
    """The sync engine appends, loads and clears checkpoints from another thread."""
    async with place.engine() as engine:

        def work() -> list[Checkpoint]:
            engine.sync.checkpoints.append("run-1", ROW)
            found: list[Checkpoint] = engine.sync.checkpoints.load_run("run-1")
            engine.sync.checkpoints.clear("run-1")
            return found

        assert await asyncio.to_thread(work) == [ROW]
        assert await engine.checkpoints.load_run("run-1") == []


async def test_closed_checkpoints_say_that_they_are_closed(place: Place) -> None:
    """Checkpoints of a closed engine, and closed ones without an engine, refuse an append and say that they are
    closed."""
    async with place.engine() as engine:
        kept = engine.checkpoints
    async with outlive.checkpoints.open_store(place.url) as store:
        """Nothing to do."""

    with pytest.raises(EngineClosedError):
        await kept.append("run-1", ROW)
    with pytest.raises(StoreError, match="were closed"):
        await store.append("run-1", ROW)


async def test_many_programs_open_a_new_file_at_once(tmp_path: Path) -> None:
    """The table is made by one of them."""
    url = f"sqlite:{tmp_path / 'app.db'}"

    async def append(number: int) -> None:
        async with outlive.checkpoints.open_store(url) as store:
            await store.append("run-1", Checkpoint(number, "S"))

    await asyncio.gather(*map(append, range(6)))

    async with outlive.checkpoints.open_store(url) as store:
        assert [row.sequence for row in await store.load_run("run-1")] == list(range(6))


# -- Limits and codecs ---------------------------------------------------------------------------------------


async def test_an_output_over_the_limit_is_refused(place: Place) -> None:
    """Nothing is written, and the error says which limit."""
    async with place.engine(limits=outlive.limits.Limits(payload_bytes_max=100_000)) as engine:
        with pytest.raises(PayloadTooLargeError, match=r"checkpoint 1 of run 'run-1'.*payload_bytes_max"):
            await engine.checkpoints.append("run-1", Checkpoint(1, "S", output=bytes(100_001)))
        await engine.checkpoints.append("run-1", Checkpoint(1, "S", output=bytes(100_000)))


async def test_outputs_go_through_the_codecs_of_the_engine(place: Place) -> None:
    """Outputs are compressed and encrypted in the store, and a program with the keys reads them as they were."""
    rows = [
        Checkpoint(1, "PAY", output=SECRET),
        Checkpoint(2, "PAY", output=b""),
        Checkpoint(3, "PAY", output=None),
        Checkpoint(4, "PAY", output=os.urandom(10_000)),
    ]
    codecs: list[Any] = [Compression(over=1_000), Encryption(KEYS, "2026-11")]
    async with place.engine(codecs=codecs) as engine:
        for row in rows:
            await engine.checkpoints.append("run-1", row)
        assert await engine.checkpoints.load_run("run-1") == rows
        first, second, third, fourth = await store_of(engine).read_checkpoints("run-1")

    assert first[4] is not None
    assert len(first[4]) < len(SECRET) // 10
    assert SECRET[:12] not in first[4]
    assert second[4], "that nothing was said is a secret too"
    assert third[4] is None
    assert b'"via":["aes256gcm"]' in fourth[3], "what does not get smaller is not compressed"


async def test_without_the_codec_an_output_cannot_be_read(place: Place) -> None:
    """The error names the run, the number and the codec; runs without are read."""
    async with place.engine(codecs=[Encryption(KEYS, "2026-11")]) as engine:
        await engine.checkpoints.append("run-1", ROW)

    async with place.engine() as engine:
        await engine.checkpoints.append("run-2", ROW)
        with pytest.raises(UnreadableError, match=r"checkpoint 3 of run 'run-1'.*'aes256gcm' is configured here"):
            await engine.checkpoints.load_run("run-1")
        assert await engine.checkpoints.load_run("run-2") == [ROW]


async def test_an_encrypted_output_cannot_be_moved(place: Place) -> None:
    """An output is bound to its run and its number: a thief who can make checksums cannot move it either."""
    place.is_damaged = True
    async with place.engine(codecs=[Encryption(KEYS, "2026-11")]) as engine:
        store = store_of(engine)
        await engine.checkpoints.append("run-1", ROW)
        ((_, format_, _, body, output),) = await store.read_checkpoints("run-1")
        for run_id, sequence in (("run-2", 3), ("run-3", 4)):
            crc = checkpoint_checksum(run_id, sequence, format_, body, output)
            await store.append_checkpoint(run_id, (sequence, format_, crc, body, output))

            with pytest.raises(UnreadableError, match=f"checkpoint {sequence} of run '{run_id}'"):
                await engine.checkpoints.load_run(run_id)


async def test_a_damaged_compressed_output_is_reported(place: Place) -> None:
    """With a right checksum and wrong bytes, as only a program can make them."""
    place.is_damaged = True
    async with place.engine(codecs=[Compression(over=10)]) as engine:
        await engine.checkpoints.append("run-1", Checkpoint(1, "S", output=SECRET))
        ((_, format_, _, body, output),) = await store_of(engine).read_checkpoints("run-1")
        assert output is not None
        crc = checkpoint_checksum("run-2", 1, format_, body, output[:-4])
        await store_of(engine).append_checkpoint("run-2", (1, format_, crc, body, output[:-4]))

        with pytest.raises(UnreadableError, match=r"checkpoint 1 of run 'run-2'.*cut off"):
            await engine.checkpoints.load_run("run-2")
