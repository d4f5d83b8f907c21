"""Those who read along with runs, and what they must have read.

A reader whose process dies, or who gets an error, goes on elsewhere behind the position that it has read last. In the
end it has read exactly what the store has: each item once, in order, without a hole. And the store has what was
emitted: the items of a workflow once, whatever crashed, and all items of an attempt of a step that came to an outcome;
of an attempt that was interrupted those that came first; and never an earlier attempt behind a later one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from outlive._kernel.journal.stream import open_lines
from outlive._kernel.model import Payload, Run, RunStatus
from proof.simulation.book import Book
from proof.simulation.play import spoken_before_failing
from proof.simulation.process import SimulatedEngine
from proof.simulation.program import Case, generations
from proof.simulation.request import Ask, MayGoOn, NotYetError, UserRequest, Verb
from proof.simulation.server import Server, at_once
from proof.simulation.world import World


class Item(NamedTuple):
    """An item as it was read."""

    position: int
    value: Any
    call: str
    attempt: int
    epoch: int


class Readers:
    """All who read streams."""

    def __init__(self, world: World, ask: Ask, *, may_go_on: MayGoOn) -> None:
        self._world = world
        self._ask = ask
        self._may_go_on = may_go_on
        self._read: dict[tuple[str, str, int], list[Item]] = {}
        """By run, stream and reader."""

    def open(self, case: Case) -> None:
        """Read the streams of a run until it has ended."""
        for name in case.streams:
            for reader in range(case.readers):
                self._read[case.id, name, reader] = []
                request = UserRequest(f"read stream {name} of {case.id}", self._follow(case, name, reader))
                self._ask(reader * 4.0, request)

    def _follow(self, case: Case, name: str, reader: int) -> Verb:
        read = self._read[case.id, name, reader]

        async def verb(engine: SimulatedEngine) -> None:
            if read:
                self._world.sometimes["stream read on behind a position"] += 1
            after = read[-1].position if read else 0
            async for it in engine.get(case.id).stream(name, after=after, positions=True):
                read.append(Item(it.position, it.value, it.call, it.attempt, it.epoch))
            if self._may_go_on(case):
                raise NotYetError  # It goes on when a user has retried it.

        return verb

    # -- What came of it -------------------------------------------------------------------------------------

    def judge(self, case: Case, run: Run, server: Server, unpack: Callable[[Payload], Any], books: list[Book]) -> None:
        """Compare what was read with what the store has, and that with what was emitted."""
        for name in case.streams:
            items = _stored(server, run.id, name, unpack)
            if [it.position for it in items] != list(range(1, len(items) + 1)):
                self._world.complain(f"stream {name} of {run.id} has a hole: {items}")
            for reader in range(case.readers):
                read = self._read[case.id, name, reader]
                if read != items:
                    self._world.complain(f"a reader of stream {name} of {run.id} got {read}, and the store has {items}")
            for generation, program in enumerate(generations(case.program)):
                own = [book for book in books if book.generation == generation]
                for order in program:
                    if order[:2] == ["stream", name]:
                        self._judge_order(order, items, own, is_complete=run.status is RunStatus.SUCCEEDED)

    def _judge_order(self, order: list[Any], items: list[Item], books: list[Book], *, is_complete: bool) -> None:
        _, _, tag, own, count, *_ = order
        mine = [it for it in items if it.value[0] == tag]
        emitted = [it.value[1] for it in mine if not it.call]
        if emitted != list(range(own if is_complete else len(emitted))) or len(emitted) > own:
            self._world.complain(f"the workflow was to emit {own} items of {tag}, and emitted {emitted}")
        said: dict[tuple[int, int], list[int]] = {}
        for it in mine:
            if it.call:
                said.setdefault((it.epoch, it.attempt), []).append(it.value[1])
        if list(said) != sorted(said):
            self._world.complain(f"items of earlier attempts of {tag} stand behind those of later ones: {list(said)}")
        if len(said) > 1:
            self._world.sometimes["stream of several attempts"] += 1
        if is_complete and count and list(said.values())[-1:] != [list(range(count))]:
            self._world.complain(f"the last attempt of {tag} was to emit {count} items, and emitted {said}")
        calls = {it.call for it in mine if it.call}
        for (epoch, attempt), numbers in said.items():
            if numbers != list(range(len(numbers))):
                self._world.complain(f"attempt {attempt} of {tag} in epoch {epoch} emitted {numbers}")
        for book in books:
            for epoch, attempt, is_success in book.ends_of(calls):
                wanted = list(range(count if is_success else spoken_before_failing(count)))
                if said.get((epoch, attempt), []) != wanted:
                    self._world.complain(
                        f"attempt {attempt} of {tag} in epoch {epoch} ended, and of its items there are "
                        f"{said.get((epoch, attempt))}: there should be {len(wanted)}"
                    )
        if mine:
            self._world.sometimes["stream read to its end"] += 1


def _stored(server: Server, run_id: str, name: str, unpack: Callable[[Payload], Any]) -> list[Item]:
    items: list[Item] = []
    position = 0
    while chunks := at_once(server.store.read_stream(run_id, name, after=position)):
        for chunk in chunks:
            position = chunk.first - 1
            for source, payload in open_lines(chunk.body, name):
                for value in msgspec.json.decode(bytes(unpack(payload))):
                    position += 1
                    items.append(Item(position, value, source.call, source.attempt, source.epoch))
    return items
