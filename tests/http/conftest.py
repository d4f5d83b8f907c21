"""What tests of the HTTP API share: the two parsers of requests, and flows of their own for webhooks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tests.flow.conftest import own_flows

__all__ = ["own_flows"]


@pytest.fixture(params=["httptools_impl.HttpToolsProtocol", "h11_impl.H11Protocol"], ids=["httptools", "h11"])
def protocol(request: pytest.FixtureRequest) -> Any:
    """A protocol class of uvicorn: what limits connections has to hold with each of them."""
    module, _, name = request.param.partition(".")
    return getattr(import_module(f"uvicorn.protocols.http.{module}"), name)
