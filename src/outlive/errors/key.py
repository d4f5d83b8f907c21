"""The errors of API keys and of links to decide."""

from __future__ import annotations

from outlive.errors.advice import Advice
from outlive.errors.base import (
    ConflictError,
    NotFoundError,
)


class KeyNotFoundError(NotFoundError):
    """No API key has this id."""

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id
        self._advice = (Advice("keys.list", effect="shows all keys"),)
        super().__init__(f"there is no key {key_id}")


class QueueRefusedError(ConflictError):
    """A key for some runs only starts one in another queue than the workflow of the run declares."""

    def __init__(self, queue: str, own: str) -> None:
        self.queue, self.own = queue, own
        super().__init__(
            f"a key for some runs only starts them in the queue that their workflow declares ({own or 'none'}), and "
            f"not in {queue or 'default'!r}; leave the queue out, or use a key for all runs"
        )


class LinkRefusedError(NotFoundError):
    """A link to decide is not valid: unknown, used, too old, or its request is closed. It does not say which."""

    def __init__(self) -> None:
        super().__init__("this link is not valid, or not any more; ask for another one, or decide with a key")
