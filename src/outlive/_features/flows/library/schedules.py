"""The schedules of the flows in the library of a store, as their published documents declare them.

A worker that has loaded the library writes them. The number of the revision says which document is newer, so a worker
that knows only an older one changes nothing. The schedules of a disabled flow rest, and schedules that its document
does not have any more are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from outlive._features.flows.library.records import FlowEntry
from outlive._features.schedules.declaring import Wanted, declare_all
from outlive._features.schedules.in_code import target_of
from outlive._features.schedules.schedule import Declared, print_of
from outlive._kernel.store.contract import Store
from outlive.errors import InvalidArgumentError
from outlive.telemetry import log

if TYPE_CHECKING:
    from outlive._features.flows.flow import FlowWorkflow


async def declare_flows(
    store: Store, flows: Mapping[str, tuple[FlowEntry, FlowWorkflow | None]], *, nonce: Callable[[], int]
) -> None:
    """Let the store know the schedules of these flows; None for one that has no document that can be read."""
    wanted: dict[str, Wanted] = {}
    by: dict[str, Declared] = {}
    for name, (entry, flow) in flows.items():
        if entry.current is None:
            by[name] = Declared("", entry.last + 1, 0)
        elif flow is not None:
            by[name] = Declared("", entry.current.number, 0)
            wanted |= _schedules_of(flow, entry, by[name])
    await declare_all(store, wanted, by, nonce=nonce)


def _schedules_of(flow: FlowWorkflow, entry: FlowEntry, by: Declared) -> dict[str, Wanted]:
    from outlive._features.flows.run.triggers import schedules_in, warn_of_idle
    from outlive.errors.document import FlowError, FlowInputError

    found: dict[str, Wanted] = {}
    warn_of_idle(flow.document)
    try:
        for schedule in schedules_in(flow.document):
            target = target_of(f"flow {flow.name}", flow.spec, schedule)
            declared = Declared(print_of(schedule, target), by.version, by.at)
            found[schedule.name] = Wanted(schedule, target, declared, is_resting=entry.disabled is not None)
    except (FlowError, FlowInputError, InvalidArgumentError) as error:
        log.error("the schedules of flow %s do not fire: %s", flow.name, error)
        return {}
    return found
