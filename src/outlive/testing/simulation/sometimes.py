"""The situations that make a simulation worth running. A run of many seeds in which one never came up proves little.

Counting happens where the situation is seen: in the store, the books, the ledger, and among the users.
"""

from __future__ import annotations

from collections import Counter

WANTED = (
    "cancel accepted, and the run had ended",
    "cancel came after the end",
    "cancel came before the end",
    "claim race lost",
    "claim_runs done, not answered",
    "claim_runs lost, not answered",
    "claim_runs not answered, done later",
    "clock jumped",
    "clock of the store jumped",
    "commit done, not answered",
    "commit lost, not answered",
    "commit not answered, done later",
    "continued with a pending signal",
    "cut off longer than its lease",
    "death of a neighbour seen",
    "deliver done, not answered",
    "interrupted step begun again",
    "keeper late",
    "lease lost while a step ran",
    "lease renewed after its end",
    "once step interrupted",
    "paused longer than its lease",
    "payload in a blob",
    "process killed",
    "process killed in the middle of a step",
    "process stopped cleanly",
    "quarantined",
    "register_worker done, not answered",
    "retry after a take-over",
    "run timed out",
    "saga rolled back",
    "saga rolled back by another worker",
    "session begun again",
    "signal before its wait",
    "signal right after its timeout",
    "signal right before its timeout",
    "signal sent twice",
    "store down longer than a lease",
    "taken from a worker that lives",
    "taken for dead by mistake",
    "timer overdue at recovery",
    "unknown commit resolved as done",
    "unknown commit resolved as not done",
    "user told of the end",
    "writer lost the compare-and-swap",
    "zombie refused",
)


def missing(seen: Counter[str]) -> list[str]:
    """What never happened."""
    return [what for what in WANTED if not seen[what]]


def table(seen: Counter[str]) -> str:
    """How often everything happened, for people."""
    names = sorted({*WANTED, *seen})
    return "\n".join(f"{seen[name]:>10,}  {name}{'' if seen[name] else '   <- never'}" for name in names)
