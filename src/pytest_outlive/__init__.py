"""The pytest plugin of Outlive: two fixtures, and nothing else.

It stands beside the package and not in it, because pytest imports its plugins in every project where they are
installed: whoever does not use these fixtures must not pay for the import of Outlive. Both fixtures are plain ones, so
they need no plugin for async tests, and work with whichever there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from outlive.testing import CrashReport, TestEngine


@pytest.fixture
def outlive_engine() -> Iterator[TestEngine]:
    """A `TestEngine` that starts with its first verb, on the event loop of the test, and stops when the test ends."""
    from outlive.testing.on_demand import OnDemandEngine

    engine = OnDemandEngine()
    yield engine
    engine.leave()


@pytest.fixture
def outlive_crash() -> Callable[..., CrashReport]:
    """`crash_everywhere` for tests that are not async: `outlive_crash(checkout, order)`."""
    import asyncio

    from outlive.testing import crash_everywhere

    return lambda workflow, *args, **options: asyncio.run(crash_everywhere(workflow, *args, **options))
