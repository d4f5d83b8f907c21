"""What tests of the HTTP API share: an engine with its API, the two parsers of requests, flows of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from outlive.http import Api
from outlive.testing import TestEngine
from tests.flow.conftest import own_flows
from tests.http import shop
from tests.http.caller import Caller

__all__ = ["own_flows"]


@pytest.fixture(autouse=True)
def _bank() -> Iterator[None]:
    yield
    shop.Flag.is_up = True


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine() as engine:
        yield engine


@pytest.fixture
def api(engine: TestEngine) -> Caller:
    """Its API."""
    return Caller(Api(engine))


@pytest.fixture(params=["httptools", "h11"])
def parser(request: pytest.FixtureRequest) -> str:
    """A parser of uvicorn: what the API promises holds with each of them."""
    return str(request.param)
