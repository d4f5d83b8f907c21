"""The stores and the engine of these tests come from the harness in `tests.engine`; and where the trial finds Go."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.engine.fixtures import nobody_left, place

__all__ = ["go", "nobody_left", "place"]


@pytest.fixture(scope="session")
def go() -> str:
    """The program `go`: where CI is set it must be there, elsewhere its tests are skipped."""
    found = shutil.which("go")
    if found is None:
        missing = "go is not installed; on Debian: apt-get install golang-go"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found
