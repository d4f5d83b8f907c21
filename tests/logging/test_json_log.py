"""Records of the log as JSON: every record is one line that a program can read, and hides what is redacted."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

import outlive
from outlive.integrations.logging import JsonFormatter
from outlive.testing import TestEngine

log = outlive.get_logger("tests.json_log")


class Bad:
    """What a program may give to a log by mistake."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.fixture
def stream() -> Iterator[StringIO]:
    """What is logged, of Outlive and of the code."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(redact=["password", "card.number"]))
    loggers = [logging.getLogger("outlive"), logging.getLogger("tests.json_log")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.setLevel(logging.INFO)
    yield stream
    for each, level in zip(loggers, levels, strict=True):
        each.removeHandler(handler)
        each.setLevel(level)


def records(stream: StringIO) -> list[dict[str, Any]]:
    """What a program reads, line by line."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@outlive.step(name="json_log.pay")
def pay(cents: int) -> int:
    """On a thread."""
    log.info("paying %d", cents, extra={"cents": cents})
    raise ValueError("the card is empty")


@outlive.workflow(name="json_log.order")
async def order(cents: int) -> int:
    """Logs, and fails."""
    log.info("order")
    return await pay(cents)


async def test_a_line_says_which_run_and_step_it_is_about(stream: StringIO) -> None:
    """Lines of Outlive and of the code have the same fields."""
    async with TestEngine() as engine:
        with pytest.raises(outlive.errors.RunFailedError):
            await (await engine.start(order, 7, id="a")).result()

    ordering, paying, *_, failed = records(stream)
    assert (ordering["run_id"], ordering["workflow"], "step" in ordering) == ("a", "json_log.order", False)
    assert paying == paying | {"level": "info", "logger": "tests.json_log", "message": "paying 7", "cents": 7}
    assert (paying["step"], paying["attempt"]) == ("json_log.pay", 1)
    assert (failed["level"], failed["logger"], failed["run_id"]) == ("warning", "outlive", "a")
    assert "the card is empty" in failed["message"]
    assert paying["time"].endswith("Z")


def test_redacted_fields_are_in_no_line(stream: StringIO) -> None:
    """The value of a redacted field is in no part of its record: not in the field, the message or the error."""
    try:
        raise ValueError("4111-1111 is refused")
    except ValueError:
        extra = {"password": "hunter22", "card": {"number": "4111-1111", "name": "Ann"}}
        log.exception("hunter22 does not fit", extra=extra)

    (line,) = records(stream)
    assert line["card"] == {"number": "[redacted]", "name": "Ann"}
    assert line["message"] == "[redacted] does not fit"
    assert "ValueError: [redacted] is refused" in line["error"]
    assert "hunter22" not in stream.getvalue()
    assert "4111" not in stream.getvalue()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.5, 1.5), (float("nan"), None), ("\ud800", "'\\ud800'"), ({(1, 2): 3}, {"(1, 2)": 3}), (Bad(), "<Bad>")],
)
def test_no_value_of_a_record_loses_its_line(stream: StringIO, value: object, shown: object) -> None:
    """A log record with a value that JSON does not have is still one line, with the value as text or null."""
    log.info("two\nlines", extra={"value": value})

    assert (records(stream)[0]["message"], records(stream)[0]["value"]) == ("two\nlines", shown)


def test_a_broken_format_is_logged_all_the_same() -> None:
    """The mistake is in the line, and the line is there."""
    record = logging.LogRecord("shop", logging.INFO, __file__, 1, "%d of \ud800", ("seven",), None)

    assert "seven" in json.loads(JsonFormatter().format(record))["message"]


def test_a_program_without_opentelemetry_does_not_load_it(stream: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line has fields of a trace then."""
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    log.info("untraced")

    assert "trace_id" not in records(stream)[0]
    assert "opentelemetry.trace" not in sys.modules
