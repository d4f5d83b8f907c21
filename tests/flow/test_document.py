"""The model of a flow's document, its canonical form and its hash."""

from typing import Any

import msgspec
import pytest

from outlive._features.flows.document.model import (
    canonical,
    canonical_json,
    from_canonical,
    hash_of,
    seconds_of,
    version_of,
)
from outlive.flow import Document

PLAIN: dict[str, Any] = {
    "name": "orders",
    "steps": {
        "reserve": {"use": "shop.reserve", "with": {"order": "${{ input.order }}", "again": False}},
        "charge": {"use": "shop.charge", "on_error": {"use_default": None}, "timeout": "30s"},
    },
    "output": None,
}


def document_of(plain: dict[str, Any]) -> Document:
    """The typed document."""
    return msgspec.convert(plain, Document)


def test_the_canonical_form_is_read_back_as_the_same_document() -> None:
    """The canonical form is read back as an equal document, and an output of null differs from no output."""
    document = document_of(PLAIN)

    assert document == from_canonical(canonical_json(document)) == canonical(document)
    assert document.has_output
    assert not document_of({**PLAIN, "output": msgspec.UNSET}).has_output


def test_the_order_of_arguments_and_written_defaults_do_not_change_the_hash() -> None:
    """They do not change what runs either: the canonical form is what runs."""
    steps = PLAIN["steps"]
    turned = {**steps["reserve"], "with": dict(reversed(steps["reserve"]["with"].items())), "must_run": False}
    same = document_of({**PLAIN, "steps": {**steps, "reserve": turned}, "language": 1})

    assert hash_of(document_of(PLAIN)) == hash_of(same)
    assert list(canonical(same).steps["reserve"].with_) == ["again", "order"]


def test_the_order_of_the_steps_is_part_of_the_hash() -> None:
    """It decides which of two ready steps begins first."""
    turned = {**PLAIN, "steps": dict(reversed(PLAIN["steps"].items()))}

    assert hash_of(document_of(PLAIN)) != hash_of(document_of(turned))


def test_the_hash_stays_the_same_in_all_releases() -> None:
    """Runs are pinned to it: a change of it would park every run of every flow."""
    document = document_of(PLAIN)

    assert hash_of(document) == f"{version_of(document):012x}" == "a5d6ec9f670d"


@pytest.mark.parametrize(
    ("span", "seconds"),
    [("30s", 30), ("5m", 300), ("1h30m", 5400), ("250ms", 0.25), ("1d", 86_400), ("1.5s", 1.5), (2, 2), ("1m30s", 90)],
)
def test_a_span_is_read_as_people_write_it(span: float | str, seconds: float) -> None:
    """Text with units, or seconds."""
    step = {"use": "a", "timeout": span}
    document = document_of({**PLAIN, "steps": {"one": step}})
    timeout = document.steps["one"].timeout

    assert timeout is not None
    assert seconds_of(timeout) == pytest.approx(seconds)


@pytest.mark.parametrize("span", ["", "s", "5 m", "-1s", "5x", "30m1h", "1e3s", -1, "5s\n"])
def test_an_invalid_span_is_refused(span: float | str) -> None:
    """A timeout that is not a span is refused when the document is read."""
    with pytest.raises(msgspec.ValidationError):
        document_of({**PLAIN, "timeout": span})
