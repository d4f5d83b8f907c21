"""`outlive.integrations.logging.JsonFormatter`: records of the log as lines of JSON, with the fields of runs and steps.

A value that is redacted must not come into a log by way of `extra=`, so the formatter takes the same list of fields as
the engine. A record that cannot be written as it is (a value without a JSON form, a broken format string) is written as
text: a formatter that raises would lose the line.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from outlive._kernel.journal.redaction import Redaction, black_out

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The fields of every record; all others were given by the code that logs."""


class JsonFormatter(logging.Formatter):
    """Each record as one line of JSON: `time`, `level`, `logger`, `message`, then what else the record has.

    Records of Outlive and of `outlive.get_logger` have `run_id`, `workflow`, `step` and `attempt` where they mean
    something; what the code gives as `extra=` is there by its name, and `error` is the traceback. In a step that is
    traced there are `trace_id` and `span_id` too.

    Args:
        redact: fields whose values are not for people, as `Engine(redact=...)` takes them. What is given as `extra=`
            under such a name is hidden, also where the message or the traceback of the same record repeats it.
    """

    def __init__(self, *, redact: Iterable[str] = ()) -> None:
        super().__init__()
        self._redaction = Redaction(redact)

    def format(self, record: logging.LogRecord) -> str:
        """The line, without an end of line."""
        at = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        fields |= _trace_fields()
        given = {name: value for name, value in vars(record).items() if name not in _PLAIN and value is not None}
        secrets: set[str] = set()
        hidden = {name: _plain(value) for name, value in given.items() if name not in fields}
        fields |= self._redaction.hide(hidden, secrets)
        if error := self._error(record):
            fields["error"] = _storable(error)
        return msgspec.json.encode(black_out(fields, secrets)).decode()

    def _error(self, record: logging.LogRecord) -> str:
        text = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        return "\n".join(part for part in (text, record.stack_info or "") if part)


def _message(record: logging.LogRecord) -> str:
    try:
        return _storable(record.getMessage())
    except Exception as error:  # `log.info("%d", "seven")`: the mistake must not hide the line.
        return _storable(f"{record.msg!r} with {record.args!r} ({type(error).__name__}: {error})")


def _plain(value: Any) -> Any:
    """A value as JSON has it, or its text."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))
    except Exception:  # Not UTF-8, a key that is not text, a class of the user that raises.
        try:
            return _storable(repr(value))
        except Exception:
            return f"<{type(value).__qualname__}>"


def _storable(text: str) -> str:
    """Text that JSON can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _trace_fields() -> dict[str, str]:
    """The ids of the span that is current, if the program uses OpenTelemetry at all."""
    if (trace := sys.modules.get("opentelemetry.trace")) is None:
        return {}
    context = trace.get_current_span().get_span_context()
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"} if context.is_valid else {}
