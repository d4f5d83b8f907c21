"""Stores that cannot be used, or cannot say what happened."""

from __future__ import annotations

from outlive.errors.base import OutliveError


class StoreError(OutliveError):
    """The store cannot do this."""


class StoreUrlError(StoreError, ValueError):
    """A store URL that names no store we have."""

    def __init__(self, url: object, reason: str) -> None:
        self.url, self.reason = url, reason
        super().__init__(
            f'{url!r} is not a store URL: {reason}; use "memory:", "sqlite:orders.db", "sqlite:/var/lib/orders.db" or "postgresql://user@host/orders"'
        )


class NotADatabaseError(StoreError):
    """The place exists and is not an Outlive database."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            f"{path} is not an Outlive database ({reason}); it was left as it is: name another file or schema"
        )


class SchemaTooNewError(StoreError):
    """The database was migrated by a later release."""

    def __init__(self, place: str, found: int, known: int) -> None:
        self.place, self.found, self.known = place, found, known
        super().__init__(
            f"{place} has schema {found} and this release knows up to {known}; nothing was changed: upgrade outlive"
        )


class UnfitServerError(StoreError):
    """The database server cannot keep what a store promises; nothing was written."""

    def __init__(self, place: str, reason: str, remedy: str) -> None:
        self.place, self.reason, self.remedy = place, reason, remedy
        super().__init__(f"{place} cannot be a store: {reason}; {remedy}")


class StoreUnavailableError(StoreError):
    """The store refuses for now (disk full, read-only, locked, unreachable); the engine keeps trying."""

    def __init__(self, place: str, reason: str) -> None:
        self.place, self.reason = place, reason
        super().__init__(f"{place} is unavailable: {reason}")


class StoreMovedError(StoreUnavailableError):
    """The file of the store was deleted, moved or replaced while it was open; nothing was acknowledged."""

    def __init__(self, place: str) -> None:
        super().__init__(
            place,
            "the file, or the -wal file beside it, was deleted, moved or replaced while this process uses it, and what "
            "it writes now would be lost; put the same file back, or stop this process and start it again",
        )


class CommitUnknownError(StoreUnavailableError):
    """The store failed around a commit: it may have happened or not. Re-read before anyone moves."""


class TransactionOverError(StoreError):
    """The transaction of a step ended before the step did; nothing that it wrote stays."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the transaction of this step is over: {reason}")


class TransactionRefusedError(StoreError):
    """A statement that a step may not run in its transaction."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"a step's transaction refuses {what}; the journal's commit ends it, and Outlive's own tables are Outlive's"
        )
