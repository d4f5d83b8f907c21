"""State machines: what their handlers return, how branches join, and what observers are given.

    @order.stepped(S.IMPORT)
    async def import_rows(data: OrderData, cursor: int | None) -> outlive.machine.More[int] | S: ...

`outlive.Machine` makes one. An `Observer` hears of a run with values that end in `Fact`.
"""

from outlive._features.machines.answer import More, Pending
from outlive._features.machines.joins import All, Any, PartialResults, PartialTimeout, Percentage, Quorum
from outlive._features.machines.observer import Observer
from outlive._features.machines.wire import MachineResult
from outlive._kernel.values.fact import (
    AttemptFact,
    CircuitFact,
    EndFact,
    Fact,
    FailureFact,
    ReasonFact,
    ResumeFact,
    RetryFact,
    TransitionFact,
    UndoFact,
)

__all__ = [
    "All",
    "Any",
    "AttemptFact",
    "CircuitFact",
    "EndFact",
    "Fact",
    "FailureFact",
    "MachineResult",
    "More",
    "Observer",
    "PartialResults",
    "PartialTimeout",
    "Pending",
    "Percentage",
    "Quorum",
    "ReasonFact",
    "ResumeFact",
    "RetryFact",
    "TransitionFact",
    "UndoFact",
]
