"""Who wants to hear of the runs of a workflow, by what they want to hear.

The core knows nothing of what they are told: it only carries this from the definition to whoever tells them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Audience:
    """The listeners of one workflow; nobody at first."""

    __slots__ = ("_by_hook",)

    def __init__(self) -> None:
        self._by_hook: dict[str, tuple[Any, ...]] = {}

    def add(self, listener: Any, hooks: Iterable[str]) -> None:
        """One more who wants to hear these; adding somebody twice is adding them once."""
        for hook in hooks:
            listeners = self._by_hook.get(hook, ())
            if not any(each is listener for each in listeners):
                self._by_hook[hook] = (*listeners, listener)

    def listeners(self, hook: str) -> tuple[Any, ...]:
        """Who wants to hear this."""
        return self._by_hook.get(hook, ())

    def __bool__(self) -> bool:
        return bool(self._by_hook)
