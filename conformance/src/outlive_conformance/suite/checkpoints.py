"""Checkpoints: a number is taken once, rows come back whole and in order, and clearing one run leaves the others.

The rules of Cano's checkpoint stores are tried through what users have (`outlive.checkpoints.CheckpointStore`), on the
store under test; what only a store must keep, such as bytes as they are, on its own verbs.
"""

from __future__ import annotations

import asyncio

import pytest

from outlive._features.checkpoints.store import CheckpointStore
from outlive._kernel.journal.checkpoint import (
    FORMAT,
    CheckpointBody,
    CheckpointRow,
    checkpoint_checksum,
    seal_checkpoint,
)
from outlive._kernel.journal.packing import Packer
from outlive._kernel.model import Limits, RunFilter
from outlive._kernel.model.checkpoint import NUMBER_MAX, Checkpoint, CheckpointKind
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive.errors.store import CorruptCheckpointError, DuplicateCheckpointError, FormatTooNewError
from outlive_conformance.suite.builders import LARGE_BYTES, begin, claim, hire, see_everything
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.factory import StoreFactory

TASKS = 8
ROUNDS = 6
WHOLE = Checkpoint(
    sequence=7,
    state='PAY "now", ☃ and \x00',
    task="žluťoučký kůň\n",
    kind=CheckpointKind.UNDO,
    output=bytes(range(256)),
    version=3,
)
_nonce = SystemClock().nonce


class CheckpointsConformance(Facet):
    """`append_checkpoint`, `read_checkpoints` and `clear_checkpoints`."""

    # -- The rules -----------------------------------------------------------------------------------------

    async def test_checkpoints_are_appended_loaded_and_cleared(self, store: Store, other: Store) -> None:
        """A checkpoint is loaded as it was appended, by everybody, until it is cleared. [CA-K1 SF-C1 SF-C5 FB-S2]"""
        mine, theirs = front(store), front(other)
        first = Checkpoint(0, "RESERVE")
        await mine.append("run-1", first)
        await mine.append("run-1", WHOLE)

        assert await mine.load_run("run-1") == [first, WHOLE]
        assert await theirs.load_run("run-1") == [first, WHOLE]
        await theirs.clear("run-1")
        assert await mine.load_run("run-1") == []

    async def test_unknown_run_has_no_checkpoints(self, store: Store) -> None:
        """Loading it gives nothing, clearing it does nothing, and neither is an error. [CA-K2 SF-C2 SF-C6]"""
        checkpoints = front(store)
        await checkpoints.append("run-1", WHOLE)

        await checkpoints.clear("run-2")

        assert await checkpoints.load_run("run-2") == []
        assert await checkpoints.load_run("run-1") == [WHOLE]

    async def test_sequence_of_a_checkpoint_is_taken_once(self, store: Store, other: Store) -> None:
        """The second writer is refused, also with the same content, and the first row stays. [CA-K3]"""
        first = Checkpoint(1, "RESERVE", output=b"first")
        await front(store).append("run-1", first)

        for late, row in [
            (front(other), Checkpoint(1, "PAY")),
            (front(other), first),
            (front(store), first),
        ]:
            with pytest.raises(DuplicateCheckpointError, match=r"run-1.* checkpoint 1 ") as caught:
                await late.append("run-1", row)
            assert (caught.value.run_id, caught.value.sequence) == ("run-1", 1)

        assert await front(store).load_run("run-1") == [first]
        await front(store).append("run-2", first)

    async def test_checkpoints_out_of_order_are_sorted(self, store: Store) -> None:
        """By number and not as text, with any gaps and up to the largest. [CA-K4]"""
        checkpoints = front(store)
        for sequence in (10, 2, NUMBER_MAX, 0, 33, 2**32, 9):
            await checkpoints.append("run-1", Checkpoint(sequence, f"S{sequence}"))

        found = await checkpoints.load_run("run-1")

        assert [row.sequence for row in found] == [0, 2, 9, 10, 33, 2**32, NUMBER_MAX]
        assert [row.state for row in found] == [f"S{row.sequence}" for row in found]

    async def test_clearing_a_run_leaves_the_checkpoints_of_others(self, store: Store) -> None:
        """However alike their ids are; and a cleared run may begin again. [CA-K5 SF-C4]"""
        checkpoints = front(store)
        others = ["run-10", "run-1.a", "run-1:a", "Run-1", "run-", "run_1"]
        for run_id in ["run-1", *others]:
            await checkpoints.append(run_id, WHOLE)

        await checkpoints.clear("run-1")

        assert [await checkpoints.load_run(run_id) for run_id in others] == [[WHOLE]] * len(others)
        assert await checkpoints.load_run("run-1") == []
        await checkpoints.append("run-1", Checkpoint(7, "AGAIN"))
        assert await checkpoints.load_run("run-1") == [Checkpoint(7, "AGAIN")]

    async def test_many_tasks_append_checkpoints_through_one_store(self, store: Store) -> None:
        """All of them land, whichever runs they are for. [CA-K6]"""
        checkpoints = front(store)
        names = [(f"run-{task % 3}", task) for task in range(60)]

        await asyncio.gather(*(checkpoints.append(run_id, Checkpoint(task, "S")) for run_id, task in names))

        for number in range(3):
            found = await checkpoints.load_run(f"run-{number}")
            assert [row.sequence for row in found] == list(range(number, 60, 3))

    async def test_checkpoints_survive_reopening(self, factory: StoreFactory) -> None:
        """They are there when the store is opened again, and so is what was cleared not. [CA-K7]"""
        store = await factory.open()
        await front(store).append("run-1", WHOLE)
        await front(store).append("run-1", Checkpoint(8, "SHIP"))
        await front(store).append("cleared", WHOLE)
        await front(store).clear("cleared")
        await store.close()

        reopened = await factory.open()

        assert await front(reopened).load_run("run-1") == [WHOLE, Checkpoint(8, "SHIP")]
        assert await front(reopened).load_run("cleared") == []
        with pytest.raises(DuplicateCheckpointError):
            await front(reopened).append("run-1", WHOLE)
        await reopened.close()

    async def test_checkpoints_of_different_runs_side_by_side(self, store: Store, other: Store) -> None:
        """Each run has its own, in its own order, while others write and clear. [CA-K8]"""

        async def live(number: int) -> list[int]:
            checkpoints = front(store if number % 2 else other)
            for sequence in range(ROUNDS):
                await checkpoints.append(f"run-{number}", Checkpoint(sequence, f"S{number}"))
                await checkpoints.append(f"gone-{number}", Checkpoint(sequence, "S"))
                found = await checkpoints.load_run(f"run-{number}")
                assert [row.sequence for row in found] == list(range(sequence + 1))
                assert {row.state for row in found} == {f"S{number}"}
            await checkpoints.clear(f"gone-{number}")
            return [row.sequence for row in await checkpoints.load_run(f"run-{number}")]

        assert await asyncio.gather(*map(live, range(TASKS))) == [list(range(ROUNDS))] * TASKS

    async def test_checkpoints_of_one_run_side_by_side(self, store: Store, other: Store) -> None:
        """Different numbers all land; of writers that want the same number one wins. [CA-K9]"""

        async def append(number: int) -> int:
            checkpoints = front(store if number % 2 else other)
            await checkpoints.append("run-1", Checkpoint(number, f"S{number}"))
            try:
                await checkpoints.append("run-1", Checkpoint(1_000, f"S{number}"))
            except DuplicateCheckpointError:
                return 0
            return number

        winners = [number for number in await asyncio.gather(*map(append, range(1, 30))) if number]

        found = await front(store).load_run("run-1")
        assert [row.sequence for row in found] == [*range(1, 30), 1_000]
        assert len(winners) == 1
        assert found[-1].state == f"S{winners[0]}"

    # -- What is in them -----------------------------------------------------------------------------------

    async def test_large_output_of_a_checkpoint_is_not_truncated(self, store: Store) -> None:
        """More than 2 MB come back whole, and clearing removes them. [CA-K10]"""
        large = Checkpoint(1, "IMPORT", output=b"0123456789abcde\x00" * (LARGE_BYTES // 16) + b"end")
        await front(store).append("run-1", large)
        await front(store).append("run-1", Checkpoint(2, "IMPORT", output=b"small"))

        found = await front(store).load_run("run-1")

        assert found == [large, Checkpoint(2, "IMPORT", output=b"small")]
        await front(store).clear("run-1")
        assert await front(store).load_run("run-1") == []

    @pytest.mark.parametrize("damage", ["body", "output", "no output", "checksum", "sequence", "run", "json"])
    async def test_damaged_checkpoint_names_its_run_and_sequence(self, store: Store, damage: str) -> None:
        """An error of its own kind, whatever is damaged; other runs are read as before. [CA-K11]"""
        run_id = "elsewhere" if damage == "run" else "run-1"
        sequence, format_, crc, body, output = seal_checkpoint(run_id, 4, CheckpointBody(state="PAY"), b"")
        match damage:
            case "body":
                body = body.replace(b"PAY", b"PAZ")
            case "output":
                output = b"\x00"
            case "no output":
                output = None
            case "checksum":
                crc ^= 1
            case "sequence":
                sequence = 5
            case "json":
                body = b'{"state":'
                crc = checkpoint_checksum("run-1", sequence, format_, body, output)
            case _:
                assert run_id != "run-1"
        await store.append_checkpoint("run-1", seal_checkpoint("run-1", 1, CheckpointBody(state="RESERVE"), None))
        await store.append_checkpoint("run-1", (sequence, format_, crc, body, output))
        await front(store).append("run-2", WHOLE)

        with pytest.raises(CorruptCheckpointError, match=rf"checkpoint {sequence} of run 'run-1'") as caught:
            await front(store).load_run("run-1")

        assert (caught.value.run_id, caught.value.sequence) == ("run-1", sequence)
        assert await front(store).load_run("run-2") == [WHOLE]

    @pytest.mark.parametrize("kind", CheckpointKind)
    async def test_every_kind_of_checkpoint_survives(self, store: Store, kind: CheckpointKind) -> None:
        """With an output and without. [CA-K12]"""
        rows = [Checkpoint(1, "A", kind=kind), Checkpoint(2, "B", "task", kind, b"\xff\x00", 2)]
        for row in rows:
            await front(store).append("run-1", row)

        assert await front(store).load_run("run-1") == rows

    async def test_version_of_a_checkpoint_survives(self, store: Store) -> None:
        """Each row has its own, from none to the largest. [CA-K13]"""
        versions = [0, 1, 2**32 - 1, NUMBER_MAX, 1]
        for sequence, version in enumerate(versions):
            await front(store).append("run-1", Checkpoint(sequence, "S", version=version))

        assert [row.version for row in await front(store).load_run("run-1")] == versions

    async def test_checkpoint_from_before_versions_has_version_zero(self, store: Store) -> None:
        """A body without that field, or with nothing but a state, is not damage. [CA-K14]"""
        await store.append_checkpoint("run-1", sealed(1, b'{"state":"PAY","task":"pay","kind":"undo"}', b"42"))
        await store.append_checkpoint("run-1", sealed(2, b'{"state":"SHIP"}'))

        assert await front(store).load_run("run-1") == [
            Checkpoint(1, "PAY", "pay", CheckpointKind.UNDO, b"42", version=0),
            Checkpoint(2, "SHIP", version=0),
        ]

    async def test_empty_output_of_a_checkpoint_is_not_none(self, store: Store) -> None:
        """`b""` comes back as `b""`, and None as None. [CA-K15]"""
        await front(store).append("run-1", Checkpoint(1, "A", output=b""))
        await front(store).append("run-1", Checkpoint(2, "A", output=None))
        await front(store).append("run-1", Checkpoint(3, "A", output=b"\x00"))

        assert [row.output for row in await front(store).load_run("run-1")] == [b"", None, b"\x00"]

    async def test_unknown_kind_of_a_checkpoint_counts_as_a_state(self, store: Store) -> None:
        """The rest of the row is read, what it really was is not hidden, and a copy of it is as good. [CA-K16]"""
        body = b'{"state":"PAY","task":"pay","kind":"teleported","version":9,"beam":[1]}'
        await store.append_checkpoint("run-1", sealed(1, body, b"42"))

        (row,) = await front(store).load_run("run-1")
        await front(store).append("copy", row)

        assert row == Checkpoint(1, "PAY", "pay", CheckpointKind.STATE, b"42", 9, unknown_kind="teleported")
        assert await front(store).load_run("copy") == [row]

    async def test_checkpoint_of_a_later_format_is_refused(self, store: Store) -> None:
        """An unreadable checkpoint is not guessed at; a field that has another type now makes it unreadable too."""
        await store.append_checkpoint("run-1", sealed(3, b"?", format_=FORMAT + 1))
        await store.append_checkpoint("run-2", sealed(3, b'{"state":["PAY"]}', run_id="run-2"))

        for run_id in ("run-1", "run-2"):
            with pytest.raises(FormatTooNewError, match=f"{run_id} was written by a later"):
                await front(store).load_run(run_id)

    # -- What a store keeps --------------------------------------------------------------------------------

    async def test_rows_of_checkpoints_come_back_byte_for_byte(self, store: Store) -> None:
        """A store does not look into them."""
        bodies = [bytes(range(256)), b"\x00", b"", b'{"spaces":   "kept"}', "ключ".encode("utf-16")]
        rows = [(sequence, 7, 2**32 - 1 - sequence, body, body[::-1]) for sequence, body in enumerate(bodies)]
        for row in rows:
            assert await store.append_checkpoint("run-1", row)

        assert await store.read_checkpoints("run-1") == rows

    async def test_very_same_checkpoint_is_there_once(self, store: Store, other: Store) -> None:
        """A row whose answer was lost may be appended again, and one that differs in a byte may not. [OL-K1]"""
        row = sealed(1, b'{"state":"PAY","token":1}', b"")
        assert await store.append_checkpoint("run-1", row)
        sequence, format_, crc, body, output = row

        assert await other.append_checkpoint("run-1", row)
        assert await store.append_checkpoint("run-1", row)
        for another in [
            (sequence, format_ + 1, crc, body, output),
            (sequence, format_, crc + 1, body, output),
            (sequence, format_, crc, body + b" ", output),
            (sequence, format_, crc, body, None),
            (sequence, format_, crc, body, b"\x00"),
        ]:
            assert not await other.append_checkpoint("run-1", another)

        assert await store.read_checkpoints("run-1") == [row]

    async def test_checkpoints_are_no_runs(self, store: Store) -> None:
        """Nothing is made due by them, and a run with the same id neither changes nor loses them. [OL-K2]"""
        await front(store).append("loose", WHOLE)
        tree = await begin(store, "run-1")
        before = await see_everything(store, tree)
        await front(store).append("run-1", WHOLE)

        assert await see_everything(store, tree) == before
        assert [run.id for run in await store.list_runs(RunFilter())] == ["run-1"]
        await tree.succeed()
        await hire(store, "worker-a")
        assert await claim(store, "worker-a") == []
        await front(store).clear("run-1")
        assert await store.find_run("run-1") is not None
        assert await front(store).load_run("loose") == [WHOLE]

    async def test_checker_is_given_every_run_with_checkpoints(self, store: Store) -> None:
        """In the order of their bytes, a page at a time, each once."""
        run_ids = [f"run-{number}" for number in range(12)] + ["Run-1", "a", "run-1:a"]
        for run_id in run_ids:
            await front(store).append(run_id, Checkpoint(1, "A"))
            await front(store).append(run_id, Checkpoint(2, "B"))
        await front(store).clear("run-5")
        found: list[bytes] = []

        while page := await store.examiner.list_checkpoints(after=found[-1] if found else b"", limit=4):
            assert len(page) <= 4
            found += page

        assert found == sorted(run_id.encode() for run_id in run_ids if run_id != "run-5")


def front(store: Store) -> CheckpointStore:
    """The checkpoints as users have them."""
    return CheckpointStore(lambda: store, packer=Packer(Limits()), nonce=_nonce)


def sealed(
    sequence: int, body: bytes, output: bytes | None = None, *, format_: int = FORMAT, run_id: str = "run-1"
) -> CheckpointRow:
    """A row whose checksum is right, whatever its body says."""
    return sequence, format_, checkpoint_checksum(run_id, sequence, format_, body, output), body, output
