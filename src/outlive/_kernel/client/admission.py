"""Whether a caller may start runs: asked by every verb that does, before it does."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol


class Admission(Protocol):
    """Lets starts through, or refuses them."""

    def start(self, *run_ids: str | None) -> AbstractAsyncContextManager[None]:
        """Around the start of these runs; None for an id that is not known yet.

        Raises:
            QuotaExceededError: there are as many as there may be. Runs that are there already are found all the same.
        """


class Unlimited:
    """Lets everything through."""

    def start(self, *run_ids: str | None) -> AbstractAsyncContextManager[None]:
        """See `Admission`."""
        return nullcontext()
