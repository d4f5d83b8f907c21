"""All tests of the conformance of PostgreSQL share one event loop, because their connections do."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The mark of an item counts more than the mark of a class of the suite."""
    for item in items:
        if item.path.name == "test_postgres_conformance.py":
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
