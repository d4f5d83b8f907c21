"""Spans of time: one grammar for every reader."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from outlive._features.flows.document.model import Span as DocumentSpan
from outlive._features.flows.document.model import seconds_of as seconds_of_document
from outlive._kernel.model import given
from outlive._kernel.model.span import seconds_in
from outlive.cli.edge import Mistake
from outlive.cli.values import seconds_of as seconds_of_option
from outlive.config.reading import read_settings
from outlive.errors import InvalidArgumentError, InvalidSettingsError
from outlive.http.wire.page import Span as WireSpan
from outlive.http.wire.page import seconds_of as seconds_of_request
from outlive.limits import Debounce

SPANS = {
    "90s": 90,
    "5m": 300,
    "5min": 300,
    "1h30m": 5_400,
    "2d": 172_800,
    "1w": 604_800,
    "1.5h": 5_400,
    "250ms": 0.25,
    "1m30s": 90,
    "42": 42,
    "0.5": 0.5,
    "PT15M": 900,
    "P1DT12H": 129_600,
    "P2W": 1_209_600,
    "PT0.5S": 0.5,
}
NO_SPANS = ["", "soon", "5 m", "m", "-5m", "30m1h", "5x", "P", "PT", "P1H", "1e3", "5m\n", "\u0665m"]


def _setting(text: str) -> float:
    try:
        seconds: float = read_settings(environ={"OUTLIVE_STORE_SECONDS": text})["store_seconds"]
    except InvalidSettingsError as error:
        raise ValueError from error
    return seconds


DOORS: dict[str, Callable[[str], float]] = {
    "a program": lambda text: given.seconds("engine.start", "timeout", text),
    "a command": lambda text: seconds_of_option("--timeout", text),
    "a setting": _setting,
    "a flow": lambda text: seconds_of_document(msgspec.convert(text, DocumentSpan)),
    "a request": lambda text: seconds_of_request(msgspec.convert(text, WireSpan)),
    "a parameter of a request": lambda text: seconds_of_request(msgspec.convert(text, WireSpan, strict=False)),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_reads_the_same_spans(door: str) -> None:
    """Programs, commands, settings, flows and requests share one parser."""
    assert {text: DOORS[door](text) for text in SPANS} == SPANS


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_a_text_that_is_not_a_span(door: str) -> None:
    """Every place that takes a span refuses a text that is not one, such as units in another order."""
    for text in NO_SPANS:
        if (door == "a setting" and text.strip() != text) or not text:
            continue  # A variable may have a space at its end, and an empty one says nothing.
        with pytest.raises((InvalidArgumentError, Mistake, ValueError)):
            DOORS[door](text)
    assert seconds_in("") is None


def test_an_error_of_a_span_has_examples() -> None:
    """The error of a span that cannot be read has examples; a number, a timedelta and a text are taken."""
    with pytest.raises(InvalidArgumentError, match=r'timeout=\'soon\' cannot work: .* text \("90s", "5m", "1h30m"'):
        given.seconds("engine.start", "timeout", "soon")
    assert given.seconds("engine.start", "timeout", timedelta(minutes=5)) == given.seconds("x", "timeout", "5m")
    assert Debounce(key="shop", quiet="30s", most="5m").most == 300
