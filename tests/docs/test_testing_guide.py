"""The guide to testing is complete: every public name of `outlive.testing`, and every argument."""

from __future__ import annotations

import inspect

import pytest

from outlive import testing
from tests.docs.page import DOCS
from tests.docs.test_complete import has_word

GUIDE = (DOCS / "guides" / "testing.md").read_text("utf-8")


def test_guide_has_every_public_name() -> None:
    """The guide has every name of `outlive.testing.__all__`."""
    assert [name for name in testing.__all__ if not has_word(GUIDE, name)] == []


@pytest.mark.parametrize(
    "function",
    [
        testing.TestEngine,
        testing.SkipClock,
        testing.TestEngine.skip,
        testing.TestEngine.finish,
        testing.crash_everywhere,
        testing.replay,
    ],
    ids=lambda it: it.__qualname__,
)
def test_guide_names_every_argument(function: object) -> None:
    """The guide names every argument of the functions for tests."""
    assert callable(function)
    names = [name for name in inspect.signature(function).parameters if name != "self"]

    assert [name for name in names if not has_word(GUIDE, name)] == []


@pytest.mark.parametrize("cls", [testing.CrashReport, testing.Survivor], ids=lambda it: it.__name__)
def test_guide_names_every_field(cls: type) -> None:
    """The guide names every field of the reports that users are given."""
    assert [name for name in cls.__annotations__ if not has_word(GUIDE, name)] == []
