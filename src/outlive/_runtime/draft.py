"""The next change of a tree while it is being written."""

from __future__ import annotations

from collections.abc import Callable

from outlive._model import Run
from outlive._replay.command import CancelStep, RunStep
from outlive._runtime.herald import Told
from outlive._store.contract import Change

Effect = RunStep | CancelStep | Callable[[], None]
"""Something that may happen only when the change that asks for it is durable."""


class Draft:
    """A change, and the effects that wait for it to be durable."""

    __slots__ = ("change", "effects", "runs", "told")

    def __init__(self, journal: int, after: int) -> None:
        self.change = Change(journal=journal, after=after, rows=[])
        self.runs: dict[int, Run] = {}
        """The latest row of each run that changed."""
        self.effects: list[Effect] = []
        self.told: list[Told] = []
        """What observers hear of it; empty if nobody listens."""

    def close(self) -> Change:
        """The change, complete."""
        if self.runs:
            self.change.runs = list(self.runs.values())
        return self.change
