"""The root of all errors."""

from __future__ import annotations

import re
from typing import ClassVar


class OutliveError(Exception):
    """Root of everything that Outlive raises on purpose. Its `code` tells one reason from the others."""

    code: ClassVar[str] = "outlive"
    """The kind of the error, as a name that does not change: `queue_not_found`, `run_not_parked`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).lower()


class InternalError(OutliveError):
    """A bug in Outlive itself; please report it with the traceback."""


class ConfigurationError(OutliveError, ValueError):
    """A setting that cannot work."""


class MisuseError(OutliveError, RuntimeError):
    """A name was used where it means nothing: on another event loop, in a fork, outside a run, a second time."""


class NotFoundError(OutliveError, LookupError):
    """There is no such thing in this store: run, queue, schedule, flow, promise, task, key, ..."""


class ConflictError(OutliveError):
    """The thing is not in the state for this: it exists, has ended, is closed, disabled, or another has it."""


class LimitError(OutliveError):
    """The limit is reached; nothing was done."""


class UnfitValueError(OutliveError, TypeError):
    """A value does not fit the type that its receiver declares."""


class DamagedError(OutliveError):
    """The stored bytes differ from what was written, or a later release wrote them."""


class ReplayError(OutliveError):
    """The code cannot go on with the journal; the run is parked, never failed."""
