"""Planted defects in checkpoints: each is found by the test that is meant to find it."""

import asyncio
from functools import partial
from typing import ClassVar

import pytest

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.store.memory import MemoryStore
from outlive_conformance.suite import MemoryFactory, find_failures

CUT = 2 * 1024 * 1024


class Defective(MemoryStore):
    """The oracle with one defect; says which test must find it."""

    found_by: ClassVar[str]


class ForgetsToWrite(Defective):
    """Says yes and does nothing."""

    found_by = "test_checkpoints_are_appended_loaded_and_cleared"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        return True


class ForgetsToClear(Defective):
    """Leaves everything where it is."""

    found_by = "test_checkpoints_are_appended_loaded_and_cleared"

    async def clear_checkpoints(self, run_id: str) -> None:
        """Do nothing."""


class InventsRows(Defective):
    """An unknown run has a first row."""

    found_by = "test_unknown_run_has_no_checkpoints"

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        return await super().read_checkpoints(run_id) or [(0, 1, 0, b"{}", None)]


class RefusesToClearNothing(Defective):
    """An unknown run is an error."""

    found_by = "test_unknown_run_has_no_checkpoints"

    async def clear_checkpoints(self, run_id: str) -> None:
        del self._state.checkpoints[run_id]


class Overwrites(Defective):
    """The last row with a number wins."""

    found_by = "test_sequence_of_a_checkpoint_is_taken_once"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        self._state.checkpoints.setdefault(run_id, {})[row[0]] = row
        return True


class SwallowsDuplicates(Defective):
    """Keeps the first row, and lets the second writer believe that it is theirs."""

    found_by = "test_sequence_of_a_checkpoint_is_taken_once"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        await super().append_checkpoint(run_id, row)
        return True


class NumbersAreForEverybody(Defective):
    """A number that one run has is taken for all."""

    found_by = "test_sequence_of_a_checkpoint_is_taken_once"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        taken = any(row[0] in rows for other, rows in self._state.checkpoints.items() if other != run_id)
        return not taken and await super().append_checkpoint(run_id, row)


class ReadsAsWritten(Defective):
    """Does not sort."""

    found_by = "test_checkpoints_out_of_order_are_sorted"

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        return list(self._state.checkpoints.get(run_id, {}).values())


class SortsAsText(Defective):
    """10 comes before 9."""

    found_by = "test_checkpoints_out_of_order_are_sorted"

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        return sorted(await super().read_checkpoints(run_id), key=lambda row: str(row[0]))


class ClearsByPrefix(Defective):
    """`run-1` is `run-10` too."""

    found_by = "test_clearing_a_run_leaves_the_checkpoints_of_others"

    async def clear_checkpoints(self, run_id: str) -> None:
        for other in [other for other in self._state.checkpoints if other.startswith(run_id)]:
            await super().clear_checkpoints(other)


class IgnoresCase(Defective):
    """Compares ids as some databases do."""

    found_by = "test_clearing_a_run_leaves_the_checkpoints_of_others"

    async def clear_checkpoints(self, run_id: str) -> None:
        for other in [other for other in self._state.checkpoints if other.lower() == run_id.lower()]:
            await super().clear_checkpoints(other)


class RemembersNumbers(Defective):
    """A number that was cleared is taken for ever."""

    found_by = "test_clearing_a_run_leaves_the_checkpoints_of_others"

    async def clear_checkpoints(self, run_id: str) -> None:
        rows = self._state.checkpoints.get(run_id, {})
        self._state.checkpoints[run_id] = dict.fromkeys(rows, (-1, 0, 0, b"", None))

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        return [row for row in await super().read_checkpoints(run_id) if row[0] >= 0]


class LooksBeforeItWrites(Defective):
    """Lets others in between."""

    found_by = "test_checkpoints_of_one_run_side_by_side"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        found = self._state.checkpoints.get(run_id, {}).get(row[0], row)
        await asyncio.sleep(0)
        self._state.checkpoints.setdefault(run_id, {})[row[0]] = found
        return found == row


class TruncatesOutputs(Defective):
    """Has a limit that it does not tell."""

    found_by = "test_large_output_of_a_checkpoint_is_not_truncated"

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        return [(*row[:4], row[4] and row[4][:CUT]) for row in await super().read_checkpoints(run_id)]


class TakesEmptyForNone(Defective):
    """As some databases do."""

    found_by = "test_empty_output_of_a_checkpoint_is_not_none"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        return await super().append_checkpoint(run_id, (*row[:4], row[4] or None))


class TidiesBodies(Defective):
    """Takes a body for text."""

    found_by = "test_rows_of_checkpoints_come_back_byte_for_byte"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        sequence, format_, crc, body, output = row
        return await super().append_checkpoint(
            run_id, (sequence, format_, crc, body.decode(errors="replace").encode(), output)
        )


class LosesTheRestOfABody(Defective):
    """Keeps what it knows of a body, and a later release knows more."""

    found_by = "test_unknown_kind_of_a_checkpoint_counts_as_a_state"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        sequence, format_, crc, body, output = row
        return await super().append_checkpoint(
            run_id, (sequence, format_, crc, body.replace(b"teleported", b"state"), output)
        )


class HidesDamage(Defective):
    """Leaves out what does not look well."""

    found_by = "test_damaged_checkpoint_names_its_run_and_sequence"

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        return [row for row in await super().read_checkpoints(run_id) if row[3].endswith(b"}") and row[0] != 5]


class RefusesItsOwn(Defective):
    """The very same row is a duplicate like any other."""

    found_by = "test_very_same_checkpoint_is_there_once"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        is_new = row[0] not in self._state.checkpoints.get(run_id, {})
        return await super().append_checkpoint(run_id, row) and is_new


class KnowsItsOwnByTheBody(Defective):
    """Does not look at the output."""

    found_by = "test_very_same_checkpoint_is_there_once"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        return self._state.checkpoints.setdefault(run_id, {}).setdefault(row[0], row)[:4] == row[:4]


class WritesIntoTheJournal(Defective):
    """Takes a checkpoint for an event of the run with the same id."""

    found_by = "test_checkpoints_are_no_runs"

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        if (run := self._state.runs.get(run_id)) is not None:
            self._state.trees[run.journal].rows.append((99, 1, 0, b"{}"))
        return await super().append_checkpoint(run_id, row)


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_is_found(defect: type[Defective]) -> None:
    """By the test that is meant to."""
    assert find_failures(partial(MemoryFactory, defect), only=defect.found_by)
