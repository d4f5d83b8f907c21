"""Planted defects in watches: each is found by the test that is meant to find it."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import pytest
from msgspec.structs import replace

from outlive._kernel.model import Run
from outlive._kernel.store.contract import Change, Outcome, Watch
from outlive._kernel.store.memory import MemoryStore
from outlive_conformance.suite import MemoryFactory, find_failures


class Defective(MemoryStore):
    """The oracle with one defect; says which test must find it."""

    found_by: ClassVar[str]


class KeepsSilent(Defective):
    """Sends no end."""

    found_by = "test_end_of_a_watched_run_is_a_message_to_the_watcher"

    def _send_ends(self, change: Change) -> None:
        """Send nothing."""


class HearsOnce(Defective):
    """Sends the end of a run to one of its watchers only."""

    found_by = "test_every_end_is_heard"

    def _send_ends(self, change: Change) -> None:
        for watchers in self._state.watches.values():
            for watcher in list(watchers)[1:]:
                del watchers[watcher]
        super()._send_ends(change)


class TakesContinuedForOver(Defective):
    """Drops the watches of a run that goes on as another one."""

    found_by = "test_watch_goes_on_with_the_id_of_a_run"

    def _send_ends(self, change: Change) -> None:
        super()._send_ends(change)
        for run in change.runs:
            if run.status.is_terminal:
                self._state.watches.pop(run.id, None)


class WatchesTheDead(Defective):
    """Keeps a watch without looking at the run."""

    found_by = "test_watch_of_an_ended_or_unknown_run_is_not_kept"

    async def watch_ends(self, watches: Sequence[Watch]) -> dict[str, Run]:
        for watch in watches:
            self._state.watches.setdefault(watch.run_id, {})[watch.watcher] = watch
        return await self.find_runs([watch.run_id for watch in watches])


class KeepsTheFirstWatch(Defective):
    """Does not take a later watch of the same watcher."""

    found_by = "test_second_watch_takes_the_place_of_the_first"

    async def watch_ends(self, watches: Sequence[Watch]) -> dict[str, Run]:
        known = {run_id: dict(watchers) for run_id, watchers in self._state.watches.items()}
        runs = await super().watch_ends(watches)
        for run_id, watchers in known.items():
            self._state.watches[run_id] |= watchers
        return runs


class SendsWithoutKeys(Defective):
    """The message about an end has no key."""

    found_by = "test_watched_run_may_end_in_the_change_that_messages_its_watcher"

    async def watch_ends(self, watches: Sequence[Watch]) -> dict[str, Run]:
        return await super().watch_ends([replace(watch, key="") for watch in watches])


class SendsBeforeItKnows(Defective):
    """Sends the end that a change says, also if the change conflicts."""

    found_by = "test_end_that_conflicts_is_not_heard"

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        for change in changes:
            self._send_ends(change)
        return await super().commit(changes)


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_is_found(defect: type[Defective]) -> None:
    """By the test that is meant to."""
    assert find_failures(partial(MemoryFactory, defect), only=defect.found_by)
