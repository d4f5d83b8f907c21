"""Suggestions for unknown names, also in a document that has thousands of both."""

import json
import time

import pytest

from outlive._cel.spelling import beginning_with, nearest
from tests.flow.corpus import problems_in

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
    """Each name of it was once held against every other: 13 s. The first 500 are enough."""
    steps = {f"step_{n}": {"use": "shop.reserve", "with": {"a": f"${{{{ steps.stp_{n} }}}}"}} for n in range(1000)}
    began = time.process_time()

    found = problems_in(json.dumps({"name": "mistaken", "steps": steps}))

    assert "there is no step stp_7; did you mean step_7?" in found[7]
    assert len(found) == 501
    assert time.process_time() - began < 2


def test_warnings_hide_no_mistake() -> None:
    """However many there are before it."""
    steps = {f"step_{n}": {"use": "not.registered"} for n in range(600)}
    steps["last"] = {"use": "shop.reserve", "if": "${{ nothing }}"}

    assert "unknown name 'nothing'" in problems_in(json.dumps({"name": "warned", "steps": steps}))[-1]
