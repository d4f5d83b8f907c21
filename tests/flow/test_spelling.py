"""Suggestions for unknown names, also in a document that has thousands of both."""

import json
import time

import pytest

from outlive._define.flow.checking import parse_document
from outlive._define.flow.known import Known
from outlive._define.flow.problems import FlowError
from outlive._define.flow.spelling import beginning_with, nearest

MANY = [f"step_{number}" for number in range(1000)]


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("ammount", ["amount", "count"], "amount"),
        ("xyz", ["amount", "count"], None),
        ("a" * 100, ["a" * 99], None),
        ("a", [], None),
        ("step_12x", MANY, "step_12"),
        ("tep_77", MANY, "step_77"),
        ("something", MANY, None),
    ],
)
def test_nearest(name: str, known: list[str], meant: str | None) -> None:
    """The name that is most alike, if any is."""
    assert nearest(name, known) == meant


def test_beginning_with() -> None:
    """The first in order."""
    assert beginning_with("step_9", MANY) == "step_9"
    assert beginning_with("send-", ["z", "send-mail", "send"]) == "send-mail"
    assert beginning_with("zz", MANY) is None


def test_a_document_with_a_thousand_mistakes_is_checked_soon() -> None:
    """Each name of it was once held against every other: 13 s."""
    steps = {f"step_{n}": {"use": "noop", "with": {"a": f"${{{{ steps.stp_{n} }}}}"}} for n in range(1000)}
    text = json.dumps({"name": "mistaken", "steps": steps})
    began = time.process_time()

    with pytest.raises(FlowError) as raised:
        parse_document(text, known=Known())

    assert len(raised.value.problems) >= 1000
    assert time.process_time() - began < 3
