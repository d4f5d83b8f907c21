"""The errors of the library of flows in a store."""

from __future__ import annotations

from collections.abc import Sequence

from outlive.errors.advice import Advice
from outlive.errors.base import (
    ConflictError,
    DamagedError,
    NotFoundError,
)


class FlowNotFoundError(NotFoundError):
    """The library has no flow of this name, or not this revision of it."""

    def __init__(
        self, name: str, revision: int | None = None, *, near: Sequence[str] = (), newest: int = 0, lacks: str = ""
    ) -> None:
        self.name, self.revision, self.near, self.newest = name, revision, tuple(near), newest
        if lacks:
            what = f"flow {name} has no {lacks}"
        elif newest:
            what = f"flow {name} has no revision {revision}; its newest is {newest}"
            if revision == 0:
                what = f"flow {name} has nothing before revision {newest} to roll back to; apply another document"
        else:
            what = f"there is no flow {name} in this store"
            what += f"; did you mean {' or '.join(near)}?" if near else ""
            self._advice = () if near else (Advice("flows.list", effect="shows all flows"),)
        super().__init__(what)


class StaleFlowError(ConflictError):
    """The flow was changed by another person meanwhile; nothing was written."""

    def __init__(self, name: str, expected: int, found: int, *, what: str = "revision", by: str = "") -> None:
        self.name, self.expected, self.found, self.by = name, expected, found, by
        who = f" by {by}" if by else ""
        super().__init__(
            f"flow {name} is at {what} {found}{who}, and {what} {expected} was expected: read it again, bring your "
            f"change to it, and say that you expect {found}"
        )


class FlowDisabledError(ConflictError):
    """A person has disabled the flow: it starts no runs."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        self._advice = (Advice("flows.enable", {"name": name}, "lets it start runs again"),)
        super().__init__(f"flow {name} is {reason}; it starts no runs until it is enabled")


class FlowInUseError(ConflictError):
    """Runs of the flow are open."""

    def __init__(self, name: str, run_ids: Sequence[str]) -> None:
        self.name, self.run_ids = name, tuple(run_ids)
        super().__init__(
            f"flow {name} has open runs ({', '.join(run_ids)}); cancel them or wait for their ends, or delete it with "
            f"force: they stay where they are then, until a flow with the same content is applied again"
        )


class FlowDamagedError(DamagedError):
    """A cell of the library cannot be read."""

    def __init__(self, what: str, reason: str) -> None:
        self.what, self.reason = what, reason
        super().__init__(f"{what} cannot be read: {reason}")


class FlowHashError(ConflictError):
    """Two documents have the same short hash; practically impossible unless it was made on purpose."""

    def __init__(self, name: str, digits: str) -> None:
        self.name, self.digits = name, digits
        super().__init__(f"flow {name}: another document has the hash {digits}; change anything in it")
