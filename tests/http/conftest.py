"""What tests of the HTTP API share: an engine with its API, the two parsers of requests, flows of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import Any

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


@pytest.fixture(params=["httptools_impl.HttpToolsProtocol", "h11_impl.H11Protocol"], ids=["httptools", "h11"])
def protocol(request: pytest.FixtureRequest) -> Any:
    """A protocol class of uvicorn: what limits connections has to hold with each of them."""
    module, _, name = request.param.partition(".")
    return getattr(import_module(f"uvicorn.protocols.http.{module}"), name)
