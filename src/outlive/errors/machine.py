"""Machines that cannot run, and states that did not do what a state does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outlive.errors.base import OutliveError
from outlive.errors.definition import DefinitionError


class MachineError(DefinitionError):
    """The states of a machine do not fit together."""

    def __init__(self, machine: str, problems: Sequence[str]) -> None:
        self.machine, self.problems = machine, list(problems)
        super().__init__(f"machine {machine} cannot run: {'; '.join(problems)}; mend it and start again")


class UnknownStateError(OutliveError):
    """The journal names a state that the code does not have; the run is parked."""

    def __init__(self, machine: str, state: str, known: Sequence[str]) -> None:
        self.machine, self.state, self.known = machine, state, list(known)
        super().__init__(
            f"the journal says that machine {machine} is in state {state}, which this code does not have (it has "
            f"{', '.join(known)}); deploy code that has {state}, or give the new code another version, then resume the "
            f"run"
        )


class UndoNotFoundError(OutliveError):
    """A snapshot says that something would have to be undone, by a step that the code does not have; the run is
    parked."""

    def __init__(self, machine: str, undo: str, step: str) -> None:
        self.machine, self.undo, self.step = machine, undo, step
        super().__init__(
            f"machine {machine} would undo {step} with step {undo}, which this code does not have; deploy code that "
            f"has it, then resume the run"
        )


class StateResultError(OutliveError, TypeError):
    """A handler returned something that says not where to go."""

    def __init__(self, machine: str, state: str, returned: str, wanted: str) -> None:
        self.machine, self.state, self.returned, self.wanted = machine, state, returned, wanted
        super().__init__(f"state {state} of machine {machine} returned {returned}; return {wanted}")


class SplitFailedError(OutliveError):
    """Too few branches of a split succeeded for its join."""

    def __init__(
        self, machine: str, state: str, *, join: str, succeeded: Sequence[str], errors: Mapping[str, Any], is_late: bool
    ) -> None:
        self.machine, self.state, self.join = machine, state, join
        self.succeeded, self.is_late = list(succeeded), is_late
        self.errors = {name: f"{type(error).__qualname__}: {error}" for name, error in errors.items()}
        why = "its time is over" if is_late else "the others cannot make up for it"
        failed = "; ".join(f"{name} failed with {told}" for name, told in self.errors.items()) or "none failed"
        super().__init__(
            f"split {state} of machine {machine} wants {join}, and {len(self.succeeded)} succeeded "
            f"({', '.join(self.succeeded) or 'none'}); {why}: {failed}"
        )
