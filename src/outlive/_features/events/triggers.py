"""Which workflows have triggers, for programs that do not have the code of these workflows.

One cell of the store holds the triggers of all workflows, each with what is needed to start a run of it. A worker
writes those of its code when it starts; what is equal already is not written. Of two codes the one with the higher
version of the workflow wins, and of one version the process that began later. A workflow whose newer code has no
triggers keeps an entry without any, so that a program with the older code does not start it.
"""

from __future__ import annotations

import msgspec

from outlive._kernel.client.definitions import described_of
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.described import Described
from outlive._kernel.model.trigger import TriggerSet
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.store.contract import Store
from outlive.telemetry import log

TRIGGERS_CELL = "@triggers"
NONE = TriggerSet()


class Triggers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The triggers of one workflow, and how its runs are started."""

    version: int
    described: Described
    all: TriggerSet = TriggerSet()
    rank: int = 0
    """Its version, if a higher one is newer; 0 for a flow, whose versions have no order."""
    at: int = 0
    """When the process began that has declared them."""

    @property
    def document(self) -> bytes:
        """The document of a flow; empty for a workflow in Python."""
        return self.all.document

    @property
    def input_name(self) -> str | None:
        """The argument that a run is given; None if the workflow takes none."""
        return next(iter(self.described.arguments.get("properties", {})), None)


Known = dict[str, Triggers]
"""The triggers of workflows by their names."""

_decode = msgspec.json.Decoder(Known).decode
_encode = msgspec.json.Encoder().encode


def triggers_in(held: bytes | None) -> Known:
    """The triggers in the cell; a cell that cannot be read has none, and workers write it again."""
    try:
        return {} if held is None else _decode(held)
    except msgspec.MsgspecError as error:
        # Written by a later release, or damaged: workers write it again.
        log.error("the triggers of workflows cannot be read (%s); restart a worker that has their code", error)
        return {}


def declared_in(registry: Registry, *, at: int = 0) -> Known:
    """The triggers that the code of this process declares: of one name, those of the newest version."""
    return {spec.name: _triggers_of(registry, spec, found, at) for spec, found in registry.triggers()}


def _triggers_of(registry: Registry, spec: WorkflowSpec, found: TriggerSet, at: int) -> Triggers:
    rank = spec.version if registry.has_order(spec.name) else 0
    return Triggers(version=spec.version, described=described_of(spec), all=found, rank=rank, at=at)


async def declare(registry: Registry, store: Store, *, began_at: int) -> None:
    """Let the store know the triggers that the code declares."""
    own = declared_in(registry, at=began_at)

    def merged(held: bytes | None) -> Known | None:
        """The new content of the cell by this code; None if the cell stays as it is."""
        known = triggers_in(held)
        without = {
            spec.name: _triggers_of(registry, spec, NONE, began_at) for spec in registry.newest() if spec.name in known
        }
        new = {name: mine for name, mine in (without | own).items() if _is_newer(mine, known.get(name))}
        return known | new if new else None

    def change(held: bytes | None, _: int) -> tuple[bytes, None]:
        new = merged(held)
        return (held or b"{}" if new is None else _encode(new)), None

    if merged(await store.read_cell(TRIGGERS_CELL)) is not None:
        await store.change_cell(TRIGGERS_CELL, change)


def _is_newer(mine: Triggers, known: Triggers | None) -> bool:
    if known is None:
        return bool(mine.all)
    if (known.rank, known.at) > (mine.rank, mine.at):
        return False
    return msgspec.structs.replace(mine, at=known.at) != known


async def forget(store: Store, workflow: str) -> None:
    """Forget the triggers of a workflow that no code has any more."""

    def change(held: bytes | None, _: int) -> tuple[bytes | None, None]:
        known = triggers_in(held)
        if workflow not in known:
            return held, None
        return _encode({name: each for name, each in known.items() if name != workflow}), None

    await store.change_cell(TRIGGERS_CELL, change)
