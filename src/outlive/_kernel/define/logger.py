"""`outlive.get_logger`: a logger of the standard library that knows in which run and step it is used."""

from __future__ import annotations

import logging

from outlive._kernel.define.in_step import CURRENT_STEP, REDACT
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.replay.frame import SCOPE
from outlive.telemetry import run_fields


def get_logger(name: str | None = None) -> logging.Logger:
    """The logger of this name, as `logging.getLogger` gives it, for workflows and steps.

    Its records have `run_id`, `workflow`, `step` and `attempt` as attributes, which are None where they mean nothing.
    It is silent while a run is replayed: what workflow code says is logged when it is first said, and not again by
    each worker that rebuilds the run. The secrets that a flow gave to a step are taken out of what the step logs.
    """
    logger = logging.getLogger(name)
    logger.addFilter(_IN_RUN)  # Once: a filter that is there already is not added again.
    return logger


class _InRun(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; False while a run is replayed, or leaves memory."""
        fields = run_fields(None, None)
        if (execution := current_execution()) is not None:
            if execution.is_replaying or execution.loop.is_dropped:
                return False
            frame = SCOPE.get().frame
            fields = run_fields(frame.id, frame.spec.name)
        elif (step := CURRENT_STEP.get(None)) is not None:
            known = step.context()
            fields = run_fields(known.run_id, known.workflow, step=known.name, attempt=known.attempt)
        if (redact := REDACT.get(None)) is not None:
            record.msg, record.args = redact(record.getMessage()), None
            if record.exc_info:
                record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
                record.exc_info = None
        for name, value in fields.items():
            # A field that the caller gave as `extra=` stays.
            record.__dict__.setdefault(name, value)
        return True


_IN_RUN = _InRun()
