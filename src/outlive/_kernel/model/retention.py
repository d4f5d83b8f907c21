"""How long runs stay after their end."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from outlive._kernel.model import given
from outlive._kernel.model.given import Span
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.run import RunStatus
from outlive.errors import ArgumentTypeError, ConfigurationError, InvalidArgumentError

KEEP_SECONDS_MIN = 3_600.0
"""A run's id is the key by which a start is done once: a caller that never heard the answer asks again, and callers
that wait for its result look for it, for at least so long."""
AUDIT_SECONDS_MIN = 86_400.0
AUDIT_KEY_BYTES_MIN = 32


class Named(Protocol):
    """A workflow."""

    @property
    def name(self) -> str:
        """Its name."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How long the runs of a workflow stay in the store after their end; what is not said stays for ever.

        Keep("order", succeeded=timedelta(days=7), failed=timedelta(days=90), archive="archive/")

    Each span is at least an hour. It is also how long an id means the same run: a start with the id of a run that was
    deleted starts a new one.
    """

    workflow: str | Named | None = None
    """The name of a workflow, or the workflow; without, all that no other `Keep` names."""
    succeeded: Span | None = None
    failed: Span | None = None
    timed_out: Span | None = None
    """How long runs that timed out are kept; `failed` unless given."""
    cancelled: Span | None = None
    """How long cancelled runs are kept; `failed` unless given."""
    continued: Span | None = None
    """Earlier generations of runs that continued as new; as `succeeded` unless given."""
    archive: str | os.PathLike[str] | None = None
    """A folder, or an fsspec URL such as "s3://bucket/runs": each batch is written to a file there, durably, before it
    is deleted."""

    def __post_init__(self) -> None:
        if self.workflow is not None:
            name = getattr(self.workflow, "name", self.workflow)
            given.keep(self, workflow=given.text("Keep", "workflow", name, like="order"))
        for status in ("succeeded", "failed", "timed_out", "cancelled", "continued"):
            given.keep(self, **{status: _span(status, getattr(self, status))})
        if self.archive is not None:
            given.keep(self, archive=archive_of("Keep", self.archive))
        if not self.spans:
            wanted = "say how long, for example Keep('order', succeeded=timedelta(days=7)); or leave the Keep out"
            raise InvalidArgumentError("Keep", "succeeded", None, wanted)

    @property
    def name(self) -> str | None:
        """The name of the workflow; None for all others."""
        return self.workflow if isinstance(self.workflow, str) else None

    @property
    def spans(self) -> dict[RunStatus, int]:
        """After how many microseconds runs that ended in these ways go."""
        said = {
            RunStatus.SUCCEEDED: self.succeeded,
            RunStatus.FAILED: self.failed,
            RunStatus.TIMED_OUT: self.failed if self.timed_out is None else self.timed_out,
            RunStatus.CANCELLED: self.failed if self.cancelled is None else self.cancelled,
            RunStatus.CONTINUED: self.succeeded if self.continued is None else self.continued,
        }
        return {
            status: round(given.seconds("Keep", status.value, span) * MICROSECONDS)
            for status, span in said.items()
            if span is not None
        }


@dataclass(frozen=True, slots=True)
class KeepAudit:
    """How long rows of the audit log stay, and the key that seals it: `retention=[KeepAudit(timedelta(days=365))]`.

    The oldest go first, and the log has a row that says which have gone. Without, all stay for ever.
    """

    keep: Span | None = None
    """At least a day; None is for ever."""
    key: bytes | None = field(default=None, repr=False)
    """32 random bytes or more, which the store must not have: workers seal the log with it every ten minutes."""

    def __post_init__(self) -> None:
        seconds = given.some_seconds("KeepAudit", "keep", self.keep, or_none="to keep them for ever")
        if seconds is not None and seconds < AUDIT_SECONDS_MIN:
            wanted = "give a day or more, for example KeepAudit(timedelta(days=365))"
            raise InvalidArgumentError("KeepAudit", "keep", self.keep, wanted)
        if self.key is not None:
            audit_key("KeepAudit", self.key)
        elif seconds is None:
            wanted = (
                "say how long, for example KeepAudit(timedelta(days=365)), or give a key; or leave the KeepAudit out"
            )
            raise InvalidArgumentError("KeepAudit", "keep", None, wanted)

    @property
    def span(self) -> int | None:
        """In microseconds; None is for ever."""
        seconds = given.some_seconds("KeepAudit", "keep", self.keep)
        return None if seconds is None else round(seconds * MICROSECONDS)


def audit_key(where: str, key: object) -> bytes:
    """A key that seals the audit log.

    Raises:
        ArgumentTypeError: it is something else than bytes.
        ConfigurationError: it is too short to be one that cannot be guessed. It is not shown: errors end up in logs.
    """
    if not isinstance(key, bytes):
        wanted = f"give {AUDIT_KEY_BYTES_MIN} random bytes or more: os.urandom({AUDIT_KEY_BYTES_MIN})"
        raise ArgumentTypeError(where, "key", type(key).__name__, wanted)
    if len(key) < AUDIT_KEY_BYTES_MIN:
        raise ConfigurationError(
            f"the key of {where} has {len(key)} bytes; give {AUDIT_KEY_BYTES_MIN} random bytes or more: "
            f"os.urandom({AUDIT_KEY_BYTES_MIN})"
        )
    return key


def read_audit_key(path: str | os.PathLike[str]) -> bytes:
    """The key in a file, as it is but for the end of its last line.

    Raises:
        ConfigurationError: the file cannot be read, or has no key.
    """
    try:
        return audit_key(f"the file {os.fspath(path)}", Path(path).read_bytes().rstrip(b"\r\n"))
    except OSError as error:
        raise ConfigurationError(
            f"the file {os.fspath(path)} with the key of the audit log: {error.strerror}"
        ) from None


def _span(name: str, span: object) -> float | None:
    seconds = given.some_seconds("Keep", name, span, or_none="to keep them for ever")
    if seconds is not None and seconds < KEEP_SECONDS_MIN:
        wanted = (
            "give an hour or more: the id of a run is the key by which its start is done once, and callers may still "
            f"ask again; for example {name}=timedelta(days=7)"
        )
        raise InvalidArgumentError("Keep", name, span, wanted)
    return seconds


def archive_of(where: str, value: object) -> str:
    """A folder or a URL, as text."""
    plain = os.fspath(value) if isinstance(value, os.PathLike) else value
    return given.text(where, "archive", plain, like="archive/", most=given.KEY_CHARACTERS_MAX)


def check_retention(rules: object) -> tuple[Keep | KeepAudit, ...]:
    """Check the `retention` of an engine.

    Raises:
        ConfigurationError: two of them name the same workflow, or are for the audit log.
    """
    like = '[outlive.retention.Keep("order", succeeded=timedelta(days=7))]'
    if isinstance(rules, str | Keep | KeepAudit) or not isinstance(rules, Iterable):
        raise ArgumentTypeError("Engine", "retention", rules, f"give a list, for example retention={like}")
    kept = tuple(
        rule if isinstance(rule, KeepAudit) else given.instance("Engine", "retention", rule, Keep, like=like)
        for rule in rules
    )
    if sum(isinstance(rule, KeepAudit) for rule in kept) > 1:
        raise ConfigurationError("two KeepAudits are for the same audit log; give one")
    names = [rule.name for rule in kept if isinstance(rule, Keep)]
    for name in names:
        if names.count(name) > 1:
            whose = "all other workflows" if name is None else f"workflow {name!r}"
            raise ConfigurationError(f"two Keeps are for {whose}; write one with everything")
    return kept
