"""The next change of a tree while it is being written."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Run
from outlive._kernel.replay.command import AwaitEnd, CancelStep, RunStep
from outlive._kernel.runtime.tree.observer_calls import HookCall
from outlive._kernel.store.contract import Change, Forgotten

Effect = RunStep | CancelStep | Callable[[], None]
"""Something that may happen only when the change that asks for it is durable."""


class Draft(msgspec.Struct, eq=False):
    """A change, and the effects that wait for it to be durable."""

    change: Change
    digest: int = 0
    """The digest of the journal before it. See `LiveTree.digest`."""
    runs: dict[int, Run] = {}
    """The latest row of each run that changed."""
    forgotten: list[Run] = []
    """Rows of children that ended in this change and are not written: a client may wait for their end."""
    effects: list[Effect] = []
    lookups: list[AwaitEnd] = []
    """The ends of other trees that the store must know that this one waits for."""
    notable: list[tuple[AnyEvent, Run]] = []
    """Events that get a line in the log when the change is durable."""
    hook_calls: list[HookCall] = []
    """Hooks of observers to call when the change is durable."""

    def forget(self, before: int, below: int) -> None:
        """Forget everything before the snapshot with this seq, and children below this number, also those in here."""
        self.change.forgets = Forgotten(before, below)
        self.change.items = [item for item in self.change.items if not 0 < item.run < below]
        self.forgotten += [run for number, run in self.runs.items() if 0 < number < below]
        self.runs = {number: run for number, run in self.runs.items() if not 0 < number < below}
