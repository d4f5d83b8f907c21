"""Flows are tried in memory, on a file and on a server; the flows of a test are its own."""

from collections.abc import Iterator

import pytest

from outlive._kernel.define.registry import REGISTRY
from tests.engine.fixtures import engine, nobody_left, place

__all__ = ["engine", "nobody_left", "own_flows", "place"]


@pytest.fixture(autouse=True)
def own_flows() -> Iterator[None]:
    """The schedules and triggers of a flow would be those of every engine of the tests that come after it."""
    with REGISTRY.forgetting():
        yield
