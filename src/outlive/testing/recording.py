"""`RecordingObserver`: an observer that remembers what it heard."""

from __future__ import annotations

from typing import Any

from outlive._features.machines.observer import HOOKS, Observer


class RecordingObserver(Observer):
    """Remembers what it heard, in order.

        recorder = RecordingObserver()
        order.observe(recorder)
        ...
        assert recorder.states() == ["RESERVE", "SHIP", "DONE"]

    It is an observer for tests of machines.
    """

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        """The hook and the fact."""

    def hooks(self, run_id: str | None = None) -> list[str]:
        """The names of the hooks that were called, for one run or for all."""
        return [hook for hook, fact in self.heard if run_id in (None, fact.run_id)]

    def facts(self, hook: str, run_id: str | None = None) -> list[Any]:
        """The facts that one hook was given, for one run or for all."""
        return [fact for name, fact in self.heard if name == hook and run_id in (None, fact.run_id)]

    def states(self, run_id: str | None = None) -> list[str]:
        """The states that were entered, for one run or for all."""
        return [fact.state for fact in self.facts("state_entered", run_id)]

    def clear(self) -> None:
        """Forget everything."""
        self.heard.clear()

    def _hear(self, hook: str, fact: Any) -> None:
        self.heard.append((hook, fact))


for _hook in HOOKS:
    setattr(RecordingObserver, _hook, lambda self, fact, _hook=_hook: self._hear(_hook, fact))
