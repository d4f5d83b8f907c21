"""The kit is tried without the triggers of other test modules."""

from tests.limits.conftest import no_triggers

__all__ = ["no_triggers"]
