"""The situations that make a simulation worth running. A run of many seeds in which one never came up proves little.

Counting happens where the situation is seen: in the store, the books, the ledger, and among the users.
"""

from __future__ import annotations

from collections import Counter

WANTED = (
    "ask answered",
    "ask refused by a validator",
    "ask refused by the end",
    "batch interrupted",
    "branch that came too late undone",
    "breaker opened",
    "cancel accepted, and the run had ended",
    "cancel came after the end",
    "cancel came before the end",
    "cancel in the middle of a roll-back",
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
    "cursor went on in another process",
    "cut off longer than its lease",
    "death of a neighbour seen",
    "deliver done, not answered",
    "interrupted step begun again",
    "keeper late",
    "lease lost while a step ran",
    "lease renewed after its end",
    "limited state went on in another process",
    "loop went on in another process",
    "machine cancelled",
    "machine failed",
    "machine rolled back",
    "machine succeeded",
    "machine timed out",
    "message set aside",
    "once step interrupted",
    "paused longer than its lease",
    "payload in a blob",
    "poll went on in another process",
    "process killed",
    "process killed in the middle of a step",
    "process stopped cleanly",
    "quarantined",
    "register_worker done, not answered",
    "retry after a take-over",
    "roll-back interrupted",
    "run timed out",
    "saga rolled back",
    "saga rolled back by another worker",
    "session begun again",
    "signal before its wait",
    "signal kept in a snapshot",
    "signal right after its timeout",
    "signal right before its timeout",
    "signal sent twice",
    "snapshot done, not answered",
    "snapshot lost, not answered",
    "snapshot not answered, done later",
    "snapshot owes undos",
    "snapshot taken",
    "split interrupted",
    "store down longer than a lease",
    "taken for dead by mistake",
    "taken from a worker that lives",
    "timer overdue at recovery",
    "trial of a breaker",
    "undo failed and parked its machine",
    "undone what a snapshot owed",
    "unknown commit resolved as done",
    "unknown commit resolved as not done",
    "user got the end",
    "waited a moment for a limit",
    "waited for a breaker in the journal",
    "waited for a limit in the journal",
    "worker lost behind a snapshot",
    "worker lost right behind a snapshot",
    "workflow state went on in another process",
    "writer lost the compare-and-swap",
    "zombie found its place put away by a snapshot",
    "zombie refused",
)


def missing(seen: Counter[str]) -> list[str]:
    """What never happened."""
    return [what for what in WANTED if not seen[what]]


def table(seen: Counter[str]) -> str:
    """How often everything happened, for people."""
    names = sorted({*WANTED, *seen})
    return "\n".join(f"{seen[name]:>10,}  {name}{'' if seen[name] else '   <- never'}" for name in names)
