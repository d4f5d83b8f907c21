"""Flows of the library as people and programs see them."""

from __future__ import annotations

from datetime import datetime

import msgspec


class FlowRevision(msgspec.Struct, frozen=True, kw_only=True):
    """One published revision of a flow: which document, who published it, when, and why."""

    number: int
    """1 for the first one."""
    hash: str
    """The first 12 hex digits of the hash of its content. Runs are pinned to it."""
    at: datetime
    """When it was published."""
    by: str = ""
    reason: str = ""
    rolled_back_to: int = 0
    """The earlier revision whose document this one has; 0 if it was not made by a rollback."""

    @property
    def version(self) -> int:
        """The version that its runs have."""
        return int(self.hash, 16)

    def __repr__(self) -> str:
        said = f"{self.hash}{self.by and f' by {self.by}'}{self.reason and f': {self.reason}'}"
        return f"<FlowRevision {self.number}: {said}>"


class FlowDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A document that is stored and not published."""

    number: int
    """Grows by one with every `save_draft`; the next one may say which it expects."""
    base: int
    """The revision that was published when the draft was begun; 0 if there was none."""
    hash: str
    at: datetime
    """When it was saved."""
    by: str = ""
    reason: str = ""

    def __repr__(self) -> str:
        return f"<FlowDraft {self.number} of revision {self.base}: {self.hash}>"


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """A flow of the library, as it is now."""

    name: str
    current: FlowRevision | None
    """The published revision, which a start by name runs. None if there is only a draft."""
    is_enabled: bool
    why_disabled: str = ""
    """The reason why it is disabled, and who disabled it."""
    draft: FlowDraft | None = None

    @property
    def revision(self) -> int:
        """The number of the published revision; 0 if there is none."""
        return 0 if self.current is None else self.current.number

    @property
    def hash(self) -> str:
        """The hash of what is published; empty if nothing is."""
        return "" if self.current is None else self.current.hash

    def __repr__(self) -> str:
        state = "enabled" if self.is_enabled else self.why_disabled
        return f"<Flow {self.name}: revision {self.revision}, {state}>"
