"""The log lines about runs.

A line is written when its event is durable, by the worker that recorded the event: a replay and a refused change write
nothing. Every record has the fields of `run_fields`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

import msgspec

from outlive._kernel.client.why import instant
from outlive._kernel.journal.event import (
    AnyEvent,
    AttemptFailed,
    MessageSetAside,
    RunFailed,
    RunParked,
    RunTimedOut,
    StepEndedLate,
    StepFailed,
)
from outlive._kernel.journal.failure import text_of
from outlive._kernel.journal.redaction import Redaction, black_out
from outlive._kernel.model import Failure, Run
from outlive._kernel.model.pause import PAUSED
from outlive._kernel.model.under_way import timed_out
from outlive._kernel.replay.command import RunStep, StartChild
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import step_of
from outlive._kernel.runtime.tree.payloads import TreePayloads
from outlive.errors import OutliveError, RunParkedError
from outlive.telemetry import log, run_fields

NOTABLE = frozenset({AttemptFailed, StepFailed, StepEndedLate, MessageSetAside, RunFailed, RunParked, RunTimedOut})
"""The events that get a line."""


class Logged(Protocol):
    """A tree that something is logged of: where what is redacted may come from."""

    execution: Execution
    failed: tuple[RunStep | StartChild, ...]
    payloads: TreePayloads


class RunLog:
    """Writes the lines, without the values that are redacted.

    Exceptions are free text. So what is hidden in the headers and the arguments of the tree, and in those of the calls
    that have failed, is blacked out wherever a line has it. So is what the models and tools of an agent have answered.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._secrets: set[str] = set()
        """The secrets of the tree that is written about."""

    def write(self, notable: Iterable[tuple[AnyEvent, Run]], tree: Logged) -> None:
        """Write the lines of durable events of a tree; each comes with the run that it is about."""
        if self._redaction:
            self._secrets = self._secrets_of(tree)
        for event, run in notable:
            match event:
                case AttemptFailed():
                    following = f"attempt {event.attempt + 1} is due at {instant(event.retry_at)}"
                    self._write_attempt(event, run, following)
                case StepFailed():
                    self._write_attempt(event, run, "no other attempt follows, and the workflow gets the error")
                case StepEndedLate():
                    self._write_late(event, run)
                case MessageSetAside():
                    what = "a decision on approval" if event.approval else "a message of signal"
                    text = "run %s: %s %r was set aside: %s"
                    reason = black_out(event.reason, self._secrets)
                    log.warning(text, run.id, what, event.name, reason, extra=run_fields(run.id, run.workflow))
                case RunFailed():
                    _write_end(run, f"failed:\n{text_of(self._hidden(event.failure))}")
                case RunTimedOut():
                    _write_end(run, timed_out(run.reason))
                case RunParked() if event.reason.startswith(PAUSED):
                    log.info("run %s is %s", run.id, event.reason, extra=run_fields(run.id, run.workflow))
                case RunParked():
                    parked = RunParkedError(run.id, black_out(event.reason, self._secrets))
                    log.error("%s", parked, extra=run_fields(run.id, run.workflow))
                case _:
                    raise AssertionError(f"{type(event).__name__} is none of NOTABLE")

    def _write_attempt(self, event: AttemptFailed | StepFailed, run: Run, following: str) -> None:
        failure = self._hidden(event.failure)
        log.info(
            "attempt %d of step %s of run %s failed: %s: %s; %s",
            event.attempt,
            event.call,
            run.id,
            failure.type,
            failure.message,
            following,
            extra=run_fields(run.id, run.workflow, step=step_of(event.call), attempt=event.attempt),
        )

    def _write_late(self, event: StepEndedLate, run: Run) -> None:
        how = "returned"
        if event.failure is not None:
            failure = self._hidden(event.failure)
            how = f"failed: {failure.type}: {failure.message}"
        log.info(
            "attempt %d of step %s of run %s has ended after it was given up: it %s",
            event.attempt,
            event.call,
            run.id,
            how,
            extra=run_fields(run.id, run.workflow, step=step_of(event.call), attempt=event.attempt),
        )

    def _hidden(self, failure: Failure) -> Failure:
        return self._redaction.hide_failure(failure, self._secrets)

    def _secrets_of(self, tree: Logged) -> set[str]:
        secrets = set(tree.execution.secrets)
        for command in tree.failed:
            called = command.step if isinstance(command, RunStep) else command.workflow
            self._redaction.hide_arguments(msgspec.json.decode(command.arguments), called.signature.names, secrets)
        if (created := tree.execution.created) is not None:
            self._redaction.hide(created.headers, secrets)
            # A payload may lie elsewhere, and the code may not be here: then the run was not moved, and says nothing.
            with suppress(OutliveError):
                names = tree.execution.resolve(created.workflow, created.version).signature.names
                plain = msgspec.json.decode(tree.payloads.unpack(created.input))
                self._redaction.hide_arguments(plain, names, secrets)
        return secrets


def _write_end(run: Run, how: str) -> None:
    # A parent gets the exception of its child, and may know what to do about it.
    level = logging.WARNING if run.number == 0 else logging.INFO
    log.log(level, "run %s %s", run.id, how, extra=run_fields(run.id, run.workflow))


def log_taken_over(run: Run, last_word: str) -> None:
    """A run whose worker was lost has been claimed; `last_word` is what that worker had said that it was doing."""
    text = "run %s is taken over: its worker was lost (interruptions since it last made progress: %d)%s"
    log.info(text, run.id, run.attempts, last_word and f"; {last_word}", extra=run_fields(run.id, run.workflow))


def log_discarded(run: Run, why: str) -> None:
    """This worker has discarded a run that another worker may own."""
    text = "run %s is discarded here: %s; what was under way and is not in its journal is lost"
    log.warning(text, run.id, why, extra=run_fields(run.id, run.workflow))
