"""What API keys are refused for."""

from __future__ import annotations

from outlive.errors.base import OutliveError


class KeyNotFoundError(OutliveError):
    """No API key has this id."""

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id
        super().__init__(f"there is no key {key_id}; engine.keys.list(), or `outlive keys list`, shows those there are")
