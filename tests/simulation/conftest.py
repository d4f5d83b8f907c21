"""What the tests of the simulator share."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def little_to_look_through() -> None:
    """Every episode looks for its garbage when it ends, and need not go through all that other tests keep."""
    gc.collect()
    gc.freeze()
