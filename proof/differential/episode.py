"""One episode: a script played on some stores and on the oracle, and what to do when they disagree."""

from __future__ import annotations

import asyncio
import pprint
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from outlive._kernel.store.contract import Store
from outlive.testing.clock import ManualClock
from proof.differential.oracle import Oracle
from proof.differential.plan import plan_of
from proof.differential.player import Player
from proof.differential.prophet import Prophet
from proof.differential.script import Author
from proof.differential.words import Operation

OPERATIONS_PER_EPISODE = 200
OPERATIONS_PER_LOOK = 8
"""After so many operations everything is compared, not only the answers."""
TRIES_MAX = 400
"""How often a script that shows a difference is played to make it shorter."""

OpenStore = Callable[[ManualClock], AbstractAsyncContextManager[Store]]
"""Opens a store on an empty place."""


@dataclass
class Difference(Exception):
    """A store answered otherwise than the contract has it."""

    store: str
    operations: list[Operation]
    what: str
    seed: str = ""

    def __str__(self) -> str:
        script = "\n".join(f"    {operation!r}," for operation in self.operations)
        length = len(self.operations)
        return f"seed {self.seed!r}: {self.store} differs after {length} operations:\n[\n{script}\n]\n{self.what}"


class Episode:
    """Stores and an oracle that see the same operations at the same instants."""

    def __init__(self, stores: dict[str, Store], oracle: Oracle, clock: ManualClock) -> None:
        self.oracle, self._clock = oracle, clock
        self._prophet = Prophet(oracle)
        self._players = {name: Player(store, oracle) for name, store in stores.items()}
        self._played: list[Operation] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, stores: dict[str, OpenStore]) -> AsyncIterator[Episode]:
        """Begin with empty stores."""
        clock = ManualClock()
        async with AsyncExitStack() as stack:
            opened = {name: await stack.enter_async_context(open_(clock)) for name, open_ in stores.items()}
            yield cls(opened, Oracle(clock), clock)

    async def play(self, operation: Operation) -> Any:
        """Do one operation everywhere, and say what the oracle answers.

        Raises:
            Difference: a store answers otherwise than the oracle.
        """
        self._played.append(operation)
        if operation.verb == "advance":
            self._clock.advance(seconds=operation.numbers[0])
            return None
        # Never two things at one instant: the contract does not say who comes first then.
        self._clock.advance(seconds=0.000_001)
        plan = plan_of(operation, self.oracle)
        answers = await self._ask_all(lambda player: player.play(plan))
        truth = self._prophet.play(plan)
        for name, answer in answers.items():
            self._compare(name, operation.verb, answer, truth)
        if len(self._played) % OPERATIONS_PER_LOOK == 0:
            await self.look()
        return truth

    async def look(self) -> None:
        """Compare everything that changes."""
        self._compare_all(self._prophet.look(), await self._ask_all(Player.look))

    async def end(self) -> None:
        """Compare all for the last time."""
        await self.look()
        self._compare_all(self._prophet.look_closely(), await self._ask_all(Player.look_closely))

    def _compare_all(self, truth: dict[str, Any], answers: dict[str, Any]) -> None:
        for name, seen in answers.items():
            for part, expected in truth.items():
                self._compare(name, part, seen[part], expected)

    async def _ask_all(self, ask: Callable[[Player], Awaitable[Any]]) -> dict[str, Any]:
        """The answers of all players, who play at the same time."""
        answers = await asyncio.gather(*map(ask, self._players.values()), return_exceptions=True)
        for name, answer in zip(self._players, answers, strict=True):
            if isinstance(answer, BaseException):
                raise Difference(name, list(self._played), f"it failed: {answer!r}") from answer
        return dict(zip(self._players, answers, strict=True))

    def _compare(self, name: str, what: str, answer: object, truth: object) -> None:
        if answer != truth:
            words = f"{what}: the store says\n{pprint.pformat(answer)}\nand the contract\n{pprint.pformat(truth)}"
            raise Difference(name, list(self._played), words)


async def find_difference(stores: dict[str, OpenStore], seed: str, operations: int) -> Difference | None:
    """Play a random script; what is found comes with the shortest script that still shows it."""
    try:
        async with Episode.open(stores) as episode:
            author = Author(seed, episode.oracle)
            for _ in range(operations):
                await episode.play(author.next())
            await episode.end()
    except Difference as difference:
        shortest = await shorten(stores, difference)
        shortest.seed = seed
        return shortest
    return None


async def shorten(stores: dict[str, OpenStore], difference: Difference) -> Difference:
    """Take out parts of the script, ever smaller ones, as long as something still differs."""
    best, size = difference, max(1, len(difference.operations) // 2)
    tries = count()
    while next(tries) < TRIES_MAX:
        start, is_better = 0, False
        while start < len(best.operations) and next(tries) < TRIES_MAX:
            shorter = [*best.operations[:start], *best.operations[start + size :]]
            found = await replay(stores, shorter)
            if found is None:
                start += size
            else:
                best, is_better = found, True
        if size == 1 and not is_better:
            break
        size = max(1, size // 2)
    return best


async def replay(stores: dict[str, OpenStore], operations: Sequence[Operation]) -> Difference | None:
    """Play a script that was printed."""
    try:
        async with Episode.open(stores) as episode:
            for operation in operations:
                await episode.play(operation)
            await episode.end()
    except Difference as difference:
        return difference
    return None
