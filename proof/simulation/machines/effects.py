"""What machines did to the world and took back, as the world sees it: by name, and once for each idempotency key.

The handlers of `play` write down here what they do, at the instant at which they do it, in the middle of their time. So
a process can die, or lose its run, before and after. An attempt that does the same again has the same idempotency key,
and changes nothing: the guides ask users to build their effects so. An attempt with another key does it twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from outlive._kernel.runtime.tree.attempt import Attempt
from proof.simulation.world import World

Call = tuple[int, str]
"""The number of a run in its tree, and its call."""


@dataclass(slots=True)
class Tried:
    """One attempt that was begun."""

    name: str
    epoch: int
    is_undo: bool


@dataclass(slots=True)
class Deeds:
    """What the handlers of one tree did."""

    keys: dict[tuple[str, bool], str] = field(default_factory=dict)
    """The idempotency key under which something was begun; undoing it is something else."""
    begun: list[Tried] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    """What can be undone and was done, in this order, and in which epoch."""
    undone: dict[str, int] = field(default_factory=dict)
    calls: dict[Call, Tried] = field(default_factory=dict)
    """The first attempt of each call."""

    @property
    def kept(self) -> set[str]:
        """What is left of it."""
        return set(self.done) - set(self.undone)


class Effects:
    """The deeds of all machines."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.trees: dict[int, Deeds] = {}

    def begin(self, attempt: Attempt, name: str, *, is_undo: bool) -> None:
        """An attempt is about to do something, or to undo it."""
        deeds = self.trees.setdefault(attempt.nonce, Deeds())
        key = deeds.keys.setdefault((name, is_undo), attempt.idempotency_key)
        if key != attempt.idempotency_key:
            what = f"the undo of {name}" if is_undo else name
            self._world.complain(f"{what} has the key {key}, and is begun with {attempt.idempotency_key}")
        tried = Tried(name, attempt.epoch, is_undo)
        deeds.begun.append(tried)
        deeds.calls.setdefault((attempt.command.run, attempt.command.call), tried)
        if is_undo and name not in deeds.done:
            self._world.complain(f"{name} is undone, and was never done")

    def do(self, attempt: Attempt, name: str) -> None:
        """It is done, and can be undone."""
        deeds = self.trees[attempt.nonce]
        # A late attempt does it under the same key: that is nothing, whatever became of it meanwhile.
        deeds.done.setdefault(name, attempt.epoch)

    def undo(self, attempt: Attempt, name: str) -> None:
        """It is taken back."""
        self.trees[attempt.nonce].undone.setdefault(name, attempt.epoch)
