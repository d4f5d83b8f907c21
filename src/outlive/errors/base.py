"""The root of all errors."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from outlive.errors.advice import Advice, in_words

E = TypeVar("E", bound="OutliveError")


class OutliveError(Exception):
    """Root of everything that Outlive raises on purpose. Its `code` tells one reason from the others."""

    code: str = "outlive"
    """The kind of the error, as a name that does not change: `queue_not_found`, `run_not_parked`."""
    _advice: tuple[Advice, ...] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).lower()

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The verbs that help next; `str` of the error says them as calls in Python."""
        return self._advice

    @property
    def summary(self) -> str:
        """The message without its advice: for journals, and for programs with words of their own for the advice."""
        return super().__str__()

    def __str__(self) -> str:
        return in_words(self.summary, self.advice)

    def advising(self: E, *advice: Advice) -> E:
        """This error, with advice."""
        self._advice = advice
        return self


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


def message_of(error: BaseException) -> str:
    """The message of any error as journals and servers have it: without advice, which is data of ours."""
    return error.summary if isinstance(error, OutliveError) else str(error)


def facts_of(error: OutliveError) -> dict[str, Any]:
    """The facts of an error, by the names of its attributes."""
    return {name: it for name, it in vars(error).items() if not name.startswith("_")}
