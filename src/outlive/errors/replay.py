"""What a workflow may not do, and code that contradicts its journal."""

from __future__ import annotations

from outlive.errors.base import OutliveError


class NotDurableError(OutliveError, RuntimeError):
    """A workflow asked its loop for something that no journal can replay."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} is not durable and cannot be used in a workflow; do this in a step (@outlive.step) "
            f"and await the step"
        )


class NotInRunError(OutliveError, RuntimeError):
    """This name means something only inside a running workflow or step."""

    def __init__(self, name: str, place: str) -> None:
        self.name, self.place = name, place
        super().__init__(f"outlive.{name}() was called outside {place}; it means something only there")


class DivergenceError(OutliveError):
    """The code asks for something that the journal contradicts; the run is parked, never failed."""

    def __init__(self, *, definition: str, seq: int, journal: str, code: str) -> None:
        self.definition, self.seq, self.journal, self.code = definition, seq, journal, code
        super().__init__(
            f"the code of {definition} no longer matches the journal at event {seq}\n"
            f"  - journal: {journal}\n"
            f"  + code:    {code}\n"
            f"deploy the code that wrote this journal, or give the new code another version, then resume the run"
        )


class StuckError(OutliveError):
    """The workflow waits for something that no event can ever bring."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"the workflow waits at {where} for something that no journal event can bring (an Event that "
            f"nobody sets, a future of another loop, ...); wait for a step, a timer or a signal instead"
        )


class RunawayError(OutliveError):
    """The workflow spins without waiting for anything durable."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        super().__init__(
            f"the workflow took {turns:,} turns of its loop without waiting for anything durable "
            f"(turns_per_event_max); put the busy work into a step"
        )


class RunDropped(BaseException):
    """A dropped run's `finally` block asked for something; nothing of it may happen."""
