"""What the hooks of an `outlive.Observer` are given.

from outlive.facts import RetryFact
"""

from outlive._model.facts import (
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
    "AttemptFact",
    "CircuitFact",
    "EndFact",
    "Fact",
    "FailureFact",
    "ReasonFact",
    "ResumeFact",
    "RetryFact",
    "TransitionFact",
    "UndoFact",
]
