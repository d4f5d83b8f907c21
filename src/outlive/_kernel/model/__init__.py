"""Frozen values that every room speaks: ids, runs, waits, policies, payloads, failures.

Nothing here does anything. Instants are whole microseconds since 1970 UTC (`at`, `..._at`): integers compare,
add and store without surprises.
"""

from outlive._kernel.model.failure import Failure
from outlive._kernel.model.id import check_run_id, child_id, generation_id, is_root_id, known_run_id
from outlive._kernel.model.payload import Payload
from outlive._kernel.model.policy import Limits, Retry
from outlive._kernel.model.recovery import Recovery
from outlive._kernel.model.run import TERMINAL, Run, RunFilter, RunStatus, definition_key
from outlive._kernel.model.wait import Wait, WaitKind

__all__ = [
    "TERMINAL",
    "Failure",
    "Limits",
    "Payload",
    "Recovery",
    "Retry",
    "Run",
    "RunFilter",
    "RunStatus",
    "Wait",
    "WaitKind",
    "check_run_id",
    "child_id",
    "definition_key",
    "generation_id",
    "is_root_id",
    "known_run_id",
]
